"""Under mpiexec: names by places against those of a box, which has them, and a solve on them; prints JSON."""

import json

import numpy as np
from petsc4py import PETSc
from sample_meshes import box_mesh

import petsc_hdg as fe
from petsc_hdg.run import guarded

SIDES = {"left": (0, 0.0), "right": (0, 1.0), "top": (1, 1.0)}


def same(mesh, name: str) -> bool:
    """Whether a side's facets are those of the name that was given by their places, on all ranks."""
    return all(mesh.comm.allgather(np.array_equal(mesh.facet_mask(f"my {name}"), mesh.facet_mask(name))))


def run() -> None:
    found = {}
    for cell in ("triangle", "quadrilateral", "tetrahedron", "hexahedron"):
        mesh = box_mesh(cell, comm=PETSc.COMM_WORLD, partition_seed=4)
        for name, (axis, place) in SIDES.items():
            mesh.name_boundary(f"my {name}", lambda x, axis=axis, place=place: np.abs(x[..., axis] - place) < 1e-12)
        mesh.name_boundary("all", lambda x: x[..., 0] > -1, inside=True)
        mesh.name_region("half", lambda x: x[..., 0] < 0.5)
        corners = mesh.geometry.nodes[mesh.geometry.cell_nodes[: mesh.num_cells]].mean(axis=1)
        comm, walls = mesh.comm, [fe.Dirichlet("my left", 1.0), fe.Dirichlet("my right", 2.0)]
        physics = fe.Physics({"u": 1}, f1="u_x[d]", boundary=walls, name="between")
        problem = fe.Problem(mesh, physics, degree=1, check_kernels=False)
        u = problem.solve()
        curved = mesh.curved(lambda x: x * (1 + x))
        volume = fe.Problem(curved, physics, degree=1, check_kernels=False).integral("1", u)
        found[cell] = {
            "facets": comm.allreduce(len(mesh.boundary_facets("my left")[0])),
            "as the box": [same(mesh, name) for name in SIDES],
            "all": all(comm.allgather(bool(mesh.facet_mask("all").all()))),
            "half": all(comm.allgather(np.array_equal(mesh.cell_mask("half"), corners[:, 0] < 0.5))),
            "curved": bool(abs(volume - 2**mesh.dim) < 1e-12) and curved.boundaries == mesh.boundaries,
            "flux": float(problem.flux("my right", u)[0]),
        }
    PETSc.Sys.Print(json.dumps(found))


if __name__ == "__main__":
    guarded(run)

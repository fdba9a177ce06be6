"""Under mpiexec: products completed by the owners of border rows are those whose sums go back to the owners.

Prints "border agrees". Random partitions, so that ranks have facets of several others.
"""

import sys

import numpy as np
import petsc4py

petsc4py.init(sys.argv)

from petsc4py import PETSc  # noqa: E402
from sample_meshes import box_mesh  # noqa: E402

import petsc_hdg as fe  # noqa: E402
from petsc_hdg.run import guarded  # noqa: E402

comm = PETSc.COMM_WORLD.tompi4py()
FLOW = "for (d = 0; d < dim; ++d) f1[d] = (1 + x[0])*u_x[d] - 3*x[d]*u[0];"  # the matrix is not symmetric
MILD = "for (d = 0; d < dim; ++d) f1[d] = (2 + x[1])*u_x[d];"
PLAIN = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
CASES = {
    "dense block": ("triangle", (5, 4), {"hdg_trace_mat": "dbf"}, FLOW),
    "element matrices": ("quadrilateral", (4, 4), {"hdg_trace_mat": "element", "hdg_share": False}, FLOW),
    "symmetric blocks": ("tetrahedron", (2, 2, 2), {"hdg_trace_mat": "symmetric"}, MILD),
    "congruent": ("triangle", (24, 20), {"hdg_trace_mat": "auto"}, PLAIN),
}


def product(problem, x, two_exchanges: bool, form=None) -> np.ndarray:
    """A x, on this rank's rows."""
    form, count = form or problem.operator.format, problem.discretization.dofmap.num_owned
    out, border = problem.arrays.to_device(np.full(max(1, count), np.nan)), form.border
    try:
        if two_exchanges:
            form.border = None
        before = problem.device.exchanges.count
        form.apply(x, out)
        made = problem.device.exchanges.count - before
    finally:
        form.border = border
    assert made == (2 if two_exchanges else 1) * bool(border.halo.plan.active), made
    return problem.arrays.to_host(out, count)


def check(name: str) -> None:
    cell, faces, settings, flux = CASES[name]
    if name == "congruent":
        mesh = fe.Mesh.box(faces, partition_seed=comm.size)
    else:
        mesh = box_mesh(cell, faces, seed=3, comm=PETSc.COMM_WORLD, partition_seed=comm.size)
    physics = fe.Physics(
        {"u": 1}, "f0[0] = k*u[0] - 1;", flux, constants={"k": 1.0}, boundary=[fe.Dirichlet("left", 0.0)]
    )
    problem = fe.Problem(mesh, physics, backend="hdg_gpu", degree=2, **settings)
    count, random = problem.discretization.dofmap.num_owned, np.random.default_rng(comm.rank)
    x = problem.arrays.to_device(random.uniform(-1, 1, max(1, count)))
    jacobian, copies, found = problem.callbacks.jacobian, [], []
    for k in (1.0, 30.0):
        problem.set_constants(k=k)
        problem.callbacks.linearize(None, problem.create_vec(), jacobian, jacobian)
        assert comm.allreduce(int(name in problem.operator.format.description)), problem.operator.format.description
        one, two = (product(problem, x, way) for way in (False, True))
        largest = comm.allreduce(float(np.abs(two).max(initial=0.0)), max)
        difference = comm.allreduce(float(np.abs(one - two).max(initial=0.0)), max)
        assert difference <= 1e-13 * largest, (name, k, difference / largest)
        found.append(one)
        copies.append(problem.operator.format.copy())
    kept = product(problem, x, False, copies[0])
    changed = comm.allreduce(float(np.abs(found[1] - kept).max(initial=0.0)), max)
    assert np.array_equal(kept, found[0]) and changed > 0, "a copy follows the matrix"


def main() -> None:
    for name in CASES:
        check(name)
    if comm.allreduce(1) == comm.size and comm.rank == 0:
        print("border agrees")


guarded(main)

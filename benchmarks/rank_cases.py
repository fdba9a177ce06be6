"""Solutions of all schemes on all cells, linear and nonlinear: what benchmarks/ranks.py runs on many ranks."""

import petsc_hdg as fe
from petsc_hdg.discretizations import SCHEMES

CELLS = {  # faces, simplices, polytopes
    "triangle": ((4, 4), True, 9),
    "quadrilateral": ((5, 4), False, 7),
    "tetrahedron": ((2, 2, 2), True, 8),
    "hexahedron": ((3, 2, 2), False, 6),
}
SUM = "PetscReal s = 0; for (d = 0; d < dim; ++d) s += (d + 1) * x[d];"


def linear() -> fe.Physics:
    """Diffusion, wind and reaction with a known solution of size one, by Dirichlet and Robin data."""
    flux = "for (d = 0; d < dim; ++d) f1[d] = (1 + x[0])*u_x[d];"
    return fe.Physics(
        {"u": 1},
        f0="f0[0] = u[0] + 0.5*u_x[0] - cos(x[0] + 2*x[1]);",
        f1=flux,
        boundary=[
            fe.Dirichlet("left", SUM + "g[0] = sin(s);"),
            fe.Dirichlet("top", SUM + "g[0] = sin(s);"),
            fe.Robin("right", "f0[0] = 2*u[0] - x[1];"),
        ],
        name="linear",
    )


def nonlinear() -> fe.Physics:
    """Diffusion that depends on the solution."""
    return fe.Physics(
        {"u": 1},
        f0="f0[0] = -1 - x[0];",
        f1="for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d];",
        boundary=[fe.Dirichlet("boundary", "g[0] = 0.5*x[0]*x[1];")],
        name="nonlinear",
    )


@fe.main
def main():
    for cell, (faces, simplex, polytopes) in CELLS.items():
        mesh = fe.Mesh.box(faces, simplex=simplex)
        coarse = fe.agglomerate(mesh, polytopes)
        for backend in SCHEMES:
            for physics in (linear(), nonlinear()):
                if physics.name == "nonlinear" and cell in ("quadrilateral", "hexahedron"):
                    continue  # half the cells: each costs minutes of compilation where nothing is cached
                chosen = coarse if backend == "poly_gpu" else mesh
                fe.Problem(chosen, physics, backend=backend, degree=2, check_kernels=False).solve()

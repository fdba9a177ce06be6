"""High contrast: what linear solves leave, by default, with unpreconditioned norms, and by LU.

    python benchmarks/contrast.py [-contrast 1e8] [-faces 24]

-∇·κ∇u = 1 in the unit square, κ = contrast in the middle and 1 elsewhere, degree 2, -ksp_rtol 1e-10. Of each solve the
iterations, |b - A x| / |b|, and |D⁻¹(b - A x)| / |x| with the diagonal D of A, which an error of that size leaves.
"""

from __future__ import annotations

import sys

import numpy as np
import petsc4py

import petsc_hdg as fe

petsc4py.init(sys.argv)

from petsc4py import PETSc  # noqa: E402

from petsc_hdg.database import defaults_in_database  # noqa: E402
from petsc_hdg.problem import solution_checks  # noqa: E402

SOLVERS = {
    "default": {},
    "unpreconditioned norm": {"ksp_norm_type": "unpreconditioned"},
    "LU": {"ksp_type": "preonly", "pc_type": "lu"},
}
PHYSICS = fe.Physics(
    {"u": 1},
    "f0[0] = -1;",
    "for (d = 0; d < dim; ++d) f1[d] = a[0]*u_x[d];",
    auxiliary={"kappa": 1},
    boundary=[fe.Dirichlet("left", 0.0), fe.Dirichlet("right", 1.0)],
)


def solved(backend: str, pmat: str, options: dict[str, str]) -> str:
    database = PETSc.Options()
    faces, contrast = database.getInt("faces", 24), database.getReal("contrast", 1e8)
    with defaults_in_database("", options, unless="ksp_type"):
        problem = fe.Problem(fe.Mesh.box((faces, faces)), PHYSICS, backend=backend, pmat=pmat, degree=2)
        problem.set_auxiliary("kappa", lambda x: contrast ** (np.abs(x - 0.5) < 0.2).all(axis=-1))
        u = problem.solve()
    ksp, residual = problem.snes.getKSP(), problem.create_vec()
    problem.callbacks.residual(problem.snes, u, residual)
    true, scaled = residual.norm() / ksp.getRhs().norm(), solution_checks.least_error(problem, u) / u.norm()
    return f"{problem.linear_iterations} its {true:.1e} {scaled:.1e}"


def main() -> None:
    for backend in ("cg_gpu", "hdg_gpu", "sipg_gpu", "poly_gpu"):
        rows = [
            f"{name}: {solved(backend, 'aij' if name == 'LU' else 'auto', given)}" for name, given in SOLVERS.items()
        ]
        PETSc.Sys.Print(f"{backend}: {'; '.join(rows)}")


if __name__ == "__main__":
    main()

"""Meshes that a user distributed with an overlap of his own: the same numbers by every scheme as without one.

mpiexec -n 2 python tests/problem/run_users_overlap.py
"""

from pathlib import Path

from petsc4py import PETSc

from petsc_hdg.mesh import Mesh
from petsc_hdg.options import Options
from petsc_hdg.physics import Dirichlet, Physics
from petsc_hdg.problem import Problem
from petsc_hdg.run import guarded

FILE = Path(__file__).parents[1] / "meshes" / "regions.msh"
SCHEMES = [("cg_gpu", {}), ("hdg_gpu", {}), ("sipg_gpu", {}), ("poly_gpu", {}), ("poly_gpu", {"poly_agglomerates": 9})]
LAPLACE = Physics(
    {"u": 1},
    "f0[0] = -1 - x[0];",
    "for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
    boundary=[Dirichlet("boundary", 0.0)],
)


def distributed(overlap: int) -> Mesh:
    dm = PETSc.DMPlex().createFromFile(str(FILE), interpolate=True, comm=PETSc.COMM_WORLD)
    dm.distribute(overlap=overlap)
    return Mesh(dm)


def numbers(overlap: int, backend: str, settings: dict) -> tuple[int, float]:
    """Unknowns, and the integral of the solution."""
    options = Options(backend=backend, degree=1, check_kernels=False, **settings)
    problem = Problem(distributed(overlap), LAPLACE, options)
    problem.snes.getKSP().setTolerances(rtol=1e-12)
    return problem.num_unknowns, problem.integral("u[0]", problem.solve())


def main() -> None:
    for backend, settings in SCHEMES:
        found = [numbers(overlap, backend, settings) for overlap in range(3)]
        values = [value for _, value in found]
        if not settings:  # agglomerates follow the cells' numbers
            assert len({count for count, _ in found}) == 1, (backend, found)
            assert max(values) - min(values) < 1e-9 * values[0] and values[0] > 0.04, (backend, found)
        assert max(values) - min(values) < 0.05 * values[0], (backend, found)
    PETSc.Sys.Print(f"the same with any overlap on {PETSc.COMM_WORLD.size} ranks")


if __name__ == "__main__":
    guarded(main)

"""Under mpiexec: `run_interfaces.py` prints errors of problems with a source, or a step of their coefficient, on facets
inside the mesh, as JSON."""

import json

import numpy as np
from petsc4py import PETSc

import petsc_hdg as fe
from petsc_hdg.run import guarded

DIFFUSION = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
HELD = [fe.Dirichlet("left", 0.0), fe.Dirichlet("right", 0.0)]
STEP = "const PetscReal k = x[0] >= 0.5 ? 100.0 : 1.0;" + DIFFUSION.replace("= u_x", "= k*u_x")
BENT = "(x[0] < 0.5 ? 200*x[0] : 2*x[0] + 99)/101"
DISC = STEP.replace("x[0] >= 0.5", "pow(x[0] - 0.47, 2) + pow(x[1] - 0.53, 2) < 0.137")
EXCHANGE = [fe.Robin("middle", "f0[0] = u[0];"), fe.Neumann("middle", "g[0] = 1;")]
GIVEN = [fe.Dirichlet("middle", 0.2)]
SCHEMES = {
    **{scheme: {} for scheme in ("cg_gpu", "hdg_gpu", "sipg_gpu", "poly_gpu")},
    "condensed": {"backend": "cg_gpu", "cg_condense": True},
}


def cut(comm=PETSc.COMM_SELF) -> fe.Mesh:
    """The unit square of 6 × 4 rectangles, whose line x = ½ is called "middle"."""
    points = np.stack(np.meshgrid(np.linspace(0, 1, 7), np.linspace(0, 1, 5), indexing="ij"), axis=-1).reshape(-1, 2)
    number = np.arange(35).reshape(7, 5)
    cells = np.stack([number[:-1, :-1], number[1:, :-1], number[:-1, 1:], number[1:, 1:]], axis=-1).reshape(-1, 4)
    lines = {name: np.stack([number[i, :-1], number[i, 1:]], axis=1) for name, i in (("left", 0), ("middle", 3))}
    lines["right"] = np.stack([number[6, :-1], number[6, 1:]], axis=1)
    if comm.getRank():
        cells, points, lines = cells[:0], points[:0], {name: line[:0] for name, line in lines.items()}
    return fe.Mesh.from_cells(cells, points, lines, cell="quadrilateral", comm=comm, partition_seed=2)


def found(scheme: str, comm=PETSc.COMM_SELF, conditions=EXCHANGE) -> list[float]:
    """∫ (u - 0.4 min(x, 1 - x))², and the flux out of the sides, of which there is none with condensation."""
    physics = fe.Physics({"u": 1}, None, DIFFUSION, boundary=[*HELD, *conditions])
    problem = fe.Problem(cut(comm), physics, degree=2, **{"backend": scheme, **SCHEMES[scheme]})
    u = problem.solve()
    gap = problem.integral("(u[0] - 0.4*fmin(x[0], 1 - x[0]))*(u[0] - 0.4*fmin(x[0], 1 - x[0]))", u)
    return [gap, *([] if scheme == "condensed" else [float(problem.flux(side, u)[0]) for side in ("left", "right")])]


def stepped(scheme: str, mesh: fe.Mesh, degree: int = 2, **how) -> float:
    """∫ (u - BENT)², of a coefficient whose text steps at x = ½; BENT solves it."""
    sides = [fe.Dirichlet("left", 0.0), fe.Dirichlet("right", 1.0)]
    return _gap(scheme, mesh, degree, sides, BENT, **how)


def slid(scheme: str, mesh: fe.Mesh, degree: int = 2) -> float:
    """∫ (u - x₁)², of the same coefficient with natural data that step, too; x₁ solves it."""
    flux = "(x[0] >= 0.5 ? 100 : 1)"
    sides = [fe.Dirichlet("left", "x[1]"), fe.Dirichlet("right", "x[1]")]
    sides += [fe.Neumann("top", flux), fe.Robin("bottom", f"{flux}*(1 + u[0])")]
    return _gap(scheme, mesh, degree, sides, "x[1]")


def matrix_with_a_disc(scheme: str, mesh: fe.Mesh, degree: int, **how) -> PETSc.Mat:
    """The matrix of a coefficient that steps inside of cells."""
    physics = fe.Physics({"u": 1}, None, DISC, boundary=[fe.Dirichlet("boundary", 0.0)])
    problem = fe.Problem(mesh, physics, degree=degree, backend=scheme, pmat="aij", **how)
    return problem.matrix(problem.create_vec())


def skewness(mat: PETSc.Mat) -> float:
    """|A - Aᵀ| / |A|"""
    other = mat.transpose(PETSc.Mat())
    size = mat.norm(PETSc.NormType.FROBENIUS)
    other.axpy(-1.0, mat, PETSc.Mat.Structure.DIFFERENT_NONZERO_PATTERN)
    return other.norm(PETSc.NormType.FROBENIUS) / size


def _gap(scheme: str, mesh: fe.Mesh, degree: int, sides: list, exact: str, **how) -> float:
    problem = fe.Problem(mesh, fe.Physics({"u": 1}, None, STEP, boundary=sides), degree=degree, backend=scheme, **how)
    return problem.integral(f"(u[0] - {exact})*(u[0] - {exact})", problem.solve())


def run() -> None:
    world = PETSc.COMM_WORLD
    sources = [found(scheme, world, conditions) for scheme in SCHEMES for conditions in (EXCHANGE, GIVEN)]
    steps = [stepped(scheme, cut(world)) for scheme in ("hdg_gpu", "sipg_gpu", "poly_gpu")]
    discs = {"sipg_gpu": {"quadrature_degree": 3}, "poly_gpu": {"poly_agglomerates": 12}}
    mats = [matrix_with_a_disc(scheme, cut(world), 1, **how) for scheme, how in discs.items()]
    PETSc.Sys.Print(json.dumps([sources, steps, [skewness(mat) for mat in mats]]))


if __name__ == "__main__":
    guarded(run)  # a rank that fails ends the others

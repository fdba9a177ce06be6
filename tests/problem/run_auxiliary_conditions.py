"""Under mpiexec: `run_auxiliary_conditions.py` prints errors of problems whose boundary data are auxiliary fields."""

import json

from petsc4py import PETSc
from run_interfaces import cut

import petsc_hdg as fe
from petsc_hdg.run import guarded

SCHEMES = {
    **{scheme: {} for scheme in ("cg_gpu", "hdg_gpu", "sipg_gpu", "poly_gpu")},
    "condensed": {"backend": "cg_gpu", "cg_condense": True},
}
DIFFUSION = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"


def problem_of(scheme: str, mesh: fe.Mesh, boundary, auxiliary: dict, **given) -> fe.Problem:
    """-Δu = 0 of degree 2."""
    physics = fe.Physics({"u": 1}, None, DIFFUSION, auxiliary=auxiliary, boundary=boundary, **given)
    return fe.Problem(mesh, physics, degree=2, **{"backend": scheme, **SCHEMES[scheme]})


def quadratic(scheme: str, comm) -> list[float]:
    """Errors of x² - y² from its values on all sides but one, whose flux is given; and of another solution after."""
    wall = {"wall": fe.Auxiliary(1, "nodal"), "flux": fe.Auxiliary(1, "nodal")}
    mesh = fe.Mesh.box((5, 4), simplex=True, comm=comm)
    boundary = [fe.Neumann("right", "flux"), *(fe.Dirichlet(side, "wall") for side in ("left", "top", "bottom"))]
    problem = problem_of(scheme, mesh, boundary, wall, exact={"u": "u[0] = x[0]*x[0] - x[1]*x[1];"})
    problem.set_auxiliary("wall", lambda x: x[..., 0] ** 2 - x[..., 1] ** 2)
    problem.set_auxiliary("flux", lambda x: 2 * x[..., 0])
    found = [problem.errors(problem.solve())["L2"]]
    problem.set_auxiliary("wall", 3.0)
    problem.set_auxiliary("flux", 0.0)
    return [*found, problem.integral("(u[0] - 3)*(u[0] - 3)", problem.solve())]


def inside(scheme: str, comm) -> float:
    """∫ (u - 4 min(x, 1 - x))² where u is 2 on a line inside the mesh: the mean of 1 in the cells to the left of it and
    of 3 in those to the right."""
    boundary = [fe.Dirichlet("left", 0.0), fe.Dirichlet("right", 0.0), fe.Dirichlet("middle", "wall")]
    problem = problem_of(scheme, cut(comm), boundary, {"wall": 1})
    problem.set_auxiliary("wall", lambda x: 1.0 + 2.0 * (x[..., 0] > 0.5))
    return problem.integral("(u[0] - 4*fmin(x[0], 1 - x[0]))*(u[0] - 4*fmin(x[0], 1 - x[0]))", problem.solve())


def run() -> None:
    comm = PETSc.COMM_WORLD
    found = {scheme: quadratic(scheme, comm) for scheme in SCHEMES}
    PETSc.Sys.Print(json.dumps([found, {scheme: inside(scheme, comm) for scheme in ("cg_gpu", "hdg_gpu")}]))


if __name__ == "__main__":
    guarded(run)  # a rank that fails ends the others

"""Under mpiexec: `run_consistent_flux.py` prints the fluxes of cg_gpu through the sides of a box, and their balance."""

import json

import numpy as np
from petsc4py import PETSc
from sample_meshes import box_mesh

import petsc_hdg as fe
from petsc_hdg.physics import library
from petsc_hdg.run import guarded

SIDES = ("left", "right", "bottom", "top", "front", "back")


def scalar(flux: str, boundary: list, f0: str = "f0[0] = -1;") -> fe.Physics:
    return fe.Physics({"u": 1}, f0=f0, f1=f"for (d = 0; d < dim; ++d) f1[d] = {flux};", boundary=boundary)


def elastic(dirichlet: dict) -> fe.Physics:
    """Weight of one downwards, a load of 0.2 on the top; components that are held, by sides."""
    held = [fe.Dirichlet(side, 0.0, components=components) for side, components in dirichlet.items()]
    load = fe.Neumann("top", "g[1] = -0.2;")
    return library.elasticity(2, "f0[1] = 1;", lame_lambda=2.0, mu=0.7, boundary=[*held, load])


ALL = fe.Dirichlet("boundary", "g[0] = x[0]*x[1];")
MIXED = [
    fe.Dirichlet("left", 0.0),
    fe.Neumann("top", "g[0] = 0.3;"),
    fe.Robin("right", "f0[0] = 2*u[0];"),
    fe.Robin("bottom", f1="f1[0] = 0.1*u_x[0] - 0.2; f1[1] = 0.3*u[0];"),
]
CASES = {
    "variable": lambda: scalar("(1 + x[0]*x[1] + sin(3*x[0]))*u_x[d]", [ALL]),
    "nonlinear": lambda: scalar("(1 + u[0]*u[0])*u_x[d]", [ALL]),
    "mixed": lambda: scalar("(2 + x[0])*u_x[d] - u[0]*(d + 1)", MIXED),
    "elastic": lambda: elastic({"left": [0, 1], "bottom": [1]}),
}


def solved(name: str, cell: str, backend: str, comm=PETSc.COMM_SELF):
    """A problem of second degree and its solution, to rounding."""
    physics = CASES[name]()
    problem = fe.Problem(box_mesh(cell, comm=comm, partition_seed=4), physics, degree=2, backend=backend)
    problem.snes.getKSP().setTolerances(rtol=1e-14)
    problem.snes.setTolerances(rtol=1e-12)
    return problem, problem.solve()


def balance(found) -> tuple[float, float]:
    """Largest |Σ flux - ∫ f0| of a component over the sides, and |flux of "boundary" - Σ|."""
    problem, u = found
    sources = {1: "obj[0] = -1;", 2: "obj[0] = 0; obj[1] = 1;"}[problem.physics.num_components]
    source = np.atleast_1d(problem.integral(sources, u))
    total = sum(problem.flux(side, u) for side in SIDES[: 2 * problem.mesh.dim])
    return float(np.abs(total - source).max()), float(np.abs(problem.flux("boundary", u) - total).max())


UNSTEADY = fe.Physics(
    {"u": 1},
    "(1 + x[0])*u_t[0] - 1",
    "(1 + u[0]*u[0])*u_x[d]",
    boundary=[fe.Dirichlet("left", "x[1]*(1 + t)"), fe.Robin("right", "u[0] - 1")],
)


def unsteady(cell: str, backend: str = "cg_gpu", comm=PETSc.COMM_SELF) -> tuple[fe.Problem, PETSc.Vec]:
    """A problem in time, and its last state."""
    mesh = box_mesh(cell, (4, 4), amplitude=0.1, comm=comm)
    problem = fe.Problem(mesh, UNSTEADY, degree=2, backend=backend)
    return problem, problem.solve_in_time(problem.interpolate("x[1]"), 0.2, dt=0.1)


def run() -> None:
    found = {}
    for name in CASES:
        problem, u = solved(name, "triangle", "cg_gpu", PETSc.COMM_WORLD)
        fluxes = {side: problem.flux(side, u).tolist() for side in SIDES[:4]}
        found[name] = {"gap": max(balance((problem, u))), "fluxes": fluxes}
    problem, u = unsteady("triangle", comm=PETSc.COMM_WORLD)
    found["unsteady"] = [problem.flux(side, u, problem.time)[0] for side in SIDES[:4]]
    PETSc.Sys.Print(json.dumps(found))


if __name__ == "__main__":
    guarded(run)  # a rank that fails ends the others

"""Under mpiexec: `run_saddle_splits.py CASE FACES...` solves flows by the default above the limit of LU, and prints
iterations, reasons and a number of the solution on boxes of so many faces, as JSON."""

import json
import sys

from petsc4py import PETSc
from run_flows import DIVERGENCE, STRESS, TAYLOR_HOOD, variable_viscosity

import petsc_hdg as fe
from petsc_hdg.physics import library
from petsc_hdg.problem.linear import direct_solvers
from petsc_hdg.run import guarded

STRAIN = "(u_x[c*dim + d] + u_x[d*dim + c])"
SLOPES = "const PetscReal s = u_x[0]*u_x[0] + u_x[3]*u_x[3] + 0.5*(u_x[1] + u_x[2])*(u_x[1] + u_x[2]);"


def flow(stress: str, reynolds: float, *sides: str) -> fe.Physics:
    """A flow that a force turns, at rest on some sides."""
    rows = [f"f0[{c}] = {reynolds}*(u[0]*u_x[{2 * c}] + u[1]*u_x[{2 * c + 1}])" for c in range(2)]
    return fe.Physics(
        TAYLOR_HOOD,
        {"velocity": f"{rows[0]} - 100*x[1]; {rows[1]} + 100*x[0]*x[0];", "pressure": DIVERGENCE},
        {"velocity": stress},
        boundary=[fe.Dirichlet(side, 0.0, field="velocity") for side in sides],
    )


def rubber(lame_lambda: float = 5e3, sides: str = "left") -> fe.Physics:
    """A body with Poisson's ratio 0.4999 under loads that turn it; its displacement is known if all sides are fixed."""
    waves = "PetscReal X = PETSC_PI*x[0], Y = PETSC_PI*x[1];"
    rows = "f0[0] = q*(4*cos(2*X) - 2)*sin(2*Y); f0[1] = -q*(4*cos(2*Y) - 2)*sin(2*X);"
    return library.elasticity(
        2,
        f"{waves} PetscReal q = PETSC_PI*PETSC_PI; {rows}",
        lame_lambda=lame_lambda,
        mixed=True,
        boundary=[fe.Dirichlet(sides, 0.0, field="u")],
        exact={"u": f"{waves} u[0] = sin(X)*sin(X)*sin(2*Y); u[1] = -sin(2*X)*sin(Y)*sin(Y);"},
    )


CASES = {
    "enclosed": lambda: flow(STRESS.format(STRAIN), 0.0, "boundary"),
    "open": lambda: flow(STRESS.format(STRAIN), 0.0, "left", "top"),
    "variable": lambda: variable_viscosity(2),
    "power law": lambda: flow(SLOPES + STRESS.format(f"pow(1e-2 + s, -0.25)*{STRAIN}"), 0.0, "boundary"),
    "rubber": rubber,
    "convected": lambda: flow(STRESS.format(STRAIN), 10.0, "boundary"),
}


def problem(case: str, faces: int, comm=PETSc.COMM_WORLD, **options) -> fe.Problem:
    return fe.Problem(fe.Mesh.box((faces, faces), comm=comm), CASES[case](), degree=2, **options)


def numbers(case: str, faces: int, comm=PETSc.COMM_WORLD, **options) -> dict:
    """How a flow is solved: fields apart, iterations and steps, and a number of the solution."""
    found = problem(case, faces, comm, **options)
    energy = found.integral("u[0]*u[0]*(1 + x[0]) + u[1]*u[1]", found.solve())
    return {
        "saddle": found.saddle,
        "direct": found.direct,
        "its": found.linear_iterations,
        "steps": found.newton_iterations,
        "energy": float(energy),
    }


def main() -> None:
    direct_solvers.MOST, direct_solvers.most_of_saddles = 100, lambda problem: 100
    case, *faces = sys.argv[1], *map(int, sys.argv[2:])
    PETSc.Sys.Print(json.dumps([numbers(case, n) for n in faces]))


if __name__ == "__main__":
    guarded(main)

"""python run_orders.py: a Jacobian is converted in place, destroyed and dropped, its problem used and dropped, in each
order of two of these; then the program ends. Half of the matrices live to its end."""

import gc
import itertools
import sys

import petsc4py

petsc4py.init(sys.argv)

import petsc_hdg as fe  # noqa: E402
from petsc_hdg.petsc import lifetimes  # noqa: E402
from petsc_hdg.physics import library  # noqa: E402


def convert(kept: dict) -> None:
    if "jacobian" in kept and kept["jacobian"].handle:
        kept["jacobian"].convert("aij")


def destroy(kept: dict) -> None:
    if "jacobian" in kept:
        kept["jacobian"].destroy()


def drop_matrix(kept: dict) -> None:
    kept.pop("jacobian", None)


def drop_problem(kept: dict) -> None:
    kept.pop("problem", None)
    gc.collect()


def assemble(kept: dict) -> None:
    if "problem" in kept and kept["problem"].callbacks.jacobian.getType() == "python":
        kept["problem"].solve()


STEPS, LIVING = (convert, destroy, drop_matrix, drop_problem, assemble), []
mesh = fe.Mesh.box((3, 3))
for scheme in ("cg_gpu", "hdg_gpu", "sipg_gpu", "poly_gpu"):
    physics = library.elasticity(2, boundary=[fe.Dirichlet("boundary", 0.0)])
    for order in itertools.permutations(STEPS, 2):
        problem = fe.Problem(mesh, physics, fe.Options(backend=scheme, degree=1))
        kept, jacobian = {"problem": problem, "jacobian": problem.callbacks.jacobian}, None
        problem.callbacks.linearize(
            None, problem.create_vec(), problem.callbacks.jacobian, problem.callbacks.preconditioning
        )
        del problem
        for step in order:
            try:
                step(kept)
            except fe.SolveError as error:
                assert "was destroyed" in str(error)
        LIVING.append(kept if len(LIVING) % 2 else None)
lifetimes.destroy()
print("done")

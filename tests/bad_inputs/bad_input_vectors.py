"""Things that are no solution of the problem they are given to: name → (call of communicator and folder, pattern), a
part of bad_input_table.py.
"""

from __future__ import annotations

import numpy as np
from bad_input_calls import clamped, mesh, problem
from petsc4py import PETSc

import petsc_hdg as fe
from petsc_hdg.errors import our_error
from petsc_hdg.options import Options


def of_another(c, degree: int = 2):
    """A vector of unknowns of a problem of another degree."""
    return problem(c, degree=degree).create_vec()


def first_ranks(c):
    """A vector that is of another problem on rank 0 alone."""
    vector, made = problem(c).create_vec(), of_another(c)
    return made if c.rank == 0 else vector


def hybridized(c):
    return fe.Problem(mesh(c), clamped(), Options(backend="hdg_gpu", check_kernels=False))


def heat(c):
    physics = fe.Physics(
        {"u": 1},
        "f0[0] = u_t[0];",
        "for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
        boundary=[fe.Dirichlet("boundary", 0.0)],
    )
    return problem(c, physics)


def diagonal_into_another(c, backend: str) -> None:
    """The error of the callback, which a current PETSc wraps."""
    jacobian = problem(c, backend=backend, pmat="none").callbacks.jacobian
    try:
        jacobian.getDiagonal(of_another(c, 3))
    except PETSc.Error as error:
        raise (our_error(error) or error) from None


OTHER = r"A vector of \d+ unknowns on rank \d was given to a problem that has \d+ there; give what solve"
SIZES = r"has vectors of \d+ entries, and one of \d+ was given: "
NO_VEC = "was given where a solution, a PETSc Vec, is wanted; give what solve, interpolate or create_vec"

BAD_VECTORS = {
    "integral of another problem's solution": (lambda c, f: problem(c).integral("u[0]", of_another(c)), OTHER),
    "integral of one that differs on one rank": (lambda c, f: problem(c).integral("u[0]", first_ranks(c)), OTHER),
    "file of another problem's solution": (lambda c, f: problem(c).write(f / "u.vtu", of_another(c)), OTHER),
    "picture of another problem's solution": (lambda c, f: problem(c).plot(f / "u.png", of_another(c)), OTHER),
    "trace of another problem": (lambda c, f: hybridized(c).write_trace(f / "u.vtu", of_another(c)), OTHER),
    "flux of another problem": (lambda c, f: hybridized(c).flux("boundary", of_another(c)), OTHER),
    "guess of another problem": (lambda c, f: problem(c).solve(of_another(c)), OTHER),
    "solver's work on another problem's vector": (lambda c, f: problem(c).solve_from(of_another(c)), OTHER),
    "solver's work on nothing": (lambda c, f: problem(c).solve_from(None), "None " + NO_VEC),
    "checkpoint of another problem": (lambda c, f: problem(c).checkpoint(f / "a.h5", of_another(c)), OTHER),
    "initial state of another problem": (lambda c, f: heat(c).solve_in_time(of_another(c), 1.0, 0.1), OTHER),
    "loads of another problem": (lambda c, f: next(problem(c).load_steps((1.0,), of_another(c))), OTHER),
    "restart into another problem's vector": (lambda c, f: problem(c).restart(f / "a.h5", u=of_another(c)), OTHER),
    "solver of another problem": (
        lambda c, f: (made := problem(c)).callbacks.residual(None, of_another(c), made.create_vec()),
        "the problem that a solver was made for " + SIZES + "give what interpolate",
    ),
    "residual of another problem": (
        lambda c, f: (made := problem(c)).callbacks.residual(None, made.create_vec(), of_another(c)),
        "the problem that a solver was made for " + SIZES + "give what interpolate",
    ),
    **{
        f"diagonal of another problem, {backend}": (
            lambda c, f, b=backend: diagonal_into_another(c, b),
            "the diagonal of a matrix " + SIZES + "mat.createVecLeft.. makes one",
        )
        for backend in ("cg_gpu", "hdg_gpu", "sipg_gpu")
    },
    "nothing instead of a solution": (lambda c, f: problem(c).write(f / "u.vtu", None), "None " + NO_VEC),
    "numbers instead of a solution": (lambda c, f: problem(c).cell_values(np.zeros(3)), r"array\(.*\) " + NO_VEC),
    "solution and file changed about": (
        lambda c, f: (made := problem(c)).write(made.create_vec(), f / "u.vtu"),
        r"Path.*" + NO_VEC,
    ),
    "fields as a picture": (
        lambda c, f: (made := problem(c)).write(f / "u.png", made.create_vec()),
        "u.png: VTU is what is written; give a name that ends in .vtu",
    ),
    "picture as a document": (
        lambda c, f: (made := problem(c)).plot(f / "u.pdf", made.create_vec()),
        "u.pdf: PNG is what is written; give a name that ends in .png",
    ),
}

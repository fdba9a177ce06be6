"""PETSc objects that are destroyed while others work with them, which PETSc ends the interpreter over: name → (call of
communicator and folder, pattern), a part of bad_input_table.py.
"""

from __future__ import annotations

from bad_input_calls import mesh, problem
from petsc4py import PETSc

import petsc_hdg as fe

ENDED = " was destroyed, and work on it goes on; destroy it when nothing needs it"


def after(destroy, go_on=lambda made: made.solve(), **options):
    """Go on with a problem that was solved, after something of it was destroyed."""

    def attempt(c, f):
        made = problem(c, **options)
        made.solve()
        destroy(made)
        go_on(made)

    return attempt


def mesh_after(go_on):
    def attempt(c, f):
        made = mesh(c)
        made.dm.destroy()
        go_on(made)

    return attempt


def destroyed(thing):
    thing.destroy()
    return thing


BAD_DESTROYED = {
    "solver destroyed": (after(lambda p: p.snes.destroy()), "problem.snes." + ENDED),
    "solver of a trace destroyed": (after(lambda p: p.snes.destroy(), backend="hdg_gpu"), "problem.snes." + ENDED),
    "DM destroyed": (after(lambda p: p.dm.destroy()), "problem.dm." + ENDED),
    "DM destroyed before a new SNES": (
        after(lambda p: p.dm.destroy(), lambda p: p.create_snes()),
        "problem.dm." + ENDED,
    ),
    "DM destroyed before a TS": (after(lambda p: p.dm.destroy(), lambda p: p.create_ts()), "problem.dm." + ENDED),
    "Jacobian destroyed": (after(lambda p: p.callbacks.jacobian.destroy()), "The Jacobian of a problem" + ENDED),
    "matrix destroyed": (
        after(lambda p: p.callbacks.assembled.mat.destroy(), pmat="aij"),
        "The matrix of a problem" + ENDED,
    ),
    "guess destroyed": (
        lambda c, f: (made := problem(c)).solve(destroyed(made.create_vec())),
        "was given where a solution, a PETSc Vec, is wanted",
    ),
    "attached to a solver that was destroyed": (
        lambda c, f: (made := problem(c)).attach(destroyed(PETSc.SNES().create(made.dm.comm))),
        "The solver that a problem is attached to" + ENDED,
    ),
    "a mesh of a DM that was destroyed": (
        lambda c, f: fe.Mesh(destroyed(PETSc.DMPlex().createBoxMesh([2, 2], simplex=False, comm=PETSc.Comm(c)))),
        "a DM that was destroyed is given; fe.Mesh.from_file",
    ),
    **{
        f"{name} of a mesh whose DM was destroyed": (mesh_after(go_on), r"The mesh .mesh\.dm." + ENDED)
        for name, go_on in {
            "agglomerates": lambda m: fe.agglomerate(m, 3),
            "coarsening": lambda m: fe.coarsen(m, 3),
            "fewer cells": fe.fewer_cells,
            "rebalancing": lambda m: fe.rebalance(m, 1.0),
            "closure": lambda m: m.closure_mask("left"),
        }.items()
    },
    "a mesh that was destroyed": (lambda c, f: problem_on_none(c), r"The mesh .mesh\.dm." + ENDED),
}


def problem_on_none(c):
    made = mesh(c)
    made.destroy()
    made.destroy()  # twice is as once
    fe.Problem(made, problem(c).physics)

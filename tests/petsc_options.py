"""PETSc's options database for the length of a test."""

from __future__ import annotations

from contextlib import contextmanager

from petsc4py import PETSc


@contextmanager
def petsc_options(**values):
    """Set options (`ksp_type="cg"` is -ksp_type cg) inside the block and take them out again, with those that PETSc
    makes of them: it gives an old option (-ts_dt) its new name for good."""
    database = PETSc.Options()
    before = set(database.getAll())
    for name, value in values.items():
        database.setValue(name, value)
    try:
        yield
    finally:
        for name in {*values, *database.getAll()} - (before - set(values)):
            if database.hasName(name):
                database.delValue(name)


def direct_solver() -> dict[str, str]:
    """Options of one direct linear solve; PETSc without MUMPS iterates to round-off instead."""
    if PETSc.Sys.hasExternalPackage("mumps"):
        return {"ksp_type": "preonly", "pc_type": "lu", "pc_factor_mat_solver_type": "mumps"}
    return {"ksp_type": "cg", "ksp_rtol": "1e-13", "pc_type": "gamg"}

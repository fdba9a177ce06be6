"""Calls into PETSc's C library, the same in all its versions."""

import numpy as np
import pytest
from petsc4py import PETSc

from petsc_hdg.errors import MeshError
from petsc_hdg.petsc import c_library


def test_coo_sums_duplicates_and_skips_negative_ones():
    mat = PETSc.Mat().create(PETSc.COMM_SELF)
    mat.setSizes([3, 3])
    mat.setType("aij")
    rows, columns = np.array([0, 2, 0, -1, 1]), np.array([1, 2, 1, 0, 0])
    c_library.set_preallocation_coo(mat, rows, columns)
    assert rows.tolist() == [0, 2, 0, -1, 1]
    c_library.set_values_coo(mat, np.array([1.0, 2, 4, 8, 16]))
    assert (mat.getValues(range(3), range(3)) == [[0, 5, 0], [16, 0, 0], [0, 0, 2]]).all()


def test_function_domain_error_stops_newton():
    def residual(snes, x, f):
        f.set(1.0)
        c_library.set_function_domain_error(snes)

    snes = PETSc.SNES().create(PETSc.COMM_SELF)
    x = PETSc.Vec().createSeq(2)
    snes.setFunction(residual, x.duplicate())
    snes.setUseMF(True)
    snes.solve(None, x)
    assert snes.getConvergedReason() == PETSc.SNES.ConvergedReason.DIVERGED_FUNCTION_DOMAIN


def test_missing_function_is_named():
    assert c_library.has("DMPlexGetCones") and not c_library.has("DMPlexNoSuchThing")
    with pytest.raises(MeshError, match="has no DMPlexNoSuchThing; use PETSc 3.18 or later"):
        c_library.call("DMPlexNoSuchThing")


def test_error_codes_are_errors():
    with pytest.raises(PETSc.Error) as caught:
        c_library.call("PetscOptionsSetValue", None, b"no_dash", b"1")
    assert c_library.reason(caught.value).startswith(f"PETSc error {caught.value.ierr}")

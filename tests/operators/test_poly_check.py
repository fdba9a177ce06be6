"""Kernels of polytopic DG beside numpy, for all ways to have fields: what the first use on a device checks."""

import numpy as np
import pytest

import petsc_hdg as fe
from petsc_hdg.operators import check_poly

FIELDS = [{"a": 1}, {"v": 2}, {"a": 1, "b": 1}, {"v": 2, "p": 1}, {"p": 1, "v": 2}]


def operator(fields: dict):
    of_each = {name: f"for (int c = 0; c < {n}; ++c) f0[c] = 1;" for name, n in fields.items()}
    physics = fe.Physics(fields, of_each, name="ones")
    mesh = fe.agglomerate(fe.Mesh.box((3, 3)), 5)
    return fe.Problem(mesh, physics, backend="poly_gpu", degree=2, check_kernels=False).operator


@pytest.mark.parametrize("fields", FIELDS, ids=" ".join)
def test_expand_and_restrict_equal_numpy(fields):
    made = operator(fields)
    for check in (check_poly._check_expand, check_poly._check_restrict):
        found, expected = check(made)
        assert found.shape == expected.shape and np.abs(expected).max() > 0.1
        assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()

"""Tables of condensed schemes, which kernels and oracle take alike, against functions made from reference elements."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from condensed_functions import functions_of
from petsc4py import PETSc
from sample_condensed import by_name
from sample_meshes import box_mesh

from petsc_hdg.discretizations import scheme
from petsc_hdg.discretizations.condensed.oracle import cell_tables
from petsc_hdg.options import Options


def discretization(cell: str, degree: int, **options):
    given = Options(degree=degree, **options)
    return scheme(given)(box_mesh(cell, comm=PETSc.COMM_SELF), by_name("poisson", 0), given)


@pytest.mark.parametrize(
    "cell, degree, options",
    [
        ("triangle", 0, {}),
        ("triangle", 3, {}),
        ("quadrilateral", 2, {}),
        ("quadrilateral", 2, {"hdg_enrich": False}),
        ("tetrahedron", 2, {}),
        ("hexahedron", 1, {}),
        ("triangle", 3, {"backend": "cg_gpu", "cg_condense": True}),
        ("hexahedron", 2, {"backend": "cg_gpu", "cg_condense": True}),
    ],
)
def test_tables_are_those_of_the_reference_elements(cell, degree, options):
    disc = discretization(cell, degree, **{"backend": "hdg_gpu", **options})
    found, expected = cell_tables(disc), functions_of(disc).tables(disc.quadrature_degree)
    for name in (field.name for field in fields(expected)):
        mine, theirs = getattr(found, name), getattr(expected, name)
        assert (mine is None) == (theirs is None), name
        if theirs is not None:
            assert mine.shape == theirs.shape and (np.abs(theirs).max() > 0.1 or degree == 0), name
            assert np.abs(mine - theirs).max() < 1e-12 * (1 + np.abs(theirs).max()), name

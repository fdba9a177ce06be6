"""A mesh for the tests of the mesh package."""

import pytest
from shuffled_boxes import SHAPES, shuffled_box

from petsc_hdg.mesh import Mesh


@pytest.fixture(params=SHAPES)
def shuffled(request):
    """A distorted box of each shape with random orders."""
    cells, points = shuffled_box(request.param, seed=5)
    return Mesh.from_cells(cells, points, cell=request.param)

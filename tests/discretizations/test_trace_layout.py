"""Facet blocks of the trace: neighbours, slots, orientation, counts of nonzeros."""

from __future__ import annotations

import numpy as np
import pytest
from bare_trace import BareTrace
from sample_meshes import SHAPES

from petsc_hdg.discretizations.dofmap import FieldSpace, dof_nodes
from petsc_hdg.discretizations.trace.layout import trace_layout
from petsc_hdg.errors import OptionError
from petsc_hdg.reference import ReferenceElement

SLOTS = {"triangle": 5, "quadrilateral": 7, "tetrahedron": 7, "hexahedron": 11}
ESSENTIAL = {"none": (), "whole": [("left", (0, 1)), ("top", (0, 1))], "partial": [("left", (1,)), ("top", (0, 1))]}


def made(cell, degree=1, components=2, essential="none", faces=None):
    disc = BareTrace(cell, degree, components, ESSENTIAL[essential], faces=faces)
    return disc, trace_layout(disc.mesh, disc.dofmap, disc.spaces[0])


@pytest.mark.parametrize("essential", ESSENTIAL)
@pytest.mark.parametrize("cell", SHAPES)
def test_slots_and_their_reverse(cell, essential):
    disc, layout = made(cell, essential=essential)
    assert layout.num_slots == SLOTS[cell] == len(layout.neighbours)
    assert layout.is_blocked == (essential != "partial")
    pairs = set()
    for facets in layout.facets:
        pairs |= {(f, g) for f in facets for g in facets if f >= 0 and g >= 0}
    slots, facets = np.nonzero(layout.neighbours >= 0)
    others = layout.neighbours[slots, facets]
    assert set(zip(facets, others, strict=True)) == pairs and len(facets) == len(pairs) == layout.num_blocks
    assert (layout.neighbours[0] == np.arange(layout.num_facets)).all()
    np.testing.assert_array_equal(layout.neighbours[layout.reverse[slots, facets], others], facets)
    np.testing.assert_array_equal(layout.reverse >= 0, layout.neighbours >= 0)


@pytest.mark.parametrize("degree", [0, 1, 2])
@pytest.mark.parametrize("cell", SHAPES)
def test_permutations_find_the_unknowns_of_a_facet(cell, degree):
    disc, layout = made(cell, degree, essential="partial")
    m, nodes = layout.block, layout.block // layout.components
    places = layout.permutations[layout.orientation]  # [cell, F, node of the facet]
    found = 0
    for c, facets in enumerate(layout.facets):
        for place, facet in enumerate(facets):
            if facet >= 0:
                dofs = place * m + places[c, place][:, None] * layout.components + np.arange(layout.components)
                np.testing.assert_array_equal(disc.numbers[c, dofs.ravel()], layout.numbers[facet])
                found += 1
    assert found > 0 and places.shape[2] == nodes


@pytest.mark.parametrize("cell", ("quadrilateral", "hexahedron"))
def test_tensor_cells_meet_in_several_orientations(cell):
    disc, layout = made(cell, 2)
    assert len(layout.permutations) > 1
    x = dof_nodes(disc.mesh, disc.spaces[0])
    points = np.full((disc.num_free, disc.mesh.dim), np.nan)
    points[disc.numbers[:, :: layout.components]] = x
    np.testing.assert_allclose(points[disc.numbers[:, :: layout.components]], x, atol=1e-12)


@pytest.mark.parametrize("cell,faces", [("triangle", (7, 6)), ("tetrahedron", (3, 3, 2))])
def test_blocks_of_a_row_away_from_the_boundary(cell, faces):
    """5 n_p unknowns a row on triangles, 7 n_p on tetrahedra; boundary facets have those of one cell."""
    disc, layout = made(cell, 1, faces=faces)
    blocks = (layout.neighbours >= 0).sum(axis=0)
    inside = layout.cells[1] >= 0
    assert inside.sum() > 10 and (blocks[inside] == SLOTS[cell]).all() and (blocks[~inside] == disc.mesh.dim + 1).all()
    expected = blocks.sum() * layout.block**2
    assert disc.matrix().nnz == expected == layout.num_blocks * layout.block**2


@pytest.mark.parametrize("cell", SHAPES)
def test_facets_of_tiles(cell):
    disc, layout = made(cell)
    n, half = disc.mesh.num_cells, disc.mesh.num_cells // 2
    np.testing.assert_array_equal(layout.facets_of_cells(0, n), np.arange(layout.num_facets))
    for first, count in ((0, half), (half, n - half)):
        expected = np.unique(layout.facets[first : first + count])
        np.testing.assert_array_equal(layout.facets_of_cells(first, count), expected)


def test_unknowns_shared_by_facets_are_refused():
    disc = BareTrace("triangle", 1, 1)
    space = FieldSpace("u", ReferenceElement("triangle", 1), 1, 0, 0, 0)
    with pytest.raises(OptionError, match="field 'u' has unknowns that facets share: use -hdg_trace_mat element"):
        trace_layout(disc.mesh, disc.dofmap, space)

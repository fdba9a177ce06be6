"""Parallelograms and parallelepipeds are told from other cells."""

from __future__ import annotations

import numpy as np
import pytest

import petsc_hdg as fe
from petsc_hdg.discretizations.condensed.specs import are_parallelepipeds


@pytest.mark.parametrize("faces", [(3, 2), (2, 2, 1)])
def test_sheared_boxes_are_affine_and_shaken_ones_are_not(faces):
    geometry = fe.Mesh.box(faces, simplex=False).geometry
    random, dim = np.random.default_rng(2), len(faces)
    sheared = geometry.nodes @ random.uniform(-1, 1, (dim, dim)) + random.uniform(-9, 9, dim)
    shaken = sheared.copy()
    shaken[-1, 0] += 1e-9
    assert are_parallelepipeds(sheared, geometry.cell_nodes)
    assert not are_parallelepipeds(shaken, geometry.cell_nodes)
    assert are_parallelepipeds(sheared, geometry.cell_nodes[:0])

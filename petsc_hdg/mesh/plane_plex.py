"""DMPlex of a plane mesh from its cells: edges found by one sort of all cells' sides.

It is the one that DMPlexCreateFromCellList makes with its interpolation, point for point, whose search of a hash table
takes five times as long.
"""

from __future__ import annotations

import ctypes

import numpy as np
from petsc4py import PETSc

from ..petsc import c_library


def plane_plex(cells: np.ndarray, points: np.ndarray, comm):
    """DMPlex on `comm` of cells [cell, vertex], whose vertices go around, and points [point, 2]. Collective.

    Its points are cells, vertices, then edges as the first cell that has them comes. Ranks may have no cells.
    """
    edges, edge_vertices = _edges(cells)
    vertices, ends = len(points), np.roll(cells, -1, axis=1)
    forward = cells == edge_vertices[edges, 0]
    forward &= ends == edge_vertices[edges, 1]
    counts = np.array([vertices, len(edge_vertices), len(cells)])
    sizes = np.repeat([cells.shape[1], 0, 2], counts[[2, 0, 1]])
    cones = np.concatenate([(len(cells) + vertices + edges).ravel(), (len(cells) + edge_vertices).ravel()])
    orientations = np.concatenate([np.where(forward, 0, -1).ravel(), np.zeros(edge_vertices.size, np.int8)])
    numbers = [np.ascontiguousarray(each, c_library.INT) for each in (counts, sizes, cones, orientations)]
    coordinates = np.ascontiguousarray(points, c_library.SCALAR)
    dm = PETSc.DMPlex().create(comm)
    dm.setDimension(2)
    dm.setCoordinateDim(2)
    arrays = [each.ctypes.data_as(ctypes.c_void_p) for each in (*numbers, coordinates)]
    c_library.call("DMPlexCreateFromDAG", ctypes.c_void_p(dm.handle), ctypes.c_int(2), *arrays)
    return dm


def _edges(cells: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Edge of each side [cell, side] and vertices [edge, 2], as the first cell goes along it."""
    begin, end = cells.ravel(), np.roll(cells, -1, axis=1).ravel()
    keys = np.minimum(begin, end).astype(np.int64) << 32 | np.maximum(begin, end)
    order = np.argsort(keys, kind="stable")
    is_new = np.diff(keys[order], prepend=-1) != 0
    first = order[is_new]  # side of each edge, edges by their keys
    number = np.empty(len(first), np.int32)
    in_turn = np.argsort(first)
    number[in_turn] = np.arange(len(first), dtype=np.int32)
    edges = np.empty(len(keys), np.int32)
    edges[order] = number[np.cumsum(is_new) - 1]
    sides = first[in_turn]
    return edges.reshape(cells.shape), np.stack([begin[sides], end[sides]], axis=1)

"""Distorted boxes in random orders, and the folder of mesh files."""

from itertools import product
from pathlib import Path

import numpy as np

from petsc_hdg.mesh.cell_list import box_cells

MESHES = Path(__file__).resolve().parents[1] / "meshes"
SHAPES = ("triangle", "quadrilateral", "tetrahedron", "hexahedron")
FACES = {"triangle": (4, 3), "quadrilateral": (4, 3), "tetrahedron": (3, 2, 2), "hexahedron": (3, 2, 2)}


def shuffled_box(cell: str, seed: int):
    """(cells, points) of a box, distorted inside, with random orders of points, of cells, of the vertices in a cell."""
    rng = np.random.default_rng(seed)
    faces = FACES[cell]
    box = box_cells(faces, cell in ("triangle", "tetrahedron"), 0.0, 1.0)
    points = box.points + np.where((box.points > 0) & (box.points < 1), rng.uniform(-0.06, 0.06, box.points.shape), 0)
    order = rng.permutation(len(points))
    number = np.argsort(order)
    cells = number[box.cells][rng.permutation(len(box.cells))]
    return np.array([vertices[turn(cell, rng)] for vertices in cells]), points[order]


def turn(cell: str, rng) -> np.ndarray:
    """A random renumbering of a cell's vertices that keeps the cell: any for simplices, a symmetry for tensor cells."""
    if cell in ("triangle", "tetrahedron"):
        return rng.permutation(3 if cell == "triangle" else 4)
    dim = 2 if cell == "quadrilateral" else 3
    axes, flips = rng.permutation(dim), rng.integers(0, 2, dim)
    bits = [[(b[axes[k]] + flips[k]) % 2 for k in range(dim)] for b in map(reversed_tuple, product((0, 1), repeat=dim))]
    return np.array([sum(bit << k for k, bit in enumerate(b)) for b in bits])


def reversed_tuple(values):
    return tuple(reversed(values))

"""Nodes, cells and values as numpy arrays, and as the meshes of meshio and PyVista."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

import numpy as np

from ..errors import OptionError
from ..reference import ReferenceElement
from ..value_checks import plural
from .lagrange import MAX_DEGREE, STRAIGHT, to_vtk, vtk_type
from .vtu import Sampling, negative_cells, padded

MESHIO = {
    1: {"triangle": "triangle", "quadrilateral": "quad", "tetrahedron": "tetra", "hexahedron": "hexahedron"}
    | {"prism": "wedge", "pyramid": "pyramid"},
    2: {"triangle": "triangle6", "quadrilateral": "quad9", "tetrahedron": "tetra10", "hexahedron": "hexahedron27"},
}


@dataclass(frozen=True, repr=False)
class Grid:
    """A solution as arrays, from `problem.to_numpy`: of this rank's cells, or of all.

    degree        of the nodes, which are those of ReferenceElement(cell, degree)
    points        [node, dim] coordinates in the mesh's length unit
    blocks        shape of cells -> [cell, node of the cell] rows of `points`
    point_data    name -> [node, component]
    cell_data     name -> [cell, component], of the cells of the first shape, then of the next
    """

    degree: int
    points: np.ndarray
    blocks: dict[str, np.ndarray]
    point_data: dict[str, np.ndarray]
    cell_data: dict[str, np.ndarray]

    def __repr__(self) -> str:
        data, count = ", ".join([*self.point_data, *self.cell_data]), sum(map(len, self.blocks.values()))
        cells = f"{plural(len(self.points), 'point')}, {plural(count, f'{self.cell} cell')}"
        return f"<Grid: {cells} of degree {self.degree}; {data}>"

    @property
    def cell(self) -> str:
        """Shape of the cells, several joined by " and "."""
        return " and ".join(self.blocks)

    @property
    def cells(self) -> np.ndarray:
        """Rows of `points` [cell, node of the cell] of cells of one shape. Raises OptionError where there are more."""
        if len(self.blocks) > 1:
            raise OptionError(f"A grid of {self.cell} cells has rows of each shape; take grid.blocks, by shape.")
        return next(iter(self.blocks.values()))

    def to_meshio(self):
        """A meshio.Mesh of degree 1 or 2, which all formats take: above degree 2 the nodes are those of degree 2."""
        degree, points, blocks, data = self._in_vtk_order(max(MESHIO))
        ends = np.cumsum([len(rows) for rows in blocks])[:-1]
        cell_data = {key: np.split(_flat(of), ends) for key, of in self.cell_data.items()}
        cells = [(MESHIO[degree][cell], rows) for cell, rows in zip(self.blocks, blocks, strict=True)]
        return _imported("meshio").Mesh(points, cells, data, cell_data)

    def to_pyvista(self):
        """A pyvista.UnstructuredGrid. Raises OptionError where PyVista is not installed."""
        pyvista = _imported("pyvista")
        degree, points, blocks, data = self._in_vtk_order(MAX_DEGREE)
        counted = np.concatenate([np.insert(rows, 0, rows.shape[1], axis=1).ravel() for rows in blocks])
        kinds = np.repeat([vtk_type(cell, degree) for cell in self.blocks], [len(rows) for rows in blocks])
        grid = pyvista.UnstructuredGrid(counted, kinds.astype(np.uint8), padded(points, self.points.shape[1]))
        for target, given in ((grid.point_data, data), (grid.cell_data, self.cell_data)):
            for name, values in given.items():
                target[name] = _flat(values)
        return grid

    def _in_vtk_order(self, most: int) -> tuple[int, np.ndarray, list[np.ndarray], dict]:
        """Degree, points, cells of positive orientation of each block, and data at VTK's nodes: the same nodes up to
        degree 2, else equispaced ones of each cell, of degree `most` at most, of prisms and pyramids the vertices."""
        dim, blocks, found, first = self.points.shape[1], [], [], 0
        degree = min(self.degree, *(STRAIGHT.get(cell, most) for cell in self.blocks))
        for cell, rows in self.blocks.items():
            element, places = ReferenceElement(cell, self.degree), self.points[rows]
            if self.degree > 2 or degree < self.degree:
                sample = Sampling(element, degree, places)
                found.append([sample(of[rows]) for of in (self.points, *self.point_data.values())])
                blocks.append(first + np.arange(len(found[-1][0])).reshape(len(rows), len(sample.straight)))
                first += len(found[-1][0])
            else:
                straight, mirrored = (to_vtk(cell, degree, degree, m).argmax(axis=1) for m in (False, True))
                negative = negative_cells(element, places)[:, None]
                blocks.append(np.where(negative, rows[:, mirrored], rows[:, straight]))
        points, *data = (
            map(np.concatenate, zip(*found, strict=True))
            if found
            else (padded(of, dim) for of in (self.points, *self.point_data.values()))
        )
        return degree, points[:, :dim], blocks, dict(zip(self.point_data, map(_flat, data), strict=True))


def _flat(values: np.ndarray) -> np.ndarray:
    """Values [row] of one component, else as they are."""
    return values[:, 0] if values.ndim == 2 and values.shape[1] == 1 else values


def _imported(name: str):
    """A package. Raises OptionError where it is missing or broken."""
    try:
        return import_module(name)
    except Exception as error:  # a broken package raises what it likes
        raise OptionError(
            f"{name} was asked for and cannot be imported ({type(error).__name__}: {error}); pip install {name}, or "
            "write a file by problem.write."
        ) from None

"""Nodes, cells and values as numpy arrays, and as the meshes of meshio and PyVista."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module

import numpy as np

from ..errors import OptionError
from ..reference import ReferenceElement
from ..value_checks import plural
from .lagrange import MAX_DEGREE, to_vtk, vtk_type
from .vtu import Sampling, negative_cells, padded

MESHIO = {
    1: {"triangle": "triangle", "quadrilateral": "quad", "tetrahedron": "tetra", "hexahedron": "hexahedron"},
    2: {"triangle": "triangle6", "quadrilateral": "quad9", "tetrahedron": "tetra10", "hexahedron": "hexahedron27"},
}


@dataclass(frozen=True, repr=False)
class Grid:
    """A solution as arrays, from `problem.to_numpy`: of this rank's cells, or of all.

    cell, degree  shape of the cells and degree of their nodes, which are those of ReferenceElement(cell, degree)
    points        [node, dim] coordinates in the mesh's length unit
    cells         [cell, node of the cell] rows of `points`
    point_data    name -> [node, component]
    cell_data     name -> [cell, component]
    """

    cell: str
    degree: int
    points: np.ndarray
    cells: np.ndarray
    point_data: dict[str, np.ndarray]
    cell_data: dict[str, np.ndarray]

    def __repr__(self) -> str:
        data = ", ".join([*self.point_data, *self.cell_data])
        cells = f"{plural(len(self.points), 'point')}, {plural(len(self.cells), f'{self.cell} cell')}"
        return f"<Grid: {cells} of degree {self.degree}; {data}>"

    def to_meshio(self):
        """A meshio.Mesh of degree 1 or 2, which all formats take: above degree 2 the nodes are those of degree 2."""
        points, cells, data = self._in_vtk_order(max(MESHIO))
        name = MESHIO[min(self.degree, 2)][self.cell]
        cell_data = {key: [_flat(of)] for key, of in self.cell_data.items()}
        return _imported("meshio").Mesh(points, [(name, cells)], data, cell_data)

    def to_pyvista(self):
        """A pyvista.UnstructuredGrid. Raises OptionError where PyVista is not installed."""
        pyvista = _imported("pyvista")
        points, cells, data = self._in_vtk_order(MAX_DEGREE)
        counted = np.insert(cells, 0, cells.shape[1], axis=1)
        kinds = np.full(len(cells), vtk_type(self.cell, min(self.degree, MAX_DEGREE)), np.uint8)
        grid = pyvista.UnstructuredGrid(counted.ravel(), kinds, padded(points, self.points.shape[1]))
        for target, given in ((grid.point_data, data), (grid.cell_data, self.cell_data)):
            for name, values in given.items():
                target[name] = _flat(values)
        return grid

    def _in_vtk_order(self, most: int) -> tuple[np.ndarray, np.ndarray, dict]:
        """Points, cells of positive orientation and data at VTK's nodes: the same nodes up to degree 2, above it
        equispaced ones of each cell, of degree `most` at most."""
        places, dim = self.points[self.cells], self.points.shape[1]
        if self.degree > 2:
            sample = Sampling(ReferenceElement(self.cell, self.degree), min(self.degree, most), places)
            points = sample(places)[:, :dim]
            data = {name: _flat(sample(of[self.cells])) for name, of in self.point_data.items()}
            return points, np.arange(len(points)).reshape(len(places), -1), data
        straight, mirrored = (to_vtk(self.cell, self.degree, self.degree, m).argmax(axis=1) for m in (False, True))
        negative = negative_cells(ReferenceElement(self.cell, self.degree), places)
        cells = np.where(negative[:, None], self.cells[:, mirrored], self.cells[:, straight])
        return self.points, cells, {name: _flat(padded(of, dim)) for name, of in self.point_data.items()}


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

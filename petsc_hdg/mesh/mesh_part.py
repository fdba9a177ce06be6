"""The cells of one shape of a mesh, as meshes of one shape have theirs, for what is done shape by shape."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from petsc4py import PETSc

from .geometry import Geometry
from .order import BY_FACET, INNER
from .plex_points import PointExchange
from .shapes import Shape
from .topology import Topology


class Cells:
    """Counts and corners of the cells of a mesh, or of its cells of one shape. Subclasses set the attributes.

    first: number of the first cell of a part among the owned ones of the mesh.
    """

    topology: Topology
    geometry: Geometry
    shape: Shape
    cell_classes: np.ndarray
    first = 0

    @property
    def num_cells(self) -> int:
        """Number of cells that this rank owns."""
        return self.topology.num_owned

    @property
    def parts(self) -> tuple:
        """The cells of each shape; itself of one."""
        return (self,)

    @property
    def cells(self) -> slice:
        """Numbers of these cells among the owned cells of the mesh."""
        return slice(self.first, self.first + self.num_cells)

    @property
    def cell_corners(self) -> np.ndarray:
        """Coordinates [cell, vertex, dim] of the vertices of this rank's cells of one shape, ghosts included."""
        return self.geometry.nodes[self.geometry.cell_nodes[:, : self.shape.num_vertices]]

    @cached_property
    def num_inner(self) -> int:
        """Number of cells, in a part the first ones, that share no vertex with other ranks."""
        return int(np.count_nonzero(self.cell_classes == INNER))

    @cached_property
    def num_facet_inner(self) -> int:
        """Number of cells, in a part the first ones, that share no facet with other ranks."""
        return int(np.count_nonzero(self.cell_classes < BY_FACET))


@dataclass(eq=False)
class MeshPart(Cells):
    """The cells of one shape of a mesh; attributes are those of Mesh."""

    dm: PETSc.DMPlex
    exchange: PointExchange
    cell: str
    shape: Shape
    topology: Topology
    geometry: Geometry
    first: int = 0

    @property
    def dim(self) -> int:
        """Dimension of the cells."""
        return self.shape.dim

"""Meshes: boxes, Gmsh and other files, arrays; distributed; their topology, geometry and names as bulk arrays."""

from .agglomerate import agglomerate, coarsen
from .fewer_cells import fewer_cells
from .mesh import Mesh
from .polygons import polygons, polygons_from_file, polyhedra
from .polytopes import Polytopes
from .rebalance import rebalance

__all__ = [
    "Mesh",
    "Polytopes",
    "agglomerate",
    "coarsen",
    "fewer_cells",
    "polygons",
    "polygons_from_file",
    "polyhedra",
    "rebalance",
]

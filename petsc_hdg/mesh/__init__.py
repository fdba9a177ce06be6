"""Meshes: boxes, Gmsh and other files, arrays; distributed; their topology, geometry and names as bulk arrays."""

from .mesh import Mesh
from .partition.rebalance import rebalance
from .polytopal.agglomerate import agglomerate, coarsen
from .polytopal.fewer_cells import fewer_cells
from .polytopal.polygons import polygons, polygons_from_file, polyhedra
from .polytopes import Polytopes

"""Meshes: boxes, Gmsh and other files, arrays; distributed; their topology, geometry and names as bulk arrays."""

from .agglomerate import agglomerate, coarsen
from .mesh import Mesh
from .polytopes import Polytopes

__all__ = ["Mesh", "Polytopes", "agglomerate", "coarsen"]

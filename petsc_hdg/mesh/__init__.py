"""Meshes: boxes, Gmsh and other files, arrays; distributed; their topology, geometry and names as bulk arrays."""

from .mesh import Mesh

__all__ = ["Mesh"]

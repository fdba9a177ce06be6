"""Large meshes for benchmarks: copies of an unstructured tile side by side, numbered one after the other.

The tile is a real mesh with shaken vertices, numbered by the code that every mesh goes through; a mesh of ten
million cells then costs seconds. Copies do not touch, which no kernel notices.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from types import SimpleNamespace

import numpy as np
from mpi4py import MPI

from petsc_hdg.discretizations.base import padded
from petsc_hdg.discretizations.cg.scheme import ContinuousGalerkin
from petsc_hdg.discretizations.condensed.cg import CondensedCG
from petsc_hdg.discretizations.condensed.hdg import HybridizedDG
from petsc_hdg.discretizations.dofmap import DofMap
from petsc_hdg.mesh import Mesh
from petsc_hdg.mesh.cell_list import box_cells

FACES = {"triangle": (128, 128), "quadrilateral": (192, 192), "tetrahedron": (24, 24, 24), "hexahedron": (48, 48, 48)}


def shaken_box(cell: str, faces=None, amount: float = 0.2, seed: int = 1) -> Mesh:
    """A box mesh whose inner vertices are moved at random by up to `amount` of an edge."""
    faces = FACES[cell] if faces is None else faces
    simplex = cell in ("triangle", "tetrahedron")
    listed = box_cells(faces, simplex, 0.0, 1.0)
    x = np.array(listed.points)
    inside = ((x > 1e-9) & (x < 1 - 1e-9)).all(axis=1)
    shift = np.random.default_rng(seed).uniform(-amount, amount, x.shape) / np.array(faces)
    x[inside] += shift[inside]
    return Mesh.from_cells(listed.cells, x, cell=cell, comm=MPI.COMM_SELF)


def tiled_dofmap(one: DofMap, copies: int) -> DofMap:
    """A numbering without ghosts and essential values, repeated."""
    step = np.arange(copies)[:, None]
    compact = (one.compact + one.num_owned * step).ravel()
    local = (one.cell_dofs + len(one.compact) * step[:, None]).reshape(-1, one.cell_dofs.shape[1])
    count = one.num_owned * copies
    return replace(
        one,
        compact=compact.astype(np.int32),
        cell_dofs=local.astype(np.int32),
        num_owned=count,
        global_numbers=np.arange(count),
    )


class Tiled:
    """Mixed in before a discretization: `copies` copies of the mesh of `tile`, without any boundary condition."""

    def __init__(self, tile, copies: int):
        self.tile, self.copies = tile, copies
        for name in ("physics", "options", "spaces", "auxiliary", "dim", "limits", "cell_element"):
            if name in vars(tile):
                setattr(self, name, getattr(tile, name))
        self.mesh = tiled_mesh(tile.mesh, copies)
        self.stride = padded(self.mesh.num_cells)

    @cached_property
    def dofmap(self):
        """The tile's numbering, repeated."""
        return tiled_dofmap(self.tile.dofmap, self.copies)

    @cached_property
    def natural_facets(self) -> np.ndarray:
        return np.zeros((3, 0), dtype=np.int32)


class TiledHDG(Tiled, HybridizedDG):
    """A HybridizedDG on copies of a tile."""


class TiledCondensedCG(Tiled, CondensedCG):
    """A CondensedCG on copies of a tile."""


class TiledCG(Tiled, ContinuousGalerkin):
    """A ContinuousGalerkin on copies of a tile."""

    @cached_property
    def patches(self):
        """The tile's patches, repeated. Raises ValueError if the tile's cells do not fill its patches."""
        one = self.tile.patches
        if self.tile.mesh.num_cells % one.cells:
            raise ValueError(f"a tile of {self.tile.mesh.num_cells} cells is not made of patches of {one.cells}")
        k = np.arange(self.copies)[:, None]
        border, words = one.num_border, len(one.words)
        values = border * self.physics.num_components

        def repeated(array, step=0):
            return (np.asarray(array) + step * k).ravel().astype(np.int32)

        step = np.zeros(one.heads.shape[1], dtype=np.int64)
        step[[0, 3, 4, 5]] = len(one.place_node), border, len(one.members), words
        heads = one.heads[None] + step * k[:, :, None]
        dofs = one.place_dofs[None] + (self.tile.dofmap.num_owned * k)[:, :, None]
        return replace(
            one,
            heads=heads.reshape(-1, len(step)).astype(np.int32),
            members=np.where(
                one.members[None] < 0, -1, one.members[None] + self.tile.mesh.num_cells * k[:, :, None]
            ).reshape(-1, one.members.shape[1]),
            place_dofs=dofs.reshape(-1, one.place_dofs.shape[1]).astype(np.int32),
            place_node=repeated(one.place_node, len(self.tile.mesh.geometry.nodes)),
            words=np.tile(one.words, self.copies),
            rounds=np.tile(one.rounds, (self.copies, 1, 1)),
            rows=repeated(one.rows, self.tile.dofmap.num_owned),
            row_start=np.append(
                repeated(one.row_start[:-1], int(one.row_start[-1])), one.row_start[-1] * self.copies
            ).astype(np.int32),
            row_entry=repeated(one.row_entry, values),
        )


def tiled_mesh(mesh: Mesh, copies: int):
    """What a discretization reads of a mesh, for copies of it side by side."""
    g = mesh.geometry
    offset = np.zeros((copies, 1, mesh.dim))
    offset[:, 0, 0] = 1.25 * np.arange(copies)
    nodes = (g.nodes[None] + offset).reshape(-1, mesh.dim)
    cells = g.cell_nodes[None] + (len(g.nodes) * np.arange(copies))[:, None, None]
    geometry = SimpleNamespace(
        degree=g.degree,
        periods=g.periods,
        is_affine=g.is_affine,
        nodes=nodes,
        cell_nodes=cells.reshape(-1, g.cell_nodes.shape[1]).astype(np.int32),
    )
    tiled = SimpleNamespace(
        comm=mesh.comm,
        dim=mesh.dim,
        cell=mesh.cell,
        shape=mesh.shape,
        topology=mesh.topology,  # of one copy, whose sizes discretizations read
        num_cells=mesh.num_cells * copies,
        num_inner=mesh.num_cells * copies,  # there are no other ranks
        num_facet_inner=mesh.num_cells * copies,
        geometry=geometry,
        dm=None,
    )
    tiled.parts = [tiled]
    return tiled

"""A trace numbering with random element matrices on a real mesh: what the trace formats read of an operator."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import scipy.sparse as sp
from petsc4py import PETSc
from sample_meshes import box_mesh

from petsc_hdg.device import Arrays, Device
from petsc_hdg.device.halo import Halo
from petsc_hdg.discretizations.base import cell_fastest, padded
from petsc_hdg.discretizations.dofmap import FieldSpace, build_dofmap
from petsc_hdg.discretizations.trace.element import TraceElement


class BareTrace:
    """Operator and discretization in one; K [cell, row, column] on the host.

    essential: (label, components) that are essential there.   symmetric: whether the matrices are.
    """

    name, diagonal_flops = "stand-in", 0

    def __init__(self, cell, degree, components, essential=(), precision="double", symmetric=False, **mesh_settings):
        self.mesh = box_mesh(cell, **mesh_settings)
        self.spaces = (FieldSpace("u", TraceElement(cell, degree), components, 0, 0, 0),)
        self.dofmap = build_dofmap(self.mesh, self.spaces, self._mask(components, essential))
        self.stride = padded(self.mesh.num_cells)
        self.options = SimpleNamespace(degree=degree, precision=precision)
        self.discretization = self
        self.device = Device.select("cpu")
        self.arrays = Arrays(self.device, precision)
        owners = (self.dofmap.num_owned, self.dofmap.ghost_rank, self.dofmap.ghost_index)
        self.halo = Halo(self.mesh.comm, *owners, self.arrays)
        self.K = self._random_matrices(symmetric)
        self.format = None

    def _mask(self, components, essential) -> np.ndarray:
        start, end = self.mesh.dm.getChart()
        mask = np.zeros((end - start, components), dtype=bool)
        for label, which in essential:
            mask[np.ix_(self.mesh.closure_mask(label), np.isin(np.arange(components), which))] = True
        return mask

    def _random_matrices(self, symmetric: bool) -> np.ndarray:
        """Matrices with a dominant diagonal, so that no block is close to singular."""
        m, random = self.spaces[0].num_dofs, np.random.default_rng(5 + self.mesh.comm.rank)
        K = random.uniform(-1, 1, (self.mesh.num_cells, m, m)) + 2 * m * np.eye(m)
        return K + K.transpose(0, 2, 1) if symmetric else K

    def cell_dofs(self) -> np.ndarray:
        return cell_fastest(self.numbers.astype(np.int32), self.stride)

    @property
    def numbers(self) -> np.ndarray:
        """Compact numbers [cell, dof]."""
        return self.dofmap.compact[self.dofmap.cell_dofs]

    @property
    def num_free(self) -> int:
        return self.dofmap.num_owned + self.dofmap.num_ghosts

    def fill(self, trace_format, tile: int) -> None:
        """Hand the matrices to a format in tiles of `tile` cells."""
        trace_format.clear()
        for first in range(0, self.mesh.num_cells, tile):
            K = self.K[first : first + tile]
            stored = np.zeros((K.shape[2], padded(len(K)), K.shape[1]))
            stored[:, : len(K)] = K.transpose(2, 0, 1)
            trace_format.add_tile(self.arrays.to_device(stored), first, len(K))

    def matrix(self) -> sp.csr_matrix:
        """This rank's sum of the matrices on its owned and ghost values, by scipy."""
        rows, columns = np.broadcast_arrays(self.numbers[:, :, None], self.numbers[:, None, :])
        kept = (rows < self.num_free) & (columns < self.num_free)
        entries = (self.K[kept], (rows[kept], columns[kept]))
        return sp.coo_matrix(entries, (self.num_free, self.num_free)).tocsr()

    def aij(self) -> PETSc.Mat:
        """The matrix over all ranks, by PETSc."""
        size = (self.dofmap.num_owned, PETSc.DETERMINE)
        mat = PETSc.Mat().createAIJ((size, size), comm=self.mesh.comm)
        mat.setUp()
        mat.setOption(PETSc.Mat.Option.NEW_NONZERO_ALLOCATION_ERR, False)
        numbers = self.dofmap.global_numbers[self.numbers].astype(PETSc.IntType)
        for dofs, K in zip(numbers, self.K, strict=True):
            mat.setValues(dofs, dofs, K, addv=PETSc.InsertMode.ADD_VALUES)
        mat.assemble()
        return mat

    def local(self, run) -> np.ndarray:
        """Owned and ghost values that `run(y_owned, y_ghost)` leaves."""
        counts = self.dofmap.num_owned, self.dofmap.num_ghosts
        buffers = [self.arrays.to_device(np.full(max(1, n), np.nan)) for n in counts]
        run(*buffers)
        return np.concatenate([self.arrays.to_host(b, n) for b, n in zip(buffers, counts, strict=True)])

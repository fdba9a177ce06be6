"""A trace matrix in ELL format and its assembly by atomic sums, beside dense blocks and assembly facet by facet.

King et al. 2014, section 4.2. ELL stores as many entries per row as a row away from the boundary has, and a column
number with each. Its values stand where those of the dense blocks do, so the formats can be compared entry by entry.
"""

from __future__ import annotations

import numpy as np

from petsc_hdg.codegen import KernelSpec
from petsc_hdg.commands.bench import median_seconds
from petsc_hdg.device import Kernel
from petsc_hdg.discretizations.base import cell_fastest, padded
from petsc_hdg.operators.vectors import TailedVector

TEXT = """
#pragma OPENCL EXTENSION cl_khr_int64_base_atomics : enable
// y = A x: one thread per row.   A [width, stride] values, columns [width, stride] of them, -1: none
__kernel void ell_product(int rows, int width, int stride, __global const real *restrict A,
                          __global const int *restrict columns, __global const real *restrict x,
                          __global real *restrict y)
{
  const int row = get_global_id(0);
  if (row >= rows) return;
  real sum = 0;
  for (int k = 0; k < width; ++k) {
    const int column = columns[(size_t)k * stride + row];
    if (column >= 0) sum += A[(size_t)k * stride + row] * x[column];
  }
  y[row] = sum;
}

// Entries of the matrices K [columns, batch, rows] of cells first … first + count - 1 into A, one thread per row of K.
// rows [size, cells]: row of A of each unknown of a cell, -1 if essential
// places [facets, size, cells]: column of A's table of each unknown of a cell in the row of a facet
__kernel void ell_add(int first, int count, int batch, int size, int block, int stride, int cells,
                      __global const int *rows, __global const int *places, __global const real *K,
                      volatile __global real *A)
{
  const int t = get_global_id(0), i = t % size, c = t / size, cell = first + c;
  if (c >= count) return;
  const int row = rows[(size_t)i * cells + cell];
  if (row < 0) return;
  for (int k = 0; k < size; ++k) {
    const int place = places[((size_t)(i / block) * size + k) * cells + cell];
    if (place < 0) continue;
    const real value = K[((size_t)k * batch + c) * size + i];
    volatile __global ulong *target = (volatile __global ulong *)(A + (size_t)place * stride + row);
    ulong found = *target, expected;
    do {
      expected = found;
      found = atom_cmpxchg(target, expected, as_ulong(as_double(expected) + value));
    } while (found != expected);
  }
}
"""


class EllTrace:
    """The trace matrix of a Problem of hdg_gpu on one rank in dense blocks, and the same in ELL."""

    def __init__(self, problem, repeat: int):
        self.op, self.arrays, self.device, self.repeat = problem.operator, problem.arrays, problem.device, repeat
        problem.snes  # noqa: B018  made, and kernels checked
        self.op.linearize(self.arrays.zeros(max(1, self.op.dofmap.num_owned)))
        self.format = self.op.format
        layout, f = self.format.layout, self.format
        self.width, self.rows = layout.num_slots * layout.block, f.num_rows
        columns = np.full((self.width, f.row_stride), -1, dtype=np.int32)
        columns[:, : self.rows] = self._columns(layout)
        self.columns = self.arrays.to_device(columns)
        self.cells = padded(self.op.discretization.mesh.num_cells)
        self.targets = [self.arrays.to_device(a) for a in self._targets(layout)]
        self.product, self.add = (
            Kernel(KernelSpec(name, (), physics=TEXT, local_size=64), self.device)
            for name in ("ell_product", "ell_add")
        )
        self.x = self.arrays.to_device(np.random.default_rng(3).uniform(-1, 1, self.op.dofmap.num_owned))
        self.y, self.ghost = self.arrays.zeros(self.op.dofmap.num_owned), self.arrays.zeros(1)

    @property
    def nbytes(self) -> int:
        return self.width * self.format.row_stride * (self.arrays.real.itemsize + 4)

    def _columns(self, layout) -> np.ndarray:
        """Column of each entry [width, row]."""
        numbers = layout.numbers[
            layout.neighbours
        ]  # [slot, facet, unknown]; those of slots without a facet are not used
        numbers = np.where(layout.neighbours[:, :, None] < 0, -1, numbers)
        return np.repeat(numbers.transpose(0, 2, 1).reshape(self.width, -1), layout.block, axis=1)

    def _targets(self, layout) -> tuple[np.ndarray, np.ndarray]:
        """Row of each unknown of a cell [size, stride], and its place in the row of each facet [facets, size, "
        "stride]."""
        count, block = layout.facets_per_cell, layout.block
        turned = layout.permutations[layout.orientation]  # [cell, facet, node]: node of the cell's facet
        inside = np.argsort(turned, axis=2).astype(np.int32)  # and unknown of the facet of each node of the cell's
        cells, facets = np.arange(len(layout.facets))[:, None], np.maximum(layout.facets, 0)
        side = np.where(layout.cells[0, facets] == cells, 0, 1)[:, :, None]
        here, other = np.arange(count)[:, None], np.arange(count)
        slots = np.where(here == other, 0, 1 + side * (count - 1) + other - (other > here))
        slots = np.where(layout.facets[:, None, :] < 0, -1, slots)
        rows = np.where(layout.facets[:, :, None] < 0, -1, layout.facets[:, :, None] * block + inside)
        places = np.where(slots[..., None] < 0, -1, slots[..., None] * block + inside[:, None])
        size = count * block
        rows, places = rows.reshape(-1, size), places.reshape(-1, count * size)
        return cell_fastest(rows, self.cells), cell_fastest(places, self.cells)

    def product_seconds(self) -> dict[str, float]:
        """Median seconds of a product in each format."""
        x = TailedVector(self.op)
        x.owned = self.x
        dense = median_seconds(self.device, lambda: self.format.mult(x, self.y, self.ghost), self.repeat)
        return {"dbf": dense, "ell": median_seconds(self.device, self._multiply, self.repeat)}

    def _multiply(self, A=None) -> None:
        A = self.format.A if A is None else A
        self.product(self.rows, self.rows, self.width, self.format.row_stride, A, self.columns, self.x, self.y)

    def assembly_seconds(self) -> dict[str, float]:
        """Median seconds of the assembly of all tiles, each way."""
        found = []
        for add in (self.format.add_tile, self._add_tile):
            tiles = []
            self._condense(
                lambda *tile, add=add, tiles=tiles: tiles.append(
                    median_seconds(self.device, lambda: add(*tile), self.repeat)
                )
            )
            found.append(sum(tiles))
        return {"lock_free": found[0], "atomic": found[1]}

    def _add_tile(self, K, first: int, count: int, batch: int, A=None) -> None:
        size = self.format.layout.facets_per_cell * self.format.layout.block
        self.add(
            count * size, first, count, batch, size, self.format.layout.block, self.format.row_stride, self.cells,
            *self.targets, K, self._scratch if A is None else A,
        )  # fmt: skip

    @property
    def _scratch(self):
        if not hasattr(self, "_sums"):
            self._sums = self.arrays.zeros(self.format.matrix_reals)
        return self._sums

    def _condense(self, take) -> None:
        """Hand the matrices of all tiles to take(K, first, count, batch)."""
        op = self.op
        trace = op.trace(self.arrays.zeros(max(1, op.dofmap.num_owned)), 0.0, op.essential)
        self.arrays.fill(op.interior, 0)
        op.local.condense(trace, op.interior, 0.0, take, op.kept.matrices)
        op.local.release()

    def difference(self) -> float:
        """The largest difference of products by dense blocks and by a matrix of atomic sums, over the largest entry."""
        A = self.arrays.zeros(self.format.matrix_reals)
        self._condense(lambda *tile: (self.format.add_tile(*tile), self._add_tile(*tile, A=A)))
        x, count = TailedVector(self.op), self.op.dofmap.num_owned
        x.owned = self.x
        self.format.mult(x, self.y, self.ghost)
        dense = self.arrays.to_host(self.y, count)
        self._multiply(A)
        return float(np.abs(self.arrays.to_host(self.y, count) - dense).max() / np.abs(dense).max())

"""Matrices of polytopic DG integrated on the device, polytope by polytope: values, diagonal blocks, the diagonal."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...device import Kernel
from ...device.halo_peers import halo_kernel
from ...discretizations.poly.matrix import Blocks, Layout
from ...discretizations.poly.matrix_specs import MatrixSpecs, bundles, facet_laps, facet_steps, split_rows, volume_laps
from ...discretizations.poly.scheme import FACETS_BY_STEPS


class PolytopicMatrices:
    """Matrix kernels of a PolytopicOperator: each value once, in the order of a CSR matrix."""

    def __init__(self, operator):
        self.operator, self.arrays, self.disc = operator, operator.arrays, operator.discretization
        self.specs = MatrixSpecs(self.disc)
        self._kernels: dict = {}
        self._loaded: dict[str, _Work] = {}

    @property
    def blocks_of(self) -> Blocks:
        """Interfaces and places of blocks."""
        return self.disc.blocks

    # Kernels -------------------------------------------------------------------------------------------------------

    def kernel(self, part: str, degree: int, load: tuple[int, float]) -> Kernel:
        """`poly_volume` or `poly_facets` of a degree, for so many items of so many entries each."""
        spec = getattr(self.specs, part)(degree, load)
        key = part, degree, spec.macros["SPLIT"]
        if key not in self._kernels:
            self._kernels[key] = Kernel(spec, self.operator.device)
        return self._kernels[key]

    @cached_property
    def _pick(self) -> Kernel:
        return halo_kernel("halo_pack", self.arrays, 1)

    def compile(self) -> None:
        """Compile what `values` needs. Not collective."""
        self._work("matrix")

    def all_kernels(self) -> dict[str, Kernel]:
        """Every kernel compiled so far, by name and degree."""
        return {
            f"poly_{part}_{degree}{f'_{split}' if split > 1 else ''}": kernel
            for (part, degree, split), kernel in self._kernels.items()
        }

    # Values --------------------------------------------------------------------------------------------------------

    def values(self) -> np.ndarray:
        """Values of the matrix in the order of the discretization's `matrix_numbers`."""
        work = self._work("matrix")
        return self.arrays.to_host(work.run(), work.layout.size, name="matrices")

    def write(self, out: np.ndarray) -> None:
        """The same, written to `out` [value], which no copy of them stands beside where its numbers are those of the
        device."""
        if out.dtype == self.arrays.real and out.flags.c_contiguous:
            self.arrays.download(self._work("matrix").run(), out, "matrices")
        else:
            out[:] = self.values()

    def blocks(self):
        """Buffer of the diagonal blocks [polytope], each row by row; places: `blocks_of.diagonal_starts`."""
        return self._work("diagonal").run()

    def diagonal(self, out) -> None:
        """out = diagonal of J."""
        count = self.disc.dofmap.num_owned
        if count:
            self._pick(count, self.blocks(), self._places, out, count)

    @cached_property
    def _places(self):
        return self.arrays.to_device(self.blocks_of.diagonal_places(), "polytopes")

    def _work(self, name: str) -> _Work:
        """Index lists and buffers that fill the `matrix` or the `diagonal` blocks, made at first use."""
        if name not in self._loaded:
            self._loaded[name] = _Work(self, getattr(self.blocks_of, name)())
        return self._loaded[name]

    # What a run costs ----------------------------------------------------------------------------------------------

    def flops(self, part: str) -> int:
        """Compulsory flops of a run over `volume` or `facets`: the products BᵀWB of all points, no more.

        A point of a cell: 2 slots n², n = components · functions, slots 1 for tested functions and dim for gradients as
        the physics has them. A point of a side of a facet: 2 slots (n² + n m), m unknowns behind it; slots 2 for linear
        physics (1 without an adjoint term), else 1 + dim.
        """
        blocks, fine = self.blocks_of, self.disc.fine
        n = blocks.unknowns.astype(float)
        if part == "volume":
            cells = np.diff(self.disc.polytopes.cells[0])
            points = cells * fine.quadrature.num_points
            return int(2 * self.specs.volume_slots * (points * n[: blocks.count] ** 2).sum())
        own, other = n[blocks.own], np.where(blocks.other >= 0, n[np.maximum(blocks.other, 0)], 0)
        points = np.diff(blocks.bounds) * fine.facet_rules[0][0].num_points
        return int(2 * self.specs.facet_slots * (points * (own * own + own * other)).sum())


class _Work:
    """A layout on the device: its lists, its values, its launches."""

    def __init__(self, matrices: PolytopicMatrices, layout: Layout):
        self.matrices, self.layout = matrices, layout
        to_device, blocks = matrices.arrays.to_device, matrices.blocks_of
        self.out = matrices.arrays.empty(max(1, layout.size))
        self.cells = to_device(matrices.disc.polytopes.cells[1], "polytopes")
        self.faces = to_device(blocks.faces, "polytopes")
        self.interfaces = to_device(layout.interfaces, "polytopes")
        self.sizes = to_device(matrices.disc.numbering.sizes, "polytopes")
        self.launches = [*self.launches_of("volume", layout.volumes), *self.launches_of("facets", layout.facets)]
        self.steps = self._find_steps()

    def launches_of(self, part: str, groups):
        to_device = self.matrices.arrays.to_device
        for items in groups:
            load = len(items.rows), float((items.rows[:, 2] - items.rows[:, 1]).mean())
            kernel = self.matrices.kernel(part, items.degree, load)
            spec = kernel.spec
            rows = split_rows(spec, items.rows)
            laps = volume_laps(spec, rows) if part == "volume" else facet_laps(spec, rows, self.layout.interfaces)
            yield part, kernel, len(rows), to_device(rows, "polytopes"), to_device(bundles(spec, laps), "laps")

    def run(self):
        """Compute the values; their buffer."""
        for launch in self.launches:
            self.launch(*launch)
        return self.out

    def launch(self, part: str, kernel: Kernel, num_items: int, items, turns) -> None:
        operator = self.matrices.operator
        lists = {"boxes": operator.boxes, "sizes": self.sizes, "num_items": num_items, "items": items, "turns": turns}
        lists |= {"add": int(self.layout.adds and part == "facets"), "out": self.out}
        lists |= {"cells": self.cells, "interfaces": self.interfaces, "facets": self.faces, **self.steps}
        cells = operator.discretization.mesh.num_cells
        kernel.launch(num_items, operator.fine.arguments(kernel, cells, **lists))

    def _find_steps(self) -> dict:
        """Buffers of `facet_steps`, where a kernel needs them."""
        specs = [kernel.spec for part, kernel, *_ in self.launches if part == "facets"]
        specs = [spec for spec in specs if spec.arguments == FACETS_BY_STEPS]
        if not specs:
            return {}
        found = zip(("steps", "step_first"), facet_steps(specs[0], self.layout.interfaces), strict=True)
        return {name: self.matrices.arrays.to_device(rows, "polytopes") for name, rows in found}

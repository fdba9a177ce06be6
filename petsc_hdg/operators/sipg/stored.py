"""Volume terms of interior penalty by stored matrices, one of each cell or one of each class of congruent cells."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...codegen import KernelSpec, Launch
from ...device import Kernel, kernels_of
from ...discretizations.base import cell_fastest, padded
from ...discretizations.congruence import congruent_volumes
from ...discretizations.sipg.interleaved import CHUNK, num_chunks
from ...errors import OptionError, collectively

MOST_BYTES = 4e6  # of the matrices of all classes, which are to stay in cache
MOST_SHARE = 1 / 8  # classes over cells; so few that matrices of each cell are no longer better
FEW = 48  # classes that are taken anyway: the symmetries of a cube, as cells of a grid may be numbered
GPU_ROWS, CPU_ROWS = 16, 16  # of a work-item, at most
CPU_LANES = 8  # cells that a CPU does at once: a vector register of AVX-512


class StoredVolume:
    """Matrices [test, trial, stride] of the cells' volume terms, at the state that an SIPGOperator is linearized at.

    Making one is collective. Raises OptionError where the device has no room for them.
    """

    name = "stored"

    def __init__(self, operator):
        self.operator, self.disc = operator, operator.discretization
        with collectively(self.disc.mesh.comm):
            self._prepare()

    def _prepare(self) -> None:
        """Take what the matrices need; not collective."""
        self._check_room(self.disc.stride)
        self.matrices = self.operator.arrays.empty(self._square * self.disc.stride)

    @property
    def _square(self) -> int:
        return self.disc.num_dofs**2

    def _check_room(self, count: int) -> None:
        """Raise OptionError if the device has no memory for `count` matrices."""
        device, prefix = self.operator.device, self.disc.options.prefix
        size = self._square * count * self.disc.real_bytes
        if size > device.memory_bytes:
            raise OptionError(
                f"-{prefix}sipg_kernel {self.name} keeps {self.disc.num_dofs}² numbers of each cell, "
                f"{size / 1e6:.1f} MB in all, and {device.name} has {device.memory_bytes / 1e6:.1f} MB; give "
                f"-{prefix}sipg_kernel auto or use more ranks"
            )

    @property
    def nbytes(self) -> int:
        """Bytes of the matrices."""
        return self._square * self.disc.stride * self.disc.real_bytes

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """`cg_matrix`, and `sipg_stored` or `sipg_congruent`."""
        disc, name = self.disc, f"sipg_{self.name}"
        rows, lanes = (GPU_ROWS, 1) if disc.limits.is_gpu else (CPU_ROWS, CPU_LANES)
        parts = -(-disc.num_dofs // rows)
        macros = {"NDOF": disc.num_dofs, "ROWS": -(-disc.num_dofs // parts), "PARTS": parts}
        real = "float" if disc.options.precision == "single" else "double"
        macros |= {"LANES": lanes, "VEC": real if lanes == 1 else f"{real}{lanes}"}
        tables, launch = {"ROW": disc.row_of_dof.astype(np.int32)}, Launch(lanes, parts)
        specs = {
            "cg_matrix": disc.matrix_specs()["cg_matrix"],
            name: KernelSpec(name, ("sipg_stored.cl",), macros, tables, "", disc.options.precision, launch=launch),
        }
        return kernels_of(specs, self.operator.device)

    def update(self) -> None:
        """Compute the matrices at the operator's state. Collective."""
        kernel, cells = self.kernels["cg_matrix"], self.disc.mesh.num_cells
        kernel.launch(cells, self.operator.arguments(kernel, cells, out=self.matrices))

    def volume(self, direction, out) -> None:
        """out = matrices times the direction (a TailedVector), as element vectors [dof, stride]."""
        kernel, cells = self.kernels[f"sipg_{self.name}"], self.disc.mesh.num_cells
        items = kernel.spec.launch.work_items(CHUNK * num_chunks(cells))
        kernel(items, cells, self.disc.stride, *self._arrays, direction.owned, out)

    @property
    def _arrays(self) -> tuple:
        return (self.matrices,)


class CongruentVolume(StoredVolume):
    """The same with a matrix [class, trial, test] of each class of cells that agree up to translation.

    Making one, and `update`, raise OptionError where cells or coefficients differ too much.
    """

    name = "congruent"

    def _prepare(self) -> None:
        self._classify()

    def _classify(self) -> None:
        """Find the classes for the operator's auxiliary data. Raises OptionError; not collective."""
        disc = self.disc
        most = max(FEW, int(min(MOST_SHARE * disc.mesh.num_cells, MOST_BYTES / (self._square * disc.real_bytes))))
        self.shapes = congruent_volumes(disc, self.operator.aux_rows, most)
        if self.shapes is None:
            prefix = disc.options.prefix
            reason = (
                f"physics '{disc.physics.name}' has derivatives that read x or the solution"
                if disc.physics.dependence(disc.dim, False).on_place
                else f"the {disc.mesh.num_cells} cells have more than {most} different shapes or coefficients"
            )
            raise OptionError(
                f"-{prefix}sipg_kernel congruent takes linear physics with constant coefficients on cells that are "
                f"copies of each other, and {reason}; give -{prefix}sipg_kernel auto"
            )
        arrays, classes = self.operator.arrays, np.zeros(disc.stride, dtype=np.int32)
        classes[: disc.mesh.num_cells] = self.shapes.shape
        self.class_of_cell = arrays.to_device(classes, "classes of cells")
        self.matrices = arrays.empty(max(1, self.shapes.count) * self._square)

    @property
    def nbytes(self) -> int:
        return self._square * self.shapes.count * self.disc.real_bytes + 4 * self.disc.stride

    @property
    def _arrays(self) -> tuple:
        return self.matrices, self.class_of_cell

    def update(self) -> None:
        """Compute the matrices of the classes' first cells. Collective. Raises OptionError."""
        disc, arrays = self.disc, self.operator.arrays
        if disc.physics.dependence(disc.dim, False).auxiliary:
            with collectively(disc.mesh.comm):
                self._classify()
        count = self.shapes.count
        if not count:
            return
        kernel, stride, n = self.kernels["cg_matrix"], padded(count), disc.num_dofs
        found = arrays.empty(self._square * stride)
        kernel.launch(count, self._representatives(kernel, stride) | {"out": found})
        by_class = arrays.to_host(found, (n, n, stride), name="matrices")[:, :, :count]
        arrays.upload(self.matrices, np.ascontiguousarray(np.moveaxis(by_class, (2, 1), (0, 1))), "matrices")

    def _representatives(self, kernel, stride: int) -> dict:
        """Arguments of cg_matrix for the classes' first cells."""
        op, disc, cells = self.operator, self.disc, self.shapes.representative
        of_cells = (disc.cell_dofs(), disc.cell_nodes(), op.aux_rows)
        dofs, nodes, aux = (op.arrays.to_device(cell_fastest(a[:, cells].T, stride), "classes") for a in of_cells)
        mine = {"stride": stride, "dofs": dofs, "cell_nodes": nodes, "aux": aux}
        return op.arguments(kernel, len(cells)) | mine


STORED = {"stored": StoredVolume, "congruent": CongruentVolume}

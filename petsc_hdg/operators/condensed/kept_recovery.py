"""The interior of cells from the trace of a linear physics, by matrices U that stay on the device."""

from __future__ import annotations

from functools import cached_property

from mpi4py import MPI

from ...device import Kernel, kernels_of

KEPT_SHARE = 0.5  # of the device's memory that the matrices U may take


class KeptRecovery:
    """interior = U λ + f (King et al. 2014, section 4.3), with U of all cells, or of their shapes.

    matrices: buffer of U, None as long as none was asked for, and where cells of one shape share it.
    """

    def __init__(self, operator):
        self.op, self.disc, self.matrices = operator, operator.discretization, None

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """`condense_recover`, where U may be kept."""
        specs = {"condense_recover": self.disc.recover_spec()} if self._is_asked_for else {}
        return kernels_of(specs, self.op.device)

    @property
    def _is_asked_for(self) -> bool:
        return self.op.is_linear and self.disc.options.hdg_keep and self.disc.num_eliminated > 0

    @cached_property
    def is_kept(self) -> bool:
        """True if U of all cells stays on the device: one tile, and memory enough, on all ranks. Collective."""
        local, device = self.op.local, self.op.device
        nbytes = self.op.arrays.real.itemsize * local.recovery_reals * self.disc.stride
        fits = nbytes <= min(KEPT_SHARE * device.memory_bytes, device.largest_buffer)
        one_tile = local.tile_cells >= self.disc.mesh.num_cells
        shared = local.classes is not None
        return self._is_asked_for and self.disc.mesh.comm.allreduce(shared or (fits and one_tile), MPI.LAND)

    def forget_choice(self) -> None:
        """The data of the physics change, and with them the shapes of cells: choose anew."""
        self.__dict__.pop("is_kept", None)

    def buffer(self):
        """Buffer for U of all cells, or None. Collective."""
        if self.matrices is None and self.is_kept and not self.op.local.classes:
            self.matrices = self.op.arrays.empty(self.op.local.recovery_reals * self.disc.stride)
        return self.matrices

    def recover(self, trace, particular, interior) -> None:
        """interior [dof, stride] = U of a TailedVector + particular. Not collective."""
        op, disc = self.op, self.disc
        if op.local.classes:
            op.local.classes.recover(trace, particular, interior)
            return
        items = disc.num_eliminated * disc.mesh.num_cells
        self.kernels["condense_recover"](
            items, disc.mesh.num_cells, 0, disc.stride, op.dofmap.num_owned, op._dofs, trace.owned, trace.tail,
            disc.stride, self.matrices, particular, interior,
        )  # fmt: skip

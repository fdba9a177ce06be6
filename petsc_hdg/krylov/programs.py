"""Programs that solvers on a device take whatever the physics is."""

from __future__ import annotations

from ..codegen import KernelSpec
from ..device import Arrays, Device
from ..operators.block_rows import SOURCE, BlockKernels
from .dense_matrix import product_spec
from .persistent import steps_spec
from .sell_matrix import slice_spec, step_spec
from .vectors import kernel_spec


def programs(device: Device) -> list[KernelSpec]:
    """KernelSpecs of CG, GMRES and aggregation with one unknown per node: one kernel of each program."""
    arrays = Arrays(device, "double" if device.has_fp64 else "single")
    rows, aggregates = BlockKernels(arrays), BlockKernels(arrays, (SOURCE, "aggregate.cl"), SIZE=1, MODES=1)
    assembled = BlockKernels(arrays, ("assembly_rows.cl",))
    found = [kernel_spec(name, arrays) for name in ("krylov_sums", "cg_direction", "basis_dots")]
    found += [make(arrays) for make in (product_spec, slice_spec)]
    found += [steps_spec(arrays)] if device.persistent_groups else []
    found += [step_spec("sell_step", arrays), rows.spec("transpose_counts"), aggregates.spec("aggregate_diagonal")]
    found.append(assembled.spec("assembly_counts"))
    return found

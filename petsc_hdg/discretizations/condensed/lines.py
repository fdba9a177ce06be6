"""Requirements of sum factorization on a condensed discretization and its device."""

from __future__ import annotations

from ...errors import OptionError

PTX = 90  # compute capability from which GPUs multiply matrices in double precision as mma.clh does
LEAST_DEGREE = 2  # of hexahedra, from which sums along lines are faster than products at all points


def lines_pay(disc) -> bool:
    """True if sums along lines are the fastest way: on hexahedra of some degree (measured, see benchmarks/NOTES.md)."""
    may = disc.mesh.cell == "hexahedron" and disc.options.degree >= LEAST_DEGREE
    return may and not _missing(disc) and not disc.holds_matrices


def check_lines(disc) -> None:
    """Raises OptionError where `-fe_kernel tensor` can have no effect on how cells are condensed."""
    missing = _missing(disc)
    if missing:
        prefix = disc.options.prefix
        raise OptionError(
            f"-{prefix}fe_kernel tensor condenses cells of hdg_gpu by sums along lines on tensor cores, which takes "
            f"{missing}; use auto"
        )


def _missing(disc) -> str:
    """Requirements that are not met, each with what there is instead; empty if all are."""
    if disc.mesh.shape.is_simplex:
        return f"quadrilaterals or hexahedra, the mesh has {disc.mesh.cell} cells"
    if disc.components > 1:
        return f"one component, physics '{disc.physics.name}' has {disc.components}"
    if disc.has_sides:
        return "a projected flux and a stabilization that does not depend on the state"
    if disc.options.precision != "double":
        return f"double precision, not {disc.options.precision}"
    if disc.limits.ptx < PTX:
        return "an NVIDIA GPU of compute capability 9.0 or higher, which the device is not"
    if disc.line_factors is None:
        return "functions and points that are products of those of a line"
    if disc.line_shape is None:
        return (
            f"more registers or local memory for a {disc.mesh.cell} of degree {disc.options.degree} than the device has"
        )
    return ""

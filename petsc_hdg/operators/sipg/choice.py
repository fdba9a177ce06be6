"""Choice of the kernels of a product of interior penalty: the user's, or the fastest that fits."""

from __future__ import annotations

from ...discretizations.base import no_effect
from ...errors import OptionError
from .affine import AffinePass
from .affine_simplex import AffineSimplexPass
from .fused_pass import FusedPass

FAST = (AffinePass, AffineSimplexPass)


def fused_pass(operator) -> FusedPass | None:
    """One pass over the cells for any physics, if it is wanted and a cell fits local memory. Raises OptionError."""
    disc = operator.discretization
    options = disc.options
    if options.sipg_kernel == "fused" and not disc.has_fused:
        raise OptionError(
            f"-{options.prefix}sipg_kernel fused integrates {disc.mesh.cell} cells at their nodes; leave "
            f"-{options.prefix}fe_quadrature_degree out or give -{options.prefix}sipg_kernel split"
        )
    if options.sipg_kernel not in ("auto", "affine", "fused") or not disc.has_fused:
        return None
    try:
        disc.fused_specs()
    except OptionError:
        if options.sipg_kernel == "fused":
            raise
        return None
    if options.kernel != "auto":
        one_pass = f"the pass of {disc.name} over cells and facets"
        raise no_effect(options, one_pass, ("auto",), f"give -{options.prefix}sipg_kernel split")
    return FusedPass(operator)


def fast_pass(operator) -> FusedPass | None:
    """A pass for constant coefficients on affine cells, if it is wanted and fits on all ranks. Raises OptionError.

    Collective.
    """
    disc = operator.discretization
    options = disc.options
    if options.sipg_kernel not in ("auto", "affine"):
        return None
    votes = disc.mesh.comm.allgather([kind.matches(disc) for kind in FAST])
    found = next((kind for k, kind in enumerate(FAST) if all(vote[k] for vote in votes)), None)
    if found is None and options.sipg_kernel == "affine":
        raise OptionError(
            f"-{options.prefix}sipg_kernel affine takes one component, constant coefficients, and rectangles, boxes or "
            f"straight simplices; give -{options.prefix}sipg_kernel auto"
        )
    return found and found(operator)

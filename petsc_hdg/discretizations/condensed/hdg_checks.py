"""What the scheme hdg_gpu asks of a physics, and the stabilization that an option gives it."""

from __future__ import annotations

from ...errors import OptionError, PhysicsError
from ..degree_checks import check_one_degree

MOST_COMPONENTS = 5


def check_hdg(physics) -> None:
    """Raise PhysicsError for a physics that hdg_gpu does not discretize."""
    check_one_degree(physics, "hdg_gpu")
    if physics.num_components > MOST_COMPONENTS:
        raise PhysicsError(
            f"physics '{physics.name}' has {physics.num_components} components in all its fields, and hdg_gpu takes at "
            f"most {MOST_COMPONENTS}; give -fe_backend cg_gpu"
        )


def stabilized(physics, options, dim: int):
    """`physics` with the stabilization that `-hdg_tau` gives; itself where the option is auto.

    Raises OptionError, naming the option, for an expression that cannot be used in `dim` dimensions.
    """
    tau = str(options.hdg_tau).strip()
    if tau == "auto":
        return physics
    try:
        made = physics.with_stabilization(tau)
        made.check_stabilization(dim)
    except PhysicsError as error:
        message = str(error).removeprefix(f"physics '{physics.name}', stabilization").lstrip(":, ")
        raise OptionError(f"-{options.prefix}hdg_tau {tau}: {message}") from error
    return made

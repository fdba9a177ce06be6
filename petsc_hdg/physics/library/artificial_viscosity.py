"""An artificial viscosity ε, Laplacian of all components: an auxiliary field of one value per cell, of which f1 gains
ε ∇u and the stabilization ε over a length of 1."""

from __future__ import annotations

from petsc_hdg.physics.layout import Auxiliary

NAME = "artificial_viscosity"


def added(wanted: bool, components: str, f1: str, stabilization: str, others: dict) -> tuple[str, str]:
    """The texts of f1 and of the stabilization with it if `wanted`; `others`, arguments of Physics, get the field.

    components: their number, as text.
    """
    if not wanted:
        return f1, stabilization
    others["auxiliary"] = {NAME: Auxiliary(1, "cell"), **dict(others.get("auxiliary") or {})}
    place = f"S[c * ({components} + 1)]" if "S[" in stabilization else "tau[c]"
    return (
        f"{f1}\nfor (PetscInt k = 0; k < ({components}) * dim; ++k) f1[k] += {NAME} * u_x[k];",
        f"{stabilization}\nfor (PetscInt c = 0; c < {components}; ++c) {place} += {NAME};",
    )

"""Requirements of schemes on the degrees of a physics' fields."""

from __future__ import annotations

from ..errors import PhysicsError


def check_one_degree(physics, scheme: str) -> None:
    """Raise PhysicsError for a physics whose fields differ in degree, which `scheme` does not discretize."""
    offsets = [f"{f.degree_offset} of '{f.name}'" for f in physics.fields if f.degree_offset]
    if offsets:
        raise PhysicsError(
            f"physics '{physics.name}' has degree_offset {', '.join(offsets)}, and all fields of {scheme} have the "
            "degree of -fe_degree; leave degree_offset out or give -fe_backend cg_gpu"
        )

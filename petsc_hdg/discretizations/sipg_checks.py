"""What the scheme sipg_gpu asks of a physics."""

from __future__ import annotations

from ..errors import PhysicsError
from .neighbours import MOST_NATURAL

DEGREES = {"triangle": (1, 6), "tetrahedron": (1, 6), "quadrilateral": (1, 16), "hexahedron": (1, 8)}


def degrees_of(cell: str) -> tuple[int, int]:
    """Lowest and highest degree on a cell shape."""
    return DEGREES[cell]


def check_sipg(physics) -> None:
    """Raise PhysicsError for a physics that sipg_gpu does not discretize."""
    start = f"physics '{physics.name}'"
    offsets = [f"{f.degree_offset} of '{f.name}'" for f in physics.fields if f.degree_offset]
    if offsets:
        raise PhysicsError(
            f"{start} has degree_offset {', '.join(offsets)}, and all fields of sipg_gpu have the degree of "
            "-fe_degree; leave degree_offset out or give -fe_backend cg_gpu"
        )
    if len(physics.natural) > MOST_NATURAL:
        raise PhysicsError(
            f"{start} has {len(physics.natural)} natural conditions; sipg_gpu takes {MOST_NATURAL}: "
            "join boundaries under one name"
        )

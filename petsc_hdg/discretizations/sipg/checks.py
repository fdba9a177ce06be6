"""What the scheme sipg_gpu asks of a physics."""

from __future__ import annotations

from ...errors import PhysicsError
from ..degree_checks import check_one_degree
from .neighbours import MOST_NATURAL

DEGREES = {"triangle": (1, 6), "tetrahedron": (1, 6), "quadrilateral": (1, 16), "hexahedron": (1, 8)}


def degrees_of(cell: str) -> tuple[int, int]:
    """Lowest and highest degree on a cell shape."""
    return DEGREES[cell]


def check_sipg(physics) -> None:
    """Raise PhysicsError for a physics that sipg_gpu does not discretize."""
    check_one_degree(physics, "sipg_gpu")
    if len(physics.natural) > MOST_NATURAL:
        raise PhysicsError(
            f"physics '{physics.name}' has {len(physics.natural)} natural conditions; sipg_gpu takes {MOST_NATURAL}: "
            "join boundaries under one name"
        )

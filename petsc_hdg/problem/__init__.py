"""A physics on a mesh, ready for PETSc's solvers."""

from typing import TYPE_CHECKING

from ..lookup import lookup

if TYPE_CHECKING:
    from .problem import Problem as Problem
    from .shock_sensor import ShockSensor as ShockSensor
    from .space_time import SpaceTime as SpaceTime

_PUBLIC = {"Problem": "problem", "ShockSensor": "shock_sensor", "SpaceTime": "space_time"}
__all__ = list(_PUBLIC)
__getattr__, __dir__ = lookup(__name__, _PUBLIC)

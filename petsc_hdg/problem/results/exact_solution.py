"""The exact solution of a physics at places, evaluated on the device."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...codegen import KernelSpec
from ...device import Kernel
from ...errors import PhysicsError
from ...value_checks import shown
from ..input_data import require_exact

EXACT = "exact"  # what users write for it


class Exact:
    """The exact solution of one problem's physics."""

    def __init__(self, problem):
        self.problem = problem

    @property
    def fields(self) -> list:
        """Fields whose exact solution is given."""
        return [term.field for term in self.problem.physics.terms.exact]

    @cached_property
    def _kernel(self) -> Kernel:
        physics, dim = self.problem.physics, self.problem.mesh.dim
        macros = {"DIM": dim, "NCOMP": physics.num_components, "NCONST": len(physics.constants)}
        text, precision = physics.device_source(dim), self.problem.options.precision
        return Kernel(
            KernelSpec("exact_values", ("exact_values.cl",), macros, {}, text, precision, 32), self.problem.device
        )

    def at(self, x: np.ndarray, t: float) -> np.ndarray:
        """Values [..., component of all fields] at coordinates x [..., dim] and time t; zero where none are given."""
        arrays, constants = self.problem.arrays, list(self.problem.physics.constants.values()) or [0.0]
        count, components = x[..., 0].size, self.problem.physics.num_components
        values = arrays.empty(max(1, count * components))
        if count:
            places = [arrays.to_device(np.asarray(data, float), "places") for data in (constants, x)]
            self._kernel(count, count, float(t), *places, values)
        return arrays.to_host(values, (*x.shape[:-1], components)).astype(float)

    def components(self, field: str | None) -> slice:
        """Components of a field (None: of all). Raises PhysicsError without an exact solution."""
        require_exact(self.problem.physics)
        return slice(None) if field is None else self._slice(self._field(field))

    def instead(self, value, t: float):
        """Replace "exact" by functions of x in an argument of `Problem.interpolate`. Raises PhysicsError."""
        if _is_exact(value):
            require_exact(self.problem.physics)
            value = {field.name: EXACT for field in self.fields}
        if not isinstance(value, dict):
            return value
        return {name: self._function(name, t) if _is_exact(given) else given for name, given in value.items()}

    def _function(self, name: str, t: float):
        own = self._slice(self._field(name))
        return lambda x: self.at(x, t)[..., own]

    def _field(self, name: str):
        """The field of a name. Raises PhysicsError for one without an exact solution."""
        for field in self.fields:
            if field.name == name:
                return field
        known = ", ".join(field.name for field in self.fields) or "none"
        physics = self.problem.physics.name
        raise PhysicsError(f"physics '{physics}' has no exact solution of {shown(name)}; fields that have one: {known}")

    @staticmethod
    def _slice(field) -> slice:
        return slice(field.offset, field.offset + field.components)


def _is_exact(value) -> bool:
    return isinstance(value, str) and value == EXACT

"""Pointwise functions on the device: at any points, integrated over meshes, regions and boundaries; exact solutions."""

from __future__ import annotations

import math
from functools import cached_property

import numpy as np

from ... import stages
from ...codegen import KernelSpec
from ...device import Kernel
from ...errors import OptionError, PhysicsError, collectively
from ...physics import Physics
from ...physics.constants import ON
from ...physics.objective import Flux, Objective
from ...physics.text.source import has_text
from ...value_checks import shown, text
from ..input_data import require_exact

EXACT = "exact"  # what users write for it


class PointFunction:
    """A pointwise function of the solutions of a problem, compiled.

    function: Objective or Flux.
    """

    def __init__(self, problem, function):
        self.arrays, physics = problem.arrays, problem.physics
        self.components, self.reads_auxiliary = function.components, function.reads_auxiliary
        macros = {"NAUX": physics.num_auxiliary, "NOBJ": function.components, "BOUNDARY": int(function.on_boundary)}
        self.kernel = _kernel(problem, physics, "pointwise", function.text, **macros)

    def __call__(self, rows: np.ndarray, t: float, constants: np.ndarray) -> np.ndarray:
        """Values [cell, point, component] of rows [cell, point, …] as State.rows gives them."""
        return _evaluated(self.arrays, self.kernel, rows, t, constants, self.components)


def _kernel(problem, physics, name: str, text: str, **macros: int) -> Kernel:
    """The kernel of a name, in the file of this name, with a pointwise text of a physics."""
    macros |= {"DIM": problem.mesh.dim, "NCOMP": physics.num_components, "NCONST": len(physics.constants)}
    spec = KernelSpec(name, (f"{name}.cl",), macros, {}, text, problem.options.precision, 32)
    return Kernel(spec, problem.device)


def _evaluated(arrays, kernel: Kernel, places: np.ndarray, t: float, constants, components: int) -> np.ndarray:
    """Values [..., component] of a pointwise kernel at places, given by rows [..., number] of what it reads there."""
    count = math.prod(places.shape[:-1])
    values = arrays.empty(max(1, count * components))
    if count:
        given = [arrays.to_device(np.asarray(data, float), "places") for data in (constants, places)]
        kernel(count, count, float(t), *given, values)
    return arrays.to_host(values, (*places.shape[:-1], components)).astype(float)


def point_function(problem, given, name: str | None, over: str | None) -> PointFunction:
    """The function of a text, or of the physics' own f1: "f1", or "f1_FIELD". Raises PhysicsError. Not collective."""
    physics = problem.physics
    key = physics.text_key(given, over)
    if key in problem.point_functions:
        return problem.point_functions[key]
    dim, what = problem.mesh.dim, f"field '{name}'" if name else "field"
    fluxes = {f"f1_{field.name}": field.name for field in physics.fields}
    fluxes |= {"f1": physics.fields[0].name} if len(physics.fields) == 1 else {}
    if key and given == "f1" and given not in fluxes:
        raise PhysicsError(f"The flux 'f1' of one of several fields was asked for; give {' or '.join(fluxes)}.")
    if key and given in fluxes:
        function = Flux(physics, problem.given_physics.terms, fluxes[given], dim)
    else:
        function = Objective(physics, given, dim, over, what)
    made = PointFunction(problem, function)
    if key:
        problem.point_functions[key] = made
    return made


class Exact:
    """The exact solution of one problem's physics, or of another one with its constants (`function_of`)."""

    def __init__(self, problem, physics=None):
        self.problem, self.physics = problem, physics or problem.physics

    @property
    def fields(self) -> list:
        """Fields whose exact solution is given."""
        return [term.field for term in self.physics.terms.exact]

    @cached_property
    def _kernel(self) -> Kernel:
        text = self.physics.device_source(self.problem.mesh.dim)
        return _kernel(self.problem, self.physics, "exact_values", text)

    def at(self, x: np.ndarray, t: float) -> np.ndarray:
        """Values [..., component of all fields] at coordinates x [..., dim] and time t; zero where none are given."""
        constants = list(self.problem.physics.constants.values()) or [0.0]
        return _evaluated(self.problem.arrays, self._kernel, x, t, constants, self.physics.num_components)

    def components(self, field: str | None) -> slice:
        """Components of a field (None: of all). Raises PhysicsError without an exact solution."""
        require_exact(self.physics)
        return slice(None) if field is None else self._slice(self._field(field))

    def instead(self, value, t: float):
        """Replace "exact" and texts by functions of x in an argument of `Problem.interpolate`. Raises PhysicsError."""
        fields = {field.name: field for field in self.physics.fields}
        if _is_exact(value):
            require_exact(self.physics)
            value = {field.name: EXACT for field in self.fields}
        given = value if isinstance(value, dict) else {next(iter(fields)): value}
        return {name: self._function(fields[name], one, t) if name in fields else one for name, one in given.items()}

    def _function(self, field, given, t: float):
        if not _is_exact(given):
            return function_of(self.problem, field.name, given, field.components, t)
        own = self._slice(self._field(field.name))
        return lambda x: self.at(x, t)[..., own]

    def _field(self, name: str):
        """The field of a name. Raises PhysicsError for one without an exact solution."""
        for field in self.fields:
            if field.name == name:
                return field
        known = ", ".join(field.name for field in self.fields) or "none"
        physics = self.physics.name
        raise PhysicsError(f"physics '{physics}' has no exact solution of {shown(name)}; fields that have one: {known}")

    @staticmethod
    def _slice(field) -> slice:
        return slice(field.offset, field.offset + field.components)


def function_of(problem, name: str, given, components: int, t: float = 0.0):
    """A function of coordinates x [..., dim] that returns the values [..., component] of a text in x, t and constants,
    or of a sequence with texts; anything else as it is. name: of what it gives, for messages. Raises PhysicsError."""
    if not has_text(given):
        return given
    key = ("values", name, repr(given))
    if key not in problem.point_functions:
        problem.point_functions[key] = _exact_of(problem, name, given, components)
    exact = problem.point_functions[key]
    return lambda x: exact.at(x, t)


def _exact_of(problem, name: str, given, components: int) -> Exact:
    """The text of `function_of` as an exact solution. Raises PhysicsError."""
    physics = problem.physics
    constants = {key: value for key, value in physics.constants.items() if ON not in key}
    others = {"constants": constants, "helpers": physics.helpers, "name": physics.name}
    try:
        return Exact(problem, Physics({name: components}, f0=0.0, exact={name: given}, **others))
    except PhysicsError as error:
        raise PhysicsError(f"values of '{name}' are read as those of an exact solution: {error}") from None


def _is_exact(value) -> bool:
    return isinstance(value, str) and value == EXACT


def require_auxiliary(problem) -> None:
    """Raise PhysicsError if an auxiliary field has no values yet."""
    for name in problem.missing_auxiliary:
        raise PhysicsError(f"auxiliary field '{name}' has no values yet: call problem.set_auxiliary('{name}', ...)")


def integral(problem, given, u, t: float, label: str | None, over: str | None, side: str | None) -> float | np.ndarray:
    """See Problem.integral."""
    with collectively(problem.comm):
        if label is not None and over is not None:
            raise OptionError(
                f"An integral over the cells of {shown(label)} and over the boundary {shown(over)} was asked for; "
                "give label= or over=, and add what both give."
            )
        if text("The side of an integral", side) and over is None:
            raise OptionError(
                f"An integral as the side {shown(side)} sees it was asked for, of no boundary; give that by "
                "over=, or label= for the cells of a region."
            )
        kernel = integral_kernel(problem, given, over)
    inside = slice(None) if label is None else problem.mesh.cell_mask(label, ", which over= takes")
    with stages.stage("output"), problem.reading(u, t) as buffer:
        if over is None:
            parts = problem.operator.integrals(kernel, buffer, t)[:, inside]
        else:
            parts = problem.operator.boundary_integrals(kernel, over, buffer, t, side)
    found = problem.comm.allreduce(parts.sum(axis=1))
    return float(found[0]) if len(found) == 1 else found


def integral_kernel(problem, given, over: str | None) -> Kernel:
    """The kernel of an integrand, as Objective takes it, compiled once for each text. Raises PhysicsError."""
    key = problem.physics.text_key(given, over)
    if key in problem.integrands:
        return problem.integrands[key]
    objective = Objective(problem.physics, given, problem.mesh.dim, over)
    if objective.reads_auxiliary or problem.is_condensed:
        require_auxiliary(problem)
    kernel = problem.operator.integral_kernel(objective)
    if key:
        problem.integrands[key] = kernel
    return kernel

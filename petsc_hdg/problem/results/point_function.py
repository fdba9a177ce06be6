"""Pointwise functions of solutions at any points, on the device."""

from __future__ import annotations

import numpy as np

from ...codegen import KernelSpec
from ...device import Kernel
from ...errors import PhysicsError
from ...physics.objective import Flux, Objective


class PointFunction:
    """A pointwise function of the solutions of a problem, compiled.

    function: Objective or Flux.
    """

    def __init__(self, problem, function):
        self.arrays, dim = problem.arrays, problem.mesh.dim
        self.components, self.reads_auxiliary = function.components, function.reads_auxiliary
        physics = problem.physics
        macros = {"DIM": dim, "NCOMP": physics.num_components, "NAUX": physics.num_auxiliary}
        macros |= {"NCONST": len(physics.constants), "NOBJ": function.components}
        macros["BOUNDARY"] = int(function.on_boundary)
        precision, text = problem.options.precision, function.text
        self.kernel = Kernel(
            KernelSpec("pointwise", ("pointwise.cl",), macros, {}, text, precision, 32), problem.device
        )

    def __call__(self, rows: np.ndarray, t: float, constants: np.ndarray) -> np.ndarray:
        """Values [cell, point, component] of rows [cell, point, …] as State.rows gives them."""
        shape = (*rows.shape[:2], self.components)
        values = self.arrays.empty(max(1, int(np.prod(shape))))
        if rows.size:
            given = [self.arrays.to_device(data, "places") for data in (constants, rows)]
            self.kernel(shape[0] * shape[1], shape[0] * shape[1], float(t), *given, values)
        return self.arrays.to_host(values, shape).astype(float)


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
        function = Flux(physics, problem.written_terms, fluxes[given], dim)
    else:
        function = Objective(physics, given, dim, over, what)
    made = PointFunction(problem, function)
    if key:
        problem.point_functions[key] = made
    return made

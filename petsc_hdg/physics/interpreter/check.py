"""A first run of every function of a physics at sample points: finds indices outside arrays, loops that do not end and
variables that are never set.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from petsc_hdg.physics.instance import Instance
from petsc_hdg.physics.interpreter.closures import EndlessLoop
from petsc_hdg.physics.interpreter.expression_closures import UNSET, OutOfBounds, View
from petsc_hdg.physics.interpreter.interpret import compiled
from petsc_hdg.physics.terms import Form

_TURNS = 10_000
_SAMPLES = ((20231, 0), (20232, 0), (20233, -1))  # seeds, and the least values of inputs
_VARYING = frozenset({"u", "x", "n", "t", "a", "a_x"})


def first_run(instance: Instance, constants: np.ndarray) -> None:
    """Run every function of `instance` once; values that are not finite are no error here."""
    for form in instance.all():
        run(form, constants)
    run_stabilization(instance, constants)
    for condition, form in zip(instance.terms.dirichlet, instance.dirichlet, strict=False):
        written = run(form, constants, _unset(form))
        _check_written("g", condition.components, form, written, "component {} is constrained")


def run_stabilization(instance: Instance, constants: np.ndarray) -> None:
    """Run the stabilization of `instance`: every component must be set, and above 0 where it is the same everywhere."""
    for form in instance.stabilization:
        _check_stabilization(form, run(form, constants, _unset(form)))


def _unset(form: Form) -> list:
    """Values of what the function writes that may not be read."""
    return [UNSET] * form.setting.sizes[next(iter(form.program.main.outputs))]


def run(form: Form, constants: np.ndarray, written: list | None = None) -> list:
    """Run the function at random inputs; return what it writes over the values of `written` (zeros).

    Inputs are between 0 and 1, and between -1 and 0 if the function fails there. Raises PhysicsError for an error that
    does not depend on the inputs, or that is met at every sample.
    """
    main = form.program.main
    output = next(iter(main.outputs))
    written = [0.0] * form.setting.sizes[output] if written is None else written
    values = {name: View(list(array)) for name, array in form.setting.arrays.items()} | dict(form.setting.ints)
    code = compiled(form.program, form.setting.ints["dim"], form.setting.arrays, most_turns=_TURNS)
    for seed, least in _SAMPLES:
        random = np.random.default_rng(seed)
        for name, size in form.setting.sizes.items():
            values[name] = View((least + random.random(size)).tolist())
        values |= {"t": 0.5, "u_tShift": 0.5, "constants": View(constants.tolist()), output: View(written)}
        try:
            code(*[values[parameter.name] for parameter in main.parameters])
            return written
        except EndlessLoop as error:
            if error.bounded:
                return written
            failed = error
        except OutOfBounds as error:
            if not error.data_dependent:
                raise
            failed = error
    raise failed


def _check_written(output: str, components: Sequence[int], form: Form, written: list, why: str) -> None:
    for component in components:
        if written[component] is UNSET:
            message = f"{output}[{component}] is never assigned, and {why.format(component)}"
            raise form.program.source.error(None, f"{message}; write {output}[{component}] = …;")


def _check_stabilization(form: Form, written: list) -> None:
    output = "S" if form.term.kind == "S" else "tau"
    why = "the stabilization needs every component of all fields"
    _check_written(output, range(len(written)), form, written, why)
    if form.program.inputs & _VARYING or output == "S":
        return
    for component, value in enumerate(written):
        if not 0 < value < math.inf:
            message = f"tau[{component}] is {float(value)}; a stabilization must be a number above 0"
            raise form.program.source.error(None, message)

"""The pointwise functions on numpy arrays, interpreted: the oracle that device kernels are checked against.

Derivatives come from dual numbers, not from the derivative text, so that the two check one another. A first run of
every function at sample points finds indices outside arrays, loops that do not end and variables that are never set.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics.instance import Instance
from petsc_hdg.physics.interpreter.dual import Dual, value_of
from petsc_hdg.physics.interpreter.translate import UNSET, EndlessLoop, OutOfBounds, Translation, View
from petsc_hdg.physics.terms import Form
from petsc_hdg.physics.tree.ir import Program

_TURNS = 10_000
_SAMPLES = ((20231, 0), (20232, 0), (20233, -1))  # seeds, and the least values of inputs
_VARYING = frozenset({"u", "x", "n", "t", "a", "a_x"})


def compiled(program: Program, dim: int, arrays, **options) -> Callable:
    """The main function of a program as a Python callable."""
    known: dict[str, Callable] = {}
    for helper in program.helpers:
        known[helper.name] = Translation(helper, known, dim, {}, **options).compile()
    return Translation(program.main, known, dim, arrays, **options).compile()


class Interpreter:
    """pw_* of a physics in `dim` dimensions on float64 arrays, one point a call.

    Shapes: u, u_t [C], u_x [C, dim], a [A], a_x [A, dim], x, n [dim], constants [name]; None stands for zeros, and
    for the physics' own values of constants. Derivatives are along one direction, or along several at once: du, du_t
    [C, direction], du_x [C, dim, direction] and what is returned have an axis more then. Raises PhysicsError with the
    user's line for an index outside its array, a variable read before it is set, a loop that does not end.
    """

    def __init__(self, instance: Instance, constants: np.ndarray):
        self._instance, self._constants, self.dim = instance, np.asarray(constants, float), instance.dim
        num_u, num_a, dim = instance.num_components, instance.num_auxiliary, instance.dim
        self._shapes: dict[str, tuple] = dict.fromkeys(("u", "u_t", "u_in", "f_hat"), (num_u,))
        self._shapes |= {"u_x": (num_u, dim), "a": (num_a,), "a_x": (num_a, dim), "x": (dim,), "n": (dim,)}

    def pw_residual(self, u, u_t, u_x, a, a_x, t, x, constants=None) -> tuple[np.ndarray, np.ndarray]:
        """f0 [C], f1 [C, dim]."""
        inputs = self._inputs(constants, t=t, u=u, u_t=u_t, u_x=u_x, a=a, a_x=a_x, x=x)
        return self._fluxes(self._instance.residual, lambda form: self._values(form, inputs))

    def pw_jacobian(
        self, u, u_t, u_x, du, du_t, du_x, a, a_x, t, u_tshift, x, constants=None
    ) -> tuple[np.ndarray, np.ndarray]:
        """df0 [C], df1 [C, dim] along du, du_t, du_x; with hand-written g0 … g3, u_tshift is theirs and du_t is not
        used.
        """
        inputs = self._inputs(constants, t=t, u=u, u_t=u_t, u_x=u_x, a=a, a_x=a_x, x=x)
        rates = self._directions(u=du, u_t=du_t, u_x=du_x)
        if self._instance.jacobian is None:
            return self._slopes(self._instance.residual, inputs, rates)
        g0, g1, g2, g3 = self._hand_blocks(inputs, u_tshift)
        d0 = np.einsum("ij,j...->i...", g0, rates["u"]) + np.einsum("ije,je...->i...", g1, rates["u_x"])
        return d0, np.einsum("ijd,j...->id...", g2, rates["u"]) + np.einsum("ijde,je...->id...", g3, rates["u_x"])

    def g_blocks(self, u, u_t, u_x, a, a_x, t, u_tshift, x, constants=None) -> tuple[np.ndarray, ...]:
        """PETSc's g0 [C, C], g1 [C, C, dim], g2 [C, C, dim], g3 [C, C, dim, dim] (test, trial, test's dim, trial's
        dim).
        """
        if self._instance.jacobian is not None:
            return self._hand_blocks(self._inputs(constants, t=t, u=u, u_t=u_t, u_x=u_x, a=a, a_x=a_x, x=x), u_tshift)
        num, dim = self._instance.num_components, self.dim
        du, du_x = np.split(np.eye(num + num * dim), [num])
        rates = du, u_tshift * du, du_x.reshape(num, dim, -1)
        d0, d1 = self.pw_jacobian(u, u_t, u_x, *rates, a, a_x, t, u_tshift, x, constants)
        g1 = d0[:, num:].reshape(num, num, dim)
        g2 = d1[:, :, :num].transpose(0, 2, 1)
        g3 = d1[:, :, num:].reshape(num, dim, num, dim).transpose(0, 2, 1, 3)
        return d0[:, :num], g1, g2, g3

    def pw_boundary(
        self, condition: int, u, u_t, u_x, a, a_x, t, x, n, constants=None
    ) -> tuple[np.ndarray, np.ndarray]:
        """f0 [C], f1 [C, dim] of natural condition number `condition`."""
        inputs = self._inputs(constants, t=t, u=u, u_t=u_t, u_x=u_x, a=a, a_x=a_x, x=x, n=n)
        form = self._instance.natural[condition]
        sign = -1 if form.term.kind == "g" else 1
        forms = () if form.term.kind == "b" else (form,)
        return self._fluxes(forms, lambda form: sign * self._values(form, inputs))

    def pw_boundary_jacobian(
        self, condition: int, u, u_t, u_x, du, du_t, du_x, a, a_x, t, u_tshift, x, n, constants=None
    ) -> tuple[np.ndarray, np.ndarray]:
        """df0 [C], df1 [C, dim] of natural condition number `condition` along du, du_t, du_x."""
        inputs = self._inputs(constants, t=t, u=u, u_t=u_t, u_x=u_x, a=a, a_x=a_x, x=x, n=n)
        form = self._instance.natural[condition]
        forms = () if form.term.kind in ("g", "b") else (form,)
        return self._slopes(forms, inputs, self._directions(u=du, u_t=du_t, u_x=du_x))

    def pw_dirichlet(self, condition: int, a, t, x, constants=None) -> np.ndarray:
        """g [C] of Dirichlet condition number `condition`: zero outside its field."""
        form, g = self._instance.dirichlet[condition], self._zeros()[0]
        self._part(g, form)[:] = self._values(form, self._inputs(constants, a=a, t=t, x=x))
        return g

    def pw_exact(self, t, x, constants=None) -> tuple[np.ndarray, np.ndarray]:
        """Exact u [C] and its gradient u_x [C, dim]."""
        inputs = self._inputs(constants, t=t, x=x)
        u, u_x = self._zeros()
        for form in self._instance.exact:
            self._part(u, form)[:] = self._values(form, inputs)
            self._part(u_x, form)[:] = self._rates(form, inputs, {"x": np.eye(self.dim)})
        return u, u_x

    def pw_stabilization(self, a, a_x, t, x, n, constants=None, u=None) -> np.ndarray:
        """tau [C], or S [C, C], of a physics with a stabilization, at a trace u."""
        form = self._instance.stabilization[0]
        found = self._values(form, self._inputs(constants, t=t, u=u, a=a, a_x=a_x, x=x, n=n))
        return found if form.term.kind == "tau" else found.reshape(*self._shapes["u"], -1)

    def pw_stabilization_jacobian(self, u, a, a_x, t, x, n, constants=None) -> np.ndarray:
        """d tau / du [C, direction], or dS / du [C, C, direction]."""
        form, count = self._instance.stabilization[0], self._instance.num_components
        inputs = self._inputs(constants, t=t, u=u, a=a, a_x=a_x, x=x, n=n)
        found = self._rates(form, inputs, {"u": np.eye(count)})
        return found if form.term.kind == "tau" else found.reshape(count, count, count)

    def pw_boundary_flux(self, condition: int, u, u_x, u_in, f_hat, a, a_x, t, x, n, constants=None) -> np.ndarray:
        """b [C] of natural condition number `condition`, a boundary flux."""
        inputs = self._inputs(constants, t=t, u=u, u_x=u_x, u_in=u_in, f_hat=f_hat, a=a, a_x=a_x, x=x, n=n)
        return self._values(self._instance.natural[condition], inputs)

    def pw_boundary_flux_jacobian(
        self, condition: int, u, u_x, u_in, f_hat, rates: dict, a, a_x, t, x, n, constants=None
    ) -> np.ndarray:
        """db [C, direction] along rates [input's size, direction] of u, u_x, u_in and f_hat."""
        inputs = self._inputs(constants, t=t, u=u, u_x=u_x, u_in=u_in, f_hat=f_hat, a=a, a_x=a_x, x=x, n=n)
        return self._rates(self._instance.natural[condition], inputs, rates)

    def _zeros(self, *directions: int) -> tuple[np.ndarray, np.ndarray]:
        return np.zeros((*self._shapes["u"], *directions)), np.zeros((*self._shapes["u_x"], *directions))

    def _slopes(self, forms, inputs: dict, rates: dict) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of f0 and f1 of forms along rates of the state."""
        return self._fluxes(forms, lambda form: self._rates(form, inputs, rates), *rates["u"].shape[1:])

    def _fluxes(self, forms, values: Callable, *directions: int) -> tuple[np.ndarray, np.ndarray]:
        """f0 [C, …] and f1 [C, dim, …] of the values of forms, or of their derivatives in so many directions."""
        fluxes = self._zeros(*directions)
        for form in forms:
            part = self._part(fluxes[form.term.kind == "f1"], form)
            part += values(form).reshape(part.shape)
        return fluxes

    @staticmethod
    def _part(array: np.ndarray, form: Form) -> np.ndarray:
        field = form.term.field
        return array[field.offset : field.offset + field.components]

    def _directions(self, **rates) -> dict[str, np.ndarray]:
        """Rates [*shape of the input, …], those that are None zero along the directions of the others."""
        axes = (np.shape(rate)[len(self._shapes[name]) :] for name, rate in rates.items() if rate is not None)
        given = next(axes, ())
        return {
            name: np.zeros((*self._shapes[name], *given)) if rate is None else np.asarray(rate, float)
            for name, rate in rates.items()
        }

    def _inputs(self, constants, t: float, **arrays) -> dict:
        inputs: dict = {}
        for name, array in arrays.items():
            shape = self._shapes[name]
            values = np.zeros(shape) if array is None else np.asarray(array, float)
            if values.size != int(np.prod(shape)):
                raise PhysicsError(f"{name} has shape {values.shape}; this physics takes {shape}")
            inputs[name] = values.ravel().tolist()
        values = self._constants if constants is None else np.asarray(constants, float)
        return inputs | {"t": float(t), "constants": values.tolist()}

    def _hand_blocks(self, inputs: dict, u_tshift: float) -> tuple[np.ndarray, ...]:
        num, dim = self._instance.num_components, self.dim
        blocks = {f"g{k}": np.zeros((num, num, *(dim,) * axes)) for k, axes in enumerate((0, 1, 1, 2))}
        for form in self._instance.jacobian:
            term = form.term
            rows = slice(term.field.offset, term.field.offset + term.field.components)
            columns = slice(term.trial.offset, term.trial.offset + term.trial.components)
            part = blocks[term.kind][rows, columns]
            part += np.reshape(self._run(form, inputs | {"u_tShift": float(u_tshift)}), part.shape)
        return tuple(blocks.values())

    def _run(self, form: Form, inputs: dict) -> list:
        """Run the function of `form`; return what it writes as a flat list."""
        codes, key = self._instance.codes, id(form)
        code = codes.get(key) or codes.setdefault(key, compiled(form.program, self.dim, form.setting.arrays))
        return _call(code, form, inputs, _filled(form, 0.0))

    def _values(self, form: Form, inputs: dict) -> np.ndarray:
        return np.array([value_of(value) for value in self._run(form, inputs)], float)

    def _rates(self, form: Form, inputs: dict, rates: dict) -> np.ndarray:
        """Derivatives [value, direction] along rates of some inputs."""
        dual = dict(inputs)
        for name, rate in rates.items():
            along = rate.reshape(len(inputs[name]), -1)
            dual[name] = [Dual(value, each) for value, each in zip(inputs[name], along, strict=True)]
        zero = np.zeros(along.shape[1])
        return np.array([value.rate if type(value) is Dual else zero for value in self._run(form, dual)])


def _call(code: Callable, form: Form, inputs: dict, written: list) -> list:
    """Run the compiled function of `form`; return what it writes over the values of `written`."""
    main, setting = form.program.main, form.setting
    given = {**inputs, **setting.ints, **setting.arrays, next(iter(main.outputs)): written}
    values = [given[parameter.name] for parameter in main.parameters]
    code(*[View(value) if isinstance(value, list | tuple) else value for value in values])
    return written


def _filled(form: Form, value) -> list:
    """As many values as the function writes."""
    return [value] * form.setting.sizes[next(iter(form.program.main.outputs))]


def first_run(instance: Instance, constants: np.ndarray) -> None:
    """Run every function of `instance` once; values that are not finite are no error here."""
    for form in instance.all():
        run(form, constants)
    run_stabilization(instance, constants)
    for condition, form in zip(instance.terms.dirichlet, instance.dirichlet, strict=False):
        written = run(form, constants, _filled(form, UNSET))
        _check_written("g", condition.components, form, written, "component {} is constrained")


def run_stabilization(instance: Instance, constants: np.ndarray) -> None:
    """Run the stabilization of `instance`: every component must be set, and above 0 where it is the same everywhere."""
    for form in instance.stabilization:
        _check_stabilization(form, run(form, constants, _filled(form, UNSET)))


def run(form: Form, constants: np.ndarray, written: list | None = None) -> list:
    """Run the function at random inputs; return what it writes over the values of `written` (zeros).

    Inputs are between 0 and 1, and between -1 and 0 if the function fails there. Raises PhysicsError for an error that
    does not depend on the inputs, or that is met at every sample.
    """
    written = _filled(form, 0.0) if written is None else written
    code = compiled(form.program, form.setting.ints["dim"], form.setting.arrays, most_turns=_TURNS)
    for seed, least in _SAMPLES:
        random = np.random.default_rng(seed)
        inputs = {name: (least + random.random(size)).tolist() for name, size in form.setting.sizes.items()}
        inputs |= {"t": 0.5, "u_tShift": 0.5, "constants": constants.tolist()}
        try:
            return _call(code, form, inputs, written)
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

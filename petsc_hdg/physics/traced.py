"""Functions of coordinates and time, written with numpy, as sympy expressions: they are called once, with symbols."""

from __future__ import annotations

import inspect

import numpy as np
import sympy
from numpy.lib.mixins import NDArrayOperatorsMixin

from petsc_hdg.value_checks import plural

MOST = 3  # coordinates
FUNCTIONS = {
    np.add: lambda a, b: a + b,
    np.subtract: lambda a, b: a - b,
    np.multiply: lambda a, b: a * b,
    np.divide: lambda a, b: a / b,
    np.power: lambda a, b: a**b,
    np.float_power: lambda a, b: a**b,
    np.negative: lambda a: -a,
    np.positive: lambda a: a,
    np.square: lambda a: a**2,
    np.reciprocal: lambda a: 1 / a,
    np.hypot: lambda a, b: sympy.sqrt(a**2 + b**2),
    np.absolute: sympy.Abs,
    np.fabs: sympy.Abs,
    np.arcsin: sympy.asin,
    np.arccos: sympy.acos,
    np.arctan: sympy.atan,
    np.arctan2: sympy.atan2,
    np.ceil: sympy.ceiling,
    np.maximum: sympy.Max,
    np.minimum: sympy.Min,
    np.less: sympy.Lt,
    np.less_equal: sympy.Le,
    np.greater: sympy.Gt,
    np.greater_equal: sympy.Ge,
    np.logical_and: sympy.And,
    np.bitwise_and: sympy.And,
    np.logical_or: sympy.Or,
    np.bitwise_or: sympy.Or,
    np.logical_not: sympy.Not,
    np.invert: sympy.Not,
    **{
        getattr(np, name): getattr(sympy, name) for name in "sin cos tan sinh cosh tanh exp log sqrt floor sign".split()
    },
}


class Traced(NDArrayOperatorsMixin):
    """An array of sympy expressions that numpy's functions take for numbers."""

    def __init__(self, values):
        self.values = np.asarray(values, dtype=object)

    shape = property(lambda self: self.values.shape)
    ndim = property(lambda self: self.values.ndim)

    def __bool__(self) -> bool:
        raise TypeError("a condition depends on x or t; np.where takes it")

    def __getitem__(self, key) -> Traced:
        return Traced(self.values[key])

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        if method != "__call__" or options or ufunc not in FUNCTIONS:
            raise TypeError(f"np.{ufunc.__name__} is not among the functions it may call")
        return _each(FUNCTIONS[ufunc], *inputs)

    def __array_function__(self, function, types, given, options):
        if function is np.where and len(given) == 3:
            return _each(lambda c, a, b: sympy.Piecewise((a, c), (b, True)), *given)
        if function is np.clip and len(given) == 3:
            return np.minimum(np.maximum(given[0], given[1]), given[2])
        return Traced(function(*map(_values, given), **options))  # those that move, add and multiply


def _each(function, *inputs) -> Traced:
    """Apply a function of expressions to the entries of arrays."""
    of_entries = np.frompyfunc(lambda *entries: function(*map(sympy.sympify, entries)), len(inputs), 1)
    return Traced(of_entries(*map(_values, inputs)))


def _values(given):
    """The arrays in an argument of a numpy function."""
    if isinstance(given, list | tuple):
        return [_values(one) for one in given]
    return given.values if isinstance(given, Traced) else given


def expressions(source, function, components: int) -> list:
    """Expressions [component] of a function of x [point, dim] or of x and t, which returns [point] or [point,
    component]. Raises the PhysicsError of `source`."""
    x = [[sympy.Symbol(f"x[{d}]", real=True) for d in range(MOST)]]
    given = [Traced(x), Traced(sympy.Symbol("t", real=True))]
    try:
        found = function(*given[: 1 + _takes_time(function)])
        values = np.asarray(_values(found), dtype=object)
    except Exception as error:  # the function is the user's
        raise source.error(
            None,
            f"is a function that cannot be read ({error}); it may use arithmetic, comparisons, np.where and functions "
            "such as np.sin of x[..., d] and t; give C text, or for other values a nodal auxiliary field",
        ) from error
    if values.size not in (1, components):
        raise source.error(
            None,
            f"is a function that returns {values.size} numbers per point, the field has "
            f"{plural(components, 'component')}; return an array [...] or [..., {components}] for x [..., dim]",
        )
    return list(values.reshape(-1)) * (components if values.size == 1 else 1)


def _takes_time(function) -> bool:
    """Return True if a function has a second argument."""
    places = inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD
    return sum(p.kind in places for p in inspect.signature(function).parameters.values()) > 1

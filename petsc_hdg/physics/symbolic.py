"""From sympy expressions to the C text of pointwise functions, and symbols to write them with. Functions of coordinates
and time, written with numpy, become sympy expressions: they are called once, with symbols.
"""

from __future__ import annotations

import inspect

import numpy as np
import sympy
from numpy.lib.mixins import NDArrayOperatorsMixin
from sympy.printing.c import C99CodePrinter

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


class _Printer(C99CodePrinter):
    """C of OpenCL: no macros of math.h, no casts."""

    def __init__(self):
        super().__init__({"contract": False, "human": False, "strict": False})
        self.math_macros = {}

    def _print_Pi(self, expr):
        return "PETSC_PI"

    def _print_NumberSymbol(self, expr):
        return repr(float(expr))

    def _print_sign(self, expr):
        return f"sign({self._print(expr.args[0])})"

    def _print_Heaviside(self, expr):
        return f"step(0.0, {self._print(expr.args[0])})"


def array_code(source, given, output: str, shape: tuple) -> tuple[str, int]:
    """C text that assigns the entries of `given` to `output`, and their number.

    `shape` is (components,), or (components, None) where the second extent is the dimension. Raises the PhysicsError of
    `source` for a wrong number of entries and for what C cannot express.
    """
    entries = _entries(source, given)
    components = shape[0]
    if len(shape) == 1 and len(entries) != components:
        raise source.error(None, f"has {len(entries)} expression(s), the field has {components} component(s)")
    if len(shape) == 2 and (len(entries) % components or len(entries) // components not in (1, 2, 3)):
        message = (
            f"has {len(entries)} expression(s); a flux of {components} component(s) has {components} × dim, that is "
        )
        raise source.error(None, message + f"{components}, {2 * components} or {3 * components}")
    temporaries, reduced = sympy.cse(entries, symbols=sympy.numbered_symbols("s_"))
    lines = [f"const PetscReal {name} = {_code(source, value)};" for name, value in temporaries]
    lines += [f"{output}[{number}] = {_code(source, value)};" for number, value in enumerate(reduced)]
    return "\n".join(lines), len(entries)


def _entries(source, given) -> list:
    """The entries of a number, an expression, a matrix or nested lists, row by row."""
    if isinstance(given, (sympy.MatrixBase, sympy.NDimArray)) or (
        hasattr(given, "tolist") and not isinstance(given, sympy.Basic)
    ):
        given = given.tolist()
    if isinstance(given, (list, tuple, sympy.Tuple)):
        return [expression for entry in given for expression in _entries(source, entry)]
    try:
        expression = sympy.sympify(given, strict=True)
    except sympy.SympifyError:
        expression = None
    if not isinstance(expression, sympy.Expr):
        raise source.error(None, f"holds {given!r}, which is no expression; give numbers or sympy expressions")
    return [expression]


def _code(source, expression) -> str:
    if expression.has(sympy.I, sympy.zoo, sympy.nan):
        raise source.error(None, f"holds {expression}, which is not a real number")
    _, unsupported, text = _Printer().doprint(expression)
    if unsupported:
        names = ", ".join(sorted(str(item) for item in unsupported))
        raise source.error(None, f"holds {names}, which C cannot express; evaluate it first (doit) or write C text")
    return text


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

"""From sympy expressions to the C text of pointwise functions, and symbols to write them with."""

from __future__ import annotations

import sympy
from sympy.printing.c import C99CodePrinter


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


def array_code(source, given, output: str, shape: tuple) -> str:
    """C text that assigns the entries of `given` to `output`.

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
    return "\n".join(lines)


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

"""The functions a physics may call: their canonical names, PETSc's names for them, values and partial derivatives.

The canonical names are those of OpenCL C. A function is differentiated through the functions `d0_NAME`, `d1_NAME`, … of
kernels_cl/petsc.clh (argument number in the name; the arguments, then a direction); the Python partial derivatives
here are written apart from them, for the interpreter, so that the two check one another.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from petsc_hdg.physics.elementary import (
    c_round,
    cbrt,
    digamma,
    erf_slope,
    first_wins,
    inverse,
    power,
    rootn,
    sign,
    smoothstep,
    smoothstep_partials,
    zero_log,
)


@dataclass(frozen=True)
class Builtin:
    """A built-in function.

    arguments  one letter each: r (real) or i (int)
    value      the function of Python numbers
    partials   one function of the arguments for each real argument; () if the derivative is zero wherever it exists;
               None if it cannot be differentiated
    result     "real" or "int"
    """

    arguments: str
    value: Callable
    partials: tuple | None
    result: str = "real"


_PI = math.pi
_ZERO = ()
_POWER = Builtin(
    "rr", power, (lambda x, y: y and y * power(x, y - 1), lambda x, y: power(x, y) * math.log(x) if x else 0.0)
)
_SUM = Builtin("rrr", lambda x, y, z: x * y + z, (lambda x, y, z: y, lambda x, y, z: x, lambda x, y, z: 1.0))

BUILTINS: dict[str, Builtin] = {
    "exp": Builtin("r", math.exp, (math.exp,)),
    "exp2": Builtin("r", lambda x: power(2.0, x), (lambda x: math.log(2) * power(2.0, x),)),
    "exp10": Builtin("r", lambda x: power(10.0, x), (lambda x: math.log(10) * power(10.0, x),)),
    "expm1": Builtin("r", math.expm1, (math.exp,)),
    "log": Builtin("r", zero_log(math.log), (inverse,)),
    "log2": Builtin("r", zero_log(math.log2), (lambda x: inverse(x) / math.log(2),)),
    "log10": Builtin("r", zero_log(math.log10), (lambda x: inverse(x) / math.log(10),)),
    "log1p": Builtin("r", math.log1p, (lambda x: inverse(1 + x),)),
    **dict.fromkeys(("pow", "powr"), _POWER),
    "pown": Builtin("ri", power, (lambda x, n: n and n * power(x, n - 1),)),
    "rootn": Builtin("ri", rootn, (lambda x, n: rootn(x, n) * inverse(n * x),)),
    "sqrt": Builtin("r", math.sqrt, (lambda x: 0.5 * inverse(math.sqrt(x)),)),
    "cbrt": Builtin("r", cbrt, (lambda x: inverse(3 * cbrt(x) ** 2),)),
    "rsqrt": Builtin("r", lambda x: inverse(math.sqrt(x)), (lambda x: -0.5 * inverse(x * math.sqrt(x)),)),
    "hypot": Builtin(
        "rr", math.hypot, (lambda x, y: x and x / math.hypot(x, y), lambda x, y: y and y / math.hypot(x, y))
    ),
    "sin": Builtin("r", math.sin, (math.cos,)),
    "cos": Builtin("r", math.cos, (lambda x: -math.sin(x),)),
    "tan": Builtin("r", math.tan, (lambda x: 1 + math.tan(x) ** 2,)),
    "asin": Builtin("r", math.asin, (lambda x: inverse(math.sqrt(1 - x * x)),)),
    "acos": Builtin("r", math.acos, (lambda x: -inverse(math.sqrt(1 - x * x)),)),
    "atan": Builtin("r", math.atan, (lambda x: 1 / (1 + x * x),)),
    "atan2": Builtin(
        "rr",
        math.atan2,
        (
            lambda y, x: x * inverse(x * x + y * y) if x else 0.0,
            lambda y, x: -y * inverse(x * x + y * y) if y else 0.0,
        ),
    ),
    "sinpi": Builtin("r", lambda x: math.sin(_PI * x), (lambda x: _PI * math.cos(_PI * x),)),
    "cospi": Builtin("r", lambda x: math.cos(_PI * x), (lambda x: -_PI * math.sin(_PI * x),)),
    "tanpi": Builtin("r", lambda x: math.tan(_PI * x), (lambda x: _PI * (1 + math.tan(_PI * x) ** 2),)),
    "asinpi": Builtin("r", lambda x: math.asin(x) / _PI, (lambda x: inverse(_PI * math.sqrt(1 - x * x)),)),
    "acospi": Builtin("r", lambda x: math.acos(x) / _PI, (lambda x: -inverse(_PI * math.sqrt(1 - x * x)),)),
    "atanpi": Builtin("r", lambda x: math.atan(x) / _PI, (lambda x: 1 / (_PI * (1 + x * x)),)),
    "sinh": Builtin("r", math.sinh, (math.cosh,)),
    "cosh": Builtin("r", math.cosh, (math.sinh,)),
    "tanh": Builtin("r", math.tanh, (lambda x: 1 - math.tanh(x) ** 2,)),
    "asinh": Builtin("r", math.asinh, (lambda x: 1 / math.sqrt(1 + x * x),)),
    "acosh": Builtin("r", math.acosh, (lambda x: inverse(math.sqrt(x * x - 1)),)),
    "atanh": Builtin("r", math.atanh, (lambda x: inverse(1 - x * x),)),
    "erf": Builtin("r", math.erf, (erf_slope,)),
    "erfc": Builtin("r", math.erfc, (lambda x: -erf_slope(x),)),
    "tgamma": Builtin("r", math.gamma, (lambda x: math.gamma(x) * digamma(x),)),
    "lgamma": Builtin("r", math.lgamma, (digamma,)),
    "fabs": Builtin("r", abs, (sign,)),
    "fmax": Builtin("rr", lambda x, y: x if x >= y or y != y else y, first_wins(lambda x, y: x >= y)),
    "fmin": Builtin("rr", lambda x, y: x if x <= y or y != y else y, first_wins(lambda x, y: x <= y)),
    "maxmag": Builtin("rr", lambda x, y: x if abs(x) > abs(y) else y, first_wins(lambda x, y: abs(x) > abs(y))),
    "minmag": Builtin("rr", lambda x, y: x if abs(x) < abs(y) else y, first_wins(lambda x, y: abs(x) < abs(y))),
    "fdim": Builtin("rr", lambda x, y: max(x - y, 0.0), (lambda x, y: float(x > y), lambda x, y: -float(x > y))),
    **dict.fromkeys(("fma", "mad"), _SUM),
    "fmod": Builtin("rr", math.fmod, (lambda x, y: 1.0, lambda x, y: -float(math.trunc(x / y)))),
    "remainder": Builtin("rr", math.remainder, (lambda x, y: 1.0, lambda x, y: -float(round(x / y)))),
    "copysign": Builtin("rr", math.copysign, (lambda x, y: sign(x) * math.copysign(1.0, y), lambda x, y: 0.0)),
    "clamp": Builtin(
        "rrr",
        lambda x, low, high: min(max(x, low), high),
        (lambda x, l, h: float(l <= x <= h), lambda x, l, h: float(x < l), lambda x, l, h: float(x > h and x >= l)),
    ),
    "mix": Builtin(
        "rrr", lambda x, y, s: x + (y - x) * s, (lambda x, y, s: 1 - s, lambda x, y, s: s, lambda x, y, s: y - x)
    ),
    "smoothstep": Builtin("rrr", smoothstep, smoothstep_partials()),
    "degrees": Builtin("r", math.degrees, (lambda x: 180 / _PI,)),
    "radians": Builtin("r", math.radians, (lambda x: _PI / 180,)),
    "ldexp": Builtin("ri", lambda x, n: x * power(2.0, n), (lambda x, n: power(2.0, n),)),
    "sqr": Builtin("r", lambda x: x * x, (lambda x: 2 * x,)),
    "quarter_power": Builtin("ri", lambda x, n: power(x, n / 4), (lambda x, n: n / 4 * power(x, n / 4 - 1),)),
    "step": Builtin("rr", lambda edge, x: float(x >= edge), _ZERO),
    "sign": Builtin("r", sign, _ZERO),
    "floor": Builtin("r", lambda x: float(math.floor(x)), _ZERO),
    "ceil": Builtin("r", lambda x: float(math.ceil(x)), _ZERO),
    "round": Builtin("r", c_round, _ZERO),
    "rint": Builtin("r", lambda x: float(round(x)), _ZERO),
    "trunc": Builtin("r", lambda x: float(math.trunc(x)), _ZERO),
    "isnan": Builtin("r", lambda x: int(math.isnan(x)), _ZERO, "int"),
    "isinf": Builtin("r", lambda x: int(math.isinf(x)), _ZERO, "int"),
    "isfinite": Builtin("r", lambda x: int(math.isfinite(x)), _ZERO, "int"),
    "signbit": Builtin("r", lambda x: int(math.copysign(1.0, x) < 0), _ZERO, "int"),
    "logb": Builtin("r", lambda x: float(math.frexp(x)[1] - 1), None),
    "nextafter": Builtin("rr", lambda x, y: math.nextafter(x, y), None),
    "abs": Builtin("i", abs, _ZERO, "int"),
    "max": Builtin("ii", max, _ZERO, "int"),
    "min": Builtin("ii", min, _ZERO, "int"),
}

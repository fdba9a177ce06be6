"""The functions a physics may call: their canonical names, PETSc's names for them, values and partial derivatives.

The canonical names are those of OpenCL C. A function is differentiated through the functions `d0_NAME`, `d1_NAME`, … of
kernels_cl/petsc.clh (argument number in the name; the arguments, then a direction); the Python partial derivatives here are
written apart from them, for the interpreter, so that the two check one another.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass


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


def sign(x: float) -> float:
    """Sign of x, 0 at 0."""
    return math.copysign(1.0, x) if x != 0 and x == x else 0.0


def power(x: float, y: float) -> float:
    """C's pow, without Python's exceptions."""
    try:
        return math.pow(x, y)
    except OverflowError:
        return math.inf if x > 0 or y % 2 == 0 else -math.inf
    except ValueError:
        return math.inf if x == 0 else math.nan


def _inverse(x: float) -> float:
    return math.copysign(math.inf, x) if x == 0 else 1.0 / x


def _log(function: Callable) -> Callable:
    return lambda x: -math.inf if x == 0 else function(x)


def _cbrt(x: float) -> float:
    return math.copysign(abs(x) ** (1.0 / 3.0), x)


def _rootn(x: float, n: int) -> float:
    return -power(-x, 1.0 / n) if x < 0 and n % 2 else power(x, 1.0 / n)


def _c_round(x: float) -> float:
    return math.copysign(math.floor(abs(x) + 0.5), x)


def _smoothstep(low: float, high: float, x: float) -> float:
    s = min(max((x - low) / (high - low), 0.0), 1.0)
    return s * s * (3 - 2 * s)


def _smoothstep_partials() -> tuple:
    def slope(low, high, x):
        s = (x - low) / (high - low)
        return 6 * s * (1 - s) / (high - low) if 0 < s < 1 else 0.0

    return (
        lambda low, high, x: -slope(low, high, x) * (high - x) / (high - low),
        lambda low, high, x: -slope(low, high, x) * (x - low) / (high - low),
        slope,
    )


def digamma(x: float) -> float:
    """Derivative of lgamma, by reflection, recurrence and the asymptotic series (Abramowitz and Stegun 6.3.7, 6.3.5, 6.3.18)."""
    if x <= 0:
        return math.nan if x == math.floor(x) else digamma(1 - x) - math.pi / math.tan(math.pi * x)
    shift = 0.0
    while x < 10:
        shift -= 1 / x
        x += 1
    w = 1 / (x * x)
    series = w * (1 / 12 - w * (1 / 120 - w * (1 / 252 - w * (1 / 240 - w * (1 / 132 - w * (691 / 32760 - w / 12))))))
    return shift + math.log(x) - 0.5 / x - series


def _first_wins(better: Callable) -> tuple:
    """Partial derivatives of a function that returns one of its two arguments: the first if better(x, y)."""
    return lambda x, y: float(better(x, y)), lambda x, y: float(not better(x, y))


def _erf_slope(x: float) -> float:
    return 2 / math.sqrt(math.pi) * math.exp(-x * x)


_PI = math.pi
_ZERO = ()

BUILTINS: dict[str, Builtin] = {
    "exp": Builtin("r", math.exp, (math.exp,)),
    "exp2": Builtin("r", lambda x: power(2.0, x), (lambda x: math.log(2) * power(2.0, x),)),
    "exp10": Builtin("r", lambda x: power(10.0, x), (lambda x: math.log(10) * power(10.0, x),)),
    "expm1": Builtin("r", math.expm1, (math.exp,)),
    "log": Builtin("r", _log(math.log), (_inverse,)),
    "log2": Builtin("r", _log(math.log2), (lambda x: _inverse(x) / math.log(2),)),
    "log10": Builtin("r", _log(math.log10), (lambda x: _inverse(x) / math.log(10),)),
    "log1p": Builtin("r", math.log1p, (lambda x: _inverse(1 + x),)),
    "pow": Builtin(
        "rr", power, (lambda x, y: y and y * power(x, y - 1), lambda x, y: power(x, y) * math.log(x) if x else 0.0)
    ),
    "powr": Builtin(
        "rr", power, (lambda x, y: y and y * power(x, y - 1), lambda x, y: power(x, y) * math.log(x) if x else 0.0)
    ),
    "pown": Builtin("ri", power, (lambda x, n: n and n * power(x, n - 1),)),
    "rootn": Builtin("ri", _rootn, (lambda x, n: _rootn(x, n) * _inverse(n * x),)),
    "sqrt": Builtin("r", math.sqrt, (lambda x: 0.5 * _inverse(math.sqrt(x)),)),
    "cbrt": Builtin("r", _cbrt, (lambda x: _inverse(3 * _cbrt(x) ** 2),)),
    "rsqrt": Builtin("r", lambda x: _inverse(math.sqrt(x)), (lambda x: -0.5 * _inverse(x * math.sqrt(x)),)),
    "hypot": Builtin(
        "rr", math.hypot, (lambda x, y: x and x / math.hypot(x, y), lambda x, y: y and y / math.hypot(x, y))
    ),
    "sin": Builtin("r", math.sin, (math.cos,)),
    "cos": Builtin("r", math.cos, (lambda x: -math.sin(x),)),
    "tan": Builtin("r", math.tan, (lambda x: 1 + math.tan(x) ** 2,)),
    "asin": Builtin("r", math.asin, (lambda x: _inverse(math.sqrt(1 - x * x)),)),
    "acos": Builtin("r", math.acos, (lambda x: -_inverse(math.sqrt(1 - x * x)),)),
    "atan": Builtin("r", math.atan, (lambda x: 1 / (1 + x * x),)),
    "atan2": Builtin(
        "rr",
        math.atan2,
        (
            lambda y, x: x * _inverse(x * x + y * y) if x else 0.0,
            lambda y, x: -y * _inverse(x * x + y * y) if y else 0.0,
        ),
    ),
    "sinpi": Builtin("r", lambda x: math.sin(_PI * x), (lambda x: _PI * math.cos(_PI * x),)),
    "cospi": Builtin("r", lambda x: math.cos(_PI * x), (lambda x: -_PI * math.sin(_PI * x),)),
    "tanpi": Builtin("r", lambda x: math.tan(_PI * x), (lambda x: _PI * (1 + math.tan(_PI * x) ** 2),)),
    "asinpi": Builtin("r", lambda x: math.asin(x) / _PI, (lambda x: _inverse(_PI * math.sqrt(1 - x * x)),)),
    "acospi": Builtin("r", lambda x: math.acos(x) / _PI, (lambda x: -_inverse(_PI * math.sqrt(1 - x * x)),)),
    "atanpi": Builtin("r", lambda x: math.atan(x) / _PI, (lambda x: 1 / (_PI * (1 + x * x)),)),
    "sinh": Builtin("r", math.sinh, (math.cosh,)),
    "cosh": Builtin("r", math.cosh, (math.sinh,)),
    "tanh": Builtin("r", math.tanh, (lambda x: 1 - math.tanh(x) ** 2,)),
    "asinh": Builtin("r", math.asinh, (lambda x: 1 / math.sqrt(1 + x * x),)),
    "acosh": Builtin("r", math.acosh, (lambda x: _inverse(math.sqrt(x * x - 1)),)),
    "atanh": Builtin("r", math.atanh, (lambda x: _inverse(1 - x * x),)),
    "erf": Builtin("r", math.erf, (_erf_slope,)),
    "erfc": Builtin("r", math.erfc, (lambda x: -_erf_slope(x),)),
    "tgamma": Builtin("r", math.gamma, (lambda x: math.gamma(x) * digamma(x),)),
    "lgamma": Builtin("r", math.lgamma, (digamma,)),
    "fabs": Builtin("r", abs, (sign,)),
    "fmax": Builtin("rr", lambda x, y: x if x >= y or y != y else y, _first_wins(lambda x, y: x >= y)),
    "fmin": Builtin("rr", lambda x, y: x if x <= y or y != y else y, _first_wins(lambda x, y: x <= y)),
    "maxmag": Builtin("rr", lambda x, y: x if abs(x) > abs(y) else y, _first_wins(lambda x, y: abs(x) > abs(y))),
    "minmag": Builtin("rr", lambda x, y: x if abs(x) < abs(y) else y, _first_wins(lambda x, y: abs(x) < abs(y))),
    "fdim": Builtin("rr", lambda x, y: max(x - y, 0.0), (lambda x, y: float(x > y), lambda x, y: -float(x > y))),
    "fma": Builtin("rrr", lambda x, y, z: x * y + z, (lambda x, y, z: y, lambda x, y, z: x, lambda x, y, z: 1.0)),
    "mad": Builtin("rrr", lambda x, y, z: x * y + z, (lambda x, y, z: y, lambda x, y, z: x, lambda x, y, z: 1.0)),
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
    "smoothstep": Builtin("rrr", _smoothstep, _smoothstep_partials()),
    "degrees": Builtin("r", math.degrees, (lambda x: 180 / _PI,)),
    "radians": Builtin("r", math.radians, (lambda x: _PI / 180,)),
    "ldexp": Builtin("ri", lambda x, n: x * power(2.0, n), (lambda x, n: power(2.0, n),)),
    "sqr": Builtin("r", lambda x: x * x, (lambda x: 2 * x,)),
    "step": Builtin("rr", lambda edge, x: float(x >= edge), _ZERO),
    "sign": Builtin("r", sign, _ZERO),
    "floor": Builtin("r", lambda x: float(math.floor(x)), _ZERO),
    "ceil": Builtin("r", lambda x: float(math.ceil(x)), _ZERO),
    "round": Builtin("r", _c_round, _ZERO),
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

# Functions of OpenCL C that write through pointers, or belong to vectors.
NOT_OFFERED = {
    "frexp": "it writes through a pointer; use ldexp and logb",
    "modf": "it writes through a pointer; use trunc(x) and x - trunc(x)",
    "fract": "it writes through a pointer; use x - floor(x)",
    "sincos": "it writes through a pointer; use sin and cos",
    "remquo": "it writes through a pointer; use remainder",
    "lgamma_r": "it writes through a pointer; use lgamma",
    "printf": "a physics cannot print",
    "PetscPrintf": "a physics cannot print",
    "rand": "a physics must give the same value each time",
}

_PETSC_STEMS = {
    "Sqrt": "sqrt", "Cbrt": "cbrt", "Exp": "exp", "Log": "log", "Log2": "log2", "Log10": "log10", "Pow": "pow",
    "Sin": "sin", "Cos": "cos", "Tan": "tan", "Asin": "asin", "Acos": "acos", "Atan": "atan", "Atan2": "atan2",
    "Sinh": "sinh", "Cosh": "cosh", "Tanh": "tanh", "Asinh": "asinh", "Acosh": "acosh", "Atanh": "atanh",
    "Abs": "fabs", "Ceil": "ceil", "Floor": "floor", "Round": "round", "Trunc": "trunc", "Fmod": "fmod", "Hypot": "hypot",
    "Erf": "erf", "Erfc": "erfc", "TGamma": "tgamma", "LGamma": "lgamma", "CopySign": "copysign", "Copysign": "copysign",
    "Sign": "sign", "Max": "fmax", "Min": "fmin", "Fma": "fma",
}  # fmt: skip
ALIASES = {f"Petsc{stem}{kind}": name for stem, name in _PETSC_STEMS.items() for kind in ("Real", "Scalar")}
ALIASES |= {
    "PetscSqr": "sqr", "PetscPowRealInt": "pown", "PetscPowScalarInt": "pown", "PetscPowScalarReal": "pow", "PetscClipInterval": "clamp",
    "PetscIsNanReal": "isnan", "PetscIsInfReal": "isinf", "PetscIsInfOrNanReal": "isinf", "PetscIsNanScalar": "isnan",
    "PetscAbsInt": "abs", "PetscMaxInt": "max", "PetscMinInt": "min",
}  # fmt: skip
# PETSc's macros that take integers as well as reals: the function for all integers, the function otherwise.
GENERIC = {
    "PetscMax": ("max", "fmax"),
    "PetscMin": ("min", "fmin"),
    "PetscAbs": ("abs", "fabs"),
    "max": ("max", "fmax"),
    "min": ("min", "fmin"),
}
# Functions that return their argument, since a PetscScalar is real here, or zero.
IDENTITIES = frozenset({"PetscRealPart", "PetscConj", "PetscRealPartComponent"})

CONSTANTS = {
    "PETSC_PI": "3.1415926535897932384626433832795029",
    "PETSC_PHI": "1.6180339887498948482045868343656381",
    "PETSC_SQRT2": "1.4142135623730950488016887242096981",
    "M_PI": "3.1415926535897932384626433832795029",
    "M_PI_2": "1.5707963267948966192313216916397514",
    "M_PI_4": "0.78539816339744830961566084581987572",
    "M_1_PI": "0.31830988618379067153776752674502872",
    "M_2_PI": "0.63661977236758134307553505349005745",
    "M_E": "2.7182818284590452353602874713526625",
    "M_LN2": "0.69314718055994530941723212145817657",
    "M_LN10": "2.3025850929940456840179914546843642",
    "M_LOG2E": "1.4426950408889634073599246810018921",
    "M_LOG10E": "0.43429448190325182765112891891660508",
    "M_SQRT2": "1.4142135623730950488016887242096981",
    "M_SQRT1_2": "0.70710678118654752440084436210484904",
}
INT_CONSTANTS = {"PETSC_TRUE": 1, "PETSC_FALSE": 0, "PETSC_SUCCESS": 0, "true": 1, "false": 0}
# Constants whose value depends on the precision; petsc.clh defines them.
PRECISION_CONSTANTS = {
    "PETSC_MACHINE_EPSILON": 2.0**-52,
    "PETSC_SQRT_MACHINE_EPSILON": 2.0**-26,
    "PETSC_SMALL": 1e-10,
    "PETSC_MAX_REAL": 1.7976931348623157e308,
    "PETSC_MIN_REAL": -1.7976931348623157e308,
    "PETSC_INFINITY": 4.4942328371557893e307,
    "PETSC_NINFINITY": -4.4942328371557893e307,
}


def canonical(name: str) -> str | None:
    """Canonical name of a built-in called `name` (PETSc's, OpenCL's or C's `sinf`), or None."""
    if name in ALIASES:
        return ALIASES[name]
    if name in BUILTINS:
        return name
    return name[:-1] if name.endswith("f") and name[:-1] in BUILTINS else None


def known_functions() -> list[str]:
    """Every name a physics may call."""
    return sorted({*BUILTINS, *ALIASES, *GENERIC, *IDENTITIES})

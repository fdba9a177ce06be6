"""Operators and elementary functions as C computes them: infinities and NaN instead of Python's exceptions."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable


def truncated(a: int, b: int) -> int:
    """Quotient of integers, rounded towards zero; 0 if b is 0, where C has no value."""
    return 0 if b == 0 else -(-a // b) if (a < 0) != (b < 0) else a // b


def wrapped(value: int) -> int:
    """The integer of 32 bits that has the last bits of `value`."""
    return (value + 2**31) % 2**32 - 2**31


# Binary operators of integers; those of reals but for the division, which is a function of dual.py.
OPERATORS: dict[str, Callable] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": truncated,
    "%": lambda a, b: a - b * truncated(a, b),
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": lambda a, b: wrapped(a << (b & 31)),  # by as many bits as OpenCL C says
    ">>": lambda a, b: a >> (b & 31),
    "&&": lambda a, b: bool(a and b),
    "||": lambda a, b: bool(a or b),
}


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


def inverse(x: float) -> float:
    return math.copysign(math.inf, x) if x == 0 else 1.0 / x


def zero_log(function: Callable) -> Callable:
    return lambda x: -math.inf if x == 0 else function(x)


def cbrt(x: float) -> float:
    return math.copysign(abs(x) ** (1.0 / 3.0), x)


def rootn(x: float, n: int) -> float:
    return -power(-x, 1.0 / n) if x < 0 and n % 2 else power(x, 1.0 / n)


def c_round(x: float) -> float:
    return math.copysign(math.floor(abs(x) + 0.5), x)


def smoothstep(low: float, high: float, x: float) -> float:
    s = min(max((x - low) / (high - low), 0.0), 1.0)
    return s * s * (3 - 2 * s)


def smoothstep_partials() -> tuple:
    def slope(low, high, x):
        s = (x - low) / (high - low)
        return 6 * s * (1 - s) / (high - low) if 0 < s < 1 else 0.0

    return (
        lambda low, high, x: -slope(low, high, x) * (high - x) / (high - low),
        lambda low, high, x: -slope(low, high, x) * (x - low) / (high - low),
        slope,
    )


def digamma(x: float) -> float:
    """Derivative of lgamma, by reflection, recurrence and the asymptotic series (Abramowitz and Stegun 6.3.7, 6.3.5,
    6.3.18).
    """
    if x <= 0:
        return math.nan if x == math.floor(x) else digamma(1 - x) - math.pi / math.tan(math.pi * x)
    shift = 0.0
    while x < 10:
        shift -= 1 / x
        x += 1
    w = 1 / (x * x)
    series = w * (1 / 12 - w * (1 / 120 - w * (1 / 252 - w * (1 / 240 - w * (1 / 132 - w * (691 / 32760 - w / 12))))))
    return shift + math.log(x) - 0.5 / x - series


def first_wins(better: Callable) -> tuple:
    """Partial derivatives of a function that returns one of its two arguments: the first if better(x, y)."""
    return lambda x, y: float(better(x, y)), lambda x, y: float(not better(x, y))


def erf_slope(x: float) -> float:
    return 2 / math.sqrt(math.pi) * math.exp(-x * x)

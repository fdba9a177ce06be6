"""Numbers that carry a directional derivative, for the interpreter; directions may be several at once."""

from __future__ import annotations

import math

import numpy as np

from petsc_hdg.physics.functions import BUILTINS


class Dual:
    """value + rate·ε with ε² = 0; `rate` is an array [direction]."""

    __slots__ = ("value", "rate")

    def __init__(self, value: float, rate: np.ndarray):
        self.value, self.rate = value, rate

    def __add__(self, other):
        return Dual(self.value + value_of(other), self.rate + other.rate if type(other) is Dual else self.rate)

    __radd__ = __add__

    def __sub__(self, other):
        return Dual(self.value - value_of(other), self.rate - other.rate if type(other) is Dual else self.rate)

    def __rsub__(self, other):
        return Dual(other - self.value, -self.rate)

    def __mul__(self, other):
        if type(other) is Dual:
            return Dual(self.value * other.value, self.rate * other.value + self.value * other.rate)
        return Dual(self.value * other, self.rate * other)

    __rmul__ = __mul__

    def __neg__(self):
        return Dual(-self.value, -self.rate)

    def __pos__(self):
        return self

    def __bool__(self):
        return self.value != 0

    def __lt__(self, other):
        return self.value < value_of(other)

    def __gt__(self, other):
        return self.value > value_of(other)

    def __le__(self, other):
        return self.value <= value_of(other)

    def __ge__(self, other):
        return self.value >= value_of(other)

    def __eq__(self, other):
        return self.value == value_of(other)

    def __ne__(self, other):
        return self.value != value_of(other)

    __hash__ = None


def value_of(number) -> float:
    """The value of a number or a Dual."""
    return number.value if type(number) is Dual else number


def divide(left, right):
    """left / right as in C: no exception for a zero."""
    if type(left) is not Dual and type(right) is not Dual:
        return _quotient(left, right)
    top, bottom = value_of(left), value_of(right)
    inverse, value = _quotient(1.0, bottom), _quotient(top, bottom)
    rate = _scaled(inverse, left.rate) if type(left) is Dual else 0.0
    if type(right) is Dual:
        rate = rate - _scaled(value * inverse, right.rate)
    return Dual(value, rate)


def _quotient(top: float, bottom: float) -> float:
    try:
        return top / bottom
    except ZeroDivisionError:
        if top == 0 or math.isnan(top):
            return math.nan
        return math.copysign(math.inf, top) * math.copysign(1.0, bottom)


def _scaled(factor: float, rate: np.ndarray) -> np.ndarray:
    """factor * rate, and 0 where the rate is 0 even if the factor is infinite."""
    return factor * rate if math.isfinite(factor) else np.where(rate == 0, 0.0, factor * np.where(rate == 0, 1.0, rate))


def _safely(function, *arguments: float):
    try:
        return function(*arguments)
    except OverflowError:
        return math.inf
    except (ValueError, ZeroDivisionError):
        return math.nan


def call(name: str, *arguments):
    """Built-in function `name` of numbers and Duals."""
    if name not in BUILTINS:
        return _partial(name, *arguments)
    row = BUILTINS[name]
    values = [value_of(argument) for argument in arguments]
    value = _safely(row.value, *values)
    if not row.partials or not any(type(argument) is Dual for argument in arguments):
        return value
    rate = 0.0
    for argument, partial in zip(arguments, row.partials, strict=False):
        if type(argument) is Dual:
            rate = rate + _scaled(_safely(partial, *values), argument.rate)
    return Dual(value, rate)


def _partial(name: str, *arguments):
    """A function of derivatives, such as d0_pow: a partial derivative times the last argument. Duals come to the others
    where `differentiate` takes them, in d0_sqr."""
    *at, rate = arguments
    return rate * _safely(BUILTINS[name[3:]].partials[int(name[1])], *at)

"""Checked expressions as Python closures that check array bounds and reads of unset variables."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics.elementary import OPERATORS
from petsc_hdg.physics.interpreter.dual import call, divide, value_of
from petsc_hdg.physics.lowering.names import PRECISION_CONSTANTS
from petsc_hdg.physics.tree import ir
from petsc_hdg.physics.tree.ir import INT, REAL, Function
from petsc_hdg.physics.tree.specialise import outside

UNSET = object()


class OutOfBounds(PhysicsError):
    """An index is outside its array, or a divisor is 0. `data_dependent`: it was computed from real numbers."""

    data_dependent = False


class View:
    """An array, or a pointer into one: element i is data[start + i]."""

    __slots__ = ("data", "start")

    def __init__(self, data: list, start: int = 0):
        self.data, self.start = data, start


class ExpressionClosures:
    """Compiles the expressions of one function into closures of the frame, a list of variables.

    A closure returns a number, a Dual or a View. `known` holds the compiled helpers.
    """

    def __init__(self, function: Function, known: Mapping[str, Callable], dim: int):
        self.function, self.source, self.known, self.dim = function, function.origin, known, dim
        self.slots: dict[str, int] = {}
        self.line = function.line
        scalars = [node.name for node in ir.walk(*function.body) if isinstance(node, ir.Ref) and node.offset is None]
        self.boxed = frozenset(scalars)
        self.from_reals = _ints_from_reals(function.body)

    def _slot(self, name: str) -> int:
        return self.slots.setdefault(name, len(self.slots) + 1)

    def expression(self, node) -> Callable:
        """The value of an expression."""
        return getattr(self, f"_of_{type(node).__name__.lower()}")(node)

    def _of_num(self, node: ir.Num) -> Callable:
        value = node.value
        return lambda frame: value

    def _of_name(self, node: ir.Name) -> Callable:
        if node.name in PRECISION_CONSTANTS:
            value = PRECISION_CONSTANTS[node.name]
            return lambda frame: value
        slot, unset, boxed = self._slot(node.name), self._unset(node.name), node.name in self.boxed

        def read(frame):
            value = frame[slot]
            if boxed and value is not UNSET:
                value = value.data[value.start]
            if value is UNSET:
                raise unset()
            return value

        return read

    def _unset(self, name: str, line: int | None = None) -> Callable:
        place = line or self.line
        return lambda of="": self.source.error(place, f"'{name.rstrip('_')}{of}' is read before it is set")

    def _of_element(self, node: ir.Element) -> Callable:
        where, unset, slot = self._where(node), self._unset(node.name, node.line), self._slot(node.name)

        def read(frame):
            data, index = where(frame)
            value = data[index]
            if value is UNSET:
                raise unset("" if node.bounds else f"[{index - frame[slot].start}]")
            return value

        return read

    def _where(self, node: ir.Element) -> Callable:
        """The list and the position of an element, checked."""
        slot, index = self._slot(node.name), self.expression(node.index)
        checks = [(self.expression(part), extent.value) for part, extent in node.bounds if isinstance(extent, ir.Num)]
        used = ir.names_used(node.index)
        tainted = bool(used & self.from_reals) or _has_cast(node.index)

        def where(frame):
            view = frame[slot]
            position = view.start + index(frame)
            if not 0 <= position < len(view.data):
                raise self._out(node, position - view.start, len(view.data) - view.start, tainted)
            for part, extent in checks:
                if not 0 <= part(frame) < extent:
                    raise self._out(node, part(frame), extent, tainted)
            return view.data, position

        return where

    def _out(self, node: ir.Element, index: int, size: int, tainted: bool) -> OutOfBounds:
        error = OutOfBounds(str(self.source.error(node.line, outside(node.said or node.name, index, size, self.dim))))
        error.data_dependent = tainted
        return error

    def _of_unary(self, node: ir.Unary) -> Callable:
        operand = self.expression(node.operand)
        if node.op == "!":
            return lambda frame: int(not operand(frame))
        if node.op == "(int)":
            return lambda frame: _to_int(value_of(operand(frame)))
        if node.op == "(real)":
            return lambda frame: float(operand(frame))
        function = {"-": operator.neg, "+": operator.pos, "~": operator.invert}[node.op]
        return lambda frame: function(operand(frame))

    def _of_binary(self, node: ir.Binary) -> Callable:
        left, right = self.expression(node.left), self.expression(node.right)
        if node.op == "&&":
            return lambda frame: int(bool(left(frame)) and bool(right(frame)))
        if node.op == "||":
            return lambda frame: int(bool(left(frame)) or bool(right(frame)))
        if node.op in "/%" and node.type == INT:
            return self._divided(node, left, right)
        function = divide if node.op == "/" and node.type == REAL else OPERATORS[node.op]
        return lambda frame: function(left(frame), right(frame))

    def _divided(self, node: ir.Binary, left: Callable, right: Callable) -> Callable:
        """A division of integers, checked."""
        function, line = OPERATORS[node.op], self.line

        def value(frame):
            divisor = right(frame)
            if divisor == 0:
                error = OutOfBounds(str(self.source.error(line, f"an integer is divided ({node.op}) by 0")))
                error.data_dependent = True
                raise error
            return function(left(frame), divisor)

        return value

    def _of_select(self, node: ir.Select) -> Callable:
        condition, then, other = (
            self.expression(node.condition),
            self.expression(node.then),
            self.expression(node.other),
        )
        return lambda frame: then(frame) if condition(frame) else other(frame)

    def _of_call(self, node: ir.Call) -> Callable:
        arguments, name = [self.expression(argument) for argument in node.arguments], node.function
        return lambda frame: call(name, *[argument(frame) for argument in arguments])

    def _of_helpercall(self, node: ir.HelperCall) -> Callable:
        arguments, function = [self.expression(argument) for argument in node.arguments], self.known[node.function]
        return lambda frame: function(*[argument(frame) for argument in arguments])

    def _of_ref(self, node: ir.Ref) -> Callable:
        slot = self._slot(node.name)
        if node.offset is None:
            return lambda frame: frame[slot]
        offset = self.expression(node.offset)
        return lambda frame: View(frame[slot].data, frame[slot].start + offset(frame))


def _to_int(value: float) -> int:
    return int(value) if -(2**31) <= value < 2**31 else -(2**31)  # C leaves the others open; so do most processors


def _has_cast(node) -> bool:
    return any(isinstance(part, ir.Unary) and part.op == "(int)" for part in ir.walk(node))


def _ints_from_reals(body: tuple) -> frozenset:
    """Integer variables whose value may come from a real one."""
    found: set[str] = set()
    size = -1
    while size != len(found):
        size = len(found)
        for node in ir.walk(*body):
            name = (
                node.target.name
                if isinstance(node, ir.Assign)
                else node.symbol.name
                if isinstance(node, ir.Declare)
                else None
            )
            value = node.value if isinstance(node, ir.Assign) else getattr(node, "init", None)
            if name and value is not None and (_has_cast(value) or ir.names_used(value) & found):
                found.add(name)
    return frozenset(found)

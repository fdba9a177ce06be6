"""Checked functions as Python closures: a scalar interpreter that checks array bounds and reads of unset variables."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics import ir
from petsc_hdg.physics.dual import call, divide, value_of
from petsc_hdg.physics.functions import PRECISION_CONSTANTS
from petsc_hdg.physics.ir import INT, REAL, Function
from petsc_hdg.physics.specialise import outside

UNSET = object()
_BREAK, _CONTINUE, _RETURN = object(), object(), object()
_MOST_TURNS = 10_000_000


class EndlessLoop(PhysicsError):
    """A loop has turned too often to end."""


class OutOfBounds(PhysicsError):
    """An index is outside its array. `data_dependent`: it was computed from real numbers."""

    data_dependent = False


class View:
    """An array, or a pointer into one: element i is data[start + i]."""

    __slots__ = ("data", "start")

    def __init__(self, data: list, start: int = 0):
        self.data, self.start = data, start


def _logical(op: str) -> Callable:
    return (lambda a, b: int(bool(a) and bool(b))) if op == "&&" else (lambda a, b: int(bool(a) or bool(b)))


def _int_divide(a: int, b: int) -> int:
    return 0 if b == 0 else int(a / b) if abs(a) < 2**52 else -(-a // b) if (a < 0) != (b < 0) else a // b


_OPS = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge,
    "==": operator.eq, "!=": operator.ne, "&": operator.and_, "|": operator.or_, "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift,
    "%": lambda a, b: a - b * _int_divide(a, b),
}  # fmt: skip


class Closures:
    """Compiles one function. `known` holds the compiled helpers; `most_turns` bounds every loop."""

    def __init__(
        self,
        function: Function,
        known: Mapping[str, Callable],
        dim: int,
        arrays: Mapping,
        most_turns: int = _MOST_TURNS,
    ):
        self.function, self.source, self.known, self.dim, self.arrays = function, function.origin, known, dim, arrays
        self.most_turns = most_turns
        self.slots: dict[str, int] = {}
        self.line = function.line
        scalars = [node.name for node in ir.walk(*function.body) if isinstance(node, ir.Ref) and node.offset is None]
        self.boxed = frozenset(scalars)
        self.from_reals = _ints_from_reals(function.body)
        self.first = {name: View(list(values)) for name, values in arrays.items()}

    def compile(self) -> Callable:
        """The function as a callable of its parameters (floats, ints, Views), returning its result."""
        positions = [self._slot(parameter.name) for parameter in self.function.parameters]
        boxed = [parameter.name in self.boxed for parameter in self.function.parameters]
        fixed = [(self._slot(name), view) for name, view in self.first.items()]
        body = self.block(self.function.body)
        count = len(self.slots) + 1

        def run(*arguments):
            frame = [UNSET] * count
            for slot, view in fixed:
                frame[slot] = view
            for slot, box, argument in zip(positions, boxed, arguments, strict=False):
                frame[slot] = View([argument]) if box else argument
            return frame[0] if body(frame) is _RETURN else None

        return run

    def _slot(self, name: str) -> int:
        return self.slots.setdefault(name, len(self.slots) + 1)

    # Statements: closures of the frame that return None or how they left.

    def block(self, statements: tuple) -> Callable:
        """Statements one after another."""
        codes = [self._statement(statement) for statement in statements]

        def run(frame):
            for code in codes:
                left = code(frame)
                if left is not None:
                    return left
            return None

        return run

    def _statement(self, node) -> Callable:
        self.line = node.line
        return getattr(self, f"_{type(node).__name__.lower()}")(node)

    def _declare(self, node: ir.Declare) -> Callable:
        symbol, slot = node.symbol, self._slot(node.symbol.name)
        if symbol.extents:
            return self._declare_array(node, slot, symbol.extents[0].value)
        value = self._stored(node.init, symbol.type) if node.init is not None else lambda frame: UNSET
        if symbol.name in self.boxed:
            return lambda frame: frame.__setitem__(slot, View([value(frame)]))
        return lambda frame: frame.__setitem__(slot, value(frame))

    def _declare_array(self, node: ir.Declare, slot: int, size: int) -> Callable:
        if node.init is None:
            return lambda frame: frame.__setitem__(slot, View([UNSET] * size))
        values = [self._stored(value, node.symbol.type) for value in node.init]
        rest = [0.0 if node.symbol.type == REAL else 0] * (size - len(values))
        return lambda frame: frame.__setitem__(slot, View([value(frame) for value in values] + rest))

    def _stored(self, node, kind: str) -> Callable:
        value = self.expression(node)
        return (lambda frame: float(value(frame))) if kind == REAL and node.type == INT else value

    def _alias(self, node: ir.Alias) -> Callable:
        target, slot = self.expression(node.target), self._slot(node.symbol.name)
        return lambda frame: frame.__setitem__(slot, target(frame))

    def _assign(self, node: ir.Assign) -> Callable:
        value = node.value
        if node.op != "=":
            target_type = node.target.type
            value = ir.Binary(node.op[:-1], node.target, value, REAL if REAL in (target_type, value.type) else INT)
        new = self._stored(value, node.target.type)
        if isinstance(node.target, ir.Element):
            where = self._where(node.target)

            def run(frame):
                value = new(frame)
                data, index = where(frame)
                data[index] = value

            return run
        slot = self._slot(node.target.name)
        if node.target.name in self.boxed:
            return lambda frame: frame[slot].data.__setitem__(frame[slot].start, new(frame))
        return lambda frame: frame.__setitem__(slot, new(frame))

    def _invoke(self, node: ir.Invoke) -> Callable:
        code = self.expression(node.call)

        def run(frame):
            code(frame)

        return run

    def _if(self, node: ir.If) -> Callable:
        condition, then, other = self.expression(node.condition), self.block(node.then), self.block(node.other)
        return lambda frame: then(frame) if condition(frame) else other(frame)

    def _loop(self, node: ir.Loop) -> Callable:
        condition = self.expression(node.condition) if node.condition is not None else lambda frame: True
        step, body, first, most, error = (
            self.block(node.step),
            self.block(node.body),
            node.test_last,
            self.most_turns,
            self._endless(node),
        )

        def run(frame):
            turns = 0
            while (first and turns == 0) or condition(frame):
                left = body(frame)
                if left is _BREAK:
                    break
                if left is _RETURN:
                    return left
                step(frame)
                turns += 1
                if turns > most:
                    raise error()
            return None

        return run

    def _endless(self, node: ir.Loop) -> Callable:
        return lambda: EndlessLoop(
            str(self.source.error(node.line, f"this loop did not end after {self.most_turns} turns"))
        )

    def _jump(self, node: ir.Jump) -> Callable:
        left = _BREAK if node.word == "break" else _CONTINUE
        return lambda frame: left

    def _return(self, node: ir.Return) -> Callable:
        if node.value is None:
            return lambda frame: _RETURN
        value = self._stored(node.value, self.function.result)

        def run(frame):
            frame[0] = value(frame)
            return _RETURN

        return run

    # Expressions: closures of the frame that return a number, a Dual or a View.

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
        return lambda: self.source.error(place, f"'{name.rstrip('_')}' is read before it is set")

    def _of_element(self, node: ir.Element) -> Callable:
        where, unset = self._where(node), self._unset(node.name, node.line)

        def read(frame):
            data, index = where(frame)
            value = data[index]
            if value is UNSET:
                raise unset()
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
        error = OutOfBounds(str(self.source.error(node.line, outside(node.name, index, size, self.dim))))
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
        if node.op == "/":
            function = divide if node.type == REAL else _int_divide
        else:
            function = _OPS[node.op]
        return lambda frame: function(left(frame), right(frame))

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
    try:
        return int(value)
    except (ValueError, OverflowError):
        return -(2**31)


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

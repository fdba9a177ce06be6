"""Checked functions as Python functions, which check array bounds, reads of unset variables and that loops end."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics.elementary import OPERATORS
from petsc_hdg.physics.interpreter.dual import call, divide, value_of
from petsc_hdg.physics.lowering.names import PRECISION_CONSTANTS
from petsc_hdg.physics.text.source import Source
from petsc_hdg.physics.tree import ir
from petsc_hdg.physics.tree.ir import INT, MOST_TURNS, REAL, Function, is_bounded
from petsc_hdg.physics.tree.specialise import outside

UNSET = object()
_MOST_TURNS = 10_000_000


class EndlessLoop(PhysicsError):
    """A loop has turned too often to end. `bounded`: it would end, as its text tells."""

    bounded = False


class OutOfBounds(PhysicsError):
    """An index is outside its array, or a divisor is 0. `data_dependent`: it was computed from real numbers."""

    data_dependent = False


class View:
    """An array, or a pointer into one: element i is data[start + i]. A scalar whose address is taken is one of 1."""

    __slots__ = ("data", "start")

    def __init__(self, data: list, start: int = 0):
        self.data, self.start = data, start


@dataclass(frozen=True)
class _Place:
    """Where a variable is used, for messages. `tainted`: an index there may come from real numbers."""

    source: Source
    line: int
    name: str = ""
    dim: int = 0
    tainted: bool = True

    def unset(self, of: str = "") -> PhysicsError:
        return self.source.error(self.line, f"'{self.name.rstrip('_')}{of}' is read before it is set")

    def outside(self, index: int, size: int) -> OutOfBounds:
        return self.out_of_bounds(outside(self.name, index, size, self.dim))

    def out_of_bounds(self, message: str) -> OutOfBounds:
        error = OutOfBounds(str(self.source.error(self.line, message)))
        error.data_dependent = self.tainted
        return error

    def endless(self, most: int, bounded: bool) -> EndlessLoop:
        error = EndlessLoop(str(self.source.error(self.line, f"this loop did not end after {most} turns")))
        error.bounded = bounded
        return error


# What translated functions call, by names that no variable has -------------------------------------------------------


def _known(value, place: _Place):
    """The value of a variable. Raises PhysicsError where it is not set."""
    if value is UNSET:
        raise place.unset()
    return value


def _position(view: View, index: int, place: _Place, bounds: tuple) -> int:
    position = view.start + index
    if not 0 <= position < len(view.data):
        raise place.outside(index, len(view.data) - view.start)
    for part, extent in bounds:
        if not 0 <= part < extent:
            raise place.outside(part, extent)
    return position


def _element(view: View, index: int, place: _Place, *bounds: tuple):
    value = view.data[_position(view, index, place, bounds)]
    if value is UNSET:
        raise place.unset("" if bounds else f"[{index}]")
    return value


def _store(value, view: View, index: int, place: _Place, *bounds: tuple) -> None:
    view.data[_position(view, index, place, bounds)] = value


def _divided(op: str, left: int, right: int, place: _Place) -> int:
    if right == 0:
        raise place.out_of_bounds(f"an integer is divided ({op}) by 0")
    return OPERATORS[op](left, right)


def _turns(most: int, place: _Place, bounded: bool) -> Iterator[int]:
    yield from range(most + 1)
    raise place.endless(most, bounded)


def _to_int(value) -> int:
    value = value_of(value)
    return int(value) if -(2**31) <= value < 2**31 else -(2**31)  # C leaves the others open; so do most processors


_RUNTIME: dict[str, Any] = OPERATORS | {
    "-x": operator.neg,
    "+x": operator.pos,
    "~x": operator.invert,
    "!x": lambda x: int(not x),
    "(int)x": _to_int,
    "(real)x": float,
    "0 != x": lambda x: int(bool(x)),
    "divide()": divide,
    "divided()": _divided,
    "call()": call,
    "known()": _known,
    "boxed()": lambda view, place: _known(view.data[view.start], place),
    "element()": _element,
    "store()": _store,
    "turns()": _turns,
    "view()": View,
    "array()": lambda size: View([UNSET] * size),
    "pointer()": lambda view, offset: View(view.data, view.start + offset),
    "UNSET()": UNSET,
}


class Translation:
    """Python's tree of one function. `known` are the compiled helpers, `arrays` the values of uOff, …; `most_turns`
    bounds loops that are not counted.

    Its variables are numbers, Duals and Views.
    """

    def __init__(self, function: Function, known: Mapping, dim: int, arrays: Mapping, most_turns: int = _MOST_TURNS):
        self.function, self.dim, self.most_turns = function, dim, most_turns
        self.names = _RUNTIME | {f"{name} helper": helper for name, helper in known.items()}
        self.names |= {name: View(list(values)) for name, values in arrays.items()}
        self.line, self.steps = function.line, [()]
        nodes = list(ir.walk(*function.body))
        self.boxed = {node.name for node in nodes if isinstance(node, ir.Ref) and node.offset is None}
        self.unset = {node.symbol.name for node in nodes if isinstance(node, ir.Declare) and node.init is None}
        self.from_reals = _ints_from_reals(nodes)

    def compile(self) -> Callable:
        """The function as a callable of its parameters (floats, ints, Views), returning its result."""
        parameters = [parameter.name for parameter in self.function.parameters]
        boxes = [_set(name, self._box(_get(name))) for name in parameters if name in self.boxed]
        arguments = ast.arguments([], [ast.arg(_id(name)) for name in parameters], None, [], [], None, [])
        body = [*boxes, *self.block(self.function.body)] or [ast.Pass()]
        tree = ast.Module([ast.FunctionDef("run", arguments, body, [])], [])
        try:
            code = compile(ast.fix_missing_locations(tree), f"<{self.function.name}>", "exec")
        except SyntaxError as error:
            message = "more than 20 loops are nested in one another; use a loop over a table"
            raise self.function.origin.error(self.function.line, message) from error
        return FunctionType(code.co_consts[0], {_id(name): value for name, value in self.names.items()})

    def _constant(self, value) -> ast.Name:
        """A value of any type."""
        name = f"constant {len(self.names)}"
        self.names[name] = value
        return _get(name)

    def _place(self, name: str = "", line: int = 0, tainted: bool = True) -> ast.Name:
        return self._constant(_Place(self.function.origin, line or self.line, name, self.dim, tainted))

    # Statements ------------------------------------------------------------------------------------------

    def block(self, statements: tuple) -> list:
        """Statements one after another."""
        return [made for statement in statements for made in self._statement(statement)]

    def _statement(self, node) -> list:
        self.line = node.line
        match node:
            case ir.Declare():
                return [self._declare(node)]
            case ir.Alias():
                return [_set(node.symbol.name, self.expression(node.target))]
            case ir.Assign():
                return [self._assign(node)]
            case ir.Invoke():
                return [ast.Expr(self.expression(node.call))]
            case ir.If():
                then, other = self.block(node.then) or [ast.Pass()], self.block(node.other)
                return [ast.If(self.expression(node.condition), then, other)]
            case ir.Loop():
                return [self._loop(node)]
            case ir.Jump():
                return [ast.Break()] if node.word == "break" else [*self.block(self.steps[-1]), ast.Continue()]
            case ir.Return():
                return [ast.Return(node.value and self._stored(node.value, self.function.result))]
        raise TypeError(type(node).__name__)

    def _declare(self, node: ir.Declare):
        symbol, given = node.symbol, node.init
        if not symbol.extents:
            value = _get("UNSET()") if given is None else self._stored(given, symbol.type)
            return _set(symbol.name, self._box(value) if symbol.name in self.boxed else value)
        size = symbol.extents[0].value
        if given is None:
            return _set(symbol.name, _call("array()", ast.Constant(size)))
        rest = [ast.Constant(0.0 if symbol.type == REAL else 0)] * (size - len(given))
        return _set(symbol.name, self._box(*(self._stored(value, symbol.type) for value in given), *rest))

    @staticmethod
    def _box(*values) -> ast.Call:
        return _call("view()", ast.List(list(values), ast.Load()))

    def _stored(self, node, kind: str | None):
        value = self.expression(node)
        return _call("(real)x", value) if kind == REAL and node.type == INT else value

    def _assign(self, node: ir.Assign):
        target, value = node.target, node.value
        if node.op != "=":
            value = ir.Binary(node.op[:-1], target, value, REAL if REAL in (target.type, value.type) else INT)
        new = self._stored(value, target.type)
        if isinstance(target, ir.Element) or target.name in self.boxed:
            return ast.Expr(_call("store()", new, *self._where(target)))
        return _set(target.name, new)

    def _loop(self, node: ir.Loop):
        bounded = is_bounded(node)
        most = self.most_turns if bounded else MOST_TURNS
        turns = _call("turns()", ast.Constant(most), self._place(), ast.Constant(bounded))
        leave = []
        if node.condition is not None:
            ends = _call("!x", self.expression(node.condition))
            first = ast.IfExp(_get("turn()"), ends, ast.Constant(0)) if node.test_last else ends
            leave = [ast.If(first, [ast.Break()], [])]
        self.steps.append(node.step)
        body = [*leave, *self.block(node.body), *self.block(node.step)] or [ast.Pass()]
        self.steps.pop()
        return ast.For(ast.Name(_id("turn()"), ast.Store()), turns, body, [])

    # Expressions -----------------------------------------------------------------------------------------

    def expression(self, node):
        """The value of an expression."""
        match node:
            case ir.Num():
                return ast.Constant(node.value)
            case ir.Name():
                return self._of_name(node)
            case ir.Element():
                return _call("element()", *self._where(node))
            case ir.Unary():
                return _call(f"{node.op}x", self.expression(node.operand))
            case ir.Binary():
                return self._of_binary(node)
            case ir.Select():
                return ast.IfExp(*map(self.expression, (node.condition, node.then, node.other)))
            case ir.Call():
                return _call("call()", ast.Constant(node.function), *map(self.expression, node.arguments))
            case ir.HelperCall():
                return _call(f"{node.function} helper", *map(self.expression, node.arguments))
            case ir.Ref():
                view = _get(node.name)
                return view if node.offset is None else _call("pointer()", view, self.expression(node.offset))
        raise TypeError(type(node).__name__)

    def _of_name(self, node: ir.Name):
        if node.name in PRECISION_CONSTANTS:
            return ast.Constant(PRECISION_CONSTANTS[node.name])
        if node.name in self.boxed:
            return _call("boxed()", _get(node.name), self._place(node.name))
        return _call("known()", _get(node.name), self._place(node.name)) if node.name in self.unset else _get(node.name)

    def _where(self, node: ir.Element | ir.Name) -> tuple:
        """View, index, place and bounds of an element, or of a scalar whose address is taken."""
        if isinstance(node, ir.Name):
            return _get(node.name), ast.Constant(0), self._place(node.name)
        tainted = bool(ir.names_used(node.index) & self.from_reals) or _has_cast(node.index)
        bounds = [(self.expression(part), extent.value) for part, extent in node.bounds if isinstance(extent, ir.Num)]
        pairs = (ast.Tuple([part, ast.Constant(extent)], ast.Load()) for part, extent in bounds)
        place = self._place(node.said or node.name, node.line, tainted)
        return _get(node.name), self.expression(node.index), place, *pairs

    def _of_binary(self, node: ir.Binary):
        left, right = self.expression(node.left), self.expression(node.right)
        if node.op == "&&":
            return ast.IfExp(left, _call("0 != x", right), ast.Constant(0))
        if node.op == "||":
            return ast.IfExp(left, ast.Constant(1), _call("0 != x", right))
        if node.op in "/%" and node.type == INT:
            return _call("divided()", ast.Constant(node.op), left, right, self._place())
        return _call("divide()" if node.op == "/" else node.op, left, right)


def _id(name: str) -> str:
    return f"{name}'"  # so that the user's None is no constant


def _get(name: str) -> ast.Name:
    return ast.Name(_id(name), ast.Load())


def _set(name: str, value) -> ast.Assign:
    return ast.Assign([ast.Name(_id(name), ast.Store())], value)


def _call(name: str, *arguments) -> ast.Call:
    return ast.Call(_get(name), list(arguments), [])


def _has_cast(node) -> bool:
    return any(isinstance(part, ir.Unary) and part.op == "(int)" for part in ir.walk(node))


def _ints_from_reals(nodes: list) -> set[str]:
    """Integer variables whose value may come from a real one."""
    assigned = [(node.target.name, node.value) for node in nodes if isinstance(node, ir.Assign)]
    assigned += [(node.symbol.name, node.init) for node in nodes if isinstance(node, ir.Declare) and node.init]
    found, size = set(), -1
    while size != len(found):
        size = len(found)
        found |= {name for name, value in assigned if _has_cast(value) or ir.names_used(value) & found}
    return found

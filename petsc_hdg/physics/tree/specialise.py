"""A checked function for one dimension: sizes become numbers, branches on them disappear, known indices are checked."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from dataclasses import dataclass, replace

from petsc_hdg.physics.elementary import OPERATORS
from petsc_hdg.physics.tree import ir
from petsc_hdg.physics.tree.ir import INT, Binary, Call, Element, Function, Name, Num, Program, Select, Unary
from petsc_hdg.value_checks import plural

MOST_QUARTERS = 64  # of an exponent, so that its derivatives are within the range of quarter_power in petsc.clh


@dataclass(frozen=True)
class Setting:
    """Sizes and inputs, known once the dimension is.

    ints    values of dim, Nf, NfAux, Nc, numConstants
    arrays  values of uOff, uOff_x, aOff, aOff_x
    sizes   number of elements of each input and output array
    """

    ints: Mapping[str, int]
    arrays: Mapping[str, tuple]
    sizes: Mapping[str, int]


def specialise(program: Program, setting: Setting) -> Program:
    """`program` with the numbers of `setting` put in."""
    helpers = tuple(_Specialiser(helper, setting, {}).run() for helper in program.helpers)
    main = _Specialiser(program.main, setting, setting.sizes).run()
    called = ir.functions_called(*main.body, *(helper.body for helper in helpers))
    return replace(program, main=main, helpers=tuple(helper for helper in helpers if helper.name in called))


def _int(value) -> Num:
    return Num(str(int(value)), INT)


def _power(node: Call):
    """A power by products and square roots, which are cheaper and at zero more accurate than pow, if the exponent is a
    known number of quarters.
    """
    base, exponent = node.arguments[0], _number(node.arguments[1])
    if exponent is None or not 0 < abs(4 * exponent) <= MOST_QUARTERS or 4 * exponent % 1:
        return node
    short = {2: "sqr", 0.5: "sqrt"}.get(exponent)
    if short:
        return Call(short, (base,), ir.REAL)
    return base if exponent == 1 else Call("quarter_power", (base, _int(4 * exponent)), ir.REAL)


def _number(node) -> float | None:
    """The value of an expression of literals, or None."""
    if isinstance(node, Num):
        return node.value
    if isinstance(node, Unary) and node.op in ("+", "-", "(real)"):
        value = _number(node.operand)
        return -value if value is not None and node.op == "-" else value
    if isinstance(node, Binary) and node.type == ir.REAL and node.op in "+-*/":
        left, right = _number(node.left), _number(node.right)
        if left is not None and right is not None and (right or node.op != "/"):
            return left / right if node.op == "/" else OPERATORS[node.op](left, right)
    return None


class _Specialiser:
    def __init__(self, function: Function, setting: Setting, sizes: Mapping[str, int]):
        self.function, self.source, self.setting = function, function.origin, setting
        self.ints = dict(setting.ints)
        self.sizes = {p.name: sizes[p.name] for p in function.parameters if p.name in sizes}
        written = [node.target for node in ir.walk(*function.body) if isinstance(node, ir.Assign)]
        passed = [node for node in ir.walk(*function.body) if isinstance(node, ir.Ref)]
        self.changing = {place.name for place in (*written, *passed)}

    def run(self) -> Function:
        return replace(self.function, body=self.block(self.function.body))

    def block(self, statements: tuple) -> tuple:
        return tuple(new for statement in statements for new in self.statement(statement))

    def statement(self, node) -> tuple:
        if isinstance(node, ir.Declare):
            return self._declare(node)
        if isinstance(node, ir.If):
            condition = self.fold(node.condition, node.line)
            if isinstance(condition, Num):
                return self.block(node.then if condition.value else node.other)
            return (ir.If(condition, self.block(node.then), self.block(node.other), node.line),)
        if isinstance(node, ir.Loop):
            condition = None if node.condition is None else self.fold(node.condition, node.line)
            if isinstance(condition, Num) and not condition.value and not node.test_last:
                return ()
            return (replace(node, condition=condition, step=self.block(node.step), body=self.block(node.body)),)
        return (ir.rebuild(node, lambda child: self.fold(child, node.line)),)

    def _declare(self, node: ir.Declare) -> tuple:
        symbol = node.symbol
        init = (
            tuple(self.fold(v, node.line) for v in node.init)
            if isinstance(node.init, tuple)
            else node.init and self.fold(node.init, node.line)
        )
        if not symbol.extents:
            if symbol.type == INT and isinstance(init, Num) and symbol.name not in self.changing:
                self.ints[symbol.name] = init.value
                return ()
            return (replace(node, init=init),)
        extents = tuple(self.fold(extent, node.line) for extent in symbol.extents)
        for extent in extents:
            if not isinstance(extent, Num) or extent.value < 1:
                name = symbol.name.rstrip("_")
                raise self.source.error(
                    node.line, f"the size of '{name}' must be a positive number known from dim and the fields"
                )
        size = math.prod(extent.value for extent in extents)
        if isinstance(init, tuple) and len(init) > size:
            raise self.source.error(
                node.line,
                f"'{symbol.name.rstrip('_')}' has {plural(size, 'element')} and is given {plural(len(init), 'value')}",
            )
        self.sizes[symbol.name] = size
        return (ir.Declare(replace(symbol, extents=(_int(size),)), init, node.line),)

    def fold(self, node, line: int):
        """`node` with known integers put in."""
        node = ir.rebuild(node, lambda child: self.fold(child, line))
        if isinstance(node, Name) and node.name in self.ints:
            return _int(self.ints[node.name])
        if isinstance(node, Element):
            return self._element(node)
        if isinstance(node, Binary) and node.left.type == node.right.type == INT:
            return self._binary(node, line)
        if isinstance(node, Unary) and isinstance(node.operand, Num) and node.operand.type == INT and node.op in "+-!":
            return _int({"+": operator.pos, "-": operator.neg, "!": operator.not_}[node.op](node.operand.value))
        if isinstance(node, Unary) and node.op == "(real)" and isinstance(node.operand, Num):
            return Num(f"{node.operand.value}.0", ir.REAL)
        if isinstance(node, Select) and isinstance(node.condition, Num):
            return node.then if node.condition.value else node.other
        if (
            isinstance(node, Call)
            and node.type == INT
            and all(isinstance(a, Num) and a.type == INT for a in node.arguments)
        ):
            return _int({"abs": abs, "max": max, "min": min}[node.function](*(a.value for a in node.arguments)))
        return _power(node) if isinstance(node, Call) and node.function in ("pow", "powr", "pown") else node

    def _binary(self, node: Binary, line: int):
        left, right = node.left, node.right
        if isinstance(left, Num) and isinstance(right, Num):
            if node.op in "/%" and right.value == 0:
                raise self.source.error(line, "an integer is divided by zero")
            return _int(OPERATORS[node.op](left.value, right.value))
        for one, other in ((left, right), (right, left)):
            if isinstance(one, Num):
                if node.op == "*" and one.value == 0:
                    return _int(0)
                if (node.op == "*" and one.value == 1) or (node.op == "+" and one.value == 0):
                    return other
        return node

    def _element(self, node: Element):
        if isinstance(node.index, Num) and node.name in self.setting.arrays:
            values = self.setting.arrays[node.name]
            self._check(node, node.index.value, len(values))
            return _int(values[node.index.value])
        for index, extent in node.bounds:
            if isinstance(index, Num) and isinstance(extent, Num):
                self._check(node, index.value, extent.value)
        if isinstance(node.index, Num) and node.name in self.sizes:
            self._check(node, node.index.value, self.sizes[node.name])
        return node

    def _check(self, node: Element, index: int, size: int) -> None:
        if not 0 <= index < size:
            raise self.source.error(node.line, outside(node.said or node.name, index, size, self.setting.ints["dim"]))


def outside(name: str, index: int, size: int, dim: int) -> str:
    """Say what is wrong with `index` into `name`."""
    if name in ("a", "a_x") and size == 0:
        start = f"{name}[{index}] is read, but the physics has no auxiliary fields; add them with auxiliary={{…}}"
        return f"{start}, and give a field that is called 'a', as PETSc's array of them, another name"
    if name == "constants" and size == 0:
        return f"constants[{index}] is read, but the physics has no constants; add them with constants={{…}}"
    return f"index {index} is outside {name.rstrip('_')}, which has {size} element(s) in {dim}D"

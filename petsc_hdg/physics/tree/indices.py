"""Indices and divisors that depend on data: accesses that may leave their array are guarded, so that no device reads
there, and so are divisions of integers that may be by zero, which end a process.

All that a function writes is no number after such an access or division, as if a loop did not end.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping
from dataclasses import replace
from math import inf, isnan

from petsc_hdg.physics.tree import ir
from petsc_hdg.physics.tree.derivative import derivative_name
from petsc_hdg.physics.tree.ir import INT, Binary, Element, Function, Name, Num, Select
from petsc_hdg.physics.tree.specialise import Setting
from petsc_hdg.physics.tree.turns import is_bounded

Range = tuple[float, float]  # the least and the greatest value of an integer
_UNKNOWN = (-inf, inf)
_ZERO = Num("0", INT)


def guarded(function: Function, setting: Setting) -> Function:
    """`function` with tests before what may leave an array whose size is known."""
    return replace(function, body=_Guard(function, setting).block(function.body))


class _Guard:
    def __init__(self, function: Function, setting: Setting):
        sizes = setting.sizes | {derivative_name(name): size for name, size in setting.sizes.items()}
        self.arrays: Mapping[str, tuple] = setting.arrays
        self.sizes = {p.name: sizes[p.name] for p in function.parameters if p.extents and p.name in sizes}
        self.sizes |= {name: len(values) for name, values in setting.arrays.items()}
        self.bases: dict[str, ir.Ref] = {}  # what a pointer points to
        steps = {id(step) for node in ir.walk(function.body) if isinstance(node, ir.Loop) for step in node.step}
        changing = _changed(*(n for n in ir.walk(function.body) if isinstance(n, ir.Assign) and id(n) not in steps))
        for node in ir.walk(function.body):
            if isinstance(node, ir.Declare) and node.symbol.extents:
                self.sizes[node.symbol.name] = node.symbol.extents[0].value
            elif isinstance(node, ir.Alias) and not ir.names_used(node.target.offset) & changing:
                self.bases[node.symbol.name] = node.target
        self.ranges: dict[str, Range] = {}

    def block(self, statements: tuple) -> tuple:
        return tuple(new for statement in statements for new in self.statement(statement))

    def statement(self, node) -> tuple:
        if isinstance(node, ir.Loop):
            return (self._loop(node),)
        if isinstance(node, ir.If):
            before = dict(self.ranges)
            tests, condition = self._tests(node.condition, node.line), self._reads(node.condition)
            then = self.block(node.then)
            self.ranges = before
            other = self.block(node.other)
            self._forget(node.then, node.other)
            return (*tests, ir.If(condition, then, other, node.line))
        tests, new = self._tests(node, node.line), node
        if isinstance(node, ir.Assign):
            target = node.target
            if isinstance(target, Element):
                target = replace(target, index=self._reads(target.index))
            new = replace(node, target=target, value=self._reads(node.value))
        elif not isinstance(node, ir.Alias):
            new = ir.rebuild(node, self._reads)
        self._learn(node)
        return (*tests, new)

    def _loop(self, node: ir.Loop) -> ir.Loop:
        counters = {name: self.ranges.get(name, _UNKNOWN) for name in _changed(node.step)}
        self._forget(node.body, node.step)
        condition, after = node.condition and self._reads(node.condition), dict(self.ranges)
        if is_bounded(node) and not node.test_last:
            self.ranges |= self._counted(node.condition, counters)
        body = self.block(node.body)
        self.ranges = after
        return replace(node, condition=condition, body=body)

    def _counted(self, condition, counters: dict[str, Range]) -> dict[str, Range]:
        """Ranges of counters inside a loop that counts towards a limit."""
        if not isinstance(condition, Binary):
            return {}
        if condition.op == "&&":
            return self._counted(condition.left, counters) | self._counted(condition.right, counters)
        first, limit = counters.get(getattr(condition.left, "name", None)), self.range(condition.right)
        ends = {"<": (0, -1), "<=": (0, 0), ">": (1, 0), ">=": (0, 0)}.get(condition.op)
        if first is None or ends is None:
            return {}
        inside = (first[0], limit[1] + ends[1]) if condition.op.startswith("<") else (limit[0] + ends[0], first[1])
        return {condition.left.name: inside}

    def _learn(self, node) -> None:
        """Ranges after a statement."""
        self._forget((node,))
        if isinstance(node, ir.Assign) and node.op == "=" and isinstance(node.target, Name):
            self.ranges[node.target.name] = self.range(node.value)
        elif isinstance(node, ir.Declare) and node.symbol.type == INT and not node.symbol.extents and node.init:
            self.ranges[node.symbol.name] = self.range(node.init)

    def _forget(self, *statements) -> None:
        for name in _changed(*statements):
            self.ranges.pop(name, None)

    def range(self, node) -> Range:
        """Least and greatest value of an integer expression."""
        if isinstance(node, Num) and node.type == INT:
            return node.value, node.value
        if isinstance(node, Name):
            return self.ranges.get(node.name, _UNKNOWN)
        if isinstance(node, Element) and node.name in self.arrays and self._is_inside(node):
            return min(self.arrays[node.name]), max(self.arrays[node.name])
        if isinstance(node, Select):
            then, other = self.range(node.then), self.range(node.other)
            return min(then[0], other[0]), max(then[1], other[1])
        if isinstance(node, Binary) and node.op in "+-*%":
            return _combined(node.op, self.range(node.left), self.range(node.right))
        if isinstance(node, ir.Call) and node.function in ("min", "max"):
            pick = {"min": min, "max": max}[node.function]
            return tuple(pick(ends) for ends in zip(*map(self.range, node.arguments), strict=True))
        return _UNKNOWN

    def _place(self, name: str, index) -> tuple[str, object]:
        """The array behind a name that may be a pointer, and the index there."""
        while name in self.bases:
            base = self.bases[name]
            name, index = base.name, index if base.offset is None else Binary("+", base.offset, index, INT)
        return name, index

    def _is_inside(self, node: Element | ir.Ref) -> bool:
        """Whether an access stays in its array, or that array's size is unknown. An address may be that of an array
        without elements, such as a without auxiliary fields."""
        name, index = self._place(node.name, node.index if isinstance(node, Element) else node.offset)
        if name not in self.sizes or index is None or (isinstance(node, ir.Ref) and index == _ZERO):
            return True
        least, greatest = self.range(index)
        return least >= 0 and greatest < self.sizes[name]

    def _inside(self, node: Element | ir.Ref) -> Binary:
        """The test of an access."""
        name, index = self._place(node.name, node.index if isinstance(node, Element) else node.offset)
        limit = Num(str(self.sizes[name]), INT)
        return Binary("&&", Binary(">=", index, _ZERO, INT), Binary("<", index, limit, INT), INT)

    def _reads(self, node):
        """An expression whose reads are guarded where they may leave an array."""
        new = ir.rebuild(node, self._reads)
        if isinstance(node, Element) and not self._is_inside(node):
            return ir.Guarded(self._inside(new), new, node.type)
        if isinstance(node, Binary) and node.op in "/%" and node.type == INT and not self._divides(node.right):
            return ir.Guarded(_divisible(new.left, new.right), new, INT)
        return new

    def _divides(self, divisor) -> bool:
        """Return True if no value of the divisor is 0 or -1."""
        least, greatest = self.range(divisor)
        return least > 0 or greatest < -1

    def _tests(self, statement, line: int) -> tuple:
        """Tests before a statement, of what it writes and of addresses that it takes."""
        taken = [node for node in ir.walk(statement) if isinstance(node, ir.Ref)]
        if isinstance(statement, ir.Assign) and isinstance(statement.target, Element):
            taken.append(statement.target)
        outside = [ir.Unary("!", self._reads(self._inside(node)), INT) for node in taken if not self._is_inside(node)]
        if isinstance(statement, ir.Assign) and statement.op in ("/=", "%=") and statement.target.type == INT:
            value = self._reads(statement.value)
            wrong = [] if self._divides(statement.value) else [_divisible(statement.target, value)]
            outside += [ir.Unary("!", test, INT) for test in wrong]
        return tuple(ir.If(test, (ir.Fail(line),), (), line) for test in outside)


def _divisible(number, divisor) -> Binary:
    """Return the condition that the divisor is not 0, nor -1 under the least integer."""
    other = Binary("!=", divisor, Num("-1", INT), INT)
    fits = Binary("||", other, Binary(">", number, Num("-2147483647", INT), INT), INT)
    return Binary("&&", Binary("!=", divisor, _ZERO, INT), fits, INT)


def _combined(op: str, left: Range, right: Range) -> Range:
    """Range of an operation of two integers."""
    if op == "%":
        return (0, right[1] - 1) if left[0] >= 0 and right[0] > 0 else _UNKNOWN
    if op == "*" and inf in map(abs, left + right):
        return _UNKNOWN
    operate = {"+": operator.add, "-": operator.sub, "*": operator.mul}[op]
    ends = [operate(a, b) for a in left for b in right]
    return (min(ends), max(ends)) if not any(map(isnan, ends)) else _UNKNOWN


def _changed(*nodes) -> set[str]:
    """Names of scalars that statements change."""
    found = set()
    for node in ir.walk(*nodes):
        if isinstance(node, ir.Assign) and isinstance(node.target, Name):
            found.add(node.target.name)
        elif isinstance(node, ir.Ref) and node.offset is None:
            found.add(node.name)
        elif isinstance(node, ir.Declare):
            found.add(node.symbol.name)
    return found

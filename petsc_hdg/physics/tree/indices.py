"""Indices and divisors that depend on data: accesses that may leave their array are guarded, so that no device reads
there, and so are divisions of integers that may be by zero, which end a process.

All that a function writes is no number after such an access or division, as if a loop did not end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import inf, isnan

from petsc_hdg.physics.elementary import OPERATORS
from petsc_hdg.physics.tree import ir
from petsc_hdg.physics.tree.derivative import derivative_name
from petsc_hdg.physics.tree.ir import INT, OUTSIDE, Binary, Element, Function, Name, Num, Select, Symbol, is_bounded
from petsc_hdg.physics.tree.specialise import Setting

Range = tuple[float, float]  # the least and the greatest value of an integer
_UNKNOWN = (-inf, inf)
_ZERO = Num("0", INT)
_COMPARISONS = ("==", "!=", "<", "<=", ">", ">=")


def guarded(functions: Sequence[tuple[Function, Setting]]) -> list[Function]:
    """Functions with tests before what may leave an array whose size is known; those that they call stand before them.

    A called function does not know the sizes of its parameters: it has the numbers of elements that it needs as
    parameters more, and `outside`, in which it tells its caller that it failed.
    """
    calls = _Calls({function.name: function for function, _ in functions})
    for function, setting in reversed(functions):  # callers first, for the least sizes that they pass
        _Guard(function, setting, calls).block(function.body)
    calls.are_known = True
    return [_finished(function, setting, calls) for function, setting in functions]


def _finished(function: Function, setting: Setting, calls: _Calls) -> Function:
    guard = _Guard(function, setting, calls)
    new = replace(function, body=guard.block(function.body))
    if function.name not in calls.called:
        return new
    calls.sized[function.name] = [p.name for p in function.parameters if p.name in guard.used]
    more = tuple(Symbol(_size(name), INT) for name in calls.sized[function.name])
    if _may_fail(new):
        calls.failing.add(function.name)
        more += (Symbol(OUTSIDE, INT, (None,)),)
    return replace(new, parameters=new.parameters + more, outputs=new.outputs | {OUTSIDE})


def _may_fail(function: Function) -> bool:
    """Return True if a guarded function may leave an array, or have a loop that does not end, or call one that may."""
    return any(
        isinstance(node, (ir.Guarded, ir.Fail))
        or (isinstance(node, ir.Loop) and not is_bounded(node))
        or node == Name(OUTSIDE, INT)
        for node in ir.walk(function.body)
    )


def _size(parameter: str) -> str:
    """Name of the number of elements of a called function's parameter, which no name of the user's is."""
    return f"{parameter}size"


class _Calls:
    """Known properties of functions that others call.

    least   elements of an array parameter, by the function and its name: the least that a call passes
    ranges  of integer parameters, in all calls
    sized   names of the parameters whose sizes a function takes;   failing: functions that may fail
    """

    def __init__(self, functions: Mapping[str, Function]):
        self.functions = functions
        self.called = ir.functions_called(*(function.body for function in functions.values()))
        self.least: dict[tuple[str, str], float] = {}
        self.ranges: dict[tuple[str, str], Range] = {}
        self.sized: dict[str, list[str]] = {}
        self.failing: set[str] = set()
        self.are_known = False  # whether `sized` and `failing` are


class _Guard:
    """Guards one function. used: its array parameters whose size is needed."""

    def __init__(self, function: Function, setting: Setting, calls: _Calls):
        sizes = setting.sizes | {derivative_name(name): size for name, size in setting.sizes.items()}
        self.arrays: Mapping[str, tuple] = setting.arrays
        self.calls, self.used = calls, set()
        self.limits: dict[str, tuple[float, ir.Expr]] = {}  # of arrays: the least size, and the size
        for p in function.parameters:
            if p.extents and p.name in sizes:
                self._limit(p.name, sizes[p.name])
            elif p.extents:
                self.limits[p.name] = calls.least.get((function.name, p.name), 0), Name(_size(p.name), INT)
        for name, values in setting.arrays.items():
            self._limit(name, len(values))
        for node in ir.walk(function.body):
            if isinstance(node, ir.Declare) and node.symbol.extents:
                self._limit(node.symbol.name, node.symbol.extents[0].value)
        self.bases: dict[str, ir.Ref] = {}  # what a pointer points to
        numbers = [p.name for p in function.parameters if p.type == INT and not p.extents]
        self.ranges: dict[str, Range] = {name: calls.ranges.get((function.name, name), _UNKNOWN) for name in numbers}

    def _limit(self, name: str, size: int) -> None:
        self.limits[name] = size, Num(str(size), INT)

    def block(self, statements: tuple) -> tuple:
        return tuple(new for statement in statements for new in self.statement(statement))

    def statement(self, node) -> tuple:
        if isinstance(node, ir.Loop):
            return (self._loop(node),)
        if isinstance(node, ir.If):
            if (holds := self._decided(node.condition)) is not None:  # as in a function for 2 and 3 dimensions
                return self.block(node.then if holds else node.other)
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
        elif isinstance(node, ir.Alias):
            return (*tests, *self._pointer(node))
        else:
            new = ir.rebuild(node, self._reads)
        self._learn(node)
        return (*tests, new)

    def _pointer(self, node: ir.Alias) -> tuple:
        """A pointer, and before it where it begins, which stays as it is."""
        offset, before = node.target.offset, ()
        if offset is not None and not isinstance(offset, Num):
            at = Symbol(f"{node.symbol.name}at", INT)
            before, self.ranges[at.name] = (ir.Declare(at, self._reads(offset), node.line),), self.range(offset)
            node = replace(node, target=replace(node.target, offset=Name(at.name, INT)))
        self.bases[node.symbol.name] = node.target
        return (*before, node)

    def _decided(self, condition) -> bool | None:
        """Return True if a comparison of two integers whose values are known holds."""
        if not isinstance(condition, Binary) or condition.op not in _COMPARISONS or condition.left.type != INT:
            return None
        left, right = self.range(condition.left), self.range(condition.right)
        return OPERATORS[condition.op](left[0], right[0]) if left[0] == left[1] and right[0] == right[1] else None

    def _loop(self, node: ir.Loop) -> ir.Loop:
        counters = {name: self.ranges.get(name, _UNKNOWN) for name in _changed(node.step)}
        self._forget(node.body, node.step)
        condition, after = node.condition and self._reads(node.condition), dict(self.ranges)
        step = tuple(replace(each, value=self._reads(each.value)) for each in node.step)
        if is_bounded(node) and not node.test_last:
            self.ranges |= self._counted(node.condition, counters)
        body = self.block(node.body)
        self.ranges = after
        return replace(node, condition=condition, step=step, body=body)

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
        """True if an access stays in its array. An address may be that of an array without elements, such as a without
        auxiliary fields."""
        name, index = self._place(node.name, node.index if isinstance(node, Element) else node.offset)
        if name not in self.limits or index is None or (isinstance(node, ir.Ref) and index == _ZERO):
            return True
        least, greatest = self.range(index)
        return least >= 0 and greatest < self.limits[name][0]

    def _inside(self, node: Element | ir.Ref) -> Binary:
        """The test of an access."""
        name, index = self._place(node.name, node.index if isinstance(node, Element) else node.offset)
        return Binary("&&", Binary(">=", index, _ZERO, INT), Binary("<", index, self._end(name), INT), INT)

    def _end(self, name: str):
        """The size of an array."""
        self.used.add(name)
        return self.limits[name][1]

    def _reads(self, node):
        """An expression whose reads are guarded where they may leave an array."""
        new = ir.rebuild(node, self._reads)
        if isinstance(node, Element) and not self._is_inside(node):
            return ir.Guarded(self._inside(new), new, node.type)
        if isinstance(node, Binary) and node.op in "/%" and node.type == INT and not self._divides(node.right):
            return ir.Guarded(_divisible(new.left, new.right), new, INT)
        return self._call(new) if isinstance(node, ir.HelperCall) else new

    def _call(self, node: ir.HelperCall) -> ir.HelperCall:
        """A call with what the function takes more; at first, the sizes that it passes are noted."""
        calls = self.calls
        parameters = [p.name for p in calls.functions[node.function].parameters]
        passed = dict(zip(parameters, node.arguments, strict=False))
        if not calls.are_known:
            for name, value in passed.items():
                key = node.function, name
                if isinstance(value, ir.Ref):
                    calls.least[key] = min(calls.least.get(key, inf), self._least_rest(value))
                elif value.type == INT:
                    low, high = self.range(value)
                    least, greatest = calls.ranges.get(key, (low, high))
                    calls.ranges[key] = min(low, least), max(high, greatest)
            return node
        more = tuple(self._rest(passed[name]) for name in calls.sized[node.function])
        if node.function in calls.failing:
            more += (Name(OUTSIDE, INT),)
        return replace(node, arguments=node.arguments + more)

    def _rest(self, node: ir.Ref):
        """The number of elements from an address on."""
        name, index = self._place(node.name, node.offset)
        if name not in self.limits:
            return Num("1", INT)
        return self._end(name) if index in (None, _ZERO) else Binary("-", self._end(name), index, INT)

    def _least_rest(self, node: ir.Ref) -> float:
        """The least number of elements from an address on that stays in its array."""
        name, index = self._place(node.name, node.offset)
        if name not in self.limits:
            return 1  # a number by itself
        size, greatest = self.limits[name][0], 0 if index is None else self.range(index)[1]
        return size - greatest if greatest < size else min(size, 1)

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
    ends = [OPERATORS[op](a, b) for a in left for b in right]
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

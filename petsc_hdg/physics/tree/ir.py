"""The checked form of a user's function: a small tree with resolved names and types, free of C's declarations and
scopes.

Every consumer (C text, derivative, interpreter) reads this tree and never the C parser's. Arrays are flat here: an
element of a two-dimensional array carries the flattened index, row by row.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields, replace

from petsc_hdg.physics.text.source import Source
from petsc_hdg.physics.tree import ir

INT, REAL = "int", "real"
OUTSIDE = "outside"  # of device texts: an array [1] that tells whether a function failed, no name of the user's
MOST_TURNS = 100_000  # of a loop that is counted
_LEFT = {"<": "+=", "<=": "+=", ">": "-=", ">=": "-="}  # how the left side of a comparison counts towards the right one
_RIGHT = {"<": "-=", "<=": "-=", ">": "+=", ">=": "+="}


@dataclass(frozen=True)
class Num:
    """A literal; `text` is C."""

    text: str
    type: str

    @property
    def value(self) -> int | float:
        return int(self.text, 0) if self.type == INT else (float.fromhex if "0x" in self.text else float)(self.text)


@dataclass(frozen=True)
class Name:
    """A scalar variable."""

    name: str
    type: str


@dataclass(frozen=True)
class Element:
    """One element of array `name`; `index` is flat. `bounds` are (index, extent) pairs of each dimension that is
    known, `said` what the user called the array.
    """

    name: str
    index: Expr
    type: str
    line: int
    bounds: tuple = ()
    said: str = ""


@dataclass(frozen=True)
class Guarded:
    """An element that is read, or a division that is done, where `inside` holds; else the function ends as by Fail.
    Device texts alone have it."""

    inside: Expr
    element: Element | Binary
    type: str


@dataclass(frozen=True)
class Unary:
    """`op` is one of + - ! ~ (int) (real)."""

    op: str
    operand: Expr
    type: str


@dataclass(frozen=True)
class Binary:
    """An arithmetic, comparison, logical or bit operation of C."""

    op: str
    left: Expr
    right: Expr
    type: str


@dataclass(frozen=True)
class Select:
    """`condition ? then : other`."""

    condition: Expr
    then: Expr
    other: Expr
    type: str


@dataclass(frozen=True)
class Call:
    """A built-in function of functions.py, by its canonical name; in derivatives also one of petsc.clh (`d0_pow`)."""

    function: str
    arguments: tuple
    type: str


@dataclass(frozen=True)
class Ref:
    """The address of element `offset` of `name`, or of a scalar (offset None)."""

    name: str
    offset: Expr | None
    line: int


@dataclass(frozen=True)
class HelperCall:
    """A call of the user's helper function; arguments are expressions or Refs."""

    function: str
    arguments: tuple
    type: str
    line: int


Expr = Num | Name | Element | Guarded | Unary | Binary | Select | Call | HelperCall


@dataclass(frozen=True)
class Symbol:
    """A variable: `extents` is () for a scalar, the tuple of its sizes for an array (None where unknown, as in
    `a[]`).

    choice   of a pointer chosen by ?: the variable that holds the condition, and the two pointers; it is only read
    """

    name: str
    type: str
    extents: tuple = ()
    const: bool = False
    pointer: bool = False
    choice: tuple[Symbol, Symbol, Symbol] | None = None


@dataclass(frozen=True)
class Declare:
    """A local variable, without a value, with one, or with a tuple of values for an array."""

    symbol: Symbol
    init: Expr | tuple | None
    line: int


@dataclass(frozen=True)
class Alias:
    """A pointer bound once, at its declaration."""

    symbol: Symbol
    target: Ref
    line: int


@dataclass(frozen=True)
class Assign:
    """`target op value` with op one of = += -= *= /= %= and the bit operations."""

    target: Name | Element
    op: str
    value: Expr
    line: int


@dataclass(frozen=True)
class Invoke:
    """A helper function called for its effect on its arguments."""

    call: HelperCall
    line: int


@dataclass(frozen=True)
class If:
    condition: Expr
    then: tuple
    other: tuple
    line: int


@dataclass(frozen=True)
class Loop:
    """for (step may be empty), while, or do-while (test_last). What stands in a for's head before the first ;
    precedes the loop.
    """

    condition: Expr | None
    step: tuple
    body: tuple
    test_last: bool
    line: int


@dataclass(frozen=True)
class Jump:
    """break or continue."""

    word: str
    line: int


@dataclass(frozen=True)
class Return:
    value: Expr | None
    line: int


@dataclass(frozen=True)
class Fail:
    """The function ends, and all that it writes is no number; device texts alone have it."""

    line: int


@dataclass(frozen=True)
class Function:
    """One function. `origin` is the Source it came from, for messages; `outputs` are the parameters it writes.

    unused   positions among the arguments of a call in the user's text that `parameters` leaves out: pointers that the
             function does not read
    """

    name: str
    origin: object
    result: str | None
    parameters: tuple
    body: tuple
    line: int
    outputs: frozenset = frozenset()
    unused: frozenset = frozenset()


EXPRESSIONS = (Num, Name, Element, Guarded, Unary, Binary, Select, Call, Ref, HelperCall)
NODES = (*EXPRESSIONS, Declare, Alias, Assign, Invoke, If, Loop, Jump, Return, Fail)
# The fields of each kind of node that may hold nodes; a Symbol's extents are not entered.
_PARTS = {kind: tuple(f.name for f in fields(kind) if f.type not in ("str", "int", "bool", "Symbol")) for kind in NODES}


def children(node) -> list:
    """The nodes directly below `node`."""
    return _nodes([getattr(node, name) for name in _PARTS[type(node)]])


def _nodes(values) -> list:
    found: list = []
    for value in values:
        if type(value) in _PARTS:
            found.append(value)
        elif isinstance(value, tuple):
            found += _nodes(value)
    return found


def walk(*nodes) -> Iterator:
    """Every node at or below `nodes`, parents first; tuples are entered."""
    stack = _nodes(nodes)[::-1]
    while stack:
        node = stack.pop()
        yield node
        if _PARTS[type(node)]:
            stack += reversed(children(node))


def rebuild(node, change: Callable):
    """A copy of `node` with `change` applied to each node directly below it; `node` itself if nothing changes."""

    def changed(value):
        if type(value) in _PARTS:
            return change(value)
        if not isinstance(value, tuple):
            return value
        new = tuple([changed(entry) for entry in value])
        return value if all(map(operator.is_, new, value)) else new

    new = {}
    for name in _PARTS[type(node)]:
        value = getattr(node, name)
        made = changed(value)
        if made is not value:
            new[name] = made
    return replace(node, **new) if new else node


def names_used(*nodes) -> set[str]:
    """Names that are read, written or passed on at or below `nodes`."""
    return {node.name for node in walk(*nodes) if isinstance(node, (Name, Element, Ref))}


def functions_called(*nodes) -> set[str]:
    """Names of the user's helper functions called at or below `nodes`."""
    return {node.function for node in walk(*nodes) if isinstance(node, HelperCall)}


def called(main: Function, known: Mapping[str, Function]) -> tuple:
    """Functions that `main` calls, directly or not, in the order of those known: callees first."""
    needed, stack = set(), [main]
    while stack:
        new = functions_called(*stack.pop().body) - needed
        needed |= new
        stack += [known[name] for name in new]
    return tuple(function for name, function in known.items() if name in needed)


@dataclass(frozen=True)
class Program:
    """One pointwise function with every helper it calls, callees first. `source` is the text of the main function."""

    source: Source
    main: Function
    helpers: tuple = ()

    @property
    def inputs(self) -> frozenset:
        """Inputs that the main function uses (u, u_t, …, also dim and uOff)."""
        own = {parameter.name for parameter in self.main.parameters} - self.main.outputs
        return frozenset(ir.names_used(*self.main.body) & own)


def is_bounded(loop: Loop) -> bool:
    """True if `loop` counts an integer towards a limit that does not change, as `for (i = 0; i < n; ++i)` does."""
    inside = list(walk(loop.body, loop.step))
    changed = {node.target.name for node in inside if isinstance(node, Assign)}
    changed |= {node.name for node in inside if isinstance(node, Ref)}
    counted = [node for node in loop.step if isinstance(node.value, Num) and node.value.value > 0]
    counts = {node.target.name: node.op for node in counted if isinstance(node.target, Name)}
    in_body = {node.target.name for node in walk(loop.body) if isinstance(node, Assign)}

    def ends(condition) -> bool:
        if not isinstance(condition, Binary):
            return False
        if condition.op == "&&":
            return ends(condition.left) or ends(condition.right)
        left, right = condition.left, condition.right
        return (INT == left.type == right.type) and (
            reaches(left, right, _LEFT.get(condition.op)) or reaches(right, left, _RIGHT.get(condition.op))
        )

    def reaches(counter, limit, op: str | None) -> bool:
        name = getattr(counter, "name", None)
        once = sum(node.target.name == name for node in loop.step) == 1 and name not in in_body
        return (
            op is not None
            and isinstance(counter, Name)
            and counts.get(name) == op
            and once
            and not names_used(limit) & changed
            and not any(isinstance(node, Ref) and node.name == name for node in inside)
        )

    return ends(loop.condition)

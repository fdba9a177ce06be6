"""Deep expressions cut into local variables, so that every later pass, and the device's compiler, meets shallow ones.

A sum of 10⁴ terms is a tree 10⁴ deep. What is evaluated, and in which order, stays as it is: parts that C evaluates
under a condition are evaluated under the same one.
"""

from __future__ import annotations

from collections.abc import Callable

from petsc_hdg.physics.text.source import Source
from petsc_hdg.physics.tree import ir
from petsc_hdg.physics.tree.ir import INT, Binary, Name, Num, Select, Symbol, Unary

DEEPEST = 16
_MOST_BLOCKS = 100  # of blocks in one another
_ZERO = Num("0", INT)


def shallow(code: tuple, source: Source, fresh: Callable[[str], str]) -> tuple:
    """`code` without expressions deeper than DEEPEST; `fresh` makes names of variables."""
    code = _Cutter(source, fresh).block(code) if _is_deep(code) else code
    _check_blocks(code, source)
    return code


def _check_blocks(code: tuple, source: Source) -> None:
    """Refuse blocks that are nested too deep, which compilers of devices refuse as well."""
    level = list(code)
    for _ in range(_MOST_BLOCKS):
        level = [inner for node in level for inner in ir.children(node) if not isinstance(inner, ir.EXPRESSIONS)]
    if level:
        message = f"more than {_MOST_BLOCKS} blocks, branches or ?: are nested in one another"
        raise source.error(level[0].line, f"{message}; use a loop over a table")


def _is_deep(code: tuple) -> bool:
    """Return True if a path of expressions below `code` is longer than DEEPEST."""
    level = [node for node in ir.walk(*code) if not isinstance(node, ir.EXPRESSIONS)]
    for _ in range(DEEPEST + 1):
        level = [child for node in level for child in ir.children(node) if isinstance(child, ir.EXPRESSIONS)]
    return bool(level)


class _Cutter:
    """Cuts the expressions of statements; the parts' declarations go to `before`, a list of statements."""

    def __init__(self, source: Source, fresh: Callable[[str], str]):
        self.source, self.fresh, self.line = source, fresh, 0

    def block(self, statements: tuple) -> tuple:
        """Each statement after the declarations of its parts."""
        return tuple(new for statement in statements for new in self.statement(statement))

    def statement(self, node) -> tuple:
        """A statement after the declarations of its parts."""
        self.line, before = node.line, []
        if isinstance(node, ir.Loop):
            return (self._loop(node),)
        if isinstance(node, ir.If):
            condition = self.cut(node.condition, before)[0]
            return (*before, ir.If(condition, self.block(node.then), self.block(node.other), node.line))
        new = ir.rebuild(node, lambda child: self.cut(child, before)[0])
        return (*before, new)

    def _loop(self, node: ir.Loop) -> ir.Loop:
        """A loop whose condition has parts tests it at the start of its body."""
        before: list = []
        step = tuple(ir.rebuild(part, lambda child: self.cut(child, before)[0]) for part in node.step)
        fits = not before
        condition = None if node.condition is None else self.cut(node.condition, before)[0]
        if not fits or (before and node.test_last):
            message = f"the head of this loop nests deeper than {DEEPEST} operations"
            raise self.source.error(node.line, f"{message}; compute it in the loop's body")
        body = self.block(node.body)
        if before:
            leave = ir.If(Unary("!", condition, INT), (ir.Jump("break", node.line),), (), node.line)
            condition, body = None, (*before, leave, *body)
        return ir.Loop(condition, step, body, node.test_last, node.line)

    def cut(self, node, before: list) -> tuple:
        """(expression, its depth)."""
        depths = [0]

        def change(child, place: list = before):
            new, depth = self.cut(child, place)
            depths.append(depth)
            return new

        if isinstance(node, Select):
            then, other = [], []
            new = Select(change(node.condition), change(node.then, then), change(node.other, other), node.type)
            if then or other:
                return self._chosen(new, then, other, before), 1
        elif isinstance(node, Binary) and node.op in ("&&", "||"):
            later: list = []
            new = Binary(node.op, change(node.left), change(node.right, later), INT)
            if later:
                return self._tested(new, later, before), 1
        else:
            new = ir.rebuild(node, change)
        depth = 1 + max(depths)
        if depth < DEEPEST or not getattr(new, "type", ""):
            return new, depth
        return self._declared(new.type, new, before), 1

    def _declared(self, kind: str, value, before: list) -> Name:
        symbol = Symbol(self.fresh("part"), kind)
        before.append(ir.Declare(symbol, value, self.line))
        return Name(symbol.name, kind)

    def _chosen(self, node: Select, then: list, other: list, before: list) -> Name:
        name = self._declared(node.type, None, before)
        first, second = (ir.Assign(name, "=", value, self.line) for value in (node.then, node.other))
        before.append(ir.If(node.condition, (*then, first), (*other, second), self.line))
        return name

    def _tested(self, node: Binary, later: list, before: list) -> Name:
        name = self._declared(INT, Binary("!=", node.left, _ZERO, INT), before)
        second = ir.Assign(name, "=", Binary("!=", node.right, _ZERO, INT), self.line)
        before.append(ir.If(name if node.op == "&&" else Unary("!", name, INT), (*later, second), (), self.line))
        return name

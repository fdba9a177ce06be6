"""Checked functions as Python closures: a scalar interpreter of statements."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics.interpreter.expression_closures import UNSET, ExpressionClosures, View
from petsc_hdg.physics.tree import ir
from petsc_hdg.physics.tree.ir import INT, MOST_TURNS, REAL, Function, is_bounded

_BREAK, _CONTINUE, _RETURN = object(), object(), object()
_MOST_TURNS = 10_000_000


class EndlessLoop(PhysicsError):
    """A loop has turned too often to end. `bounded`: it would end, as its text tells."""

    bounded = False


class Closures(ExpressionClosures):
    """Compiles one function. `arrays` are the values of uOff, …; `most_turns` bounds loops that are not counted."""

    def __init__(
        self,
        function: Function,
        known: Mapping[str, Callable],
        dim: int,
        arrays: Mapping,
        most_turns: int = _MOST_TURNS,
    ):
        super().__init__(function, known, dim)
        self.most_turns = most_turns
        self.fixed = {name: View(list(values)) for name, values in arrays.items()}

    def compile(self) -> Callable:
        """The function as a callable of its parameters (floats, ints, Views), returning its result."""
        positions = [self._slot(parameter.name) for parameter in self.function.parameters]
        boxed = [parameter.name in self.boxed for parameter in self.function.parameters]
        fixed = [(self._slot(name), view) for name, view in self.fixed.items()]
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
            self.most_turns if is_bounded(node) else MOST_TURNS,
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
        bounded = is_bounded(node)
        most = self.most_turns if bounded else MOST_TURNS

        def error() -> EndlessLoop:
            made = EndlessLoop(str(self.source.error(node.line, f"this loop did not end after {most} turns")))
            made.bounded = bounded
            return made

        return error

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

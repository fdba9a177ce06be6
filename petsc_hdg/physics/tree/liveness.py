"""Outputs and inputs of a function, and the function without statements that nothing needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from petsc_hdg.physics.tree import ir
from petsc_hdg.physics.tree.ir import Function


def roots(code: tuple) -> Callable[[str], str]:
    """The map from a name to the array it points into (itself, but for pointers)."""
    targets = {node.symbol.name: node.target.name for node in ir.walk(*code) if isinstance(node, ir.Alias)}

    def root(name: str) -> str:
        while name in targets:
            name = targets[name]
        return name

    return root


def written(code: tuple, helpers: Mapping[str, Function]) -> set[str]:
    """Names that `code` writes to, also through pointers and helpers."""
    root = roots(code)
    found = {root(node.target.name) for node in ir.walk(*code) if isinstance(node, ir.Assign)}
    for call in (node for node in ir.walk(*code) if isinstance(node, ir.HelperCall)):
        found |= {root(name) for name in written_by(call, helpers)}
    return found


def written_by(call: ir.HelperCall, helpers: Mapping[str, Function]) -> set[str]:
    """Names whose elements a call of a helper writes."""
    function = helpers[call.function]
    pairs = zip(function.parameters, call.arguments, strict=False)
    given = (argument for parameter, argument in pairs if parameter.name in function.outputs)
    return {argument.name for argument in given if isinstance(argument, ir.Ref)}


def prune(function: Function, wanted: set[str], helpers: Mapping[str, Function]) -> Function:
    """`function` without the statements that serve neither `wanted` (arrays it writes) nor its result."""
    pruner = _Pruner(function, wanted, helpers)
    while pruner.grow():
        pass
    body = pruner.keep(function.body)
    while body and body[-1] == ir.Return(None, body[-1].line):
        body = body[:-1]
    outputs = written(body, helpers) & {parameter.name for parameter in function.parameters if parameter.extents}
    return replace(function, body=body, outputs=frozenset(outputs))


class _Pruner:
    def __init__(self, function: Function, wanted: set[str], helpers: Mapping[str, Function]):
        self.function, self.helpers, self.live = function, helpers, set(wanted)
        self.root = roots(function.body)
        self.kept: set[int] = set()

    def grow(self) -> bool:
        """Mark once more; whether anything became live."""
        before = len(self.live), len(self.kept)
        self._mark(self.function.body, False)
        return (len(self.live), len(self.kept)) != before

    def keep(self, statements: tuple) -> tuple:
        """The statements that are live."""
        result = []
        for node in statements:
            if isinstance(node, (ir.Declare, ir.Alias)):
                if node.symbol.name in self.live:
                    result.append(node)
            elif id(node) in self.kept:
                result.append(self._keep_inside(node))
        return tuple(result)

    def _keep_inside(self, node):
        if isinstance(node, ir.If):
            return replace(node, then=self.keep(node.then), other=self.keep(node.other))
        if isinstance(node, ir.Loop):
            return replace(node, step=self.keep(node.step), body=self.keep(node.body))
        return node

    def _need(self, *nodes) -> None:
        for name in ir.names_used(*nodes):
            self.live |= {name, self.root(name)}

    def _mark(self, statements: tuple, jumps: bool) -> bool:
        """Mark the live statements among `statements`; whether there is one besides jumps. `jumps`: keep break and
        continue.
        """
        marks = [self._mark_one(node, jumps) for node in reversed(statements)]  # what they need stands before them
        return any(marks)

    def _mark_one(self, node, jumps: bool) -> bool:
        alive = self._is_alive(node, jumps)
        if alive or (isinstance(node, ir.Jump) and jumps):
            self.kept.add(id(node))
        return alive

    def _is_alive(self, node, jumps: bool) -> bool:
        match node:
            case ir.If():
                return self._if(node, jumps)
            case ir.Loop():
                return self._loop(node)
            case ir.Declare() if node.symbol.name in self.live:
                self._need(*(node.init if isinstance(node.init, tuple) else (node.init,)))
                return True
            case ir.Alias() if node.symbol.name in self.live:
                self._need(node.target)
            case ir.Assign() if self.root(node.target.name) in self.live:
                self._need(node.value, node.target)
                return True
            case ir.Invoke() if self.live.intersection(map(self.root, written_by(node.call, self.helpers))):
                self._need(node.call)
                return True
            case ir.Return():
                self._need(node.value)
                return True
        return False

    def _if(self, node: ir.If, jumps: bool) -> bool:
        then, other = self._mark(node.then, jumps), self._mark(node.other, jumps)
        if jumps and any(isinstance(inner, ir.Jump) for inner in ir.walk(node.then, node.other)):
            self.kept.add(id(node))
            self._need(node.condition)
        if then or other:
            self._need(node.condition)
        return then or other

    def _loop(self, node: ir.Loop) -> bool:
        body, step = self._mark(node.body, False), self._mark(node.step, False)
        if body or step:
            self._mark(node.body, True)
            self._need(node.condition)
        return body or step

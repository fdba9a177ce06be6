"""Variables that carry a derivative: those that depend on an active input, whatever path is taken."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property

from petsc_hdg.physics.functions import BUILTINS
from petsc_hdg.physics.tree import ir
from petsc_hdg.physics.tree.ir import REAL, Function
from petsc_hdg.physics.tree.liveness import roots


class Activity:
    """Activity of the variables of one function, for a set of active parameters.

    names   active variables, arrays as a whole (names of arrays, never of pointers into them)
    result  whether the returned value is active
    """

    def __init__(self, function: Function, active: frozenset, helpers: Mapping[str, Function], cache: dict):
        self.function, self.helpers, self.cache = function, helpers, cache
        self.root = roots(function.body)
        self.names, self.result = set(active), False
        before = None
        while before != (len(self.names), self.result):
            before = len(self.names), self.result
            for node in ir.walk(*function.body):
                self._visit(node)

    def is_active(self, name: str) -> bool:
        """Return True if variable or pointer `name` carries a derivative."""
        return self.root(name) in self.names

    def depends(self, node) -> bool:
        """Return True if the value of an expression is active."""
        match node:
            case None | ir.Num():
                return False
            case ir.Name() | ir.Element() | ir.Ref():
                return self.is_active(node.name)
            case ir.Select():
                return node.type == REAL and (self.depends(node.then) or self.depends(node.other))
            case ir.Call():
                return node.type == REAL and not _is_flat(node) and any(map(self.depends, node.arguments))
            case ir.HelperCall():
                return node.type == REAL and self.summary(node).result
        return node.type == REAL and any(self.depends(child) for child in ir.children(node))

    @cached_property
    def has_jumps(self) -> bool:
        """True if an active value is compared, rounded or converted to an integer, which no derivative shows."""
        for node in ir.walk(*self.function.body):
            if isinstance(node, (ir.If, ir.Loop, ir.Select)) and self.depends(node.condition):
                return True
            if isinstance(node, ir.HelperCall) and self.summary(node).has_jumps:
                return True
            flat = _is_flat(node) if isinstance(node, ir.Call) else isinstance(node, (ir.Unary, ir.Binary))
            if flat and not self.depends(node) and any(map(self.depends, ir.children(node))):
                return True
        return False

    def mask(self, call: ir.HelperCall) -> frozenset:
        """Names of the parameters that are active in a call."""
        parameters = self.helpers[call.function].parameters
        return frozenset(
            p.name
            for p, argument in zip(parameters, call.arguments, strict=False)
            if p.type == REAL and self.depends(argument)
        )

    def summary(self, call: ir.HelperCall) -> Activity:
        """Activity inside the helper that `call` calls."""
        key = call.function, self.mask(call)
        if key not in self.cache:
            self.cache[key] = Activity(self.helpers[call.function], key[1], self.helpers, self.cache)
        return self.cache[key]

    def _visit(self, node) -> None:
        if isinstance(node, ir.Declare) and node.symbol.type == REAL:
            values = node.init if isinstance(node.init, tuple) else (node.init,)
            if any(map(self.depends, values)):
                self.names.add(node.symbol.name)
        elif isinstance(node, ir.Assign) and node.target.type == REAL and self.depends(node.value):
            self.names.add(self.root(node.target.name))
        elif isinstance(node, ir.Return):
            self.result = self.result or self.depends(node.value)
        elif isinstance(node, ir.HelperCall):
            inside = self.summary(node).names
            for parameter, argument in zip(self.helpers[node.function].parameters, node.arguments, strict=False):
                if isinstance(argument, ir.Ref) and parameter.name in inside:
                    self.names.add(self.root(argument.name))


def _is_flat(call: ir.Call) -> bool:
    """True if a built-in function has no derivative but zero."""
    return call.function in BUILTINS and BUILTINS[call.function].partials == ()


def has_jumps(program, active: frozenset) -> bool:
    """True if the values of a Program may jump where inputs of `active` pass a bound, as those of floor(u) do."""
    helpers = {helper.name: helper for helper in program.helpers}
    return Activity(program.main, frozenset(active) & program.inputs, helpers, {}).has_jumps

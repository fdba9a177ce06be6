"""Forward-mode differentiation of checked functions: source transformation, exact on the path taken.

The derivative of a statement stands before it and uses the values from before it. Variables that no active input
reaches have no derivative, and what neither the derivative nor its control flow needs is left out. Source: A.
Griewank, A. Walther, Evaluating Derivatives, 2nd ed., SIAM 2008, chapters 3 and 6.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property

from petsc_hdg.physics.functions import BUILTINS
from petsc_hdg.physics.tree import ir
from petsc_hdg.physics.tree.ir import INT, REAL, Binary, Call, Function, Name, Num, Ref, Select, Symbol, Unary
from petsc_hdg.physics.tree.liveness import prune, roots

ZERO, ONE = Num("0.0", REAL), Num("1.0", REAL)


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


def derivative_name(name: str) -> str:
    """Name of the derivative of variable `name`: du for an input u, v_d for a local v_."""
    return f"{name}d" if name.endswith("_") else f"d{name}"


def differentiate(program: ir.Program, active: frozenset, sizes: Mapping[str, int]) -> ir.Program | None:
    """Derivative of a specialised program along directions of the inputs `active`; None if it is zero.

    The parameters of the derivative are the inputs, the directions of the active ones and the derivative of the
    output; the output itself is no longer among them. Raises PhysicsError for what cannot be differentiated.
    """
    active = frozenset(active) & program.inputs
    output = next(iter(program.main.outputs))
    helpers = {helper.name: helper for helper in program.helpers}
    cache: dict = {}
    activity = Activity(program.main, active, helpers, cache)
    if output not in activity.names:
        return None
    made = dict(helpers)
    body = Tangent(program.main, activity, made).block(program.main.body)
    main = program.main
    local = ir.Declare(Symbol(output, REAL, (Num(str(sizes[output]), INT),)), (ZERO,), 0)
    inputs = tuple(parameter for parameter in main.parameters if parameter.name != output)
    directions = tuple(_direction(p) for p in main.parameters if p.name in active or p.name == output)
    whole = replace(main, name=f"d_{main.name}", parameters=inputs + directions, body=(local, *body))
    whole = prune(whole, {derivative_name(output)}, made)
    return ir.Program(program.source, whole, ir.called(whole, made))


def _direction(symbol: Symbol) -> Symbol:
    return replace(symbol, name=derivative_name(symbol.name))


def add(left, right):
    """left + right, where None is zero."""
    return right if left is None else left if right is None else Binary("+", left, right, REAL)


def multiply(left, right):
    """left * right, where None is zero."""
    if left is None or right is None:
        return None
    return right if left == ONE else left if right == ONE else Binary("*", left, right, REAL)


def negate(operand):
    """-operand, where None is zero."""
    return None if operand is None else Unary("-", operand, REAL)


class Tangent:
    """Derivatives of the statements and expressions of one function. `made` gains the derivatives of the helpers it
    calls.
    """

    def __init__(self, function: Function, activity: Activity, made: dict):
        self.function, self.activity, self.made, self.source = function, activity, made, function.origin
        self.line = function.line

    def block(self, statements: tuple) -> tuple:
        """Each statement preceded by its derivative."""
        return tuple(new for statement in statements for new in self.statement(statement))

    def statement(self, node) -> tuple:
        """A statement preceded by its derivative."""
        self.line = node.line
        match node:
            case ir.If():
                return (replace(node, then=self.block(node.then), other=self.block(node.other)),)
            case ir.Loop():
                return (replace(node, step=self.block(node.step), body=self.block(node.body)),)
            case ir.Declare() if self.activity.is_active(node.symbol.name):
                symbol = replace(_direction(node.symbol), const=False)
                return (ir.Declare(symbol, self._initial(node), node.line), node)
            case ir.Alias() if self.activity.is_active(node.symbol.name):
                return (ir.Alias(_direction(node.symbol), self._named(node.target), node.line), node)
            case ir.Assign() if self.activity.is_active(node.target.name):
                return self._assign(node)
            case ir.Invoke() if mask := self.activity.mask(node.call):
                call, alone = self._derivative_call(node.call, mask)
                return (ir.Invoke(call, node.line), *((node,) if alone else ()))
            case ir.Return() if node.value is not None:
                return (replace(node, value=self.of(node.value) or ZERO),)
        return (node,)

    def _initial(self, node: ir.Declare):
        """Derivative of the value that a variable begins with."""
        if isinstance(node.init, tuple):
            return tuple(self.of(value) or ZERO for value in node.init)
        return (ZERO,) if node.symbol.extents else self.of(node.init) or ZERO

    def _assign(self, node: ir.Assign) -> tuple:
        target, rate = self.of(node.target), self.of(node.value)
        line, value = node.line, node.value
        if node.op in ("+=", "-="):
            return (*((ir.Assign(target, node.op, rate, line),) if rate else ()), node)
        if node.op == "*=":
            new = add(multiply(target, value), multiply(node.target, rate))
        elif node.op == "/=":
            new = self._quotient(node.target, value, target, rate)
        else:
            new = rate or ZERO
        return (ir.Assign(target, "=", new, line), node)

    def of(self, node):
        """Derivative of an expression; None where it is zero."""
        if node is None or not self.activity.depends(node):
            return None
        match node:
            case Unary():
                return negate(self.of(node.operand)) if node.op == "-" else self.of(node.operand)
            case Binary():
                return self._of_binary(node)
            case Select():
                return Select(node.condition, self.of(node.then) or ZERO, self.of(node.other) or ZERO, REAL)
            case Call():
                return self._of_call(node)
            case ir.HelperCall():
                return self._derivative_call(node, self.activity.mask(node))[0]
        return self._named(node)

    def _named(self, node: Name | ir.Element | Ref):
        return replace(node, name=derivative_name(node.name))

    def _of_binary(self, node: Binary):
        left, right = self.of(node.left), self.of(node.right)
        if node.op == "+":
            return add(left, right)
        if node.op == "-":
            return add(left, negate(right)) if left is None or right is None else Binary("-", left, right, REAL)
        if node.op == "*":
            return add(multiply(left, node.right), multiply(node.left, right))
        if node.op == "/":
            return self._quotient(node.left, node.right, left, right)
        raise self.source.error(
            self.line, f"'{node.op}' of values that depend on the solution cannot be differentiated"
        )

    def _quotient(self, top, bottom, top_rate, bottom_rate):
        """(a/b)' = (a' - (a/b) b') / b."""
        loss = multiply(Binary("/", top, bottom, REAL), bottom_rate)
        change = negate(loss) if top_rate is None else top_rate if loss is None else Binary("-", top_rate, loss, REAL)
        return change and Binary("/", change, bottom, REAL)

    def _of_call(self, node: Call):
        if node.function not in BUILTINS:
            return self._of_partial(node)
        row, total = BUILTINS[node.function], None
        if row.partials is None:
            message = f"{node.function} of a value that depends on the solution cannot be differentiated"
            raise self.source.error(self.line, f"{message}; give `jacobian` by hand")
        for position, argument in enumerate(node.arguments):
            rate = self.of(argument)
            if rate is not None:
                total = add(total, Call(f"d{position}_{node.function}", (*node.arguments, rate), REAL))
        return total

    def _of_partial(self, node: Call):
        """Derivative of a function of derivatives, as d0_sin; it is linear in its last argument, d0_sqr in both."""
        linear, total = 0 if node.function == "d0_sqr" else len(node.arguments) - 1, None
        for position, argument in enumerate(node.arguments):
            rate = self.of(argument)
            if rate is not None and position < linear:
                raise self.source.error(
                    self.line, f"{node.function[3:]} of a value that depends on the solution has no second derivative"
                )
            if rate is not None:
                arguments = (*node.arguments[:position], rate, *node.arguments[position + 1 :])
                total = add(total, replace(node, arguments=arguments))
        return total

    def _derivative_call(self, call: ir.HelperCall, mask: frozenset) -> tuple[ir.HelperCall, bool]:
        """The call of the helper's derivative, and whether the helper itself must be called after it."""
        function = self.made[call.function]
        derived, alone = self._derived(function, mask)
        values = {p.name: argument for p, argument in zip(function.parameters, call.arguments, strict=False)}
        for parameter, argument in zip(function.parameters, call.arguments, strict=False):
            if parameter.name in mask:
                rate = self._named(argument) if isinstance(argument, Ref) else self.of(argument)
                values[derivative_name(parameter.name)] = rate
        arguments = tuple(values[parameter.name] for parameter in derived.parameters)
        return ir.HelperCall(derived.name, arguments, call.type, call.line), alone

    def _derived(self, function: Function, mask: frozenset) -> tuple[Function, bool]:
        """Derivative of a helper along its parameters `mask`; whether it leaves the helper's own outputs unwritten."""
        bits = "".join(str(int(parameter.name in mask)) for parameter in function.parameters)
        name = f"d_{function.name}{bits}"
        if name not in self.made:
            self.made[name] = self._derive_helper(function, name, mask)
        derived = self.made[name]
        return derived, not function.outputs & derived.outputs

    def _derive_helper(self, function: Function, name: str, mask: frozenset) -> Function:
        activity = Activity(function, mask, self.made, self.activity.cache)
        body = Tangent(function, activity, self.made).block(function.body)
        directions = tuple(_direction(parameter) for parameter in function.parameters if parameter.name in mask)
        whole = replace(function, name=name, parameters=function.parameters + directions, body=body)
        rates = {derivative_name(parameter) for parameter in function.outputs if parameter in mask}
        lean = prune(whole, rates, self.made)
        if lean.outputs & function.outputs:
            lean = prune(whole, rates | function.outputs, self.made)
        used = ir.names_used(*lean.body)
        return replace(lean, parameters=tuple(p for p in lean.parameters if p.name in used))

"""From a parsed text to checked functions: which function is meant, what its arguments mean, and the helpers it
calls.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field, replace
from functools import cache

from pycparser import c_ast

from petsc_hdg.physics.lowering.calls import Scope
from petsc_hdg.physics.lowering.declarations import Declarations
from petsc_hdg.physics.lowering.expressions import Expressions
from petsc_hdg.physics.lowering.names import ALL_INPUTS
from petsc_hdg.physics.lowering.signatures import UNAVAILABLE, Signature, inner_quals, result_type, symbol, type_words
from petsc_hdg.physics.lowering.statements import Statements, allocated
from petsc_hdg.physics.text import preprocess
from petsc_hdg.physics.text.parse import Parsed, deeply, is_never_changed, line_of, parse
from petsc_hdg.physics.text.source import Source
from petsc_hdg.physics.tree import ir
from petsc_hdg.physics.tree.ir import REAL, Function, Program, Symbol
from petsc_hdg.physics.tree.liveness import written
from petsc_hdg.physics.tree.shallow import shallow


@dataclass
class Helpers:
    """The user's helper functions, read when first called; those of `shared` are seen as well. `members` of the
    context are numbers of constants, which a function that reads one has as an argument more.
    """

    parsed: Parsed | None
    prefix: str
    main: str = ""
    shared: object = None
    members: Mapping[str, int] | None = None
    done: dict = field(default_factory=dict)
    open: list = field(default_factory=list)

    def has(self, name: str) -> bool:
        """Return True if the user defined `name`."""
        own = self.parsed is not None and name in self.parsed.functions and name != self.main
        return own or (self.shared is not None and self.shared.has(name))

    def names(self) -> list[str]:
        """The names of all helpers."""
        own = [name for name in self.parsed.functions if name != self.main] if self.parsed else []
        return own + (self.shared.names() if self.shared else [])

    def get(self, name: str, source: Source, line: int, nulls: frozenset[int] = frozenset()) -> Function:
        """Helper `name`, for a call at `line` of `source` whose arguments at `nulls` are NULL."""
        if self.parsed is None or name not in self.parsed.functions or name == self.main:
            return self.shared.get(name, source, line, nulls)
        if name in self.open:
            raise source.error(line, f"'{name}' calls itself; recursion is not possible on a device, use a loop")
        if (name, nulls) not in self.done:
            self.open.append(name)
            try:
                self.done[name, nulls] = _helper(self, name, nulls)
            finally:
                self.open.pop()
        return self.done[name, nulls]

    def all(self) -> dict[str, Function]:
        """Every helper read so far, by its name in the tree, callees first."""
        found = self.shared.all() if self.shared else {}
        return found | {function.name: function for function in self.done.values()}


@cache
def _dmplex() -> Helpers:
    """PETSc's own helpers, under every physics' own, read when a first physics is."""
    return Helpers(parse(Source("PETSc", "DMPlex helpers", preprocess.HELPERS), {}, library=True), "ph_")


def shared_helpers(source: Source | None, macros: dict[str, str]) -> Helpers:
    """The helpers of a physics' `helpers` text, each checked."""
    if source is None:
        return Helpers(None, "ph_", shared=_dmplex())
    return deeply(source, lambda: _checked_helpers(source, macros))


def _checked_helpers(source: Source, macros: dict[str, str]) -> Helpers:
    helpers = Helpers(parse(source, macros, library=True), "ph_", shared=_dmplex())
    for name in helpers.parsed.functions:
        helpers.get(name, source, 0)
    return helpers


def lower(
    source: Source,
    signature: Signature,
    shared: Helpers,
    macros: Mapping[str, str],
    constants: Mapping[str, int],
    key: str,
    parts: Mapping[str, tuple] | None = None,
) -> Program:
    """Check `source` as a pointwise function with `signature`; `key` names its C functions, `parts` are those of the
    inputs by the names of fields.
    """
    return deeply(source, lambda: _lower(source, signature, shared, macros, constants, key, parts or {}))


def _lower(source: Source, signature: Signature, shared: Helpers, macros, constants, key: str, parts) -> Program:
    parsed = parse(source, dict(macros))
    if parsed.is_body:
        return _lower_body(parsed, signature, shared, constants, key, parts)
    node = _main_function(parsed, signature)
    return _lower_whole(parsed, node, signature, shared, constants, key, parts)


def _lower_body(parsed: Parsed, signature: Signature, shared: Helpers, constants, key: str, parts) -> Program:
    inputs = [symbol(name) for name in sorted(signature.readable)] + [Symbol(signature.output, REAL, (None,))]
    helpers = Helpers(None, f"ph_{key}_", shared=shared)
    reasons = UNAVAILABLE | {
        name: signature.reason for name in ALL_INPUTS if signature.reason and name not in signature.readable
    }
    outputs = {"f0", "f1", "g", "u"} - signature.readable
    reasons = dict.fromkeys(outputs, f"this text assigns to {signature.output}") | reasons
    reasons.pop(signature.output, None)
    scope = Scope(parsed.source, inputs, reasons)
    scope.parts, scope.has_arguments = parts, False
    if signature.meanings(6):
        scope.bind("time", symbol("t"))
    body = parsed.functions["body_"].body
    return _program(parsed.source, scope, helpers, constants, body, key, signature, inputs, 1)


def _lower_whole(parsed: Parsed, node, signature: Signature, shared: Helpers, constants, key: str, parts) -> Program:
    name = node.decl.name
    helpers = Helpers(parsed, f"ph_{key}_", name, shared, constants)
    parameters = node.decl.type.args.params if node.decl.type.args else []
    meanings = signature.meanings(len(parameters))
    if meanings is None:
        counts = " or ".join(str(len(names)) for names in signature.positions)
        message = f"'{name}' has {len(parameters)} arguments, PETSc's signature of this function has {counts}"
        raise parsed.source.error(line_of(node), f"{message}; give the whole signature or the body alone")
    inputs, reasons = [], {}
    scope = Scope(parsed.source, (), reasons, _late(parsed, lambda: scope, constants))
    scope.parts = parts
    for parameter, meaning in zip(parameters, meanings, strict=False):
        if parameter.name is None:
            continue
        bound = Symbol(meaning, REAL, (None,)) if meaning == signature.output else symbol(meaning)
        if meaning == "ctx":
            scope.contexts.add(parameter.name)
        if meaning in UNAVAILABLE or (meaning != signature.output and meaning not in signature.readable):
            reasons[parameter.name] = UNAVAILABLE.get(meaning, signature.reason)
        else:
            _check_parameter(parsed.source, parameter, bound)
            scope.bind(parameter.name, bound)
            inputs.append(bound)
    if "ctx" in meanings:  # such a function has no argument for the named constants
        inputs.append(symbol("constants"))
        scope.bind("constants", inputs[-1])
    return _program(parsed.source, scope, helpers, constants, node.body, key, signature, inputs, line_of(node))


def _check_parameter(source: Source, parameter, meant: Symbol) -> None:
    is_array = isinstance(parameter.type, (c_ast.ArrayDecl, c_ast.PtrDecl))
    if is_array != bool(meant.extents):
        kind = "an array" if meant.extents else "one number"
        message = f"argument '{parameter.name}' stands where PETSc's signature has {meant.name}, which is {kind}"
        raise source.error(line_of(parameter), f"{message}; check the order")


def _program(source, scope, helpers, constants, body, key, signature, inputs, line) -> Program:
    main = _function(scope, helpers, constants, body, f"ph_{key}", None, inputs, line)
    if signature.output not in main.outputs:
        raise source.error(None, f"nothing is assigned to {signature.output}; write {signature.output}[0] = …;")
    return Program(source, main, ir.called(main, helpers.all()))


def _function(scope: Scope, helpers, constants, body, name, result, parameters, line, members=None) -> Function:
    statements = Statements(Expressions(scope, helpers, dict(constants), members), result)
    scope.push()
    scope.allocated = allocated(body)
    code = statements.sequence(body.block_items or [])
    late = tuple(getattr(scope, "globals", ()))
    code = shallow(late + code, scope.source, scope.fresh)
    outputs = written(code, helpers.all()) & {parameter.name for parameter in parameters if parameter.extents}
    return Function(name, scope.source, result, tuple(parameters), code, line, frozenset(outputs))


def _helper(helpers: Helpers, name: str, nulls: frozenset[int]) -> Function:
    node, source = helpers.parsed.functions[name], helpers.parsed.source
    reasons = {word: f"a helper function sees only its own arguments; pass {word} as one" for word in ALL_INPUTS}
    scope = Scope(source, (symbol("dim"),), reasons, _late(helpers.parsed, lambda: scope))
    typing = Declarations(Expressions(scope, helpers, {}))
    parameters: dict[int, Symbol] = {}
    unused = set()
    for position, parameter in enumerate(node.decl.type.args.params if node.decl.type.args else []):
        if isinstance(parameter, c_ast.Typename) and getattr(parameter.type.type, "names", None) == ["void"]:
            continue
        if isinstance(parameter.type, c_ast.PtrDecl) and type_words(parameter.type) == ["void"]:
            reasons[parameter.name] = "it points to no numbers; use named constants"
            scope.contexts.add(parameter.name)
            unused.add(position)
            continue
        if position in nulls and isinstance(parameter.type, (c_ast.ArrayDecl, c_ast.PtrDecl)):
            reasons[parameter.name] = "NULL is passed for it"
            scope.nulls.add(parameter.name)
            unused.add(position)
            continue
        kind, extents, pointer = typing.variable_type(parameter)
        extents = (None, *extents[1:]) if extents else (None,) if pointer else ()
        const = "const" in parameter.quals or (extents and "const" in inner_quals(parameter))
        bound = Symbol(scope.fresh(parameter.name), kind, extents, const=bool(const and extents), pointer=bool(extents))
        scope.bind(parameter.name, bound)
        parameters[position] = bound
    result, given, behind = result_type(source, node), tuple(parameters.values()), ()
    if helpers.members is not None and scope.find("constants") is None:
        behind = (symbol("constants"),)
        scope.bind("constants", behind[0])
    called = f"{helpers.prefix}{name}_" + "_".join(["null" * bool(nulls), *map(str, sorted(nulls))])
    at, members = (called, result, given, line_of(node)), helpers.members
    function = _function(scope, helpers, {}, node.body, *at, members)
    used = ir.names_used(*function.body)
    unused |= {place for place, bound in parameters.items() if bound.extents and bound.name not in used}
    left = tuple(bound for place, bound in parameters.items() if place not in unused)
    left += tuple(bound for bound in behind if bound.name in used)
    return replace(function, parameters=left, unused=frozenset(unused))


def _late(parsed: Parsed, scope_of, constants=None):
    """A finder of the text's file-scope constants: a function that uses one gets a copy of it. Variables are left to
    `constants`, which replace them.
    """

    def find(name: str) -> Symbol | None:
        node = parsed.declarations.get(name)
        if node is None:
            return None
        if "const" not in node.quals and "const" not in inner_quals(node):
            if name in (constants or ()):
                return None
            if "static" in node.storage and is_never_changed(parsed.source.text, name):
                node = copy(node)
                node.quals = [*node.quals, "const"]
        if "const" not in node.quals and "const" not in inner_quals(node):
            remedy = "" if constants is None else f", or have its value in constants={{'{name}': …}}"
            message = f"'{name}' stands outside every function and must be const{remedy}"
            raise parsed.source.error(line_of(node), message)
        scope = scope_of()
        found: dict[str, Symbol] = {}
        statements = Declarations(Expressions(scope, Helpers(None, ""), {}))
        declared = statements.declaration(node, found.__setitem__)
        scope.globals = (*getattr(scope, "globals", ()), *declared)
        return found[name]

    return find


def _main_function(parsed: Parsed, signature: Signature):
    source, functions = parsed.source, parsed.functions
    if source.function:
        return functions[source.function]
    slot = source.slot.split("[")[0].split(" ")[0]
    fitting = [name for name, node in functions.items() if signature.meanings(_count(node))]
    named = [name for name in fitting if name.startswith(slot)]
    if len(functions) == 1:
        return next(iter(functions.values()))
    for names in (named, fitting):
        if len(names) == 1:
            return functions[names[0]]
    choice = ", ".join(named or fitting or functions)
    raise source.error(
        None, f"which of the functions {choice} is meant? name it with CFile(path, function), or give one alone"
    )


def _count(node) -> int:
    return len(node.decl.type.args.params) if node.decl.type.args else 0

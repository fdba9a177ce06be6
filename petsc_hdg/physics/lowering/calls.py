"""Calls of built-in and of the user's functions: from pycparser's nodes to the checked tree of ir.py."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterable, Mapping

from pycparser import c_ast

from petsc_hdg.physics.functions import BUILTINS
from petsc_hdg.physics.lowering import names
from petsc_hdg.physics.text.parse import line_of
from petsc_hdg.physics.text.source import Source
from petsc_hdg.physics.tree.ir import INT, REAL, Binary, Call, Expr, HelperCall, Num, Ref, Symbol, Unary

_LISTED = 24


class Scope:
    """A stack of blocks of names, over the inputs of the function. Locals get names of their own: no two in a
    function are the same.

    A local `v` is called `v_`, a second one in another block `v_2_`; a derivative of `v_` ends in `_d`. So locals,
    inputs, derivatives, macros and the words of OpenCL C stay apart.
    """

    def __init__(self, source: Source, inputs: Iterable[Symbol], reasons: dict[str, str], late: Callable | None = None):
        self.source = source
        self.reasons = reasons
        self._late = late
        self._blocks: list[dict[str, Symbol]] = [{symbol.name: symbol for symbol in inputs}]
        self._counts: dict[str, int] = {}
        self._made: set[str] = set()
        self.symbols: dict[str, Symbol] = dict(self._blocks[0])
        self.allocated: dict = {}  # sizes of scratch memory, by the names of pointers
        self.parts: Mapping[str, tuple] = {}  # of the inputs, by the names of fields: see parts_of
        self.has_arguments = True  # the function names its inputs; else they have PETSc's names
        self.nulls: set[str] = set()  # names of pointers that are NULL
        self.contexts: set[str] = set()  # names of pointers to the user's context, or to structures behind it

    def push(self) -> None:
        """Enter a block."""
        self._blocks.append({})

    def pop(self) -> None:
        """Leave a block."""
        self._blocks.pop()

    def bind(self, name: str, symbol: Symbol) -> None:
        """Make `symbol` visible as `name`."""
        self._blocks[-1][name] = symbol
        self.symbols[symbol.name] = symbol

    def fresh(self, name: str) -> str:
        """A name for local `name` that nothing else in the function has."""
        made = f"{name}_"
        while made in self._made:
            count = self._counts[name] = self._counts.get(name, 1) + 1
            made = f"{name}_{count}_"
        self._made.add(made)
        return made

    def in_this_block(self, name: str) -> bool:
        """Return True if the innermost block declares `name`."""
        return name in self._blocks[-1]

    def find(self, name: str) -> Symbol | None:
        """The variable that `name` means, or None."""
        for block in reversed(self._blocks):
            if name in block:
                return block[name]
        found = self._late(name) if self._late else None
        if found is not None:
            self._blocks[0][name] = found
            self.symbols[found.name] = found
        return found

    def unknown(self, name: str, line: int, others: Iterable[str] = ()) -> Exception:
        """The error that `name` means nothing here, with close names first."""
        if name in self.reasons:
            return self.source.error(line, f"'{name}' cannot be used here: {self.reasons[name]}")
        others = list(others)
        places = [other.removeprefix(f"{name} on ") for other in others if other.startswith(f"{name} on ")]
        if places:
            message = f"'{name}' cannot be used here: it has values on {', '.join(places)}; use it in conditions there"
            return self.source.error(line, message)
        known = [known for block in reversed(self._blocks) for known in block] + others
        known = [known for known in dict.fromkeys(known) if not known.startswith("_") and " on " not in known]
        close = [names.MEANT[name]] if name in names.MEANT else difflib.get_close_matches(name, known, n=1)
        hint = f"; did you mean '{close[0]}'?" if close else ""
        listed = ", ".join(sorted(known)[:_LISTED]) + (", …" if len(known) > _LISTED else "")
        return self.source.error(line, f"unknown name '{name}'{hint} (known here: {listed})")


def real(expr: Expr) -> Expr:
    """`expr` as a real, so that no overloaded function of OpenCL C is called with an integer."""
    if expr.type == REAL:
        return expr
    return Num(f"{expr.value}.0", REAL) if isinstance(expr, Num) else Unary("(real)", expr, REAL)


def base_name(node) -> str:
    """Name of the variable at the root of an expression."""
    while not isinstance(node, c_ast.ID):
        node = getattr(node, "name", None) or getattr(node, "expr", None) or node.left
    return node.name


def _called(source, node) -> str:
    if not isinstance(node.name, c_ast.ID):
        is_struct = isinstance(node.name, c_ast.StructRef)
        raise source.error(line_of(node), names.MEMBERS if is_struct else "a function can only be called by its name")
    return node.name.name


def is_null(node) -> bool:
    """Return True for the pointer to nothing."""
    is_zero = isinstance(node, c_ast.Constant) and node.value == "0"
    return is_zero or getattr(node, "name", None) in ("NULL", "nullptr")


def is_member(node) -> bool:
    """Return True for a member of a structure, or an element of one."""
    return isinstance(node.name if isinstance(node, c_ast.ArrayRef) else node, c_ast.StructRef)


def _nulls(arguments: list) -> frozenset[int]:
    """Positions of arguments that are NULL by name; a 0 may be a number."""
    return frozenset(k for k, node in enumerate(arguments) if isinstance(node, c_ast.ID) and is_null(node))


class Reads:
    """Base class of readers of a syntax tree; errors name lines of its text, `source`."""

    source: Source

    def _error(self, node, message: str) -> Exception:
        """An error that names the line of a node."""
        return self.source.error(line_of(node), message)


class Calls(Reads):
    """Reads calls in a scope; Expressions, which extends this, reads everything else.

    `helpers` finds the user's functions; `constants` maps names of constants to their numbers, `members` those of the
    context: the same, but in helper functions, which see no others.
    """

    def __init__(self, scope: Scope, helpers, constants: dict[str, int], members: dict[str, int] | None = None):
        self.scope, self.source, self.helpers, self.constants = scope, scope.source, helpers, constants
        self.members = constants if members is None else members

    def _funccall(self, node) -> Expr:
        name, line = _called(self.source, node), line_of(node)
        arguments = node.args.exprs if node.args else []
        if self.helpers.has(name):
            return self._helper_value(name, arguments, line)
        if name in names.IDENTITIES and len(arguments) == 1:
            return real(self.read(arguments[0]))
        values = [self.read(argument) for argument in arguments]
        if name in names.GENERIC:
            builtin = names.GENERIC[name][0 if all(value.type == INT for value in values) else 1]
        else:
            builtin = names.canonical(name)
        if builtin is None:
            raise self._unknown_function(name, line)
        return self._builtin(name, builtin, values, line)

    def _builtin(self, name: str, builtin: str, values: list, line: int) -> Expr:
        row = BUILTINS[builtin]
        if len(values) != len(row.arguments):
            raise self.source.error(line, f"{name} takes {len(row.arguments)} argument(s), here it has {len(values)}")
        for position, (kind, value) in enumerate(zip(row.arguments, values, strict=False), 1):
            if kind == "i" and value.type != INT:
                hint = "; use fabs or PetscAbsReal for reals" if builtin == "abs" else ""
                raise self.source.error(line, f"argument {position} of {name} must be an integer{hint}")
        pairs = zip(row.arguments, values, strict=True)
        value = Call(builtin, tuple(real(value) if kind == "r" else value for kind, value in pairs), row.result)
        is_test = row.result == INT and "r" in row.arguments  # C says "not 0" where it is true, OpenCL C says 1
        return Binary("!=", value, Num("0", INT), INT) if is_test else value

    def _helper_value(self, name: str, arguments: list, line: int) -> HelperCall:
        function = self.helpers.get(name, self.source, line, _nulls(arguments))
        if function.result is None:
            raise self.source.error(line, f"'{name}' returns nothing; call it as a statement of its own")
        if function.outputs:
            message = f"'{name}' both returns a value and writes to its arguments; let it do one of the two"
            raise self.source.error(line, message)
        return self.helper_call(name, arguments, line)

    def helper_call(self, name: str, arguments: list, line: int) -> HelperCall:
        """A call of the user's function `name`."""
        function = self.helpers.get(name, self.source, line, _nulls(arguments))
        given = [parameter for parameter in function.parameters if parameter.name != "constants"]
        count = len(given) + len(function.unused)
        if len(arguments) != count:
            raise self.source.error(line, f"{name} takes {count} argument(s), here it has {len(arguments)}")
        for position in function.unused:
            self._ignored(arguments[position])
        arguments = [node for position, node in enumerate(arguments) if position not in function.unused]
        pairs = zip(given, arguments, strict=True)
        values = tuple(self._argument(function, parameter, node) for parameter, node in pairs)
        if len(given) < len(function.parameters):  # the members of the context that it reads
            values += (Ref(self.scope.find("constants").name, Num("0", INT), line),)
        return HelperCall(function.name, values, function.result or "", line)

    def _ignored(self, node) -> None:
        """Check the argument for a pointer that is not read: no pointer, what is not there on a device, or an array."""
        if not is_null(node) and getattr(node, "name", None) not in self.scope.reasons:
            self.reference(node)

    def _argument(self, function, parameter: Symbol, node):
        if not parameter.extents:
            value = self.read(node)
            if parameter.type == INT and value.type == REAL and is_member(node):
                return Unary("(int)", value, INT)  # a whole number in the user's structure, and here a named constant
            if parameter.type == INT and value.type == REAL:
                raise self._error(
                    node, f"'{parameter.name.rstrip('_')}' of helper '{function.name}' must be an integer"
                )
            return real(value) if parameter.type == REAL else value
        ref = self.reference(node)
        symbol = self.scope.symbols[ref.name]
        if symbol.type != parameter.type:
            raise self._error(node, f"an array of {symbol.type} is passed where one of {parameter.type} is needed")
        if parameter.name in function.outputs and symbol.const:
            raise self._error(node, f"'{base_name(node)}' is an input or const, and the helper function writes to it")
        return ref

    def _unknown_function(self, name: str, line: int) -> Exception:
        if name in names.NOT_OFFERED:
            return self.source.error(line, f"{name} is not offered: {names.NOT_OFFERED[name]}")
        if name[-1] in "fl" and name[:-1] in BUILTINS:
            return self.source.error(line, f"{name} computes in another precision than PetscReal; use {name[:-1]}")
        known = [*self.helpers.names(), *sorted({*BUILTINS, *names.ALIASES, *names.GENERIC, *names.IDENTITIES})]
        close = difflib.get_close_matches(name, known, n=1)
        remedy = (
            f"did you mean '{close[0]}'?"
            if close
            else "define it in `helpers`, or use the math functions of PETSc or OpenCL C"
        )
        if self.scope.find(name) is not None:
            remedy = f"it is a variable; write {name}[i] or leave out the ( )"
        return self.source.error(line, f"unknown function '{name}'; {remedy}")

"""Declarations of the user's text: from pycparser's nodes to the checked tree of ir.py."""

from __future__ import annotations

from pycparser import c_ast

from petsc_hdg.physics.lowering.calls import Reads, is_member, real
from petsc_hdg.physics.lowering.expressions import Expressions, scalar_type
from petsc_hdg.physics.text.parse import line_of
from petsc_hdg.physics.tree import ir
from petsc_hdg.physics.tree.ir import INT, REAL, Binary, Num, Symbol, Unary


class Declarations(Reads):
    """Reads declarations of variables in the scope of `expressions`. Statements extends this."""

    def __init__(self, expressions: Expressions, result: str | None = None):
        self.expressions, self.result = expressions, result
        self.scope, self.source = expressions.scope, expressions.source

    def declaration(self, node, bind) -> tuple:
        """A local variable; `bind(name, symbol)` makes it visible."""
        line = line_of(node)
        if isinstance(node.type, c_ast.FuncDecl):
            raise self._error(node, f"'{node.name}' declares a function; define it in `helpers`")
        if bind == self.scope.bind and self.scope.in_this_block(node.name):
            raise self._error(node, f"'{node.name}' is declared twice")
        if self._is_context(node):
            self.scope.contexts.add(node.name)
            return ()
        kind, extents, pointer = self.variable_type(node)
        if node.storage and "static" in node.storage and "const" not in node.quals:
            raise self._error(
                node, f"'{node.name}' is static: a pointwise function cannot remember values between points"
            )
        if pointer and node.init is None and node.name in self.scope.allocated:
            pointer, extents = False, (self._extent(self.scope.allocated[node.name]),)
        if pointer:
            return self._alias(node, kind, bind)
        init = self._initialiser(node, kind, extents)
        if extents == (None,):
            if init is None:
                raise self._error(node, f"the array '{node.name}' needs a size")
            extents = (Num(str(len(init)), INT),)
        symbol = Symbol(self.scope.fresh(node.name), kind, extents, const="const" in node.quals)
        bind(node.name, symbol)
        return (ir.Declare(symbol, init, line),)

    def _is_context(self, node) -> bool:
        """True if a variable is a pointer to a structure of the user's: the context, or what PETSc gets out of it."""
        if not (isinstance(node.type, c_ast.PtrDecl) and isinstance(node.type.type, c_ast.TypeDecl)):
            return False
        pointed = node.type.type.type
        words = getattr(pointed, "names", ["void"])
        is_structure = isinstance(pointed, c_ast.Struct) or (words != ["void"] and scalar_type(words) is None)
        return is_structure and (node.init is None or self.expressions.is_context(node.init))

    def variable_type(self, node) -> tuple:
        """(int or real, extents, whether it is a pointer) of a declared variable."""
        inner, extents, pointer = node.type, [], False
        while not isinstance(inner, c_ast.TypeDecl):
            if isinstance(inner, c_ast.PtrDecl) and not pointer and not extents:
                pointer = True
            elif isinstance(inner, c_ast.ArrayDecl) and not pointer:
                extents.append(None if inner.dim is None else self._extent(inner.dim))
            else:
                raise self._error(
                    node, f"the type of '{node.name}' is not supported; use numbers, arrays or a plain pointer"
                )
            inner = inner.type
        kind = scalar_type(inner.type.names) if isinstance(inner.type, c_ast.IdentifierType) else None
        if kind is None:
            raise self._error(
                node, f"the type of '{node.name}' is not supported; use PetscReal, PetscScalar or PetscInt"
            )
        return kind, tuple(extents), pointer

    def _extent(self, node):
        extent = self.expressions.read(node)
        if extent.type != INT:
            raise self._error(node, "the size of an array must be an integer")
        return extent

    def _alias(self, node, kind: str, bind) -> tuple:
        if node.init is None:
            raise self._error(node, f"the pointer '{node.name}' must be set where it is declared, e.g. = &u[uOff[1]]")
        constant = "const" in node.quals or "const" in getattr(node.type.type, "quals", ())
        symbol, made = self._bound(node.name, node.init, kind, constant)
        bind(node.name, symbol)
        return made

    def _bound(self, name: str, init, kind: str, constant: bool) -> tuple[Symbol, tuple]:
        """A pointer set to `init`, and the statements that make it."""
        line = line_of(init)
        if isinstance(init, c_ast.TernaryOp):
            return self._chosen(name, init, kind)
        target = self.expressions.reference(init)
        pointed = self.scope.symbols[target.name]
        if pointed.type != kind:
            raise self._error(init, f"the pointer '{name}' is to {kind}, and what it points to is {pointed.type}")
        symbol = Symbol(self.scope.fresh(name), kind, (None,), const=pointed.const or constant, pointer=True)
        self.scope.symbols[symbol.name] = symbol
        return symbol, (ir.Alias(symbol, target, line),)

    def _chosen(self, name: str, init, kind: str) -> tuple[Symbol, tuple]:
        """A pointer to one array or another: both, and a variable that tells which, as no pointer changes."""
        flag = Symbol(self.scope.fresh(name), INT, const=True)
        self.scope.symbols[flag.name] = flag
        condition = Binary("!=", self.expressions.condition(init.cond), Num("0", INT), INT)
        (then, first), (other, second) = (self._bound(name, side, kind, True) for side in (init.iftrue, init.iffalse))
        symbol = Symbol(self.scope.fresh(name), kind, (None,), const=True, pointer=True, choice=(flag, then, other))
        return symbol, (ir.Declare(flag, condition, line_of(init)), *first, *second)

    def _initialiser(self, node, kind: str, extents: tuple):
        if node.init is None:
            return None
        if not isinstance(node.init, c_ast.InitList):
            if extents:
                raise self._error(node, f"the array '{node.name}' needs its values in braces")
            value = self.expressions.read(node.init)
            if kind == INT and value.type == REAL and is_member(node.init):
                return Unary("(int)", value, INT)  # a whole number in the user's structure, and here a named constant
            return self._converted(value, kind, node.name, line_of(node))
        if not extents:
            raise self._error(node, f"'{node.name}' is one number and cannot be set to a list")
        return tuple(self._flat_list(node.init, kind, node.name, extents))

    def _flat_list(self, node, kind: str, name: str, extents: tuple) -> list:
        values = []
        for entry in node.exprs:
            if isinstance(entry, c_ast.InitList):
                inner = self._flat_list(entry, kind, name, extents[1:])
                width = extents[1] if len(extents) > 1 else None
                if isinstance(width, Num):
                    inner += [Num("0.0" if kind == REAL else "0", kind)] * (width.value - len(inner))
                values += inner
            elif isinstance(entry, c_ast.NamedInitializer):
                raise self._error(node, f"named initialisers are not supported; list the values of '{name}' in order")
            else:
                values.append(self._converted(self.expressions.read(entry), kind, name, line_of(node)))
        return values

    def _converted(self, value, kind: str, name: str, line: int):
        if kind == INT and value.type == REAL:
            message = (
                f"'{name}' is an integer and would cut off a real value; declare it PetscReal, or cast with (PetscInt)"
            )
            raise self.source.error(line, message)
        return real(value) if kind == REAL and isinstance(value, Num) else value

"""Expressions of the user's text: from pycparser's nodes to the checked tree of ir.py."""

from __future__ import annotations

import re
from fractions import Fraction

from pycparser import c_ast

from petsc_hdg.physics.lowering import names
from petsc_hdg.physics.lowering.calls import Calls, base_name, is_null, real
from petsc_hdg.physics.lowering.names import Part
from petsc_hdg.physics.text.parse import INT_TYPES, OTHER_RANGE, REAL_TYPES, line_of
from petsc_hdg.physics.tree.ir import INT, REAL, Binary, Element, Expr, Name, Num, Ref, Select, Symbol, Unary

_WORDS = {"CompoundLiteral": "a compound literal", "InitList": "a list in braces"}
_COMPARISONS = ("<", ">", "<=", ">=", "==", "!=", "&&", "||")
_INT_ONLY = ("%", "<<", ">>", "&", "|", "^")
_OCTAL = re.compile(r"0\d+")
_LARGEST = 2**31 - 1
CONTEXT = "ctx->"  # before names of constants that are members of a context alone
_NO_SIDE_EFFECT = "changes a variable inside an expression; write it as a statement of its own"


class Expressions(Calls):
    """Reads expressions in a scope. `helpers` finds the user's functions; `constants` maps names of constants to
    their numbers.
    """

    def read(self, node) -> Expr:
        """The value of an expression."""
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            kind = type(node).__name__
            raise self._error(node, f"{_WORDS.get(kind, repr(kind))} is not supported in an expression")
        return method(node)

    def condition(self, node) -> Expr:
        """An expression whose truth is asked; of an array, whether PETSc gives it: all but a_t are there.

        Real numbers are compared with zero, as OpenCL takes none before a question mark."""
        there = self.is_there(node)
        if there is not None:
            return Num(str(int(there)), INT)
        found = self.read(node)
        return Binary("!=", found, Num("0.0", REAL), INT) if found.type == REAL else found

    def is_there(self, node) -> bool | None:
        """Return the value of a condition that tests whether an array is given, None for other conditions."""
        if isinstance(node, c_ast.UnaryOp) and node.op == "!":
            inner = self.is_there(node.expr)
            return None if inner is None else not inner
        if isinstance(node, c_ast.BinaryOp) and node.op in ("==", "!=") and is_null(node.right):
            inner = self.is_there(node.left)
            return None if inner is None else inner == (node.op == "!=")
        if not isinstance(node, c_ast.ID) or node.name in self.scope.nulls:
            return False if isinstance(node, c_ast.ID) else None
        symbol = self.scope.find(node.name)
        return True if symbol is not None and symbol.extents else None

    def place(self, node) -> Name | Element:
        """Lower the left side of an assignment."""
        if not isinstance(node, (c_ast.ID, c_ast.ArrayRef)) and not (
            isinstance(node, c_ast.UnaryOp) and node.op == "*"
        ):
            raise self._error(node, "only a variable or an element of an array can be assigned to")
        place = self._id(node, constants=False) if isinstance(node, c_ast.ID) else self.read(node)
        if isinstance(place, Select):
            raise self._error(node, f"the pointer '{base_name(node)}' is chosen by ?: and is only read")
        symbol = self.scope.symbols[place.name]
        if symbol.const:
            raise self._error(node, f"'{base_name(node)}' is an input or const and cannot be written")
        return place

    def reference(self, node) -> Ref:
        """The address that is passed to a helper function, or that a pointer is bound to."""
        line = line_of(node)
        if isinstance(node, c_ast.Cast):
            return self.reference(node.expr)
        if isinstance(node, c_ast.UnaryOp) and node.op == "&":
            place = self.read(node.expr)
            if isinstance(place, Name):
                return Ref(place.name, None, line)
            if isinstance(place, Element):
                return Ref(place.name, place.index, line)
        if isinstance(node, c_ast.BinaryOp) and node.op == "+":
            start = self.reference(node.left)
            return Ref(start.name, Binary("+", start.offset, self._integer(node.right, "an offset"), INT), line)
        if isinstance(node, (c_ast.ID, c_ast.ArrayRef)):
            symbol, indices, part = self._chain(node)
            if symbol is not None and symbol.choice:
                raise self._error(
                    node, f"the pointer '{base_name(node)}' is chosen by ?: and only its elements are read"
                )
            if symbol is not None and len(indices) < len(symbol.extents):
                start = _flatten(symbol, indices)
                return Ref(symbol.name, part.index(start) if part else start, line)
        raise self._error(node, "an array is needed here: its name, &name[i] or &name")

    # One method for each kind of node that pycparser makes.

    def _constant(self, node) -> Num:
        if node.type in ("char", "string"):
            raise self._error(node, f"the text {node.value} is not supported; only numbers are")
        whole = node.value.lower()
        hexadecimal = whole.startswith("0x")
        is_real = "p" in whole or (not hexadecimal and any(character in whole for character in ".e"))
        if is_real and not hexadecimal and whole.endswith("l") and Fraction(whole[:-1]) == float(whole[:-1]):
            whole = whole[:-1]  # the same number in a PetscReal
        text = whole if is_real else whole.rstrip("l")
        if not text[-1].isdigit() and not (hexadecimal and not is_real and text[-1] != "u") and text[-1] != ".":
            meant = {"u": "unsigned", "f": "of single precision"}.get(text[-1], "of another precision")
            raise self._error(node, f"{node.value} is {meant}, which is not supported; leave out the suffix")
        if is_real:
            return Num(text, REAL)
        try:
            value = int(text, 8) if _OCTAL.fullmatch(text) else int(text, 0)
        except ValueError:
            raise self._error(node, f"{node.value} is no number of C; one that begins with 0 is octal") from None
        if value > _LARGEST:
            raise self._error(node, f"{node.value} does not fit into a PetscInt of 32 bits; write {value}.0")
        return Num(str(value), INT)

    def _id(self, node, constants: bool = True) -> Expr:
        symbol, line = self.scope.find(node.name), line_of(node)
        if symbol is not None and not symbol.extents:
            is_input = symbol.name == node.name and not self.scope.has_arguments
            if is_input and node.name in self.scope.parts:
                owner = self.scope.parts[node.name][0].owner
                message = f"'{node.name}' may be PETSc's number of this name or of {owner}; rename the latter"
                raise self._error(node, message)
            return Name(symbol.name, symbol.type)
        own = symbol is None or symbol.name in [part.array for part in self.scope.parts.get(node.name, ())]
        part = self._part(node.name, line) if own else None  # `u` is a number for a field u, as `T` for a field T
        if part is not None and part.is_number:
            return Element(part.array, part.index(Num("0", INT)), REAL, line)
        if part is not None or symbol is not None:
            raise self._error(node, f"'{node.name}' is an array; write {node.name}[i]")
        if node.name in self.constants:
            if self.scope.find("constants") is None:
                raise self._error(
                    node, f"a helper function does not see the constant '{node.name}'; pass it as an argument"
                )
            return self._constant_number(self.constants[node.name], line)
        number = _number(node.name)
        if number is None:
            raise self._unknown(node.name, line)
        return number

    def _part(self, name: str, line: int) -> Part | None:
        """The part of an input that a name of a field means, where it means nothing else."""
        parts = self.scope.parts.get(name, ())
        owners = [part.owner for part in parts] + [f"the constant '{name}'"] * (name in self.constants)
        if not parts:
            return None
        if len(owners) > 1:
            raise self.source.error(line, f"'{name}' may be of {' or of '.join(owners)}; give one of them another name")
        symbol = self.scope.symbols.get(parts[0].array)
        if symbol is None or not symbol.const:
            reason = self.scope.reasons.get(parts[0].array, f"this text does not read {parts[0].array}")
            raise self.source.error(line, f"'{name}' cannot be used here: {reason}")
        return parts[0]

    def _constant_number(self, number: int, line: int) -> Element:
        return Element(self.scope.find("constants").name, Num(str(number), INT), REAL, line)

    def is_context(self, node) -> bool:
        """Return True if an expression is the user's context, cast or not."""
        while isinstance(node, c_ast.Cast) or (isinstance(node, c_ast.UnaryOp) and node.op in "*&"):
            node = node.expr
        return isinstance(node, c_ast.ID) and node.name in self.scope.contexts

    def _structref(self, node) -> Expr:
        return self._constant_number(self._member(node, node.field.name), line_of(node))

    def _member(self, node, name: str) -> int:
        """The number of the constant that is a member of the context, or an element of one: `xmax[1]`."""
        if not self.is_context(node.name):
            raise self._error(node, names.MEMBERS)
        if self.scope.find("constants") is None:
            raise self._error(
                node, f"a helper function does not see the member '{name}' of the context; pass it as an argument"
            )
        for known in (CONTEXT + name, name):
            if known in self.members:
                return self.members[known]
        wanted = CONTEXT + name if name in names.RESERVED else name
        raise self._error(
            node,
            f"the member '{name}' of the context is memory of the host; give its value in constants={{'{wanted}': …}}",
        )

    def _member_element(self, node) -> Expr:
        """An element of a member of the context that is an array: constants `xmax[0]`, `xmax[1]`, … one after another,
        of which a known index needs its own alone."""
        index, member, line = self._integer(node.subscript, "an index"), node.name.field.name, line_of(node)
        if isinstance(index, Num):
            return self._constant_number(self._member(node.name, f"{member}[{index.text}]"), line)
        first, count = self._member(node.name, f"{member}[0]"), 1
        prefix = CONTEXT if f"{CONTEXT}{member}[0]" in self.members else ""
        while self.members.get(f"{prefix}{member}[{count}]") == first + count:
            count += 1
        place = index if first == 0 else Binary("+", Num(str(first), INT), index, INT)
        return Element(self.scope.find("constants").name, place, REAL, line, ((index, Num(str(count), INT)),))

    def _arrayref(self, node) -> Expr:
        if isinstance(node.name, c_ast.StructRef):
            return self._member_element(node)
        symbol, indices, part = self._chain(node)
        line = line_of(node)
        if symbol is None:
            raise self._error(node, "only a named array can be indexed")
        if not symbol.extents:
            raise self._error(node, f"'{base_name(node)}' is one number and has no elements; leave out the [ ]")
        if len(indices) != len(symbol.extents):
            raise self._error(
                node, f"'{base_name(node)}' takes {len(symbol.extents)} indices, here it has {len(indices)}"
            )
        bounds = tuple(zip(indices, symbol.extents, strict=False)) if len(indices) > 1 or part else ()
        index = _flatten(symbol, indices)
        if part:
            return Element(part.array, part.index(index), REAL, line, bounds, base_name(node))
        return _element(symbol, index, line, bounds)

    def _chain(self, node) -> tuple[Symbol | None, tuple, Part | None]:
        """The array at the root of `a[i][j]`, its indices, and the part of an input that it is."""
        indices = []
        while isinstance(node, c_ast.ArrayRef):
            indices.insert(0, self._integer(node.subscript, "an index"))
            node = node.name
        if not isinstance(node, c_ast.ID):
            return None, (), None
        symbol, part = self.scope.find(node.name), None
        if symbol is None:
            part = self._part(node.name, line_of(node))
            if part is None:
                raise self._unknown(node.name, line_of(node))
            symbol = part.symbol(len(indices))
        elif not self.scope.has_arguments and "Off" not in self.source.text:
            self._refuse_other_fields(symbol, node)
        return symbol, tuple(indices), part

    def _refuse_other_fields(self, symbol: Symbol, node) -> None:
        """PETSc's array of all fields, read without an offset, where a later field has its name."""
        for part in self.scope.parts.get(node.name, ()):
            if part.array == symbol.name and part.first:
                raise self._error(
                    node,
                    f"{node.name}[i] is PETSc's array of all fields, and {part.owner} is not its first; give the field "
                    f"another name, or write {symbol.name[0]}Off where you mean PETSc's",
                )

    def _choice(self, node) -> Symbol | None:
        """The pointer chosen by ?: that `node` names, or None."""
        symbol = self.scope.find(node.name)
        return symbol if symbol is not None and symbol.choice else None

    def _integer(self, node, what: str) -> Expr:
        expr = self.read(node)
        if expr.type != INT:
            raise self._error(node, f"{what} must be an integer, this one is real")
        return expr

    def _unaryop(self, node) -> Expr:
        op, line = node.op, line_of(node)
        if op in ("++", "--", "p++", "p--"):
            raise self._error(node, f"{op.strip('p')} {_NO_SIDE_EFFECT}")
        if op == "sizeof":
            raise self._error(node, "sizeof is not supported")
        if op == "*":
            if isinstance(node.expr, c_ast.Constant):
                raise self._error(node, "C has no operator **; write pow(a, b), or PetscSqr(a)")
            if isinstance(node.expr, c_ast.ID) and (chosen := self._choice(node.expr)):
                return _element(chosen, Num("0", INT), line)
            ref = self.reference(node.expr)
            symbol = self.scope.symbols[ref.name]
            if isinstance(node.expr, c_ast.BinaryOp):
                raise self._error(node, "pointer arithmetic is not supported; write p[i] for *(p + i)")
            return Element(ref.name, ref.offset, symbol.type, line)
        if op == "&":
            raise self._error(node, "an address can only be passed to a helper function")
        operand = self.read(node.expr)
        if op == "~" and operand.type != INT:
            raise self._error(node, "'~' needs an integer")
        return Unary(op, operand, INT if op == "!" else operand.type)

    def _binaryop(self, node) -> Expr:
        left, right = self.read(node.left), self.read(node.right)
        if node.op in _INT_ONLY and REAL in (left.type, right.type):
            raise self._error(node, f"'{node.op}' needs integers; use pow or fmod for reals")
        if node.op == "/" and isinstance(left, Num) and isinstance(right, Num) and INT == left.type == right.type:
            if right.value == 0 or left.value % right.value:
                raise self._error(
                    node, f"{left.text}/{right.text} is a division of integers in C; write {left.text}.0/{right.text}"
                )
        common = REAL if REAL in (left.type, right.type) else INT
        return Binary(node.op, left, right, INT if node.op in _COMPARISONS else common)

    def _ternaryop(self, node) -> Expr:
        then, other = self.read(node.iftrue), self.read(node.iffalse)
        common = REAL if REAL in (then.type, other.type) else INT
        if common == REAL:
            then, other = real(then), real(other)
        return Select(self.condition(node.cond), then, other, common)

    def _cast(self, node) -> Expr:
        operand = self.read(node.expr)
        words = getattr(getattr(node.to_type.type, "type", None), "names", None)
        if words is None:
            raise self._error(node, "a cast to a pointer is not supported")
        kind = scalar_type(words)
        if kind is None:
            raise self._error(node, f"a cast to {' '.join(words)} is not supported; cast to PetscReal or PetscInt")
        return operand if operand.type == kind else real(operand) if kind == REAL else Unary("(int)", operand, INT)

    def _assignment(self, node) -> Expr:
        raise self._error(node, f"'{node.op}' {_NO_SIDE_EFFECT} (or did you mean '=='?)")

    def _exprlist(self, node) -> Expr:
        raise self._error(node, "a comma between expressions is not supported here")

    def _unknown(self, name: str, line: int) -> Exception:
        if self.helpers.has(name) or names.canonical(name):
            return self.source.error(line, f"'{name}' is a function; call it with ( )")
        parts = [part for part, (first, *_) in self.scope.parts.items() if first.array in self.scope.symbols]
        return self.scope.unknown(name, line, [*self.constants, *parts, "PETSC_PI"])


def scalar_type(words: list[str]) -> str | None:
    """int or real for the words of a C type; None for others, also for those that are rounded or wrap otherwise."""
    if OTHER_RANGE.intersection(words) or ("long" in words and "double" in words):
        return None
    words = [word for word in words if word not in ("signed", "long")] or ["int"]
    if len(words) != 1:
        return None
    return REAL if words[0] in REAL_TYPES else INT if words[0] in INT_TYPES else None


def _number(name: str) -> Num | Name | None:
    if name in names.CONSTANTS:
        return Num(names.CONSTANTS[name], REAL)
    if name in names.INT_CONSTANTS:
        return Num(str(names.INT_CONSTANTS[name]), INT)
    return Name(name, REAL) if name in names.PRECISION_CONSTANTS else None


def _element(symbol: Symbol, index: Expr, line: int, bounds: tuple = ()) -> Expr:
    """An element of an array, or of that which a pointer chosen by ?: points to."""
    if symbol.choice is None:
        return Element(symbol.name, index, symbol.type, line, bounds)
    flag, then, other = symbol.choice
    return Select(Name(flag.name, INT), _element(then, index, line), _element(other, index, line), symbol.type)


def _flatten(symbol: Symbol, indices: tuple) -> Expr:
    """Flat index of `indices` (those missing at the end are 0) in an array of `symbol`'s extents."""
    flat = Num("0", INT)
    for position, extent in enumerate(symbol.extents):
        index = indices[position] if position < len(indices) else Num("0", INT)
        flat = index if position == 0 else Binary("+", Binary("*", flat, extent, INT), index, INT)
    return flat

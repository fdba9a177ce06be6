"""Conditional compilation in the user's text: which lines stand, by the conditions of #if, #ifdef and the like."""

from __future__ import annotations

import operator
import re

from pycparser import c_ast, c_parser

from petsc_hdg.physics.elementary import OPERATORS

WORDS = ("if", "ifdef", "ifndef", "elif", "else", "endif")
# What is defined here as in a PETSc of real doubles; other names are defined by the text alone.
_DEFINED = frozenset({"PETSC_USE_REAL_DOUBLE"})
_DEPTH = 20
_UNARY = {"!": operator.not_, "-": operator.neg, "+": operator.pos}


class Unreadable(Exception):
    """A condition that cannot be evaluated here."""


class Conditionals:
    """The nest of conditions around the present line. `macros` is what the text has defined up to there."""

    def __init__(self, macros: dict[str, str]):
        self.macros = macros
        self.open: list[list[bool]] = []  # of each level: whether its lines stand, whether one of its branches did

    @property
    def stand(self) -> bool:
        """Whether the present line stands."""
        return all(level[0] for level in self.open)

    def obey(self, word: str, rest: str) -> None:
        """Take a directive of WORDS; Unreadable if it fits nothing or its condition is none."""
        if word in ("if", "ifdef", "ifndef"):
            rest = {"if": rest, "ifdef": f"defined({rest})", "ifndef": f"!defined({rest})"}[word]
            held = self.stand and self._holds(rest)
            self.open.append([held, held or not self.stand])
            return
        if not self.open:
            raise Unreadable(f"#{word} stands without #if")
        if word == "endif":
            self.open.pop()
        else:
            _, taken = self.open[-1]
            held = not taken and (word == "else" or self._holds(rest))
            self.open[-1] = [held, taken or held]

    def _holds(self, text: str) -> bool:
        return bool(self._value(re.sub(r"\bdefined\s+(\w+)", r"defined(\1)", text), _DEPTH))

    def _value(self, text: str, depth: int) -> int:
        try:
            tree = c_parser.CParser().parse(f"int condition = {text};")
            return self._number(tree.ext[0].init, depth)
        except (c_parser.ParseError, ArithmeticError, AttributeError, IndexError, KeyError, ValueError) as error:
            raise Unreadable(f"the condition '{text}' cannot be read") from error

    def _number(self, node, depth: int) -> int:
        if depth == 0:
            raise Unreadable("a #define refers to itself")
        if isinstance(node, c_ast.Constant):
            return int(node.value.rstrip("uUlL"), 0)
        if isinstance(node, c_ast.ID):
            return self._macro(node.name, depth)
        if isinstance(node, c_ast.UnaryOp):
            return int(_UNARY[node.op](self._number(node.expr, depth)))
        if isinstance(node, c_ast.BinaryOp):
            left, right = (self._number(side, depth) for side in (node.left, node.right))
            if node.op in ("/", "%") and right == 0:
                raise ZeroDivisionError
            return int(OPERATORS[node.op](left, right))
        (name,) = node.args.exprs  # AttributeError unless a call
        known = {"defined": name.name, "PetscDefined": f"PETSC_{name.name}"}[node.name.name]
        return int(known in self.macros or known in _DEFINED)

    def _macro(self, name: str, depth: int) -> int:
        if name not in self.macros:  # 0 in C, where a misspelt name goes unnoticed
            raise Unreadable(f"'{name}' is no #define of a constant")
        return self._value(self.macros[name], depth - 1)

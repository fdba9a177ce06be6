"""Conditional compilation in the user's text: which lines stand, by the conditions of #if, #ifdef and the like."""

from __future__ import annotations

import operator
import re

from pycparser import c_ast, c_parser

from petsc_hdg.physics.elementary import OPERATORS
from petsc_hdg.physics.text.macros import Endless, Template, expand

WORDS = ("if", "ifdef", "ifndef", "elif", "else", "endif")
# What is defined here as in a PETSc of real doubles; other names are defined by the text alone.
_OURS = frozenset({"PETSC_USE_REAL_DOUBLE"})
_DEFINED = re.compile(r"\bPetscDefined\s*\(\s*(\w+)\s*\)|\bdefined\s*\(\s*(\w+)\s*\)|\bdefined\s+(\w+)")
_UNARY = {"!": operator.not_, "-": operator.neg, "+": operator.pos, "~": operator.invert}


class Unreadable(Exception):
    """A condition that cannot be evaluated here."""


class Conditionals:
    """The nest of conditions around the present line. `macros` is what the text has defined up to there."""

    def __init__(self, macros: dict[str, str | Template]):
        self.macros = macros
        self.open: list[list[bool]] = []  # of each level: whether its lines stand, whether one of its branches did

    @property
    def stand(self) -> bool:
        """True if the present line stands."""
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
        try:
            whole = self._answered(expand(self._answered(text), self.macros))
            return bool(_number(c_parser.CParser().parse(f"int condition = {whole};").ext[0].init))
        except Endless as error:
            raise Unreadable(f"a #define {error}") from error
        except (c_parser.ParseError, ArithmeticError, AttributeError, IndexError, KeyError, ValueError) as error:
            raise Unreadable(f"the condition '{text}' cannot be read") from error

    def _answered(self, text: str) -> str:
        """`text` with 1 or 0 in place of each defined(NAME), defined NAME and PetscDefined(NAME)."""
        return _DEFINED.sub(lambda match: str(int(self._known(*match.groups()))), text)

    def _known(self, petsc: str | None, in_brackets: str | None, bare: str | None) -> bool:
        name = f"PETSC_{petsc}" if petsc else in_brackets or bare
        return name in self.macros or name in _OURS


def _number(node) -> int:
    """Value of a condition whose macros are replaced; what && || ?: pass over may be anything, as in C."""
    if isinstance(node, c_ast.Constant):
        return _integer(node.value.rstrip("lL"))
    if isinstance(node, c_ast.ID):  # 0 in C, where a misspelt name goes unnoticed
        raise Unreadable(f"'{node.name}' is no #define of a constant")
    if isinstance(node, c_ast.UnaryOp):
        return int(_UNARY[node.op](_number(node.expr)))
    if isinstance(node, c_ast.TernaryOp):
        return _number(node.iftrue if _number(node.cond) else node.iffalse)
    left = _number(node.left)  # AttributeError of a call
    if node.op in ("&&", "||") and bool(left) == (node.op == "||"):
        return int(bool(left))
    right = _number(node.right)
    if node.op in ("/", "%") and right == 0:
        raise ZeroDivisionError
    return int(OPERATORS[node.op](left, right))


def _integer(digits: str) -> int:
    """An integer of C, whose octal numbers begin with 0; ValueError of one without sign, in which -1 is large."""
    return int(digits, 8 if re.fullmatch("0[0-7]+", digits) else 0)

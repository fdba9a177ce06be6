"""The small part of C's preprocessor that pointwise functions need, keeping every line where the user wrote it."""

from __future__ import annotations

import operator
import re
from dataclasses import dataclass

from pycparser import c_ast, c_parser

from petsc_hdg.physics.elementary import OPERATORS
from petsc_hdg.physics.text.source import Source

_IDENTIFIER = re.compile(r"(?<![\w.])[A-Za-z_]\w*")
_PARAMETERS = re.compile(r"\(\s*([\w\s,]*?)\s*\)(.*)")
_MOST_PASSES = 20  # besides one for each macro
_LONGEST = 1_000_000  # characters of a line
_TOKENS = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)
_CONTINUED = re.compile(r"^(?:[^\n]*\\\n)+[^\n]*", re.MULTILINE)
_DIRECTIVE = re.compile(r"\s*#\s*(\w*)\s*(.*)")
_MACRO = re.compile(r"([A-Za-z_]\w*)(\(?)(.*)")
_INCLUDES = re.compile(r'<[\w./+-]+>|"(petsc[\w/]*|math|stdlib|stdio|stdbool|tgmath|string)\.h"')
_STRUCTURE = re.compile(r"\b(?:(typedef)\s+)?struct\b\s*(\w*)\s*\{[^{}]*\}\s*(\w*)\s*;")
_ENUMERATION = re.compile(r"(?:\btypedef\s+)?\benum\b\s*\w*\s*\{([^{}]*)\}\s*\w*\s*;")
_ENUMERATOR = re.compile(r"(\s*)([A-Za-z_]\w*)\s*(?:=([^,]*))?\s*\Z")
WORDS = ("if", "ifdef", "ifndef", "elif", "else", "endif")
# What is defined here as in a PETSc of real doubles; other names are defined by the text alone.
_OURS = frozenset({"PETSC_USE_REAL_DOUBLE"})
_DEFINED = re.compile(r"\bPetscDefined\s*\(\s*(\w+)\s*\)|\bdefined\s*\(\s*(\w+)\s*\)|\bdefined\s+(\w+)")
_UNARY = {"!": operator.not_, "-": operator.neg, "+": operator.pos, "~": operator.invert}
HELPERS = """
static inline void DMPlex_Det2D_Internal(PetscReal *detJ, const PetscReal J[])
{
  *detJ = J[0] * J[3] - J[1] * J[2];
}
static inline void DMPlex_Det3D_Internal(PetscReal *detJ, const PetscReal J[])
{
  *detJ = J[0] * (J[4] * J[8] - J[5] * J[7]) + J[1] * (J[5] * J[6] - J[3] * J[8]) + J[2] * (J[3] * J[7] - J[4] * J[6]);
}
static inline void DMPlex_Det2D_Scalar_Internal(PetscReal *detJ, const PetscScalar J[])
{
  DMPlex_Det2D_Internal(detJ, J);
}
static inline void DMPlex_Det3D_Scalar_Internal(PetscReal *detJ, const PetscScalar J[])
{
  DMPlex_Det3D_Internal(detJ, J);
}
static inline void DMPlex_Invert2D_Internal(PetscReal invJ[], const PetscReal J[], PetscReal detJ)
{
  invJ[0] = J[3] / detJ;
  invJ[1] = -J[1] / detJ;
  invJ[2] = -J[2] / detJ;
  invJ[3] = J[0] / detJ;
}
static inline void DMPlex_Invert3D_Internal(PetscReal invJ[], const PetscReal J[], PetscReal detJ)
{
  for (PetscInt i = 0; i < 3; ++i)
    for (PetscInt j = 0; j < 3; ++j) {
      const PetscInt p = (j + 1) % 3, q = (j + 2) % 3, r = (i + 1) % 3, s = (i + 2) % 3;
      invJ[i * 3 + j] = (J[p * 3 + r] * J[q * 3 + s] - J[p * 3 + s] * J[q * 3 + r]) / detJ;
    }
}
static inline PetscScalar DMPlex_DotD_Internal(PetscInt dim, const PetscScalar *x, const PetscReal *y)
{
  PetscScalar sum = 0.0;
  for (PetscInt d = 0; d < dim; ++d) sum += x[d] * y[d];
  return sum;
}
static inline PetscReal DMPlex_DotRealD_Internal(PetscInt dim, const PetscReal *x, const PetscReal *y)
{
  return DMPlex_DotD_Internal(dim, x, y);
}
static inline PetscReal DMPlex_NormD_Internal(PetscInt dim, const PetscReal *x)
{
  return PetscSqrtReal(DMPlex_DotD_Internal(dim, x, x));
}
static inline void PetscSortReal(PetscInt n, PetscReal v[])
{
  for (PetscInt i = 1; i < n; ++i) {
    const PetscReal value = v[i];
    PetscInt j;
    for (j = i; j > 0; --j) {
      if (v[j - 1] <= value) break;
      v[j] = v[j - 1];
    }
    v[j] = value;
  }
}
"""


class Endless(Exception):
    """A macro that names itself, or makes a line too long to read."""


@dataclass(frozen=True)
class Template:
    """Replacement text of a macro with arguments. `text` names `parameters`."""

    parameters: tuple[str, ...]
    text: str

    @staticmethod
    def read(name: str, text: str) -> Template | None:
        """Macro `name` from what follows its name, "(a, b) a * b"; None if it is more than a formula."""
        found = _PARAMETERS.fullmatch(text)
        if not found or "#" in found.group(2) or re.search(rf"\b{name}\b", found.group(2)):
            return None
        parameters = tuple(word.strip() for word in found.group(1).split(",")) if found.group(1) else ()
        return Template(parameters, found.group(2).strip())

    def apply(self, arguments: list[str]) -> str | None:
        """The text for `arguments`, None if they are too many or too few."""
        if len(arguments) != len(self.parameters):
            return None
        values = dict(zip(self.parameters, arguments, strict=True))
        return _IDENTIFIER.sub(lambda match: values.get(match.group(), match.group()), self.text)


def expand(given: str, macros: dict[str, str | Template]) -> str:
    """The line `given` with its macros replaced.

    Macros with arguments stay where their call does not fit or does not end. Endless is raised for what cannot be
    replaced.
    """
    line = given
    for _ in range(_MOST_PASSES + len(macros)):
        new = _once(line, macros)
        if new == line:
            return line
        if len(new) > max(_LONGEST, 2 * len(given)):
            raise Endless(f"makes this line longer than {_LONGEST} characters")
        line = new
    raise Endless("refers to itself")


def _once(line: str, macros: dict[str, str | Template]) -> str:
    parts, done = [], 0
    for match in _IDENTIFIER.finditer(line):
        macro = macros.get(match.group())
        if macro is None or match.start() < done:
            continue
        text, end = macro, match.end()
        if isinstance(macro, Template):
            arguments, end = _arguments(line, end)
            text = None if arguments is None else macro.apply(arguments)
        if text is not None:
            parts += [line[done : match.start()], text]
            done = end
    return "".join(parts) + line[done:]


def _arguments(line: str, start: int) -> tuple[list[str] | None, int]:
    """The arguments of a call whose name ends at `start`, and where the call ends; None if there is no whole call."""
    opening = re.compile(r"\s*\(").match(line, start)
    if not opening:
        return None, start
    arguments, depth, begun = [], 1, opening.end()
    for position in range(begun, len(line)):
        character = line[position]
        depth += (character in "([{") - (character in ")]}")
        if depth == 0 or (depth == 1 and character == ","):
            arguments.append(line[begun:position].strip())
            begun = position + 1
        if depth == 0:
            return [] if arguments == [""] else arguments, begun
    return None, start


def preprocess(source: Source, text: str, macros: dict[str, str | Template], refused: dict[str, Exception]) -> str:
    """`text` without comments and directives, macros replaced and enumerations spelt out as constants.

    macros   gains what the text defines
    refused  gains errors, by name, of what the text defines but a physics cannot have: raise that of a name in use
    """
    text = _TOKENS.sub(_blank_comment, _CONTINUED.sub(_splice, text.replace("\r\n", "\n")))
    lines, conditions, begun = [], Conditionals(macros), 0
    for number, line in enumerate(text.split("\n"), 1):
        directive = _DIRECTIVE.fullmatch(line)
        if directive and directive.group(1) in WORDS:
            begun = begun if conditions.open else number
            try:
                conditions.obey(directive.group(1), directive.group(2).strip())
            except Unreadable as error:
                raise source.error(number, f"{error}; conditions are of defined(), integers and #define") from error
        elif directive and conditions.stand:
            _obey(source, number, directive.group(1), directive.group(2).strip(), macros, refused)
        stands = conditions.stand and not directive
        lines.append(_expand(source, number, line, macros) if stands else "")
    if conditions.open:
        raise source.error(begun, "a condition begins here that no #endif ends")
    text = _ENUMERATION.sub(_constants, "\n".join(lines))
    return _STRUCTURE.sub(_name_alone, text)


def _splice(match: re.Match) -> str:
    """Lines continued with a backslash as one, then as many empty ones: what follows keeps its numbers."""
    text = match.group()
    return text.replace("\\\n", "") + "\n" * text.count("\\\n")


def _blank_comment(match: re.Match) -> str:
    text = match.group()
    if text.startswith(("//", "/*")):
        return re.sub(r"[^\n]", " ", text)
    return re.sub(r"[(){}\[\];]", " ", text)  # brackets in a text are no brackets of C


def _obey(
    source: Source, line: int, word: str, rest: str, macros: dict[str, str | Template], refused: dict[str, Exception]
) -> None:
    if word == "include":
        if not _INCLUDES.fullmatch(rest):
            raise source.error(line, f"#include {rest} cannot be followed; put the functions into `helpers`")
    elif word == "define":
        macro = _MACRO.fullmatch(rest)
        if not macro:
            raise source.error(line, f"#define {rest} has no name")
        name, takes_arguments, rest_of_it = macro.groups()
        refused.pop(name, None)
        if not takes_arguments:
            macros[name] = rest_of_it.strip()
            return
        # Raised where the name is left over in the text in use, as all calls that can be read are replaced.
        rule = "takes arguments: it must be a formula without #, and each use be one line with all of them"
        refused[name] = source.error(line, f"#define {rest} {rule}; write a static inline function instead")
        template = Template.read(name, "(" + rest_of_it)
        macros.pop(name, None)
        if template:
            macros[name] = template
    elif word == "undef":
        macros.pop(rest, None)
        refused.pop(rest, None)
    elif word not in ("pragma", ""):
        raise source.error(
            line, f"#{word} is not read here; #define of constants, #if and #include of PETSc's headers are"
        )


def _expand(source: Source, number: int, line: str, macros: dict[str, str | Template]) -> str:
    try:
        return expand(line, macros)
    except Endless as error:
        raise source.error(number, f"a #define {error}") from None


def _name_alone(match: re.Match) -> str:
    """`typedef struct { … } T;` as `typedef struct T_ T;`; all lines keep their numbers."""
    typedef, tag, name = match.groups()
    if bool(typedef) != bool(name) or not (tag or name):
        return match.group()
    short = f"typedef struct {tag or name + '_'} {name};" if typedef else f"struct {tag};"
    return short + "\n" * match.group().count("\n")


def _constants(match: re.Match) -> str:
    """`enum { A, B = 4 };` as `static const int A = 0; …`; all lines keep their numbers."""
    entries = match.group(1).split(",")
    if not entries[-1].strip():
        entries.pop()
    parts, value = [match.string[match.start() : match.start(1)].count("\n") * "\n"], "0"
    for entry in entries:
        found = _ENUMERATOR.match(entry)
        if not found:
            return match.group()
        given = (found.group(3) or value).strip()
        parts.append(f"{found.group(1)}static const int {found.group(2)} = {given};")
        value = str(int(given) + 1) if given.isdecimal() else f"{found.group(2)} + 1"
    text = "".join(parts)
    return text + "\n" * (match.group().count("\n") - text.count("\n"))


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

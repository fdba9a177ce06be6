"""From the user's text to pycparser's syntax tree, with errors on the user's lines."""

from __future__ import annotations

import re
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass

from pycparser import c_ast, c_parser

from petsc_hdg.physics.text.preprocess import preprocess
from petsc_hdg.physics.text.source import Source

REAL_TYPES = ("PetscReal", "PetscScalar", "double", "float", "real")
INT_TYPES = ("PetscInt", "int", "PetscBool", "bool", "unsigned", "long", "short", "size_t", "PetscCount", "PetscMPIInt")
# Types of C that a physics cannot have: their numbers wrap or are rounded otherwise than PetscInt and PetscReal.
OTHER_RANGE = frozenset({"unsigned", "size_t", "short", "float"})
OTHER_TYPES = ("PetscErrorCode", "PetscComplex")

_PRELUDE = "".join(
    f"typedef {base} {name};"
    for base, names in (("double", REAL_TYPES + OTHER_TYPES), ("int", INT_TYPES))
    for name in names
    if name not in ("double", "float", "int", "unsigned", "long", "short")
)
_FUNCTION = re.compile(r"[A-Za-z_][\w\s*]*[\s*]([A-Za-z_]\w*)\s*\([^;{}]*\)\s*\{")
_KEYWORDS = frozenset({"if", "for", "while", "switch", "else", "do", "return"})
# Qualifiers of PETSc, CUDA and OpenCL that mean nothing here.
_QUALIFIERS = re.compile(
    r"\b(PETSC_UNUSED|PETSC_EXTERN|PETSC_INTERN|PETSC_STATIC_INLINE|PETSC_RESTRICT|restrict|__restrict__|__kernel|__private|__inline__|register|volatile)\b"
)
_CONTEXT = re.compile(r"\bPetscCtx\b")
_FORMAT = re.compile(r"\bPetscInt_FMT\b")  # of messages, which are not read
_DECLARED = re.compile(r"\b([A-Za-z_]\w*)\s+\**\s*[A-Za-z_]\w*\s*[\[,)=;(]")
_BEFORE_NAMES = frozenset({"const", "void", "char", "signed", "static", "inline", "extern", "goto", "case"}) | _KEYWORDS
_POSITION = re.compile(r"physics:(\d+):(\d+): ?(.*)", re.DOTALL)
_STACK_BYTES, _MOST_CALLS = 512 << 20, 200_000
_WORD = re.compile(r"[A-Za-z_]\w*")
_TYPE = re.compile(r"\s*(typedef\b|(struct|union|enum)\b[^()=;]*\{)")
_TYPE_NAME = re.compile(r"([A-Za-z_]\w*)\s*;\s*$")
_NAME = re.compile(r"([A-Za-z_]\w*)\s*(?:\(|\[|=|;)")


@dataclass(frozen=True)
class Parsed:
    """Contents of a text: functions by name, file-scope declarations by name, and whether it was a bare body."""

    source: Source
    functions: dict
    declarations: dict
    is_body: bool
    lines: int


def is_whole_function(text: str) -> bool:
    """Return True if preprocessed `text` defines functions rather than being the body of one."""
    heads = (text[slice(*piece)].partition("{")[:2] for piece in _pieces(text))
    return any(match.group(1) not in _KEYWORDS for head in heads for match in _FUNCTION.finditer("".join(head)))


def parse(source: Source, macros: dict[str, str], library: bool = False) -> Parsed:
    """Parse `source`; `library` says that it holds helper functions and is never a body."""
    refused: dict[str, Exception] = {}
    text = preprocess(source, source.text, macros, refused)
    text = _QUALIFIERS.sub(lambda match: " " * len(match.group()), text)
    text = _CONTEXT.sub("void   *", text)  # as long as the word: columns stay
    text = _FORMAT.sub('"d"         ', text)
    _check_brackets(source, text)
    if source.function:
        text = _only(source, text)
    for name, error in refused.items():
        if re.search(rf"\b{name}\b", text):
            raise error
    is_body = not library and not is_whole_function(text)
    whole = (
        f'{_PRELUDE}\nvoid body_(void) {{ {source.opening}\n#line 1 "physics"\n{text}{source.closing}\n}}'
        if is_body
        else f'{_PRELUDE}\n#line 1 "physics"\n{text}'
    )
    try:
        tree = c_parser.CParser().parse(whole, "prelude")
    except c_parser.ParseError as error:
        raise _syntax_error(source, text, str(error)) from None
    functions, declarations = {}, {}
    for node in tree.ext:
        _sort(source, node, functions, declarations)
    return Parsed(source, functions, declarations, is_body, text.count("\n") + 1)


def _only(source: Source, text: str) -> str:
    found = extract(text, source.function)
    if found is None:
        whole = [text[slice(*piece)] for piece in _pieces(text)]
        names = [name for part in whole if "{" in part and "=" not in part.split("{")[0] and (name := _name(part))]
        known = ", ".join(names) or "none"
        raise source.error(None, f"there is no function '{source.function}'; the text has {known}")
    return found


def line_of(node) -> int:
    """Line of a node in the user's text."""
    return node.coord.line if getattr(node, "coord", None) else 0


def _sort(source: Source, node, functions: dict, declarations: dict) -> None:
    if isinstance(node, c_ast.FuncDef):
        if node.decl.name in functions:
            raise source.error(line_of(node), f"function '{node.decl.name}' is defined twice")
        functions[node.decl.name] = node
    elif isinstance(node, c_ast.Decl) and not isinstance(node.type, c_ast.FuncDecl):
        if node.name is None and isinstance(node.type, c_ast.Struct) and node.type.decls is None:
            return
        if node.name is None or isinstance(node.type, (c_ast.Struct, c_ast.Union)):
            raise source.error(line_of(node), "structures and enumerations are not supported; use scalars and arrays")
        declarations[node.name] = node
    elif isinstance(node, c_ast.Typedef) and node.coord.file == "physics":
        if isinstance(getattr(node.type, "type", None), c_ast.Struct) and node.type.type.decls is None:
            return
        raise source.error(line_of(node), "typedef is not supported; use PetscReal, PetscScalar and PetscInt")


def _check_brackets(source: Source, text: str) -> None:
    """Unbalanced brackets, which the parser would report far from their place."""
    partner, stack = {")": "(", "]": "[", "}": "{"}, []
    line = 1
    for character in text:
        line += character == "\n"
        if character in "([{":
            stack.append((character, line))
        elif character in ")]}":
            if not stack or stack[-1][0] != partner[character]:
                raise source.error(line, f"'{character}' closes nothing that is open")
            stack.pop()
        elif character == ";" and stack and stack[-1][0] == "[":
            break
    if stack:
        raise source.error(stack[-1][1], f"'{stack[-1][0]}' is never closed")


def _syntax_error(source: Source, text: str, message: str):
    match = _POSITION.match(message)
    if not match:
        return _unknown_type(source, text) or _ended(source, text)
    line, column, detail = int(match.group(1)), int(match.group(2)), match.group(3).strip()
    lines = text.split("\n")
    if line > len(lines) or not "\n".join(lines[line - 1 :])[column - 1 :].strip():
        return _ended(source, text)
    token = re.match(r"\w+|\S", lines[line - 1][column - 1 :].lstrip() or lines[line - 1].strip()).group()
    before = "\n".join(lines[: line - 1]).rstrip()
    starts_line = not lines[line - 1][: column - 1].strip()
    if starts_line and before and before[-1] not in ";{}" and not source.opening:
        missing = before.count("\n") + 1
        return source.error(missing, f"a ';' seems to be missing at the end of '{before.splitlines()[-1].strip()}'")
    if token == "}":
        return source.error(line, f"a ';' seems to be missing before the '}}' at column {column}")
    detail = "" if detail.startswith("before") else f" ({detail[0].lower()}{detail[1:]})" if detail else ""
    return source.error(line, f"cannot be read as C at column {column}, near '{token}'{detail}")


def _unknown_type(source: Source, text: str):
    """The error of the first declaration with a type that is none, if there is one: pycparser tells no place."""
    for declared in _DECLARED.finditer(text):
        if declared.group(1) not in _BEFORE_NAMES.union(REAL_TYPES, INT_TYPES, OTHER_TYPES):
            line = text.count("\n", 0, declared.start()) + 1
            return source.error(line, f"unknown type '{declared.group(1)}'; use PetscReal, PetscScalar and PetscInt")
    return None


def _ended(source: Source, text: str):
    if source.opening:
        return source.error(_last_line(text), f"'{source.text.strip()}' is not a complete expression of C")
    return source.error(_last_line(text), "the text ends before the statement does; is a ';' missing?")


def _last_line(text: str) -> int:
    return text.rstrip().count("\n") + 1


def deeply(source: Source, call: Callable):
    """The result of `call()`, in a thread with a large stack if Python's own is too small for it.

    Raises the PhysicsError of `source` for what nests deeper than that.
    """
    try:
        return call()
    except RecursionError:
        pass
    found: list = []
    before = threading.stack_size(_STACK_BYTES)
    try:
        thread = threading.Thread(target=_run, args=(call, found), daemon=True)
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    result, error = found
    if isinstance(error, (RecursionError, MemoryError)):
        raise source.error(None, "the text nests too deep to be read; split it into several statements") from None
    if error is not None:
        raise error
    return result


def _run(call: Callable, found: list) -> None:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(max(limit, _MOST_CALLS))
    try:
        found += [call(), None]
    except BaseException as error:  # noqa: BLE001  (raised in the thread that waits)
        found += [None, error]
    finally:
        sys.setrecursionlimit(limit)


def extract(text: str, function: str) -> str | None:
    """Preprocessed `text` with all but `function` and what it mentions made blank; None if it is not there."""
    pieces = _pieces(text)
    named = {name: piece for piece in pieces if (name := _name(text[slice(*piece)])) is not None}
    if function not in named:
        return None
    needed, stack = set(), [function]
    while stack:
        name = stack.pop()
        if name not in needed:
            needed.add(name)
            stack += [word for word in _WORD.findall(text[slice(*named[name])]) if word in named]
    kept = {named[name] for name in needed}
    parts = [text[slice(*piece)] if piece in kept else re.sub(r"[^\n]", " ", text[slice(*piece)]) for piece in pieces]
    return "".join(parts)


def is_never_changed(text: str, name: str) -> bool:
    """True if nothing in a C file's `text` writes to the variable `name` outside all functions, but its declaration."""
    writes = rf"&\s*{name}\b|(\+\+|--)\s*{name}\b|\b{name}\b(\s*\[[^]]*\])*\s*(=(?!=)|[-+*/%&|^]=|\+\+|--)"
    is_array = re.search(rf"\b{name}\s*\[", text)
    is_passed = is_array and re.search(rf"\b{name}\b(?!\s*\[)", text)
    return len(re.findall(writes, text)) == 1 and not is_passed


def _pieces(text: str) -> list[tuple[int, int]]:
    """(start, end) of each declaration or function at file scope; together they are the whole text."""
    pieces, start, depth, body = [], 0, 0, False
    for position, character in enumerate(text):
        if character == "{":
            body = body or (depth == 0 and text[start:position].rstrip().endswith(")"))
            depth += 1
        elif character == "}":
            depth -= 1
        if depth == 0 and (character == ";" or (character == "}" and body)):
            pieces.append((start, position + 1))
            start, body = position + 1, False
    return [*pieces, (start, len(text))]


def _name(piece: str) -> str | None:
    """Name that a piece defines: of a function with a body, a constant or a type; None for others."""
    if _TYPE.match(piece):
        named = _TYPE_NAME.search(piece)  # not its members
        return named.group(1) if named else None
    match = _NAME.search(piece.split("{")[0] if "(" in piece.split("{")[0] else piece)
    prototype = "{" not in piece and "=" not in piece
    return None if match is None or prototype else match.group(1)

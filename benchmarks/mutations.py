"""Mutated inputs: a valid file, text or list of options, changed at random in a few places; a seed makes it again."""

from __future__ import annotations

import random
import re
from pathlib import Path

MESHES = Path(__file__).resolve().parents[1] / "tests" / "meshes"
NUMBERS = ("0", "-1", "1", "2", "3", "7", "99", "65536", "2147483647", "2147483648", "-2147483649", "1e30", "-1e-30")
NUMBERS += ("1e308", "1e400", "nan", "inf", "0x10", "1.5", "00", "1e5", "")
_NUMBER = re.compile(rb"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?")


def mutated_bytes(content: bytes, rng: random.Random, text: bool = True) -> bytes:
    """Content with one to three changes: of bytes, and of lines and numbers if it is text."""
    changes = [_flip, _cut_out, _twice, _insert, _truncate]
    if text:
        changes += [_number] * 4 + [_digit] * 12 + [_swap_numbers] * 3 + [_drop_line, _double_line, _swap_lines]
    for _ in range(rng.choice((1, 1, 2, 3))):
        content = rng.choice(changes)(content, rng) if content else content
    return content


def _place(content: bytes, rng) -> int:
    return rng.randrange(len(content))


def _flip(content: bytes, rng) -> bytes:
    i = _place(content, rng)
    return content[:i] + bytes([content[i] ^ (1 << rng.randrange(8))]) + content[i + 1 :]


def _cut_out(content: bytes, rng) -> bytes:
    i = _place(content, rng)
    return content[:i] + content[i + rng.choice((1, 1, 4, 50, 400)) :]


def _twice(content: bytes, rng) -> bytes:
    i = _place(content, rng)
    return content[:i] + content[i : i + rng.choice((1, 8, 100))] + content[i:]


def _insert(content: bytes, rng) -> bytes:
    i = _place(content, rng)
    return content[:i] + bytes(rng.randrange(256) for _ in range(rng.choice((1, 2, 16)))) + content[i:]


def _truncate(content: bytes, rng) -> bytes:
    return content[: _place(content, rng)]


def _number(content: bytes, rng) -> bytes:
    found = list(_NUMBER.finditer(content))
    if not found:
        return content
    at = rng.choice(found)
    return content[: at.start()] + rng.choice(NUMBERS).encode() + content[at.end() :]


def _digit(content: bytes, rng) -> bytes:
    """One digit of a number is another one."""
    found = list(re.finditer(rb"\d", content))
    if not found:
        return content
    at = rng.choice(found).start()
    return content[:at] + str(rng.randrange(10)).encode() + content[at + 1 :]


def _swap_numbers(content: bytes, rng) -> bytes:
    found = list(_NUMBER.finditer(content))
    if len(found) < 2:
        return content
    a, b = sorted(rng.sample(found, 2), key=lambda match: match.start())
    return content[: a.start()] + b[0] + content[a.end() : b.start()] + a[0] + content[b.end() :]


def _lines(content: bytes, rng, change) -> bytes:
    lines = content.split(b"\n")
    change(lines, rng.randrange(len(lines)), rng.randrange(len(lines)))
    return b"\n".join(lines)


def _drop_line(content: bytes, rng) -> bytes:
    return _lines(content, rng, lambda lines, i, j: lines.pop(i))


def _double_line(content: bytes, rng) -> bytes:
    return _lines(content, rng, lambda lines, i, j: lines.insert(i, lines[i]))


def _swap_lines(content: bytes, rng) -> bytes:
    def swap(lines, i, j):
        lines[i], lines[j] = lines[j], lines[i]

    return _lines(content, rng, swap)


# Physics ---------------------------------------------------------------------------------------------------------

TEXTS = (
    (
        "PetscReal square = 0.0;\nfor (d = 0; d < dim; ++d) square += u_x[d]*u_x[d];\n"
        "if (square > 1.0) f0[0] = sin(u[0])*kappa - x[0];\nelse f0[0] = pow(u[0], 3)/(1.0 + square);",
        "PetscReal nu = 1.0 + PetscSqr(u[0]);\nfor (PetscInt c = 0; c < dim; ++c) f1[c] = nu*u_x[c] + kappa*u[0]*x[c];",
    ),
    (
        "const PetscReal r[2] = {x[0] - 0.5, x[1]*x[1]};\nPetscInt k = 0;\nwhile (k < 2) {\n  f0[0] += r[k]*u[0];\n"
        "  k++;\n}\nf0[0] -= exp(-kappa*u[0]) > 0.5 ? 1.0 : 2.0*u[0];",
        "PetscReal w[2][2];\nfor (d = 0; d < dim; ++d) {\n  for (PetscInt e = 0; e < dim; ++e) w[d][e] = d == e ? 2.0 :"
        " 0.5;\n}\nfor (d = 0; d < dim; ++d) f1[d] = w[d][0]*u_x[0] + w[d][1]*u_x[1];",
    ),
)
_WORDS = ("u", "x", "f0", "f1", "u_x", "u_t", "d", "dim", "kappa", "t", "sin", "sqrt", "PetscReal", "PetscInt", "const")
_WORDS += (
    "if",
    "for",
    "return",
    "int",
    "a",
    "n",
    "constants",
    "0",
    "1",
    "2",
    "10",
    "1e300",
    "-1",
    "0.5",
    "3/2",
    "u[1]",
)
_SIGNS = tuple("+-*/%=<>!&|^~?:;,.()[]{}#\\\"'@$ \n") + (
    "++",
    "--",
    "==",
    "!=",
    "+=",
    "<<",
    "&&",
    "||",
    "/*",
    "//",
    "->",
)
_ALIKE = (("+", "-", "*", "/"), ("<", ">", "<=", ">=", "==", "!="), ("=", "+=", "-=", "*="), ("&&", "||"))
_ALIKE += (("sin", "cos", "exp", "sqrt", "fabs", "PetscSqr", "log"), ("u", "x", "u_x"), ("square", "nu", "kappa", "t"))
_ALIKE += (("0", "1", "2", "3"), ("1.0", "0.5", "2.0", "0.0"), ("dim", "2", "1"), ("if", "while"), ("d", "e", "c", "k"))
_TOKEN = re.compile(r"\d+\.\d*|\w+|[<>=!+*/&|-]+|[^\w\s]|\s+")


def mutated_physics(rng: random.Random) -> tuple[str, str]:
    """Texts of f0 and f1, of which one has one or two tokens changed."""
    texts = list(rng.choice(TEXTS))
    which = rng.randrange(2)
    for _ in range(rng.choice((1, 1, 2))):
        texts[which] = _mutated_tokens(texts[which], rng)
    return texts[0], texts[1]


def _mutated_tokens(text: str, rng) -> str:
    tokens = _TOKEN.findall(text)
    i = rng.randrange(len(tokens))
    alike = next((group for group in _ALIKE if tokens[i] in group), None)
    if alike is not None and rng.random() < 0.8:
        tokens[i] = rng.choice(alike)
        return "".join(tokens)
    how = rng.randrange(5)
    if how == 0:
        tokens[i] = rng.choice(_WORDS)
    elif how == 1:
        tokens[i] = rng.choice(_SIGNS)
    elif how == 2:
        del tokens[i]
    elif how == 3:
        tokens.insert(i, tokens[rng.randrange(len(tokens))])
    else:
        j = rng.randrange(len(tokens))
        tokens[i], tokens[j] = tokens[j], tokens[i]
    return "".join(tokens)


# Options ---------------------------------------------------------------------------------------------------------

BACKENDS = ("cg_gpu", "hdg_gpu", "sipg_gpu", "poly_gpu")
_SOLVER = {
    "ksp_type": ("cg", "gmres", "preonly", "foo", "python"),
    "pc_type": ("lu", "jacobi", "gamg", "mg", "bar", "python"),
}
_SOLVER |= {"ksp_rtol": ("1e-3", "1e-12", "-1", "2", "x"), "ksp_max_it": ("1", "0", "-5", "1000000", "y")}
_SOLVER |= {
    "snes_type": ("newtonls", "ksponly", "nonsense"),
    "dm_vec_type": ("standard", "seq", "mpi", "viennacl", "no"),
}
_SOLVER |= {"dm_plex_box_faces": ("3,3", "1,1", "0,2", "2", "a,b", "2,2,2", "1e1,3", "99999999,99999999", "-3,4", "3,")}
_SOLVER |= {"dm_plex_dim": ("2", "3", "1", "0", "-1", "10", "two"), "dm_plex_simplex": ("0", "1", "maybe")}
_SOLVER |= {"dm_refine": ("1", "0", "-1", "x", "30"), "dm_plex_box_upper": ("1,2", "0,0", "nan,1", "1e-300,1", "inf,1")}
_SOLVER |= {"dm_plex_filename": ("none.msh", "", "/", "/dev/null"), "dm_mat_type": ("aij", "baij", "dense", "what")}
_VALUES = (
    *NUMBERS,
    "true",
    "false",
    "auto",
    "yes",
    "none",
    "all",
    "é",
    "1,2",
    "1 2",
    "-",
    "%s",
    "a" * 300,
    "2",
    "1",
    "0.5",
)
_TOO_MUCH = {"fe_degree": 4, "fe_quadrature_degree": 10}  # larger ones are accepted, and compile for minutes


def our_options() -> dict[str, tuple]:
    """Default and choices of each option of the package, by its name."""
    from dataclasses import fields

    from petsc_hdg.database import option_name
    from petsc_hdg.options import Options

    return {option_name(f): (f.default, f.metadata["choices"]) for f in fields(Options) if f.name != "prefix"}


def mutated_options(rng: random.Random) -> list[str]:
    """Options of a program in a command line: a scheme and one to three others with values good and bad."""
    ours = {name: choices for name, (_, choices) in our_options().items()}
    for files in ("fe_kernel_view", "fe_report", "fe_checkpoint", "fe_restart", "fe_output"):
        ours.pop(files, None)
    given = ["-fe_backend", rng.choice(BACKENDS)]
    for _ in range(rng.choice((1, 2, 3))):
        name = rng.choice((*ours, *_SOLVER))
        pool = _SOLVER.get(name) or (*_VALUES, *(ours[name] or ()), *(ours[name] or ()))
        value = rng.choice(pool)
        if name in _TOO_MUCH and value.isdigit() and _TOO_MUCH[name] < int(value) <= 30:
            value = str(_TOO_MUCH[name])
        if rng.random() < 0.1:
            name = name[:-1]
        given += [f"-{name}", value] if value else [f"-{name}"]
    return given

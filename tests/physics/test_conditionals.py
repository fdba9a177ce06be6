"""Conditions of #if, against gcc's preprocessor."""

import random
import re
import shutil
import subprocess

import pytest

from petsc_hdg.physics.text.preprocess import Conditionals, Unreadable

GCC = shutil.which("gcc")
DEFINES = {"A": "1 + 1", "B": "A*3", "C": "(B)", "EMPTY": "", "PETSC_HAVE_X": "1"}
CONDITIONS = {  # condition → whether its lines stand
    "defined(X) && X > 2": False,
    "!defined X || X > 2": True,
    "defined(A) && A > 2": False,
    "defined(X) ? X : A": True,
    "!defined(X) ? A == 2 : X": True,
    "0 && 1/0": False,
    "1 || 1/0": True,
    "1 ? 2 : 1 % 0": True,
    "(defined(X) && X) || (defined(A) && A == 2)": True,
    "A*3 == 4": True,  # put in as text, as C does: 1 + 1*3
    "B == 4 && C == 4 && C*2 == 8": True,
    "010 == 8 && 0x1F == 31 && 7L == 7": True,
    "~0 == -1 && (1 << 4) == 16 && -7/2 == -3 && !defined(EMPTY) == 0": True,
    "defined EMPTY && defined(A)": True,
}
REFUSED = ("X > 2", "defined(A) && X", "0 || X", "1 ? X : 1", "1 && 1/0", "EMPTY", "-1 > 0u", "1 &&", "X(3)")
OPERATORS = "+ - * / % < > <= >= == != & | ^ && || && ||".split()


def holds(text: str) -> bool:
    conditions = Conditionals(dict(DEFINES))
    conditions.obey("if", text)
    return conditions.stand


def gcc_says(conditions: list[str]) -> list[bool | None]:
    """Whether the lines of each condition stand; None where gcc refuses it."""
    lines = [f"#define {name} {value}" for name, value in DEFINES.items()]
    lines += [f"#if {text}\nstands {number};\n#endif" for number, text in enumerate(conditions)]
    done = subprocess.run(
        [GCC, "-E", "-P", "-w", "-ftrack-macro-expansion=0", "-"],
        input="\n".join(lines),
        capture_output=True,
        text=True,
    )
    stand = {int(number) for number in re.findall(r"stands (\d+);", done.stdout)}
    bad = {(int(line) - len(DEFINES) - 1) // 3 for line in re.findall(r"<stdin>:(\d+):\d+: error", done.stderr)}
    return [None if number in bad else number in stand for number in range(len(conditions))]


def drawn(rng: random.Random, depth: int) -> str:
    """A condition of small integers."""
    if depth == 0:
        return rng.choice(["0", "1", "2", "3", "-1", "A", "C", "defined(X)", "defined A"])
    kind = rng.random()
    if kind < 0.12:
        return rng.choice("!-~") + f"({drawn(rng, depth - 1)})"
    if kind < 0.25:
        return f"({drawn(rng, depth - 1)} ? {drawn(rng, depth - 1)} : {drawn(rng, depth - 1)})"
    both = f"{drawn(rng, depth - 1)} {rng.choice(OPERATORS)} {drawn(rng, depth - 1)}"
    return f"({both})" if rng.random() < 0.6 else both


@pytest.mark.parametrize("text", CONDITIONS)
def test_holds_as_in_c(text):
    assert holds(text) == CONDITIONS[text]


@pytest.mark.skipif(GCC is None, reason="needs gcc")
def test_the_table_is_that_of_gcc():
    assert gcc_says(list(CONDITIONS)) == list(CONDITIONS.values())


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_looked_at_must_be_known(text):
    with pytest.raises(Unreadable):
        holds(text)


@pytest.mark.skipif(GCC is None, reason="needs gcc")
def test_drawn_conditions_hold_as_gcc_says():
    rng = random.Random(1)
    texts = [drawn(rng, rng.choice((2, 3, 4))) for _ in range(400)]
    expected = gcc_says(texts)
    assert min(expected.count(value) for value in (True, False, None)) > 20
    for text, right in zip(texts, expected, strict=True):
        try:
            found = holds(text)
        except Unreadable:
            found = None
        assert found == right, text

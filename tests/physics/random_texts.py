"""Random well-defined C texts of pointwise functions, for comparisons with a C compiler."""

from __future__ import annotations

import ctypes
import random
import subprocess
from pathlib import Path

import numpy as np

_UNARY = ("sin", "cos", "atan", "tanh", "fabs", "floor", "erf")
_COMPARE = ("<", ">", "<=", ">=", "==", "!=")
_HEAD = "#include <math.h>\n#include <stdlib.h>\ntypedef double PetscReal;\ntypedef int PetscInt;\n"
_ARGUMENTS = "int dim, const double *u, const double *x, double *f0"
UNKNOWNS = 3


class Texts:
    """A generator of texts that read u[0 … 2] and x[0 … dim - 1] and write f0[0]: no overflow, no division by zero."""

    def __init__(self, seed: int):
        self.random = random.Random(seed)
        self.reals: list[str] = []
        self.ints: list[str] = []

    def text(self) -> str:
        """One text."""
        self.reals, self.ints = [], []
        lines = [f"PetscReal r0 = {self.real(2)};", f"PetscInt i0 = {self.integer(2)};"]
        self.reals, self.ints = ["r0"], ["i0"]
        lines += ["PetscReal w[4] = {1.5, -0.5};", "PetscInt k[3] = {07, 0x1F, -3};"]
        lines += [self.statement(2) for _ in range(self.random.randint(3, 7))]
        return "\n".join([*lines, f"f0[0] = {self.real(3)} + r0 + w[i0 & 3] + k[{self.index(3)}];"])

    def index(self, size: int) -> str:
        """An index inside an array."""
        return self.random.choice((str(self.random.randrange(size)), f"abs({self.integer(1)}) % {size}"))

    def integer(self, depth: int) -> str:
        """An integer expression between -200 and 200."""
        pick = self.random.randint(0, 9) if depth else self.random.randint(0, 1)
        a, b = (self.integer(depth - 1), self.integer(depth - 1)) if pick > 1 else ("", "")
        number = self.random.randint(1, 9)
        small = self.random.choice((str(number), f"0{number % 8}1", f"0x{number}a"))
        return (
            lambda: small,
            lambda: self.random.choice(self.ints) if self.ints else small,
            lambda: f"(({a} {self.random.choice('+-*')} {b}) % 89)",
            lambda: f"(({a} - dim) / {self.random.choice((-3, 2, 7))})",
            lambda: f"({a} % {self.random.choice((-5, 3, 8))})",
            lambda: f"({a} {self.random.choice(_COMPARE)} {b})",
            lambda: f"(({a} {self.random.choice('&|^')} {b}) % 97)",
            lambda: f"((abs({a}) % 16 << {number % 4}) >> {number % 3})",
            lambda: f"({self.logic(depth - 1)} ? {a} : {b})",
            lambda: f"{self.random.choice('-~!+')}{a}" if a[0] not in "-+" else f"-({a})",
        )[pick]()

    def logic(self, depth: int) -> str:
        """A condition."""
        one = f"{self.real(depth)} {self.random.choice(_COMPARE[:4])} {self.real(depth)}"
        if not depth or self.random.random() < 0.5:
            return f"({one})"
        return f"({one} {self.random.choice(('&&', '||'))} {self.integer(depth - 1)})"

    def real(self, depth: int) -> str:
        """A real expression of moderate size."""
        pick = self.random.randint(0, 9) if depth else self.random.randint(0, 2)
        a, b = (self.real(depth - 1), self.real(depth - 1)) if pick > 2 else ("", "")
        return (
            lambda: (
                self.random.choice(("0.5", "2.", ".25", "1e-1", "3"))
                if pick
                else f"u[{self.random.randrange(UNKNOWNS)}]"
            ),
            lambda: f"u[{self.index(UNKNOWNS)}]" if depth else "u[1]",
            lambda: f"x[{self.index(2)}]" if depth else self.random.choice(self.reals or ["x[0]"]),
            lambda: f"({a} + {b})",
            lambda: f"({a} - {b})",
            lambda: f"(0.5 * {a} * {b})",
            lambda: f"({a} / (1.5 + fabs({b})))",
            lambda: f"{self.random.choice(_UNARY)}({a})",
            lambda: f"({self.logic(depth - 1)} ? {a} : {b})",
            lambda: f"(0.01 * {self.integer(depth - 1)} + {a})",
        )[pick]()

    def statement(self, depth: int) -> str:
        """One statement, of several lines if it holds others."""
        pick = self.random.randint(0, 8 if depth else 3)
        name = f"{self.random.choice('ri')}{len(self.reals) + len(self.ints)}"
        if pick == 0:
            line = f"r0 = sin(r0) + {self.real(2)};"
        elif pick == 1:
            line = f"i0 = ({self.integer(2)}) % 50;"
        elif pick == 2:
            line = f"w[{self.index(4)}] {self.random.choice(('=', '+=', '-='))} tanh({self.real(2)});"
        elif pick == 3:
            line = f"k[{self.index(3)}] = {self.integer(2)} % 20;"
        elif pick == 4:
            value = self.integer(2) if name[0] == "i" else self.real(2)
            line = f"{'PetscInt' if name[0] == 'i' else 'PetscReal'} {name} = {value};"
            (self.ints if name[0] == "i" else self.reals).append(name)
        else:
            line = self.nested(pick, depth, name)
        return line

    def nested(self, pick: int, depth: int, name: str) -> str:
        """A branch or a loop."""
        kept = list(self.reals), list(self.ints)
        count = f"n{name}"
        body = lambda: "{ " + " ".join(self.statement(depth - 1) for _ in range(self.random.randint(1, 3)))  # noqa: E731
        if pick < 7:
            made = f"if ({self.logic(1)}) {body()} }} "
            self.reals, self.ints = list(kept[0]), list(kept[1])
            made += f"else {body()} }}"
        elif pick == 7:
            leave = f"if ({self.logic(1)}) {self.random.choice(('break', 'continue'))};"
            self.ints.append(count)
            made = f"for (PetscInt {count} = 0; {count} < {self.random.randint(1, 5)}; ++{count}) {body()} {leave} }}"
        else:
            made = f"{{ PetscInt {count} = 4; while ({count} > 0) {body()} {count} -= 1; }} }}"
        self.reals, self.ints = kept
        return made


def compiled_texts(texts: list[str], folder: Path):
    """The texts as a function of (number, u, x), compiled by gcc as they are."""
    functions = [f"static void text{n}({_ARGUMENTS})\n{{\n{text}\n}}\n" for n, text in enumerate(texts)]
    cases = " ".join(f"case {n}: text{n}(2, u, x, f0); break;" for n in range(len(texts)))
    main = f"void run(int number, const double *u, const double *x, double *f0) {{ switch (number) {{ {cases} }} }}\n"
    (folder / "texts.c").write_text(_HEAD + "".join(functions) + main)
    flags = ["-std=c99", "-O0", "-ffp-contract=off", "-shared", "-fPIC"]
    command = ["gcc", *flags, str(folder / "texts.c"), "-o", str(folder / "texts.so"), "-lm"]
    subprocess.run(command, check=True, capture_output=True)
    library = ctypes.CDLL(str(folder / "texts.so"))

    def run(number: int, u, x) -> float:
        arrays = [np.array(values, float) for values in (u, x, [0.0])]
        library.run(number, *[array.ctypes.data_as(ctypes.c_void_p) for array in arrays])
        return float(arrays[2][0])

    return run

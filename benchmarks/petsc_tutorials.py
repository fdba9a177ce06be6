"""PETSc's tutorials by all schemes: `python benchmarks/petsc_tutorials.py SOURCE [-md FILE] [-read]`, on any ranks.

SOURCE is PETSc's source, from whose files the pointwise functions are read; none of them is copied here. Two tables:

* solutions (not with -read): rows of ROWS, solved on boxes of 4 and 8 faces a side with elements of degree 2. A row
  passed if the error is rounding, or falls by FALL or more to the finer mesh (in time with half the step); the figure
  is the error there. Else it shows the sentence of the error. Rows whose exact solution does not solve the
  equation of the file are not applicable.
* functions: of each file with pointwise functions how many are read, and why the others are not.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import petsc4py

petsc4py.init(sys.argv)
sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from petsc4py import PETSc  # noqa: E402
from petsc_options import petsc_options  # noqa: E402

import petsc_hdg as fe  # noqa: E402
from petsc_hdg.errors import PetscHdgError, SolveError, our_error  # noqa: E402
from petsc_hdg.physics import CFile  # noqa: E402
from petsc_hdg.physics.objective import Objective  # noqa: E402

SCHEMES = ("cg_gpu", "hdg_gpu", "sipg_gpu", "poly_gpu")
FOLDERS = ("snes", "ts", "dm/impls/plex", "ksp/ksp")
ROUNDING, FALL, MATCHES = 1e-7, 2.5, 1e-5
HEAD = re.compile(
    r"^(?:PETSC_EXTERN |static |inline )*(?:void|PetscErrorCode)\s+(\w+)\s*\(\s*PetscInt\s+dim\s*,([^;{]*)\)\s*\{", re.M
)


@dataclass(frozen=True)
class Row:
    """One problem: names of functions in a file under src, by field.

    fields: name -> components.   steps: of a run from t = 0 to `end`, 0 of a steady problem.
    natural: f0_bd and f1_bd on the whole boundary, in the place of Dirichlet data for the first field.
    """

    file: str
    name: str
    f0: dict
    f1: dict
    exact: dict
    fields: dict = field(default_factory=lambda: {"u": 1})
    constants: dict = field(default_factory=dict)
    steps: int = 0
    end: float = 0.1
    guess: object = None
    natural: dict = field(default_factory=dict)


def _heat(name: str) -> Row:
    return Row("ts/tutorials/ex45.c", name, {"u": f"f0_{name}"}, {"u": "f1_temp"}, {"u": f"mms_{name}"}, steps=4)


def _elastic(kind: str, name: str) -> Row:
    functions = {"u": f"f0_{kind}_{name}_u"}, {"u": f"f1_{kind}_u"}, {"u": f"{name}_2d_u"}
    return Row("snes/tutorials/ex17.c", f"{kind}, {name}", *functions, {"u": 2}, {"mu": 1.0, "lambda": 2.0})


def _poisson(name: str, f0: str, f1: str = "f1_u", exact: str = "quadratic_u_2d", file: str = "ex12.c", **more) -> Row:
    return Row(f"snes/tutorials/{file}", name, {"u": f0}, {"u": f1}, {"u": exact}, **more)


def _flow(file: str, name: str, f0: str, exact: str, **more) -> Row:
    pressure = exact.replace("_u", "_p")
    functions = {"v": f0, "p": "f0_p"}, {"v": "f1_u"}, {"v": exact, "p": pressure}
    return Row(file, name, *functions, fields={"v": 2, "p": 1}, **more)


def _nitsche(name: str) -> Row:
    natural = {"v": (f"f0_bd_nitsche_{name}_u", f"f1_bd_nitsche_{name}_u"), "p": (f"f0_bd_nitsche_{name}_p", None)}
    constants = {"mu": 1.0, "penalty": 400.0}
    file, f0, exact = "snes/tutorials/ex62.c", f"f0_{name}_u", f"{name}_u"
    return _flow(file, f"{name}, Nitsche", f0, exact, constants=constants, natural=natural)


ROWS = [
    _poisson("quadratic", "f0_u"),
    _poisson("sine in x", "f0_xtrig_u", exact="xtrig_u_2d"),
    _poisson("sines", "f0_xytrig_u", exact="xytrig_u_2d"),
    _poisson("coefficient", "f0_analytic_u", "f1_analytic_u"),
    _poisson("nonlinear", "f0_analytic_nonlinear_u", "f1_analytic_nonlinear_u", guess=lambda x: x.sum(axis=-1)),
    _poisson("homogeneous", "f0_trig_homogeneous_u", exact="trig_homogeneous_u", file="ex13.c"),
    _poisson("inhomogeneous", "f0_trig_inhomogeneous_u", exact="trig_inhomogeneous_u", file="ex13.c"),
    *(_elastic(kind, name) for kind in ("vlap", "elas") for name in ("quadratic", "trig")),
    *(_flow("snes/tutorials/ex62.c", n, f"f0_{n}_u", f"{n}_u", constants={"mu": 1.0}) for n in ("quadratic", "trig")),
    *map(_nitsche, ("quadratic", "trig")),
    *(_heat(name) for name in ("quad_lin", "quad_trig", "trig_lin", "trig_trig")),
    *(_flow("ts/tutorials/ex46.c", f"mms{k}", f"f0_mms{k}_u", f"mms{k}_u_2d", steps=4) for k in (1, 2)),
]


def physics(source: Path, row: Row, backend: str) -> fe.Physics:
    """The row's physics, a pressure one degree lower where the scheme has fields of two degrees."""

    def read(function: str | None) -> CFile | None:
        return function and CFile(source / "src" / row.file, function)

    def of(names: dict) -> dict:
        return {name: read(function) for name, function in names.items()}

    lower = {"degree_offset": -1} if backend == "cg_gpu" else {}
    fields = {name: fe.Field(count, **(lower if name == "p" else {})) for name, count in row.fields.items()}
    walls = [fe.Robin("boundary", read(f0), name, f1=read(f1)) for name, (f0, f1) in row.natural.items()]
    walls = walls or [fe.Dirichlet("boundary", "exact", field=next(iter(fields)))]
    return fe.Physics(fields, of(row.f0), of(row.f1), boundary=walls, constants=row.constants, exact=of(row.exact))


def solved(source: Path, row: Row, backend: str, faces: int) -> float:
    """The error of the first field: the constant of a pressure is free."""
    problem = fe.Problem(fe.Mesh.box((faces, faces)), physics(source, row, backend), backend=backend, degree=2)
    first = next(iter(row.fields))
    if not row.steps:
        u = problem.solve(None if row.guess is None else problem.interpolate(row.guess))
        return problem.errors(u, field=first)["L2"]
    u = problem.solve_in_time(problem.interpolate("exact"), row.end, row.end / (row.steps * faces // 4))
    return problem.errors(u, row.end, first)["L2"]


def mismatch(source: Path, row: Row) -> float:
    """The largest f0 - div f1 of the exact solution at some places, by differences, over that of its parts."""
    known = physics(source, row, "hdg_gpu").interpreter(2)
    worst, step, t = 0.0, 1e-4, 0.03
    for x in np.random.default_rng(0).uniform(0.1, 0.9, (4, 2)):

        def parts(x, t=t):
            u_t = (known.pw_exact(t + step, x)[0] - known.pw_exact(t - step, x)[0]) / (2 * step)
            u, u_x = known.pw_exact(t, x)
            return known.pw_residual(u, u_t, u_x, None, None, t, x)

        f0, slopes = parts(x)[0], []
        for d, side in enumerate(step * np.eye(2)):
            slopes.append((parts(x + side)[1][:, d] - parts(x - side)[1][:, d]) / (2 * step))
        worst = max(worst, np.abs(f0 - sum(slopes)).max() / (1 + np.abs(f0).max() + np.abs(slopes).max()))
    return worst


def outcome(source: Path, row: Row, backend: str) -> str:
    """What the table shows of a row and a scheme. Collective."""
    try:
        if mismatch(source, row) > MATCHES:
            return "not applicable: the file's exact solution does not solve its equation"
        with petsc_options(ksp_rtol="1e-10"):
            coarse, fine = (solved(source, row, backend, faces) for faces in (4, 8))
    except (PetscHdgError, PETSc.Error) as error:
        kind = "not solved" if isinstance(our_error(error), SolveError) else "refused"
        return f"{kind}: {str(our_error(error) or error).splitlines()[-1]}"
    return f"{'passed' if fine < max(ROUNDING, coarse / FALL) else 'FAILED'} ({fine:.1e})"


def kind_of(text: str) -> str | None:
    """f0, f1, g0 … g3, obj, those of boundaries with a prefix bd_, or u (data of x and t); None for other functions."""
    names = [re.sub(r"\[.*?\]", "", part).split()[-1].lstrip("*") for part in text.split(",") if part.strip()]
    if len(names) == 5:
        return "u"
    last = names[-1] if names else ""
    if re.fullmatch(r"f[01]|g[0-3]|obj\w*|integral\w*", last) is None or len(names) < 16:
        return None
    boundary = "bd_" if re.search(r"\bn\[\]", text) else ""
    return boundary + (last if last[0] in "fg" and last[1:].isdigit() else "obj")


def read(path: Path, name: str, kind: str) -> str:
    """Why a function cannot be read, or nothing. Constants that it asks for are given."""
    given, constants = CFile(path, name), {}
    two = {"a": 1, "b": 1}
    for _ in range(40):
        try:
            if kind in ("f0", "f1"):
                fe.Physics(two, **{kind: {"a": given}}, constants=constants)
            elif kind in ("g0", "g1", "g2", "g3"):
                fe.Physics(two, {"a": "f0[0] = u[0];"}, jacobian={("a", "a"): {kind: given}}, constants=constants)
            elif kind in ("bd_f0", "bd_f1"):
                walls = fe.Robin("b", field="a", **{kind.removeprefix("bd_"): given})
                fe.Physics(two, {"a": "f0[0] = 0;"}, boundary=walls, constants=constants)
            elif kind == "u":
                fe.Physics(two, {"a": "f0[0] = 0;"}, boundary=fe.Dirichlet("b", given, field="a"), constants=constants)
            elif kind == "obj":
                Objective(fe.Physics(two, {"a": "f0[0] = 0;"}, constants=constants), given, 2)
            else:
                return f"{kind.removeprefix('bd_')} on boundaries comes by differentiation"
            return ""
        except PetscHdgError as error:
            wanted = re.search(r"constants=\{'(\w+)': …\}", str(error))
            if wanted is None or wanted[1] in constants:
                return re.sub(r".*?line \d+: | \(known here.*", "", str(error))
            constants[wanted[1]] = 1.0
    return "asks for more than 40 constants"


def functions(source: Path) -> list[str]:
    """Rows of the table of functions."""
    paths = [
        p
        for folder in FOLDERS
        for what in ("tutorials", "tests")
        for p in sorted((source / "src" / folder / what).glob("*.c"))
    ]
    lines, totals = [], Counter()
    for path in paths:
        text = path.read_text(encoding="utf-8", errors="replace")
        found = [(name, kind_of(arguments)) for name, arguments in HEAD.findall(text)]
        if not any(kind not in (None, "u") for _, kind in found):
            continue
        kinds, done, reasons = Counter(), Counter(), []
        for name, kind in found:
            if kind is not None:
                reason, group = read(path, name, kind), "u" if kind == "u" else "bd" if "bd_" in kind else kind[0]
                kinds[group] += 1
                done[group] += not reason
                reasons += [f"`{name}`: {reason}"] * bool(reason)
        totals += Counter({f"{group} all": count for group, count in kinds.items()}) + Counter(
            {f"{group} read": count for group, count in done.items()}
        )
        cells = " | ".join(
            f"{done[group]}/{kinds[group]}" if kinds[group] else "" for group in ("f", "g", "bd", "u", "o")
        )
        lines.append(f"| {path.relative_to(source / 'src')} | {cells} | {'; '.join(reasons[:3])} |")
    cells = " | ".join(f"{totals[f'{group} read']}/{totals[f'{group} all']}" for group in ("f", "g", "bd", "u", "o"))
    return [*lines, f"| all | {cells} | |"]


def solutions(source: Path) -> list[str]:
    """The table of solutions, and the sentences in it. Collective."""
    lines = ["| file | solution | " + " | ".join(SCHEMES) + " |", "| --- " * (2 + len(SCHEMES)) + "|"]
    notes: dict[str, int] = {}
    for row in ROWS:
        cells = []
        for backend in SCHEMES:
            kind, _, sentence = outcome(source, row, backend).partition(": ")
            cells.append(kind + (f" [{notes.setdefault(sentence, len(notes) + 1)}]" if sentence else ""))
        lines.append(f"| {row.file} | {row.name} | " + " | ".join(cells) + " |")
        PETSc.Sys.Print(lines[-1])
    return [*lines, "", *(f"[{number}] {sentence}  " for sentence, number in notes.items())]


def main() -> None:
    arguments = [argument for argument in sys.argv[1:] if not argument.startswith("-")]
    source, options = Path(arguments[0]), PETSc.Options()
    lines = [] if options.hasName("read") else solutions(source)
    if PETSc.COMM_WORLD.rank == 0:
        head = "| file | f0, f1 | g0 … g3 | of boundaries | of x and t | integrands | not read |"
        lines += ["", head, "| --- " * 7 + "|", *functions(source)]
        if target := options.getString("md", ""):
            Path(target).write_text("\n".join(lines) + "\n", encoding="utf-8")
        print("\n".join(lines))


if __name__ == "__main__":
    main()

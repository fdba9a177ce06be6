"""PETSc's tutorials by all schemes: `python benchmarks/petsc_tutorials.py SOURCE [-md FILE] [-read]`, on any ranks.

SOURCE is PETSc's source, from whose files the pointwise functions are read; none of them is copied here. Three tables:

* solutions (not with -read): rows of ROWS, solved on boxes of 4 and 8 faces a side with elements of degree 2. A row
  passed if the error is rounding, or falls by FALL or more to the finer mesh (in time with half the step); the figure
  is the error there. It is refused with the sentence of the error, before anything is solved or by a solver that stops.
  Rows whose exact solution does not solve the problem of the file are not applicable. -only TEXT takes the rows
  whose file and name have the text.
* files with pointwise functions that have no row, and why (NOT_APPLICABLE).
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
from petsc_hdg.errors import PetscHdgError, our_error  # noqa: E402
from petsc_hdg.physics import CFile  # noqa: E402
from petsc_hdg.physics.objective import Objective  # noqa: E402

SCHEMES = ("cg_gpu", "hdg_gpu", "sipg_gpu", "poly_gpu")
FOLDERS = ("snes", "ts", "dm/impls/plex", "ksp/ksp")
ROUNDING, FALL, MATCHES = 1e-7, 2.5, 1e-5
HEAD = re.compile(
    r"^(?:PETSC_EXTERN |static |inline )*(?:void|PetscErrorCode)\s+(\w+)\s*\(\s*PetscInt\s+[dD]im\s*,([^;{]*)\)\s*\{",
    re.M,
)


@dataclass(frozen=True)
class Wall:
    """A condition for one field: f0_bd and f1_bd of the file, or, without both, the exact solution in `components`."""

    label: str
    field: str
    f0: str | None = None
    f1: str | None = None
    components: tuple | None = None


@dataclass(frozen=True)
class Row:
    """One problem: names of functions in a file under src, by field; several names are called in turn.

    fields: name -> components.   lower: fields of one degree less where the scheme has fields of two degrees.
    free: fields that the problem leaves a constant, whose error is not looked at.
    auxiliary: name -> (components, function of x).   walls: Dirichlet conditions for the first field if not given.
    constants: in the order of the file, and members of its context.
    steps: of a run from t = 0 to `end`, 0 of a steady problem.   faces: a side of the two meshes.
    """

    file: str
    name: str
    f0: dict
    f1: dict
    exact: dict
    fields: dict = field(default_factory=lambda: {"u": 1})
    lower: tuple = ()
    free: tuple = ()
    auxiliary: dict = field(default_factory=dict)
    walls: tuple = ()
    constants: dict = field(default_factory=dict)
    steps: int = 0
    end: float = 0.1
    guess: object = None
    faces: tuple = (4, 8)


def _heat(name: str) -> Row:
    return Row("ts/tutorials/ex45.c", name, {"u": f"f0_{name}"}, {"u": "f1_temp"}, {"u": f"mms_{name}"}, steps=4)


def _elastic(kind: str, name: str) -> Row:
    functions = {"u": f"f0_{kind}_{name}_u"}, {"u": f"f1_{kind}_u"}, {"u": f"{name}_2d_u"}
    return Row("snes/tutorials/ex17.c", f"{kind}, {name}", *functions, {"u": 2}, constants=ELASTIC)


def _poisson(name: str, f0: str, f1: str = "f1_u", exact: str = "quadratic_u_2d", file: str = "ex12.c", **more) -> Row:
    folder = "" if "/" in file else "snes/tutorials/"
    return Row(folder + file, name, {"u": f0}, {"u": f1}, {"u": exact}, **more)


def _mixed(file: str, name: str, f0: tuple | str, q: str, u: str, wall: Wall | None, f1: str = "f1_q") -> Row:
    """Poisson's equation for its flux and its potential."""
    functions = {"q": f1.replace("f1", "f0"), "u": f0}, {"q": f1}, {"q": q, "u": u}
    walls = {"walls": (wall,)} if wall else {}
    free = () if wall and wall.f0 else ("u",)
    return Row(file, name, *functions, fields={"q": 2, "u": 1}, lower=("u",), free=free, **walls)


def _flow(file: str, name: str, f0: str, exact: str, **more) -> Row:
    pressure = exact.replace("_u", "_p")
    functions = {"v": f0, "p": "f0_p"}, {"v": "f1_u"}, {"v": exact, "p": pressure}
    return Row(file, name, *functions, fields={"v": 2, "p": 1}, lower=("p",), free=("p",), **more)


def _nitsche(name: str) -> Row:
    walls = (
        Wall("boundary", "v", f"f0_bd_nitsche_{name}_u", f"f1_bd_nitsche_{name}_u"),
        Wall("boundary", "p", f"f0_bd_nitsche_{name}_p"),
    )
    constants = {"mu": 1.0, "penalty": 400.0}
    file, f0, exact = "snes/tutorials/ex62.c", f"f0_{name}_u", f"{name}_u"
    return _flow(file, f"{name}, Nitsche", f0, exact, constants=constants, walls=walls)


def _warm_flow(file: str, name: str, f0: dict, f1: dict, exact: tuple, constants: dict, **more) -> Row:
    """Flow with a temperature, given on the boundary together with the velocity if the walls are not."""
    more = {"walls": (Wall("boundary", "v"), Wall("boundary", "T")), "free": ("p",)} | more
    exact = dict(zip(("v", "p", "T"), exact, strict=True))
    return Row(file, name, f0, f1, exact, {"v": 2, "p": 1, "T": 1}, ("p",), constants=constants, **more)


def _low_mach(name: str) -> Row:
    """Of ts ex76: f0 is what all solutions share and what the solution adds."""
    f0 = {"v": ("f0_v", f"f0_{name}_v"), "p": "f0_q", "T": ("f0_w", f"f0_{name}_w")}
    f0 |= {"v": "f0_v"} if name == "taylor_green" else {}
    exact = f"{name}_u", f"{name}_p", f"{name}_T"
    return _warm_flow("ts/tutorials/ex76.c", name, f0, {"v": "f1_v", "T": "f1_w"}, exact, LOW_MACH, steps=4)


def _conducting(name: str) -> Row:
    f0 = {f: (f"f0_conduct_{g}", f"f0_conduct_{name}_{g}") for f, g in (("v", "v"), ("p", "q"), ("T", "w"))}
    exact, more = (f"{name}_u", f"{name}_p", f"{name}_T"), {}
    if name.startswith("pipe"):
        ends = [Wall(side, "v", f"f0_conduct_bd_{name}_v") for side in ("left", "right")]
        held = [("left", "T"), *((side, name) for side in ("bottom", "top") for name in ("v", "T"))]
        more = {"walls": (*ends, *(Wall(*where) for where in held)), "free": ()}
    f1 = {"v": "f1_conduct_v", "T": "f1_conduct_w"}
    return _warm_flow("ts/tutorials/ex76.c", f"conducting, {name}", f0, f1, exact, LOW_MACH, steps=4, **more)


def _biot(name: str, exact: tuple) -> Row:
    f0 = {"u": f"f0_{name}_u", "e": "f0_epsilon", "p": f"f0_{name}_p"}
    f1, fields = {"u": "f1_u", "p": "f1_p"}, {"u": 2, "e": 1, "p": 1}
    exact, walls = dict(zip(fields, exact, strict=True)), (Wall("boundary", "u"), Wall("boundary", "p"))
    constants = dict.fromkeys(("mu", "K_u", "alpha", "M", "k", "P_0"), 1.0)
    more = {"constants": constants, "walls": walls, "steps": 4}
    return Row("ts/tutorials/ex53.c", name, f0, f1, exact, fields, ("e", "p"), **more)


SIDES = ("left", "right", "bottom", "top")
ELASTIC = {"mu": 1.0, "lambda": 2.0, "N": -1.0}
LOW_MACH = dict.fromkeys("Strouhal Froude Reynolds Peclet p_th mu nu c_p k alpha T_in g_dir epsilon".split(), 1.0)

ROWS = [
    _poisson("quadratic", "f0_u"),
    _poisson("sine in x", "f0_xtrig_u", exact="xtrig_u_2d"),
    _poisson("sines", "f0_xytrig_u", exact="xytrig_u_2d"),
    _poisson("coefficient", "f0_analytic_u", "f1_analytic_u"),
    _poisson("coefficient, a field", "f0_analytic_u", "f1_field_u", auxiliary={"nu": (1, "nu_2d")}),
    _poisson("nonlinear", "f0_analytic_nonlinear_u", "f1_analytic_nonlinear_u", guess=lambda x: x.sum(axis=-1)),
    _poisson("homogeneous", "f0_trig_homogeneous_u", exact="trig_homogeneous_u", file="ex13.c"),
    _poisson("inhomogeneous", "f0_trig_inhomogeneous_u", exact="trig_inhomogeneous_u", file="ex13.c"),
    *(_elastic(kind, name) for kind in ("vlap", "elas") for name in ("quadratic", "trig")),
    Row(
        "snes/tutorials/ex17.c",
        "mass, quadratic",
        {"u": ("f0_mass_u", "f0_mass_quadratic_u")},
        {},
        {"u": "quadratic_2d_u"},
        {"u": 2},
    ),
    Row(
        "snes/tutorials/ex17.c",
        "elas, uniform strain",
        {},
        {"u": "f1_elas_u"},
        {"u": "uniform_strain_u"},
        {"u": 2},
        constants=ELASTIC,
    ),
    Row(
        "snes/tutorials/ex17.c",
        "elas, axial displacement",
        {},
        {"u": "f1_elas_u"},
        {"u": "axial_disp_u"},
        {"u": 2},
        constants=ELASTIC,
        walls=(
            Wall("left", "u", components=(0,)),
            Wall("bottom", "u", components=(1,)),
            Wall("right", "u", "f0_elas_axial_disp_bd_u"),
        ),
    ),
    _poisson("sines", "f0_trig_u", exact="trig_u", file="ex20.c"),
    Row(
        "snes/tutorials/ex23.c",
        "both fields everywhere",
        {"u": "f0_quad_u", "p": "f0_quad_p"},
        {"u": "f1_u"},
        {"u": "quad_u", "p": "quad_p"},
        {"u": 1, "p": 1},
    ),
    *(
        _mixed("snes/tutorials/ex24.c", n, f"f0_{n}_u", f"{n}_q", f"{n}_u", Wall("boundary", "q", f"f0_bd_{n}_q"))
        for n in ("linear", "quadratic")
    ),
    _mixed("snes/tutorials/ex24.c", "quartic, Neumann", "f0_quartic_u", "quartic_q", "quartic_u", None),
    _poisson("quadratic", "f0_quad_u", exact="quad_u", file="ex26.c"),
    _poisson("sines", "f0_trig_u", exact="trig_u", file="ex26.c"),
    *(
        _poisson(n, f"f0_{n}_primal", "f1_primal", f"{n}_u", "ex27.c", constants={"k": 1.0}, faces=(8, 16))
        for n in ("quadratic", "trig")
    ),
    _poisson("constant", "f0_trig_homogeneous_u", exact="trig_homogeneous_u", file="ex36.c"),
    _poisson(
        "oscillatory", "f0_oscillatory_u", "f1_oscillatory_u", "oscillatory_u", "ex36.c", constants={"epsilon": 1.0}
    ),
    *(_flow("snes/tutorials/ex62.c", n, f"f0_{n}_u", f"{n}_u", constants={"mu": 1.0}) for n in ("quadratic", "trig")),
    *map(_nitsche, ("quadratic", "trig")),
    Row(
        "snes/tutorials/ex71.c",
        "Poiseuille",
        {"v": None, "p": "f0_p"},
        {"v": "f1_u"},
        {"v": "quadratic_u", "p": "linear_p"},
        {"v": 2, "p": 1},
        ("p",),
        walls=(Wall("bottom", "v"), Wall("top", "v"), Wall("right", "v", "f0_bd_u")),
        constants={"Delta": 1.0, "nu": 1.0, "u_0": 0.0, "alpha": 0.0},
    ),
    *(
        Row(
            "snes/tutorials/ex69.c",
            f"Sol{name}",
            {"v": "f0_u", "p": "stokes_mass"},
            {"v": f"stokes_momentum_{name.lower()}"},
            {"v": f"Sol{name}SolutionVelocity", "p": f"Sol{name}SolutionPressure"},
            {"v": 2, "p": 1},
            ("p",),
            ("p",),
            walls=tuple(Wall(side, "v", components=(k // 2,)) for k, side in enumerate(SIDES)),
            constants=dict.fromkeys(("m", "ctx->n", *more), 1.0),
        )
        for name, more in (("Kx", ("B",)), ("Cx", ("etaA", "etaB", "xc")))
    ),
    *(
        _warm_flow(
            "snes/tutorials/ex76.c",
            name,
            {"v": f"f0_{name}_v", "p": "f0_q", "T": f"f0_{name}_w"},
            {"v": "f1_v", "T": "f1_w"},
            exact,
            {"nu": 1.0, "alpha": 1.0, "theta": 0.0},
        )
        for name, exact in (
            ("quadratic", ("quadratic_u", "linear_p", "linear_T")),
            ("cubic", ("cubic_u", "quadratic_p", "quadratic_T")),
        )
    ),
    _poisson("sines", "f0_trig_u", exact="trig_u", file="snes/tests/ex13.c"),
    *(
        _mixed("snes/tests/ex15.c", n, f0, f"{n}_q", f"{n}_phi", None)
        for n, f0 in (
            ("const", "f0_phi"),
            ("linear", "f0_phi"),
            *((n, ("f0_phi", f"f0_{n}_phi")) for n in ("quadratic", "trig", "trigx")),
        )
    ),
    *(_heat(name) for name in ("quad_lin", "quad_trig", "trig_lin", "trig_trig")),
    *(_flow("ts/tutorials/ex46.c", f"mms{k}", f"f0_mms{k}_u", f"mms{k}_u_2d", steps=4) for k in (1, 2)),
    *(
        Row(
            "ts/tutorials/ex47.c",
            name,
            {"u": f0},
            {"u": f1},
            {"u": "analytic_phi"},
            auxiliary={"velocity": (2, "velocity")},
            steps=4,
        )
        for name, f0, f1 in (("primitive", "f0_prim_phi", None), ("by parts", "f0_ibp_phi", "f1_ibp_phi"))
    ),
    _biot("quadratic_linear", ("quadratic_u", "linear_eps", "linear_linear_p")),
    _biot("quadratic_trig", ("quadratic_u", "linear_eps", "linear_trig_p")),
    _biot("trig_linear", ("trig_u", "trig_eps", "trig_linear_p")),
    *map(_low_mach, ("quadratic", "cubic", "cubic_trig", "taylor_green")),
    *map(_conducting, ("quadratic", "pipe", "pipe_wiggly")),
    _warm_flow(
        "ts/tutorials/ex77.c",
        "trig_trig",
        {"v": "f0_trig_trig_v", "p": "f0_q", "T": "f0_trig_trig_w"},
        {"v": "f1_v", "T": "f1_w"},
        ("trig_trig_u", "trig_trig_p", "trig_trig_T"),
        {"nu": 1.0, "alpha": 1.0, "T_in": 1.0, "omega": 1.0},
        steps=4,
    ),
    *(
        Row(
            "dm/impls/plex/tests/ex39.c",
            name,
            {"u": f"f0_v_{name}", "p": "f0_q", "d": "f0_w"},
            {},
            {"u": f"{name}_u", "p": f"{name}_p", "d": "zero_func"},
            {"u": 2, "p": 1, "d": 1},
            ("p", "d"),
            faces=(8, 16),
        )
        for name in ("linear", "sinusoid")
    ),
]

# Files with pointwise functions that have no row.
NOT_APPLICABLE = {
    "snes/tutorials/ex8.c": "minimizes an integral; it has no residual functions",
    "snes/tutorials/ex11.c": "eigenvalues and a constraint; no exact solution",
    "snes/tutorials/ex34.c": "a variational inequality: an obstacle",
    "snes/tutorials/ex56.c": "no exact solution",
    "snes/tutorials/ex64.c": "no exact solution",
    "snes/tutorials/ex77.c": "no exact solution",
    "ts/tutorials/ex18.c": "finite volumes with a Riemann solver",
    "ts/tutorials/ex30.c": "no exact solution",
    "ts/tutorials/ex48.c": "no exact solution",
    "dm/impls/plex/tests/ex3.c": "tests interpolation and quadrature; no equation",
    "dm/impls/plex/tests/ex23.c": "projects fields; no equation",
    "dm/impls/plex/tests/ex33.c": "integrates over cells; no equation",
    "dm/impls/plex/tests/ex69.c": "cohesive cells; no equation is solved",
    "dm/impls/plex/tests/ex72.c": "no equation is solved",
    "dm/impls/plex/tests/ex73.c": "tests Gauss' law of given functions; no equation for the potential",
    "dm/impls/plex/tests/ex99.c": "integrates over cells; no equation",
}


def read_function(source: Path, row: Row, function: str | tuple | None) -> CFile | None:
    """A function of the row's file."""
    return function and CFile(source / "src" / row.file, function)


def physics(source: Path, row: Row, backend: str) -> fe.Physics:
    """The row's physics."""

    def of(names: dict) -> dict:
        return {name: read_function(source, row, function) for name, function in names.items()}

    lower = {"degree_offset": -1} if backend in ("cg_gpu", "sipg_gpu") else {}
    fields = {name: fe.Field(count, **(lower if name in row.lower else {})) for name, count in row.fields.items()}
    walls = []
    for wall in row.walls or (Wall("boundary", next(iter(fields))),):
        if wall.f0 or wall.f1:
            f0, f1 = (read_function(source, row, function) for function in (wall.f0, wall.f1))
            walls.append(fe.Robin(wall.label, f0, wall.field, f1=f1))
        else:
            walls.append(fe.Dirichlet(wall.label, "exact", wall.field, wall.components))
    known = {"constants": row.constants, "exact": of(row.exact)}
    auxiliary = {name: fe.Auxiliary(count, "nodal") for name, (count, _) in row.auxiliary.items()}
    return fe.Physics(fields, of(row.f0), of(row.f1), auxiliary=auxiliary, boundary=walls, **known)


def auxiliary(source: Path, row: Row) -> dict:
    """The row's auxiliary fields: functions of x [..., dim] with values [..., component]."""

    def field_of(count: int, function: str):
        given = fe.Physics({"a": count}, "f0[0] = 0;", exact=read_function(source, row, function)).interpreter(2)
        return lambda x: np.array([given.pw_exact(0.0, at)[0] for at in x.reshape(-1, 2)]).reshape(*x.shape[:-1], count)

    return {name: field_of(*entry) for name, entry in row.auxiliary.items()}


def solved(source: Path, row: Row, backend: str, faces: int) -> float:
    """The largest error of a field, but of those that the problem leaves a constant."""
    problem = fe.Problem(fe.Mesh.box((faces, faces)), physics(source, row, backend), backend=backend, degree=2)
    for name, value in auxiliary(source, row).items():
        problem.set_auxiliary(name, value)
    t = row.end if row.steps else 0.0
    if row.steps:
        u = problem.solve_in_time(problem.interpolate("exact"), t, t / (row.steps * faces // row.faces[0]))
    else:
        u = problem.solve(None if row.guess is None else problem.interpolate(row.guess))
    return max(problem.errors(u, t, name)["L2"] for name in row.fields if name not in row.free)


def mismatch(source: Path, row: Row) -> float:
    """The largest residual of the exact solution at some places, over the size of its parts: f0 - div f1, by
    differences, and f0_bd + f1·n on sides where a field is not given."""
    known, given = physics(source, row, "hdg_gpu").interpreter(2), auxiliary(source, row)
    step, t, random = 1e-4, 0.03, np.random.default_rng(0)

    def state(x, t=t) -> tuple:
        u_t = (known.pw_exact(t + step, x)[0] - known.pw_exact(t - step, x)[0]) / (2 * step)
        u, u_x = known.pw_exact(t, x)
        return u, u_t, u_x, np.concatenate([value(x) for value in given.values()]) if given else None, None, t, x

    worst = max(_on_sides(source, row, known, state, random), default=0.0)
    for x in random.uniform(0.1, 0.9, (4, 2)):
        f0, slopes = known.pw_residual(*state(x))[0], []
        for d, side in enumerate(step * np.eye(2)):
            ends = (known.pw_residual(*state(x + sign * side))[1][:, d] for sign in (1, -1))
            slopes.append(np.subtract(*ends) / (2 * step))
        worst = max(worst, np.abs(f0 - sum(slopes)).max() / (1 + np.abs(f0).max() + np.abs(slopes).max()))
    return worst


def _on_sides(source: Path, row: Row, known, state, random):
    """|f0_bd + f1·n| and |f1_bd| over the sizes of their parts, on sides without essential conditions."""
    made, sides = physics(source, row, "hdg_gpu"), {"left": (0, 0), "right": (0, 1), "bottom": (1, 0), "top": (1, 1)}
    for name, (axis, end) in sides.items():
        free = np.ones(made.num_components, bool)
        for condition in made.dirichlet:
            if condition.label in (name, "boundary"):
                free[condition.field.offset + np.array(condition.components)] = False
        x = random.uniform(0.1, 0.9, 2)
        x[axis], n = end, (2 * end - 1.0) * np.eye(2)[axis]
        flux, at = known.pw_residual(*state(x))[1] @ n, (*state(x), n)
        parts = [known.pw_boundary(k, *at) for k, c in enumerate(made.natural) if c.label in (name, "boundary")]
        total = flux + sum(f0 for f0, _ in parts)
        yield np.abs(total[free]).max(initial=0.0) / (1 + np.abs(flux).max())
        yield from (np.abs(f1[free]).max(initial=0.0) for _, f1 in parts)


def outcome(source: Path, row: Row, backend: str) -> str:
    """What the table shows of a row and a scheme. Collective."""
    try:
        if mismatch(source, row) > MATCHES:
            return "not applicable: the file's exact solution does not solve its equation with its conditions"
        with petsc_options(ksp_rtol="1e-10"):
            coarse, fine = (solved(source, row, backend, faces) for faces in row.faces)
    except (PetscHdgError, PETSc.Error) as error:
        return f"refused: {str(our_error(error) or error).splitlines()[-1]}"
    return f"{'passed' if fine < max(ROUNDING, coarse / FALL) else 'FAILED'} ({fine:.1e})"


def kind_of(name: str, text: str) -> str | None:
    """f0, f1, g0 … g3, obj, those of boundaries with a prefix bd_, or u (data of x and t); None for other functions."""
    names = [re.sub(r"\[.*?\]", "", part).split()[-1].lstrip("*") for part in text.split(",") if part.strip()]
    if len(names) == 5:
        return "u"
    last = names[-1] if names else ""
    if last == "f":  # ex64.c: p_0, u_1
        last += name[-1]
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
            return ""  # g0 … g3 of boundaries come by differentiation
        except PetscHdgError as error:
            wanted = re.search(r"constants=\{'([^']+)': …\}", str(error))
            if wanted is None or wanted[1] in constants:
                return re.sub(r".*?line \d+: | \(known here.*|; the text has .*", "", str(error))
            constants[wanted[1]] = 1.0
    return "asks for more than 40 constants"


def with_functions(source: Path) -> dict[Path, list]:
    """(name, kind) of the functions of each file that has pointwise functions besides data of x and t."""
    files = {}
    for folder in FOLDERS:
        for path in sorted((source / "src" / folder).glob("t*s/*.c")):
            text = path.read_text(encoding="utf-8", errors="replace")
            found = [(name, kind_of(name, arguments)) for name, arguments in HEAD.findall(text)]
            if any(kind not in (None, "u") for _, kind in found):
                files[path] = found
    return files


def without_rows(source: Path) -> list[str]:
    """The table of files without rows. Raises KeyError for one that NOT_APPLICABLE lacks."""
    names = {path.relative_to(source / "src").as_posix() for path in with_functions(source)}
    if missing := names - {row.file for row in ROWS} - set(NOT_APPLICABLE):
        raise KeyError(f"no row and no reason: {', '.join(sorted(missing))}")
    return [
        "| file | not applicable |",
        "| --- | --- |",
        *(f"| {name} | {why} |" for name, why in NOT_APPLICABLE.items()),
    ]


def functions(source: Path) -> list[str]:
    """Rows of the table of functions."""
    lines, totals = [], Counter()
    for path, found in with_functions(source).items():
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
    only = PETSc.Options().getString("only", "")
    for row in ROWS:
        if only not in f"{row.file} {row.name}":
            continue
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
        lines += ["", *without_rows(source)]
        head = "| file | f0, f1 | g0 … g3 | of boundaries | of x and t | integrands | not read |"
        lines += ["", head, "| --- " * 7 + "|", *functions(source)]
        if target := options.getString("md", ""):
            Path(target).write_text("\n".join(lines) + "\n", encoding="utf-8")
        print("\n".join(lines))


if __name__ == "__main__":
    main()

"""Errors and orders of a manufactured gas flow by both fluxes of hdg_gpu and of Sod's shock tube, and times of a vortex
and of steady viscous flow: the tables of docs/conservation_laws.md.

python benchmarks/conservation_laws.py [-only euler|numbers|viscous|space|sod|times|orders|cells] [-faces 32,64]

Rows of `sod` are -faces and -speeds 0,1, of `times` -vortex faces:degree,… and -steady faces:degree,…, those of `cells`
-hexahedra and -tetrahedra.
"""

import sys
import time
from pathlib import Path

import numpy as np
import petsc4py
import sympy

import petsc_hdg as fe
from petsc_hdg.physics import Symbols, library
from petsc_hdg.physics.library import gas

petsc4py.init(sys.argv)

from petsc4py import PETSc  # noqa: E402

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "examples"))
import sod_hdg  # noqa: E402
from vortex_hdg import VORTEX  # noqa: E402

GAMMA, PRANDTL = sympy.Rational(7, 5), 0.72
AUTOMATIC = {"stabilization": None}
UPWIND = {"stabilization": "upwind"}


def places(dim: int) -> tuple:
    """Coordinates as symbols."""
    return Symbols(dim, {"u": dim + 2}).x


def exact(dim: int) -> sympy.Matrix:
    """Conserved variables [dim + 2]."""
    x, y, *z = places(dim)
    rho, p = 1 + sympy.sin(2 * x + y) / 5, 1 + sympy.cos(x + y) / 5
    v = [0.6 + sympy.cos(x - 2 * y) / 5, 0.3 + sympy.sin(x + 2 * y) / 5]
    if z:
        rho, p, v = rho + sympy.sin(2 * z[0]) / 10, p + sympy.cos(z[0]) / 10, [*v, 0.2 + sympy.sin(x + z[0]) / 5]
    v = sympy.Matrix(v)
    return sympy.Matrix([rho, *(rho * v), p / (GAMMA - 1) + rho * v.dot(v) / 2])


def source(dim: int, reynolds: float | None) -> list:
    """f0 [dim + 2]: the divergence of f1 at the exact solution."""
    u, at = exact(dim), places(dim)
    rho, v, energy = u[0], u[1:-1, 0] / u[0], u[-1]
    p = (GAMMA - 1) * (energy - rho * v.dot(v) / 2)
    f1 = -sympy.Matrix.vstack(u[1:-1, 0].T, rho * v * v.T + p * sympy.eye(dim), (energy + p) * v.T)
    if reynolds is not None:
        v_x = v.jacobian(at)
        sigma = (v_x + v_x.T - sympy.Rational(2, 3) * v_x.trace() * sympy.eye(dim)) / reynolds
        heat = GAMMA / (reynolds * PRANDTL) * sympy.Matrix([p / ((GAMMA - 1) * rho)]).jacobian(at)
        f1 += sympy.Matrix.vstack(sympy.zeros(1, dim), sigma, (sigma * v).T + heat)
    return [sum(sympy.diff(f1[c, d], at[d]) for d in range(dim)) for c in range(dim + 2)]


def errors(faces: int, degree: int, reynolds=None, far=False, simplex=True, dim=2, options=None, **given) -> dict:
    """Errors on faces² squares or faces³ cubes, or simplices of them: `Problem.errors`."""
    state = " ".join(f"w[{c}] = {sympy.ccode(entry)};" for c, entry in enumerate(exact(dim)))
    boundary = gas.far_field("boundary", state) if far else fe.Dirichlet("boundary", "exact")
    given |= {"exact": list(exact(dim)), "boundary": [boundary]}
    if reynolds is None:
        physics = library.euler(dim, source(dim, None), **given)
    else:
        numbers = {"reynolds": reynolds, "prandtl": PRANDTL, "mach": 0.5}
        physics = library.compressible_navier_stokes(dim, source(dim, reynolds), **numbers, **given)
    mesh = fe.Mesh.box(dim * (faces,), simplex=simplex)
    problem = fe.Problem(mesh, physics, backend="hdg_gpu", degree=degree, check_kernels=False, **(options or {}))
    return problem.errors(problem.solve(problem.interpolate("exact")))


def error(*args, **given) -> float:
    """L2 error."""
    return errors(*args, **given)["L2"]


def row(name: str, faces: int, degree: int, **given) -> None:
    coarse, fine = (error(n, degree, **given) for n in (faces // 2, faces))
    PETSc.Sys.Print(f"| {name} | {degree} | {fine:.2e} | {np.log2(coarse / fine):.2f} |")


def in_space(cells: str, degree: int, all_faces: list[int]) -> None:
    """Rows of errors of u, its gradient and u* at Re 10 in space, and their orders."""
    before, last = 0, {}
    for faces in all_faces:
        found = errors(faces, degree, 10.0, simplex=cells == "tetrahedra", dim=3, flux="roe")
        columns = [f"{found[name]:.2e}" for name in ("L2", "H1", "star")]
        for k, name in enumerate(("L2", "H1", "star") if last else ()):
            columns[k] += f", {np.log(last[name] / found[name]) / np.log(faces / before):.2f}"
        PETSc.Sys.Print(f"| {cells} | {degree} | {faces}³ | {' | '.join(columns)} |")
        before, last = faces, found


def shock(speed: float, all_faces: list[int]) -> None:
    """Rows of Sod's tube by its example, on meshes each twice as fine as the last."""
    last = None
    for faces in all_faces:
        problem = sod_hdg.tube(faces)
        found = sod_hdg.numbers(problem, *sod_hdg.run(problem, faces, speed=speed), faces)
        order = f"{np.log2(last / found['L1']):.2f}" if last else ""
        last = found["L1"]
        extremes = " | ".join(f"{found[name]:.4f}" for name in ("least density", "most density", "least pressure"))
        PETSc.Sys.Print(
            f"| {speed:g} | {faces} | {last:.2e} | {order} | {found['variation']:.3f} | {extremes} | {found['cells']} |"
        )


VISCOUS = "w[0] = 1; w[1] = 1; w[2] = 0.2*sin(3*x[1]); w[3] = 1/(0.4*1.4*0.25) + 0.5 + 0.5*w[2]*w[2];"


def seconds(faces: int, degree: int, steady: bool) -> None:
    """A row: unknowns, steps of Newton's method, iterations and seconds of a second run of four steps in time of the
    vortex, 0.2 / faces long, or of steady flow at Re 100 and Mach 0.5 in a shear."""
    if steady:
        far = gas.far_field("boundary", VISCOUS)
        physics = library.compressible_navier_stokes(2, mach=0.5, boundary=far)
    else:
        state = {"radius": 0.15, "strength": 0.3}
        far = gas.far_field("boundary", VORTEX.format("w"))
        physics = library.euler(2, gas.RATE, boundary=far, exact=VORTEX.format("u"), constants=state)
    problem, step = fe.Problem(fe.Mesh.box((faces, faces)), physics, backend="hdg_gpu", degree=degree), 0.2 / faces
    guess = problem.interpolate([1.0, 1.0, 0.0, 1 / (0.4 * 1.4 * 0.25) + 0.5] if steady else "exact")
    for _ in range(2):  # the first one compiles
        start = time.perf_counter()
        try:
            problem.solve(guess) if steady else problem.solve_in_time(guess, 4 * step, step)
        except fe.SolveError as error:
            PETSc.Sys.Print(f"| {'steady' if steady else 'vortex'} {faces}² degree {degree} | {error} |")
            return
        took = time.perf_counter() - start
    counts = f"{problem.newton_iterations} | {problem.linear_iterations} | {took:.2f}"
    kind = problem.direct or problem.pmat
    name = "steady" if steady else "vortex"
    PETSc.Sys.Print(f"| {name} {faces}² degree {degree} | {problem.num_unknowns} | {counts} | {kind} |")


METHODS = {
    "`bdf`, `-ts_bdf_order 2`": {"ts_type": "bdf", "ts_bdf_order": "2"},
    "`bdf`, `-ts_bdf_order 3`": {"ts_type": "bdf", "ts_bdf_order": "3"},
    **{
        f"`dirk`, type `{name}`": {"ts_type": "dirk", "ts_dirk_type": name} for name in ("s212", "es324sal", "es325sal")
    },
    **{
        f"`arkimex`, type `{name}`": {"ts_type": "arkimex", "ts_arkimex_type": name}
        for name in ("prssp2", "3", "ars443", "4")
    },
}


def ends(steps: int, options: dict[str, str]) -> tuple[np.ndarray, fe.Problem]:
    """The state at t = 0.06 of a vortex of degree 1 on 2 · 4² triangles, and its problem."""
    for name, value in options.items():
        PETSc.Options()[name] = value
    far, state = gas.far_field("boundary", VORTEX.format("w")), {"radius": 0.2, "strength": 0.3}
    physics = library.euler(2, gas.RATE, boundary=far, exact=VORTEX.format("u"), constants=state)
    problem = fe.Problem(fe.Mesh.box((4, 4)), physics, backend="hdg_gpu", degree=1)
    found = problem.solve_in_time(problem.interpolate("exact"), 0.06, dt=0.06 / steps).getArray().copy()
    for name in options:
        PETSc.Options().delValue(name)
    return found, problem


def orders() -> None:
    """Rows of methods in time: linear solves per step, largest error of the trace of 24 steps, order from 12 steps."""
    exact = ends(192, {"ts_type": "bdf", "ts_bdf_order": "4"})[0]
    for name, options in METHODS.items():
        (coarse, _), (fine, problem) = (ends(steps, options) for steps in (12, 24))
        size = problem.discretization.dofmap.num_owned
        errors = [np.abs(found - exact)[:size].max() for found in (coarse, fine)]
        solves = problem.newton_iterations / problem.time_steps
        PETSc.Sys.Print(f"| {name} | {solves:.1f} | {errors[1]:.1e} | {np.log2(errors[0] / errors[1]):.2f} |")


def cells(faces: int, degree: int, simplex: bool) -> None:
    """A row of a gas in space: milliseconds of a linearization, of another right-hand side (its cells, without the
    trace), of a product and of a residual."""
    wall = gas.slip_wall("boundary")
    physics = library.compressible_navier_stokes(3, gas.RATE, mach=0.1, reynolds=100.0, boundary=wall)
    mesh = fe.Mesh.box((faces,) * 3, simplex=simplex, upper=(np.pi,) * 3)
    op = fe.Problem(mesh, physics, backend="hdg_gpu", degree=degree, pmat="none").operator
    size, arrays, found = op.state_size, op.arrays, []
    state = np.resize([1.0, 0.1, 0.2, 0.05, 80.0], size) * (1 + 0.02 * np.random.default_rng(0).uniform(-1, 1, size))
    x, rate, out, trace = arrays.to_device(state), arrays.zeros(size), arrays.zeros(size), arrays.zeros(size)
    op.products.compile(False)
    for call in (
        lambda: op.linearize(x, 0.0, rate, 10.0),
        lambda: op.products.eliminate(x, trace, False),
        lambda: op.products.multiply(x, out, False),
        lambda: op.residual(x, out, 0.0, rate),
    ):
        call()
        op.device.queue.finish()
        start = time.perf_counter()
        for _ in range(3):
            call()
        op.device.queue.finish()
        found.append(f"{1e3 * (time.perf_counter() - start) / 3:.2f}")
    name = f"{'tetrahedra' if simplex else 'hexahedra'} {faces}³"
    PETSc.Sys.Print(f"| {name} degree {degree} | {mesh.num_cells} | {' | '.join(found)} |")


PROJECTED = {"hdg_flux": "projected"}
FLUXES = {
    "projected, automatic τ": {"options": PROJECTED, **AUTOMATIC},
    "projected, Lax-Friedrichs": {"options": PROJECTED},
    "pointwise, Lax-Friedrichs": {},
    "pointwise, Roe": {"flux": "roe"},
}

if __name__ == "__main__":
    only = PETSc.Options().getString("only", "euler,numbers,viscous,sod")
    if "euler" in only:
        for degree, faces in ((1, 16), (2, 16), (3, 8)):
            others = {"pointwise, upwind": UPWIND, "pointwise, Lax-Friedrichs, far field": {"far": True}}
            for name, given in {**FLUXES, **others}.items():
                row(name, faces, degree, **given)
    if "numbers" in only:
        for tau in ("1", "10", "100"):
            for kind in ("projected", "pointwise"):
                row(f"τ = {tau}, {kind}", 12, 2, options={"hdg_tau": tau, "hdg_flux": kind})
    if "viscous" in only:
        for cells, simplex in (("triangles", True), ("squares", False)):
            for name, given in FLUXES.items():
                row(f"Re 10, {cells}, {name}", 16, 2, reynolds=10.0, simplex=simplex, **given)
    for name, rows in (("vortex", "24:2"), ("steady", "24:2")) if "times" in only else ():
        for given in filter(None, PETSc.Options().getString(name, rows).split(",")):
            seconds(*map(int, given.split(":")), name == "steady")
    if "space" in only:
        for given in PETSc.Options().getString("space", "tetrahedra:1:2:4,tetrahedra:2:2:4,hexahedra:1:2:4").split(","):
            shape, degree, *faces = given.split(":")
            in_space(shape, int(degree), [int(each) for each in faces])
    for name, rows in (("hexahedra", "2:3"), ("tetrahedra", "2:3")) if "cells" in only else ():
        for given in filter(None, PETSc.Options().getString(name, rows).split(",")):
            cells(*map(int, given.split(":")), name == "tetrahedra")
    if "orders" in only:
        orders()
    if "sod" in only:
        numbers = {
            name: PETSc.Options().getString(name, given) for name, given in (("faces", "32,64"), ("speeds", "0,1"))
        }
        for speed in numbers["speeds"].split(","):
            shock(float(speed), [int(faces) for faces in numbers["faces"].split(",")])

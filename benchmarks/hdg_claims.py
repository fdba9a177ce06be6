"""Measurements behind docs/hdg.md: jumps of good and bad solutions, orders on distorted squares, and of elasticity.

    python benchmarks/hdg_claims.py [-only jumps|distorted|elasticity]

jumps       what the warning of an answer without meaning compares: ‖u - û‖ over the size of the solution.
distorted   -∇·∇u = f on n² quadrilaterals whose inner vertices are moved at random by up to 0.2 of the spacing, anew
            for each n, so that they never tend to parallelograms: orders of u, its gradient and u*.
elasticity  λ = μ = 1 on 2 n² triangles: the same orders.
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import petsc4py

import petsc_hdg as fe

petsc4py.init(sys.argv)

from petsc4py import PETSc  # noqa: E402

LAPLACE = "for (d = 0; d < dim; ++d) f1[d] = {}*u_x[d];"
WAVE = "sin(PETSC_PI*x[0])*sin(PETSC_PI*x[1])"
WIND = (
    f"f0[0] = u_x[0] + 0.5*u_x[1] - 0.002*PETSC_PI*PETSC_PI*{WAVE} - PETSC_PI*cos(PETSC_PI*x[0])*sin(PETSC_PI*x[1])"
    " - 0.5*PETSC_PI*sin(PETSC_PI*x[0])*cos(PETSC_PI*x[1]);"
)
GROWTH = "const PetscReal k = 1e-6 + u_x[0]*u_x[0] + u_x[1]*u_x[1]; for (d = 0; d < dim; ++d) f1[d] = k*u_x[d];"
STRESS = """f1[0] = 3*u_x[0] + u_x[3]; f1[1] = f1[2] = u_x[1] + u_x[2]; f1[3] = u_x[0] + 3*u_x[3];"""
# u = (sin 2x cos 3y, cos x sin 2y): -∇·σ = b
FORCE = """
    const PetscReal X = x[0], Y = x[1];
    f0[0] = -(3*4 + 9)*sin(2*X)*cos(3*Y) - 2*2*sin(X)*cos(2*Y);
    f0[1] = 2*(-2*3)*cos(2*X)*sin(3*Y) - (1 + 3*4)*cos(X)*sin(2*Y);"""


def physics(f0: str, f1: str, exact: str = "", count: int = 1) -> fe.Physics:
    data = "exact" if exact else 0.0
    return fe.Physics({"u": count}, f0, f1, boundary=[fe.Dirichlet("boundary", data)], exact=exact or None)


def wave(times: int) -> fe.Physics:
    exact = WAVE.replace("PETSC_PI", f"{times}*PETSC_PI")
    return physics(f"f0[0] = -{2 * times**2}*PETSC_PI*PETSC_PI*{exact};", LAPLACE.format(1), f"u[0] = {exact};")


def jumps(name: str, problem: fe.Problem) -> None:
    u = problem.solve()
    with problem.access.read(u) as x:
        (found,) = problem.operator.recovery.jumps(x)
    size = f", L2 error {problem.errors(u)['L2']:.1e}" if problem.physics.has_exact else ""
    PETSc.Sys.Print(f"{name:60} {found:.3g}{size}")


def all_jumps() -> None:
    layer = physics("f0[0] = u_x[0] + 0.5*u_x[1] - 1;", LAPLACE.format("0.001"))
    steep = "exp(x[0] + x[1])"
    growing = physics(f"f0[0] = 2*{steep}*(1e-6 + 6*{steep}*{steep});", GROWTH, f"u[0] = {steep};")
    wind = physics(WIND, LAPLACE.format("0.001"), f"u[0] = {WAVE};")
    for degree in range(3):
        for n in (1, 2, 4):
            jumps(f"wave, {2 * n * n} triangles, k = {degree}", on_box(wave(1), n, degree, True))
        for n in (2, 4, 8):
            jumps(f"layers, {n * n} squares, k = {degree}", on_box(layer, n, degree, False))
    jumps("sin 6 pi x sin 6 pi y, 32 triangles, k = 1", on_box(wave(6), 4, 1, True))
    jumps("wind in f0, 144 squares, k = 2", on_box(wind, 12, 2, False))
    jumps("wind in f0, 144 squares, k = 2, tau 0.001", on_box(wind, 12, 2, False, hdg_tau="0.001"))
    jumps("growing diffusivity, 32 triangles, k = 2", on_box(growing, 4, 2, True))
    jumps("growing diffusivity, 32 triangles, k = 2, tau 0.01", on_box(growing, 4, 2, True, hdg_tau="0.01"))


def on_box(given: fe.Physics, n: int, degree: int, simplex: bool, **options) -> fe.Problem:
    mesh = fe.Mesh.box((n, n), simplex=simplex)
    return fe.Problem(mesh, given, backend="hdg_gpu", degree=degree, check_kernels=False, **options)


def distorted(n: int) -> fe.Mesh:
    """n² quadrilaterals of the unit square with moved vertices."""
    at = np.stack(np.meshgrid(*2 * [np.linspace(0, 1, n + 1)], indexing="ij"), axis=-1)
    at[1:-1, 1:-1] += np.random.default_rng(n).uniform(-0.2, 0.2, (n - 1, n - 1, 2)) / n
    number = np.arange((n + 1) ** 2).reshape(n + 1, n + 1)
    cells = np.stack([number[:-1, :-1], number[1:, :-1], number[:-1, 1:], number[1:, 1:]], axis=-1).reshape(-1, 4)
    return fe.Mesh.from_cells(cells, at.reshape(-1, 2))


def orders(name: str, make, sizes) -> None:
    """Print orders between meshes of n cells a side."""
    found = []
    for n in sizes:
        problem = make(n)
        found.append(list(problem.errors(problem.solve()).values()))
    steps = np.log(np.array(found[:-1]) / found[1:]) / np.log(np.array(sizes[1:]) / sizes[:-1])[:, None]
    for what, row in zip(("u", "gradient", "u*"), steps.T, strict=True):
        PETSc.Sys.Print(f"{name:36} {what:9} {', '.join(f'{value:.2f}' for value in row)}")


def main() -> None:
    warnings.simplefilter("ignore")
    only, settings = PETSc.Options().getString("only", ""), {"backend": "hdg_gpu", "check_kernels": False}
    if only in ("", "jumps"):
        all_jumps()
    for k in (1, 2) if only in ("", "distorted") else ():
        make = lambda n, k=k: fe.Problem(distorted(n), wave(1), degree=k, **settings)  # noqa: E731
        orders(f"distorted quadrilaterals, k = {k}", make, (8, 16, 32, 64))
    bar = physics(FORCE, STRESS, "u[0] = sin(2*x[0])*cos(3*x[1]); u[1] = cos(x[0])*sin(2*x[1]);", 2)
    for k in (1, 2, 3) if only in ("", "elasticity") else ():
        make = lambda n, k=k: fe.Problem(fe.Mesh.box((n, n)), bar, degree=k, **settings)  # noqa: E731
        orders(f"elasticity, triangles, k = {k}", make, (4, 8, 16, 32))


main()

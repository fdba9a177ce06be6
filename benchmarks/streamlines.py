"""cg_gpu with and without -cg_stabilization supg, b·∇u - εΔu = f: a step carried across the square, its error outside
layers and its range, and L2 errors and orders of a smooth solution.

python benchmarks/streamlines.py
"""

from __future__ import annotations

import sys
import warnings

import numpy as np
import petsc4py

import petsc_hdg as fe

petsc4py.init(sys.argv)

from petsc4py import PETSc  # noqa: E402

CELLS = 8, 16, 32, 64
SOLUTION = "sin(3*x[0] + 1)*cos(2*x[1])"
F0 = """
PetscReal s = sin(3*x[0] + 1), S = cos(3*x[0] + 1), c = cos(2*x[1]), C = sin(2*x[1]), b[2] = {1 + sin(x[1]), 1 - x[0]};
f0[0] = b[0]*(u_x[0] - 3*S*c) + b[1]*(u_x[1] + 2*s*C) - 13*eps*s*c;
"""
warnings.simplefilter("ignore")


def error(simplex: bool, degree: int, eps: float, kind: str, count: int) -> float:
    """L2 error on so many cells a side."""
    physics = fe.Physics(
        {"u": 1},
        F0,
        "for (d = 0; d < dim; ++d) f1[d] = eps*u_x[d];",
        constants={"eps": eps},
        exact=f"u[0] = {SOLUTION};",
        boundary=[fe.Dirichlet("boundary", "exact")],
    )
    mesh = fe.Mesh.box((count, count), simplex=simplex)
    problem = fe.Problem(mesh, physics, backend="cg_gpu", degree=degree, cg_stabilization=kind)
    return problem.errors(problem.solve())["L2"]


def step(simplex: bool, degree: int, kind: str) -> tuple[float, float, float]:
    """Largest error outside layers, least and largest value, of a step of 1 in a wind at 60° across 20² cells."""
    wind = np.array([np.cos(np.pi / 3), -np.sin(np.pi / 3)])
    physics = fe.Physics(
        {"u": 1},
        "f0[0] = b0*u_x[0] + b1*u_x[1];",
        "for (d = 0; d < dim; ++d) f1[d] = 1e-6*u_x[d];",
        constants={"b0": wind[0], "b1": wind[1]},
        boundary=[
            fe.Dirichlet("left", "g[0] = x[1] > 0.7;"),
            fe.Dirichlet("top", 1.0),
            fe.Dirichlet("boundary", 0.0),
        ],
    )
    mesh = fe.Mesh.box((20, 20), simplex=simplex)
    problem = fe.Problem(mesh, physics, backend="cg_gpu", degree=degree, cg_stabilization=kind)
    u = problem.solve()
    points = np.stack(np.meshgrid(*[np.linspace(0, 1, 41)] * 2), -1).reshape(-1, 2)
    side = (points[:, 1] - 0.7) * wind[0] - points[:, 0] * wind[1]  # distance from the step
    points, side = (
        each[(np.abs(side) > 0.15) & (points[:, 0] < 0.9) & (points[:, 1] > 0.1)] for each in (points, side)
    )
    return np.abs(problem.at(u, points)["u"].ravel() - (side > 0)).max(), u.min()[1], u.max()[1]


for simplex in (False, True):
    for degree in (1, 2, 3):
        for kind in ("none", "supg"):
            far, least, most = step(simplex, degree, kind)
            shape = "triangles" if simplex else "squares"
            PETSc.Sys.Print(f"step, degree {degree} {shape:9} {kind}: error {far:.2g}, from {least:.3g} to {most:.3g}")
for eps in (1e-6, 1e-2, 1.0):
    for degree in (1, 2, 3):
        for simplex in (False, True):
            for kind in ("none", "supg"):
                errors = np.array([error(simplex, degree, eps, kind, count) for count in CELLS])
                orders = ", ".join(f"{value:.2f}" for value in np.log2(errors[:-1] / errors[1:]))
                shape = "triangles" if simplex else "squares"
                sizes = f"errors {errors[0]:.1e} to {errors[-1]:.1e}, orders {orders}"
                PETSc.Sys.Print(f"eps {eps:7} degree {degree} {shape:9} {kind}: {sizes}")

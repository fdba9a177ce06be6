"""Errors of sipg_gpu on squares and cubes by its Gauss-Lobatto rule, and by a Gauss rule that is exact to 2p + 2.

python benchmarks/sipg_quadrature.py
"""

from __future__ import annotations

import sys

import numpy as np
import petsc4py
import sympy as sp

import petsc_hdg as fe
from petsc_hdg.physics import Symbols, manufactured

petsc4py.init(sys.argv)

SIDES = {2: (8, 16, 32), 3: (4, 8)}  # cells along a side by dimension


def turning(s, g):
    """A tensor 1:1000 whose direction turns."""
    turn = sp.rot_axis3(-s.x[0] - s.x[1])[: s.dim, : s.dim]
    return turn * sp.diag(1, sp.Rational(1, 1000), 1)[: s.dim, : s.dim] * turn.T * g


def wind(s):
    return sp.Matrix([s.x[1], -s.x[0], 0.3][: s.dim])


# The flux of (symbols, u, ∇u), and what else f0 has.
CASES = {
    "(1 + x² + sin 3y) ∇u": (lambda s, u, g: (1 + s.x[0] ** 2 + sp.sin(3 * s.x[1])) * g, None),
    "(1 + u²) ∇u": (lambda s, u, g: (1 + u**2) * g, None),
    "a tensor 1:1000 that turns": (lambda s, u, g: turning(s, g), None),
    "0.001 ∇u - w u": (lambda s, u, g: 0.001 * g - u * wind(s), None),
    "0.001 ∇u, w·∇u in f0": (lambda s, u, g: 0.001 * g, lambda s, g: wind(s).dot(g)),
}


def errors(case: str, dim: int, degree: int, side: int, rule: dict) -> tuple[float, float]:
    """L2 and H1 errors of a smooth solution."""
    s = Symbols(dim, {"u": 1})
    exact = sp.sin(2 * s.x[0] + 1) * sp.cos(3 * s.x[1]) * (sp.exp(s.x[2] / 2) if dim == 3 else 1)
    flux, convection = CASES[case]
    f0 = manufactured(s.x, exact, lambda u, g: flux(s, u, g), convection and (lambda u, g: convection(s, g)))
    if convection:
        f0 += convection(s, s.grad("u"))
    physics = fe.Physics(
        {"u": 1}, f0, flux(s, s.value("u"), s.grad("u")), exact=exact, boundary=[fe.Dirichlet("boundary", "exact")]
    )
    mesh = fe.Mesh.box((side,) * dim, simplex=False)
    problem = fe.Problem(mesh, physics, backend="sipg_gpu", degree=degree, **rule)
    found = problem.errors(problem.solve())
    return found["L2"], found["H1"]


def main() -> None:
    print("| flux | dim | p | rule | L2 | order | H1 | order |\n| --- " + "| --- " * 7 + "|")
    for case in CASES:
        for dim, degree in ((2, 1), (2, 2), (2, 3), (3, 2)):
            for rule in ({}, {"quadrature_degree": 2 * degree + 2}):
                found = np.array([errors(case, dim, degree, side, rule) for side in SIDES[dim]])
                order = np.log2(found[-2] / found[-1])
                numbers = " | ".join(f"{e:.1e} | {o:.2f}" for e, o in zip(found[-1], order, strict=True))
                print(f"| {case} | {dim} | {degree} | {'Gauss' if rule else 'Lobatto'} | {numbers} |", flush=True)


if __name__ == "__main__":
    main()

"""Problems in space and time for the tests: solutions of chosen degree in time, on blobs of triangles."""

from __future__ import annotations

import numpy as np
import sympy
from petsc4py import PETSc
from sympy import Matrix

import petsc_hdg as fe
from petsc_hdg.options import Options
from petsc_hdg.physics import Symbols, manufactured
from petsc_hdg.problem import Problem

ORDERS = ("linear", "square", "cubic", "rich")  # factors of t, t² and t³, and of what has degree 2 in space beside them


def moving() -> fe.Physics:
    """Convection-diffusion whose wind, diffusion and Dirichlet data depend on t.

    The solution is of degree 2 in space; its part with tᵏ is of total degree 2 unless `rich` is not zero.
    """
    s = Symbols(2, {"u": 1}, constants=ORDERS)
    x, t = s.x, s.t
    linear, square, cubic, rich = (s.constant(name) for name in ORDERS)
    in_space = 0.3 + x[0] - 0.7 * x[1] + x[0] * x[1] - 0.4 * x[1] ** 2  # as moving_at_start
    exact = in_space + linear * t * (1 - x[0] + 2 * x[1] + rich * x[0] ** 2)
    exact += square * t**2 * (0.5 + rich * x[0] * x[1]) + cubic * t**3 * rich * (1 + in_space)
    wind = Matrix([1 + t, -2 * t])

    def flux(u, grad):
        return (1 + t / 2) * grad

    def reaction(u, grad):
        return wind.dot(grad) + u

    source = manufactured(x, exact, flux, reaction) - sympy.diff(exact, t)
    return fe.Physics(
        {"u": 1},
        f0=s.rate("u") + reaction(s.value("u"), s.grad("u")) + source,
        f1=flux(s.value("u"), s.grad("u")),
        constants=dict.fromkeys(ORDERS, 0.0),
        boundary=[fe.Dirichlet("boundary", "exact")],
        exact=exact,
        name="moving",
    )


def heat() -> fe.Physics:
    """The heat equation on the unit square: u = (1 + sin 3t) sin πx sin πy."""
    s = Symbols(2, {"u": 1})
    exact = (1 + sympy.sin(3 * s.t)) * sympy.sin(sympy.pi * s.x[0]) * sympy.sin(sympy.pi * s.x[1])
    source = manufactured(s.x, exact, lambda u, grad: grad) - sympy.diff(exact, s.t)
    return fe.Physics(
        {"u": 1},
        f0=s.rate("u") + source,
        f1=s.grad("u"),
        boundary=[fe.Dirichlet("boundary", 0.0)],
        exact=exact,
        name="heat",
    )


def nonlinear() -> fe.Physics:
    """Two components with a heat capacity and a conductivity that depend on the first."""
    return fe.Physics(
        {"u": 2},
        f0="f0[0] = (1 + u[0]*u[0]) * u_t[0] + u[1] - exp(t)*x[0]; f0[1] = 2*u_t[1] - u[0]*u[1];",
        f1="for (d = 0; d < dim; ++d) { f1[d] = (1 + u[0]*u[0])*u_x[d]; f1[dim + d] = (1 + t)*u_x[dim + d]; }",
        boundary=[fe.Dirichlet("boundary", "g[0] = x[0]*t; g[1] = t;")],
        name="nonlinear heat",
    )


def blobs(x: np.ndarray) -> np.ndarray:
    """A number [cell] for each centroid [cell, dim]: the nearest of a few places."""
    places = np.random.default_rng(5).uniform(size=(7, x.shape[1]))
    return np.argmin(np.linalg.norm(x[:, None] - places, axis=2), axis=1)


def squares(n: int):
    """Groups n x n of the unit square, for centroids [cell, dim]."""
    return lambda x: np.floor(x * n).astype(int) @ [1, n]


def problem_of(physics, groups, degree: int, faces: int = 6, comm=PETSc.COMM_SELF, degrees=None, **settings) -> Problem:
    """A Problem of poly_gpu on groups of triangles of the unit square; other schemes: groups None."""
    mesh = fe.Mesh.box((faces, faces), comm=comm)
    if groups is not None:
        mesh = fe.agglomerate(mesh, groups=groups, degrees=degrees)
    return Problem(mesh, physics, Options(**{"backend": "poly_gpu", "degree": degree, **settings}))


def cyclic_steps(problem: Problem, cycle) -> np.ndarray:
    """Local steps [polytope] that go through `cycle` with the polytopes' numbers over all ranks."""
    return np.array(cycle)[problem.mesh.polytopes.numbers % len(cycle)]


def moving_at_start(x: np.ndarray) -> np.ndarray:
    """The solution of `moving` at t = 0, x [..., dim]."""
    return 0.3 + x[..., 0] - 0.7 * x[..., 1] + x[..., 0] * x[..., 1] - 0.4 * x[..., 1] ** 2


def heat_at_start(x: np.ndarray) -> np.ndarray:
    """The solution of `heat` at t = 0, x [..., dim]."""
    return np.sin(np.pi * x[..., 0]) * np.sin(np.pi * x[..., 1])

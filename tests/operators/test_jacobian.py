"""The Jacobian on the device: Taylor test, action against the assembled matrix, diagonal, hand-written derivatives."""

from __future__ import annotations

import numpy as np
import pytest
from petsc4py import PETSc
from sample_meshes import box_mesh
from sample_physics import everything, everything_on_one_field, give_everything

from petsc_hdg.options import Options
from petsc_hdg.physics import Auxiliary, Dirichlet, Physics, Robin, library
from petsc_hdg.problem import Problem

CLAMPED = [Dirichlet("left", 0.0)]
PHYSICS = {
    "poisson": lambda dim: library.poisson(kappa=Auxiliary(1), boundary=CLAMPED),
    "elasticity": lambda dim: library.elasticity(dim, boundary=CLAMPED),
    "minimal_surface": lambda dim: library.minimal_surface(boundary=CLAMPED),
    "p_laplacian": lambda dim: library.p_laplacian(p=3.7, epsilon=1e-2, boundary=CLAMPED),
    "neo_hookean": lambda dim: library.neo_hookean(dim, boundary=CLAMPED),
    "stokes": lambda dim: library.stokes(dim, boundary=[Dirichlet("left", 0.0, field="velocity")]),
    "everything": lambda dim: everything(),
    "everything on one field": lambda dim: everything_on_one_field(),
}
LINEAR = ("poisson", "elasticity", "stokes")
CELLS = {
    name: ("triangle", "hexahedron") if name in ("neo_hookean", "everything") else ("quadrilateral",)
    for name in PHYSICS
}
CASES = [(name, cell) for name, cells in CELLS.items() for cell in cells]
T, SHIFT = 0.3, 1.9


GASES = {
    "burgers",
    "compressible_navier_stokes",
    "convection",
    "euler",
    "gas",
    "outer_state",
    "outflow",
    "shallow_water",
    "slip_wall",
}  # of tests/physics/test_law_library.py


@pytest.mark.parametrize("cell", ["triangle", "quadrilateral"])
def test_products_fused_with_updates(cell):
    """One launch sums element vectors and updates: keep y + mix x + scale d (b - J x)."""
    problem = Linearized(everything(), cell, 2).problem
    context, arrays = problem.callbacks.jacobian.getPythonContext(), problem.arrays
    problem.callbacks.linearize(None, problem.create_vec(), problem.callbacks.jacobian, problem.callbacks.matrices[-1])
    x, b, d, before = np.random.default_rng(4).uniform(-1, 1, (4, problem.num_unknowns))
    given, product = [arrays.to_device(each) for each in (x, b, d, before)], arrays.zeros(len(x))
    context.product(given[0], product)
    left = b - arrays.to_host(product, len(x))
    for diagonal, expected in ((given[2], 0.3 * before - 0.7 * x + 1.3 * d * left), (None, left)):
        factors = (0.0, 0.0, 1.0) if diagonal is None else (0.3, -0.7, 1.3)
        context.step(given[0], given[3], given[1], diagonal, *factors)
        np.testing.assert_allclose(arrays.to_host(given[3], len(x)), expected, rtol=1e-12, atol=1e-12)
    context.product(given[0], product)
    np.testing.assert_allclose(arrays.to_host(product, len(x)), b - left, rtol=1e-12, atol=1e-12)


def test_every_library_physics_is_here():
    assert set(library.__all__) - GASES <= set(PHYSICS)


class Linearized:
    """A problem with a random state and direction; F and J through the callbacks of TS."""

    def __init__(self, physics, cell: str, degree: int, size: float = 0.1, seed: int = 1):
        faces = (2, 2) if cell in ("triangle", "quadrilateral") else (2, 1, 1)
        mesh = box_mesh(cell, faces, amplitude=0.1, comm=PETSc.COMM_SELF)
        self.problem = Problem(mesh, physics, Options(degree=degree, pmat="aij", check_kernels=False))
        if physics.auxiliary:
            self.fill_auxiliary()
        random = np.random.default_rng(seed)
        self.u, self.rate, self.du, self.work = (self.problem.create_vec() for _ in range(4))
        for vector in (self.u, self.rate, self.du):
            vector.setArray(size * random.uniform(-1, 1, vector.getLocalSize()))

    def fill_auxiliary(self):
        if len(self.problem.physics.auxiliary) > 1:
            give_everything(self.problem)
        else:
            self.problem.set_auxiliary("kappa", lambda x: 1 + x[..., 0])

    def residual(self, step: float) -> np.ndarray:
        """F at u + step du, with u_t moving by shift as TS does."""
        u, rate = self.u.duplicate(), self.u.duplicate()
        self.u.copy(u)
        self.rate.copy(rate)
        u.axpy(step, self.du)
        rate.axpy(step * SHIFT, self.du)
        self.problem.callbacks.ifunction(None, T, u, rate, self.work)
        return self.work.getArray().copy()

    def linearize(self):
        calls = self.problem.callbacks
        calls.ijacobian(None, T, self.u, self.rate, SHIFT, calls.jacobian, calls.assembled.mat)
        return calls.jacobian, calls.assembled.mat

    def product(self, mat) -> np.ndarray:
        mat.mult(self.du, self.work)
        return self.work.getArray().copy()


def relative(got, expected) -> float:
    assert np.abs(expected).max() > 1e-8
    return float(np.abs(got - expected).max() / np.abs(expected).max())


@pytest.mark.full("elasticity-", "everything on one field", "minimal_surface", "p_laplacian", "poisson")
@pytest.mark.parametrize("name, cell", CASES)
def test_taylor_matrix_and_diagonal(name, cell, record_property):
    size = 0.01 if name == "neo_hookean" else 0.1  # larger displacements turn cells inside out
    case = Linearized(PHYSICS[name](3 if cell == "hexahedron" else 2), cell, degree=2, size=size)
    shell, assembled = case.linearize()
    action = case.product(shell)
    assert relative(case.product(assembled), action) < 1e-12
    assert relative(assembled.getDiagonal().getArray(), shell.getDiagonal().getArray()) < 1e-12
    base = case.residual(0.0)
    if name in LINEAR:
        assert relative(case.residual(1.0) - base, action) < 1e-12
        return
    remainders = [np.linalg.norm(case.residual(step) - base - step * action) for step in (1e-3, 5e-4, 2.5e-4)]
    orders = np.log2(np.divide(remainders[:-1], remainders[1:]))
    record_property("orders", [float(o) for o in orders])
    assert (orders > 1.9).all(), (orders, remainders)
    wrong = [np.linalg.norm(case.residual(step) - base - 1.01 * step * action) for step in (1e-3, 5e-4)]
    assert np.log2(wrong[0] / wrong[1]) < 1.5, "the test would not notice an error of 1 %"


HAND = """
    PetscReal s = 1;
    for (d = 0; d < dim; ++d) s += u_x[d]*u_x[d];
    for (d = 0; d < dim; ++d) for (int e = 0; e < dim; ++e)
      g3[d*dim + e] = ((d == e) - u_x[d]*u_x[e]/s)*a[0]/sqrt(s);
"""


@pytest.mark.full
@pytest.mark.parametrize("cell", ("quadrilateral", "tetrahedron"))
def test_hand_written_jacobian_equals_the_derived_one(cell):
    def physics(jacobian):
        return Physics(
            {"u": 1},
            "f0[0] = u_t[0]*u[0] + u[0]*u_x[0]*u[0];",
            """
            PetscReal s = 1;
            for (d = 0; d < dim; ++d) s += u_x[d]*u_x[d];
            for (d = 0; d < dim; ++d) f1[d] = a[0]*u_x[d]/sqrt(s) + 0.5*u[0]*u[0]*(d + 1);
            """,
            auxiliary={"kappa": Auxiliary(1)},
            jacobian=jacobian,
            boundary=[Dirichlet("left", 0.0), Robin("right", "f0[0] = u[0]*u[0];")],
            name="hand-written" if jacobian else "derived",
        )

    hand = {
        "g0": "g0[0] = u_t[0] + u_tShift*u[0] + 2*u[0]*u_x[0];",
        "g1": "for (d = 0; d < dim; ++d) g1[d] = d == 0 ? u[0]*u[0] : 0.0;",
        "g2": "for (d = 0; d < dim; ++d) g2[d] = u[0]*(d + 1);",
        "g3": HAND,
    }
    products = []
    for jacobian in (None, hand):
        case = Linearized(physics(jacobian), cell, degree=1, size=1.0)
        shell, assembled = case.linearize()
        products.append((case.product(shell), case.product(assembled), shell.getDiagonal().getArray().copy()))
    for derived, written in zip(*products, strict=True):
        assert relative(written, derived) < 1e-12


def test_a_wrong_hand_written_jacobian_is_used_as_given():
    physics = Physics({"u": 1}, "f0[0] = u[0];", None, jacobian={"g0": "g0[0] = 3.0;"}, boundary=[], name="three")
    case = Linearized(physics, "triangle", degree=1, size=1.0)
    assert relative(case.product(case.linearize()[0]), 3.0 * (case.residual(1.0) - case.residual(0.0))) < 1e-12

"""What must hold of interior penalty to round-off or to a known order, whatever the mesh."""

from __future__ import annotations

import numpy as np
import pytest
from petsc4py import PETSc
from petsc_options import petsc_options
from sample_condensed import LAPLACE, by_name
from sample_meshes import bent, box_mesh
from sample_physics import everything_on_one_field
from taylor import assert_second_order

from petsc_hdg.options import Options
from petsc_hdg.physics import Dirichlet, Neumann, Physics
from petsc_hdg.problem import Problem

EPS = 1e-12
TIGHT = {"ksp_type": "gmres", "ksp_rtol": "1e-13", "pc_type": "lu", "snes_rtol": "1e-13", "snes_stol": "0"}


def problem(physics, cell: str, degree: int, is_bent: bool = False, mesh=None, **settings) -> Problem:
    """A problem of sipg_gpu with auxiliary fields, where there are any, between 1 and 3."""
    mesh = mesh or box_mesh(cell, comm=PETSc.COMM_SELF)
    mesh = bent(mesh) if is_bent else mesh
    made = by_name(physics, mesh.dim) if isinstance(physics, str) else physics
    settings = {"backend": "sipg_gpu", "check_kernels": False, "pmat": "none", **settings}
    found = Problem(mesh, made, Options(degree=degree, **settings))
    for field in made.auxiliary:
        factors = np.arange(1, field.components + 1)
        found.set_auxiliary(field.name, lambda x, f=factors: (1 + 0.5 * x[..., 0] * x[..., 1])[..., None] * f)
    return found


def random_vectors(found: Problem, count: int) -> list[PETSc.Vec]:
    random = np.random.default_rng(3)
    vectors = [found.create_vec() for _ in range(count)]
    for vector in vectors:
        vector.setArray(random.uniform(0.2, 1.0, vector.getLocalSize()))
    return vectors


def linearized(found: Problem, u: PETSc.Vec, shift: float = 0.0) -> PETSc.Mat:
    calls = found.callbacks
    calls.ijacobian(None, 0.3, u, u, shift, calls.jacobian, calls.jacobian)
    return calls.jacobian


def product(found: Problem, u: PETSc.Vec, x: PETSc.Vec, shift: float = 0.0) -> PETSc.Vec:
    out = x.duplicate()
    linearized(found, u, shift).mult(x, out)
    return out


def difference(a: PETSc.Vec, b: PETSc.Vec) -> float:
    """Largest difference over the largest entry."""
    scale = b.norm(PETSc.NormType.INFINITY)
    assert scale > 1e-3
    return (a - b).norm(PETSc.NormType.INFINITY) / scale


@pytest.mark.full("elasticity")
@pytest.mark.parametrize(
    "name, cell, is_bent",
    [
        ("tensor", "triangle", True),
        ("poisson", "hexahedron", True),
        ("elasticity", "quadrilateral", False),
        ("elasticity", "tetrahedron", False),
    ],
)
def test_symmetric_physics_is_symmetric_positive(name, cell, is_bent):
    found = problem(name, cell, 2, is_bent)
    x, y = random_vectors(found, 2)
    ax, ay = (product(found, x, v) for v in (x, y))
    assert ax.dot(y) == pytest.approx(ay.dot(x), rel=EPS)
    y.setArray(np.random.default_rng(4).uniform(-1, 1, y.getLocalSize()))
    assert product(found, x, y).dot(y) > 0


@pytest.mark.full
def test_the_form_is_affine_in_theta():
    """A(1) + A(-1) = 2 A(0), and only A(1) is symmetric."""
    found = {theta: problem("tensor", "triangle", 2, sipg_theta=theta) for theta in (1, 0, -1)}
    x, y = random_vectors(found[0], 2)
    ay = {theta: product(one, x, y) for theta, one in found.items()}
    assert difference(ay[1] + ay[-1], 2.0 * ay[0]) < EPS
    assert difference(ay[1], ay[-1]) > 1e-3
    turned = product(found[-1], x, x).dot(y)
    assert abs(turned - ay[-1].dot(x)) > 1e-6 * abs(turned)


@pytest.mark.full
@pytest.mark.parametrize(
    "cell",
    ["triangle", "hexahedron", *(pytest.param(c, marks=pytest.mark.full) for c in ("quadrilateral", "tetrahedron"))],
)
def test_fused_is_split(cell):
    """Residual and product with every input of the contract: nonlinear, auxiliary fields, rates, mixed conditions."""
    physics = everything_on_one_field()
    fused, split = (problem(physics, cell, 1, is_bent=True, sipg_kernel=k) for k in ("fused", "split"))
    assert (fused.operator.product, split.operator.product) == ("fused", "split")
    u, rate, du = random_vectors(fused, 3)
    residuals = [u.duplicate() for _ in range(2)]
    for found, f in zip((fused, split), residuals, strict=True):
        found.callbacks.ifunction(None, 0.3, u, rate, f)
    assert difference(*residuals) < EPS
    products = [product(found, u, du, shift=1.7) for found in (fused, split)]
    assert difference(*products) < EPS


@pytest.mark.full("hexahedron")
@pytest.mark.parametrize("cell", ["triangle", "hexahedron"])
def test_the_assembled_matrix_is_the_product(cell):
    """Also its diagonal and its transpose, for a matrix that is not symmetric."""
    found = problem("convection", cell, 2, pmat="aij")
    u, x = random_vectors(found, 2)
    calls = found.callbacks
    calls.linearize(None, u, calls.jacobian, calls.assembled.mat)
    shell, assembled, backward, expected = (u.duplicate() for _ in range(4))
    calls.jacobian.mult(x, shell)
    calls.assembled.mat.mult(x, assembled)
    assert difference(shell, assembled) < EPS
    assert difference(calls.jacobian.getDiagonal(), calls.assembled.mat.getDiagonal()) < EPS
    calls.jacobian.multTranspose(x, backward)
    calls.assembled.mat.multTranspose(x, expected)
    assert difference(backward, expected) < EPS and difference(backward, assembled) > 1e-3


@pytest.mark.parametrize("cell", ["quadrilateral", "tetrahedron"])
def test_constants_and_conservation(cell):
    """Without Dirichlet data constants are in the kernel of diffusion, and of its transpose: facets conserve."""
    physics = Physics({"u": 1}, "f0[0] = -1;", LAPLACE, boundary=[Neumann("right", "g[0] = 2;")], name="free")
    found = problem(physics, cell, 2, is_bent=True)
    (x,) = random_vectors(found, 1)
    ones, f = x.duplicate(), x.duplicate()
    ones.set(1.0)
    scale = product(found, x, x).norm(PETSc.NormType.INFINITY)
    assert product(found, x, ones).norm(PETSc.NormType.INFINITY) < EPS * scale
    assert abs(product(found, x, x).sum()) < EPS * scale * x.getLocalSize()
    found.callbacks.residual(None, ones, f)
    total = f.copy()
    found.callbacks.residual(None, x, f)
    assert f.sum() == pytest.approx(total.sum(), rel=1e-11)


POLYNOMIAL = "u[0] = x[0]*x[0] - 2*x[0]*x[1] + 0.5*x[1];"


@pytest.mark.parametrize("cell", ["triangle", pytest.param("tetrahedron", marks=pytest.mark.full)])
def test_polynomials_are_reproduced(cell):
    """A quadratic solution, on straight simplices, where the rules are exact; and its fluxes balance the source."""
    physics = Physics(
        {"u": 1},
        f0="f0[0] = 2;",
        f1=LAPLACE,
        boundary=[Dirichlet("boundary", "exact")],
        exact={"u": POLYNOMIAL},
        name="quadratic",
    )
    found = problem(physics, cell, 2, pmat="aij")
    with petsc_options(**TIGHT):
        u = found.solve()
    errors = found.errors(u)
    assert errors["L2"] < 1e-12 and errors["H1"] < 1e-11, errors
    sides = ("left", "right", "bottom", "top", "front", "back")[: 2 * found.mesh.dim]
    through = [float(found.flux(side, u)[0]) for side in sides]
    assert through[1] == pytest.approx(1.0, abs=1e-10)  # ∫ 2x - 2y over x = 1
    assert sum(through) == pytest.approx(2.0, rel=1e-10)


@pytest.mark.parametrize(
    "name, cell", [("nonlinear", "triangle"), ("burgers", "quadrilateral"), ("minimal surface", "hexahedron")]
)
def test_taylor(name, cell, record_property):
    """F(u + h d) - F(u) - h J d is of second order in h."""
    found = problem(name, cell, 2)
    u, d = random_vectors(found, 2)
    jd, calls = product(found, u, d), found.callbacks
    assert_second_order(lambda v, f: calls.ifunction(None, 0.3, v, u, f), u, d, jd, record_property)


@pytest.mark.full
@pytest.mark.parametrize("name, cell", [("nonlinear", "triangle"), ("minimal surface", "quadrilateral")])
def test_newton_converges_quadratically(name, cell, record_property):
    found = problem(name, cell, 2, pmat="aij")
    with petsc_options(ksp_type="preonly", pc_type="lu", snes_rtol="1e-14", snes_atol="1e-12", snes_stol="0"):
        snes = found.create_snes()
        snes.setConvergenceHistory()
        snes.solve(None, found.create_vec())
    history = snes.getConvergenceHistory()[0]
    record_property("history", history.tolist())
    assert snes.getConvergedReason() > 0 and len(history) >= 4
    last = [(a, b) for a, b in zip(history[:-1], history[1:], strict=True) if a < 0.1 and b > 1e-11]
    assert last and all(b < 100 * a**2 for a, b in last), history

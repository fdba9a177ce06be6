"""What must hold of the trace system to round-off or to a known order, whatever the mesh."""

from __future__ import annotations

import numpy as np
import pytest
from full_system import solve_full
from petsc4py import PETSc
from petsc_options import petsc_options
from sample_condensed import LAPLACE, by_name, cell_balance
from sample_meshes import DIM, SHAPES, bent, box_mesh
from taylor import assert_second_order

from petsc_hdg.discretizations import HybridizedDG
from petsc_hdg.discretizations.transposition import DeviceLimits
from petsc_hdg.errors import OptionError, SolveError
from petsc_hdg.mesh import Mesh
from petsc_hdg.options import Options
from petsc_hdg.physics import Dirichlet, Neumann, Physics
from petsc_hdg.problem import Problem

LU = {"ksp_type": "preonly", "pc_type": "lu"}  # PETSc's own, one rank
TIGHT = {"snes_rtol": "1e-14", "snes_atol": "1e-14", "snes_stol": "0"}


def problem(physics, mesh, degree: int, **settings) -> Problem:
    """A problem of hdg_gpu with auxiliary fields, where there are any, between 1 and 1.5."""
    made = by_name(physics, mesh.dim) if isinstance(physics, str) else physics
    found = Problem(mesh, made, Options(degree=degree, **{"backend": "hdg_gpu", **settings}))
    for field in made.auxiliary:
        found.set_auxiliary(field.name, lambda x: 1 + 0.5 * x[..., 0] * x[..., 1])
    return found


def mesh_of(cell: str, faces=None) -> Mesh:
    return box_mesh(cell, faces, comm=PETSc.COMM_SELF)


def solved(found: Problem) -> np.ndarray:
    """The trace of a solution to round-off."""
    with petsc_options(**LU, **TIGHT):
        return found.solve()


def matrix(found: Problem) -> np.ndarray:
    """The assembled matrix at zero, dense."""
    calls = found.callbacks
    calls.linearize(None, found.create_vec(), calls.jacobian, calls.assembled.mat)
    return calls.assembled.mat.convert("dense", out=PETSc.Mat()).getDenseArray().copy()


@pytest.mark.parametrize(
    "physics, cell, degree, most",
    [("poisson", "triangle", 1, 21), ("tensor", "quadrilateral", 2, 19), ("elasticity", "tetrahedron", 1, 72)],
)
def test_symmetric_physics_is_symmetric_positive_definite(physics, cell, degree, most, record_property):
    """The matrix by its eigenvalues, and CG, which does not converge so fast on another."""
    found = problem(physics, mesh_of(cell), degree, pmat="aij")
    k = matrix(found)
    assert np.abs(k - k.T).max() < 1e-13 * np.abs(k).max()
    low, high = np.linalg.eigvalsh((k + k.T) / 2)[[0, -1]]
    assert 0 < low < high
    with petsc_options(ksp_type="cg", pc_type="jacobi", ksp_rtol="1e-10"):
        found.solve()
    counts = [found.linear_iterations]
    again = problem(physics, mesh_of(cell), degree)
    again.solve()
    record_property("iterations", [*counts, again.linear_iterations])
    assert counts[0] <= min(len(k), 2.5 * np.sqrt(high / low) * np.log(2e10)) and again.linear_iterations <= most


@pytest.mark.full
@pytest.mark.parametrize(
    "physics, cell, degree",
    [
        ("convection", "triangle", 2),
        ("elasticity", "quadrilateral", 1),
        ("nonlinear", "tetrahedron", 1),
        ("minimal surface", "hexahedron", 1),
        ("burgers", "triangle", 1),
    ],
)
def test_condensed_equals_full(physics, cell, degree):
    mesh = bent(mesh_of(cell)) if cell == "triangle" else mesh_of(cell, (2,) * DIM[cell])
    tau = "auto" if physics in ("convection", "elasticity") else "2"  # what follows states does so in its own way
    condensed = problem(physics, mesh, degree, hdg_tau=tau)
    with petsc_options(**TIGHT):
        full, inside = solve_full(problem(physics, mesh, degree, hdg_tau=tau))
    traces = [solved(condensed), full]
    scale = traces[0].norm(PETSc.NormType.INFINITY)
    assert scale > 1e-2
    assert (traces[0] - traces[1]).norm(PETSc.NormType.INFINITY) < 1e-10 * scale
    values = condensed.cell_values(traces[0])[condensed.physics.fields[0].name]
    assert np.abs(values - inside.reshape(values.shape)).max() < 1e-10 * scale


def test_products_of_all_formats_are_the_same():
    """Also transposed: x·K y = Kᵀ x·y, for a matrix that is not symmetric."""
    found = {
        kind: problem("convection", mesh_of("quadrilateral"), 1, hdg_trace_mat=kind)
        for kind in ("dbf", "element", "aij")
    }
    random, products = np.random.default_rng(2), {}
    x, y = (found["aij"].create_vec() for _ in range(2))
    for vector in (x, y):
        vector.setArray(random.uniform(-1, 1, vector.getLocalSize()))
    for kind, one in found.items():
        calls = one.callbacks
        calls.linearize(None, x, calls.jacobian, calls.preconditioning)
        forward, backward = x.duplicate(), x.duplicate()
        calls.jacobian.mult(x, forward)
        calls.jacobian.multTranspose(y, backward)
        assert forward.dot(y) == pytest.approx(backward.dot(x), rel=1e-12)
        products[kind] = np.concatenate([forward.getArray(), backward.getArray()])
    size = np.abs(products["aij"]).max()
    assert size > 0.1 and np.abs(products["aij"][: len(products["aij"]) // 2]).max() > 0.1
    for kind in ("dbf", "element"):
        assert np.abs(products[kind] - products["aij"]).max() < 1e-13 * size


def flat(dim: int, slope: float) -> Physics:
    """Nonlinear diffusion without source: its solution is 1.7 + slope (2x - y)."""
    values = f"1.7 + {slope}*(2*x[0] - x[1])"
    return Physics(
        {"u": 1},
        f1="PetscReal s = 2; for (d = 0; d < dim; ++d) s += u_x[d]*u_x[d]; for (d = 0; d < dim; ++d) f1[d] = u_x[d]*s;",
        boundary=[Dirichlet("boundary", "exact")],
        exact={"u": f"u[0] = {values};"},
        name="flat",
    )


QUICK = ("triangle", "hexahedron")


@pytest.mark.full("hexahedron", "quadrilateral", "tetrahedron")
@pytest.mark.parametrize("cell", [pytest.param(c, marks=[] if c in QUICK else pytest.mark.full) for c in SHAPES])
def test_constants_and_linear_functions_are_reproduced(cell):
    """Constants on bent cells, of degree 0; linear functions on straight ones, of degree 1."""
    for degree, mesh in ((0, bent(mesh_of(cell))), (1, mesh_of(cell))):
        found = problem(flat(mesh.dim, float(degree)), mesh, degree)
        errors = found.errors(solved(found))
        assert errors["L2"] < 1e-11 and errors["H1"] < 1e-10, (degree, errors)  # Newton stops at 1e-14 of its start


@pytest.mark.parametrize(
    "physics, cell", [("tensor", "triangle"), ("convection", "quadrilateral"), ("burgers", "hexahedron")]
)
def test_each_cell_balances_its_source(physics, cell):
    found = problem(physics, mesh_of(cell), 1)
    with found.access.read(solved(found)) as x:
        gap, scale = cell_balance(found.operator, x)
    assert scale > 1e-3 and gap < 1e-12 * scale


@pytest.mark.parametrize("physics, cell", [("nonlinear", "triangle"), ("burgers", "quadrilateral")])
def test_taylor(physics, cell, record_property):
    """F(x + h d) - F(x) - h K d is of second order in h."""
    found = problem(physics, mesh_of(cell), 1)
    calls, random = found.callbacks, np.random.default_rng(1)
    x, d, y = (found.create_vec() for _ in range(3))
    x.setArray(random.uniform(0.5, 1.0, x.getLocalSize()))
    d.setArray(random.uniform(-1.0, 1.0, d.getLocalSize()))
    calls.linearize(None, x, calls.jacobian, calls.preconditioning)
    calls.jacobian.mult(d, y)
    assert_second_order(lambda u, f: calls.residual(None, u, f), x, d, y, record_property)


@pytest.mark.parametrize("physics, cell", [("nonlinear", "triangle"), ("burgers", "quadrilateral")])
def test_newton_converges_quadratically(physics, cell, record_property):
    found = problem(physics, mesh_of(cell), 1)
    with petsc_options(**LU, snes_rtol="1e-14", snes_atol="1e-13", snes_stol="0"):
        snes = found.create_snes()
        snes.setConvergenceHistory()
        snes.solve(None, found.create_vec())
    history = snes.getConvergenceHistory()[0]
    record_property("history", history.tolist())
    assert snes.getConvergedReason() > 0 and len(history) >= 4
    steps = [(a, b) for a, b in zip(history[:-1], history[1:], strict=True) if a < 0.5 and b > 1e-12]
    assert len(steps) >= 2, history
    for before, after in steps:
        assert after < 10 * before**2, history


@pytest.mark.parametrize(
    "cell, degree", [pytest.param("triangle", 3, marks=pytest.mark.full), ("quadrilateral", 2), ("hexahedron", 2)]
)
def test_condensed_cg_is_cg(cell, degree):
    values = []
    for condense in (True, False):
        found = problem("tensor", mesh_of(cell), degree, backend="cg_gpu", cg_condense=condense)
        values.append(found.cell_values(solved(found))["u"])
    assert np.abs(values[0]).max() > 1e-2 and np.abs(values[0] - values[1]).max() < 1e-11


def test_a_singular_local_problem_is_an_error():
    """Nothing holds the function that vanishes on all sides of a cell."""
    source = Physics({"u": 1}, f0="f0[0] = -1;", boundary=[Dirichlet("boundary", 0.0)], name="no operator")
    with pytest.raises(SolveError, match=r"the local problem of cell \d+ of rank 0 near \(.*\) is singular"):
        problem(source, mesh_of("triangle"), 3).solve()


@pytest.mark.parametrize("flux, balanced", [("g[0] = -n[0]*n[0]/2;", True), ("g[0] = 1;", False)])
def test_pure_neumann(flux, balanced):
    """Known up to a constant if the data balance (sides left and right carry the source of 1), refused otherwise."""
    physics = Physics({"u": 1}, "f0[0] = -1;", LAPLACE, boundary=[Neumann("boundary", flux)], name="free")
    found = problem(physics, mesh_of("quadrilateral"), 1)
    if not balanced:
        with pytest.raises(
            SolveError,
            match="has no solution: where its conditions leave the solution free, source and fluxes must balance",
        ):
            found.solve()
        return
    u = found.solve()
    residual = found.create_vec()
    found.callbacks.residual(None, u, residual)
    assert residual.norm() < 1e-8 and u.norm() > 1e-3


def test_degrees_that_are_too_high():
    for cell, degree, low, high in (("triangle", 10, 0, 9), ("tetrahedron", 6, 0, 5)):
        with pytest.raises(
            OptionError, match=f"fe_degree {degree} gives field 'u' the degree {degree}; hdg_gpu takes {low} to {high}"
        ):
            problem("poisson", mesh_of(cell), degree)


def test_a_device_that_is_too_small():
    disc = HybridizedDG(
        mesh_of("hexahedron"), by_name("five", 3), Options(degree=5, backend="hdg_gpu"), DeviceLimits(4096, 256)
    )
    with pytest.raises(OptionError, match="bytes of local memory do not hold a cell of .* lower -fe_degree"):
        disc.condense_spec()

"""Kernels of polytopic DG beside numpy, for all ways to have fields: what the first use on a device checks."""

import numpy as np
import pytest

import petsc_hdg as fe
from petsc_hdg.device import verdicts
from petsc_hdg.operators.poly import check as check_poly
from petsc_hdg.operators.sipg import check as check_sipg

FIELDS = [{"a": 1}, {"v": 2}, {"a": 1, "b": 1}, {"v": 2, "p": 1}, {"p": 1, "v": 2}]


def operator(fields: dict):
    of_each = {name: f"for (int c = 0; c < {n}; ++c) f0[c] = 1;" for name, n in fields.items()}
    physics = fe.Physics(fields, of_each, name="ones")
    mesh = fe.agglomerate(fe.Mesh.box((3, 3)), 5)
    return fe.Problem(mesh, physics, backend="poly_gpu", degree=2, check_kernels=False).operator


@pytest.mark.parametrize("fields", FIELDS, ids=" ".join)
def test_expand_and_restrict_equal_numpy(fields):
    made = operator(fields)
    for check in (check_poly._check_expand, check_poly._check_restrict):
        found, expected = check(made)
        assert found.shape == expected.shape and np.abs(expected).max() > 0.1
        assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()


@pytest.mark.parametrize("sign", (1, -1))
def test_a_diffusivity_of_rounding_has_no_sign(sign):
    """Where diffusion vanishes but for rounding the penalty is upwinding's, whatever sign the rounding has; where it
    does not, a negative one turns the penalty over."""
    kappa = f"PetscReal kappa = x[1] < 0.5 ? {-sign}e-17 : {sign};"
    f1 = f"{kappa} for (d = 0; d < dim; ++d) f1[d] = kappa * u_x[d];"
    physics = fe.Physics({"u": 1}, f"f0[0] = {sign} * (u_x[0] + u_x[1]);", f1, name="degenerate")
    mesh = fe.agglomerate(fe.Mesh.box((4, 4)), 6)
    made = fe.Problem(mesh, physics, backend="poly_gpu", degree=1, check_kernels=False).operator.fine
    disc = made.discretization
    with check_sipg.Sample.of(made) as sample:
        found = sample.state.sigma
        expected = np.array([
            [sample.oracle.penalty(cell, f, sample.state) for f in range(3)] for cell in range(disc.mesh.num_cells)
        ])  # fmt: skip
    found = found[:, :, : disc.mesh.num_cells]
    assert np.abs(found - expected.transpose(2, 1, 0)).max() < 1e-12 * np.abs(found).max()
    found = found[np.abs(found) > 1e-10]
    signs, vanishing = np.sign(found), np.abs(found) < 1
    assert vanishing.any() and (signs[vanishing] == 1).all()
    assert not vanishing.all() and (signs[~vanishing] == sign).all()


@pytest.mark.parametrize("kappa", ("1", "(1 + u[0]*u[0])"))
def test_kernels_of_products_come_where_they_are_asked_for(kappa, fresh_cache):
    """A matrix spares them. They see the linearization that the matrix was made at."""
    f1 = f"for (d = 0; d < dim; ++d) f1[d] = {kappa}*u_x[d];"
    physics = fe.Physics(
        {"u": 1}, "f0[0] = -1;", f1, boundary=[fe.Dirichlet("boundary", "g[0] = x[0];")], name="spared"
    )
    problem = fe.Problem(fe.agglomerate(fe.Mesh.box((4, 4)), 9), physics, backend="poly_gpu", degree=2)
    u = problem.solve()
    made, matrix = problem.operator, problem.callbacks.assembled.mat
    assert not made.fine.multiplies and "sipg_affine_simplex" not in made.all_kernels()
    du, out = matrix.createVecs()
    du.array = np.random.default_rng(1).uniform(-1, 1, du.getLocalSize())
    made.linearize(made.arrays.to_device(u.array))
    problem.callbacks.assembled.update()
    matrix.mult(du, out)
    found = made.arrays.zeros(du.getLocalSize())
    made.action(made.arrays.to_device(du.array), found)
    difference = made.arrays.to_host(found, du.getLocalSize()) - out.array
    assert np.abs(difference).max() < 1e-12 * np.abs(out.array).max()
    name = "sipg_affine_simplex_data" if kappa == "1" else "sipg_action"
    assert verdicts.verdict(made.all_kernels()[name])["ok"]

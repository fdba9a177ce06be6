"""Natural conditions between cells by sipg_gpu: every kernel against plain numpy, matrices against products."""

from __future__ import annotations

import numpy as np
import pytest
from given_sipg import GivenState, made
from sample_meshes import box_mesh
from test_sipg_tensor import GPU

import petsc_hdg as fe
from petsc_hdg.discretizations.sipg.oracle import PenaltyOracle

FACES = {"triangle": (4, 2), "quadrilateral": (4, 3), "tetrahedron": (2, 1, 1), "hexahedron": (2, 2, 1)}
LOW = "f0[0] = k*a[0]*u[0]*u_x[0]*n[0] + u_t[0]*x[1]; f0[1] = u_x[1] + a_x[0]*u[0];"
SLOPES = "f1[0] = u[0]*u[1]; f1[1] = u[0]*n[0]; f1[2] = u_x[dim];"


def walls(f1: str | None = SLOPES) -> fe.Physics:
    """Two components; on the wall a law of either side, and one that sees no side, with another on the boundary."""
    return fe.Physics(
        {"v": 2},
        f0="f0[0] = u[0]*u[0] + u_t[0]; f0[1] = u[0]*u_x[0] - x[0];",
        f1="for (c = 0; c < 2; ++c) for (d = 0; d < dim; ++d) f1[c*dim + d] = (1 + a[0]*u[0]*u[0])*u_x[c*dim + d];",
        boundary=[
            fe.Dirichlet("left", "g[0] = x[1]; g[1] = 0.2;"),
            fe.Robin("right", "f0[0] = u[0]*u[0];"),
            fe.Robin("wall", LOW, side="low", f1=f1),
            fe.Robin("wall", "f0[1] = a[0]*u[1]*u_x[dim]*n[0];", side="high"),
            fe.Robin("wall", "f0[0] = u[1]*u[1] - x[1];"),
        ],
        auxiliary={"kappa": fe.Auxiliary(1, "nodal")},
        constants={"k": 0.7},
    )


# cell, degree, theta, whether with the work-groups of a GPU
CASES = [
    ("triangle", 2, 1, False),
    ("triangle", 1, 0, True),
    ("quadrilateral", 2, 1, False),
    ("quadrilateral", 1, -1, True),
    ("quadrilateral", 6, 1, True),
    ("tetrahedron", 1, 1, True),
    ("hexahedron", 1, 1, False),
    ("hexahedron", 2, 0, True),
]


@pytest.mark.full("hexahedron", "tetrahedron")
@pytest.mark.parametrize("cell, degree, theta, gpu", CASES)
def test_kernels_are_the_oracle(cell, degree, theta, gpu):
    state = GivenState(box_mesh(cell, FACES[cell], wall=True), walls(), degree, GPU if gpu else None, sipg_theta=theta)
    near, oracle = state.disc.neighbours, PenaltyOracle(state.disc)
    cells = np.flatnonzero(near.wall.any(axis=1))[:6]
    assert near.has_walls and len(cells) > 1
    for what in ("residual", "action"):
        given = state.of_oracle(what)
        expected = np.array([oracle.rows(c, given) for c in cells])
        got = state.fused(what)[state.disc.extended_dofs[cells]]
        assert np.abs(got - expected).max() < 1e-11 * np.abs(expected).max()
        assert state.difference(what) < 1e-11


@pytest.mark.parametrize("cell", ["triangle", "hexahedron"])
def test_matrices_are_products(cell):
    """Diagonal, blocks and couplings, and the transposed product, beside products with unit vectors."""
    state = GivenState(box_mesh(cell, FACES[cell], wall=True), walls(), 1)
    operator, count = state.two, state.disc.dofmap.num_owned
    state._linearized(operator)
    rows, columns = state.disc.matrix_numbers()
    found, here = np.zeros((count, count)), (rows >= 0) & (columns >= 0)
    np.add.at(found, (rows[here], columns[here]), operator.matrices()[here])
    scale = np.abs(found).max()

    def product(name: str, *given) -> np.ndarray:
        buffers = [operator.arrays.to_device(v, "direction") for v in given]
        out = operator.arrays.zeros(count)
        getattr(operator, name)(*buffers, out)
        return operator.arrays.to_host(out, count)

    columns = np.array([product("action", unit) for unit in np.eye(count)]).T
    np.testing.assert_allclose(found, columns, atol=1e-12 * scale)
    np.testing.assert_allclose(product("diagonal"), np.diag(columns), atol=1e-12 * scale)
    np.testing.assert_allclose(product("transposed", state.values[2]), columns.T @ state.values[2], atol=1e-11 * scale)


def test_the_fast_pass_leaves_laws_between_cells_out():
    """Sources it takes: products do not see them."""
    for law, fast in (("f0[0] = x[1];", True), ("f0[0] = u[0];", False)):
        boundary = [fe.Dirichlet("left", 0.0), fe.Robin("wall", law)]
        physics = fe.Physics({"u": 1}, None, "for (d = 0; d < dim; ++d) f1[d] = u_x[d];", boundary=boundary)
        operator = made(box_mesh("triangle", (4, 2), wall=True), physics, 2)
        assert (operator.fast is not None) == fast

"""Numbers of cells around the batches of thread transposition: one, one less, one more; also in single precision."""

from __future__ import annotations

import numpy as np
import pytest
from petsc4py import PETSc

from petsc_hdg.mesh import Mesh
from petsc_hdg.options import Options
from petsc_hdg.physics import Physics
from petsc_hdg.problem import Problem

PHYSICS = Physics(
    {"u": 1},
    "f0[0] = u[0]*u[0] + x[0];",
    "for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d];",
    name="remainders",
)
SHAPES = [(1, 1), (2, 1), (3, 2)]  # -fe_num_blocks, -fe_num_batches


def strip(count: int) -> Mesh:
    """`count` triangles in a row."""
    number = np.arange(count + 2)
    points = np.column_stack([0.5 * number + 0.05 * np.sin(number), number % 2.0])
    cells = np.column_stack([number[:-2], number[1:-1], number[2:]])
    return Mesh.from_cells(cells, points, comm=PETSc.COMM_SELF)


def vectors(count: int, **options) -> tuple[Problem, np.ndarray, np.ndarray]:
    """Residual and action on a strip at a state given by coordinates, so that it does not depend on the options."""
    problem = Problem(
        strip(count), PHYSICS, Options(degree=1, quadrature_degree=4, check_kernels=False, pmat="none", **options)
    )
    calls = problem.callbacks
    u, f, y = (problem.create_vec() for _ in range(3))
    u.setArray(np.random.default_rng(count).uniform(0.2, 1, u.getLocalSize()))
    calls.residual(None, u, f)
    calls.linearize(None, u, calls.jacobian, calls.jacobian)
    calls.jacobian.mult(u, y)
    return problem, f.getArray().copy(), y.getArray().copy()


@pytest.mark.parametrize("blocks, batches", SHAPES)
def test_cells_around_a_batch(blocks, batches):
    problem, _, _ = vectors(1, kernel="transpose", num_blocks=blocks, num_batches=batches)
    macros = problem.operator.kernels["cg_residual"].spec.macros
    batch, chunk = macros["CELLS"], macros["CELLS"] * macros["BATCHES"]
    assert macros["BATCHES"] == batches and batch > 1
    counts = {1, batch - 1, batch, batch + 1, chunk - 1, chunk, chunk + 1, 2 * chunk + 1} - {0}
    for count in counts:
        _, *plain = vectors(count, kernel="cell")
        _, *batched = vectors(count, kernel="transpose", num_blocks=blocks, num_batches=batches)
        for got, expected in zip(batched, plain, strict=True):
            np.testing.assert_allclose(
                got, expected, rtol=0, atol=1e-13 * np.abs(expected).max(), err_msg=f"{count} cells"
            )


@pytest.mark.parametrize("kernel", ("cell", "transpose"))
def test_single_precision(kernel):
    _, *double = vectors(9, kernel=kernel)
    _, *single = vectors(9, kernel=kernel, precision="single")
    for got, expected in zip(single, double, strict=True):
        difference = np.abs(got - expected).max() / np.abs(expected).max()
        assert 0 < difference < 20 * np.finfo(np.float32).eps

"""Volume terms by stored matrices: products equal the split kernels' and numpy's, and refusals say why."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sample_meshes import SHAPES, box_mesh
from sample_physics import everything_on_one_field, give_everything

import petsc_hdg as fe
from petsc_hdg.discretizations.oracle import State
from petsc_hdg.discretizations.sipg.oracle import PenaltyOracle
from petsc_hdg.errors import OptionError
from petsc_hdg.operators.sipg.stored import FEW, STORED, StoredVolume
from petsc_hdg.options import Options
from petsc_hdg.problem import Problem

# Boxes of more than a chunk of 32 cells, which is not full.
FACES = {"triangle": (7, 5), "quadrilateral": (9, 5), "tetrahedron": (3, 2, 2), "hexahedron": (4, 3, 3)}
DEGREE = {"triangle": 3, "quadrilateral": 3, "tetrahedron": 2, "hexahedron": 2}
T, SHIFT = 0.4, 1.7


def linear(f1: str = "f1[c*dim + d] = (1 + a[0])*u_x[c*dim + d] + beta*u[1 - c];") -> fe.Physics:
    """Two components, coupled, with convection, a rate and coefficients that are constant in a cell."""
    return fe.Physics(
        {"v": 2},
        f0="for (c = 0; c < 2; ++c) f0[c] = u_t[c] + u_x[c*dim] + (c + 1)*u[1 - c] - x[0];",
        f1=f"for (c = 0; c < 2; ++c) for (d = 0; d < dim; ++d) {f1}",
        auxiliary={"region": fe.Auxiliary(1, "cell")},
        constants={"beta": 0.3},
        boundary=[fe.Dirichlet("left", "g[0] = 1; g[1] = x[0];"), fe.Robin("right", "f0[0] = 2*x[1]*u[0];")],
        name="linear",
    )


def create(mesh, physics, kernel: str, degree: int = 2, region=lambda x: np.floor(2 * x[..., 0]), **more) -> Problem:
    settings = {"backend": "sipg_gpu", "check_kernels": False, "pmat": "none", **more}
    problem = Problem(mesh, physics, Options(degree=degree, sipg_kernel=kernel, **settings))
    if physics.name == "linear":
        problem.set_auxiliary("region", region)
    elif physics.auxiliary:
        give_everything(problem)
    return problem


def vectors(problem) -> dict[str, np.ndarray]:
    random = np.random.default_rng(5)
    return {n: random.uniform(0.2, 1.0, problem.operator.dofmap.num_owned) for n in ("u", "u_t", "du")}


def product(problem) -> np.ndarray:
    """J du at (u, u_t)."""
    op, arrays, given = problem.operator, problem.operator.arrays, vectors(problem)
    u, u_t, du = (arrays.to_device(given[n]) for n in ("u", "u_t", "du"))
    out = arrays.zeros(len(given["u"]))
    op.linearize(u, T, u_t, SHIFT)
    op.action(du, out)
    return arrays.to_host(out, len(given["u"]))


def assert_close(found: np.ndarray, expected: np.ndarray) -> None:
    assert np.abs(expected).max() > 0.1
    np.testing.assert_allclose(found, expected, rtol=0, atol=2e-14 * np.abs(expected).max())


@pytest.mark.full
@pytest.mark.parametrize("cell", SHAPES)
def test_matrices_of_each_cell_differentiate_nonlinear_physics_on_distorted_cells(cell):
    mesh = box_mesh(cell, FACES[cell])
    assert mesh.num_cells > 32 and mesh.num_cells % 32
    assert not everything_on_one_field().is_linear
    found = {}
    for kernel in ("split", "stored"):
        problem = create(mesh, everything_on_one_field(), kernel)
        assert problem.operator.product == kernel
        found[kernel] = product(problem)
    assert_close(found["stored"], found["split"])


@pytest.mark.full
@pytest.mark.parametrize("cell", SHAPES)
def test_matrices_of_classes_give_the_product_of_the_split_kernels(cell):
    mesh = fe.Mesh.box(FACES[cell], simplex=cell in ("triangle", "tetrahedron"))
    found = {}
    for kernel in ("split", "stored", "congruent"):
        problem = create(mesh, linear(), kernel, DEGREE[cell])
        found[kernel] = product(problem)
    shapes = {"triangle": 2, "quadrilateral": 1, "tetrahedron": 6, "hexahedron": 1}[cell]
    classes = problem.operator.stored.shapes
    assert classes.count == 2 * shapes and len(classes.shape) == mesh.num_cells
    assert problem.operator.stored.nbytes < 3e5
    assert_close(found["stored"], found["split"])
    assert_close(found["congruent"], found["split"])


@pytest.mark.parametrize("kernel", STORED)
def test_volume_equals_numpy(kernel):
    problem = create(box_mesh("quadrilateral", (9, 5), amplitude=0.0), linear(), kernel, 3)
    product(problem)
    op, disc, given = problem.operator, problem.discretization, vectors(problem)
    assert kernel == "stored" or 2 < op.stored.shapes.count <= 16
    found = volume(op, op.stored).T
    u, u_t, du = (given[n][disc.extended_dofs] for n in ("u", "u_t", "du"))
    state = State(u, op.aux_rows, op.constants, op.penalties(), T, SHIFT, u_t, du)
    oracle = PenaltyOracle(disc)
    assert_close(found, np.array([oracle.volume(c, state) for c in range(disc.mesh.num_cells)]))


def volume(operator, stored) -> np.ndarray:
    """Element vectors [dof, cell] of the operator's direction."""
    disc = operator.discretization
    out = operator.arrays.zeros(disc.num_dofs * disc.stride)
    stored.update()
    stored.volume(operator.direction, out)
    return operator.arrays.to_host(out, (disc.num_dofs, disc.stride))[:, : disc.mesh.num_cells].astype(float)


@pytest.mark.parametrize("cell", ["quadrilateral", "tetrahedron"])
@pytest.mark.parametrize("kernel", STORED)
def test_launch_shapes_and_precisions_agree(kernel, cell):
    """A thread a cell as on GPUs, vectors of cells as on CPUs, and both in single precision."""
    found = {}
    for precision in ("double", "single"):
        problem = create(fe.Mesh.box(FACES[cell], simplex=cell == "tetrahedron"), linear(), kernel, precision=precision)
        product(problem)
        operator, disc = problem.operator, problem.discretization
        for gpu, lanes in ((False, 8), (True, 1)):
            disc.limits = replace(disc.limits, is_gpu=gpu)
            stored = STORED[kernel](operator)
            found[precision, lanes] = volume(operator, stored)
            assert stored.kernels[f"sipg_{kernel}"].spec.macros["LANES"] == lanes
    assert_close(found["double", 1], found["double", 8])
    for lanes in (1, 8):
        scale = np.abs(found["double", 1]).max()
        np.testing.assert_allclose(found["single", lanes], found["double", 1], rtol=0, atol=1e-5 * scale)


def test_classes_follow_auxiliary_data_and_constants():
    mesh = fe.Mesh.box((12, 12), simplex=False)
    problems = {kernel: create(mesh, linear(), kernel) for kernel in ("split", "congruent")}
    before = {kernel: product(problem) for kernel, problem in problems.items()}
    assert problems["congruent"].operator.stored.shapes.count == 2
    for problem in problems.values():
        problem.set_auxiliary("region", lambda x: np.floor(3 * x[..., 0]) ** 2)
        problem.set_constants(beta=-2.0)
    after = {kernel: product(problem) for kernel, problem in problems.items()}
    assert problems["congruent"].operator.stored.shapes.count == 3
    assert_close(before["congruent"], before["split"])
    assert_close(after["congruent"], after["split"])
    assert np.abs(after["split"] - before["split"]).max() > 1


def test_ranks_agree(mpirun):
    code = """
import sys
sys.path[:0] = ["tests", "tests/operators"]
import numpy as np
from mpi4py import MPI
from test_sipg_stored import create, fe, linear, product
mesh = fe.Mesh.box((9, 7), simplex=False, comm=MPI.COMM_WORLD)
found = {kernel: product(create(mesh, linear(), kernel)) for kernel in ("split", "stored", "congruent")}
for kernel in found:
    assert np.abs(found[kernel] - found["split"]).max() < 1e-13 * np.abs(found["split"]).max(), kernel
distorted = fe.Mesh.box((60, 7), simplex=False, comm=MPI.COMM_WORLD)
if distorted.comm.rank == 1:
    distorted.geometry.nodes += np.random.default_rng(1).uniform(-1e-3, 1e-3, distorted.geometry.nodes.shape)
said = ""
try:
    create(distorted, linear(), "congruent")
except fe.errors.OptionError as error:
    said = str(error)
said = distorted.comm.allgather(said)
assert all("-sipg_kernel congruent takes linear physics" in one for one in said), said
"""
    mpirun(3, "-c", code)


REFUSED = {
    "a coefficient that varies": (
        (10, 10),
        0.0,
        linear("f1[c*dim + d] = (1 + x[0])*u_x[c*dim + d];"),
        "physics 'linear' has derivatives that read x or the solution",
    ),
    "nonlinear physics": ((10, 10), 0.0, everything_on_one_field(), "has derivatives that read x or the solution"),
    "distorted cells": ((10, 10), 0.15, linear(), f"the 100 cells have more than {FEW} different shapes"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_congruent_refuses(what):
    faces, amplitude, physics, reason = REFUSED[what]
    with pytest.raises(OptionError, match="^-sipg_kernel congruent takes linear physics with constant") as caught:
        create(box_mesh("quadrilateral", faces, amplitude=amplitude), physics, "congruent")
    assert reason in str(caught.value) and str(caught.value).endswith("give -sipg_kernel auto")


def test_coefficients_given_later_are_refused_at_linearization():
    problem = create(
        fe.Mesh.box((10, 10), simplex=False), linear(), "congruent", region=lambda x: x[..., 0] * x[..., 1]
    )
    with pytest.raises(OptionError, match=f"the 100 cells have more than {FEW} different shapes or coefficients"):
        product(problem)


def test_matrices_must_fit_the_device():
    operator = create(fe.Mesh.box((6, 6), simplex=False), linear(), "stored").operator
    size = operator.stored.nbytes
    assert size == 18**2 * 64 * 8
    operator.device.memory_bytes = size
    StoredVolume(operator)
    operator.device.memory_bytes -= 1
    expected = (
        r"^-sipg_kernel stored keeps 18² numbers of each cell, 0.2 MB in all, and .* has 0.2 MB; give -sipg_kernel"
    )
    with pytest.raises(OptionError, match=expected):
        StoredVolume(operator)

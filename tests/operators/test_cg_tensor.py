"""Continuous Galerkin by sums along lines against thread transposition, with the work-groups of CPUs and of GPUs."""

from __future__ import annotations

from dataclasses import replace

import basix
import numpy as np
import pytest
from petsc4py import PETSc
from sample_meshes import bent, box_mesh
from sample_physics import everything, smooth_poisson

import petsc_hdg as fe
from petsc_hdg.device import Arrays, Device
from petsc_hdg.discretizations.cg.scheme import ContinuousGalerkin
from petsc_hdg.discretizations.cg.tensor import FEW, GPU_ITEMS, line_diagonal_flops, line_flops, line_shape, line_specs
from petsc_hdg.discretizations.transposition import DeviceLimits
from petsc_hdg.errors import OptionError
from petsc_hdg.operators.cg.operator import CGOperator
from petsc_hdg.operators.check import random_values, vector_of
from petsc_hdg.options import Options
from petsc_hdg.physics.library import elasticity, minimal_surface

GPU = DeviceLimits(local_bytes=49152, max_work_group=1024, is_gpu=True)  # work-groups as on a GPU, wherever they run
TOLERANCE = 2e-12  # of the largest entry: distorted cells of degree 4 with the rule of degree 8
PHYSICS = {
    "everything": lambda dim: everything(),
    "everything alike": lambda dim: everything(pressure_offset=0),
    "poisson": lambda dim: smooth_poisson(),
    "elasticity": lambda dim: elasticity(dim),
    "minimal surface": lambda dim: minimal_surface(),
}
# cell, degree, physics, degree of the rule (-1: twice the degree), curved, with the work-groups of a GPU
CASES = [
    ("quadrilateral", 1, "everything alike", -1, False, True),
    ("quadrilateral", 2, "everything", -1, True, True),
    ("quadrilateral", 3, "elasticity", 3, False, True),
    ("quadrilateral", 4, "poisson", 11, True, False),
    ("hexahedron", 1, "minimal surface", 5, False, True),
    ("hexahedron", 2, "everything", -1, False, True),
    ("hexahedron", 2, "elasticity", -1, True, False),
    ("hexahedron", 3, "poisson", 4, False, False),
    ("hexahedron", 4, "poisson", -1, True, True),
]
# cell, degree, physics, whether curved, whether with the work-groups of a GPU
DIAGONALS = [
    ("quadrilateral", 2, "everything", True, True),
    ("quadrilateral", 3, "elasticity", False, False),
    ("hexahedron", 2, "everything", False, False),
    ("hexahedron", 3, "poisson", True, True),
]


def test_the_table_is_complete():
    assert {p for _, _, p, *_ in CASES} == set(PHYSICS)
    for cell in ("quadrilateral", "hexahedron"):
        rows = [row for row in CASES if row[0] == cell]
        assert {degree for _, degree, *_ in rows} == {1, 2, 3, 4}
        assert {gpu for *_, gpu in rows} == {curved for *_, curved, _ in rows} == {True, False}
        points = {np.sign(rule // 2 - degree) for _, degree, _, rule, *_ in rows if rule >= 0}
        assert points == {1, -1}  # more points on an edge than nodes, and fewer


def work_groups(*wanted):
    """Limits for the work-groups of the device at hand (None) and of a GPU: on a GPU both are the same."""
    on_gpu = Device.select("any", PETSc.COMM_SELF).is_gpu
    found = [limits for limits in wanted if limits or not on_gpu]
    return found or pytest.skip("vectors of a CPU, and the device is a GPU")


def operator(mesh, physics, degree: int, kernel: str, limits=None, precision: str = "double", **settings):
    device = Device.select("any", mesh.comm)
    options = Options(degree=degree, kernel=kernel, precision=precision, **settings)
    made = CGOperator(
        ContinuousGalerkin(mesh, physics, options, limits or DeviceLimits.of(device)), Arrays(device, precision)
    )
    auxiliary, random = made.discretization.auxiliary, np.random.default_rng(9)
    for field in auxiliary.fields:
        rows = 1 if field.space == "cell" else auxiliary.element.num_basis
        made.set_auxiliary(field.name, random.uniform(0.5, 1.5, (mesh.num_cells, rows, field.components)))
    return made


def element_vectors(op: CGOperator, name: str) -> np.ndarray:
    """What a kernel of element vectors or diagonals writes [cell, dof] at a state of random numbers."""
    disc, op.shift = op.discretization, 1.7
    count = disc.dofmap.num_owned + disc.dofmap.num_tail
    states = ("state", "rate", "du")
    where = {state: vector_of(op, 1.2 + random_values(k, count)) for k, state in enumerate(states)}
    out = op.arrays.to_device(np.full(disc.num_dofs * disc.stride, np.nan))
    (op.run_columns if name == "cg_diagonal" else op.run_cells)(name, out, t=0.3, **where)
    return disc.of_cells(op.arrays.to_host(out, disc.num_dofs * disc.stride))


def difference(one: CGOperator, two: CGOperator, names=("cg_residual", "cg_action")) -> float:
    """Largest difference of both over the largest entry, of residuals and actions."""
    found = []
    for name in names:
        a, b = (element_vectors(op, name) for op in (one, two))
        assert np.abs(b).max() > 1e-3
        found.append(np.abs(a - b).max() / np.abs(b).max())
    return max(found)


@pytest.mark.parametrize("cell, degree, physics, rule, curved, gpu", CASES)
def test_sums_along_lines_are_sums_over_all_nodes(cell, degree, physics, rule, curved, gpu):
    mesh = box_mesh(cell, seed=4, comm=PETSc.COMM_SELF)
    mesh = bent(mesh) if curved else mesh
    given, (limits,) = (mesh, PHYSICS[physics](mesh.dim), degree), work_groups(GPU if gpu else None)
    lines = operator(*given, "tensor", limits, quadrature_degree=rule)
    assert lines.kernels["cg_action"].spec.macros["LOOPS"] == int(not gpu)
    assert difference(lines, operator(*given, "transpose", quadrature_degree=rule)) < TOLERANCE


@pytest.mark.parametrize("cell, degree, physics, curved, gpu", DIAGONALS)
def test_diagonals(cell, degree, physics, curved, gpu):
    mesh = box_mesh(cell, seed=4, comm=PETSc.COMM_SELF)
    mesh = bent(mesh) if curved else mesh
    given, (limits,) = (mesh, PHYSICS[physics](mesh.dim), degree), work_groups(GPU if gpu else None)
    lines, plain = operator(*given, "tensor", limits), operator(*given, "transpose")
    sources = [op.matrix_kernels["cg_diagonal"].spec.sources[-1] for op in (lines, plain)]
    assert sources == ["cg_tensor_diagonal.cl", "cg_cell.cl"]
    assert difference(lines, plain, ["cg_diagonal"]) < TOLERANCE


def test_operations_are_counted():
    """On 5³ nodes and points, there and back: 2 tables along the first axis, 3 along the second, 4 along the last."""
    disc = ContinuousGalerkin(box_mesh("hexahedron"), minimal_surface(), Options(degree=4))
    assert disc.variant == "tensor" and line_flops(disc) == 2 * 2 * (2 + 3 + 4) * 5**4
    assert line_diagonal_flops(disc) == 2 * (3 + 6 + 10) * 5**4 < disc.flops_per_matrix / disc.num_dofs / 5


def test_a_diagonal_that_does_not_fit_is_computed_point_by_point():
    limits = replace(GPU, local_bytes=2000)
    disc = ContinuousGalerkin(box_mesh("hexahedron"), smooth_poisson(), Options(degree=2), limits)
    assert disc.variant == "tensor" and disc.matrix_specs()["cg_diagonal"].sources[-1] == "cg_cell.cl"


@pytest.mark.parametrize("cell, faces, physics, local_bytes, diagonal", [
    ("quadrilateral", (5, 7), "everything", 49152, "cg_tensor_diagonal.cl"),
    ("hexahedron", (3, 2, 2), "poisson", 2000, "cg_cell.cl"),
])  # fmt: skip
def test_sums_of_cells_and_facets(cell, faces, physics, local_bytes, diagonal):
    """Vectors of the whole mesh, natural and essential conditions included, with element vectors cell by cell."""
    mesh = box_mesh(cell, faces, seed=4, comm=PETSc.COMM_SELF)
    given, limits = (mesh, PHYSICS[physics](mesh.dim), 2), replace(GPU, local_bytes=local_bytes)
    lines, plain = operator(*given, "tensor", limits), operator(*given, "transpose")
    assert lines.discretization.cell_by_cell and not plain.discretization.cell_by_cell
    assert lines.matrix_kernels["cg_diagonal"].spec.sources[-1] == diagonal
    found = []
    for op in (lines, plain):
        count = op.dofmap.num_owned
        u, rate, du = (op.arrays.to_device(1.2 + random_values(k, count)) for k in range(3))
        out = [op.arrays.zeros(count) for _ in range(4)]
        op.residual(u, out[0], 0.3, rate)
        op.linearize(u, 0.3, rate, 1.7)
        op.action(du, out[1])
        op.diagonal(out[2])
        op.transposed(du, out[3])
        found.append([op.arrays.to_host(buffer, count) for buffer in out])
    for a, b in zip(*found, strict=True):
        assert np.abs(b).max() > 1e-3 and np.abs(a - b).max() < TOLERANCE * np.abs(b).max()


def test_many_cells_and_a_short_last_group():
    mesh = box_mesh("quadrilateral", (5, 7), comm=PETSc.COMM_SELF)
    given = mesh, smooth_poisson(), 4
    plain = operator(*given, "transpose")
    for limits in work_groups(None, GPU):
        lines = operator(*given, "tensor", limits)
        assert mesh.num_cells % lines.kernels["cg_residual"].spec.macros["LANES"] not in (0, mesh.num_cells)
        assert difference(lines, plain) < TOLERANCE


def test_single_precision():
    given = box_mesh("hexahedron", seed=4, comm=PETSc.COMM_SELF), smooth_poisson(), 3
    double = operator(*given, "tensor")
    for limits in work_groups(None, GPU):
        single = operator(*given, "tensor", limits, "single")
        assert single.kernels["cg_action"].spec.macros["LANES"] in ((8, 4) if limits else (16,))
        assert 1e-9 < difference(single, double) < 1e-4


@pytest.mark.parametrize("cell, most", [("quadrilateral", 4), ("hexahedron", 4)])
def test_shapes_fit_a_gpu(cell, most):
    mesh = box_mesh(cell, comm=PETSc.COMM_SELF)
    for degree in range(1, most + 1):
        disc = ContinuousGalerkin(mesh, minimal_surface(), Options(degree=degree, kernel="tensor"), GPU)
        shape, spec = line_shape(disc), line_specs(disc)["cg_action"]
        assert spec.local_bytes <= GPU.local_bytes and spec.local_size == shape.lanes * shape.threads <= GPU_ITEMS
        assert shape.lanes < 2 * FEW or spec.local_size <= GPU_ITEMS // 2


def test_what_does_not_fit_is_said():
    physics = elasticity(3)
    with pytest.raises(
        OptionError, match="-fe_kernel tensor sums along lines of quadrilaterals and hexahedra, .* tetra"
    ):
        ContinuousGalerkin(box_mesh("tetrahedron"), physics, Options(kernel="tensor")).variant  # noqa: B018
    many = Options(degree=4, kernel="tensor", quadrature_degree=30)
    with pytest.raises(
        OptionError, match=r"needs \d+ bytes of local memory for a hexahedron here, the device has 49152"
    ):
        ContinuousGalerkin(box_mesh("hexahedron"), physics, many, GPU).variant  # noqa: B018


@pytest.mark.parametrize(
    "cell, degree, chosen",
    [
        ("triangle", 3, ("cell", "cell")),
        ("triangle", 6, ("cell", "cell")),
        ("tetrahedron", 4, ("cell", "transpose")),
        ("tetrahedron", 8, ("cell", "transpose")),
        ("quadrilateral", 1, ("tensor", "patch")),
        ("quadrilateral", 2, ("tensor", "tensor")),
        ("quadrilateral", 3, ("tensor", "tensor")),
        ("hexahedron", 1, ("tensor", "patch")),
        ("hexahedron", 2, ("tensor", "tensor")),
    ],
)
def test_the_choice_on_a_cpu_and_on_a_gpu(cell, degree, chosen):
    mesh, tiny = box_mesh(cell, comm=PETSc.COMM_SELF), DeviceLimits(local_bytes=64)
    for limits, variant in zip((DeviceLimits(), GPU), chosen, strict=True):
        assert ContinuousGalerkin(mesh, smooth_poisson(), Options(degree=degree), limits).variant == variant
    assert ContinuousGalerkin(mesh, smooth_poisson(), Options(degree=degree), tiny).variant in ("cell", "transpose")


@pytest.mark.parametrize("simplex, kernel", [(True, "cell"), (False, "tensor")])
def test_an_index_that_depends_on_the_place(simplex, kernel):
    """Cells that a CPU does at once would share the array: such physics goes cell by cell."""
    k = "PetscReal k[2] = {1.0, 2.0 + u[0] * u[0]}; PetscInt i = x[0] > 0.37 ? 1 : 0; "
    f1 = k + "for (d = 0; d < dim; ++d) f1[d] = k[i] * u_x[d];"
    mesh = fe.Mesh.box((4, 4), simplex=simplex, comm=PETSc.COMM_SELF)
    physics = fe.Physics({"u": 1}, f0="f0[0] = -1.0;", f1=f1, boundary=[fe.Dirichlet("boundary", 0.0)])
    residuals = []
    for name in (kernel, "transpose"):
        operator = fe.Problem(mesh, physics, Options(degree=2, kernel=name)).operator
        count = operator.dofmap.num_owned
        assert operator.device.is_gpu or operator.kernels["cg_residual"].spec.macros.get("LANES", 1) == 1
        out = operator.arrays.zeros(count)
        operator.residual(operator.arrays.to_device(np.cos(np.arange(count) ** 2.0), "u"), out)
        residuals.append(operator.arrays.to_host(out, count, name="residual"))
    assert np.abs(residuals[0] - residuals[1]).max() < 1e-13 * np.abs(residuals[1]).max()


def test_a_problem_on_hexahedra(monkeypatch):
    """The whole path, checks of kernels against numpy included; products find everything ready but launches."""
    mesh = fe.Mesh.box((2, 2, 2), simplex=False, comm=PETSc.COMM_SELF)
    problem = fe.Problem(mesh, smooth_poisson(), Options(degree=3, kernel="tensor"))
    u = problem.solve()
    assert problem.errors(u)["L2"] < 1e-3
    jacobian, y = problem.callbacks.jacobian, problem.create_vec()
    jacobian.mult(u, y)
    monkeypatch.setattr(basix, "make_quadrature", None)
    jacobian.mult(u, y)
    assert y.norm() > 0

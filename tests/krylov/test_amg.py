"""Smoothed aggregation on the device against dense numpy: patterns, aggregates, prolongators, levels, a whole cycle."""

from __future__ import annotations

import gc
import json
import weakref
from functools import reduce
from pathlib import Path

import numpy as np
import pytest
from petsc4py import PETSc
from petsc_options import petsc_options

import petsc_hdg as fe
from petsc_hdg.device import Arrays, Device
from petsc_hdg.errors import OptionError, SolveError, our_error
from petsc_hdg.krylov.aggregation import Aggregates, Coarsening
from petsc_hdg.krylov.amg import AMG, CYCLE, _Cycle
from petsc_hdg.krylov.smoothers import chebyshev_steps
from petsc_hdg.operators.block_rows import BlockRows, Collected, Product, Transpose

SIDE = 14


@pytest.fixture(scope="module")
def arrays():
    return Arrays(Device.select("any"))


def laplacian(side: int = SIDE, stretch: float = 1.0) -> np.ndarray:
    """Five points of a grid with Dirichlet nodes around, the first node's row only its diagonal."""
    line = 2 * np.eye(side) - np.eye(side, k=1) - np.eye(side, k=-1)
    dense = np.kron(line, np.eye(side)) + stretch * np.kron(np.eye(side), line)
    dense[0, 1:] = dense[1:, 0] = 0
    return dense


def lame(side: int = 8) -> np.ndarray:
    """Two coupled numbers at each node of a grid, some blocks of which lack entries."""
    coupled = np.kron(laplacian(side), np.eye(2)) + 0.2 * np.kron(laplacian(side), np.diag([1, 0]))
    skew = np.kron(np.eye(side * side), [[0, 0.05], [0.05, 0]])
    return coupled + skew


def petsc_matrix(dense: np.ndarray, size: int = 1) -> PETSc.Mat:
    row, column = dense.nonzero()
    starts = np.searchsorted(row, np.arange(len(dense) + 1)).astype(PETSc.IntType)
    csr = starts, column.astype(PETSc.IntType), dense[row, column]
    mat = PETSc.Mat().createAIJ(dense.shape, bsize=size, csr=csr, comm=PETSc.COMM_SELF)
    return mat


def collected(arrays, dense: np.ndarray, size: int):
    starts, columns, values = petsc_matrix(dense, size).getValuesCSR()
    given = BlockRows(arrays, (1, 1), len(dense), starts, *map(arrays.to_device, (columns, values)))
    found = Collected(given, size)
    found.update()
    return found.result


def modes_of(size: int, rows: int, count: int) -> np.ndarray:
    """Near-null vectors [row, vector]: constants of each number of a node, then linear functions."""
    constants = np.tile(np.eye(size), (rows // size, 1))
    more = np.random.default_rng(3).uniform(-1, 1, (rows, count - size))
    return np.hstack([constants, more])


@pytest.mark.parametrize(("dense", "size"), [(laplacian(), 1), (lame(), 2)], ids=["numbers", "blocks"])
def test_blocks_products_and_transposes(arrays, dense, size):
    a = collected(arrays, dense, size)
    np.testing.assert_array_equal(a.dense(), dense)
    square, turned = Product(a, a), Transpose(a)
    for each in (square, turned):
        each.update()
    np.testing.assert_allclose(square.result.dense(), dense @ dense, rtol=0, atol=1e-12)
    np.testing.assert_array_equal(turned.result.dense(), dense.T)
    columns = arrays.to_host(square.result.columns, square.result.count, np.int32)
    starts = square.result.starts
    assert all((np.diff(columns[a:b]) > 0).all() for a, b in zip(starts[:-1], starts[1:], strict=True))


def test_products_in_parts_of_rows_have_the_same_pattern(arrays, monkeypatch):
    a = collected(arrays, laplacian(), 1)
    whole = Product(a, a).result
    monkeypatch.setattr("petsc_hdg.operators.block_rows.MOST_FOUND", 100)
    parts = Product(a, a).result
    np.testing.assert_array_equal(parts.starts, whole.starts)
    told = [arrays.to_host(each.columns, each.count, np.int32) for each in (parts, whole)]
    np.testing.assert_array_equal(*told)


def test_aggregates_follow_strong_couplings(arrays):
    """Across a grid stretched 1:100 the couplings along one direction alone are strong: aggregates are lines."""
    a = collected(arrays, laplacian(stretch=100.0), 1)
    aggregates = Aggregates(a, threshold=0.02)
    numbers = arrays.to_host(aggregates.numbers, a.num_rows, np.int32)
    assert numbers[0] == -1  # a row of its diagonal alone
    assert set(numbers) == {-1, *range(aggregates.count)}
    line = np.arange(a.num_rows) // SIDE
    sizes = np.bincount(numbers[1:])
    assert sizes.max() <= 7 and sizes.min() >= 1
    for number in range(aggregates.count):
        members = np.flatnonzero(numbers == number)
        assert len(set(line[members])) == 1 and (np.diff(members) == 1).all()


def convected(side: int = SIDE, peclet: float = 1.0) -> np.ndarray:
    """Five points of a grid with a turning wind of cell Péclet numbers up to about the one given."""
    line = np.linspace(-1, 1, side)
    central = np.eye(side, k=1) - np.eye(side, k=-1)
    wind = np.kron(np.diag(line), central) - np.kron(central, np.diag(line))
    return laplacian(side) + peclet * wind


def bilinear(side: int = SIDE, stretch: float = 100.0) -> np.ndarray:
    """Bilinear elements of stretched cells: along the weak direction couplings are a quarter of the others, or
    positive."""
    line = 2 * np.eye(side) - np.eye(side, k=1) - np.eye(side, k=-1)
    mass = np.eye(side) - line / 6
    return np.kron(line, mass) / stretch + stretch * np.kron(mass, line)


def with_short_facets() -> np.ndarray:
    """Bilinear elements of stretched cells, and numbers between neighbours that do not depend on them, as the traces of
    short facets, or hardly; two of these are coupled."""
    rows, few = SIDE * SIDE, 30
    dense = np.zeros((rows + few, rows + few))
    dense[:rows, :rows] = bilinear()
    ends = [(rows + k, near, 1) for k in range(few) for near in (5 * k + 1, 5 * k + 2)] + [(rows, rows + 1, 1)]
    for one, other, size in [*ends, *((rows + k, 5 * k + 3, 0.05) for k in range(few))]:
        dense[[one, other], [one, other]] += size
        dense[[one, other], [other, one]] -= size
    return dense


def filtered(dense: np.ndarray, numbers: np.ndarray, symmetric: bool) -> np.ndarray:
    """Without couplings that are positive, or up to 0.4 of the largest of their rows in units of the diagonal; row sums
    are kept. Nodes without an aggregate keep couplings to aggregates above a tenth of the largest one, scaled to
    interpolate constants."""
    diagonal = np.diag(dense)
    couplings = np.maximum(0, -(dense + dense.T) / 2) / np.sqrt(np.outer(diagonal, diagonal))
    most, weak = couplings.max(axis=1), np.eye(len(dense), dtype=bool)
    weak |= couplings < 0.4 * np.maximum.outer(most, most)
    alone = symmetric & (numbers < 0)
    sizes = np.where(numbers < 0, 0, np.abs(dense))
    weak[alone] = (sizes <= 0.1 * sizes.max(axis=1, keepdims=True))[alone]
    kept = np.where(weak, 0, dense) + np.diag(np.where(weak, dense, 0).sum(axis=1))
    kept[alone] *= (diagonal / np.diag(kept))[alone, None]
    return kept


@pytest.mark.parametrize(
    ("dense", "size", "count", "symmetric"),
    [
        (laplacian(), 1, 1, True),
        (lame(), 2, 3, True),
        (lame(), 2, 6, True),
        (convected(), 1, 1, False),
        (bilinear(), 1, 1, True),
        (with_short_facets(), 1, 1, True),
        (bilinear() + 1e-3 * (convected() - laplacian()), 1, 1, False),
    ],
    ids=["one", "three", "six", "nonsymmetric", "directed", "interpolated", "directed-nonsymmetric"],
)
def test_a_coarsening_is_that_of_numpy(arrays, dense, size, count, symmetric):
    a = collected(arrays, dense, size)
    aggregates = Aggregates(a, 0.02, 0.4 * (size == 1), symmetric)
    given = arrays.to_host(aggregates.numbers, a.num_rows, np.int32)
    by, steps = dense, np.full(len(dense), 0.6)
    if aggregates.is_directed:
        by, steps = filtered(dense, given, symmetric), np.where(symmetric & (given < 0), 1.0, 0.6)
    assert aggregates.is_directed == (size == 1 and abs(dense[1, 1]) > 10)
    modes, rows = modes_of(size, len(dense), count), len(dense)
    coarsening = Coarsening(a, aggregates, arrays.to_device(modes), count, symmetric)
    coarsening.update(0.6)
    numbers = np.repeat(given, size)
    tentative, below = np.zeros((rows, aggregates.count * count)), np.zeros((aggregates.count, count, count))
    for number in range(aggregates.count):
        members = numbers == number
        left = modes[members]
        for c in range(count):
            column = left[:, c].copy()
            for d in range(c):
                part = tentative[members, number * count + d]
                below[number, d, c] = part @ column
                column -= below[number, d, c] * part
            norm = np.linalg.norm(column)
            if norm > 1e-8 * np.linalg.norm(left[:, c]):
                below[number, c, c], tentative[members, number * count + c] = norm, column / norm
    pair = (by, by if symmetric else by.T)
    smoothed, turned = (tentative - np.diag(steps / np.diag(dense)) @ each @ tentative for each in pair)
    galerkin = turned.T @ dense @ smoothed
    empty = np.abs(galerkin).sum(axis=1) == 0
    galerkin[empty, empty] = 1
    np.testing.assert_allclose(coarsening.prolongator.dense(), smoothed, rtol=0, atol=1e-11)
    np.testing.assert_allclose(coarsening.restriction.dense(), turned.T, rtol=0, atol=1e-11)
    np.testing.assert_allclose(coarsening.matrix.dense(), galerkin, rtol=0, atol=1e-11)
    told = arrays.to_host(coarsening.modes, below.shape)
    np.testing.assert_allclose(told, below, rtol=0, atol=1e-11)
    assert empty.any() == (count == 6)  # an aggregate of two nodes has four numbers
    assert (given[SIDE * SIDE + 2 :] == -1).all()  # numbers of short facets, but for two that are coupled


def solver(mat, **options) -> PETSc.KSP:
    ksp = PETSc.KSP().create(mat.comm)
    ksp.setOperators(mat)
    ksp.setType("cg")
    ksp.setTolerances(rtol=1e-10)
    pc = ksp.getPC()
    pc.setType("python")
    pc.setPythonType("petsc_hdg.AMG")
    for name, value in options.items():
        setattr(pc.getPythonContext(), name, value)
    return ksp


def applied(pc, rows: int) -> np.ndarray:
    """The matrix of a PC."""
    x, y = pc.getOperators()[0].createVecs()
    found = np.empty((rows, rows))
    for k, unit in enumerate(np.eye(rows)):
        x.setArray(unit)
        pc.apply(x, y)
        found[:, k] = y.getArray()
    return found


def test_a_cycle_is_that_of_numpy():
    """Two levels: smoothing by Chebyshev with Jacobi, the coarse matrix inverted; symmetric and positive definite."""
    dense = laplacian()
    ksp = solver(petsc_matrix(dense), limit=60)
    ksp.setUp()
    cycle = ksp.getPC().getPythonContext().cycle
    (level,) = cycle.levels
    inverse, identity = np.diag(1 / np.diag(dense)), np.eye(len(dense))
    (_, _, scale), (_, mix, last) = level.smoother.steps
    first = scale * inverse
    smoothing = mix * first + last * inverse @ (identity - dense @ first)  # two steps from zero, keep 0 of them
    left = identity - smoothing @ dense
    p = level.coarsening.prolongator.dense()
    correction = identity - p @ np.linalg.solve(level.coarsening.matrix.dense(), p.T @ dense)
    expected = (identity - left @ correction @ left) @ np.linalg.inv(dense)
    found = applied(ksp.getPC(), len(dense))
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found, found.T, rtol=0, atol=1e-11)
    assert np.linalg.eigvalsh((found + found.T) / 2).min() > 0
    assert level.smoother.steps == chebyshev_steps(*(b * level.largest for b in (0.1, 1.1)), 2)
    twice = applied(solver(petsc_matrix(dense), limit=60, cycles=2).getPC(), len(dense))
    middle, half = np.mean(CYCLE), np.diff(CYCLE)[0] / 2 * np.sqrt(0.5)  # the roots of a polynomial of two steps
    factors = (identity - found @ dense / (middle + sign * half) for sign in (1, -1))
    np.testing.assert_allclose(twice @ dense, identity - np.linalg.multi_dot([*factors]), rtol=0, atol=1e-10)
    assert np.linalg.eigvalsh((twice + twice.T) / 2).min() > 0


def multilinear(side: int, dim: int) -> np.ndarray:
    """Elements of cells stretched 1:100 along all directions but the last; of natural conditions on half of the sides,
    where aggregates of neighbouring lines are shifted."""
    line = 2 * np.eye(side) - np.eye(side, k=1) - np.eye(side, k=-1)
    mass = (6 * np.eye(side) - line) / 6
    line[-1, -1], mass[-1, -1] = 1, 1 / 3
    factors = [
        [line / 100**2 if k == d < dim - 1 else line if k == d else mass for k in range(dim)] for d in range(dim)
    ]
    return sum(reduce(np.kron, each) for each in factors)


@pytest.mark.parametrize(
    "dense, most, widest",
    [(bilinear(48), 20, 12), (multilinear(48, 2), 20, 12), (multilinear(12, 3), 28, 40)],
    ids=["bilinear", "natural", "trilinear"],
)
def test_stretched_cells_take_few_iterations(dense, most, widest):
    """Weak couplings are not small, and rows do not grow from level to level."""
    ksp = solver(petsc_matrix(dense), limit=60)
    x, b = ksp.getOperators()[0].createVecs()
    b.setArray(np.random.default_rng(1).standard_normal(b.getSize()))
    ksp.solve(b, x)
    assert ksp.getConvergedReason() > 0 and ksp.getIterationNumber() <= most
    matrices = [level.coarsening.matrix for level in ksp.getPC().getPythonContext().cycle.levels]
    assert len(matrices) > 2 and max(each.count / each.num_rows for each in matrices) < widest


def test_iterations_do_not_grow_and_kept_patterns_give_the_same_bits():
    counts, b = [], None
    for side in (20, 40, 80):
        ksp = solver(petsc_matrix(laplacian(side)), limit=60)
        x, b = ksp.getOperators()[0].createVecs()
        b.set(1.0)
        ksp.solve(b, x)
        assert ksp.getConvergedReason() > 0
        counts.append(ksp.getIterationNumber())
    assert max(counts) <= 14, counts
    mat, context = ksp.getOperators()[0], ksp.getPC().getPythonContext()
    levels, first = context.cycle.levels, x.getArray().copy()
    mat.scale(2.0)
    ksp.solve(b, x)
    mat.scale(0.5)
    ksp.solve(b, x)
    assert context.cycle.levels is levels  # patterns and aggregates are kept
    np.testing.assert_array_equal(x.getArray(), first)
    diagonal = mat.getDiagonal()
    diagonal.getArray()[800:1600] = 1e6  # couplings become weak
    mat.setDiagonal(diagonal)
    ksp.solve(b, x)
    assert context.cycle.levels is not levels and ksp.getConvergedReason() > 0
    residual = b.duplicate()
    mat.mult(x, residual)
    residual.axpy(-1.0, b)
    assert residual.norm() < 1e-6 * b.norm()


def test_a_matrix_that_is_singular_to_rounding():
    """Couplings of all kinds whose rows sum to zero, as of natural conditions alone."""
    dense = laplacian(30)[1:, 1:]
    weights = dense * np.exp(np.random.default_rng(0).uniform(np.log(0.1), 0, dense.shape))
    weights = np.triu(weights, 1) + np.triu(weights, 1).T
    ksp = solver(petsc_matrix(weights - np.diag(weights.sum(axis=1))), limit=300)
    x, b = ksp.getOperators()[0].createVecs()
    ksp.getOperators()[0].setNullSpace(PETSc.NullSpace().create(constant=True, comm=PETSc.COMM_SELF))
    b.setArray(np.cos(np.arange(len(dense))))
    b.shift(-b.sum() / len(dense))
    ksp.solve(b, x)
    assert ksp.getConvergedReason() > 0 and ksp.getIterationNumber() <= 20, ksp.getIterationNumber()


def test_nonsymmetric_matrices_have_as_few_iterations_and_polynomials_of_least_noise():
    counts = []
    for side in (20, 40, 80):
        ksp = solver(petsc_matrix(convected(side)), limit=60)
        ksp.setType("gmres")
        x, b = ksp.getOperators()[0].createVecs()
        b.set(1.0)
        ksp.solve(b, x)
        counts.append(ksp.getIterationNumber())
    assert max(counts) <= 14, counts
    level = ksp.getPC().getPythonContext().cycle.levels[-1]
    dense = convected(side)
    scaled = dense @ np.random.default_rng(1).uniform(-1, 1, len(dense)) / np.diag(dense)
    found, before = scaled, None
    for keep, mix, scale in level.smoother.steps:  # of the error, whose right-hand side is zero
        step = mix * found - scale * dense @ found / np.diag(dense) + (0 if before is None else keep * before)
        found, before = step, found
    powers = [scaled]
    for _ in level.smoother.steps:
        powers.append(dense @ powers[-1] / np.diag(dense))
    least = np.linalg.lstsq(np.transpose(powers[1:]), -scaled, rcond=None)[1]
    assert len(level.smoother.steps) == 4 and np.linalg.norm(found) < 1.02 * np.sqrt(least[0])


def test_sizes_patterns_and_types_may_change():
    ksp = solver(petsc_matrix(laplacian()), limit=60)
    for dense, size in ((laplacian(), 1), (lame(), 2), (laplacian(9), 1), (np.eye(300) * 3, 1)):
        mat = petsc_matrix(dense, size)
        ksp.reset()
        ksp.setOperators(mat.convert("baij", PETSc.Mat()) if size > 1 else mat)
        x, b = mat.createVecs()
        b.setArray(dense @ np.arange(len(dense)))
        ksp.solve(b, x)
        np.testing.assert_allclose(x.getArray(), np.arange(len(dense)), rtol=0, atol=1e-6 * len(dense))


def test_coefficients_leave_aggregates_while_these_serve_and_memory_comes_back(monkeypatch):
    built, build = [], _Cycle._build
    monkeypatch.setattr(_Cycle, "_build", lambda cycle: (built.append(None), build(cycle))[1])
    f1 = "f1[0] = k*a[0]*u_x[0]; f1[1] = k*u_x[1];"
    wall, data = [fe.Dirichlet("boundary", 0.0)], {"constants": {"k": 1.0}, "auxiliary": {"a": 1}}
    physics = fe.Physics({"u": 1}, "f0[0] = -1;", f1, boundary=wall, **data)
    amg = {"pc_type": "python", "pc_python_type": "petsc_hdg.AMG", "pc_amg_coarse_eq_limit": 60}
    with petsc_options(**amg):
        problem = fe.Problem(fe.Mesh.box((20, 20)), physics, degree=1, pmat="aij")
        problem.set_auxiliary("a", 1.0)
        first, held = problem.solve().getArray().copy(), []
        for k, a, count in ((2.0, 1.0, 1), (2.0, 1e-3, 2), (4.0, 1e-3, 2), (1.0, 1.0, 3)):
            problem.set_constants(k=k)
            problem.set_auxiliary("a", a)
            u = problem.solve().getArray().copy()
            gc.collect()
            held.append(problem.device.memory.held)
            assert len(built) == count and problem.linear_iterations < 20
    np.testing.assert_array_equal(u, first)  # the same aggregates, made again
    assert held[3] <= held[0] and held[2] == held[1]
    problem.snes.getKSP().getPC().reset()
    assert problem.device.memory.held < held[3]


def test_levels_go_without_the_garbage_collector():
    """They have memory of the device, which other levels may need before Python looks for circles."""
    ksp = solver(petsc_matrix(laplacian(20)), limit=10, cycles=2)
    pc = ksp.getPC()
    applied(pc, 400)
    known = weakref.ref(pc.getPythonContext().cycle)
    gc.disable()
    try:
        pc.getPythonContext().reset(pc)
        assert known() is None
    finally:
        gc.enable()


def test_options_and_refusals():
    ksp = solver(petsc_matrix(laplacian()))
    PETSc.Options()["amg_pc_amg_threshold"] = -1
    ksp.setOptionsPrefix("amg_")
    with pytest.raises((OptionError, PETSc.Error)) as raised:
        ksp.setFromOptions()
    assert "-amg_pc_amg_threshold is '-1'; it takes one number, not below 0" in str(our_error(raised.value))
    del PETSc.Options()["amg_pc_amg_threshold"]
    pc = PETSc.PC().create(PETSc.COMM_SELF)
    pc.setType("python")
    pc.setPythonContext(AMG())
    pc.setOperators(PETSc.Mat().createPython((9, 9), comm=PETSc.COMM_SELF))
    with pytest.raises((SolveError, PETSc.Error)) as raised:
        pc.setUp()
    assert "it takes an assembled one" in str(our_error(raised.value))


@pytest.mark.parametrize("more", [pytest.param((), marks=pytest.mark.quick), ("problem",)])
def test_ranks_have_the_cycle_of_one(mpirun, more):
    """Three ranks, one without rows."""
    found = json.loads(mpirun(3, Path(__file__).with_name("run_amg.py"), *more).stdout.splitlines()[-1])
    for case in ("numbers", "blocks"):
        count, alone, difference = found[case]
        assert count == alone and difference < 1e-12, case
    difference, same = found["transfers"]
    assert difference < 1e-14 and same
    assert found["inverse"] < 1e-12
    if more:
        for case in ("problem", "cg_gpu in single precision", "sipg_gpu in single precision"):
            *there, here = found[case]
            for newton, linear, integral in there:
                assert newton == here[0] and abs(linear - here[1]) <= 1
                assert integral == pytest.approx(here[2], rel=1e-6)
        assert found["sums"] < 1e-13

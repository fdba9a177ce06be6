"""Diagonal and diagonal blocks of interior penalty: those of the assembled matrix, inverses, block Jacobi as a PC."""

from __future__ import annotations

import numpy as np
import pytest
from petsc4py import PETSc
from petsc_options import petsc_options
from sample_meshes import SHAPES, box_mesh
from sample_physics import everything_on_one_field, give_everything, smooth_poisson

from petsc_hdg.codegen import KernelSpec
from petsc_hdg.device import Arrays, Device, Kernel
from petsc_hdg.errors import SolveError
from petsc_hdg.operators.block_jacobi import CellBlocks
from petsc_hdg.options import Options
from petsc_hdg.physics import Dirichlet, Physics
from petsc_hdg.problem import Problem

# Two components, of which the second has a block without diagonal; not symmetric.
TURNING = Physics(
    {"u": 1, "p": 1},
    f0={"u": "f0[0] = u[0] + 30*u_x[0] + 2*u[1];", "p": "f0[0] = u[0];"},
    f1={"u": "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"},
    boundary=[Dirichlet("left", 0.0, field="u")],
    name="turning",
)


def made(cell: str, physics, precision: str = "double", **options):
    """A problem on 5 cells or more (no multiple of a chunk), linearized at zero."""
    faces = {"triangle": (5, 4), "quadrilateral": (7, 5), "tetrahedron": (2, 2, 1), "hexahedron": (3, 3, 1)}[cell]
    options = Options(backend="sipg_gpu", precision=precision, check_kernels=False, **options)
    problem = Problem(box_mesh(cell, faces, comm=PETSc.COMM_SELF), physics, options)
    calls, zero = problem.callbacks, problem.create_vec()
    calls.linearize(None, zero, calls.jacobian, calls.matrices[-1])
    return problem


def assembled_blocks(problem) -> np.ndarray:
    """Diagonal blocks [cell, dof, dof] of the AIJ matrix."""
    aij, dofs = problem.callbacks.assembled.mat, problem.discretization.dofmap.cell_dofs.astype(PETSc.IntType)
    return np.array([aij.getValues(rows, rows) for rows in dofs])


@pytest.mark.full("turning")
@pytest.mark.parametrize("physics, degree", [(smooth_poisson(), 2), (TURNING, 1)], ids=["poisson", "turning"])
@pytest.mark.parametrize("cell", SHAPES)
def test_inverses(cell, physics, degree):
    problem = made(cell, physics, pmat="aij", degree=degree)
    blocks = CellBlocks(problem.operator)
    blocks.update()
    assembled = assembled_blocks(problem)
    expected = np.linalg.inv(assembled)
    assert len(expected) % 32 and len(expected) > 4
    assert np.abs(blocks.to_host() - expected).max() < 1e-11 * np.abs(expected).max()
    dofs, unit = problem.discretization.dofmap.cell_dofs, problem.create_vec()
    for cell, j in ((0, 1), (len(dofs) // 2, 0), (len(dofs) - 1, dofs.shape[1] - 1)):  # of products with all cells
        unit.zeroEntries()
        unit[int(dofs[cell, j])] = 1
        unit.assemble()
        column = (problem.callbacks.jacobian * unit).getArray()[dofs[cell]]
        assert np.abs(column - assembled[cell, :, j]).max() < 1e-12 * np.abs(assembled).max()


@pytest.mark.parametrize("size, group", [(7, 3), (7, 7), (8, 8)], ids=["global", "odd", "even"])
def test_a_group_inverts_a_block(size, group):
    """As GPUs do, in registers or not: rows that change places, rows without diagonal, columns that an item shares."""
    device, cells = Device.select("any"), 35
    blocks = np.random.default_rng(2).standard_normal((cells, size, size))
    blocks[1:, range(size), range(size)] = 0
    blocks[2] = np.roll(np.eye(size), 3, axis=0)
    blocks[3] = np.diag(10.0 ** np.arange(size))  # whose inverse is too wide for floats
    blocks[4:6] *= np.array([1e-35, 1e35])[:, None, None]
    sizes = {"NDOF": size, "ITEMS": size, "GROUP": group, "APPLY_GROUP": 3 * size, "TILE": 32, "TILE_GROUP": 128}
    sizes["IN_REGISTERS"] = int(group == size)
    rows = {"ROW": np.arange(size, dtype=np.int32)}
    given = ("cell_block.cl",), sizes, rows
    turn = Kernel(KernelSpec("cell_block_turn", *given, local_size=128), device)
    invert, arrays = Kernel(KernelSpec("cell_block_invert", *given, local_size=group), device), Arrays(device)
    padded = np.zeros((size, size, cells + 3))
    padded[:, :, :cells] = np.moveaxis(blocks, 0, 2)
    inverse, failed = arrays.empty(blocks.size), arrays.zeros(1, np.int32)
    narrow, wide = arrays.empty(blocks.size, np.float32), arrays.empty(cells, np.int32)
    turn(128 * 2 * 2, cells, cells + 3, arrays.to_device(padded.ravel()), inverse)
    invert(cells * group, cells, inverse, narrow, wide, failed)
    found = arrays.to_host(inverse, blocks.shape).transpose(0, 2, 1)
    off = np.abs(found - np.linalg.inv(blocks)).max(axis=(1, 2))
    off[4:6] *= 1e-35, 1e35
    assert off.max() < 1e-11
    assert arrays.to_host(failed, 1, np.int32)[0] == 0
    is_wide = (np.linalg.cond(blocks, np.inf) > 1e5) | np.isin(np.arange(cells), (4, 5))
    assert (arrays.to_host(wide, cells, np.int32) == is_wide).all() and is_wide.sum() < 10
    with np.errstate(over="ignore"):
        assert (arrays.to_host(narrow, blocks.shape, np.float32) == found.transpose(0, 2, 1).astype(np.float32)).all()
    apply = Kernel(KernelSpec("cell_block_apply", *given, local_size=3 * size), device)
    b, product, x, y = np.random.default_rng(3).standard_normal((4, cells, size))
    out, *vectors = (arrays.to_device(interleaved(v)) for v in (y, product, x, b))
    apply(cells * size, cells, 0, 0, None, 0, inverse, narrow, wide, *vectors, 0.3, -0.7, 1.3, out)
    expected = 0.3 * y - 0.7 * x + 1.3 * np.einsum("cij,cj->ci", found, b - product)
    rounding = 1e-7 * np.einsum("cij,cj->ci", np.abs(found), np.abs(b - product)) + 1e-12
    assert (np.abs(arrays.to_host(out, cells * size) - interleaved(expected)) < interleaved(rounding)).all()


def interleaved(values: np.ndarray) -> np.ndarray:
    """Values [cell, row] in chunks of cells."""
    return np.concatenate([values[first : first + 32].T.ravel() for first in range(0, len(values), 32)])


@pytest.mark.parametrize("physics, degree", [(smooth_poisson(), 2), (TURNING, 1)], ids=["poisson", "turning"])
@pytest.mark.parametrize("cell", SHAPES)
def test_diagonal(cell, physics, degree):
    problem = made(cell, physics, pmat="aij", degree=degree)
    expected = problem.callbacks.assembled.mat.getDiagonal().getArray()
    found = problem.callbacks.jacobian.getDiagonal().getArray()
    assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()


@pytest.mark.full
def test_diagonal_of_a_nonlinear_physics_in_time():
    """At a state, with a rate, a shift, auxiliary fields, natural and essential conditions, two components."""
    mesh = box_mesh("quadrilateral", (4, 3), comm=PETSc.COMM_SELF)
    options = Options(backend="sipg_gpu", degree=3, pmat="aij", sipg_kernel="split")  # kernels checked with numpy too
    problem = Problem(mesh, everything_on_one_field(), options)
    give_everything(problem)
    u = problem.interpolate(lambda x: 1 + 0.3 * np.sin(3 * x))
    calls = problem.callbacks
    calls.ijacobian(None, 0.3, u, u, 1.7, calls.jacobian, calls.assembled.mat)
    expected, found = (mat.getDiagonal().getArray() for mat in (calls.assembled.mat, calls.jacobian))
    assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()


@pytest.mark.full("tetrahedron", "hexahedron")
@pytest.mark.parametrize("narrow", [False, True])
@pytest.mark.parametrize("transpose", [False, True])
@pytest.mark.parametrize("cell", SHAPES)
def test_products(cell, transpose, narrow):
    problem = made(cell, TURNING, pmat="aij", degree=1)
    blocks, count, most = CellBlocks(problem.operator, narrow), problem.num_unknowns, 1e-6 if narrow else 1e-11
    blocks.update()
    x, inverses = np.random.default_rng(4).standard_normal(count), np.linalg.inv(assembled_blocks(problem))
    arrays, dofs = problem.arrays, problem.discretization.dofmap.cell_dofs
    out = arrays.zeros(count)
    blocks.apply(arrays.to_device(x), out, transpose)
    expected = np.zeros(count)
    expected[dofs] = np.einsum("cji,cj->ci" if transpose else "cij,cj->ci", inverses, x[dofs])
    assert np.abs(arrays.to_host(out, count) - expected).max() < most * np.abs(expected).max()
    product, y = np.random.default_rng(5).standard_normal((2, count))
    given = (*map(arrays.to_device, (product, y, x + product)), out)
    blocks.combine(*given, keep=0.3, mix=-0.7, scale=1.3, transpose=transpose)
    assert np.abs(arrays.to_host(out, count) - (1.6 * expected - 0.7 * y)).max() < most * np.abs(expected).max()
    if narrow:  # none of these is wide
        arrays.upload(blocks._wide, np.ones(problem.mesh.num_cells, np.int32), "wide")
        blocks.apply(arrays.to_device(x), out, transpose)
        assert np.abs(arrays.to_host(out, count) - expected).max() < 1e-11 * np.abs(expected).max()


def test_single_precision():
    problem = made("quadrilateral", smooth_poisson(), pmat="aij", degree=2, precision="single")
    blocks = CellBlocks(problem.operator)
    blocks.update()
    expected = np.linalg.inv(assembled_blocks(problem))
    assert np.abs(blocks.to_host() - expected).max() < 1e-3 * np.abs(expected).max()


def test_a_singular_block_is_an_error():
    empty = Physics({"u": 1}, "f0[0] = 1;", "f1[0] = 0*u_x[0];", name="nothing")
    with pytest.raises(SolveError, match="diagonal block of cell .* is singular: use another -pc_type"):
        CellBlocks(made("triangle", empty, pmat="none", degree=1).operator).update()


@pytest.mark.parametrize("cell", ["triangle", pytest.param("quadrilateral", marks=pytest.mark.full)])
def test_as_a_pc(cell):
    """It takes fewer iterations than the diagonal on cells of high degree, and the transposed solve works too."""
    counts = {}
    for name, options in {
        "blocks": {"pc_type": "python", "pc_python_type": "petsc_hdg.CellBlockJacobi"},
        "diagonal": {"pc_type": "jacobi"},
    }.items():
        with petsc_options(ksp_type="cg", **options):
            problem = made(cell, smooth_poisson(), degree=3)
            assert problem.pmat == "none"
            u = problem.solve()
            counts[name] = problem.linear_iterations
            assert problem.errors(u)["L2"] < 1e-4
            problem.snes.getKSP().view(PETSc.Viewer().createASCII("/dev/null", comm=PETSc.COMM_SELF))
    assert counts["blocks"] < counts["diagonal"], counts


def test_other_schemes_have_no_cell_blocks():
    problem = Problem(
        box_mesh("triangle", comm=PETSc.COMM_SELF), smooth_poisson(), Options(pmat="none", check_kernels=False)
    )
    with petsc_options(pc_type="python", pc_python_type="petsc_hdg.CellBlockJacobi"):
        with pytest.raises(SolveError, match="CellBlockJacobi takes the matrix-free Jacobian of"):
            problem.solve()

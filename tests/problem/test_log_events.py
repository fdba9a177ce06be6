"""`-log_view` has an event for each callback, with the flops that its kernels do."""

from __future__ import annotations

import petsc_log
import pytest
from petsc4py import PETSc

import petsc_hdg as fe
from petsc_hdg import stages

PETSc.Log.begin()


def problem(backend: str, faces=(4, 4), **options) -> fe.Problem:
    flux = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
    physics = fe.Physics({"u": 1}, "f0[0] = -1;", flux, boundary=[fe.Dirichlet("boundary", "g[0] = 0;")])
    return fe.Problem(fe.Mesh.box(faces), physics, fe.Options(degree=1, backend=backend, **options))


def logged(name: str, call) -> tuple[int, float]:
    """Calls and flops that `call()` adds to an event of ours."""
    return petsc_log.logged(f"Fe{name}", call)


def parts(given: fe.Problem) -> dict:
    """Calls of the callbacks: event → function of nothing."""
    calls, u, out = given.callbacks, given.create_vec(), given.create_vec()

    def linearize():
        calls.jacobian.assemble()  # a matrix that somebody has touched is not kept
        calls.linearize(None, u, calls.jacobian, calls.preconditioning)

    linearize()
    return {
        "Residual": lambda: calls.residual(None, u, out),
        "Jacobian": linearize,
        "Product": lambda: calls.jacobian.mult(u, out),
        "Diagonal": lambda: calls.jacobian.getDiagonal(out),
    }


def test_events_of_shell_matrices():
    """CG of first degree on a triangle: 3 functions, a point; see flops_per_cell and flops_per_matrix."""
    given = problem("cg_gpu", quadrature_degree=0)
    cells, wanted = given.mesh.num_cells, parts(given)
    per_cell, per_matrix = 4 * 3 * 3 + 4 * 4 + 2 + 1, 3 * (2 * 3 * 3 + 4 * 4 + 2 + 1)
    expected = {"Residual": per_cell, "Product": 2 * per_cell, "Jacobian": per_matrix, "Diagonal": per_matrix // 3}
    for name, flops in expected.items():
        assert logged(name, wanted[name]) == (1, cells * flops), name
    assert logged("Matrix", wanted["Jacobian"]) == (1, cells * per_matrix)


@pytest.mark.parametrize("share", [False, True])
def test_events_of_a_condensed_scheme(share):
    given = problem("hdg_gpu", faces=(6, 6), pmat="none", hdg_trace_mat="dbf", hdg_share=share)
    wanted, disc, trace = parts(given), given.discretization, given.operator.format
    assert logged("Product", wanted["Product"]) == logged("Residual", wanted["Residual"]) == (1, trace.flops)
    given.operator.coefficients += 1
    N, M, cells = disc.num_eliminated, disc.num_trace_dofs, disc.mesh.num_cells
    shapes = given.operator.local.classes.shapes.count if share else cells
    flops = shapes * disc.flops_per_cell + (cells * 2 * N * (N + M) if share else 0)
    assert (shapes < cells) == share and logged("Condense", wanted["Jacobian"]) == (1, flops)
    assert logged("Condense", wanted["Jacobian"]) == (0, 0)  # a linear one is condensed once
    given.operator.set_constants([])  # nothing that matrices read: another load
    load = cells * 2 * N * (N + M) if share else flops
    assert logged("Condense", wanted["Residual"]) == (1, load)
    facets, block = trace.layout.num_owned, trace.layout.block
    u = given.create_vec()
    calls, flops = logged("BlockApply", given.solve)
    assert calls > 2 and flops == calls * 2 * facets * block**2
    assert logged("BlockSetUp", given.solve) == (0, 0)
    given.operator.coefficients += 1
    assert logged("BlockSetUp", given.solve) == (1, 2 * facets * block**3)
    calls, flops = logged("Recover", lambda: given.cell_values(u))
    assert calls >= 1 and flops == calls * 2 * N * M * disc.mesh.num_cells


def test_events_of_local_newton():
    """As many steps as the cells took, each of a sum over points and an elimination."""
    flux = "for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d];"
    physics = fe.Physics({"u": 1}, "f0[0] = -1;", flux, boundary=[fe.Dirichlet("boundary", "g[0] = 1;")])
    given = fe.Problem(fe.Mesh.box((4, 4)), physics, fe.Options(degree=1, backend="hdg_gpu", check_kernels=False))
    u, out, cells = given.create_vec(), given.create_vec(), given.mesh.num_cells
    calls, flops = logged("LocalNewton", lambda: given.callbacks.residual(None, u, out))
    local, disc = given.operator.local, given.discretization
    steps = local.arrays.to_host(local.status, cells)
    assert calls == 1 and steps.min() >= 2 and flops == steps.sum() * local.newton_flops
    N = disc.num_eliminated
    elimination = sum(2 * N * (N + 1 - k) for k in range(N))
    assert elimination < local.newton_flops <= disc.flops_per_cell


@pytest.mark.parametrize("backend", ["sipg_gpu", "poly_gpu"])
def test_events_of_discontinuous_schemes(backend):
    given = problem(backend, pmat="aij")
    for name, call in parts(given).items():
        if name in ("Product", "Diagonal") and backend == "poly_gpu":  # PETSc's own matrix
            continue
        calls, flops = logged(name, call)
        assert calls == 1 and flops > given.mesh.num_cells, name


def test_block_jacobi_of_cells():
    given = problem("sipg_gpu")
    options = {"pc_type": "python", "pc_python_type": "petsc_hdg.CellBlockJacobi"}
    ksp = PETSc.KSP().create(given.dm.comm)
    ksp.setOperators(given.callbacks.jacobian)
    u, b = given.create_vec(), given.create_vec()
    given.callbacks.linearize(None, u, given.callbacks.jacobian, given.callbacks.jacobian)
    pc = ksp.getPC()
    pc.setType(options["pc_type"])
    pc.setPythonType(options["pc_python_type"])
    cells, op = given.mesh.num_cells, given.operator
    assert logged("BlockSetUp", pc.setUp) == (1, op.matrix_flops + 2 * cells * 3**3)
    assert logged("BlockApply", lambda: pc.apply(b, u)) == (1, 2 * cells * 3**2)


def test_events_end_where_a_callback_fails():
    with pytest.raises(ValueError), stages.event("Failing", 7):
        raise ValueError
    assert logged("Failing", lambda: None) == (0, 0)
    with stages.event("Failing", 7):
        pass
    assert PETSc.Log.Event("FeFailing").getPerfInfo()["flops"] == 7

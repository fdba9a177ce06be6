"""Local solvers that cells of one shape share: the same numbers as those of each cell's own, and the same refusals."""

from __future__ import annotations

import numpy as np
import pytest
from petsc_options import petsc_options
from trace_samples import box

import petsc_hdg as fe
from petsc_hdg.errors import SolveError
from petsc_hdg.operators.condensed import check, local_classes
from petsc_hdg.operators.condensed.local_classes import pivot_ratios
from petsc_hdg.operators.trace import check as trace_check
from petsc_hdg.physics import library

CONVECTION = fe.Physics(
    {"u": 1},
    f0="f0[0] = u[0]*k - x[0]*sin(x[1]);",
    f1="for (d = 0; d < dim; ++d) f1[d] = u_x[d] + (d + 1)*u[0];",
    constants={"k": 1.5},
    boundary=[fe.Dirichlet("left", "g[0] = 1 + x[1];"), fe.Robin("right", "f0[0] = 2*u[0] + x[1];")],
)


def elasticity(dim: int) -> fe.Physics:
    return library.elasticity(dim, boundary=[fe.Dirichlet("left", "for (c = 0; c < Nc; ++c) g[c] = x[1];")])


CASES = [
    ("triangle", CONVECTION, {"degree": 2}),
    ("quadrilateral", CONVECTION, {"degree": 1, "hdg_trace_mat": "aij"}),
    ("tetrahedron", CONVECTION, {"degree": 1, "hdg_trace_mat": "dbf", "hdg_tile_cells": 100}),
    ("hexahedron", elasticity(3), {"degree": 1}),
    ("triangle", elasticity(2), {"degree": 2, "hdg_keep": False}),
    ("triangle", CONVECTION, {"degree": 3, "backend": "cg_gpu", "cg_condense": True}),
]


def found(cell: str, physics, share: bool, **settings) -> tuple[dict[str, np.ndarray], fe.Problem]:
    """Solution, values in cells, residual of a random trace, the interior that belongs to it."""
    with petsc_options(ksp_type="gmres", ksp_rtol="1e-13", pc_type="lu"):
        problem = fe.Problem(box(cell), physics, **{"backend": "hdg_gpu", "hdg_share": share, **settings})
        u = problem.solve()
    op, arrays = problem.operator, problem.arrays
    x = arrays.to_device(np.random.default_rng(1).uniform(-1, 1, op.dofmap.num_owned))
    out = arrays.zeros(op.dofmap.num_owned)
    op.residual(x, out)
    count = op.discretization.num_eliminated
    inside = arrays.to_host(op.local_state(x), (count, op.discretization.stride))[:, : op.discretization.mesh.num_cells]
    values = {"solution": u.getArray().copy(), "residual": arrays.to_host(out, op.dofmap.num_owned), "inside": inside}
    return values, problem


@pytest.mark.full
@pytest.mark.parametrize("cell,physics,settings", CASES, ids=[f"{c} {i}" for i, (c, *_) in enumerate(CASES)])
def test_shared_solvers_give_the_same(cell, physics, settings):
    got, problem = found(cell, physics, True, **settings)
    expected, plain = found(cell, physics, False, **settings)
    classes = problem.operator.local.classes
    assert classes and classes.shapes.count < problem.mesh.num_cells / 8 and plain.operator.local.classes is None
    for name, values in expected.items():
        assert np.abs(got[name] - values).max() < 1e-10 * np.abs(values).max(), name


def test_no_cell_is_condensed_for_itself(monkeypatch):
    _, problem = found("triangle", CONVECTION, True, degree=2)
    kernel = problem.operator.local.kernels["condense"]
    problem.operator.local.kernels["condense"] = None  # not called
    problem.set_constants(k=2.5)
    got = problem.solve().getArray().copy()
    problem.operator.local.kernels["condense"] = kernel
    with petsc_options(ksp_rtol="1e-13", pc_type="lu"):
        physics = CONVECTION.with_constants(k=2.5)
        expected = fe.Problem(box("triangle"), physics, backend="hdg_gpu", degree=2, hdg_share=False).solve()
    assert np.abs(got - expected.getArray()).max() < 1e-8


def test_other_auxiliary_data_give_other_solvers():
    physics = fe.Physics(
        {"u": 1}, f0="f0[0] = -1;", f1="for (d = 0; d < dim; ++d) f1[d] = a[0]*u_x[d];",
        auxiliary={"kappa": fe.Auxiliary(1, "cell")}, boundary=[fe.Dirichlet("boundary", "g[0] = 0;")],
    )  # fmt: skip
    answers = {}
    for share in (True, False):
        problem = fe.Problem(box("triangle"), physics, backend="hdg_gpu", degree=1, hdg_share=share)
        for name, kappa in (("one", 1.0), ("varied", None), ("two", 2.0)):
            values = np.random.default_rng(3).uniform(1, 2, problem.mesh.num_cells) if kappa is None else kappa
            problem.set_auxiliary("kappa", values)
            answers[share, name] = problem.solve().getArray().copy()
            assert bool(problem.operator.local.classes) == (share and kappa is not None)
    for name in ("one", "varied", "two"):
        difference = np.abs(answers[True, name] - answers[False, name]).max()
        assert difference < 1e-8 * np.abs(answers[False, name]).max()


def test_kernels_are_compared_once_data_need_them(monkeypatch):
    """Cells that share solvers take none of the kernels of cells that differ."""
    compared = []
    monkeypatch.setattr(check, "settle", lambda kernel, precision, compare: compared.append(kernel.spec.name))
    monkeypatch.setattr(trace_check, "judge", lambda kernel, *values: compared.append(kernel.spec.name))
    monkeypatch.setattr(check.verdicts, "needs_check", lambda kernel: True)
    physics = fe.Physics(
        {"u": 1}, f0="f0[0] = -1;", f1="for (d = 0; d < dim; ++d) f1[d] = a[0]*u_x[d];",
        auxiliary={"kappa": fe.Auxiliary(1, "cell")}, boundary=[fe.Dirichlet("boundary", "g[0] = 0;")],
    )  # fmt: skip
    problem = fe.Problem(box("triangle"), physics, backend="hdg_gpu", degree=2)
    problem.set_auxiliary("kappa", 1.0)
    problem.solve()
    shared = ["condense_element", "condense_shared", "trace_congruent_product", "trace_congruent_column"]
    assert compared[:4] == shared and not {"condense", "trace_assemble"} & {*compared}
    problem.set_auxiliary("kappa", np.random.default_rng(3).uniform(1, 2, problem.mesh.num_cells))
    problem.solve()
    assert {"condense", "trace_assemble"} < {*compared}
    del compared[:]
    problem.solve()
    assert not compared


def test_failures_are_told_of_cells():
    """Bubbles that nothing holds: no flux, no reaction, and no trace of theirs."""
    still = fe.Physics({"u": 1}, f0="f0[0] = -1;", f1="for (d = 0; d < dim; ++d) f1[d] = 0*u_x[d];")
    problem = fe.Problem(box("triangle"), still, backend="hdg_gpu", degree=3, hdg_tau="1", pmat="none")
    with pytest.raises(
        SolveError, match=r"the local problem of cell \d+ of rank 0 near .* is singular .and 383 more are"
    ):
        problem.solve()


def test_pivots():
    matrices = np.array([np.diag([1.0, 4.0]), [[1, 1], [1, 1.0]], [[0, 1], [1, 0.0]]])
    np.testing.assert_allclose(pivot_ratios(matrices), [0.25, 0, 0])


def test_first_use_compares_with_numpy(monkeypatch):
    seen = {}
    monkeypatch.setattr(check, "settle", lambda kernel, precision, compare: seen.update({kernel.spec.name: compare()}))
    monkeypatch.setattr(check.verdicts, "needs_check", lambda kernel: True)
    problem = fe.Problem(box("triangle"), CONVECTION, backend="hdg_gpu", degree=1)
    problem.solve()
    for name in ("condense_element", "condense_shared"):
        got, expected, _ = seen[name]
        np.testing.assert_allclose(got, expected, atol=1e-10 * np.abs(expected).max())


def test_bytes_of_a_class(monkeypatch):
    _, problem = found("triangle", CONVECTION, True, degree=2)
    classes = problem.operator.local.classes
    size = sum(buffer.size for buffer in (classes.solver, classes.recovery, classes.schur))
    monkeypatch.setattr(local_classes, "MOST_SHARE", 1)
    monkeypatch.setattr(local_classes, "MOST_BYTES", size)
    assert local_classes.most_classes(problem.discretization) == classes.shapes.count


def test_few_copies_are_not_worth_it(monkeypatch):
    monkeypatch.setattr(local_classes, "MOST_BYTES", 0)
    problem = fe.Problem(box("triangle"), CONVECTION, backend="hdg_gpu", degree=1)
    assert problem.operator.local.classes is None

"""The first-use check: a kernel that computes something else is found, named, and found again next time."""

from __future__ import annotations

import numpy as np
import pytest
from petsc4py import PETSc

from petsc_hdg.codegen import spec
from petsc_hdg.device import build as device_build
from petsc_hdg.device import verdicts
from petsc_hdg.errors import DeviceError
from petsc_hdg.mesh import Mesh
from petsc_hdg.options import Options
from petsc_hdg.physics import Dirichlet, Physics, Robin
from petsc_hdg.problem import Problem

PHYSICS = Physics(
    {"u": 1},
    f0="f0[0] = u[0]*u[0] - 1.0;",
    f1="for (d = 0; d < dim; ++d) f1[d] = (1.0 + u[0])*u_x[d];",
    boundary=[Dirichlet("left", "g[0] = 0;"), Robin("right", "f0[0] = u[0]*u[0];")],
    name="checked",
)
ACTION = "pw_jacobian(u, u_t, u_x, du, du_t, du_x, a, a_x, t, shift, x, constants, f0, f1);"
FAULTS = {  # kernel found wrong -> (variant, file, right text, wrong text)
    "cg_residual": ("cell", "role_residual.clh", "pw_residual(u, u_t,", "pw_residual(u_t, u_t,"),
    "cg_action": ("transpose", "role_action.clh", ACTION, ACTION.replace("du_x, a,", "u_x, a,")),
    "cg_matrix": ("cell", "role_matrix.clh", "pw_jacobian(u, u_t,", "pw_jacobian(u_t, u_t,"),
    "cg_diagonal": ("cell", "point_block.clh", "sum = value", "sum = 2 * value"),
    "cg_facet_residual": ("cell", "role_residual.clh", "pw_boundary(condition, u,", "pw_boundary(condition, u_t,"),
    "cg_facet_matrix": ("cell", "role_matrix.clh", "jacobian(condition, u,", "jacobian(condition, u_t,"),
    "cg_patch_residual": ("patch", "cg_patch.cl", "int e = 0; e < SLOTS", "int e = 1; e < SLOTS"),
    "condense": ("hdg", "condense.cl", "recovery[place * NE + ROW(a)] = -", "recovery[place * NE + ROW(a)] = "),
    "condense_solve": ("hdg", "condense_solve.cl", "= s[k] - damping * step[k]", "= s[k] - step[k] / 2"),
    "sipg_penalty": ("sipg", "sipg_penalty.cl", "return PENALTY", "return 2 * PENALTY"),
    "sipg_action": ("sipg", "sipg_flux.clh", "action ? d_jump[c]", "action ? d_lifted[c]"),
    "sipg_facet_residual": ("sipg split", "role_residual.clh", "NONE, NONE)\n", "NONE, NONE) if (f) f0[0] = 0;\n"),
    "sipg_facet_coupling": ("sipg", "sipg_facet_coupling.cl", "(1, NONE, TRIAL)", "(1, TRIAL, TRIAL)"),
}


def problem(variant: str) -> Problem:
    mesh = Mesh.box((3, 3), comm=PETSc.COMM_SELF)
    chosen = {"hdg": {"backend": "hdg_gpu", "pmat": "aij"}, "sipg": {"backend": "sipg_gpu", "pmat": "aij"}}
    chosen["sipg split"] = chosen["sipg"] | {"sipg_kernel": "split"}
    chosen = chosen.get(variant, {"kernel": variant})
    return Problem(mesh, PHYSICS, Options(degree=1, quadrature_degree=3, **chosen))


@pytest.mark.parametrize("kernel", FAULTS)
def test_a_wrong_kernel_is_found(kernel, monkeypatch, fresh_cache):
    variant, file, right, wrong = FAULTS[kernel]
    original = spec.kernel_text
    assert right in original(file)
    monkeypatch.setattr(
        spec, "kernel_text", lambda name: original(name).replace(right, wrong if name == file else right)
    )
    for _ in range(2):
        with pytest.raises(DeviceError, match=f"kernel '{kernel}' gives wrong results"):
            problem(variant).callbacks  # noqa: B018


def linearized() -> tuple:
    """The operator of interior penalty at a state, before its diagonal is asked for, and a vector."""
    given = problem("sipg")
    given.callbacks  # noqa: B018
    operator = given.operator
    assert not {"cg_diagonal", "sipg_facet_diagonal"} & operator.all_kernels().keys()
    operator.linearize(operator.arrays.to_device(np.linspace(0.5, 1.0, given.num_unknowns)))
    return operator, operator.arrays.zeros(given.num_unknowns)


@pytest.mark.parametrize(
    "kernel, right, wrong",
    [("cg_diagonal", "sum = value", "sum = 2 * value"), ("sipg_facet_diagonal", "u[e_] = du[e_],", "u[e_] = 0,")],
)
def test_a_wrong_diagonal_is_found_where_it_is_asked_for(kernel, right, wrong, monkeypatch, fresh_cache):
    original = spec.kernel_text
    monkeypatch.setattr(spec, "kernel_text", lambda name: original(name).replace(right, wrong))
    operator, out = linearized()
    with pytest.raises(DeviceError, match=f"kernel '{kernel}' gives wrong results"):
        operator.diagonal(out)


def test_the_check_of_a_diagonal_leaves_the_linearization(fresh_cache):
    operator, out = linearized()
    state, penalties, version = operator.state, operator.penalties(), operator.penalty.version
    operator.diagonal(out)
    assert all(verdicts.verdict(kernel)["ok"] for kernel in operator.diagonal_kernels.values())
    assert np.array_equal(operator.penalties(), penalties) and penalties.any() and operator.penalty.is_known
    assert operator.state is state and operator.penalty.version == version


@pytest.mark.parametrize("kernel", ["cg_residual", "condense"])
def test_a_kernel_that_the_compiler_spoils_is_compiled_plainly(kernel, monkeypatch, fresh_cache):
    """The fault is there with optimizations alone, as one of a compiler is."""
    variant, file, right, wrong = FAULTS[kernel]
    build, texts = device_build._built, []

    def spoiled(device, spec, source: str):
        texts.append(spec.is_optimized)
        return build(device, spec, source.replace(right, wrong) if spec.is_optimized else source)

    monkeypatch.setattr(device_build, "_built", spoiled)
    for _ in range(2):  # the second one finds both programs in the cache
        with pytest.warns(UserWarning, match=f"kernel '{kernel}' gives wrong results .* without the compiler's optim"):
            assert problem(variant).callbacks.assembled is not None
    assert texts.count(False) == 1


@pytest.mark.parametrize("variant", ["cell", "transpose", "patch", "hdg", "sipg", "sipg split"])
def test_right_kernels_pass(variant):
    assert problem(variant).callbacks.assembled is not None

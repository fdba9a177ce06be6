"""PETSc's fieldsplit on fields of coupled problems: all schemes, Stokes flow, any number of ranks."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest
from petsc_options import petsc_options

import petsc_hdg as fe
from petsc_hdg.errors import OptionError

SCRIPT = Path(__file__).with_name("run_field_splits.py")
FLUX = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"


@pytest.fixture(scope="module", params=[1, 3])
def found(mpirun, request):
    return json.loads(mpirun(request.param, SCRIPT).stdout.splitlines()[-1])


def test_fields_of_all_schemes_are_split(found):
    for backend in ("cg_gpu", "hdg_gpu", "sipg_gpu", "poly_gpu"):
        (additive, residual), (multiplicative, other) = found[backend]["additive"], found[backend]["grouped"]
        assert 1 < multiplicative < additive <= 8, backend
        assert max(residual, other) < 1e-11, backend


def test_iterations_of_stokes_flow_do_not_grow(found):
    for name, most, growth in (("selfp", 70, 1.7), ("mass", 35, 1.2), ("saddle point", 8, 1.2)):
        (coarse, error), (fine, other) = found[name]
        assert fine <= min(most, growth * coarse), (name, found[name])
        assert max(error, other) < 1e-6, (name, found[name])


@pytest.mark.parametrize("given", [{}, {"fieldsplit_v_ksp_max_it": 500}], ids=["PETSc's limit", "the user's limit"])
def test_inner_solvers_that_stop_at_their_limit_are_told(given):
    """Once, and not where the user has set the limit: here a tolerance that rounding forbids."""
    inner = {"fieldsplit_v_ksp_type": "richardson", "fieldsplit_v_pc_type": "jacobi", "fieldsplit_v_ksp_rtol": 1e-30}
    wall = [fe.Dirichlet("boundary", 0.0, field=name) for name in "uv"]
    physics = fe.Physics(
        {"u": 1, "v": 1}, {"u": "f0[0] = -1;", "v": "f0[0] = -1;"}, {"u": FLUX, "v": FLUX}, boundary=wall
    )
    with petsc_options(pc_type="fieldsplit", **inner, **given), warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        problem = fe.Problem(fe.Mesh.box((4, 4)), physics)
        problem.solve()
        problem.solve()
    texts = [str(one.message) for one in said if "inside of fieldsplit" in str(one.message)]
    assert len(texts) == (0 if given else 1), texts
    assert given or ("10000 iterations" in texts[0] and "-fieldsplit_v_ksp_max_it" in texts[0])


@pytest.mark.parametrize(
    "fields, options, message",
    [
        ({"u": 1}, {}, "has one field, 'u', and nothing to split"),
        (
            {"u": 1, "v": 1},
            {"pc_fieldsplit_0_fields": "1", "pc_fieldsplit_1_fields": "0,2"},
            "-pc_fieldsplit_1_fields is '0,2'; it takes numbers",
        ),
    ],
)
def test_refusals(fields, options, message):
    f0 = {name: "f0[0] = -1;" for name in fields}
    wall = [fe.Dirichlet("boundary", 0.0, field=name) for name in fields]
    physics = fe.Physics(fields, f0, {"u": FLUX} | ({"v": FLUX} if "v" in fields else {}), boundary=wall)
    with petsc_options(pc_type="fieldsplit", **options), pytest.raises(OptionError, match=message):
        fe.Problem(fe.Mesh.box((2, 2)), physics).solve()

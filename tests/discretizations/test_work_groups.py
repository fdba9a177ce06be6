"""Work-groups of kernels whose work-items share nothing: one item on a CPU, a warp on a GPU."""

from __future__ import annotations

import pytest

import petsc_hdg as fe
from petsc_hdg.discretizations.cg.scheme import ContinuousGalerkin
from petsc_hdg.discretizations.condensed.hdg import HybridizedDG
from petsc_hdg.discretizations.condensed.recovery_specs import RecoverySpecs
from petsc_hdg.discretizations.integral_specs import cell_error_spec, condensed_error_spec
from petsc_hdg.discretizations.sipg.scheme import InteriorPenalty
from petsc_hdg.discretizations.transposition import DeviceLimits
from petsc_hdg.options import Options

PHYSICS = fe.Physics(
    {"u": 1},
    "f0[0] = -1;",
    "for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
    boundary=[fe.Dirichlet("boundary", "exact")],
    exact={"u": "u[0] = x[0];"},
)


@pytest.mark.parametrize(("limits", "size"), [(DeviceLimits(), 1), (DeviceLimits(48 << 10, 256, True), 32)])
def test_items_that_share_nothing(limits, size):
    mesh = fe.Mesh.box((2, 2))
    schemes = {"cg_gpu": ContinuousGalerkin, "sipg_gpu": InteriorPenalty, "hdg_gpu": HybridizedDG}
    conforming, penalized, hybrid = (
        scheme(mesh, PHYSICS, Options(backend=backend, degree=2), limits) for backend, scheme in schemes.items()
    )
    specs = [conforming.essential_spec(), cell_error_spec(conforming), hybrid.essential_spec()]
    specs += [*penalized.penalty_specs().values(), penalized.plain_specs()["sipg_facet_diagonal"]]
    specs += [condensed_error_spec(RecoverySpecs(hybrid))]
    assert [spec.local_size for spec in specs] == [size] * len(specs)

"""Problems whose vectors live on the device, PETSc's ViennaCL vectors: by default on a GPU, and their solves."""

from __future__ import annotations

import numpy as np
import pytest
from petsc4py import PETSc
from petsc_options import petsc_options

import petsc_hdg as fe
from petsc_hdg.problem import problem as module

FLUX = "for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d];"
STEADY = fe.Physics({"u": 1}, "f0[0] = -10.0;", FLUX, boundary=[fe.Dirichlet("boundary", "g[0] = 1 + x[0];")])
HEAT = fe.Physics({"u": 1}, "f0[0] = u_t[0] - 1;", FLUX, boundary=[fe.Dirichlet("boundary", 0.0)])


def problem(physics: fe.Physics = STEADY, **options) -> fe.Problem:
    return fe.Problem(fe.Mesh.box((12, 12), comm=PETSc.COMM_SELF), physics, check_kernels=False, **options)


@pytest.mark.requires_viennacl
def test_they_are_the_default_on_a_gpu(monkeypatch):
    assert problem().vec_mode == "host"
    monkeypatch.setattr(module, "is_gpu", lambda device: True)
    assert problem().vec_mode == "viennacl" and problem().create_vec().getType() == "seqviennacl"
    assert problem(HEAT).vec_mode == "viennacl"
    with petsc_options(dm_vec_type="standard"):
        assert problem().vec_mode == "host"
    monkeypatch.setattr(module, "is_first", lambda device: False)
    with pytest.warns(UserWarning, match="live on the host.*; import petsc_hdg before petsc4py.init"):
        assert problem().vec_mode == "host"


@pytest.mark.requires_viennacl
@pytest.mark.parametrize("options", [{"degree": 2, "pmat": "conforming"}, {"backend": "poly_gpu", "degree": 1}])
def test_solves_are_those_of_vectors_on_the_host(options):
    """Levels average the state: operations on vectors of two types would read other memory."""
    found = []
    for kind in ("standard", "viennacl"):
        with petsc_options(dm_vec_type=kind):
            one = problem(**options)
            found.append((one.solve().getArray(readonly=True).copy(), one.newton_iterations, one.linear_iterations))
    assert found[0][1:] == found[1][1:]
    np.testing.assert_allclose(found[1][0], found[0][0], rtol=1e-7)

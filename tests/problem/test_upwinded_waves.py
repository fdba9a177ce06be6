"""Upwinding of hdg_gpu, by -hdg_tau upwind or by the physics: order, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from petsc4py import PETSc
from petsc_options import petsc_options

import petsc_hdg as fe
from petsc_hdg.physics import Symbols

X = Symbols(2, {"u": 3}).x
BULK, WIND = 1e4, (30.0, 20.0)  # sound of speed 100; pressures are of size 100, velocities of 1
EXACT = [100 * sympy.sin(X[0] + 2 * X[1]), sympy.cos(2 * X[0] - X[1]), sympy.sin(X[0] * X[1] + 1)]


def acoustics(stabilization=None, diffusivity: float = 0.0) -> fe.Physics:
    """Sound in a wind with a reaction of all components, whose solution is EXACT."""
    states = sympy.Matrix(EXACT)
    waves = sympy.Matrix([[BULK * states[1], BULK * states[2]], [states[0], 0], [0, states[0]]])
    flux = waves + states * sympy.Matrix([WIND])
    source = [states[c] + sum(sympy.diff(flux[c, d], X[d]) for d in range(2)) for c in range(3)]
    diffusion = f"{diffusivity}*u_x[c*2 + d]" if diffusivity else "0.0"
    f1 = f"""for (d = 0; d < 2; ++d) {{
      const PetscReal wind = d == 0 ? {WIND[0]} : {WIND[1]};
      for (PetscInt c = 0; c < 3; ++c) f1[c*2 + d] = {diffusion} - wind*u[c];
      f1[d] -= {BULK}*u[1 + d];
      f1[(1 + d)*2 + d] -= u[0]; }}"""
    return fe.Physics(
        {"u": 3},
        " ".join(f"f0[{c}] = u[{c}] - ({sympy.ccode(s)});" for c, s in enumerate(source)),
        f1,
        exact=" ".join(f"u[{c}] = {sympy.ccode(entry)};" for c, entry in enumerate(EXACT)),
        boundary=[fe.Dirichlet("boundary", "exact")],
        stabilization=stabilization,
    )


def error(faces: int, stabilization=None, **options) -> float:
    with petsc_options(ksp_type="preonly", pc_type="lu"):
        mesh = fe.Mesh.box((faces, faces), comm=PETSc.COMM_SELF)
        problem = fe.Problem(mesh, acoustics(stabilization), backend="hdg_gpu", degree=2, **options)
        return problem.errors(problem.solve())["L2"]


def test_order_of_sound_in_a_wind():
    """Kernels agree with numpy on both meshes; τ = 1, of the size of no wave, is a hundred times as wrong."""
    coarse, fine = error(3, hdg_tau="upwind"), error(6, "upwind")
    assert 2.85 < np.log2(coarse / fine) < 3.3 and fine < 0.02, (coarse, fine)
    assert error(6, hdg_tau="1") > 100 * fine


def test_the_option_is_told_what_it_cannot_be():
    with pytest.raises(fe.OptionError, match="-hdg_tau upwind: 'upwind' is for systems of first order .* f1 reads u_x"):
        fe.Problem(fe.Mesh.box((2, 2)), acoustics(None, 0.1), backend="hdg_gpu", degree=1, hdg_tau="upwind")
    with pytest.raises(fe.PhysicsError, match="'upwind' is for systems of first order .* f1 reads u_x"):
        fe.Problem(fe.Mesh.box((2, 2)), acoustics("upwind", 0.1), backend="hdg_gpu", degree=1)

"""Nitsche's method written by a user: PETSc's f0_bd and f1_bd on all of the boundary, in every scheme."""

# Lines of the C text stay as they are.
# ruff: noqa: E501

from __future__ import annotations

import numpy as np
import pytest
from sample_meshes import box_mesh

import petsc_hdg as fe
from petsc_hdg.physics import CFile

STATE = (
    "PetscInt dim, PetscInt Nf, PetscInt NfAux, const PetscInt uOff[], const PetscInt uOff_x[], const PetscScalar u[], const PetscScalar u_t[], "
    "const PetscScalar u_x[], const PetscInt aOff[], const PetscInt aOff_x[], const PetscScalar a[], const PetscScalar a_t[], "
    "const PetscScalar a_x[], PetscReal t, const PetscReal x[], "
)
CONSTANTS = "PetscInt numConstants, const PetscScalar constants[], PetscScalar "
BOUNDARY = f"{STATE} const PetscReal n[], {CONSTANTS}"

# Stokes flow as in PETSc's tutorials: data of the wall are a function of x and t that the boundary terms call.
FLOW = f"""
typedef enum {{ MU, PENALTY }} Numbers;
static PetscErrorCode wall_u(PetscInt dim, PetscReal time, const PetscReal x[], PetscInt Nc, PetscScalar *u, void *ctx)
{{
  PetscFunctionBegin;
  u[0] = x[0] * x[0] + x[1] * x[1];
  u[1] = 2.0 * x[0] * x[0] - 2.0 * x[0] * x[1];
  PetscFunctionReturn(PETSC_SUCCESS);
}}
static PetscErrorCode linear_p(PetscInt dim, PetscReal time, const PetscReal x[], PetscInt Nc, PetscScalar *p, void *ctx)
{{
  p[0] = x[0] + x[1] - 1.0;
  return 0;
}}
static void f0_u({STATE} {CONSTANTS} f0[])
{{
  for (PetscInt c = 0; c < dim; ++c) f0[c] = 4.0 * constants[MU] - 1.0;
}}
static void f1_u({STATE} {CONSTANTS} f1[])
{{
  for (PetscInt c = 0; c < dim; ++c) {{
    for (PetscInt d = 0; d < dim; ++d) f1[c * dim + d] = constants[MU] * (u_x[c * dim + d] + u_x[d * dim + c]);
    f1[c * dim + c] -= u[uOff[1]];
  }}
}}
static void f0_p({STATE} {CONSTANTS} f0[])
{{
  for (PetscInt d = 0; d < dim; ++d) f0[0] += u_x[d * dim + d];
}}
static void f0_bd_nitsche_u({BOUNDARY} f0[])
{{
  const PetscReal mu = PetscRealPart(constants[MU]);
  PetscScalar wall[3];
  PetscCallAbort(PETSC_COMM_SELF, wall_u(dim, t, x, dim, wall, NULL));
  for (PetscInt c = 0; c < dim; ++c) {{
    f0[c] = constants[PENALTY] * (u[c] - wall[c]) + u[uOff[1]] * n[c];
    for (PetscInt d = 0; d < dim; ++d) f0[c] -= mu * (u_x[c * dim + d] + u_x[d * dim + c]) * n[d];
  }}
}}
static void f1_bd_nitsche_u({BOUNDARY} f1[])
{{
  PetscScalar wall[3];
  PetscCallAbort(PETSC_COMM_SELF, wall_u(dim, t, x, dim, wall, NULL));
  for (PetscInt c = 0; c < dim; ++c)
    for (PetscInt d = 0; d < dim; ++d) f1[c * dim + d] = -constants[MU] * ((u[c] - wall[c]) * n[d] + (u[d] - wall[d]) * n[c]);
}}
static void f0_bd_nitsche_p({BOUNDARY} f0[])
{{
  PetscScalar wall[3];
  PetscCallAbort(PETSC_COMM_SELF, wall_u(dim, t, x, dim, wall, NULL));
  for (PetscInt d = 0; d < dim; ++d) f0[0] -= (u[d] - wall[d]) * n[d];
}}
"""


def test_stokes_flow_of_a_c_file(tmp_path):
    """A flow of second degree that Taylor-Hood elements hold: it is found to rounding, though no wall is essential."""
    path = tmp_path / "flow.c"
    path.write_text(FLOW)
    function = lambda name: CFile(path, name)  # noqa: E731
    physics = fe.Physics(
        {"velocity": 2, "pressure": fe.Field(1, degree_offset=-1)},
        {"velocity": function("f0_u"), "pressure": function("f0_p")},
        {"velocity": function("f1_u")},
        boundary=[
            fe.Robin("boundary", function("f0_bd_nitsche_u"), "velocity", f1=function("f1_bd_nitsche_u")),
            fe.Robin("boundary", function("f0_bd_nitsche_p"), "pressure"),
        ],
        exact={"velocity": function("wall_u"), "pressure": function("linear_p")},
        constants={"mu": 0.7, "penalty": 60.0},
    )
    problem = fe.Problem(box_mesh("triangle", (3, 3)), physics, degree=2)  # no essential data
    u = problem.solve()
    assert problem.errors(u, field="velocity")["L2"] < 1e-10 and problem.errors(u, field="pressure")["L2"] < 1e-9


def nitsche() -> fe.Physics:
    """-Δu with a smooth solution that is given weakly on all of the boundary; `penalty` is γ/h."""
    exact = "sin(x[0] + 0.2)*cos(2*x[1])"
    flux = "for (d = 0; d < dim; ++d) f0[0] -= u_x[d]*n[d];"
    return fe.Physics(
        {"u": 1},
        f"f0[0] = -5*({exact});",
        "for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
        boundary=[
            fe.Robin(
                "boundary",
                f"f0[0] = penalty*(u[0] - {exact}); {flux}",
                f1=f"for (d = 0; d < dim; ++d) f1[d] = -(u[0] - {exact})*n[d];",
            )
        ],
        exact=f"u[0] = {exact};",
        constants={"penalty": 1.0},
    )


@pytest.mark.full("poly_gpu", "sipg_gpu")
@pytest.mark.parametrize("backend", ["cg_gpu", "hdg_gpu", "sipg_gpu", "poly_gpu"])
def test_order_of_convergence(backend):
    degree, errors = 2, []
    for faces in (4, 8):
        problem = fe.Problem(fe.Mesh.box((faces, faces), simplex=True), nitsche(), degree=degree, backend=backend)
        problem.set_constants(penalty=10.0 * faces * degree**2)
        errors.append(problem.errors(problem.solve())["L2"])
    assert np.log2(errors[0] / errors[1]) > degree + 0.8 and errors[1] < 2e-4, errors

"""Functions in PETSc's own signature, as they stand in PETSc programs: Stokes flow in a channel, two fields.

    python examples/petsc_functions.py -dm_refine 1

-∇·(ν(∇v + ∇vᵀ) - pI) = f, ∇·v = 0, in Taylor-Hood elements (p one degree lower). The functions below have the argument
list of PetscPointFn and go to the device unchanged; the Jacobian's g0…g3, which a PETSc program would add, are
differentiated. The solution is quadratic, v = (x² + y², 2x² - 2xy), p = x + y - 1, so with degree 2 the error is that
of the linear solver. The stress is given on the right side, which also fixes the pressure.
Things to try: pathlib.Path("mine.c") or CFile("mine.c", "f1_u") instead of the text, a hand-written jacobian={"g3": …},
-pc_type fieldsplit with its options, your own functions.
"""

import sys

import petsc4py

import petsc_hdg as fe

petsc4py.init(sys.argv)

from petsc4py import PETSc

F0_V = """
static void f0_v(PetscInt dim, PetscInt Nf, PetscInt NfAux,
                 const PetscInt uOff[], const PetscInt uOff_x[], const PetscScalar u[], const PetscScalar u_t[],
                 const PetscScalar u_x[], const PetscInt aOff[], const PetscInt aOff_x[], const PetscScalar a[],
                 const PetscScalar a_t[], const PetscScalar a_x[], PetscReal t, const PetscReal x[],
                 PetscInt numConstants, const PetscScalar constants[], PetscScalar f0[])
{
  const PetscReal nu = PetscRealPart(constants[0]);
  f0[0] = 4.0 * nu - 1.0;
  f0[1] = 4.0 * nu - 1.0;
}
"""

F1_V = """
static void f1_v(PetscInt dim, PetscInt Nf, PetscInt NfAux,
                 const PetscInt uOff[], const PetscInt uOff_x[], const PetscScalar u[], const PetscScalar u_t[],
                 const PetscScalar u_x[], const PetscInt aOff[], const PetscInt aOff_x[], const PetscScalar a[],
                 const PetscScalar a_t[], const PetscScalar a_x[], PetscReal t, const PetscReal x[],
                 PetscInt numConstants, const PetscScalar constants[], PetscScalar f1[])
{
  const PetscReal nu = PetscRealPart(constants[0]);
  PetscInt        c, d;

  for (c = 0; c < dim; ++c) {
    for (d = 0; d < dim; ++d) f1[c * dim + d] = nu * (u_x[c * dim + d] + u_x[d * dim + c]);
    f1[c * dim + c] -= u[uOff[1]];
  }
}
"""

F0_P = """
static void f0_p(PetscInt dim, PetscInt Nf, PetscInt NfAux,
                 const PetscInt uOff[], const PetscInt uOff_x[], const PetscScalar u[], const PetscScalar u_t[],
                 const PetscScalar u_x[], const PetscInt aOff[], const PetscInt aOff_x[], const PetscScalar a[],
                 const PetscScalar a_t[], const PetscScalar a_x[], PetscReal t, const PetscReal x[],
                 PetscInt numConstants, const PetscScalar constants[], PetscScalar f0[])
{
  PetscInt d;
  for (d = 0, f0[0] = 0.0; d < dim; ++d) f0[0] += u_x[uOff_x[0] + d * dim + d];
}
"""

V = """
PetscErrorCode v_exact(PetscInt dim, PetscReal time, const PetscReal x[], PetscInt Nc, PetscScalar *u, void *ctx)
{
  u[0] = x[0]*x[0] + x[1]*x[1];
  u[1] = 2.0*x[0]*x[0] - 2.0*x[0]*x[1];
  return 0;
}
"""

STRESS = """/* σ·n at x = 1, where n = (1, 0) */
g[0] = constants[0]*4*x[0] - (x[0] + x[1] - 1);
g[1] = constants[0]*(2*x[1] + 4*x[0] - 2*x[1]);
"""

PHYSICS = fe.Physics(
    {"velocity": 2, "pressure": fe.Field(1, degree_offset=-1)},
    f0={"velocity": F0_V, "pressure": F0_P},
    f1={"velocity": F1_V},
    constants={"nu": 0.5},
    boundary=[fe.Dirichlet(side, "exact", field="velocity") for side in ("left", "bottom", "top")]
    + [fe.Neumann("right", STRESS, field="velocity")],
    exact={"velocity": V, "pressure": "u[0] = x[0] + x[1] - 1;"},
    name="stokes",
)


@fe.main
def main():
    mesh = fe.Mesh.box((8, 8))
    problem = fe.Problem(mesh, PHYSICS, degree=2)
    u = problem.solve()
    PETSc.Sys.Print(problem.summary(problem.report(u)))
    if picture := PETSc.Options().getString("u_picture", ""):
        problem.plot(picture, u, title="Stokes flow", label="speed", mesh_lines=True)

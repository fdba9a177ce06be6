"""Diffusion that depends on the solution, -∇·((1 + α u²)∇u) + u³ = f, by interior penalty and Newton's method.

    python examples/nonlinear_sipg.py -dm_plex_box_faces 16,16 -fe_degree 3 -snes_monitor
    mpiexec -n 4 python examples/nonlinear_sipg.py -dm_plex_dim 3 -dm_plex_box_faces 4,4,4 -dm_plex_simplex 0

u = sin(x + 1/2) cos(y) (cos(z)), whatever α, is given on the boundary by Nitsche's method. Newton's method begins at 0.

Scheme: interior penalty (-fe_backend sipg_gpu). Its adjoint term is the secant of f1 along the jump, so that the
Jacobian needs first derivatives of the physics only, and is exact: Newton's method converges quadratically. The penalty
follows the largest diffusivity of the states on the way. No matrix of the product is stored.
Things to try: -alphas 1,10,100, -fe_backend cg_gpu (the same program), -sipg_theta -1, -snes_rtol 1e-12, -fe_view.
"""

import sys

import petsc4py

import petsc_hdg as fe

petsc4py.init(sys.argv)

from petsc4py import PETSc

WAVE = "PetscReal wave = sin(x[0] + 0.5); for (d = 1; d < dim; ++d) wave *= cos(x[d]);"
PHYSICS = fe.Physics(
    {"u": 1},
    # f = dim (1 + α w²) w - 2 α w |∇w|² + w³, as -∇·∇w = dim w
    f0=WAVE
    + """
        PetscReal square = 1/tan(x[0] + 0.5)/tan(x[0] + 0.5);  /* |∇w|²/w² */
        for (d = 1; d < dim; ++d) square += tan(x[d])*tan(x[d]);
        square *= wave*wave;
        f0[0] = u[0]*u[0]*u[0] - (dim*(1 + alpha*wave*wave) - 2*alpha*square + wave*wave)*wave;
    """,
    f1="for (d = 0; d < dim; ++d) f1[d] = (1 + alpha*u[0]*u[0])*u_x[d];",
    constants={"alpha": 1.0},
    boundary=[fe.Dirichlet("boundary", "exact")],
    exact=WAVE + "u[0] = wave;",
    name="nonlinear diffusion",
)


@fe.main
def main():
    problem = fe.Problem(fe.Mesh.from_options(), PHYSICS, backend="sipg_gpu", degree=2)
    for alpha in map(float, PETSc.Options().getString("alphas", "1,10").split(",")):
        problem.set_constants(alpha=alpha)
        u = problem.solve()
        count, errors = problem.newton_iterations, problem.errors(u)
        PETSc.Sys.Print(f"alpha {alpha:g}   Newton steps {count}   error L2 {errors['L2']:.3e}   H1 {errors['H1']:.3e}")
    PETSc.Sys.Print(problem.summary(problem.report(u)))

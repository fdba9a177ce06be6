"""The p-Laplace equation, -∇·(|∇u|^(p-2) ∇u) = 1, for p from 2 to 6 in steps: continuation.

    python examples/p_laplacian.py -p 6 -snes_converged_reason

Scheme: continuous Lagrange elements; Newton's method starts each p from the solution before. p is a constant of the
physics: `set_constants` changes it and nothing is compiled again.
The solution is radial about the middle of the square, u = (p-1)/p 2^(-1/(p-1)) (1 - r^(p/(p-1))), so the error is
known; it is less smooth at the middle the larger p is.
Things to try: -p 1.6 (its steps go down), -p 12, -dm_refine 1, -fe_degree 1, one big step (-steps 1).
"""

import sys

import numpy as np
import petsc4py

import petsc_hdg as fe

petsc4py.init(sys.argv)

from petsc4py import PETSc

PHYSICS = fe.Physics(
    {"u": 1},
    f0="f0[0] = -1;",
    f1="""
        PetscReal square = 1e-8; /* regularised, for Newton's first steps where ∇u is 0 */
        for (d = 0; d < dim; ++d) square += u_x[d]*u_x[d];
        for (d = 0; d < dim; ++d) f1[d] = PetscPowReal(square, (p - 2)/2) * u_x[d];
    """,
    constants={"p": 2.0},
    boundary=[fe.Dirichlet("boundary", "exact")],
    exact="""
        const PetscReal q = p/(p - 1), square = x[0]*x[0] + x[1]*x[1];
        u[0] = PetscPowReal(0.5, q - 1)/q * (1 - PetscPowReal(square, q/2));
    """,
    name="p-Laplacian",
)


@fe.main
def main():
    options = PETSc.Options()
    last, steps = options.getReal("p", 6.0), options.getInt("steps", 8)
    mesh = fe.Mesh.box((25, 25), lower=(-1, -1), upper=(1, 1))
    problem = fe.Problem(mesh, PHYSICS, degree=2)
    u = problem.create_vec()
    for p in np.linspace(2.0, last, steps + 1):
        problem.set_constants(p=p)
        u = problem.solve(u)
        errors = problem.errors(u)
        steps = problem.newton_iterations
        PETSc.Sys.Print(f"p {p:5.2f}   Newton steps {steps:2d}   error L2 {errors['L2']:.2e}, H1 {errors['H1']:.2e}")
    PETSc.Sys.Print(problem.summary(problem.report(u)))
    if picture := options.getString("u_picture", ""):
        problem.plot(picture, u, title=f"p-Laplacian, p = {last:g}", label="u")

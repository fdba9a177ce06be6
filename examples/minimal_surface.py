"""The surface of least area through a given rim: -∇·(∇u / √(1 + |∇u|²)) = 0, a nonlinear equation.

    python examples/minimal_surface.py -dm_refine 1 -fe_degree 3 -snes_monitor

Scheme: continuous Lagrange elements, Newton's method; the Jacobian comes from the text of f1 by differentiation.
The rim is that of Scherk's surface, u = log(cos y / cos x), so the error is known.
Things to try: -fe_degree 1…4, -snes_linesearch_type, a wider square (the surface is infinitely steep at π/2), a rim of
your own.
"""

import sys

import petsc4py

import petsc_hdg as fe

petsc4py.init(sys.argv)

from petsc4py import PETSc

PHYSICS = fe.Physics(
    {"u": 1},
    f1="""
        PetscReal square = 1;
        for (d = 0; d < dim; ++d) square += u_x[d]*u_x[d];
        for (d = 0; d < dim; ++d) f1[d] = u_x[d] / PetscSqrtReal(square);
    """,
    boundary=[fe.Dirichlet("boundary", "exact")],
    exact="u[0] = PetscLogReal(PetscCosReal(x[1]) / PetscCosReal(x[0]));",
    name="minimal surface",
)


@fe.main
def main():
    mesh = fe.Mesh.box((24, 24), lower=(-1.2, -1.2), upper=(1.2, 1.2))
    problem = fe.Problem(mesh, PHYSICS, degree=2)
    u = problem.solve()
    PETSc.Sys.Print(f"Newton steps {problem.newton_iterations}")
    PETSc.Sys.Print(problem.summary(problem.report(u)))
    if picture := PETSc.Options().getString("u_picture", ""):
        problem.plot(picture, u, title="Scherk's minimal surface", label="height")

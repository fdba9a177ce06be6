"""A rubber beam is twisted: finite elasticity, -∇·P(∇u) = 0, with the neo-Hookean P = μ(F - F⁻ᵀ) + λ log(J) F⁻ᵀ.

    mpiexec -n 2 python examples/hyperelasticity.py -snes_converged_reason -u_picture beam.png

F = I + ∇u, J = det F. Scheme: continuous Lagrange elements on hexahedra, Newton's method with the Jacobian
differentiated from the text. The angle of the end is a constant of the physics: it grows in steps, each starts from the
one before. Things to try: -angle 6, -steps 12, -fe_degree 2, -dm_refine 1, another law (change f1 only), compression
(g[0] = -0.2*x[0]).
"""

import sys

import petsc4py

import petsc_hdg as fe

petsc4py.init(sys.argv)

from petsc4py import PETSc

PHYSICS = fe.Physics(
    {"u": 3},
    f1="""
        PetscReal F[9], C[9];
        for (c = 0; c < 9; ++c) F[c] = u_x[c];
        for (c = 0; c < 3; ++c) F[c*3+c] += 1;
        cofactors(F, C);
        const PetscReal J = F[0]*C[0] + F[1]*C[1] + F[2]*C[2];
        const PetscReal pressure = (lambda*PetscLogReal(J) - mu)/J;
        for (c = 0; c < 9; ++c) f1[c] = mu*F[c] + pressure*C[c];
    """,
    helpers="""
        static void cofactors(const PetscReal F[], PetscReal C[])
        {
          for (PetscInt i = 0; i < 3; ++i)
            for (PetscInt j = 0; j < 3; ++j) {
              const PetscInt p = (i+1)%3, q = (i+2)%3, r = (j+1)%3, s = (j+2)%3;
              C[i*3+j] = F[p*3+r]*F[q*3+s] - F[p*3+s]*F[q*3+r];
            }
        }
    """,
    constants={"mu": 1.0, "lambda": 4.0, "angle": 0.0},
    boundary=[
        fe.Dirichlet("left", [0, 0, 0]),
        fe.Dirichlet(
            "right",
            """
            const PetscReal c = cos(angle), s = sin(angle), y = x[1] - 0.5, z = x[2] - 0.5;
            g[0] = 0;
            g[1] = c*y - s*z - y;
            g[2] = s*y + c*z - z;
            """,
        ),
    ],
    name="neo-Hookean beam",
)


@fe.main
def main():
    options = PETSc.Options()
    angle, steps = options.getReal("angle", 3.141592653589793), options.getInt("steps", 6)
    mesh = fe.Mesh.box((16, 4, 4), simplex=False, upper=(4, 1, 1))
    problem = fe.Problem(mesh, PHYSICS)
    u = problem.create_vec()
    for step in range(1, steps + 1):
        problem.set_constants(angle=angle * step / steps)
        u = problem.solve(u)
        done, count, size = angle * step / steps, problem.newton_iterations, u.norm(PETSc.NormType.INFINITY)
        PETSc.Sys.Print(f"angle {done:.3f}   Newton steps {count}   largest displacement {size:.6f}")
    PETSc.Sys.Print(problem.summary(problem.report(u)))
    if picture := options.getString("u_picture", ""):
        shape = problem.cell_values(u)["u"]
        problem.plot(
            picture, u, displacement=shape, scale=1.0, mesh_lines=True, title="A twisted beam", label="displacement"
        )

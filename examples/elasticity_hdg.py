"""Cook's membrane, a clamped panel of nearly incompressible rubber under shear: hybridizable DG and Lagrange elements.

    python examples/elasticity_hdg.py -poisson 0.4999 -n 8
    mpiexec -n 2 python examples/elasticity_hdg.py -degrees 2,3 -u_picture cook.png

-∇·σ = 0, σ = λ tr(ε) I + 2μ ε, ε = (∇u + ∇uᵀ)/2, plane strain, Young's modulus 1; two components. Printed is the work
of the load, to which all discretizations come as they get finer.

Schemes: HDG (-fe_backend hdg_gpu), whose gradient is a function of u and its trace, and the same physics by cg_gpu. As
ν → 1/2, λ grows without bound: Lagrange elements of first order lock, that is they give a fraction of the work, HDG
does not. The trace is the displacement of the edges, in blocks of 2 (k + 1) unknowns.
Things to try: -poisson 0.3 (the schemes agree), -poisson 0.499999, -n 16, -hdg_tau 10 (stiffer), -ksp_type cg -pc_type
gamg with -ksp_converged_reason (hard work for it, unless -poisson 0.3).
"""

import sys

import numpy as np
import petsc4py

import petsc_hdg as fe

petsc4py.init(sys.argv)

from petsc4py import PETSc

PHYSICS = fe.Physics(
    {"u": 2},
    f1="""
        PetscReal trace = 0;
        for (c = 0; c < dim; ++c) trace += u_x[c*dim+c];
        for (c = 0; c < dim; ++c) {
          for (d = 0; d < dim; ++d) f1[c*dim+d] = mu*(u_x[c*dim+d] + u_x[d*dim+c]);
          f1[c*dim+c] += lambda*trace;
        }
    """,
    constants={"lambda": 1.0, "mu": 1.0},
    boundary=[fe.Dirichlet("clamped", [0, 0]), fe.Neumann("sheared", [0, 0.001])],
    stabilization="2*mu",
    name="Cook's membrane",
)


def membrane(n: int) -> fe.Mesh:
    """2 n² triangles in the panel with corners (0, 0), (48, 44), (48, 60), (0, 44)."""
    s, t = np.meshgrid(np.linspace(0, 1, n + 1), np.linspace(0, 1, n + 1), indexing="ij")
    points = np.stack([48 * s, 44 * s + t * (44 - 28 * s)], axis=-1).reshape(-1, 2)
    first = (np.arange(n)[:, None] * (n + 1) + np.arange(n)).ravel()
    lower, upper = [first, first + n + 1, first + n + 2], [first, first + n + 2, first + 1]
    side = np.arange(n)
    sides = {"clamped": np.stack([side, side + 1], axis=1)}
    sides["sheared"] = sides["clamped"] + n * (n + 1)
    return fe.Mesh.from_cells(np.concatenate([np.transpose(lower), np.transpose(upper)]), points, boundaries=sides)


def solve(mesh: fe.Mesh, backend: str, degree: int, poisson: float) -> tuple[fe.Problem, PETSc.Vec, float]:
    """The problem, its solution and the work of the load."""
    problem = fe.Problem(mesh, PHYSICS, backend=backend, degree=degree)
    problem.set_constants(mu=0.5 / (1 + poisson), **{"lambda": poisson / ((1 + poisson) * (1 - 2 * poisson))})
    u, load = problem.solve(), problem.create_vec()
    problem.snes.computeFunction(problem.create_vec(), load)  # F(0) = -load
    return problem, u, -load.dot(u)


@fe.main
def main():
    options = PETSc.Options()
    if not options.hasName("pc_type"):
        options["pc_type"] = "redundant"  # a direct solver on each rank
    degrees = [int(k) for k in options.getString("degrees", "1,2,3").split(",")]
    poisson = options.getReal("poisson", 0.4999)
    mesh = membrane(options.getInt("n", 8))
    for degree in degrees:
        works = {}
        for backend in ("cg_gpu", "hdg_gpu"):
            problem, u, works[backend] = solve(mesh, backend, degree, poisson)
        said = ", ".join(f"{backend} {work:.6f}" for backend, work in works.items())
        PETSc.Sys.Print(f"degree {degree}   work of the load: {said}")
    PETSc.Sys.Print(problem.summary(problem.report(u)))
    if picture := options.getString("u_picture", ""):
        shape = problem.cell_values(u)["u"]
        problem.plot(picture, u, displacement=shape, title="Cook's membrane", label="displacement")

"""Linear elasticity: a wrench turns a nut. -∇·σ = 0, σ = λ tr(ε) I + 2μ ε, ε = (∇u + ∇uᵀ)/2, plane strain.

    mpiexec -n 2 python examples/elasticity.py -ksp_monitor -u_picture wrench.png

Scheme: continuous Lagrange elements for the two components; GAMG gets the rigid-body modes by itself.
λ and μ are auxiliary fields, one value in each region of the mesh; the jaw holds, the ring carries a load.
Printed is the work of the load, which two ranks must agree on. Things to try: -fe_degree 2, -pc_type jacobi (count
the iterations), -fe_precision single, a softer grip.
"""

import sys
from pathlib import Path

import petsc4py

import petsc_hdg as fe

petsc4py.init(sys.argv)

from petsc4py import PETSc

MESH = Path(__file__).parent / "meshes" / "wrench.msh"
YOUNG, POISSON = {"steel": 2100.0, "grip": 300.0}, 0.3  # Young's modulus in 100 MPa

PHYSICS = fe.Physics(
    {"u": 2},
    f1="""
        const PetscReal lambda = a[0], mu = a[1];
        PetscReal trace = 0;
        for (c = 0; c < dim; ++c) trace += u_x[c*dim+c];
        for (c = 0; c < dim; ++c) {
          for (d = 0; d < dim; ++d) f1[c*dim+d] = mu*(u_x[c*dim+d] + u_x[d*dim+c]);
          f1[c*dim+c] += lambda*trace;
        }
    """,
    auxiliary={"lame": 2},
    boundary=[fe.Dirichlet("jaw", "g[0] = 0; g[1] = 0;"), fe.Neumann("ring", "g[0] = 0; g[1] = -0.05;")],
    name="elasticity",
)


def lame(young: float) -> tuple[float, float]:
    """λ and μ."""
    return young * POISSON / ((1 + POISSON) * (1 - 2 * POISSON)), young / (2 * (1 + POISSON))


@fe.main
def main():
    mesh = fe.Mesh.from_file(MESH)
    problem = fe.Problem(mesh, PHYSICS)
    problem.set_auxiliary("lame", {region: lame(young) for region, young in YOUNG.items()})
    u = problem.solve()

    rest = problem.create_vec()
    load = problem.create_vec()
    problem.snes.computeFunction(rest, load)  # F(0) = -load
    PETSc.Sys.Print(f"work of the load {-load.dot(u):.6e}, largest displacement {u.norm(PETSc.NormType.INFINITY):.4e}")
    PETSc.Sys.Print(problem.summary(problem.report(u)))
    if picture := PETSc.Options().getString("u_picture", ""):
        problem.plot(
            picture,
            u,
            displacement=problem.cell_values(u)["u"],
            title="A wrench turns a nut",
            label="displacement",
            cell_regions=mesh.cell_mask("grip"),
            boundaries={name: mesh.boundary_facets(name) for name in ("jaw", "ring")},
        )

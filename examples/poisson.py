"""Poisson's equation with a known solution, by any scheme: -∇·∇u = f, u = cos(πx) cos(πy) (cos(πz)).

    python examples/poisson.py -dm_plex_box_faces 32,32 -fe_degree 2
    mpiexec -n 4 python examples/poisson.py -dm_plex_filename examples/meshes/wrench.msh -fe_degree 3 -ksp_monitor

Without a mesh file it solves on the unit square, or the unit cube with -dm_plex_dim 3; -dm_plex_simplex 0 takes
quadrilaterals or hexahedra. Things to try: -fe_view, -fe_device gpu, -fe_precision single, -log_view,
-fe_report run.json, -u_file u.vtu, -u_picture u.png.
"""

import sys

import petsc4py

import petsc_hdg as fe

petsc4py.init(sys.argv)

from petsc4py import PETSc

EXACT = "u[0] = 1; for (d = 0; d < dim; ++d) u[0] *= cos(PETSC_PI*x[d]);"

# ∫ φ f0 + ∇φ·f1 = 0 with f1 = ∇u and f0 = -f = -dim π² u_exact
PHYSICS = fe.Physics(
    {"u": 1},
    f0="""
        PetscReal exact = 1;
        for (d = 0; d < dim; ++d) exact *= cos(PETSC_PI*x[d]);
        f0[0] = -dim*PETSC_PI*PETSC_PI*exact;
    """,
    f1="for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
    boundary=[fe.Dirichlet("boundary", "exact")],
    exact={"u": EXACT},
    name="poisson",
)


@fe.main
def main():
    mesh = fe.Mesh.from_options()
    problem = fe.Problem(mesh, PHYSICS)
    u = problem.solve()
    report = problem.report(u)
    PETSc.Sys.Print(problem.summary(report))
    files = PETSc.Options()
    if files.hasName("u_file"):
        problem.write(files.getString("u_file"), u)
    if files.hasName("u_picture"):
        problem.plot(files.getString("u_picture"), u, title="u")

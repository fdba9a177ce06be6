"""A wind turns a ring of heat by a quarter turn, -∇·(ε∇u - b u) = f with b = (y, -x): hybridizable DG with upwinding.

    python examples/convection_diffusion_hdg.py -faces 24 -fe_degree 3 -epsilon 1e-6 -u_picture ring.png

u = exp(-((r - 1/2)/w)²) depends on the distance r from the corner alone, so that b·∇u = 0; f balances the diffusion.
Heat enters on the left, where u is given (as on the top), and leaves at the bottom with the wind: there ε∂u/∂n = 0.

Scheme: HDG (-fe_backend hdg_gpu). The flux through a facet is f1·n - τ (u - û) with f1 = ε∇u - b u. With τ = |b·n| the
trace û becomes the value upwind of the facet and the flux -b·n times that value: no diffusion is needed. A larger τ
smears, τ below |b·n|/2 is unstable. The flux out of each cell is its source, so what enters leaves: by named sides.
Things to try: -hdg_tau 1, -hdg_tau "0.5*fabs(x[1]*n[0] - x[0]*n[1]) + epsilon", -epsilon 1e-8 -width 0.02 (a steep
ring on coarse cells: overshoots stay near it), the same with -fe_backend cg_gpu -pc_type lu (its noise reaches all
sides), -faces 64.
"""

import sys

import petsc4py

import petsc_hdg as fe

petsc4py.init(sys.argv)

from mpi4py import MPI
from petsc4py import PETSc

OUTFLOW = "f0[0] = (x[1]*n[0] - x[0]*n[1])*u[0];"  # f1·n = -f0
PHYSICS = fe.Physics(
    {"u": 1},
    f0="""  /* -f = ε∇·∇u of the known solution: u'' + u'/r */
        const PetscReal r = PetscSqrtReal(x[0]*x[0] + x[1]*x[1]), s = (r - 0.5)/width;
        f0[0] = epsilon*exp(-s*s)*((4*s*s - 2)/width - 2*s/r)/width;
    """,
    f1="f1[0] = epsilon*u_x[0] - x[1]*u[0]; f1[1] = epsilon*u_x[1] + x[0]*u[0];",
    constants={"epsilon": 1e-4, "width": 0.1},
    boundary=[
        fe.Dirichlet("left", "exact"),
        fe.Dirichlet("top", "exact"),
        fe.Robin("bottom", OUTFLOW),
        fe.Robin("right", OUTFLOW),
    ],
    exact="""
        const PetscReal s = (PetscSqrtReal(x[0]*x[0] + x[1]*x[1]) - 0.5)/width;
        u[0] = exp(-s*s);
    """,
    stabilization="epsilon + fabs(x[1]*n[0] - x[0]*n[1])",
    name="convection-diffusion",
)


@fe.main
def main():
    options = PETSc.Options()
    faces = options.getInt("faces", 16)
    mesh = fe.Mesh.box((faces, faces))
    problem = fe.Problem(mesh, PHYSICS, backend="hdg_gpu", degree=2)
    problem.set_constants(epsilon=options.getReal("epsilon", 1e-4), width=options.getReal("width", 0.1))
    u = problem.solve()
    values = problem.cell_values(u)["u"]
    low, high = mesh.comm.allreduce(values.min(), MPI.MIN), mesh.comm.allreduce(values.max(), MPI.MAX)
    PETSc.Sys.Print(f"least and largest value {low:.4f}, {high:.4f}")

    through = {side: float(problem.flux(side, u)[0]) for side in ("left", "bottom", "right", "top")}
    for side, flux in through.items():
        PETSc.Sys.Print(f"heat that leaves through {side:<6} {-flux:+.6e}")  # ∫ (b u - ε∇u)·n
    PETSc.Sys.Print(problem.summary(problem.report(u)))
    if picture := options.getString("u_picture", ""):
        problem.plot(picture, u, title="A ring of heat in a turning wind", label="u")

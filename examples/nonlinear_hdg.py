"""A standing shock of Burgers' equation, ∇·(b u²/2 - ε∇u) = 0, b = (3/5, 4/5), by hybridizable DG and Newton's method.

    python examples/nonlinear_hdg.py -epsilon 0.01 -snes_monitor

u = -tanh((b·x - 1/2)/(2ε)) falls from 1 to -1 within a few ε: the wind b u blows into the shock from both sides. It is
given on the boundary. ε is a constant of the physics; it is halved in steps, each from the trace of the one before.

Scheme: HDG (-fe_backend hdg_gpu) on quadrilaterals. PETSc's SNES sees the trace alone; at each residual the nonlinear
problem inside each cell is solved on the device, to rounding, by Newton's method from the last solution on; the
Jacobian on the trace is the derivative of that, so SNES converges quadratically. The stabilization is that of the
fastest wind: |b·n|, as |u| ≤ 1.
Things to try: -fe_degree 5, -epsilon 0.003 -faces 32, -hdg_tau 0.3, -hdg_local_max_it 1, -hdg_trace_mat element.
"""

import sys

import petsc4py

import petsc_hdg as fe

petsc4py.init(sys.argv)

from petsc4py import PETSc

PHYSICS = fe.Physics(
    {"u": 1},
    f1="for (d = 0; d < dim; ++d) f1[d] = epsilon*u_x[d] - 0.5*u[0]*u[0]*(d == 0 ? 0.6 : 0.8);",
    constants={"epsilon": 0.1},
    boundary=[fe.Dirichlet("boundary", "exact")],
    exact="u[0] = -tanh((0.6*x[0] + 0.8*x[1] - 0.5)/(2*epsilon));",
    stabilization="epsilon + fabs(0.6*n[0] + 0.8*n[1])",
    name="Burgers",
)


@fe.main
def main():
    options = PETSc.Options()
    faces, last = options.getInt("faces", 12), options.getReal("epsilon", 0.025)
    mesh = fe.Mesh.box((faces, faces), simplex=False)
    problem = fe.Problem(mesh, PHYSICS, backend="hdg_gpu", degree=3)
    u = problem.create_vec()
    epsilon = 0.1
    while True:
        problem.set_constants(epsilon=epsilon)
        u = problem.solve(u)
        errors, count = problem.errors(u), problem.newton_iterations
        PETSc.Sys.Print(f"epsilon {epsilon:.4f}   Newton steps {count:2d}   error L2 {errors['L2']:.2e}")
        if epsilon <= last:
            break
        epsilon = max(last, epsilon / 2)
    PETSc.Sys.Print(problem.summary(problem.report(u)))
    if picture := options.getString("u_picture", ""):
        problem.plot(picture, u, title="A standing shock", label="u")

"""The heat equation ∂u/∂t - ∇·∇u = f on prisms, polygon times interval: dG in space and time, slab by slab.

    python examples/heat_space_time.py -faces 64 -polytopes 400 -fe_degree 2 -poly_time_degree 2 -slabs 20

u = sin(2πt) exp(-5 |x - c|²) on the unit square, c its centre, for 0 < t < 1: f and the Dirichlet data follow, and both
move. A problem as in section 4.1 of Dong, Georgoulis and Kappas 2021, on polygons that METIS makes of many triangles.

Scheme: interior penalty in space, Legendre polynomials in time on each slab, upwind jumps between slabs (their eq. 9).
The space is P_{p,q} (`tensor`: each polynomial in time with the whole space) or P_p (`total`: degrees of space and time
sum up to p, fewer unknowns for the same order). With -local 3 polygons near the centre take three steps in a slab, the
others one; fluxes between them are integrated over the finer steps, so that nothing is lost.
Things to try: -poly_time_space total, -slabs 40 (an order q + 1 in L2(L2), 2q + 1 at the ends of slabs as far as the
space allows), -local 3 -slabs 7, -poly_time_degree 0 (as backward Euler), -fe_backend sipg_gpu, -ksp_monitor.
"""

import sys

import numpy as np
import petsc4py
import sympy

import petsc_hdg as fe
from petsc_hdg.physics import Symbols, manufactured

petsc4py.init(sys.argv)

from petsc4py import PETSc

S = Symbols(2, {"u": 1})
X, T = S.x, S.t
EXACT = sympy.sin(2 * sympy.pi * T) * sympy.exp(-5 * ((X[0] - 0.5) ** 2 + (X[1] - 0.5) ** 2))
PHYSICS = fe.Physics(
    {"u": 1},
    f0=S.rate("u") + manufactured(X, EXACT, lambda u, grad: grad) - sympy.diff(EXACT, T),
    f1=S.grad("u"),
    boundary=[fe.Dirichlet("boundary", "exact")],
    exact=EXACT,
    name="heat",
)


def steps_near_centre(mesh, steps: int) -> np.ndarray:
    """`steps` [polytope] where a polytope's box lies within 0.3 of the centre, else 1."""
    lower, upper = mesh.polytopes.boxes(mesh)
    near = np.linalg.norm((lower + upper) / 2 - 0.5, axis=1) < 0.3
    return np.where(near, steps, 1)


@fe.main
def main():
    options = PETSc.Options()
    faces, slabs = options.getInt("faces", 24), options.getInt("slabs", 10)
    mesh = fe.Mesh.box((faces, faces))
    defaults = {"backend": "poly_gpu", "degree": 2, "poly_agglomerates": options.getInt("polytopes", 64)}
    problem = fe.Problem(mesh, PHYSICS, **defaults)
    local = options.getInt("local", 1)
    space_time = fe.SpaceTime(problem, local_steps=steps_near_centre(problem.mesh, local) if local > 1 else None)
    norms = space_time.norms()
    u = space_time.march(problem.create_vec(), 0.0, 1.0, slabs, norms)

    PETSc.Sys.Print(
        f"{slabs} slabs of {space_time.num_unknowns} unknowns, degree {problem.options.degree} in space and "
        f"{space_time.degree} in time ({problem.options.poly_time_space}); {space_time.linear_iterations} iterations"
    )
    PETSc.Sys.Print("   ".join(f"{name} {value:.3e}" for name, value in norms.values.items()))
    if picture := options.getString("u_picture", ""):
        problem.plot(picture, space_time.at(1 - 0.5 / slabs), 1 - 0.5 / slabs, title="Half a slab before the end")
    PETSc.Sys.Print(f"error at t = 1: L2 {problem.errors(u, 1.0)['L2']:.3e}")

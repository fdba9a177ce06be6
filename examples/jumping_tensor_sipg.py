"""Diffusion by a tensor that jumps by powers of ten between two regions, -∇·(K∇u) = f, by interior penalty.

    python examples/jumping_tensor_sipg.py -faces 16 -fe_degree 1
    mpiexec -n 4 python examples/jumping_tensor_sipg.py -faces 16 -fe_degree 3 -jumps 0,6 -dm_plex_simplex 0

K = [[2, 1], [1, 3]] left of x = 1/2 and 10^j [[3, -1], [-1, 1]] right of it. The known solution is smooth in each half;
u and the flux (K∇u)·n are continuous, ∇u jumps. The flux through the interface stays of size one whatever the jump, and
so do the errors.

Scheme: interior penalty (-fe_backend sipg_gpu). The penalty of a facet is that of the larger normal diffusivity of its
two cells, n·Kn, found on the device. K is constant in each cell: an auxiliary field, given by a function of the
centroids (regions of a mesh file are given by name: {"west": 2, "east": 300}).
Things to try: -fe_view, -fe_degree 2 (then the errors are those of the sine in y), -jumps 8, -sipg_penalty_scale 0.1
-sipg_check_coercivity, -sipg_theta -1, -ksp_view, -u_picture u.png.
"""

import sys

import numpy as np
import petsc4py
import sympy

import petsc_hdg as fe
from petsc_hdg.physics import Symbols

petsc4py.init(sys.argv)

from petsc4py import PETSc

symbols = Symbols(2, {"u": 1}, auxiliary={"K": 3, "east": 1}, constants=("jump",))
x, y = symbols.x
jump = symbols.constant("jump")


def half(kxx, kxy, kyy):
    """Solution and source where K = [[kxx, kxy], [kxy, kyy]]: u = cos y and K∇u·(1, 0) = 1 + y at the interface."""
    s = x - sympy.Rational(1, 2)
    u = sympy.cos(y) + s * (1 + y + kxy * sympy.sin(y)) / kxx + s**2 / kxx
    flux = kxx * u.diff(x) + kxy * u.diff(y), kxy * u.diff(x) + kyy * u.diff(y)
    return u, flux[0].diff(x) + flux[1].diff(y)


WEST, EAST = half(2, 1, 3), half(3 * jump, -jump, jump)
K = sympy.Matrix([[symbols.given("K")[0], symbols.given("K")[1]], [symbols.given("K")[1], symbols.given("K")[2]]])
PHYSICS = fe.Physics(
    {"u": 1},
    f0=WEST[1] + symbols.given("east") * (EAST[1] - WEST[1]),  # nodes on the interface belong to both
    f1=K * symbols.grad("u"),
    auxiliary={"K": fe.Auxiliary(3, "cell"), "east": fe.Auxiliary(1, "cell")},
    constants={"jump": 1.0},
    boundary=[fe.Dirichlet("boundary", "exact")],
    exact=sympy.Piecewise((WEST[0], x < sympy.Rational(1, 2)), (EAST[0], True)),
    name="jumping tensor",
)


@fe.main
def main():
    options = PETSc.Options()
    faces, jumps = options.getInt("faces", 8), options.getString("jumps", "0,3,6").split(",")
    mesh = fe.Mesh.box((faces, faces), simplex=options.getBool("dm_plex_simplex", True))
    problem = fe.Problem(mesh, PHYSICS, backend="sipg_gpu", degree=2)
    problem.set_auxiliary("east", lambda at: 1.0 * (at[..., 0] > 0.5))
    for power in map(float, jumps):
        east = 10**power
        problem.set_constants(jump=east)
        problem.set_auxiliary(
            "K", lambda at, east=east: np.where(at[..., :1] < 0.5, [2.0, 1.0, 3.0], east * np.array([3.0, -1.0, 1.0]))
        )
        u = problem.solve()
        found = problem.errors(u)
        PETSc.Sys.Print(
            f"jump 1e{power:+.0f}   iterations {problem.linear_iterations:3d}   error L2 {found['L2']:.3e}   "
            f"H1 {found['H1']:.3e}"
        )
    if picture := options.getString("u_picture", ""):
        problem.plot(picture, u, title="u on both sides of a jump", label="u")

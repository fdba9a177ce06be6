"""Heat that swirls upwards and spreads sideways only, -∇·(K∇u) + w·∇u + c u = f in 3D: K is semidefinite.

    python examples/degenerate_poly.py -n 6 -agglomerates 60 -u_picture u.png
    mpiexec -n 4 python examples/degenerate_poly.py -n 32 -agglomerates 4000 -fe_degree 4 -fe_device gpu

K = z/10 diag(1, 1, 0) vanishes on the floor and has nothing along z, w = (1/2 - y, x - 1/2, 1) and c = 1 + x: a problem
with nonnegative characteristic form on tetrahedra put together, as in section 4.2 of Dong, Georgoulis, Kappas (2021).
The paper's coefficients are not legible in our copy; these are of its class. Where n·Kn > 0 the boundary takes data, on
the floor the wind brings them in, through the top it leaves: Dirichlet("boundary") does what is right on each.

Scheme: polytopic DG (-fe_backend poly_gpu), upwinding. u = (1 + z) exp(-10 r²) is steep near the axis: three runs have
degree p - 2 everywhere, p near the axis falling to p - 2 outside (a degree for each polytope), and p everywhere.
Things to try: -fe_degree 5 -poly_space tensor, -fe_view, -fe_pmat none -pc_type jacobi, -u_file u.vtu
(polytopes and degrees are in it).
"""

import sys

import numpy as np
import petsc4py
import sympy

import petsc_hdg as fe
from petsc_hdg.physics import Symbols

petsc4py.init(sys.argv)

from petsc4py import PETSc

symbols = Symbols(3, {"u": 1})
x, y, z = symbols.x
HALF = sympy.Rational(1, 2)
EXACT = (1 + z) * sympy.exp(-10 * ((x - HALF) ** 2 + (y - HALF) ** 2))
K = z / 10 * sympy.diag(1, 1, 0)
WIND, REACTION = sympy.Matrix([HALF - y, x - HALF, 1]), 1 + x


def source():
    """f of the known solution."""
    slope = sympy.Matrix([EXACT.diff(d) for d in (x, y, z)])
    flux = K * slope
    return WIND.dot(slope) + REACTION * EXACT - sum(flux[i].diff(d) for i, d in enumerate((x, y, z)))


PHYSICS = fe.Physics(
    {"u": 1},
    f0=WIND.dot(symbols.grad("u")) + REACTION * symbols.value("u") - source(),
    f1=K * symbols.grad("u"),
    boundary=[fe.Dirichlet("boundary", "exact")],
    exact=EXACT,
    name="degenerate diffusion",
)


@fe.main
def main():
    options = PETSc.Options()
    n, count = options.getInt("n", 4), options.getInt("agglomerates", 24)
    base, high = fe.Mesh.box((n, n, n)), fe.Options.from_petsc(degree=3).degree
    low = max(high - 2, 0)

    def falling(centre):
        """Degrees [polytope] at places [polytope, 3]."""
        away = np.linalg.norm(centre[:, :2] - 0.5, axis=1)
        return np.clip(np.round(high - 5 * np.maximum(away - 0.2, 0)), low, high).astype(int)

    kinds = {"low": low, "falling": falling, "high": high}
    for name in options.getString("kinds", "low,falling,high").split(","):
        mesh = fe.agglomerate(base, count, degrees=kinds[name])
        problem = fe.Problem(mesh, PHYSICS, backend="poly_gpu", degree=3)
        u = problem.solve()
        found = problem.errors(u)
        PETSc.Sys.Print(
            f"degrees {name:<8} unknowns {problem.num_unknowns:6d}   iterations {problem.linear_iterations:3d}   "
            f"error L2 {found['L2']:.3e}   H1 {found['H1']:.3e}"
        )
    PETSc.Sys.Print(problem.summary(problem.report(u)))
    if file := options.getString("u_file", ""):
        problem.write(file, u)
    if picture := options.getString("u_picture", ""):
        problem.plot(picture, u, title="Swirl on polyhedra", label="u")

"""Convection-diffusion on a domain whose upper side oscillates, -∇·(ε∇u) + w·∇u = f, on a few polytopes of many facets.

    python examples/oscillating_boundary_poly.py -agglomerates 32,128,512 -fe_degree 2 -u_picture u.png
    mpiexec -n 4 python examples/oscillating_boundary_poly.py -triangles 503596 -waves 64 -agglomerates 8337

The domain is the unit square up to y = 1 + (sin 2πmx)/4m, drawn by triangles that resolve the m waves; cells need not.
Agglomerates of the triangles keep the shape and are as few as the solution asks for: u = 1 + sin(π(1 + x)(1 + y)²/8),
w = (2 - y², 2 - x) as in Houston, Schwab and Süli (2002). 503 596 triangles were also taken in section 4.1 of Dong,
Georgoulis and Kappas (2021), whose mesh is not at hand: this one is a mapped grid.

Scheme: polytopic DG (-fe_backend poly_gpu): polynomials of total degree on each polytope, upwinding, integrals over the
triangles. The error of L2 falls about as N^(-(p+1)/2), down to polytopes of a few triangles, whose shapes are ragged.
Things to try: -epsilon 1e-8 (nothing but convection), -fe_degree 5, -poly_space tensor, -fe_view,
-waves 16, -fewer_cells (fewer triangles to integrate on), -mesh_lines (draws them), -u_file u.vtu.
"""

import sys

import numpy as np
import petsc4py
import sympy

import petsc_hdg as fe
from petsc_hdg.physics import Symbols

petsc4py.init(sys.argv)

from meshes.oscillating import oscillating
from petsc4py import PETSc

symbols = Symbols(2, {"u": 1}, constants=("epsilon",))
x, y = symbols.x
epsilon = symbols.constant("epsilon")
EXACT = 1 + sympy.sin(sympy.pi * (1 + x) * (1 + y) ** 2 / 8)
WIND = sympy.Matrix([2 - y**2, 2 - x])
SLOPE = sympy.Matrix([EXACT.diff(x), EXACT.diff(y)])
SOURCE = WIND.dot(SLOPE) - epsilon * (EXACT.diff(x, 2) + EXACT.diff(y, 2))
PHYSICS = fe.Physics(
    {"u": 1},
    f0=WIND.dot(symbols.grad("u")) - SOURCE,
    f1=epsilon * symbols.grad("u"),
    constants={"epsilon": 1e-2},
    boundary=[fe.Dirichlet("boundary", "exact")],
    exact=EXACT,
    name="convection-diffusion",
)


@fe.main
def main():
    options = PETSc.Options()
    base = fe.Mesh.from_cells(*oscillating(options.getInt("triangles", 4608), options.getInt("waves", 6)))
    last = None
    for count in map(int, options.getString("agglomerates", "16,64,256").split(",")):
        mesh = fe.agglomerate(base, count)
        if options.getBool("fewer_cells", False):
            mesh = fe.fewer_cells(mesh)
        problem = fe.Problem(mesh, PHYSICS, backend="poly_gpu", degree=2)
        problem.set_constants(epsilon=options.getReal("epsilon", 1e-2))
        u = problem.solve()
        found = problem.errors(u)
        total = mesh.comm.allreduce(mesh.polytopes.count)
        fall = "" if last is None else f"   order {2 * np.log(last[1] / found['L2']) / np.log(total / last[0]):.2f}"
        PETSc.Sys.Print(
            f"polytopes {total:6d}   unknowns {problem.num_unknowns:7d}   iterations {problem.linear_iterations:3d}   "
            f"error L2 {found['L2']:.3e}   H1 {found['H1']:.3e}{fall}"
        )
        last = total, found["L2"]
    PETSc.Sys.Print(problem.summary(problem.report(u)))
    if file := options.getString("u_file", ""):
        problem.write(file, u)
    if picture := options.getString("u_picture", ""):
        lines = options.getBool("mesh_lines", False)
        problem.plot(picture, u, title="Convection-diffusion on polytopes", label="u", mesh_lines=lines)

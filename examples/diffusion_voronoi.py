"""Diffusion on polygons, a Voronoi-like mesh: -∇·(κ∇u) = f, by polytopic DG.

    python examples/diffusion_voronoi.py -cells 50,200,800 -fe_degree 3 -u_picture voronoi.png
    mpiexec -n 4 python examples/diffusion_voronoi.py -cells 2000 -fe_view

Polygons go in as lists of their vertices; each is one cell, with polynomials of x and y on its bounding box.
u = sin(πx) sin(πy) exp(x), κ = 1 + x + y²; the left and right sides are given, through the others flows what is given.

Scheme: polytopic DG (-fe_backend poly_gpu). The error falls as h^(p+1) in L2 and h^p in the gradient. Lloyd's steps
make the polygons round; without them some are slivers, which the penalty follows.
Things to try: -fe_degree 0 and 6, -poly_space tensor, -lloyd 0, -seed 2, -pc_type lu -fe_pmat aij,
-mesh_lines (the triangles that the polygons are integrated on), fe.polygons_from_file("mine.vtu").
"""

import sys

import numpy as np
import petsc4py
import sympy

import petsc_hdg as fe
from petsc_hdg.physics import Symbols

petsc4py.init(sys.argv)

from meshes.voronoi import voronoi
from petsc4py import PETSc

symbols = Symbols(2, {"u": 1})
x, y = symbols.x
EXACT = sympy.sin(sympy.pi * x) * sympy.sin(sympy.pi * y) * sympy.exp(x)
KAPPA = 1 + x + y**2
SOURCE = -((KAPPA * EXACT.diff(x)).diff(x) + (KAPPA * EXACT.diff(y)).diff(y))
PHYSICS = fe.Physics(
    {"u": 1},
    f0=-SOURCE,
    f1=KAPPA * symbols.grad("u"),
    boundary=[
        fe.Dirichlet("left", "exact"),
        fe.Dirichlet("right", "exact"),
        fe.Neumann("bottom", -KAPPA * EXACT.diff(y)),
        fe.Neumann("top", KAPPA * EXACT.diff(y)),
    ],
    exact=EXACT,
    name="diffusion",
)


def sides(cells, points):
    """Names of the unit square's sides → edges [edge, 2] of the polygons on them."""
    edges = np.concatenate([np.stack([cell, np.roll(cell, -1)], axis=1) for cell in cells])
    ends = points[edges]
    where = {"left": (0, 0), "right": (0, 1), "bottom": (1, 0), "top": (1, 1)}
    return {name: edges[(ends[:, :, axis] == side).all(axis=1)] for name, (axis, side) in where.items()}


@fe.main
def main():
    options, last = PETSc.Options(), None
    for count in map(int, options.getString("cells", "50,200").split(",")):
        cells, points = voronoi(count, options.getInt("seed", 1), options.getInt("lloyd", 3))
        mesh = fe.polygons(cells, points, boundaries=sides(cells, points))
        problem = fe.Problem(mesh, PHYSICS, backend="poly_gpu", degree=2)
        u = problem.solve()
        found = problem.errors(u)
        text = f"polygons {count:5d}   iterations {problem.linear_iterations:3d}"
        for name, value in found.items():
            order = "" if last is None else f" ({2 * np.log(last[1][name] / value) / np.log(count / last[0]):.2f})"
            text += f"   {name} {value:.3e}{order}"
        PETSc.Sys.Print(text)
        last = count, found
    PETSc.Sys.Print(problem.summary(problem.report(u)))
    if picture := options.getString("u_picture", ""):
        lines = options.getBool("mesh_lines", False)
        problem.plot(picture, u, title="Diffusion on polygons", label="u", mesh_lines=lines)

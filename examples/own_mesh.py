"""A mesh of your own, from arrays: a flower of rings of triangles, with a named rim and a named middle. -∇·∇u = 0.

    mpiexec -n 2 python examples/own_mesh.py -fe_degree 3 -u_picture flower.png

The arrays are read on rank 0 only and dealt out to all ranks. u = r³ cos 3θ = x³ - 3xy² is harmonic on any shape: with
-fe_degree 3 the error is rounding. Things to try: petals = 3, -dm_refine 1, regions (see kappa in demo.py), or a file
instead: fe.Mesh.from_file("mine.msh"), .vtu, .xdmf, .med … with the names that are in it.
"""

import sys

import numpy as np
import petsc4py

import petsc_hdg as fe

petsc4py.init(sys.argv)

from petsc4py import PETSc

PHYSICS = fe.Physics(
    {"u": 1},
    f1="for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
    boundary=[fe.Dirichlet("rim", "exact")],
    exact="u[0] = x[0]*x[0]*x[0] - 3*x[0]*x[1]*x[1];",
    name="flower",
)


def flower(petals: int = 6, rings: int = 12):
    """Points [point, 2], triangles [cell, 3] and the edges of the rim [edge, 2]; ring k has 6k points."""
    points, rows = [(0.0, 0.0)], [[0]]
    for ring in range(1, rings + 1):
        theta = 2 * np.pi * np.arange(6 * ring) / (6 * ring)
        radius = ring / rings * (1 + 0.3 * (ring / rings) ** 2 * np.cos(petals * theta))
        rows.append(list(range(len(points), len(points) + 6 * ring)))
        points += list(zip(radius * np.cos(theta), radius * np.sin(theta), strict=True))
    cells = []
    for ring in range(1, rings + 1):
        inner, outer = rows[ring - 1], rows[ring]
        for sector in range(6):
            for k in range(ring):
                i, o = sector * (ring - 1) + k, sector * ring + k
                a, b, c = inner[i % len(inner)], outer[o], outer[(o + 1) % len(outer)]
                cells.append((a, b, c))
                if k < ring - 1:
                    cells.append((a, c, inner[(i + 1) % len(inner)]))
    rim = np.array(rows[-1])
    return np.array(points), np.array(cells), np.stack([rim, np.roll(rim, -1)], axis=1)


@fe.main
def main():
    points, cells, rim = flower()
    mesh = fe.Mesh.from_cells(cells, points, boundaries={"rim": rim})
    problem = fe.Problem(mesh, PHYSICS, degree=2)
    u = problem.solve()
    PETSc.Sys.Print(problem.summary(problem.report(u)))
    if picture := PETSc.Options().getString("u_picture", ""):
        problem.plot(picture, u, title="A flower of triangles", label="u", mesh_lines=True)

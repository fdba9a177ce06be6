"""Bad inputs to polytopic DG: name → (call of communicator and folder, pattern), a part of bad_input_table.py.

Bad polygons and agglomerates are in tests/mesh.
"""

from __future__ import annotations

from pathlib import Path

import petsc_hdg as fe
from petsc_hdg.options import Options

MESHES = Path(__file__).parents[1] / "meshes"


def diffusion(f1: str) -> fe.Physics:
    return fe.Physics(
        {"u": 1}, "f0[0] = -1;", f"for (d = 0; d < dim; ++d) f1[d] = {f1};", boundary=[fe.Dirichlet("left", 0.0)]
    )


def problem(c, physics=None, mesh=None, **settings):
    mesh = mesh or fe.Mesh.box((3, 3), comm=c)
    given = Options(backend="poly_gpu", check_kernels=False, **settings)
    return fe.Problem(mesh, physics or diffusion("u_x[d]"), given)


def agglomerated(c, **given):
    return fe.agglomerate(fe.Mesh.box((3, 3), comm=c), **given)


BAD_POLY = {
    "polytopes of degree 7": (lambda c, f: problem(c, degree=7), "degree 7; poly_gpu takes 0 to 6"),
    "tensor polynomials of too high a degree": (
        lambda c, f: problem(c, degree=4, poly_space="tensor"),
        "polynomials of degree 8 on each triangle, 6 is the most",
    ),
    "polytopes of two degrees by field": (
        lambda c, f: problem(
            c, fe.Physics({"u": 1, "v": fe.Field(1, degree_offset=-1)}, {"u": "f0[0] = u[0];"}), degree=2
        ),
        "degree_offset .* all fields of poly_gpu have the degree",
    ),
    "polytopes of curved cells": (
        lambda c, f: problem(c, mesh=fe.Mesh.from_file(MESHES / "disk_tri.msh", comm=c)),
        "curved cells .*polytopes of poly_gpu",
    ),
    "more polytopes than cells": (lambda c, f: problem(c, poly_agglomerates=19), "19"),
    "diffusivity of both signs": (
        lambda c, f: problem(c, diffusion("(x[0] - 0.5)*u_x[d]")).solve(),
        "positive in some places and negative in others",
    ),
    "degrees of another length": (lambda c, f: agglomerated(c, count=4, degrees=[1, 2, 1]), "4"),
    "degree 9 of a polytope": (lambda c, f: agglomerated(c, count=4, degrees=9), "9"),
    "no agglomerates": (lambda c, f: agglomerated(c, count=0), "0"),
}

"""`python -m petsc_hdg precompile [script.py …]`: fill the cache of compiled kernels for a quick first solve."""

from __future__ import annotations

import argparse
import time

from petsc4py import PETSc

from ..mesh import Mesh
from ..options import Options
from ..physics import library
from ..physics.conditions import Dirichlet
from ..problem import Problem

FACES = {
    "triangle": ((1, 1), True),
    "quadrilateral": ((1, 1), False),
    "tetrahedron": ((1, 1, 1), True),
    "hexahedron": ((1, 1, 1), False),
}


def main(arguments: list[str]) -> int:
    """Compile the kernels of a ready-made physics for the shapes and degrees asked for, on this rank's device."""
    parser = argparse.ArgumentParser(prog="petsc-hdg precompile")
    parser.add_argument(
        "-physics",
        default="poisson",
        choices=("poisson", "elasticity", "minimal_surface", "p_laplacian", "neo_hookean"),
    )
    parser.add_argument("-cells", nargs="+", default=list(FACES), choices=list(FACES))
    parser.add_argument("-degrees", nargs="+", type=int, default=[1, 2])
    given, _ = parser.parse_known_args(arguments)
    for cell in given.cells:
        for degree in given.degrees:
            start = time.perf_counter()
            _compile(cell, degree, given.physics)
            PETSc.Sys.Print(f"  {given.physics}, {cell}, degree {degree}: {time.perf_counter() - start:.1f} s")
    return 0


def _compile(cell: str, degree: int, name: str) -> None:
    faces, simplex = FACES[cell]
    dim = len(faces)
    build = getattr(library, name)
    zero = "for (c = 0; c < Nc; ++c) g[c] = 0;"
    takes_dim = name in ("elasticity", "neo_hookean")
    physics = build(*((dim,) if takes_dim else ()), boundary=[Dirichlet("boundary", zero)])
    problem = Problem(Mesh.box(faces, simplex=simplex), physics, Options.from_petsc(degree=degree))
    problem.callbacks  # noqa: B018  compiles and checks
    problem.operator.matrix_kernels  # noqa: B018

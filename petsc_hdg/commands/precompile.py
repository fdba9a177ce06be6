"""`python -m petsc_hdg precompile [script.py …] [options]`: fill the cache of compiled kernels for a quick first solve.

A program's text holds the physics, so its digest is that of the user's own: a script is run with its options up to its
first solve, on whatever mesh they give. A coarse one will do (`-dm_plex_box_faces 8,8`), as programs do not depend on
it; the coarsest launch others of their kernels, and PoCL makes machine code at a kernel's first launch. Without a
script a ready-made physics is compiled for schemes, cells and degrees.
"""

from __future__ import annotations

import argparse
import runpy
import sys
import time
from unittest import mock

from petsc4py import PETSc

from ..discretizations import SCHEMES
from ..errors import OptionError, PetscHdgError, SolveError, collectively
from ..mesh import Mesh, agglomerate
from ..options import Options
from ..physics import library
from ..physics.layout import Dirichlet
from ..problem import Problem
from .arguments import own_arguments

FACES = {
    "triangle": ((3, 3), True),
    "quadrilateral": ((3, 3), False),
    "tetrahedron": ((2, 2, 2), True),
    "hexahedron": ((2, 2, 2), False),
}
PHYSICS = ("poisson", "elasticity", "minimal_surface", "p_laplacian", "neo_hookean")
ENTRIES = ("solve", "attach", "create_snes")  # of a Problem: where a script begins to solve


def main(arguments: list[str]) -> int:
    """Compile the kernels of scripts, or of a ready-made physics, on this rank's device."""
    scripts = [name for name in arguments if name.endswith(".py")]
    if scripts:
        options = [a for a in arguments if a not in scripts]
        for script in scripts:
            _timed(script, lambda script=script: _of_script(script, options))
        return 0
    given, _ = own_arguments(_parser(), arguments)
    for scheme in dict.fromkeys(Options.from_petsc(backend=s).backend for s in given.schemes):
        for cell in given.cells:
            for degree in given.degrees:
                title = f"{given.physics}, {scheme}, {cell}, degree {degree}"
                _timed(title, lambda case=(scheme, cell, degree): _of_library(given.physics, *case))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="petsc-hdg precompile", description=__doc__, allow_abbrev=False)
    parser.add_argument("-physics", default="poisson", choices=PHYSICS)
    parser.add_argument("-schemes", nargs="+", default=list(SCHEMES), choices=list(SCHEMES))
    parser.add_argument("-cells", nargs="+", default=list(FACES), choices=list(FACES))
    parser.add_argument("-degrees", nargs="+", type=int, default=[1, 2])
    return parser


def _timed(title: str, compile_it) -> None:
    start = time.perf_counter()
    said = compile_it()
    PETSc.Sys.Print(f"  {title}: {said or f'{time.perf_counter() - start:.1f} s'}")


def compile_all(problem: Problem) -> None:
    """Have everything compiled and checked that a solve, its preconditioner and its results take. Collective."""
    snes, few = problem.create_snes(), {"max_it": 1}
    snes.setTolerances(**few)
    snes.getKSP().setTolerances(**few)
    with mock.patch.dict(problem.__dict__, {"snes": snes}):
        try:
            problem.solve()
        except SolveError:  # one iteration is seldom enough
            if problem.missing_auxiliary:
                raise
    with collectively(problem.comm), mock.patch.object(problem.device.opened, "waits", False):
        problem.operator.compile_variants()
        for kernel in problem.operator.all_kernels().values():
            kernel.program  # noqa: B018  compiled now
    u = problem.create_vec()
    problem.cell_values(u)
    if problem.physics.has_exact:
        problem.errors(u)


class _Reached(BaseException):
    """A script has come to its first solve; no Exception, so that no handler of errors takes it."""


def _of_script(script: str, options: list[str]) -> str:
    """Run a script up to its first solve, and compile what that takes. Returns what to say, if anything."""

    def reached(problem, *_, **__):
        with mock.patch.multiple(Problem, **plain):
            compile_all(problem)
        raise _Reached

    plain = {name: getattr(Problem, name) for name in ENTRIES}
    with mock.patch.multiple(Problem, **dict.fromkeys(ENTRIES, reached)), mock.patch.object(sys, "argv", [script]):
        sys.argv += options
        try:
            runpy.run_path(script, run_name="__main__")
        except _Reached:
            return ""
        except OSError as error:
            raise OptionError(f"'{script}' cannot be run ({error}); give the path of a Python script") from None
        except SystemExit as ended:
            if ended.code not in (None, 0):
                raise
    return "ended without a solve, nothing was compiled for one"


def _of_library(name: str, scheme: str, cell: str, degree: int) -> str:
    """Compile a ready-made physics. Returns why not, where the scheme or the device does not take it."""
    faces, simplex = FACES[cell]
    build = getattr(library, name)
    zero = "for (c = 0; c < Nc; ++c) g[c] = 0;"
    takes_dim = name in ("elasticity", "neo_hookean")
    physics = build(*((len(faces),) if takes_dim else ()), boundary=[Dirichlet("boundary", zero)])
    mesh = Mesh.box(faces, simplex=simplex)
    if scheme == "poly_gpu":
        mesh = agglomerate(mesh, mesh.num_cells // 2)
    try:
        compile_all(Problem(mesh, physics, Options.from_petsc(backend=scheme, degree=degree)))
    except PetscHdgError as error:
        return f"left out: {error}"
    return ""

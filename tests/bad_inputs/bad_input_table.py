"""Bad inputs to physics, options, problems, devices, solvers: name → (call of communicator and folder, pattern).

Bad meshes are in tests/mesh/bad_inputs.py. Each call is collective and must raise a PetscHdgError of one sentence.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from bad_input_calls import (
    by_database,
    clamped,
    mesh,
    no_platform,
    on_a_device_without,
    physics,
    problem,
    solve,
    with_options,
)
from bad_input_destroyed import BAD_DESTROYED
from bad_input_given import BAD_GIVEN
from bad_input_options import BAD_OPTIONS
from bad_input_physics import BAD_PHYSICS
from bad_input_poly import BAD_POLY
from bad_input_vectors import BAD_VECTORS

import petsc_hdg as fe
from petsc_hdg.options import Options
from petsc_hdg.physics import library

MESHES = Path(__file__).parents[1] / "meshes"


def heated(c, value):
    made = problem(c, library.poisson(kappa=fe.Auxiliary(1), boundary=[fe.Dirichlet("boundary", 0.0)]))
    made.set_auxiliary("kappa", value)
    return made


def regional(c):
    made = fe.Problem(
        fe.Mesh.from_file(MESHES / "regions.msh", comm=c),
        library.poisson(kappa=fe.Auxiliary(1), boundary=[fe.Dirichlet("wall", 0.0)]),
        Options(check_kernels=False),
    )
    made.set_auxiliary("kappa", {"west": 1.0})


def mixed_cells(c, folder):
    physics = library.poisson(boundary=[fe.Dirichlet("boundary", 0.0)])
    fe.Problem(fe.Mesh.from_file(MESHES / "mixed.msh", comm=c), physics, Options(backend="hdg_gpu"))


def unset(c):
    problem(c, library.poisson(kappa=fe.Auxiliary(1), boundary=[fe.Dirichlet("boundary", 0.0)])).solve()


def below_a_file(folder):
    (folder / "file").touch()
    return folder / "file"


def report_to(c, folder, name: str):
    made = problem(c, report=str(below_a_file(folder) / name))
    made.report(made.create_vec())


def clamped_with(f0: str):
    return physics(f0, boundary=[fe.Dirichlet("boundary", 0.0)])


NOT_FINITE = "stopped without a solution|finite|NaN"

BAD = {
    **BAD_PHYSICS,
    **BAD_OPTIONS,
    # What a problem is made of
    "a file's name for a mesh": (
        lambda c, f: fe.Problem("ring.msh", clamped()),
        r"A problem takes a Mesh, and 'ring.msh' is given; make one with fe.Mesh.from_file\(name\)",
    ),
    "a misspelt keyword": (
        lambda c, f: fe.Problem(mesh(c), clamped(), degre=2),
        r"degre= is not an option; did you mean degree\?",
    ),
    "an option of PETSc's as a keyword": (
        lambda c, f: fe.Problem(mesh(c), clamped(), ksp_rtol=1e-10),
        r"ksp_rtol= is not an option; PETSc's options go to the command line, or PETSc.Options\(\)\['ksp_rtol'\]",
    ),
    # Labels and data
    "unknown label of an essential condition": (
        lambda c, f: problem(c, physics(boundary=[fe.Dirichlet("lid", 0.0)])),
        "no boundary called 'lid'; known here: .*'top'",
    ),
    "unknown label of a natural condition": (
        lambda c, f: problem(c, physics(boundary=[fe.Neumann("lid", "g[0] = 1;")])),
        "no boundary called 'lid'",
    ),
    "auxiliary field not set": (lambda c, f: unset(c), "'kappa' has no values yet: call problem.set_auxiliary"),
    "unknown auxiliary field": (
        lambda c, f: problem(c).set_auxiliary("kappa", 1.0),
        "no auxiliary field 'kappa'.*none",
    ),
    "auxiliary array of the wrong shape": (lambda c, f: heated(c, np.ones((3, 5))), r"array of shape \(3, 5\)"),
    "auxiliary function with complex values": (
        lambda c, f: heated(c, lambda x: 1j * x[..., 0]),
        "the function for auxiliary field 'kappa' is not made of numbers .some are complex",
    ),
    "auxiliary function of the wrong shape": (lambda c, f: heated(c, lambda x: np.ones(7)), r"returned shape \(7,\)"),
    "auxiliary not for all regions": (lambda c, f: regional(c), "no value in 22 cells: the regions west do not cover"),
    "errors without an exact solution": (
        lambda c, f: (lambda p: p.errors(p.create_vec()))(problem(c)),
        "no exact solution to compare with",
    ),
    # Devices
    "no such device": (
        lambda c, f: by_database(c, fe_device="abacus"),
        "no OpenCL device matches 'abacus'; it may be gpu",
    ),
    "no such device number": (lambda c, f: by_database(c, fe_device="99"), "no OpenCL device matches '99'"),
    "no device at all": (lambda c, f: no_platform(c), "no OpenCL device was found: install an OpenCL driver"),
    "no double precision": (
        lambda c, f: on_a_device_without(c, has_fp64=False),
        "double precision.*-fe_precision single",
    ),
    "no local memory": (
        lambda c, f: on_a_device_without(c, {"kernel": "transpose", "degree": 4}, local_bytes=64),
        "local memory, the limit is 64",
    ),
    # Solvers
    "NaN from the physics": (
        lambda c, f: solve(c, clamped_with("f0[0] = sqrt(-1 - u[0]*u[0]);")),
        NOT_FINITE,
    ),
    "NaN in the Jacobian": (
        lambda c, f: solve(c, clamped_with("f0[0] = u[0] >= 0 ? sqrt(u[0]) - 1 : -1;")),
        NOT_FINITE,
    ),
    "singular Jacobian": (
        lambda c, f: solve(c, physics("f0[0] = -1;", None), pc_type="lu" if c.size == 1 else "jacobi"),
        "has no solution: .* must balance",
    ),
    "too few iterations": (
        lambda c, f: solve(c, clamped_with("f0[0] = -x[0];"), ksp_max_it="1", pc_type="none"),
        "DIVERGED_MAX_IT after 1 iteration;",
    ),
    "unknown solver": (lambda c, f: solve(c, clamped(), ksp_type="magic"), "magic|ksp_type"),
    "unknown preconditioner": (lambda c, f: solve(c, clamped(), pc_type="magic"), "magic|pc_type"),
    # Output
    "report below a file": (lambda c, f: report_to(c, f, "r.json"), "r.json: .*file is no folder"),
    "picture below a file": (
        lambda c, f: (lambda p: p.plot(below_a_file(f) / "u.png", p.create_vec()))(problem(c)),
        "u.png",
    ),
    "VTU below a file": (
        lambda c, f: (lambda p: p.write(below_a_file(f) / "u.vtu", p.create_vec()))(problem(c)),
        "u.vtu",
    ),
    # Meshes, of which tests/mesh has many more
    "missing mesh file": (
        lambda c, f: with_options(lambda: fe.Mesh.from_options(c), dm_plex_filename="none.msh"),
        "none.msh does not exist",
    ),
    "mixed cells": (mixed_cells, "hdg_gpu takes meshes of one shape"),
    **BAD_POLY,
    **BAD_VECTORS,
    **BAD_DESTROYED,
    **BAD_GIVEN,
}

"""What public functions take by their parameters, and things that they do not take: a part of bad_input_table.py.

CALLS: name → (function of a communicator and a folder that gives the callable and its good arguments,
{argument: (what else to give, pattern)}). Each is tried alone, the others being good.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import meshio
import numpy as np
from bad_input_calls import FLUX, clamped, mesh, problem
from petsc4py import PETSc
from sample_meshes import data_set

import petsc_hdg as fe
from petsc_hdg.options import Options

MESHES = Path(__file__).parents[1] / "meshes"
NOTHING, WORD, NAN, EMPTY, RAGGED, DEEP = None, "a", float("nan"), np.zeros(0), [[1, 2], [3]], np.ones((2, 2, 2))
NO_NUMBER = (NOTHING, WORD, NAN, float("inf"), 1j, EMPTY, RAGGED, DEEP, True)
NO_WHOLE = (*NO_NUMBER, -1, 0.5, 2**70)
NO_ARRAY = (NOTHING, WORD, NAN, 3, RAGGED, DEEP, object(), 1j)
NO_TEXT = (3, NAN, EMPTY, DEEP, b"a")
NO_FUNCTION = (WORD, 3, EMPTY)
NO_PATH = (NOTHING, 3, EMPTY, DEEP, RAGGED)
SQUARE = [[0.0, 0], [1, 0], [0, 1], [1, 1]]
TETRAHEDRON = [[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], [[[0, 2, 1], [0, 1, 3], [1, 2, 3], [0, 3, 2]]]


PROBLEMS: dict = {}


def kept(c, name: str = "plain"):
    """A problem that is made once for each number of ranks: `plain`, `heat` or `hybridized`."""
    if (c.size, name) not in PROBLEMS:
        physics, backend = {
            "plain": (clamped(), "cg_gpu"),
            "heat": (heat(), "sipg_gpu"),
            "hybridized": (clamped(), "hdg_gpu"),
        }[name]
        PROBLEMS[c.size, name] = problem(c, physics, backend=backend)
    return PROBLEMS[c.size, name]


def heat() -> fe.Physics:
    return fe.Physics({"u": 1}, "f0[0] = u_t[0] - 1;", FLUX, boundary=[fe.Dirichlet("boundary", 0.0)])


@cache
def slabs(made: fe.Problem) -> fe.SpaceTime:
    return fe.SpaceTime(made, degree=1)


def made_mesh(f, **good):
    """Cases of what makes a mesh: the arguments that all have in common."""
    dealt = {
        "comm": ((WORD, 3, EMPTY), "lives on a communicator, and .* is given; give one of mpi4py or petsc4py"),
        "prefix": (NO_TEXT, "The prefix of a mesh' options is given as .*; give a text"),
        "overlap": (NO_WHOLE, "The overlap of a mesh is given as .*; give a whole number"),
        "partition_seed": ((WORD, NAN, EMPTY, -1, 1j), "partition_seed is given as .*; give a whole number"),
    }
    return lambda c, folder: (f, {"comm": c, **good}), dealt


def box(c, f):
    return fe.Mesh.box, {"faces": (2, 2), "comm": c}


def cells(c, f):
    return fe.Mesh.from_cells, {"cells": [[0, 1, 2], [1, 3, 2]], "points": SQUARE, "comm": c}


def polygons(c, f):
    return fe.polygons, {"cells": [[0, 1, 3, 2]], "points": SQUARE, "comm": c}


def polyhedra(c, f):
    return fe.polyhedra, {"cells": TETRAHEDRON[1], "points": TETRAHEDRON[0], "comm": c}


def in_time(c, f):
    made = kept(c, "heat")
    return made.solve_in_time, {"u0": made.create_vec(), "t1": 0.2, "dt": 0.1}


def marching(c, f):
    made = kept(c, "heat")
    return slabs(made).march, {"u0": made.create_vec(), "t0": 0.0, "t1": 0.1, "steps": 1}


def seen(name: str, of: str = "plain", **more):
    """Cases of a method that looks at a solution at a time."""

    def attempt(c, f):
        made = kept(c, of)
        good = {key: value(f) if callable(value) else value for key, value in more.items()}
        return getattr(made, name), {**good, "u": made.create_vec()}

    return attempt


AT = {"t": (NO_NUMBER[1:], "The time t is given as .*; give a finite number")}
FILE = {"path": (NO_PATH, "is given as .*; give the path of a file")}
NO_MESH = (NOTHING, WORD, 3, EMPTY, np.zeros(3))
LABEL = {"label": ((NOTHING, 3, EMPTY, DEEP, ["left"]), "is given by its name, not by .*: take them one by one")}


def takes_mesh(function, who: str, **more):
    return lambda c, f: (function, {"mesh": mesh(c), **more}), {
        "mesh": (NO_MESH, f"{who} takes a Mesh, and .* is given")
    }


CALLS = {
    "Mesh": (
        lambda c, f: (fe.Mesh, {"dm": mesh(c).dm}),
        {"dm": (NO_MESH, "A mesh is made of a DMPlex, and .* is given; fe.Mesh.from_file")},
    ),
    "Mesh.box": (
        box,
        {
            "faces": ((*NO_ARRAY, EMPTY, [2.5, 2], [NAN, 2], [10**20, 1]), "box|dimension 0"),
            "lower": ((WORD, RAGGED, DEEP, 1j, [0, 0, 0], EMPTY, NAN), "orner"),
            "upper": ((WORD, RAGGED, DEEP, 1j, [1, 1, 1], object()), "orner"),
            "simplex": ((NOTHING, WORD, NAN, EMPTY, DEEP, 2), "simplex is given as .*; give True or False"),
        },
    ),
    "dealt box": made_mesh(fe.Mesh.box, faces=(2, 2)),
    "dealt file": made_mesh(fe.Mesh.from_file, path=MESHES / "regions.msh"),
    "dealt options": made_mesh(fe.Mesh.from_options),
    "Mesh.from_file": (
        lambda c, f: (fe.Mesh.from_file, {"path": MESHES / "regions.msh", "comm": c}),
        {"path": (NO_PATH, "A mesh file is given as .*; give the path of a file")},
    ),
    "Mesh.from_cells": (
        cells,
        {
            "cells": (NO_ARRAY, "[Cc]ells"),
            "points": (NO_ARRAY, "[Pp]oints|dimensions"),
            "boundaries": ((WORD, 3, DEEP, EMPTY, [1]), "The boundaries are given as a .*; give a dict"),
            "regions": ((WORD, 3, DEEP, EMPTY, [1]), "The cell regions are given as a .*; give a dict"),
            "cell": ((3, DEEP, EMPTY), "Cells of shape .* were asked for; accepted shapes"),
        },
    ),
    "Mesh.from_meshio": (
        lambda c, f: (fe.Mesh.from_meshio, {"mesh": meshio.Mesh(SQUARE, [("triangle", [[0, 1, 2]])]), "comm": c}),
        {"mesh": ((NOTHING, WORD, 3, EMPTY), "A mesh of meshio is given as .*; give a meshio.Mesh")},
    ),
    "Mesh.from_pyvista": (
        lambda c, f: (fe.Mesh.from_pyvista, {"mesh": data_set([5], {5: [[0, 1, 2]]}, SQUARE), "comm": c}),
        {"mesh": ((NOTHING, WORD, 3, EMPTY), "A mesh of PyVista is given as .*; give a pyvista.UnstructuredGrid")},
    ),
    **{
        f"Mesh.{name}": (lambda c, f, name=name: (getattr(mesh(c), name), {"label": "left"}), LABEL)
        for name in ("facet_mask", "boundary_facets", "closure_mask", "cell_mask")
    },
    **{
        f"Mesh.name_{part}": (
            lambda c, f, part=part: (
                getattr(mesh(c), f"name_{part}"),
                {"name": "new", "where": lambda x: x[..., 0] < 0.6},
            ),
            {
                "name": ((NOTHING, 3, EMPTY, "", "boundary", "depth"), "A part of a mesh cannot be called"),
                "where": (
                    (NOTHING, WORD, 3, EMPTY, len, lambda x: x[..., 0], lambda x: x > 0, lambda x: x[..., 0] > 9),
                    "laces of 'new'",
                ),
            },
        )
        for part in ("boundary", "region")
    },
    "agglomerate": takes_mesh(fe.agglomerate, "agglomerate", count=4),
    "coarsen": takes_mesh(fe.coarsen, "coarsen", count=4),
    "fewer_cells": takes_mesh(fe.fewer_cells, "fewer_cells"),
    "rebalance": takes_mesh(fe.rebalance, "rebalance", cost=1.0),
    "agglomerate by count": (
        lambda c, f: (fe.agglomerate, {"mesh": mesh(c), "count": 4}),
        {
            "count": ((WORD, NAN, 2.5, EMPTY, DEEP, True, -1, 10**20), "polytopes were asked for"),
            "degrees": ((WORD, NAN, -1, EMPTY, RAGGED, DEEP, 2**31), "[Dd]egree"),
            "cost": ((WORD, NAN, EMPTY, RAGGED, DEEP, 1j), "[Cc]ost"),
        },
    ),
    "agglomerate by label": (
        lambda c, f: (fe.agglomerate, {"mesh": fe.Mesh.from_file(MESHES / "regions.msh", comm=c), "label": "west"}),
        {"label": ((3, NAN, (), EMPTY, PETSc.Vec(), [None]), "label|by its name")},
    ),
    "agglomerate by groups": (
        lambda c, f: (fe.agglomerate, {"mesh": mesh(c), "groups": lambda x: np.zeros(len(x), int)}),
        {"groups": ((WORD, 3, EMPTY, RAGGED, DEEP), "[Gg]roups")},
    ),
    "polygons": (
        polygons,
        {
            "cells": ((*NO_ARRAY, PETSc.Vec()), "olygon"),
            "points": (NO_ARRAY, "[Pp]oints"),
            "boundaries": ((WORD, 3, DEEP), "The boundaries are given as a"),
            "regions": ((WORD, 3, DEEP), "The regions are given as a"),
        },
    ),
    "polyhedra": (
        polyhedra,
        {
            "cells": ((*NO_ARRAY, [3], PETSc.Vec()), "olyhedr"),
            "points": (NO_ARRAY, "[Pp]oints"),
            "boundaries": ((WORD, 3, DEEP), "The boundaries are given as a"),
        },
    ),
    "polygons_from_file": (lambda c, f: (fe.polygons_from_file, {"path": "a.vtu", "comm": c}), FILE),
    "Problem": (
        lambda c, f: (fe.Problem, {"mesh": mesh(c), "physics": clamped(), "options": Options(check_kernels=False)}),
        {
            "physics": ((NOTHING, WORD, EMPTY), "A problem takes a Physics, and .* is given; fe.Physics makes one"),
            "options": ((WORD, 3, EMPTY, DEEP), "A problem takes Options, and .* is given; leave them out"),
        },
    ),
    "options of a problem": (
        lambda c, f: (fe.Problem, {"mesh": mesh(c), "physics": clamped(), "check_kernels": False}),
        {
            "prefix": (NO_TEXT, "The prefix of options is given as .*; give a text"),
            "degree": ((NOTHING, WORD, NAN, EMPTY, DEEP, 1.5, True), "-fe_degree .*: give a whole number"),
            "backend": ((NOTHING, 3, WORD), "-fe_backend"),
            "deterministic": ((NOTHING, WORD, NAN), "-fe_deterministic .*: give true or false"),
            "mesh_ranks": ((1, WORD), "mesh_ranks= comes too late"),
            "sipg_penalty_scale": ((NOTHING, WORD, 1j, NAN), "-sipg_penalty_scale .*: give a number"),
        },
    ),
    "options by hand": (
        lambda c, f: (lambda **o: problem(c, **o), {}),
        {"degree": ((NOTHING, WORD, NAN, EMPTY, 99), "-fe_degree .*: give a whole number|takes 1 to")},
    ),
    "attach": (
        lambda c, f: (kept(c).attach, {"solver": PETSc.SNES().create(kept(c).dm.comm)}),
        {"solver": ((NOTHING, WORD, EMPTY), "A problem is attached to a SNES or a TS, and .* is given")},
    ),
    "set_auxiliary": (
        lambda c, f: (kept(c).set_auxiliary, {"name": "kappa", "value": 1.0}),
        {"name": ((NOTHING, 3, EMPTY, DEEP), "there is no auxiliary field")},
    ),
    "solve_in_time": (
        in_time,
        {
            "t0": (NO_NUMBER, "t0 is given as .*; give a finite number"),
            "t1": (NO_NUMBER, "t1 is given as .*; give a finite number"),
            "dt": ((*NO_NUMBER, 0, -1, 1e-300), "time step"),
            "monitor": (NO_FUNCTION, "monitor of a run in time is given as .*; give a function, or leave it out"),
        },
    ),
    "cell_values": (seen("cell_values"), AT),
    "at": (
        seen("at", points=[[0.5, 0.5]]),
        {
            **AT,
            "points": (
                (NOTHING, WORD, NAN, RAGGED, EMPTY, [[2.0, 2.0]]),
                "[Pp]oints? .*(numbers|coordinates|of the mesh)",
            ),
        },
    ),
    "flux": (seen("flux", label="left"), {**AT, **LABEL}),
    "flux of a trace": (seen("flux", "hybridized", label="left"), {**AT, **LABEL}),
    "integral": (seen("integral", integrand="u[0]"), AT),
    "field": (
        seen("field", given="u[0]"),
        {
            **AT,
            "name": (NO_TEXT, "The name of a field is given"),
            "over": (NO_TEXT, "The boundary of a field is given"),
        },
    ),
    "to_numpy": (
        seen("to_numpy"),
        {
            **AT,
            "fields": ((WORD, 3, EMPTY), "Fields to write are given"),
            "gather": (NO_TEXT[1:], "give True or False"),
        },
    ),
    "write": (seen("write", path=lambda f: f / "u.vtu"), {**AT, **FILE}),
    "write_trace": (seen("write_trace", "hybridized", path=lambda f: f / "u.vtu"), {**AT, **FILE}),
    "plot": (
        seen("plot", path=lambda f: f / "u.png"),
        {**AT, "path": (NO_PATH[1:], FILE["path"][1]), "boundaries": ((WORD, 3, EMPTY, DEEP), "boundaries")},
    ),
    "checkpoint": (
        seen("checkpoint", path=lambda f: f / "u.h5", angle=1.0),
        {
            **AT,
            **FILE,
            "step": (NO_WHOLE, "The number of steps is given as .*; give a whole number"),
            "angle": (NO_NUMBER, "The number 'angle' is given as .*; give a finite number"),
        },
    ),
    "restart": (
        lambda c, f: (kept(c).restart, {"path": f / "no.h5"}),
        {
            "path": ((3, EMPTY, DEEP), "is given as .*; give the path"),
            "ts": ((WORD, 3), "goes into a TS, and .* is given"),
        },
    ),
    "summary": (
        lambda c, f: (kept(c).summary, {}),
        {"report": ((WORD, 3, EMPTY, PETSc.Vec()), "A report is given as .*; give what problem.report returns")},
    ),
    "load_steps": (
        lambda c, f: (lambda values: list(kept(c).load_steps(values, kept(c).create_vec())), {}),
        {"values": ((NOTHING, WORD, 3, PETSc.Vec()), "The steps of a load are given as .*; give a list of its values")},
    ),
    "Device.select": (
        lambda c, f: (fe.Device.select, {}),
        {
            "choice": ((NOTHING, 3, EMPTY), "a device was asked for by .*; give gpu, cpu"),
            "comm": ((WORD, 3, EMPTY), "a device was asked for on .*; give a communicator of mpi4py or petsc4py"),
        },
    ),
    "Device.from_vec": (
        lambda c, f: (fe.Device.from_vec, {}),
        {"vec": ((NOTHING, WORD, EMPTY, PETSc.Vec()), "a device was asked for by .*; give a PETSc Vec")},
    ),
    "Physics": (
        lambda c, f: (fe.Physics, {"fields": {"u": 1}, "f0": "f0[0] = -1;", "f1": FLUX}),
        {
            "fields": ((NOTHING, WORD, EMPTY, DEEP), "fields are given as a|field"),
            "auxiliary": ((WORD, EMPTY, DEEP), "auxiliary fields are given as a"),
        },
    ),
    "main": (lambda c, f: (fe.main, {}), {"function": ((NOTHING, WORD), "fe.main decorates a function")}),
    "SpaceTime": (
        lambda c, f: (fe.SpaceTime, {"problem": kept(c, "heat"), "degree": 1}),
        {
            "problem": ((NOTHING, WORD, EMPTY), "Space-time takes a Problem, and .* is given"),
            "degree": ((WORD, NAN, EMPTY, DEEP, -1, 9), "poly_time_degree is .*; give 0 to 3"),
            "space": ((3, WORD, EMPTY, DEEP), "poly_time_space is .*; give tensor or total"),
            "points": ((WORD, NAN, EMPTY, DEEP, -1, 10**9), "points in time"),
        },
    ),
    "Physics.check": (
        lambda c, f: (clamped().check, {"dim": 2}),
        {"dim": ((NOTHING, WORD, NAN, EMPTY, DEEP, 4, -1), "was asked for in .* dimensions; 1, 2 and 3 are possible")},
    ),
    "begin": (
        lambda c, f: (slabs(kept(c, "heat")).begin, {"u": kept(c, "heat").create_vec(), "time": 0.0, "length": 0.1}),
        {
            "u": ((NOTHING, WORD), "a solution, a PETSc Vec, is wanted"),
            "time": (NO_NUMBER, "The time of a slab is given as .*; give a finite number"),
            "length": (NO_NUMBER, "The length of a slab is given as .*; give a finite number"),
        },
    ),
    "march": (
        lambda c, f: (
            slabs(kept(c, "heat")).march,
            {"u0": kept(c, "heat").create_vec(), "t0": 0.0, "t1": 0.1, "steps": 1},
        ),
        {
            "u0": ((NOTHING, WORD), "a solution, a PETSc Vec, is wanted"),
            "t0": (NO_NUMBER, "t0 is given as .*; give a finite number"),
            "t1": (NO_NUMBER, "t1 is given as .*; give a finite number"),
            "steps": ((*NO_WHOLE, 0), "The number of slabs of space-time is given as .*; give a whole number"),
            "monitor": (NO_FUNCTION, "The monitor of slabs is given as .*; give a function"),
        },
    ),
}


def tried(attempt, argument: str, value):
    """The call of a function with one argument that is not good."""

    def call(c, f):
        function, good = attempt(c, f)
        return function(**{**good, argument: value})

    return call


BAD_GIVEN = {
    f"{name}({argument}: {place} {type(value).__name__})": (tried(attempt, argument, value), pattern)
    for name, (attempt, arguments) in CALLS.items()
    for argument, (values, pattern) in arguments.items()
    for place, value in enumerate(values)
}
# One of each function, which is tried on several ranks too.
ON_RANKS = {next(name for name in BAD_GIVEN if name.startswith(f"{call}(")) for call in CALLS}

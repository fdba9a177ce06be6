"""Description of a problem in a checkpoint, and the state; both for any partition. Ctrl-C and SIGTERM end a run that
writes checkpoints after its step, with a checkpoint of it.
"""

from __future__ import annotations

import json
import re
import signal
import sys
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from mpi4py import MPI
from petsc4py import PETSc

from ... import stages
from ...errors import CheckpointError
from ...mesh.canonical import FINE
from ...output import checkpoint_file
from ...output.checkpoint_file import unclear
from ..results.results import claim_series

NAME = re.compile(r"\w[\w-]*")
_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_received = 0  # the signal that waits for the next checkpoint
_waits = False  # whether signals wait


@dataclass(frozen=True)
class Restart:
    """The state that a checkpoint holds.

    u        PETSc.Vec of unknowns
    t, step  time, and number of steps done: in time, of a load, slabs
    kind     what wrote it: `time` (TS), `slabs` (SpaceTime), `loads`, `newton` (within a solve), or `state`
    numbers  those that the user gave with Problem.checkpoint
    details  what else the kind needs, for example dt;  vectors: more vectors, by name
    """

    u: PETSc.Vec
    t: float
    step: int
    kind: str
    numbers: dict
    details: dict
    vectors: dict = field(default_factory=dict)


def identity(problem) -> dict:
    """Mesh, unknowns and physics of a problem, the same on any number of ranks. Collective at first use."""
    if problem.checkpoints.identity is None:
        problem.checkpoints.identity = _identity(problem)
    return problem.checkpoints.identity


def _identity(problem) -> dict:
    disc, mesh, options, unknowns = problem.discretization, problem.mesh, problem.options, problem.checkpoints.unknowns
    places = {(c.label, c.side or "") for c in (*problem.physics.dirichlet, *problem.physics.natural)}
    return {
        "cell": mesh.cell,
        "cells": unknowns.cells.total,
        "box": unknowns.cells.mesh.corners.ravel().tolist(),
        "places": unknowns.cells.digest,
        "sides": unknowns.cells.digest_of_boundaries(sorted(places)),
        "scheme": disc.name,
        "degree": options.degree,
        "condensed": problem.is_condensed,
        "space": options.poly_space if disc.name == "poly_gpu" else "",
        "unknowns": unknowns.order.total,
        "order": unknowns.digest,
        "fields": {f.name: f.components for f in problem.physics.fields},
        "physics": problem.physics.digest,
    }


# What is compared in turn, and how a difference is told; {0} is the checkpoint's and {1} the problem's.
_WORDS = (
    ("scheme", "it is of the scheme {0}, and this run has -{prefix}fe_backend {1}"),
    ("degree", "it is of -{prefix}fe_degree {0}, and this run has {1}"),
    ("condensed", "it was written {0} eliminated interiors of cells, and this run is {1} them (-{prefix}cg_condense)"),
    ("space", "it is of -{prefix}poly_space {0}, and this run has {1}"),
    ("fields", "its fields and their components are {0}, and this physics has {1}"),
    ("cell", "its mesh has cells of shape {0}, and this one {1}"),
    ("cells", "the number of its cells is {0}, and that of this mesh {1}"),
    ("box", "its mesh reaches from {0}, and this one from {1}"),
    ("places", "its mesh has as many cells as this one at other places"),
    (
        "unknowns",
        "the number of its unknowns is {0}, and that of this run {1}: other polytopes, or other essential components",
    ),
    ("order", "its unknowns belong to other polytopes, or other components are essential"),
    ("physics", "its physics has another text, name, boundary condition or constant's name"),
    ("sides", "conditions of its physics stand on other facets of the mesh"),
)


def _check(problem, path, given: dict) -> None:
    """Raise CheckpointError unless a checkpoint is of this problem. Collective."""
    mine = identity(problem)
    for key, words in _WORDS:
        theirs = given.get(key)
        if not alike(theirs, mine[key]):
            raise unclear(path)
        if not _same(key, theirs, mine[key]):
            shown = [_shown(value) for value in (theirs, mine[key])]
            raise CheckpointError(
                f"The checkpoint {path} does not fit: {words.format(*shown, prefix=problem.prefix)}; restart with the "
                "mesh, physics and options that it was written with."
            )


def _same(key: str, theirs, mine) -> bool:
    """Return True if what two problems have agrees: corners of meshes as closely as places are told apart."""
    if key != "box":
        return theirs == mine
    theirs, mine = (np.reshape(box, (2, -1)) for box in (theirs, mine))
    return theirs.shape == mine.shape and np.abs(theirs - mine).max() <= np.ptp(mine, axis=0).max() / FINE


def _shown(value) -> str:
    if isinstance(value, bool):
        return "with" if value else "without"
    if isinstance(value, dict):
        return ", ".join(f"{name}: {count}" for name, count in value.items())
    if isinstance(value, list):
        corners = (value[: len(value) // 2], value[len(value) // 2 :])
        return " to ".join(f"({', '.join(f'{x:.9g}' for x in corner)})" for corner in corners)
    return str(value)


def write(problem, path, u, kind: str, t: float, step: int, numbers=None, vectors=None, **details) -> None:
    """Write a checkpoint: u and more vectors {name: Vec} of unknowns, with plain details. Collective."""
    with stages.stage("output"), stages.event("Checkpoint"):
        if path == problem.options.checkpoint:
            claim_series(problem, path, "checkpoint", "fe_checkpoint", CheckpointError)
        given = {"u": u, **(vectors or {})}
        remedy = "what was written before is still there, a smaller step may help"
        _check_finite(given, f"No checkpoint {path} was written", remedy)
        order = problem.checkpoints.unknowns.order
        arrays = {name: order.collect(vector.getArray(readonly=True)) for name, vector in given.items()}
        interiors = problem.checkpoints.interiors
        if interiors is not None:
            arrays["interior"] = interiors.collect()
        about = {
            "problem": identity(problem),
            "constants": dict(problem.physics.constants),
            "kind": kind,
            "t": float(t),
            "step": int(step),
            "numbers": {name: float(value) for name, value in (numbers or {}).items()},
            "details": details,
            "arrays": list(given),
            "interior": interiors.order.total if interiors is not None else 0,
        }
        checkpoint_file.write(path, problem.comm, about, arrays)
    if path == problem.options.checkpoint:
        end_if_asked(problem)


def _check_finite(vectors: dict, what: str, remedy: str) -> None:
    """Raise CheckpointError for a state that nobody would go on from. Collective."""
    wrong = [name for name, vector in vectors.items() if not np.isfinite(vector.norm(PETSc.NormType.NORM_1))]
    if wrong:
        raise CheckpointError(f"{what}: '{wrong[0]}' has values that are no finite numbers; {remedy}.")


def kind_of(problem, path) -> str:
    """Return the kind of solve that wrote a checkpoint. Collective. Raises CheckpointError on all ranks."""
    with _opened(problem, path) as file:
        return file.about["kind"]


@contextmanager
def _opened(problem, path):
    """The file, once it says what every checkpoint says. Collective. Raises CheckpointError on all ranks."""
    with checkpoint_file.opened(path, problem.comm) as file:
        check_header(path, file.about)
        yield file


def read(problem, path) -> Restart:
    """The state of a checkpoint of this problem, whose constants become those of the checkpoint. Collective.

    Raises CheckpointError on all ranks.
    """
    with stages.stage("output"), _opened(problem, path) as file:
        about, order = file.about, problem.checkpoints.unknowns.order
        _check(problem, path, about["problem"])
        vectors = {}
        for name in about["arrays"]:
            vectors[name] = problem.create_vec()
            vectors[name].setArray(order.deal(file.read(name, (order.count,))))
        interiors = problem.checkpoints.interiors
        # A checkpoint may hold none, or those of another choice of what is eliminated: they are a first guess only.
        if interiors is not None and about.get("interior") == interiors.order.total:
            interiors.take(file.read("interior", (interiors.order.count,)), vectors["u"])
    _check_finite(vectors, f"The checkpoint {path} cannot be gone on from", checkpoint_file.REMEDY)
    if problem.physics.constants != about["constants"]:
        problem.set_constants(**about["constants"])
    u = vectors.pop("u")
    return Restart(u, about["t"], about["step"], about["kind"], about["numbers"], about["details"], vectors)


def _number(value) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _count(value) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**31


def _is(kind: type):
    return lambda value: isinstance(value, kind)


def _numbers(value) -> bool:
    return isinstance(value, dict) and all(map(_number, value.values()))


def _list_of(check, count: int | None = None):
    return lambda value: isinstance(value, list) and all(map(check, value)) and count in (None, len(value))


def _name(value) -> bool:
    return isinstance(value, str) and NAME.fullmatch(value) is not None


ABOUT = {
    "problem": _is(dict),
    "constants": _numbers,
    "kind": _is(str),
    "t": _number,
    "step": _count,
    "numbers": _numbers,
    "details": _is(dict),
    "arrays": lambda value: _list_of(_name)(value) and "u" in value and len(set(value)) == len(value),
}
DETAILS = {  # by kind, see checkpoint_schedule.py and newton_checkpoints.py
    "time": {"method": _is(str), "dt": _number, "history": _list_of(_list_of(_number, 2)), "started": _is(bool)},
    "slabs": {"times": _list_of(_number, 3)},
    "newton": {"newton": _count, "norm": _number},
    "loads": {},
    "state": {},
}


def check_header(path, about: dict) -> None:
    """Raise CheckpointError unless a restart finds all that it reads, of the right types."""
    complete = _has(about, ABOUT) and about["kind"] in DETAILS and _has(about["details"], DETAILS[about["kind"]])
    history = about["details"].get("history", []) if complete else []
    if not complete or not {f"u{k - len(history)}" for k in range(len(history))} <= set(about["arrays"]):
        raise unclear(path)


def _has(given: dict, checks: dict) -> bool:
    return all(key in given and check(given[key]) for key, check in checks.items())


def alike(theirs, mine) -> bool:
    """Return True if what a checkpoint says of its problem is of the kind of what this problem says."""
    mine = json.loads(json.dumps(mine))
    if isinstance(mine, list):
        return _list_of(_number, len(mine))(theirs)
    return type(theirs) is type(mine)


@contextmanager
def deferred_signals(problem):
    """Let the first signal inside wait for the next step, if `-fe_checkpoint` is given; a second one does not wait.

    Collective. Raises KeyboardInterrupt on all ranks when the state of that step is written.
    """
    global _waits, _received
    if not problem.options.checkpoint or _waits or threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.signal(number, _receive) for number in _SIGNALS}
    _waits, _received = True, 0
    try:
        yield
        end_if_asked(problem)
    finally:
        _waits = False
        for number, handler in before.items():
            signal.signal(number, handler)


def _receive(number: int, _frame) -> None:
    global _received
    if _received:
        raise KeyboardInterrupt
    _received = number


def is_end_asked(problem) -> bool:
    """Return True if a rank was asked to end. Collective within `deferred_signals`, as its other names are."""
    return _waits and bool(problem.comm.allreduce(_received, MPI.MAX))


def end_if_asked(problem) -> None:
    """Raise KeyboardInterrupt on all ranks if a rank was asked to end. Collective."""
    if is_end_asked(problem):
        raise KeyboardInterrupt

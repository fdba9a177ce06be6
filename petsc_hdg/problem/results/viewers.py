"""PETSc's viewers of a problem's vectors: `u.view(viewer)`, `-snes_monitor_solution` and the like.

PETSc's own writers see a section, but neither essential values nor what a scheme's unknowns are.
"""

from __future__ import annotations

import weakref
from contextlib import contextmanager

from petsc4py import PETSc

from ...device.context import is_viennacl
from ...errors import OptionError, SolveError
from ...petsc import views
from .. import cells_in_time

OWNER = "petsc_hdg_owner"  # what a vector is composed with, and with it what is duplicated from it
PROBLEM = "petsc_hdg_problem"  # attribute of the owner and of the DM
WRITTEN = "petsc_hdg_written"  # what a VTK viewer is composed with: the vector in its file
OF_PETSC = ("draw", "glvis", "exodusii", "cgns")  # viewers that take values at vertices, or PETSc's elements
FOR_PICTURES = (PETSc.Viewer.Format.HDF5_VIZ, PETSc.Viewer.Format.HDF5_XDMF)
INSTEAD = "write a VTU file by a VTK viewer or problem.write, or a picture by problem.plot"


def dm_of(problem) -> PETSc.DMPlex:
    """The DM of a problem, whose vectors know essential values in HDF5 files. Collective."""
    dm = problem.discretization.dm
    if dm.getAttr(PROBLEM) is None:
        dm.setVecType(problem.vec_type)
        dm.setAttr(PROBLEM, weakref.ref(problem))
        views.set_essential_values(dm, insert)
    return dm


def require_dm(problem) -> None:
    """Raise SolveError where the DM of a problem was destroyed."""
    if "dm" in vars(problem.discretization):
        problem.discretization.dm  # noqa: B018


def create_vec(problem) -> PETSc.Vec:
    """A vector of the unknowns, of which viewers show the problem's fields. It does without the DM, whose sections
    PETSc takes long to make and to look at. Collective."""
    owner = PETSc.IS().createGeneral([], comm=PETSc.COMM_SELF)
    owner.setAttr(PROBLEM, weakref.ref(problem))
    return _made(problem.petsc_comm, (cells_in_time.num_owned(problem), PETSc.DECIDE), problem.vec_type, owner)


def _made(comm, sizes, kind: str, owner: PETSc.IS) -> PETSc.Vec:
    vector = PETSc.Vec().create(comm)
    vector.setSizes(sizes)
    vector.setType(kind)
    vector.compose(OWNER, owner)
    views.set_view_and_load(vector, view, load)
    if is_viennacl(vector):
        views.mend_viennacl(vector, duplicate)
    return vector


def duplicate(vector: PETSc.Vec) -> PETSc.Vec:
    """A vector like one of `create_vec`, whose values may be any: PETSc's duplicate has no function that loads it."""
    if is_viennacl(vector):
        return _made(vector.comm, vector.getSizes(), vector.getType(), vector.query(OWNER))
    made = vector.duplicate()
    views.set_view_and_load(made, view, load)
    return made


def load(vector: PETSc.Vec, viewer: PETSc.Viewer) -> None:
    """Load a vector of a problem as PETSc does. Collective."""
    with _of_dm(vector) as known:
        known.load(viewer)
        known.copy(vector)


@contextmanager
def _of_dm(vector: PETSc.Vec):
    """A vector of the DM, as PETSc views and loads it, of the same name; one without a DM where cells have a state,
    and where PETSc has no section for them."""
    problem = _problem(vector.query(OWNER))
    known = problem.dm.createGlobalVec() if problem.discretization.has_section else None
    if known is None or known.getSizes() != vector.getSizes():
        known = PETSc.Vec().create(vector.comm)
        known.setSizes(vector.getSizes())
        known.setType(vector.getType())
    known.setName(vector.getName())
    yield known
    known.destroy()


def view(vector: PETSc.Vec, viewer: PETSc.Viewer) -> None:
    """Show a vector of a problem: VTK by the problem's writer, else as PETSc does. Collective.

    Raises OptionError for what PETSc would show wrongly.
    """
    kind, problem = viewer.getType(), _problem(vector.query(OWNER))
    if kind == "vtk":
        _write(problem, vector, viewer)
        return
    if kind in OF_PETSC:
        raise OptionError(f"A {kind} viewer shows no vector of a problem; {INSTEAD}.")
    if kind == "hdf5" and viewer.getFormat() in FOR_PICTURES and (scheme := problem.scheme.name) != "cg_gpu":
        raise OptionError(
            f"PETSc's HDF5 format for pictures takes values at vertices, which {scheme} does not have; {INSTEAD}, or "
            "leave the format out."
        )
    with _of_dm(vector) as known:
        vector.copy(known)
        known.view(viewer)


def follow(problem, ts: PETSc.TS) -> None:
    """Have viewers take essential values at the times of a TS, before other monitors view its states."""
    found = weakref.ref(problem)  # which may itself keep the TS

    def monitor(ts, step: int, time: float, u) -> None:
        if (alive := found()) is not None:
            alive.time = time

    ts.setMonitor(monitor)


def insert(dm: PETSc.DM, local: PETSc.Vec) -> None:
    """Write essential values into a local vector, or zeros where PETSc asks for those."""
    problem = _problem(dm)
    places = problem.discretization.dofmap.constrained
    if len(places):
        values, zero = local.getArray(), local.query("__Vec_bc_zero__")
        values[places] = 0.0 if zero else problem.operator.essential_values(problem.time or 0.0)
        local.setArray(values)


def _problem(owner: PETSc.Object):
    problem = owner.getAttr(PROBLEM)()
    if problem is None:
        raise SolveError("The problem of a vector that is viewed was given up; keep it until then.")
    return problem


def _write(problem, vector: PETSc.Vec, viewer: PETSc.Viewer) -> None:
    path, before = viewer.getFileName(), viewer.query(WRITTEN)
    if not path.endswith(".vtu"):
        raise OptionError(f"A VTK viewer was given the file {path}; give it a name that ends in .vtu.")
    if before and before != vector:
        raise OptionError(
            f"A VTK viewer was given the vector '{vector.getName()}' for {path}, which has '{before.getName()}'; give "
            "each vector a viewer and a file of its own."
        )
    viewer.compose(WRITTEN, vector)
    problem.write(path, vector, problem.time or 0.0)

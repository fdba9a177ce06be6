"""Calls into PETSc's C library that petsc4py lacks, and everything that differs between PETSc 3.18 and 3.26.

The library is the one petsc4py has loaded; `obj.handle` of a petsc4py object is its C pointer.
"""

from __future__ import annotations

import ctypes
import os
import sys
import tempfile
from contextlib import contextmanager
from functools import cache

import numpy as np
from petsc4py import PETSc

from ..errors import MeshError

INT = np.dtype(PETSc.IntType)
SCALAR = np.dtype(PETSc.ScalarType)
_c_int = ctypes.c_int64 if INT.itemsize == 8 else ctypes.c_int32
_INSERT_VALUES = 1
_POLYTOPES = {
    0: "point",
    1: "segment",
    2: "segment",
    3: "triangle",
    4: "quadrilateral",
    6: "tetrahedron",
    7: "hexahedron",
    8: "prism",
    9: "prism",  # as PETSc extrudes triangles
    11: "pyramid",
}
_CONE_SIZES = np.array([0, 2, 2, 3, 4, 4, 4, 6, 5, 5, 6, 5])  # by number of the polytope, in PETSc


def _candidates():
    """Paths of libraries that may hold PETSc's symbols: petsc4py's extension, then what the process has mapped."""
    module = sys.modules.get("petsc4py.PETSc")
    yield getattr(module, "__file__", None)
    try:
        with open("/proc/self/maps") as maps:
            for line in maps:
                path = line.split(maxsplit=5)[-1].strip()
                if "petsc" in path.lower() and ".so" in path:
                    yield path
    except OSError:
        return


@cache
def library() -> ctypes.CDLL:
    """The PETSc library that petsc4py uses. Raises MeshError if its symbols cannot be found."""
    tried = []
    for path in _candidates():
        if not path or path in tried or path.endswith(".py"):
            continue
        tried.append(path)
        try:
            found = ctypes.CDLL(path)
            found.DMPlexGetCones  # noqa: B018 (an attribute look-up is a symbol look-up)
        except (OSError, AttributeError):
            continue
        return found
    raise MeshError(
        f"The PETSc C library behind petsc4py was not found (looked in: {', '.join(tried) or 'nothing loaded'}); "
        "petsc_hdg needs a PETSc built as a shared library."
    )


def call(function: str, *arguments) -> None:
    """Call `function`. Raises PETSc.Error if it returns an error code, MeshError if this PETSc lacks it."""
    if not has(function):
        raise MeshError(
            f"This PETSc ({'.'.join(map(str, PETSc.Sys.getVersion()))}) has no {function}; use PETSc 3.18 or later."
        )
    entry = getattr(library(), function)
    entry.restype = ctypes.c_int
    code = entry(*arguments)
    if code:
        raise PETSc.Error(code)


def reason(error: PETSc.Error) -> str:
    """Message of a PETSc error, in one line: its last and most exact remark, and the number."""
    lines = [line.split("] ", 1)[-1].strip() for line in str(error).splitlines()[1:]]
    return f"PETSc error {error.ierr}" + (f": {lines[-1].rstrip('.')}" if lines else "")


def has(function: str) -> bool:
    """Return True if the library has a function of this name."""
    return hasattr(library(), function)


def _pointer(obj) -> ctypes.c_void_p:
    return ctypes.c_void_p(obj.handle)


def _address(array: np.ndarray) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


def _seen(address: ctypes.c_void_p, size: int, dtype) -> np.ndarray:
    """The numbers at a C address [size], not copied."""
    if not size:
        return np.empty(0, dtype)
    kind = np.ctypeslib.as_ctypes_type(dtype)
    seen = np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(kind)), (size,))
    return seen.view(dtype)  # mpi4py does not know the type that ctypes gives numbers


def _asked(function: str, thing, kind=ctypes.c_int):
    """Return what a getter of PETSc writes, of a C type, for a petsc4py object or the C address of one."""
    found = kind()
    call(function, _pointer(thing) if hasattr(thing, "handle") else thing, ctypes.byref(found))
    return found.value


def section_offset(section: ctypes.c_void_p, point: int) -> int:
    """Offset of a point in a C PetscSection."""
    offset = _c_int()
    call("PetscSectionGetOffset", section, _c_int(point), ctypes.byref(offset))
    return int(offset.value)


def cones(dm, start: int, end: int, size: int) -> np.ndarray:
    """Cones of the points of one stratum, in which every point has a cone of `size` points.

    Returns [point, size], plex points, PETSc's integer type (a copy). Raises MeshError if the cones differ in size.
    """
    return _cones(dm, start, end, size).reshape(-1, size).copy()


def mixed_cones(dm, start: int, end: int, most: int) -> np.ndarray:
    """Cones [point, most] of the points of one stratum, plex points as in `cones`; the last one of a cone with fewer is
    repeated."""
    sizes = _CONE_SIZES[_polytopes(dm, start, end)]
    first = np.cumsum(sizes) - sizes
    columns = np.minimum(np.arange(most), sizes[:, None] - 1)
    return _cones(dm, start, end, sizes)[first[:, None] + columns]


def _cones(dm, start: int, end: int, sizes) -> np.ndarray:
    """Cones of the points of one stratum, in a row, not copied. sizes: of each, or [point]."""
    if end <= start:
        return np.empty(0, INT)
    sizes = np.broadcast_to(sizes, end - start)
    section = ctypes.c_void_p(_asked("DMPlexGetConeSection", dm, ctypes.c_void_p))
    array = _asked("DMPlexGetCones", dm, ctypes.c_void_p)
    first = section_offset(section, start)
    last = section_offset(section, end - 1)
    total = int(sizes.sum())
    if last - first != total - sizes[-1] or first + total > _asked("PetscSectionGetStorageSize", section, _c_int):
        raise MeshError(
            "The mesh mixes cell shapes; give a mesh of one shape (triangle, quadrilateral, tetrahedron or hexahedron)."
        )
    return _seen(array + first * INT.itemsize, total, INT)


def cell_shapes(dm) -> dict[str, int]:
    """Shapes of this rank's cells: name → number of cells. Shapes without a name of ours are called 'other'."""
    shapes: dict[str, int] = {}
    for kind, count in enumerate(np.bincount(_polytopes(dm, *dm.getHeightStratum(0)))):
        if count:
            name = _POLYTOPES.get(kind, "other")
            shapes[name] = shapes.get(name, 0) + int(count)
    return shapes


def is_of_shape(dm, name: str) -> np.ndarray:
    """This rank's cells [cell] bool that have the shape of a name."""
    kinds = [kind for kind, known in _POLYTOPES.items() if known == name]
    return np.isin(_polytopes(dm, *dm.getHeightStratum(0)), kinds)


def _polytopes(dm, start: int, end: int) -> np.ndarray:
    """PETSc's numbers of the polytopes [point] int8 of some points."""
    found = np.zeros(max(0, end - start), np.int8)
    _asked("DMPlexGetCellTypeLabel", dm, ctypes.c_void_p)  # which makes the label
    for value in dm.getLabelIdIS("celltype").getIndices() if dm.hasLabel("celltype") else ():
        points = dm.getStratumIS("celltype", int(value)).getIndices()
        found[points[(points >= start) & (points < end)] - start] = value
    return found


def shared_points(dm) -> np.ndarray | None:
    """Points of this rank that others own [n], from the point star forest; None if it was never set up."""
    roots, leaves = _c_int(), _c_int()
    local, remote = ctypes.c_void_p(), ctypes.c_void_p()
    sf = dm.getPointSF()
    call("PetscSFGetGraph", _pointer(sf), *map(ctypes.byref, (roots, leaves, local, remote)))
    if roots.value < 0:
        return None
    has_list = local.value or not leaves.value
    return _seen(local, leaves.value, INT).copy() if has_list else np.arange(leaves.value, dtype=INT)


def section_of(dm):
    """The local section of a DM (petsc4py renamed the call after 3.18)."""
    return dm.getLocalSection() if hasattr(dm, "getLocalSection") else dm.getSection()


def set_section(dm, section) -> None:
    """Set the local section of a DM."""
    (dm.setLocalSection if hasattr(dm, "setLocalSection") else dm.setSection)(section)


def vec_type_of(dm) -> str:
    """Type of the vectors that a DM makes, as it was named."""
    return _asked("DMGetVecType", dm, ctypes.c_char_p).decode()


def set_passive_dm(ksp, vector) -> None:
    """Give a KSP a DM of vectors like one, which it does not ask for matrices: a DMPlex makes a section of all ranks
    for its vectors, which takes long. (The call has another argument after 3.18.)"""
    dm = PETSc.DMShell().create(ksp.comm)
    dm.setGlobalVector(vector)
    ksp.setDM(dm)
    if hasattr(PETSc.KSP, "DMActive"):
        ksp.setDMActive(PETSc.KSP.DMActive.ALL, False)
    else:
        ksp.setDMActive(False)


def set_block_sizes(mat: PETSc.Mat, sizes: np.ndarray) -> None:
    """Sizes of the diagonal blocks of this rank's rows, which PETSc's PCVPBJACOBI inverts."""
    sizes = np.ascontiguousarray(sizes, INT)
    call("MatSetVariableBlockSizes", _pointer(mat), _c_int(len(sizes)), _address(sizes))


def has_only_cell_coordinates(dm) -> bool:
    """Return True if cells have coordinates that those of vertices and the periods do not tell."""
    return bool(_asked("DMGetCellCoordinatesLocal", dm, ctypes.c_void_p)) and not periods(dm).any()


def periods(dm) -> np.ndarray:
    """Lengths [dim] after which a mesh repeats itself, 0 for directions in which it does not."""
    largest, start, length = (ctypes.POINTER(ctypes.c_double)() for _ in range(3))
    call("DMGetPeriodicity", _pointer(dm), *map(ctypes.byref, (largest, start, length)))
    found = [length[d] if length else 0.0 for d in range(dm.getCoordinateDim())]
    return np.maximum(found, 0.0)


def set_periods(dm, lengths: np.ndarray) -> None:
    """Let a mesh, of which points a period apart are one, repeat itself; its cells get coordinates of their own.
    Collective."""
    given = [np.where(lengths > 0, part, -1.0) for part in (lengths / 2 * (1 - 1e-6), 0 * lengths, lengths)]
    call("DMSetPeriodicity", _pointer(dm), *map(_address, given))
    dm.localizeCoordinates()


def rows_of_aij(mat) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Starts, global columns and values of this rank's rows of an assembled AIJ matrix. Collective.

    Those of a sequential one are views, until the matrix changes.
    """
    if mat.getType() == PETSc.Mat.Type.SEQAIJ:
        return _rows_at(_pointer(mat), mat.getSize()[0])
    if mat.comm.size == 1:  # of a type that may hold its values on a device
        return tuple(map(np.asarray, mat.getValuesCSR()))
    local = ctypes.c_void_p()
    call("MatMPIAIJGetLocalMat", _pointer(mat), ctypes.c_int(0), ctypes.byref(local))
    try:
        starts, columns, values = map(np.copy, _rows_at(local, mat.getLocalSize()[0]))
    finally:
        call("MatDestroy", ctypes.byref(local))
    return starts, columns, values


def _rows_at(mat: ctypes.c_void_p, rows: int):
    """Starts, columns and values of a C Mat of type SEQAIJ, not copied."""
    found = [ctypes.c_void_p() for _ in range(3)]
    call("MatSeqAIJGetCSRAndMemType", mat, *map(ctypes.byref, found), None)
    starts = _seen(found[0], rows + 1, INT)
    entries = int(starts[-1])
    return starts, _seen(found[1], entries, INT), _seen(found[2], entries, SCALAR)


def set_preallocation_coo(mat, i: np.ndarray, j: np.ndarray) -> None:
    """Declare matrix entries by global rows `i` and columns `j` [entry]; negative ones are ignored. Collective."""
    # PETSc may reorder the arrays that it is given: hand it copies.
    i, j = np.array(i, INT, copy=True).ravel(), np.array(j, INT, copy=True).ravel()
    call("MatSetPreallocationCOO", _pointer(mat), ctypes.c_ssize_t(i.size), _address(i), _address(j))


def set_values_coo(mat, values: np.ndarray) -> None:
    """Fill the declared entries with `values` [entry], duplicates summed. Collective."""
    call("MatSetValuesCOO", _pointer(mat), _address(np.ascontiguousarray(values, SCALAR)), ctypes.c_int(_INSERT_VALUES))


def set_points(dm, counts, sizes, cones, orientations, vertices) -> None:
    """Fill an empty DMPlex: points per stratum, vertices first; sizes of their cones; cones and their orientations, all
    in a row; coordinates of the vertices [vertex, dim]."""
    arrays = [np.ascontiguousarray(each, INT) for each in (counts, sizes, cones, orientations)]
    arrays.append(np.ascontiguousarray(vertices, SCALAR))
    call("DMPlexCreateFromDAG", _pointer(dm), _c_int(len(counts) - 1), *map(_address, arrays))


def set_shapes(dm, stretches: list[tuple[str, int]]) -> None:
    """Tell a DMPlex what its points are, which PETSc finds out point by point: shapes and numbers of points, as they
    follow."""
    kinds = {name: kind for kind, name in reversed(_POLYTOPES.items())}
    dm.createLabel("celltype")
    first = 0
    for name, count in stretches:
        if count:
            points = PETSc.IS().createStride(count, first, 1, comm=PETSc.COMM_SELF)
            dm.getLabel("celltype").setStratumIS(kinds[name], points)
        first += count


def set_chebyshev_bounds(ksp: PETSc.KSP, lower: float, upper: float) -> None:
    """Set the eigenvalues between which a Chebyshev iteration damps."""
    call("KSPChebyshevSetEigenvalues", _pointer(ksp), ctypes.c_double(upper), ctypes.c_double(lower))


def set_line_search(snes: PETSc.SNES, name: str) -> str:
    """Set the type of a SNES' line search; the one before."""
    search = ctypes.c_void_p(_asked("SNESGetLineSearch", snes, ctypes.c_void_p))
    old = (_asked("SNESLineSearchGetType", search, ctypes.c_char_p) or b"bt").decode()  # which ...SetType frees
    call("SNESLineSearchSetType", search, name.encode())
    return old


def set_function_domain_error(snes) -> None:
    """Tell SNES that the residual cannot be evaluated at this state; its line search then takes a shorter step."""
    call("SNESSetFunctionDomainError", _pointer(snes))


def set_jacobian_domain_error(snes) -> None:
    """Tell SNES that there is no Jacobian at this state; it stops with DIVERGED_JACOBIAN_DOMAIN."""
    call("SNESSetCheckJacobianDomainError", _pointer(snes), ctypes.c_int(1))
    call("SNESSetJacobianDomainError", _pointer(snes))


def pc_has_failed(pc: PETSc.PC) -> bool:
    """Return True if a PC could not be set up or applied, on any rank. Collective."""
    name = "PCGetFailedReasonRank" if has("PCGetFailedReasonRank") else "PCGetFailedReason"
    return pc.comm.tompi4py().allreduce(int(_asked(name, pc) != 0)) > 0


def set_lag(snes: PETSc.SNES, steps: int) -> None:
    """Let a SNES set up its preconditioner once in this number of linearizations; -1: never again."""
    call("SNESSetLagPreconditioner", _pointer(snes), ctypes.c_int(steps))


def lag(snes: PETSc.SNES) -> int:
    """Return the number of linearizations per set-up of the preconditioner of a SNES, 1 by default."""
    return _asked("SNESGetLagPreconditioner", snes)


def is_reused(pc: PETSc.PC) -> bool:
    """Return True if PETSc leaves a PC as it is when the matrix changes."""
    return _asked("PCGetReusePreconditioner", pc) != 0


def scales_by_diagonal(pc: PETSc.PC) -> bool:
    """Return True if a PC of type jacobi divides by the diagonal itself, not by row sums, maxima or absolute values."""
    return _asked("PCJacobiGetType", pc) == 0 and not _asked("PCJacobiGetUseAbs", pc)


def has_operators(ksp: PETSc.KSP) -> bool:
    """Return True if a KSP has been given its matrices; asked for them before, PETSc makes empty ones."""
    found = [ctypes.c_int() for _ in range(2)]
    call("KSPGetOperatorsSet", _pointer(ksp), *map(ctypes.byref, found))
    return bool(found[1].value)


def set_supported_norms(ksp: PETSc.KSP, priorities: dict) -> None:
    """Say which norms and sides of the preconditioner a KSP has: {(norm, side): priority}, no others."""
    for norm in (PETSc.KSP.NormType.PRECONDITIONED, PETSc.KSP.NormType.UNPRECONDITIONED):
        for side in (PETSc.PC.Side.LEFT, PETSc.PC.Side.RIGHT, PETSc.PC.Side.SYMMETRIC):
            priorities = {(norm, side): 0, **priorities}
    for (norm, side), priority in priorities.items():
        call("KSPSetSupportedNorm", _pointer(ksp), ctypes.c_int(norm), ctypes.c_int(side), _c_int(priority))


def has_splits(pc: PETSc.PC) -> bool:
    """Return True if a fieldsplit preconditioner has been given an index set."""
    found = ctypes.c_void_p()
    function = library().PCFieldSplitGetISByIndex
    function.restype = ctypes.c_int
    handler = library().PetscPushErrorHandler
    handler(ctypes.cast(library().PetscReturnErrorHandler, ctypes.c_void_p), None)
    try:
        return function(_pointer(pc), _c_int(0), ctypes.byref(found)) == 0
    finally:
        library().PetscPopErrorHandler()


def split_assembled(pc: PETSc.PC) -> None:
    """Have a fieldsplit preconditioner take all blocks from the assembled matrix: those of a shell have no values."""
    for block in ("Diag", "OffDiag"):
        call(f"PCFieldSplitSet{block}UseAmat", _pointer(pc), ctypes.c_int(0))


@cache
def restricts_untransposed() -> bool:
    """True if MatRestrict multiplies by a square matrix as it is (PETSc 3.18), not by its transpose (3.26)."""
    shift = PETSc.Mat().createAIJ((2, 2), nnz=1, comm=PETSc.COMM_SELF)
    shift[0, 1] = 1.0
    shift.assemble()
    x, y = shift.createVecs()
    x.set(1.0)
    call("MatRestrict", *map(_pointer, (shift, x, y)))
    return bool(y[0])


def view_text(thing) -> str:
    """The text of a PETSc object's view, which only the first rank has; no file is written. Collective."""
    c, buffer, size = ctypes.CDLL(None), ctypes.c_void_p(), ctypes.c_size_t()
    c.open_memstream.restype = ctypes.c_void_p
    file = ctypes.c_void_p(c.open_memstream(ctypes.byref(buffer), ctypes.byref(size)))
    viewer = PETSc.Viewer().create(thing.comm)
    try:
        viewer.setType(PETSc.Viewer.Type.ASCII)
        call("PetscViewerASCIISetFILE", _pointer(viewer), file)
        thing.view(viewer)
        c.fflush(file)
        return ctypes.string_at(buffer, size.value).decode(errors="replace")
    finally:
        viewer.destroy()
        c.fclose(file)
        c.free(buffer)


@contextmanager
def kept_from_output():
    """A block whose output to file descriptor 1 goes to a file, which is yielded: read it before the block ends."""
    flush = ctypes.CDLL(None).fflush
    sys.stdout.flush()
    flush(None)
    before = os.dup(1)
    with tempfile.TemporaryFile("w+", errors="replace") as file:
        os.dup2(file.fileno(), 1)
        try:
            yield lambda: _read(file, flush)
        finally:
            flush(None)
            os.dup2(before, 1)
            os.close(before)


def _read(file, flush) -> str:
    """Return what was printed so far, in one line."""
    flush(None)
    file.seek(0)
    return " ".join(file.read().split())


def bdf_order(ts: PETSc.TS) -> int:
    """Order of a TSBDF."""
    return _asked("TSBDFGetOrder", ts, _c_int)


def set_snes(ts: PETSc.TS, snes: PETSc.SNES) -> None:
    """Make a SNES the one of a TS."""
    call("TSSetSNES", _pointer(ts), _pointer(snes))


def adapt_type(ts: PETSc.TS) -> bytes | None:
    """Type of the step controller of a TS."""
    return _asked("PetscObjectGetType", _adapt(ts), ctypes.c_char_p)


def _adapt(ts: PETSc.TS) -> ctypes.c_void_p:
    return ctypes.c_void_p(_asked("TSGetAdapt", ts, ctypes.c_void_p))


@contextmanager
def fixed_steps(ts: PETSc.TS):
    """No step controller in the block; all steps are accepted as they are."""
    adapt, before = _adapt(ts), adapt_type(ts)
    call("TSAdaptSetType", adapt, b"none")
    try:
        yield
    finally:
        if before is not None:
            call("TSAdaptSetType", adapt, before)

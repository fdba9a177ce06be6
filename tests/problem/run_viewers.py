"""Under mpiexec: `run_viewers.py FOLDER` shows solutions of all schemes by PETSc's viewers and reads the files."""

import ctypes
import sys
from pathlib import Path

import numpy as np
from petsc4py import PETSc
from vtu_reader import read_vtu

from petsc_hdg import Dirichlet, Mesh, Physics, Problem
from petsc_hdg.petsc import c_library
from petsc_hdg.run import guarded

COMM = PETSc.COMM_WORLD
SCHEMES = ("cg_gpu", "hdg_gpu", "sipg_gpu", "poly_gpu")
HAS_HDF5 = PETSc.Sys.hasExternalPackage("hdf5")


def solved(backend: str, u_t: str = "", exact: str = "5 + x[0]"):
    physics = Physics(
        {"u": 1},
        f0=f"f0[0] = 0.0{u_t};",
        f1="for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
        boundary=[Dirichlet("boundary", f"g[0] = {exact};")],
    )
    problem = Problem(Mesh.box([3, 3], simplex=True, comm=COMM), physics, backend=backend, degree=1)
    return problem, None if u_t else problem.solve()


def vtk(path):
    return PETSc.Viewer().createVTK(str(path), "w", comm=COMM)


def hdf5(path, mode="w", format=None):
    viewer = PETSc.Viewer().createHDF5(str(path), mode, comm=COMM)
    viewer.pushFormat(PETSc.Viewer.Format.DEFAULT if format is None else format)
    return viewer


def of_type(kind: str):
    viewer = PETSc.Viewer().create(COMM)
    viewer.setType(kind)
    return viewer


def shown(vector, viewer) -> None:
    vector.view(viewer)
    viewer.destroy()


def refused(vector, viewer, sentence: str) -> None:
    try:
        vector.view(viewer)
    except PETSc.Error as error:
        assert sentence in str(error), error
    else:
        raise AssertionError(f"not refused: {sentence}")


def check_vtk(path, expected) -> None:
    if COMM.rank == 0:
        piece = read_vtu(path)
        assert np.abs(piece["point_data"]["u"].ravel() - expected(piece["points"])).max() < 1e-6, path
    COMM.barrier()


def check(backend: str, folder: Path) -> None:
    problem, u = solved(backend)
    for name, vector in (("u", u), ("copy", u.copy()), ("of_dm", problem.create_vec())):
        u.copy(vector)
        shown(vector, vtk(path := folder / f"{backend}_{name}.vtu"))
        check_vtk(path, lambda x: 5 + x[:, 0])
    viewer = vtk(folder / f"{backend}_second.vtu")
    u.view(viewer)
    u.view(viewer)  # a monitor's
    refused(u.copy(), viewer, "a file of its own")
    refused(u, vtk(folder / "old.vtk"), "ends in .vtu")
    refused(u, of_type("draw"), "problem.plot")
    if HAS_HDF5:
        check_hdf5(backend, folder / f"{backend}.h5", problem, u)


def check_hdf5(backend: str, path: Path, problem, u) -> None:
    u.setName("solution")
    shown(u, hdf5(path))
    other = problem.create_vec()
    other.setName("solution")
    other.load(viewer := hdf5(path, "r"))
    viewer.destroy()
    assert (other - u).norm() < 1e-14
    pictures = PETSc.Viewer.Format.HDF5_VIZ
    if backend == "cg_gpu":
        shown(u, hdf5(path, format=pictures))
        assert np.allclose(np.unique(np.round(stored(path, "/vertex_fields", "solution_u"), 6)), np.arange(15, 19) / 3)
    else:
        refused(u, hdf5(path, format=pictures), f"which {backend} does not have")


def stored(path: Path, group: str, name: str) -> np.ndarray:
    """Numbers of all ranks in an HDF5 file."""
    vector, viewer = PETSc.Vec().create(COMM), hdf5(path, "r")
    c_library.call("PetscViewerHDF5PushGroup", ctypes.c_void_p(viewer.handle), group.encode())
    vector.setName(name)
    vector.load(viewer)
    viewer.destroy()
    return np.concatenate(COMM.tompi4py().allgather(vector.getArray().copy()))


def check_in_time(backend: str, folder: Path) -> None:
    PETSc.Options()["ts_monitor_solution_vtk"] = str(folder / f"{backend}_%03d.vtu")
    problem, _ = solved(backend, " + u_t[0] - 1.0", "5 + t")
    problem.solve_in_time(problem.interpolate(5.0), 0.5, 0.25)
    for step in range(3):
        check_vtk(folder / f"{backend}_{step:03d}.vtu", lambda x, t=step / 4: 5 + t + 0 * x[:, 0])
    PETSc.Options().delValue("ts_monitor_solution_vtk")


def run() -> None:
    for backend in SCHEMES:
        check(backend, Path(sys.argv[1]))
        if COMM.size == 1:
            check_in_time(backend, Path(sys.argv[1]))


if __name__ == "__main__":
    guarded(run)

"""Under mpiexec: `run_output.py FOLDER` writes each kind of file, then asks for files that cannot be written."""

import sys
from pathlib import Path

import numpy as np
from mpi4py import MPI
from samples import BOXES, box, node_places

from petsc_hdg.errors import OptionError
from petsc_hdg.output import plot, vtu, write_report, write_vtu
from petsc_hdg.output.facets import skin
from petsc_hdg.reference import ReferenceElement

comm = MPI.COMM_WORLD
vtu.BLOCK = 1 << 9  # so that blocks end on other ranks than they begin
folder = Path(sys.argv[1])


def refused(write, *arguments, **options) -> None:
    """Every rank must see the same error."""
    try:
        write(*arguments, **options)
        message = "nothing was raised"
    except OptionError as error:
        message = str(error)
    messages = comm.allgather(message)
    if comm.rank == 0:
        print("refused" if len(set(messages)) == 1 else "DIFFERENT", messages[0])


for name in (*BOXES, "one"):
    mesh, cell = box(name), "quadrilateral" if name == "one" else name
    x = node_places(mesh, 2)
    u, half = x[..., 0] * x[..., 1], x.mean(axis=1)[:, 0] > 1
    write_vtu(folder / f"{name}.vtu", comm, cell, 2, x, {"u": u, "x": x}, {"half": half})
    plot(
        folder / f"{name}.png",
        comm,
        cell,
        2,
        x,
        u,
        cell_regions=half,
        inset=cell == "triangle",
        cut=cell == "hexahedron" or None,
        dpi=30,
    )
    outer, between = skin(comm, ReferenceElement(cell, 2), x, half.astype(int))
    counts = [comm.allreduce(len(found.cells)) for found in (outer, between)]
    if comm.rank == 0:
        print("facets", name, *counts)
data = dict.fromkeys(("backend", "degree", "ranks", "cells", "dofs", "device", "vec_mode", "iterations", "seconds"))
write_report(folder / "report.json", comm, data | {"errors": {"L2": None, "H1": None}})

mesh = box("triangle")
x = node_places(mesh, 1)
last = comm.rank == comm.size - 1
refused(write_vtu, folder / "report.json" / "a.vtu", comm, "triangle", 1, x, {})
refused(write_vtu, folder / "a.vtu", comm, "triangle", 1, x, {"u": x[:, :2] if last else x})
refused(plot, folder / "report.json" / "a.png", comm, "triangle", 1, x, x[..., 0])
refused(plot, folder / "a.png", comm, "triangle", 1, x, x[..., 0], colour_map="mud")
refused(plot, folder / "a.png", comm, "triangle", 1, x, x[..., 0] + (np.nan if last else 0))
refused(write_report, folder / "a.json", comm, {})
if comm.size > 1:
    refused(write_vtu, folder / "a.vtu", comm, "triangle", 1, x, {"v" if last else "u": x})

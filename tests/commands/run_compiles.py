"""mpiexec -n N python run_compiles.py FILE: which rank compiles which program, in two problems one after the other."""

import json
import sys
from pathlib import Path

from mpi4py import MPI

import petsc_hdg as fe
from petsc_hdg.device import build
from petsc_hdg.run import guarded

COMM = MPI.COMM_WORLD
COMPILED: list[str] = []
_original = build._compiled


def _counted(device, spec, entry):
    COMPILED.append(build.program_digest(device, spec))
    return _original(device, spec, entry)


def problem() -> dict:
    """Solve once; what each rank has compiled, and what it uses, on rank 0."""
    COMPILED.clear()
    flux = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
    physics = fe.Physics({"u": 1}, "f0[0] = -1;", flux, boundary=[fe.Dirichlet("boundary", "g[0] = 0;")])
    solved = fe.Problem(fe.Mesh.box([6, 6]), physics, fe.Options(degree=1))
    solved.solve()
    loaded = COMM.gather(sorted(solved.device.programs))
    compiled = COMM.gather(list(COMPILED))
    return {"compiled": compiled, "programs": loaded, "all": loaded and sorted(set(sum(loaded, [])))}


def main() -> None:
    """Write what rank 0 has gathered."""
    build._compiled = _counted
    rows = [problem(), problem()]
    if COMM.rank == 0:
        Path(sys.argv[1]).write_text(json.dumps(rows))


guarded(main)

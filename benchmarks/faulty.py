"""The program that faults.py breaks: `mpiexec -n 3 python benchmarks/faulty.py FAULT [options]`.

Steps of the heat equation with a source that an auxiliary field scales, in which one thing goes wrong on rank 1, or on
the rank of `-victim`. Without a fault (`none`) it prints the norm of its solution.
"""

import os
import signal
import sys
from pathlib import Path

import petsc4py

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
petsc4py.init(["faulty.py", *sys.argv[2:]])

import numpy as np  # noqa: E402
from petsc4py import PETSc  # noqa: E402

import petsc_hdg as fe  # noqa: E402

FAULT, COMM = sys.argv[1], PETSc.COMM_WORLD.tompi4py()
VICTIM = PETSc.Options().getInt("victim", 1)
STEPS, KILLED_AT = PETSc.Options().getInt("steps", 4), 2
MINE = COMM.rank == VICTIM


def strike(name: str, what) -> None:
    """Let `what()` happen on the one rank if this is the fault of the run."""
    if name == FAULT and MINE:
        what()


def raise_value_error(*arguments):
    raise ValueError("the user's own mistake")


def break_build() -> None:
    """The compiler refuses every program."""
    from petsc_hdg.device import build

    build._loaded = lambda *arguments: None
    build.build_options = lambda precision: ["-cl-std=CL1.2", "-D", "real=@"]


def shrink_memory(share: float):
    """The device has less memory than the problem takes, from its making on."""
    from petsc_hdg.device.memory import Memory

    made = Memory.__init__

    def small(self, name="", room=None, taken=None):
        made(self, name, int(share * 250_000), taken)

    Memory.__init__ = small


def die_in_a_checkpoint() -> None:
    """The second checkpoint is not finished: its file is written, without its head and its name."""
    from petsc_hdg.output import checkpoint_file

    written, measured = [], checkpoint_file._measured

    def measure(file):
        written.append(file)
        if len(written) == 2:
            os.kill(os.getpid(), signal.SIGKILL)
        return measured(file)

    checkpoint_file._measured = measure


def damage_coordinates(dm) -> None:
    vector = dm.getCoordinatesLocal()
    values = vector.getArray()
    if values.size:
        values[: values.size // 2] = np.nan
    dm.setCoordinatesLocal(vector)


def kappa(x):
    """The auxiliary field; 1 everywhere if nothing is wrong."""
    strike("exception in a function of x", raise_value_error)
    values = np.ones(x.shape[:-1])
    if FAULT == "NaN in an auxiliary field" and MINE:
        values[0] = np.nan
    if FAULT == "root of a negative number" and MINE:
        values[0] = -1.0
    return values


def monitor(t, u) -> None:
    """What a user does after each step: things of all ranks, such as a norm, and things of his own."""
    step = round(t / 0.01)
    u.norm()
    if step < KILLED_AT:
        return
    strike("exception in a monitor of steps", raise_value_error)
    strike("exit on a rank", lambda: sys.exit(3))
    strike("killed (SIGKILL)", lambda: os.kill(os.getpid(), signal.SIGKILL))
    strike("segmentation fault", lambda: os.kill(os.getpid(), signal.SIGSEGV))
    strike("interrupted (SIGINT)", lambda: os.kill(os.getpid(), signal.SIGINT))


class Broken:
    """A preconditioner of the user's that fails when it is applied."""

    def apply(self, pc, x, y) -> None:
        strike("exception in a preconditioner", raise_value_error)
        x.copy(y)


def after_construction(problem, ts) -> None:
    memory = problem.device.memory
    strike("no memory in the solve", lambda: setattr(memory, "room", memory.taken.bytes + 100))
    snes, ksp = ts.getSNES(), ts.getSNES().getKSP()
    if FAULT == "exception in a monitor of SNES":
        snes.setMonitor(lambda *arguments: strike(FAULT, raise_value_error))
    if FAULT == "exception in a monitor of KSP":
        ksp.setMonitor(lambda *arguments: strike(FAULT, raise_value_error))
    if FAULT == "exception in a preconditioner":
        ksp.getPC().setType("python")
        ksp.getPC().setPythonContext(Broken())


PHYSICS = fe.Physics(
    {"u": 1},
    f0="f0[0] = u_t[0] - sqrt(a[0]);",
    f1="for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
    auxiliary={"kappa": 1},
    boundary=[fe.Dirichlet("boundary", "g[0] = 0;")],
    name="heat",
)


@fe.main
def main():
    strike("build failure", break_build)
    strike("no memory for the operator", lambda: shrink_memory(0.02))
    strike("killed in a checkpoint", die_in_a_checkpoint)
    mesh = fe.Mesh.box((12, 12))
    if FAULT == "NaN in coordinates":
        strike(FAULT, lambda: damage_coordinates(mesh.dm))
        mesh = fe.Mesh(mesh.dm)
    problem = fe.Problem(mesh, PHYSICS, degree=2)
    problem.set_auxiliary("kappa", kappa)
    u, ts = problem.create_vec(), problem.create_ts()
    ts.setTimeStep(0.01)
    ts.setMaxTime(0.01 * STEPS)
    after_construction(problem, ts)
    from petsc_hdg.problem.checkpoints import checkpoint_schedule
    from petsc_hdg.problem.linear import preconditioners
    from petsc_hdg.problem.transient import time_stepping

    checkpoint_schedule.resume(problem, ts, u)
    with preconditioners.smoothing(problem, ts.getSNES()):  # as Problem.solve_in_time: the same bits in each run
        time_stepping.advance(problem, ts, u, monitor)
    PETSc.Sys.Print(f"NORM {u.norm():.15e}")

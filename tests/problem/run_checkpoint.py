"""Runs with checkpoints, left alone, interrupted, and gone on with: run_checkpoint.py FOLDER MODE;MODE NAME;NAME

alone: each case to its end, with checkpoints in FOLDER/NAME.alone.h5. interrupted: the same, with checkpoints in
FOLDER/NAME.h5, until an exception ends it. go_on: from FOLDER/NAME.h5 to the end. alone and go_on leave the last state
in FOLDER/NAME.MODE.RANKS.h5. Cells are dealt out at random, another way on each number of ranks.
"""

import sys
from functools import partial
from pathlib import Path

import numpy as np
from petsc4py import PETSc

import petsc_hdg as fe
from petsc_hdg.errors import PetscHdgError
from petsc_hdg.run import guarded

STEPS, DT, INTERVAL, STOP = 10, 0.01, 3, 7
DIFFUSION = "for (d = 0; d < dim; ++d) f1[d] = (1 + k*u[0]*u[0])*u_x[d];"
SOURCE = "f0[0] = u_t[0] - 20*sin(3*t + x[0])*x[1];"
TIME = {  # scheme, degree, what TS does, faces of the box
    "cg bdf": ("cg_gpu", 2, {"ts_type": "bdf"}, (4, 4)),
    "cg bdf 4, adaptive": ("cg_gpu", 2, {"ts_type": "bdf", "ts_bdf_order": 4, "ts_adapt_type": "basic"}, (4, 4)),
    "cg bdf 6": ("cg_gpu", 2, {"ts_type": "bdf", "ts_bdf_order": 6}, (12, 12)),  # goes on from its start
    "cg theta": ("cg_gpu", 2, {"ts_type": "cn"}, (4, 4)),
    "cg arkimex": ("cg_gpu", 2, {"ts_type": "arkimex"}, (4, 4)),
    "hdg bdf": ("hdg_gpu", 2, {"ts_type": "bdf"}, (4, 4)),
    "sipg bdf": ("sipg_gpu", 2, {"ts_type": "bdf"}, (4, 4)),
    "poly bdf": ("poly_gpu", 1, {"ts_type": "bdf"}, (4, 4)),
}


class Stop(PetscHdgError):
    """The end of a run before its end."""


def dirichlet():
    return [fe.Dirichlet("boundary", "g[0] = 0;")]


def heat(k: float) -> fe.Physics:
    return fe.Physics({"u": 1}, SOURCE, DIFFUSION, constants={"k": k}, boundary=dirichlet(), name="heat")


def steady() -> fe.Physics:
    return fe.Physics({"u": 1}, "f0[0] = -50;", DIFFUSION, constants={"k": 1.0}, boundary=dirichlet(), name="steady")


def problem_of(physics, scheme: str, degree: int, faces, files: dict, interval: int) -> fe.Problem:
    seed = PETSc.COMM_WORLD.size
    mesh = fe.Mesh.box(faces, partition_seed=seed if seed > 1 else None)
    settings = {"poly_agglomerates": 6} if scheme == "poly_gpu" else {}
    settings |= {"checkpoint_interval": interval, "check_kernels": False}
    return fe.Problem(mesh, physics, backend=scheme, degree=degree, **settings, **files)


def bump(problem) -> PETSc.Vec:
    return problem.interpolate(lambda x: np.sin(np.pi * x[..., 0]) * np.sin(np.pi * x[..., 1]))


def in_time(name: str, files: dict, stop: bool):
    scheme, degree, options, faces = TIME[name]
    for key, value in options.items():
        PETSc.Options()[key] = value
    # Penalties of interior penalty follow the states where the physics is nonlinear.
    problem = problem_of(heat(1.0 if scheme in ("cg_gpu", "hdg_gpu") else 0.0), scheme, degree, faces, files, INTERVAL)
    seen = []

    def monitor(t, u):
        seen.append(t)
        if stop and len(seen) == STOP:
            raise Stop

    try:
        u = problem.solve_in_time(bump(problem), STEPS * DT, DT, monitor=monitor)
    finally:
        for key in options:
            PETSc.Options().delValue(key)
    return problem, u


def newton(files: dict, stop: bool, scheme: str = "cg_gpu"):
    problem, steps = problem_of(steady(), scheme, 2, (4, 4), files, 2), []

    def monitor(snes, step, norm):
        steps.extend([step] * (step > 0))
        if stop and len(steps) == (3 if scheme == "hdg_gpu" else 5):
            raise Stop

    problem.snes.setMonitor(monitor)
    return problem, problem.solve()


def loads(files: dict, stop: bool, scheme: str = "cg_gpu"):
    problem = problem_of(steady(), scheme, 2, (4, 4), files, 2)
    u = problem.create_vec()
    for k in problem.load_steps(np.linspace(0.5, 2.0, 7), u):
        problem.set_constants(k=k)
        problem.solve(u).copy(u)
        if stop and k > 1.4:
            raise Stop
    return problem, u


def slabs(files: dict, stop: bool):
    problem = problem_of(heat(0.0), "poly_gpu", 1, (4, 4), files, INTERVAL)
    space_time, seen = fe.SpaceTime(problem, degree=1), []

    def monitor(t, u):
        seen.append(t)
        if stop and len(seen) == STOP:
            raise Stop

    return problem, space_time.march(bump(problem), 0.0, STEPS * DT, STEPS, monitor)


CASES = {name: lambda files, stop, name=name: in_time(name, files, stop) for name in TIME}
CASES |= {"newton": newton, "loads": loads, "slabs": slabs}
CASES |= {f"hdg {case.__name__}": partial(case, scheme="hdg_gpu") for case in (newton, loads)}


def run(folder: Path, mode: str, names: list[str]) -> None:
    for name in names:
        written, ranks = folder / f"{name}.h5", PETSc.COMM_WORLD.size
        if mode == "interrupted":
            try:
                CASES[name]({"checkpoint": str(written)}, True)
            except Stop:
                continue
            raise AssertionError(f"{name} was not interrupted")
        where = {"alone": folder / f"{name}.alone.h5", "go_on": folder / f"{name}.after.{ranks}.h5"}[mode]
        files = {"checkpoint": str(where)} | ({"restart": str(written)} if mode == "go_on" else {})
        problem, u = CASES[name](files, False)
        problem.checkpoint(folder / f"{name}.{mode}.{ranks}.h5", u)


if __name__ == "__main__":
    for mode in sys.argv[2].split(";"):
        guarded(lambda mode=mode: run(Path(sys.argv[1]), mode, sys.argv[3].split(";")))

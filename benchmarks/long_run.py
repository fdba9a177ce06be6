"""A run in time that lasts: what benchmarks/kill_restart.py starts, kills and starts again.

    mpiexec -n 4 python benchmarks/long_run.py -steps 1000 -fe_checkpoint a.h5 -fe_checkpoint_interval 20

∂u/∂t - ∇·((1 + a u²)∇u) = sources that move, on a square; -a 0 makes it linear. -final FILE receives the last state as
a checkpoint, -memory FILE a JSON list [step, resident bytes, bytes on the device], summed over ranks, -every steps.
-shuffle SEED deals the cells out at random.
"""

import json
import sys

import numpy as np
import petsc4py

import petsc_hdg as fe

petsc4py.init(sys.argv)

from petsc4py import PETSc

PHYSICS = fe.Physics(
    {"u": 1},
    f0="f0[0] = u_t[0] - 20*exp(-30*(pow(x[0] - 0.5 - 0.3*cos(t), 2) + pow(x[1] - 0.5 - 0.3*sin(t), 2)));",
    f1="for (d = 0; d < dim; ++d) f1[d] = (1 + a_nl*u[0]*u[0])*u_x[d];",
    constants={"a_nl": 1.0},
    boundary=[fe.Dirichlet("boundary", "g[0] = 0;")],
    name="moving sources",
)


def resident() -> int:
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


@fe.main
def main():
    options = PETSc.Options()
    steps, dt = options.getInt("steps", 200), options.getReal("dt", 0.01)
    cells, seed = options.getInt("cells", 8), options.getInt("shuffle", 0)
    mesh = fe.Mesh.box((cells, cells), partition_seed=seed or None)
    problem = fe.Problem(mesh, PHYSICS, degree=options.getInt("degree", 2))
    problem.set_constants(a_nl=options.getReal("a", 1.0))
    every, path, found = options.getInt("every", 100), options.getString("memory", ""), []

    def monitor(t, u):
        step = round(t / dt)
        if path and step % every == 0:
            sums = problem.comm.allreduce(np.array([resident(), problem.device.memory.held]))
            found.append([step, *map(int, sums)])
            if problem.comm.rank == 0:
                with open(path, "w") as file:
                    json.dump(found, file)

    u = problem.interpolate(lambda x: np.sin(np.pi * x[..., 0]) * np.sin(np.pi * x[..., 1]))
    u = problem.solve_in_time(u, steps * dt, dt, monitor=monitor)
    PETSc.Sys.Print(f"t {problem.time:.17g} after {problem.time_steps} steps, |u| {u.norm():.17g}")
    if final := options.getString("final", ""):
        problem.checkpoint(final, u, problem.time, problem.time_steps)

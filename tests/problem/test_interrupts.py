"""Ctrl-C and SIGTERM in runs that write checkpoints: they end after the step, and go on from there."""

from __future__ import annotations

import numpy as np
import pytest

SCRIPT = """
import os, signal, sys, petsc4py
petsc4py.init(sys.argv)
from petsc4py import PETSc
import petsc_hdg as fe

HEAT = fe.Physics({"u": 1}, "f0[0] = u_t[0] - 1;", "for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d];",
                  boundary=[fe.Dirichlet("boundary", "g[0] = 0;")])
LOADED = fe.Physics({"u": 1}, "f0[0] = -9;", HEAT.f1, boundary=HEAT.boundary)

def stops(at, number):
    def monitor(*given):
        count[0] += 1
        if count[0] == at and PETSc.COMM_WORLD.rank == PETSc.COMM_WORLD.size - 1:
            os.kill(os.getpid(), number)
    return monitor

def run(physics, path, monitor=None, **more):
    problem = fe.Problem(fe.Mesh.box((3, 3)), physics, checkpoint=path, check_kernels=False, **more)
    if physics is LOADED:
        if monitor:
            problem.snes.setMonitor(monitor)
        return problem, problem.solve()
    return problem, problem.solve_in_time(problem.create_vec(), t1=0.06, dt=0.01, monitor=monitor)

for name, physics, number in (("heat", HEAT, signal.SIGTERM), ("load", LOADED, signal.SIGINT)):
    path, count = sys.argv[1] + name + ".h5", [0]
    try:
        run(physics, path, stops(3, number), checkpoint_interval=100)
    except KeyboardInterrupt:
        sys.stdout.write(f"{name} ended after {count[0]} calls\\n")  # one write: ranks share the pipe
        sys.stdout.flush()
    problem, u = run(physics, path, restart=path)
    alone = run(physics, sys.argv[1] + "alone.h5")[1]
    PETSc.Sys.Print(name, problem.time_steps, problem.newton_iterations, (u - alone).norm() / alone.norm())
"""


@pytest.mark.parametrize("ranks", [1, 2])
def test_runs_end_with_a_checkpoint(ranks, mpirun, tmp_path):
    script = tmp_path / "run.py"
    script.write_text(SCRIPT)
    said = mpirun(ranks, script, f"{tmp_path}/").stdout
    assert said.count("heat ended after 3 calls") == ranks and said.count("load ended after 3 calls") == ranks
    rows = {words[0]: words[1:] for words in map(str.split, said.splitlines()) if "ended" not in words}
    assert rows["heat"][0] == "6" and int(rows["load"][1]) > 2
    assert np.all([float(row[-1]) < 1e-8 for row in rows.values()])

"""A solver that PETSc leaves by an error, in the middle of a cycle of multigrid: the program ends by its sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

pytestmark = pytest.mark.full

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = f"""
import os, signal, sys, petsc4py
sys.path[:0] = [{str(ROOT)!r}]
petsc4py.init(sys.argv)
from petsc4py import PETSc
import petsc_hdg as fe
from petsc_hdg.operators.matfree import JacobianContext
FLUX = "PetscReal s = 1; for (d = 0; d < 4; ++d) s += u_x[d]*u_x[d];"
FLUX += "for (d = 0; d < 4; ++d) f1[d] = (1 + 1/sqrt(s))*u_x[d];"
fails_at, count, product = PETSc.Options().getInt("fails_at", 0), [0], JacobianContext.mult

def mult(self, *given):
    count[0] += 1
    if count[0] == fails_at:
        os.kill(os.getpid(), signal.SIGINT if PETSc.Options().hasName("interrupt") else 0)
        raise ValueError("a callback")
    return product(self, *given)

JacobianContext.mult = mult

@fe.main
def main():
    physics = fe.Physics({{"u": 2}}, "f0[0] = -1; f0[1] = -2;", FLUX, boundary=[fe.Dirichlet("boundary", [0.0, 0.0])])
    for _ in range(2):
        count[0] = 0
        try:
            fe.Problem(fe.Mesh.box((14, 14), simplex=False), physics, degree=2, check_kernels=False).solve()
        except (fe.SolveError, ValueError, KeyboardInterrupt) as error:
            print("said", str(error) or type(error).__name__, flush=True)
    raise fe.SolveError("the end")
"""
CASES = {
    # The coarse solver calls any first residual too large, and PETSc gives up there.
    "PETSc's solvers failed": tuple(
        "-mg_coarse_ksp_type gmres -mg_coarse_ksp_divtol 1e-30 -mg_coarse_ksp_error_if_not_converged".split()
    ),
    "a callback": ("-fails_at", "8"),
    "KeyboardInterrupt": ("-fails_at", "8", "-interrupt"),
}


@pytest.mark.parametrize("said", CASES)
def test_solvers_left_by_an_error_are_not_destroyed(said, mpirun, tmp_path):
    script = tmp_path / "left.py"
    script.write_text(SCRIPT)
    done = mpirun(1, script, *CASES[said], check=False)
    assert done.returncode == 1 and done.stdout.count(f"said {said}") == 2
    assert "SEGV" not in done.stderr and done.stderr.count("error: the end") == 1

"""A solver that PETSc leaves by an error, in the middle of a cycle of multigrid: the program ends by its sentence."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = f"""
import sys, petsc4py
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
        except (fe.SolveError, ValueError) as error:
            print("said", error, flush=True)
    raise fe.SolveError("the end")
"""
CASES = {
    # Incomplete LU meets rows of zeros, and PETSc gives up where it finds them.
    "PETSc's solvers failed": (
        "-mg_coarse_mg_levels_sub_pc_factor_shift_type",
        "none",
        "-ksp_error_if_not_converged",
    ),
    "a callback": ("-fails_at", "8"),
}


@pytest.mark.parametrize("said", CASES)
def test_solvers_left_by_an_error_are_not_destroyed(said, mpirun, tmp_path):
    script = tmp_path / "left.py"
    script.write_text(SCRIPT)
    done = mpirun(1, script, *CASES[said], check=False)
    assert done.returncode == 1 and done.stdout.count(f"said {said}") == 2
    assert "SEGV" not in done.stderr and done.stderr.count("error: the end") == 1

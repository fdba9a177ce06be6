"""A solver that PETSc leaves by an error, in the middle of a cycle of multigrid: the program ends by its sentence."""

from __future__ import annotations

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = f"""
import sys, petsc4py
sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / "tests")!r}]
petsc4py.init(sys.argv)
import petsc_hdg as fe
FLUX = "PetscReal s = 1; for (d = 0; d < 4; ++d) s += u_x[d]*u_x[d];"
FLUX += "for (d = 0; d < 4; ++d) f1[d] = (1 + 1/sqrt(s))*u_x[d];"

@fe.main
def main():
    physics = fe.Physics({{"u": 2}}, "f0[0] = -1; f0[1] = -2;", FLUX, boundary=[fe.Dirichlet("boundary", [0.0, 0.0])])
    for k in range(2):
        try:
            fe.Problem(fe.Mesh.box((14, 14), simplex=False), physics, degree=2, check_kernels=False).solve()
        except fe.SolveError as error:
            print("said", error, flush=True)
    raise fe.SolveError("PETSc's solvers failed twice")
"""
# Incomplete LU meets rows of zeros, and PETSc gives up where it finds them.
OPTIONS = ("-mg_coarse_mg_levels_sub_pc_factor_shift_type", "none", "-ksp_error_if_not_converged")


def test_solvers_left_by_an_error_are_not_destroyed(mpirun, tmp_path):
    script = tmp_path / "left.py"
    script.write_text(SCRIPT)
    done = mpirun(1, script, *OPTIONS, check=False)
    assert done.returncode == 1 and done.stdout.count("said PETSc's solvers failed") == 2
    assert "SEGV" not in done.stderr and done.stderr.count("error: PETSc's solvers failed") == 1

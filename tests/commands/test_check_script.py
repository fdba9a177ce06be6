"""`check script.py`: the norms of what a script solves, on several numbers of ranks, however it solves."""

from __future__ import annotations

import json

import pytest

from petsc_hdg.commands import check_script
from petsc_hdg.errors import OptionError

START = """
import sys
import petsc4py
petsc4py.init(sys.argv)
from petsc4py import PETSc
import petsc_hdg as fe

comm = PETSc.COMM_WORLD
f1 = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
wall = [fe.Dirichlet("boundary", "g[0] = x[0];")]
"""
# A linear problem by loose solvers, Newton's method by the user's SNES, time steps by the user's TS, a system by a KSP.
ALL = (
    START
    + """
mesh = fe.Mesh.box((4, 4), simplex=False)
with open(f"{sys.argv[1]}-{comm.size}-{comm.rank}", "w") as file:
    file.write(str(mesh.num_cells))
PETSc.Options()["ksp_rtol"] = "1e-3"
linear = fe.Problem(mesh, fe.Physics({"u": 1}, "f0[0] = -1;", f1, boundary=wall))
linear.solve()
curved = "for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d];"
nonlinear = fe.Problem(mesh, fe.Physics({"u": 1}, "f0[0] = -1;", curved, boundary=wall))
snes = PETSc.SNES().create(comm)
nonlinear.attach(snes)
snes.setFromOptions()
snes.solve(None, nonlinear.create_vec())
heat = fe.Problem(mesh, fe.Physics({"u": 1}, "f0[0] = u_t[0] - 1;", f1, boundary=wall))
ts = PETSc.TS().create(comm)
heat.attach(ts)
ts.setType("beuler")
ts.setTimeStep(0.1)
ts.setMaxTime(0.2)
ts.setExactFinalTime(PETSc.TS.ExactFinalTime.MATCHSTEP)
ts.setFromOptions()
ts.solve(heat.create_vec())
ksp = PETSc.KSP().create(comm)
ksp.setOperators(linear.callbacks.assembled.mat)
ksp.setFromOptions()
b = linear.create_vec()
b.set(1.0)
ksp.solve(b, b.duplicate())
"""
)
OF_RANKS = (
    START
    + """
physics = fe.Physics({"u": 1}, "f0[0] = -load;", f1, boundary=wall, constants={"load": comm.size})
fe.Problem(fe.Mesh.box((4, 4), simplex=False), physics).solve()
"""
)
FAILS = START + "if comm.size == 2: raise fe.PetscHdgError('two are a crowd')\n" + OF_RANKS.removeprefix(START)
NOTHING = START + "print('nothing')"
GIVEN = START + 'fe.Problem(fe.Mesh.box((1, 1)), fe.Physics({"u": 1}, "f0[0] = -1;", f1, boundary=wall)).solve()'


def check(mpirun, folder, text: str, *options, ranks: int = 0):
    script = folder / "script.py"
    script.write_text(text)
    return mpirun(ranks, "-m", "petsc_hdg", "check", *options, script, folder / "cells", check=False)


@pytest.fixture(scope="module")
def everything(mpirun, tmp_path_factory):
    folder = tmp_path_factory.mktemp("check")
    done = check(mpirun, folder, ALL, "-ranks", "1,2", "-random", "4", "-json", folder / "check.json")
    return done, folder


def test_all_ways_to_solve_are_seen(everything):
    done, folder = everything
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all agree" in done.stdout and done.stdout.count("agrees") == 1
    rows = json.loads((folder / "check.json").read_text())
    assert [row["ranks"] for row in rows] == [1, 2] and all(row["difference"] <= 1e-11 for row in rows)
    for row in rows:
        assert [s["what"] for s in row["solutions"]] == [
            *("Problem.solve (cg_gpu)", "SNES.solve", "TS.solve", "KSP.solve")
        ]
        assert {s["size"] for s in row["solutions"]} == {9} and all(
            s["norms"]["2-norm"] > 0.05 for s in row["solutions"]
        )


def test_cells_are_dealt_out_at_random(everything):
    """Two ranks hold 16 cells, and not the 8 each that a partitioner of PETSc would give them."""
    _, folder = everything
    mine = [int((folder / f"cells-2-{rank}").read_text()) for rank in range(2)]
    assert sum(mine) == 16 and mine[0] != 8


def test_a_difference_is_told(mpirun, tmp_path):
    done = check(mpirun, tmp_path, OF_RANKS, "-ranks", "1,2")
    assert done.returncode == 1 and "2 ranks: DIFFERS, largest difference" in done.stdout, done.stdout


def test_a_failure_is_told(mpirun, tmp_path):
    done = check(mpirun, tmp_path, FAILS, "-ranks", "1,2")
    assert done.returncode == 1 and "2 ranks: FAILS, it ended with exit code" in done.stdout
    assert done.stdout.count("two are a crowd") == 1


def test_a_script_without_solves(mpirun, tmp_path):
    done = check(mpirun, tmp_path, NOTHING, "-ranks", "1")
    assert done.returncode == 1 and "solved nothing" in done.stdout


def test_solutions_without_unknowns_compare_nothing(mpirun, tmp_path):
    done = check(mpirun, tmp_path, GIVEN, "-ranks", "1")
    assert done.returncode == 1 and "solved nothing: there are no unknowns" in done.stdout, done.stdout


def test_one_unknown_is_one():
    assert check_script._title({"what": "KSP.solve", "size": 1}) == "KSP.solve with 1 unknown"


def test_it_starts_mpiexec_itself(mpirun, tmp_path):
    done = check(mpirun, tmp_path, NOTHING, ranks=2)
    assert done.returncode == 1 and done.stderr.count("without mpiexec") == 1


def test_scripts_that_are_not_there(monkeypatch):
    monkeypatch.setenv("PMIX_RANK", "0")  # MPI sets these two in a process that it starts as a single one
    monkeypatch.setenv("OMPI_COMM_WORLD_SIZE", "1")
    with pytest.raises(OptionError, match="is no file"):
        check_script.main(["-ranks", "1", "nowhere.py"])


def test_a_file_that_cannot_be_written(tmp_path):
    (tmp_path / "script.py").write_text("")
    with pytest.raises(OptionError, match="script.py is no folder"):
        check_script.main(["-json", str(tmp_path / "script.py" / "c.json"), str(tmp_path / "script.py")])


def solution(norm: float, size: int = 9, what: str = "Problem.solve") -> list[dict]:
    return [{"what": what, "size": size, "norms": {"2-norm": norm}}]


def test_comparisons():
    first = solution(2.0)
    assert check_script.largest_difference(first, solution(2.0)) == (0.0, "all norms")
    worst, where = check_script.largest_difference(first, solution(2.0 + 2e-6))
    assert worst == pytest.approx(1e-6) and "2-norm of solution number 1," in where
    assert check_script.largest_difference(first, solution(float("nan")))[0] != 0.0
    assert check_script.largest_difference(solution(0.0), solution(1e-3))[0] == 1e-3
    assert "2 solutions" in check_script.differs(first, 2 * solution(2.0))
    assert "8 unknowns" in check_script.differs(first, solution(2.0, 8))
    assert "SNES.solve" in check_script.differs(first, solution(2.0, 9, "SNES.solve"))
    assert not check_script.differs(first, solution(3.0))


def test_nan_never_agrees():
    run = check_script.Run(2, solution(float("nan")))
    assert not run.report(check_script.Run(1, solution(float("nan"))), 1e-11)

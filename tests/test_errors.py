"""Errors are agreed by all ranks, within blocks of blocks too; an error of one agreement is none of another."""

from __future__ import annotations

from pathlib import Path

import pytest
from mpi4py import MPI
from petsc4py import PETSc

import petsc_hdg as fe
from petsc_hdg import errors
from petsc_hdg.errors import MeshError, causes, collectively, our_error

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.quick
@pytest.mark.parametrize("ranks", [1, 3])
def test_blocks_within_one_another(mpirun, ranks):
    done = mpirun(ranks, Path(__file__).with_name("run_agreement.py"), timeout=60)
    assert done.stdout.count("agreed") == ranks


def test_an_error_that_all_ranks_raise_names_none():
    with pytest.raises(MeshError) as caught, collectively(MPI.COMM_SELF):
        raise MeshError("here")
    assert caught.value.failed_rank is None and caught.value.agreed_on == MPI.COMM_SELF.py2f()


def test_an_error_raised_while_one_is_handled_is_agreed_anew(monkeypatch):
    asked = []
    monkeypatch.setattr(
        errors, "_any_failed", lambda comm, error, patience: asked.append(type(error)) or error is not None
    )
    with pytest.raises(ValueError), collectively(MPI.COMM_SELF):
        try:
            with collectively(MPI.COMM_SELF):
                raise MeshError("first")
        except MeshError as error:
            raise ValueError("second") from error
    assert asked == [MeshError, ValueError]


@pytest.mark.quick
def test_a_rank_that_fails_does_not_wait_for_ever(mpirun, tmp_path):
    script = tmp_path / "elsewhere.py"
    script.write_text(ELSEWHERE)
    done = mpirun(2, script, check=False, timeout=60)
    assert done.returncode == 1 and done.stderr.count("error: alone [rank 1]") == 1


ELSEWHERE = f"""
import sys
sys.path.insert(0, {str(ROOT)!r})
from mpi4py import MPI
from petsc_hdg import errors, run
errors.PATIENCE = run.PATIENCE = 0.5
def main():
    with errors.collectively(MPI.COMM_WORLD):
        if MPI.COMM_WORLD.rank == 1:
            raise errors.MeshError("alone")
        MPI.COMM_WORLD.Barrier()
run.guarded(main)
"""


def test_our_error_is_found_behind_others():
    inner = MeshError("inside")
    try:
        try:
            raise inner
        except MeshError as error:
            raise RuntimeError("wrapped") from error
    except RuntimeError as outer:
        assert our_error(outer) is inner
    assert our_error(ValueError("alone")) is None


def test_errors_that_stand_behind_each_other():
    first, second = ValueError("first"), RuntimeError("second")
    first.__context__, second.__cause__ = second, first
    assert our_error(first) is None


def test_an_error_that_stands_behind_itself_is_one_cause():
    first, second = ValueError("first"), KeyError("second")
    first.__cause__, second.__cause__ = second, first
    assert list(causes(first)) == [first, second] and our_error(second) is None


def test_warnings_name_the_line_of_the_user():
    """Through properties, decorators and contexts of the package, from the script and from a callback of PETSc."""
    wind = fe.Physics({"u": 1}, "f0[0] = 1e3*u_x[0];", "u_x[d]", boundary=[fe.Dirichlet("boundary", 0)])
    problem = fe.Problem(fe.Mesh.box((2, 2), comm=PETSc.COMM_SELF), wind, check_kernels=False)
    with pytest.warns(UserWarning, match="cell Péclet number") as caught:
        problem.solve()
    with pytest.warns(UserWarning, match="in pieces") as pieces:
        fe.agglomerate(problem.mesh, groups=[0, 1, 1, 1, 1, 1, 1, 0])
    assert {found.filename for found in (*caught, *pieces)} == {__file__}
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    assert lines[caught[0].lineno - 1].strip() == "problem.solve()"


def test_the_package_warns_in_one_way():
    package = Path(errors.__file__).parent
    assert [path.name for path in package.rglob("*.py") if "warnings.warn" in path.read_text(encoding="utf-8")] == [
        "errors.py"
    ]

"""Bad inputs end in one clear sentence: on one rank, on three without hanging, and as the end of a program."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bad_input_table import BAD
from petsc4py import PETSc

from petsc_hdg.errors import PetscHdgError

ROOT = Path(__file__).parents[2]
RUN = Path(__file__).with_name("run_bad_input_table.py")
POISSON = ROOT / "examples" / "poisson.py"
PROGRAMS = {
    "degree": (["-fe_degree", "41"], {}, "fe_degree 41"),
    "device": (["-fe_device", "abacus"], {}, "no OpenCL device matches 'abacus'"),
    "no driver": ([], {"OCL_ICD_VENDORS": "/nonexistent", "OCL_ICD_FILENAMES": ""}, "no OpenCL device was found"),
    "solver": (["-ksp_max_it", "1", "-pc_type", "none", "-dm_plex_box_faces", "5,4"], {}, "stopped without a solution"),
}


def assert_sentence(message: str, pattern: str) -> None:
    assert re.search(pattern, message), message
    assert "\n" not in message.strip() and 20 < len(message) < 700, message


def test_the_table_is_long():
    assert len(BAD) >= 50


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name, tmp_path):
    attempt, pattern = BAD[name]
    with pytest.raises(PetscHdgError) as caught:
        attempt(PETSc.COMM_SELF, tmp_path)
    assert_sentence(str(caught.value), pattern)


def test_bad_inputs_on_three_ranks(mpirun):
    assert "errors agree" in mpirun(3, RUN).stdout


@pytest.mark.quick
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_end_with_one_sentence(mpirun, name):
    arguments, env, pattern = PROGRAMS[name]
    done = mpirun(3, POISSON, *arguments, check=False, timeout=60, env=env)
    assert done.returncode != 0
    said = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
    assert len(said) == 1 and "Traceback" not in done.stderr, done.stderr
    assert_sentence(said[0], pattern)


@pytest.mark.quick
def test_an_error_inside_a_callback_ends_the_program_with_its_sentence(mpirun, tmp_path):
    script = tmp_path / "differences.py"
    script.write_text(DIFFERENCES)
    for ranks in (1, 3):
        options = "-fe_backend sipg_gpu -snes_fd -fe_pmat conforming".split()
        done = mpirun(ranks, script, *options, check=False, timeout=60)
        assert done.returncode != 0
        said = [line for line in done.stderr.splitlines() if line.startswith("error: ")]
        assert len(said) == 1 and re.search("zeroEntries.*-fe_pmat aij", said[0]), done.stderr
        assert "Traceback" not in done.stderr


DIFFERENCES = f"""
import sys, petsc4py
petsc4py.init(sys.argv)
sys.path.insert(0, {str(ROOT)!r})
import petsc_hdg as fe

@fe.main
def main():
    physics = fe.Physics({{"u": 1}}, "f0[0] = -1;", "for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
                         boundary=[fe.Dirichlet("boundary", 0.0)], name="poisson")
    fe.Problem(fe.Mesh.box((3, 3)), physics).solve()
"""

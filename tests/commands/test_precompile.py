"""`precompile`: afterwards a first solve compiles nothing; on a node each program is compiled once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import petsc_hdg as fe
from petsc_hdg.commands.precompile import compile_all
from petsc_hdg.device import build
from petsc_hdg.errors import SolveError
from petsc_hdg.mesh import agglomerate

SCHEMES = ("cg_gpu", "hdg_gpu", "sipg_gpu", "poly_gpu")
SCRIPT = """
import sys
import petsc4py
petsc4py.init(sys.argv)
import petsc_hdg as fe
physics = fe.Physics({"u": 1}, "f0[0] = -2;", "for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
                     boundary=[fe.Dirichlet("boundary", "g[0] = 0;")])
print("begun with", fe.Options.from_petsc().degree)
problem = fe.Problem(fe.Mesh.box([2, 2]), physics)
u = problem.solve()
print("solved")
"""


def physics() -> fe.Physics:
    """-∇·∇u = 0 with u = x on the boundary."""
    f1 = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
    exact = {"u": "u[0] = x[0];"}
    return fe.Physics({"u": 1}, None, f1, boundary=[fe.Dirichlet("boundary", "exact")], exact=exact, name="warm")


def problem(scheme: str, faces) -> fe.Problem:
    mesh = fe.Mesh.box(faces)
    mesh = agglomerate(mesh, mesh.num_cells // 3) if scheme == "poly_gpu" else mesh
    return fe.Problem(mesh, physics(), fe.Options(backend=scheme, degree=1))


@pytest.mark.full
@pytest.mark.parametrize("scheme", SCHEMES)
def test_nothing_is_left_to_compile(scheme, fresh_cache, monkeypatch):
    compiled, original = [], build._compiled

    def counted(device, spec, entry):
        compiled.append(spec.name)
        return original(device, spec, entry)

    monkeypatch.setattr(build, "_compiled", counted)
    compile_all(problem(scheme, [3, 3]))
    assert len(compiled) >= 4
    compiled.clear()
    larger = problem(scheme, [9, 7])
    u = larger.solve()
    assert larger.errors(u)["L2"] < 1e-8 and larger.cell_values(u)
    assert compiled == []


def test_a_problem_goes_on_as_before(tmp_path):
    given = problem("cg_gpu", [4, 4])
    compile_all(given)
    assert given.errors(given.solve())["L2"] < 1e-8


def test_missing_data_are_told():
    kappa = {"kappa": fe.Auxiliary(1, "cell")}
    flux = "for (d = 0; d < dim; ++d) f1[d] = a[0] * u_x[d];"
    given = fe.Physics({"u": 1}, None, flux, boundary=[fe.Dirichlet("boundary", "g[0] = 0;")], auxiliary=kappa)
    with pytest.raises(SolveError, match="auxiliary field 'kappa' has no values yet"):
        compile_all(fe.Problem(fe.Mesh.box([2, 2]), given, fe.Options()))


def test_a_script_runs_to_its_first_solve(mpirun, tmp_path):
    script, cache = tmp_path / "script.py", tmp_path / "cache"
    script.write_text(SCRIPT)
    env = {"PETSC_HDG_CACHE": str(cache)}
    done = mpirun(1, "-m", "petsc_hdg", "precompile", script, "-fe_degree", "2", env=env)
    assert "begun with 2" in done.stdout and "solved" not in done.stdout and f"{script}:" in done.stdout
    programs = {path.parent.name for path in cache.rglob("program.bin")}
    done = mpirun(1, script, "-fe_degree", "2", env=env)
    assert "solved" in done.stdout and {path.parent.name for path in cache.rglob("program.bin")} == programs


def test_a_script_that_is_not_there(mpirun, tmp_path):
    done = mpirun(1, "-m", "petsc_hdg", "precompile", tmp_path / "none.py", check=False)
    assert done.returncode == 1 and "give the path of a Python script" in done.stderr


def test_ranks_of_a_node_compile_each_program_once(mpirun, tmp_path):
    """The others wait for the file that the first one writes, where they take the program."""
    told = tmp_path / "told.json"
    script = Path(__file__).with_name("run_compiles.py")
    mpirun(3, script, told, env={"PETSC_HDG_CACHE": str(tmp_path / "cache")})
    first, second = json.loads(told.read_text())
    assert len(first["all"]) >= 4 and all(len(programs) >= 3 for programs in first["programs"])
    assert sorted(sum(first["compiled"], [])) == sorted(first["all"])  # none twice, whichever rank it was
    assert second["compiled"] == [[], [], []] and second["all"] == first["all"]

"""Flows by the fieldsplit options of PETSc's tutorials: Navier-Stokes in time, variable viscosity, Stokes in 3D."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("run_flows.py")
# Most iterations of the linear solve and of the pressure's solve in it, and errors of velocity and pressure.
CASES = {
    ("navier_stokes", 2): (1, 130, 1e-9, 1e-9),
    ("navier_stokes_selfp", 2): (1, 24, 1e-9, 1e-9),
    ("variable_viscosity", 2): (1, 36, 1e-4, 0.4),
    ("stokes_selfp", 2): (32, 1, 1e-7, 1e-6),
    ("stokes", 2): (6, 16, 1e-7, 1e-6),
    ("stokes", 3): (6, 26, 1e-7, 1e-6),
}


@pytest.mark.full
@pytest.mark.parametrize(("case", "dim", "ranks"), [(*case, 1 + 2 * (case[1] == 2)) for case in CASES])
def test_flows_converge_with_the_options_of_tutorials(mpirun, case, dim, ranks):
    faces = ("4", "8") if dim == 2 else ("2", "4")
    found = json.loads(mpirun(ranks, SCRIPT, case, str(dim), *faces).stdout.splitlines()[-1])
    for numbers in found:
        assert all(number <= most for number, most in zip(numbers, CASES[case, dim], strict=True)), found

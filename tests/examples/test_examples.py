"""Every example runs and prints the number that it should; a few on two ranks."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NUMBER = r"([-+\d.eE]+)"
L2 = rf"error\s+L2 {NUMBER}"
BESIDE = rf"L∞ .*?, L2 {NUMBER}"  # L2 error on the line of L∞
BOTH = rf"L2\(L2\) {NUMBER}"  # in space and time

# file → (ranks, arguments, {pattern with one number: (least, most)})
RUNS = {
    "convection_diffusion_hdg": [
        (1, ["-faces", "12"], {L2: (1e-3, 1e-2), rf"through bottom {NUMBER}": (0.0886, 0.08865)}),
        (2, ["-faces", "10"], {L2: (1e-3, 2e-2)}),
    ],
    "demo": [(2, ["-fe_degree", "1"], {L2: (2e-4, 1.2e-3), rf"iterations\s+{NUMBER}": (1, 40)})],
    "cylinder_hdg": [
        (
            1,
            ["-around", "16", "-out", "8"],
            {rf"drag coefficient {NUMBER}": (1.54, 1.6), rf"eddies of length {NUMBER}": (2.0, 3.0)},
        ),
        (1, ["-around", "16", "-out", "10", "-far", "60"], {rf"drag coefficient {NUMBER}": (1.52, 1.535)}),
        (
            2,
            ["-around", "12", "-out", "6", "-fe_degree", "1", "-reynolds", "100", "-end", "0.2"],
            {rf"drag coefficient {NUMBER}": (5, 15), rf"lift {NUMBER}": (1, 10)},
        ),
    ],
    "degenerate_poly": [
        (2, ["-fe_degree", "2", "-kinds", "falling"], {rf"falling .* L2 {NUMBER}": (0.05, 0.2)}),
    ],
    "diffusion_voronoi": [
        (
            2,
            ["-cells", "40,160"],
            {
                rf"160 .*ions +{NUMBER}": (1, 20),
                rf"160 .* L2 {NUMBER}": (2e-4, 6e-4),
                rf"L2 \S+ \({NUMBER}\)": (2.4, 3.3),
                rf"H1 \S+ \({NUMBER}\)": (1.6, 2.3),
            },
        ),
    ],
    "elasticity": [(1, [], {"WORK": (5.25e-3, 5.35e-3)}), (2, [], {"WORK": (5.25e-3, 5.35e-3)})],
    "elasticity_hdg": [
        (1, ["-degrees", "1"], {rf"cg_gpu {NUMBER}": (1.3e-3, 1.4e-3), rf"hdg_gpu {NUMBER}": (4.3e-3, 4.4e-3)}),
        (2, ["-degrees", "2", "-n", "4"], {rf"hdg_gpu {NUMBER}": (4.6e-3, 4.8e-3)}),
    ],
    "flat_plate_hdg": [
        (
            2,
            ["-along", "6", "-up", "8", "-ahead", "5"],
            {rf"drag coefficient {NUMBER}": (0.0133, 0.0142), rf"x 0.6 .* ratio {NUMBER}": (0.97, 1.05)},
        ),
    ],
    "heat": [
        (1, ["-ts_dt", "0.005"], {L2: (1e-5, 2e-3)}),
        (2, ["-ts_type", "beuler", "-ts_dt", "0.005"], {L2: (1e-3, 2e-2)}),
        (2, ["-fe_backend", "hdg_gpu", "-ts_dt", "0.005"], {L2: (1e-5, 2e-3), rf"steps, {NUMBER} iter": (10, 40)}),
    ],
    "heat_space_time": [
        (1, [], {BOTH: (7e-3, 9e-3), rf"t = 1: L2 {NUMBER}": (5e-4, 2e-3)}),
        (
            2,
            ["-poly_time_space", "total", "-poly_time_degree", "2", "-local", "2", "-polytopes", "40"],
            {BOTH: (5e-4, 8e-3), rf"; {NUMBER} iterations": (10, 400)},
        ),
    ],
    "helmholtz_hdg": [  # an independent program has 1.594e-2, 3.844e-3, then 4.959e-4, 7.837e-5
        (1, ["-orders", "1"], {rf"L∞ {NUMBER}": (1.5925e-2, 1.5955e-2), BESIDE: (3.840e-3, 3.848e-3)}),
        (1, ["-orders", "2"], {rf"L∞ {NUMBER}": (4.954e-4, 4.964e-4), BESIDE: (7.829e-5, 7.845e-5)}),
        (2, ["-orders", "1", "-n", "10"], {BESIDE: (0.05, 0.07)}),
        (1, ["-orders", "1", "-n", "4", "-king_table"], {rf"local solve {NUMBER}": (0, 1e3)}),
    ],
    "hyperelasticity": [
        (2, ["-steps", "2", "-angle", "1"], {rf"angle 1.000 .* displacement {NUMBER}": (0.6, 0.7)}),
    ],
    "jumping_tensor_sipg": [
        (
            1,
            ["-faces", "6", "-jumps", "0,6"],
            {
                rf"1e\+0 .* L2 {NUMBER}": (1e-6, 2e-5),
                rf"1e\+6 .* L2 {NUMBER}": (1e-6, 2e-5),
                rf"1e\+6 .*ions +{NUMBER}": (5, 40),
            },
        ),
        (2, ["-faces", "6", "-jumps", "3", "-dm_plex_simplex", "0"], {rf"1e\+3 .* L2 {NUMBER}": (1e-8, 2e-5)}),
    ],
    "minimal_surface": [(1, [], {L2: (1e-4, 3e-4), rf"Newton steps {NUMBER}": (3, 10)})],
    "naca0012_hdg": [
        (
            1,
            ["-around", "10", "-wake", "6", "-out", "10"],
            {rf"drag coefficient {NUMBER}": (0.0547, 0.0565), rf"separation at {NUMBER}": (0.79, 0.84)},
        ),
    ],
    "nonlinear_hdg": [
        (
            1,
            ["-faces", "8", "-epsilon", "0.05", "-fe_degree", "2"],
            {rf"0.0500 .* steps +{NUMBER}": (3, 5), rf"0.0500 .* L2 {NUMBER}": (5e-4, 5e-3)},
        ),
        (2, ["-faces", "6", "-epsilon", "0.1", "-fe_degree", "2"], {rf"steps +{NUMBER}": (3, 6)}),
    ],
    "nonlinear_sipg": [
        (
            1,
            ["-dm_plex_box_faces", "6,6"],
            {
                rf"alpha 1 .* steps {NUMBER}": (3, 6),
                rf"alpha 10 .* steps {NUMBER}": (3, 8),
                rf"alpha 10 .* L2 {NUMBER}": (1e-6, 1e-4),
            },
        ),
        (
            2,
            ["-dm_plex_dim", "3", "-dm_plex_box_faces", "2,2,2", "-dm_plex_simplex", "0", "-alphas", "1"],
            {rf"alpha 1 .* L2 {NUMBER}": (1e-5, 1e-3)},
        ),
    ],
    "oscillating_boundary_poly": [
        (
            2,
            ["-triangles", "1152", "-waves", "3", "-agglomerates", "16,64", "-fewer_cells"],
            {rf" 64 .*ions +{NUMBER}": (1, 20), rf" 64 .* L2 {NUMBER}": (1e-4, 5e-4), rf"order {NUMBER}": (2.7, 3.7)},
        ),
    ],
    "own_mesh": [(2, ["-fe_degree", "3"], {L2: (0, 1e-9)})],
    "p_laplacian": [
        (
            1,
            ["-p", "3", "-steps", "2"],
            {rf"p  3.00 .* L2 {NUMBER}": (1e-5, 6e-5), rf"p  2.00 .* L2 {NUMBER}": (0, 1e-11)},
        )
    ],
    "petsc_functions": [(1, [], {L2: (0, 1e-6)})],
    "poisson": [
        (1, [], {L2: (1e-3, 1)}),
        (2, ["-dm_plex_dim", "3", "-dm_plex_box_faces", "4,4,4", "-fe_degree", "2"], {L2: (1e-3, 3e-2)}),
        (
            2,
            ["-fe_backend", "hdg_gpu", "-dm_plex_box_faces", "8,8", "-fe_degree", "2"],
            {L2: (3e-4, 1e-3), rf"star {NUMBER}": (1e-6, 3e-5)},
        ),
        (2, ["-fe_backend", "sipg_gpu", "-dm_plex_box_faces", "8,8", "-fe_degree", "2"], {L2: (1e-5, 1e-3)}),
        (
            2,
            ["-fe_backend", "poly_gpu", "-dm_plex_box_faces", "12,12", "-fe_degree", "2", "-poly_agglomerates", "40"],
            {L2: (1e-3, 1e-2), rf"unknowns\s+{NUMBER}": (240, 240)},
        ),
    ],
    "poisson_sipg": [  # Gorlani's tables 4.6 and 4.3
        (
            2,
            ["-n", "4", "-degrees", "2"],
            {rf"L2 {NUMBER} \(": (2.8040e-5, 2.8041e-5), rf"H1 {NUMBER} \(": (7.3904e-3, 7.3906e-3)},
        ),
        (
            1,
            ["-solution", "B", "-one_cell", "-degrees", "6", "-pc_type", "jacobi"],
            {rf"L2 {NUMBER} \(": (1.4174e-3, 1.4175e-3)},
        ),
    ],
    "reacting_front": [
        (
            1,
            ["-faces", "12", "-fe_degree", "2", "-ts_dt", "0.01"],
            {L2: (1e-3, 3e-2), rf"steps, {NUMBER} of": (20, 80)},
        ),
    ],
    "sod_hdg": [
        (
            2,
            ["-faces", "16"],
            {
                rf"L1 {NUMBER}": (0.02, 0.032),
                rf"variation {NUMBER}": (0.99, 1.03),
                rf"most density {NUMBER}": (0.999, 1.002),
                rf"least density {NUMBER}": (0.124, 0.1251),
                rf"least pressure {NUMBER}": (0.099, 0.1001),
            },
        ),
    ],
    "taylor_green_hdg": [
        (
            1,
            ["-faces", "4", "-fe_degree", "1", "-end", "0.1"],
            {rf"0.00   energy {NUMBER}": (0.088, 0.095), rf"0.10 .* dissipated {NUMBER}": (5.4e-3, 6.1e-3)},
        ),
        *(
            (
                ranks,
                ["-faces", "2", "-fe_degree", "1", "-end", "0.1", *whole],
                {rf"0.10   energy {NUMBER}": (0.03336, 0.03338), rf"0.10 .* dissipated {NUMBER}": (2.42e-3, 2.44e-3)},
            )
            for ranks, whole in ((1, []), (2, ["-whole"]))
        ),
    ],
    "vortex_hdg": [
        (
            2,
            ["-faces", "6", "-fe_degree", "1", "-end", "0.05", "-flux", "roe"],
            {L2: (1e-3, 5e-2), rf"entropy {NUMBER}": (1e-5, 1e-2)},
        ),
    ],
}
NAMES = {"WORK": rf"work of the load {NUMBER}"}


def test_every_example_is_listed():
    assert sorted(RUNS) == sorted(path.stem for path in (ROOT / "examples").glob("*.py"))


QUICK = ("poisson",)  # all schemes


@pytest.mark.parametrize(
    "name, ranks, arguments, expected",
    [
        pytest.param(name, *run, id=f"{name}-{run[0]}", marks=pytest.mark.quick if name in QUICK and run[0] > 1 else ())
        for name, runs in RUNS.items()
        for run in runs
    ],
)
def test_example(mpirun, name, ranks, arguments, expected):
    said = mpirun(ranks, f"examples/{name}.py", *arguments).stdout
    for pattern, (least, most) in expected.items():
        found = re.search(NAMES.get(pattern, pattern), said)
        assert found, f"no '{pattern}' in\n{said}"
        assert least <= float(found.group(1)) <= most, said


def test_report_of_an_example(mpirun, tmp_path):
    report = tmp_path / "report.json"
    mpirun(2, "examples/poisson.py", "-dm_plex_box_faces", "8,8", "-fe_degree", "2", "-fe_report", report)
    data = json.loads(report.read_text())
    assert (data["ranks"], data["cells"], data["dofs"]) == (2, 128, 15 * 15)
    assert 0 < data["errors"]["L2"] < 0.1 * data["errors"]["H1"] < 0.1


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.name)
def test_examples_are_one_page(path):
    text = path.read_text(encoding="utf-8")
    assert "Things to try" in text and f"examples/{path.name}" in text
    assert len(text.splitlines()) <= 130

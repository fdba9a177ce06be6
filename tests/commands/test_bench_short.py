"""`bench` without a scheme, its limits, and the roofline picture."""

from __future__ import annotations

import json

import pytest
from bench import SCHEMES, _parser, full, roofline, short
from bench.row import COLUMNS, _digits, format_rows, limited

from petsc_hdg.errors import OptionError


@pytest.fixture(scope="module")
def bench(mpirun, tmp_path_factory):
    """Rows of the short set on small meshes, and what was printed."""
    path = tmp_path_factory.mktemp("bench") / "rows.json"
    done = mpirun(1, "benchmarks/bench", "-cells", "500", "-repeat", "1", "-json", path)
    return json.loads(path.read_text()), done.stdout


def test_the_short_set_has_a_row_of_each_choice(bench):
    rows, said = bench
    assert [f"{r['kernel']} {r['cell']} P{r['degree']}" for r in rows] == [only for _, only in short.CHOSEN]
    table = [line for line in said.splitlines() if line.startswith("  ")][-len(rows) - 1 :]
    assert all(name in table[0] for name in COLUMNS)
    assert all(row["kernel"] in line for row, line in zip(rows, table[1:], strict=True))
    assert {scheme for scheme, _ in short.CHOSEN} == {*SCHEMES.values()}
    assert {*full.SCHEMES} == {*SCHEMES.values()} - {SCHEMES["trace"]}


def test_rows_stand_beside_their_limit(bench):
    for row in bench[0]:
        memory = row["bytes_compulsory"] / row["copy_GBs_same_run"] / 1e9
        arithmetic = row["flops"] / row["peak_gflops_same_run"] / 1e9
        assert row["limit_seconds"] == pytest.approx(max(memory, arithmetic))
        assert row["fraction_of_limit"] == pytest.approx(row["limit_seconds"] / row["seconds_median"])


def test_a_limit_of_its_own_stays():
    row = {"bytes_compulsory": 1e9, "copy_GBs_same_run": 100.0, "flops": 1e9, "seconds_median": 0.5}
    assert limited(row, 1e12)["fraction_of_limit"] == pytest.approx(0.01 / 0.5)
    assert limited(row, 1e9)["fraction_of_limit"] == pytest.approx(1 / 0.5)
    assert limited(row | {"limit_seconds": 0.25}, 1e9)["fraction_of_limit"] == pytest.approx(0.5)


def test_a_row_in_the_table(bench):
    row = bench[0][0] | {"seconds_median": 2e-3, "bytes_compulsory": 3e6, "components": 4, "fraction_of_limit": 0.25}
    cells = format_rows([row], header=False).split()
    assert "× 4" in format_rows([row]) and "2.00" in cells and "1.50" in cells and cells[-1] == "0.250"
    beside = row | {"peer": {"cusparse csr": 5e-3, "cusparse bsr": 1e-3}, "difference": 3e-16}
    said = format_rows([beside], header=False)
    assert said == format_rows([row], header=False) + " cusparse csr 2.50, cusparse bsr 0.50, difference 3e-16"
    assert [_digits(x) for x in (0, 0.00012345, 0.5, 12.34, 123.4, 1234.5)] == "0 0.000123 0.500 12.3 123 1234".split()


def test_the_roofline_picture(bench, tmp_path):
    file, png = tmp_path / "rows.json", tmp_path / "roof.png"
    file.write_text(json.dumps(bench[0]))
    assert roofline.draw([str(file)], str(png)) == 0
    assert png.read_bytes()[:4] == b"\x89PNG" and png.stat().st_size > 10_000
    drawn = {roofline._group(row) for row in bench[0]}
    assert drawn == {*roofline.GROUPS}
    assert roofline._group({"kernel": "poly total, 2, x4"}) is None


@pytest.mark.parametrize(
    "content, message",
    [
        (None, "cannot be read as JSON"),
        ("{}", "holds no rows"),
        ("[]", "of one device; these rows are of none"),
        ('[{"kernel": "cg", "device": "a", "flops": 0, "bytes_compulsory": 1}]', "nothing to draw"),
    ],
)
def test_rows_that_cannot_be_drawn(tmp_path, content, message):
    file = tmp_path / "rows.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(OptionError, match=message):
        roofline.draw([str(file)], str(tmp_path / "roof.png"))
    assert not (tmp_path / "roof.png").exists()


@pytest.mark.parametrize("arguments", [["roofline"], ["cg", "rows.json"], ["cg", "-full"], ["--full", "sipg"]])
def test_arguments_that_do_not_go_together(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        _parser().parse_args(arguments)
    assert ended.value.code == 2 and "usage" in capsys.readouterr().err


def test_full_by_either_name():
    for name in ("-full", "--full"):
        given = _parser().parse_args([name])
        assert given.full and given.json == "bench.json" and given.png == "roofline.png"

"""The text of a program: exact numbers, named lines, nothing missing."""

import re

import numpy as np
import pytest

from petsc_hdg.codegen import KernelSpec, library
from petsc_hdg.codegen.preamble import literal, macro_text, table_text
from petsc_hdg.errors import DeviceError


def spec(**changes) -> KernelSpec:
    given = dict(name="selftest_add", sources=("selftest.cl",), macros={"GROUP": 64}, tables={"SHIFT": np.array([0.1])})
    return KernelSpec(**{**given, **changes})


@pytest.mark.parametrize("value", [0.1, -1 / 3, 1e-310, 0.0, -0.0, 2.0, np.nextafter(1.0, 2.0), 1.7e308])
def test_double_literals_lose_no_digit(value):
    assert float.fromhex(literal(value, "double")) == value
    assert np.signbit(float.fromhex(literal(value, "double"))) == np.signbit(value)


def test_single_literals_are_rounded_once():
    text = literal(0.1, "single")
    assert text.endswith("f")
    assert np.float32(float.fromhex(text[:-1])) == np.float32(0.1)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_literals_are_finite(value):
    with pytest.raises(DeviceError, match="finite"):
        literal(value, "double")


def test_tables_are_flat_and_row_major():
    text = table_text("TABLE", np.arange(6.0).reshape(2, 3), "double")
    values = [float.fromhex(v) for v in re.findall(r"-?0x[^,}\s]+", text)]
    assert values == [0, 1, 2, 3, 4, 5]
    assert "__constant real TABLE[6]" in text
    assert table_text("TABLE", np.array([[1, 2]]), "double") == "__constant int TABLE[2] = {\n1, 2};"
    assert "EMPTY[1]" in table_text("EMPTY", np.zeros((0, 3)), "double")


@pytest.mark.parametrize(
    ("value", "text"),
    [(3, "(3)"), (-3, "(-3)"), (np.int64(3), "(3)"), (True, "(1)"), (0.5, "(0x1.0000000000000p-1)"), ("x[i]", "x[i]")],
)
def test_macros(value, text):
    assert macro_text("NAME", value, "double") == f"#define NAME {text}"


def test_parts_stand_in_order_and_are_located():
    source = spec(physics='#line 1 "physics: poisson.f0"\nf0[0] = 1;\n').program_source()
    parts = ("common.clh", "physics", "physics: poisson.f0", "sizes", "selftest.cl")
    places = [source.index(f'#line 1 "{part}"') for part in parts]
    assert places == sorted(places)
    shipped = library.kernel_text("selftest.cl")
    assert source.endswith(f'#line 1 "selftest.cl"\n{shipped}')


def test_missing_names_stop_at_render():
    with pytest.raises(DeviceError, match=r"selftest_add.*selftest\.cl needs GROUP, SHIFT"):
        spec(macros={}, tables={}).program_source()


def test_a_name_in_a_comment_is_not_provided():
    with pytest.raises(DeviceError, match="needs SHIFT"):
        spec(tables={}, physics="// SHIFT\n/* SHIFT\n */\n").program_source()


def test_names_may_come_from_the_physics():
    assert "SHIFT" in spec(tables={}, physics="__constant real SHIFT[1] = {0};\n").program_source()


def test_unknown_file_lists_the_known_ones():
    with pytest.raises(DeviceError, match=r"no kernel file 'none\.cl'.*selftest\.cl"):
        spec(sources=("none.cl",)).program_source()


def test_header_must_say_what_it_needs(tmp_path, monkeypatch):
    for name in ("common.clh", "selftest.cl"):
        (tmp_path / name).write_text("// A kernel.\n")
    monkeypatch.setattr(library, "kernel_folder", lambda: tmp_path)
    library.kernel_text.cache_clear()
    try:
        with pytest.raises(DeviceError, match="no '// needs:' line"):
            spec().program_source()
    finally:
        library.kernel_text.cache_clear()


def test_digest_follows_the_text_not_the_name():
    assert spec().digest == spec(name="selftest_reverse").digest == spec(local_size=128).digest
    changed = [dict(macros={"GROUP": 32}), dict(tables={"SHIFT": np.array([0.2])}), dict(precision="single")]
    digests = {spec(**change).digest for change in changed} | {spec().digest}
    assert len(digests) == 4
    sizes = {"SLICE": 32, "STORED": "real", "COLUMNS": 1}
    without_tables = [KernelSpec("sell_slice", ("sell_slice.cl",), sizes | {"ROWS": rows}) for rows in (1, 1.0, 2)]
    assert len({each.digest for each in without_tables}) == 3, "1 and 1.0 are equal, their texts are not"


def test_constant_bytes():
    tables = {"SHIFT": np.zeros(3), "ROWS": np.zeros(5, int)}
    assert spec(tables=tables).constant_bytes == 3 * 8 + 5 * 4
    assert spec(tables=tables, precision="single").constant_bytes == 3 * 4 + 5 * 4

"""Runs of `bench` that fail in a row, are cut short and go on: what they leave, what they measure again."""

from __future__ import annotations

import gc
import json
import weakref
from types import SimpleNamespace

import bench
import pytest
from bench import cg, full, roofline, short
from bench.group import Group, measure
from bench.record import ENDED, Record

from petsc_hdg.errors import DeviceError, OptionError


class Rows:
    """Groups a0 a1, b0 b1, c0 whose rows are numbered as they are measured; those in `bad` fail."""

    def __init__(self, bad=()):
        self.bad, self.shown, self.prepared = {*bad}, [], []

    def groups(self):
        return [Group(tuple(f"{g}{i}" for i in range(n)), self._prepare) for g, n in (("a", 2), ("b", 2), ("c", 1))]

    def _prepare(self, names):
        self.prepared.append(list(names))
        if names[0][0] in self.bad:
            raise DeviceError("no\nroom")
        return {name: lambda name=name: self._measured(name) for name in names}

    def _measured(self, name):
        if name in self.bad:
            raise ValueError(f"{name} is bad")
        return {"kernel": name, "device": "d", "seconds": 1.0}

    def run(self, record, device=None) -> int:
        return measure(self.groups(), record, self._show, device)

    def _show(self, row):
        self.shown.append(row["kernel"])
        return row | {"limit": 2.0}


def written(path) -> dict:
    return {row["name"]: row for row in json.loads(path.read_text())}


def test_rows_are_on_disk_as_they_come(tmp_path):
    path, seen = tmp_path / "r.json", []

    class Looking(Rows):
        def _measured(self, name):
            seen.append([(row["name"], row.get("failed")) for row in json.loads(path.read_text())])
            return super()._measured(name)

    record, rows = Record(str(path)), Looking()
    assert rows.run(record) == 0 == record.end() and rows.prepared == [["a0", "a1"], ["b0", "b1"], ["c0"]]
    assert seen[:2] == [[("a0", ENDED)], [("a0", None), ("a1", ENDED)]] and len(seen) == 5
    found = written(path)["c0"]
    assert 0 <= found.pop("elapsed_seconds") < 60
    assert found == {"name": "c0", "kernel": "c0", "device": "d", "seconds": 1.0, "limit": 2.0}
    assert [p.name for p in tmp_path.iterdir()] == ["r.json"]


def test_a_row_that_fails_does_not_stop_the_others(tmp_path, capsys):
    path = tmp_path / "r.json"
    record, rows = Record(str(path)), Rows(bad=["a0", "b"])
    assert rows.run(record) == 0 and rows.shown == ["a1", "c0"] and record.end() == 1
    said = capsys.readouterr().err
    assert "  a0: failed: ValueError: a0 is bad (test_bench_record.py:" in said
    assert "  b0; b1: failed: no room\n" in said and "  failed: 3 rows: a0; b0; b1\n" in said
    found = written(path)
    assert found["b1"] == {"name": "b1", "failed": "no room"} and found["a1"]["seconds"] == 1.0


@pytest.mark.full
def test_a_run_goes_on(tmp_path, capsys):
    """What is measured stays; what no run has begun comes before what failed."""
    path = tmp_path / "r.json"
    first = Record(str(path))
    Rows(bad=["a0", "c0"]).run(first)
    path.write_text(json.dumps([row for row in written(path).values() if row["name"] != "b1"]))
    again, rows = Record(str(path), resume=True), Rows(bad=["c0"])
    assert f"-resume: kept of {path}: 2 rows\n" in capsys.readouterr().out
    assert rows.run(again) == 0 and rows.prepared == [["b1"], ["a0"], ["c0"]] and again.end() == 1
    assert rows.shown == ["b1", "a0"] and list(written(path)) == ["a1", "b0", "b1", "a0", "c0"]
    assert "c0 is bad" in written(path)["c0"]["failed"]
    last, rows = Record(str(path), resume=True), Rows()
    assert ": 4 rows\n" in capsys.readouterr().out
    assert rows.run(last) == 0 == last.end() and rows.shown == ["c0"]
    assert Rows().run(Record(str(path), resume=True)) == 0 and len(written(path)) == 5


def test_rows_say_what_they_were_measured_with(tmp_path, capsys):
    """A run with other arguments does not go on with them; rows of earlier versions, which say nothing, stay."""
    path, about = tmp_path / "r.json", {"device": "d", "arguments": "-cells 10"}
    Rows().run(Record(str(path), about=about))
    assert {row["arguments"] for row in written(path).values()} == {"-cells 10"}
    with pytest.raises(OptionError, match="have arguments -cells 10, not -cells 20; give another file"):
        Record(str(path), resume=True, about=about | {"arguments": "-cells 20"})
    Record(str(path), resume=True, about=about)
    assert "do not say" not in capsys.readouterr().out
    path.write_text(json.dumps([{"name": "a0", "kernel": "a0", "device": "d"}]))
    assert Record(str(path), resume=True, about=about).due(["a0", "a1"]) == ["a1"]
    assert "kept of" in (said := capsys.readouterr().out) and "; some do not say their arguments\n" in said


def test_time_is_over(tmp_path, capsys):
    path = tmp_path / "r.json"
    record, rows = Record(str(path), seconds=100.0), Rows()

    def measured(name):
        record.start -= 60.0
        return {"kernel": name, "device": "d"}

    rows._measured = measured
    left = rows.run(record)
    assert left == 3 and rows.shown == ["a0", "a1"] and list(written(path)) == ["a0", "a1"]
    assert record.end(left) == 0
    assert f"left: 3 rows, as -seconds 100 are over; -json {path} -resume goes on" in capsys.readouterr().out


def test_a_device_that_answers_no_more_ends_the_run(capsys):
    record, rows = Record(), Rows(bad=["a1"])
    left = rows.run(record, SimpleNamespace(name="the device"))
    assert left == 3 and rows.shown == ["a0"] and record.end(left) == 1
    said = capsys.readouterr()
    assert "the device answers no more" in said.err and "left: 3 rows; with -json FILE" in said.out


def test_rows_that_do_not_exist_here(tmp_path, capsys):
    """An operator may turn out not to have some of its rows; it is said where none of those asked for exists."""
    record = Record(str(tmp_path / "r.json"))
    some = Group(("a", "b"), lambda names: {name: lambda: {"kernel": "b"} for name in names if name == "b"})
    assert measure([some], record, lambda row: row) == 0 == record.end() and list(record.rows) == ["b"]
    again = Record(record.path, resume=True)
    assert measure([some], again, lambda row: row) == 0 and again.end() == 1
    assert "none of these rows exists on this device" in capsys.readouterr().err


def test_what_failed_holds_nothing():
    class Buffer:
        pass

    alive = []

    def failing():
        buffer = Buffer()
        alive.append(weakref.ref(buffer))
        raise MemoryError("none")

    measure([Group(("a",), lambda names: {"a": failing})], Record(), lambda row: row)
    gc.collect()
    assert len(alive) == 1 and alive[0]() is None


@pytest.mark.parametrize(
    "text, message",
    [
        ("{", "cannot be read as JSON"),
        ('[{"kernel": "a"}]', "holds no rows"),
        ('[{"name": "a", "device": "another"}]', "have device another, not d; give another file"),
    ],
)
def test_files_that_no_run_goes_on_with(tmp_path, text, message):
    path = tmp_path / "r.json"
    path.write_text(text)
    with pytest.raises(OptionError, match=message):
        Record(str(path), resume=True, about={"device": "d"})
    assert path.read_text() == text
    with pytest.raises(OptionError, match="-json FILE"):
        Record(resume=True)


def test_names_are_of_one_row_each():
    """In all sets, on a GPU and on a CPU."""
    given = SimpleNamespace(cells=None, fe_precision="double", only="")
    for is_gpu in (False, True):
        device = SimpleNamespace(is_gpu=is_gpu)
        every = [name for group in full.groups(device, given, 1e9) for name in group.names]
        assert len(every) == len({*every}) > 100
        assert {name for _, name in short.CHOSEN} <= {*every}


def test_bench_goes_on_after_a_failure(tmp_path, monkeypatch, capsys):
    path, picture = tmp_path / "r.json", tmp_path / "r.png"
    monkeypatch.setattr(bench, "copy_bandwidth", lambda device: 1e10)
    monkeypatch.setattr(bench, "arithmetic_peak", lambda device, precision: 1e11)
    arguments = ["cg", "-fe_device", "cpu", "-cells", "500", "-repeat", "1", "-only", "element cell triangle"]
    arguments += ["-json", str(path)]
    with monkeypatch.context() as patch:
        patch.setattr(cg, "_stored_geometry", _no_memory)
        assert bench.main(arguments) == 1
    said = capsys.readouterr()
    names = ["cg element cell triangle P1", "cg element cell triangle P2"]
    assert f"failed: 2 rows: {'; '.join(names)}" in said.err and "the host has no memory left (no room)" in said.err
    assert [row["name"] for row in json.loads(path.read_text())] == names
    with pytest.raises(OptionError):
        roofline.draw([str(path)], str(picture))
    assert bench.main([*arguments, "-resume"]) == 0
    assert [row["kernel"] for row in json.loads(path.read_text())] == ["cg element cell"] * 2
    assert roofline.draw([str(path)], str(picture)) == 0
    assert [row["arguments"] for row in json.loads(path.read_text())] == ["-cells 500"] * 2
    before = path.read_text()
    with pytest.raises(OptionError, match="have arguments -cells 500, not -cells 600; give another file"):
        bench.main([*arguments, "-cells", "600", "-resume"])
    assert path.read_text() == before
    assert bench.main([*arguments, "-resume", "-seconds", "0"]) == 0
    assert "left: " not in capsys.readouterr().out
    with pytest.raises(OptionError, match="is in the name of no row"):
        bench.main(["cg", "-only", "nothing of it"])


def _no_memory(*_):
    raise MemoryError("no room")

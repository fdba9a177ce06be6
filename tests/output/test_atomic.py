"""Files are whole or absent."""

import os
from pathlib import Path

import pytest

from petsc_hdg.errors import OptionError
from petsc_hdg.output import atomic
from petsc_hdg.output.atomic import atomic_file


def test_appears_at_the_end(tmp_path):
    with atomic_file(tmp_path / "a") as file:
        file.write(b"x")
        assert not (tmp_path / "a").exists()
    assert (tmp_path / "a").read_bytes() == b"x" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("error, seen", [(ValueError("no"), ValueError), (OSError(28, "No space left"), OptionError)])
def test_failure_leaves_what_was_there(tmp_path, error, seen):
    (tmp_path / "a").write_text("old")
    with pytest.raises(seen), atomic_file(tmp_path / "a") as file:
        file.write(b"new")
        raise error
    assert (tmp_path / "a").read_text() == "old" and len(list(tmp_path.iterdir())) == 1


def test_missing_folders_are_made(tmp_path):
    with atomic_file(tmp_path / "b" / "c" / "a") as file:
        file.write(b"x")
    assert (tmp_path / "b" / "c" / "a").read_bytes() == b"x"


def test_refuses_before_writing(tmp_path):
    (tmp_path / "b").write_text("a file")
    with pytest.raises(OptionError, match="b is no folder; give another path"), atomic_file(tmp_path / "b" / "c" / "a"):
        pytest.fail("the block must not run")
    with pytest.raises(OptionError, match="Cannot write /proc/none/a: .*; give a file in a folder that can be written"):
        with atomic_file("/proc/none/a"):
            pytest.fail("the block must not run")


def test_a_link_stays_and_its_target_is_written(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "target").write_text("old")
    for link, target in (("a", "far/target"), ("hanging", "far/new")):
        (tmp_path / link).symlink_to(target)
        with atomic_file(tmp_path / link) as file:
            file.write(b"new")
        assert (tmp_path / link).is_symlink() and (tmp_path / target).read_bytes() == b"new"
    assert len(list((tmp_path / "far").iterdir())) == 2


@pytest.mark.parametrize("kind", ["pipe", "device"])
def test_what_is_no_file_is_refused(tmp_path, kind):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    path = path if kind == "pipe" else Path("/dev/null")
    with pytest.raises(OptionError, match="it is a device, a pipe or the like"), atomic_file(path):
        pytest.fail("the block must not run")
    assert not path.is_file()


def test_mode_is_kept(tmp_path):
    path, mask = tmp_path / "a", os.umask(0o027)
    try:
        for mode in (0o640, 0o604, 0o600):  # that of the first is the umask's
            with atomic_file(path) as file:
                file.write(b"x")
            path.chmod(mode) if mode != 0o640 else None
            before = path.stat().st_mode & 0o777
            with atomic_file(path) as file:
                file.write(b"y")
            assert path.stat().st_mode & 0o777 == before == mode
    finally:
        os.umask(mask)


def test_planted_links_are_not_followed(tmp_path, monkeypatch):
    """Whoever foresees the part's name can at most make the writing fail."""
    (tmp_path / "victim").write_text("mine")
    monkeypatch.setattr(atomic.secrets, "token_hex", lambda count: "0" * 2 * count)
    (tmp_path / f".a.{os.getpid()}.{'0' * 16}.part").symlink_to("victim")
    with pytest.raises(OptionError, match="Cannot write"), atomic_file(tmp_path / "a") as file:
        file.write(b"x")
    assert (tmp_path / "victim").read_text() == "mine" and not (tmp_path / "a").exists()


def test_parts_have_names_that_differ(tmp_path):
    with atomic.atomic_path(tmp_path / "a") as first, atomic.atomic_path(tmp_path / "a") as second:
        assert first != second and len(second.name.split(".")[-2]) == 16
        first.write_text("1"), second.write_text("2")
    assert (tmp_path / "a").read_text() == "1"

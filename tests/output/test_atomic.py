"""Files are whole or absent."""

import pytest

from petsc_hdg.errors import OptionError
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


def test_refuses_before_writing(tmp_path):
    with pytest.raises(OptionError, match="there is no folder"), atomic_file(tmp_path / "b" / "a"):
        pytest.fail("the block must not run")

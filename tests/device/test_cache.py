"""The cache of programs is whole or absent, and nobody else's: what others could have written is not run."""

import os
from contextlib import nullcontext

import pytest
from test_build import works

from petsc_hdg.commands import doctor
from petsc_hdg.device import Device, Kernel, cache, verdicts


def test_a_full_disk_leaves_nothing_behind(fresh_cache, monkeypatch):
    def full(descriptor, mode):
        os.write(descriptor, b"nev")
        os.close(descriptor)
        raise OSError(28, "No space left on device")

    entry = cache.Entry("digest")
    assert entry.write_binary(b"whole")
    with monkeypatch.context() as patch:
        patch.setattr(cache.os, "fdopen", full)
        assert not entry.write_binary(b"never whole")
    assert entry.read_binary() == b"whole" and [file.name for file in entry.folder.iterdir()] == ["program.bin"]


def test_every_cut_and_every_flipped_byte_is_noticed(fresh_cache):
    entry, binary = cache.Entry("digest"), bytes(range(64))
    entry.write_binary(binary)
    content = entry.read("program.bin")
    for place in range(len(content)):
        entry.write("program.bin", content[:place])
        assert entry.read_binary() is None
        entry.write("program.bin", content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :])
        assert entry.read_binary() is None


def test_the_cache_is_this_users_alone(fresh_cache, make_spec):
    mask = os.umask(0)
    try:
        kernel = Kernel(make_spec(), Device.select())
        verdicts.record(kernel, True)
    finally:
        os.umask(mask)
    modes = {path.name: path.stat().st_mode & 0o077 for path in (fresh_cache, *fresh_cache.rglob("*"))}
    assert {"kernels", "program.bin", "verdicts.json", "lock"} <= modes.keys() and not any(modes.values()), modes


@pytest.mark.parametrize("fault", ["folder writable", "entry writable", "file writable", "foreign", "link"])
def test_what_others_could_have_written_is_not_run(
    fresh_cache, next_process, make_spec, compilations, monkeypatch, fault, tmp_path
):
    cache.warn.cache_clear()
    kernel = Kernel(make_spec(), Device.select())
    verdicts.record(kernel, True)
    program = kernel.entry.path("program.bin")
    if fault == "foreign":
        monkeypatch.setattr(cache.os, "geteuid", lambda: 12345)
    elif fault == "link":
        program.rename(tmp_path / "elsewhere")
        program.symlink_to(tmp_path / "elsewhere")
    else:
        {"folder": fresh_cache, "entry": program.parent, "file": program}[fault.split()[0]].chmod(0o777)
    said = {"foreign": "belongs to another user"} | dict.fromkeys(["folder writable", "entry writable"], "others can")
    next_process()
    device = Device.select()
    with pytest.warns(UserWarning, match=said[fault]) if fault in said else nullcontext():
        again = Kernel(make_spec(), device)
        assert works(again, device)
    assert len(compilations) == 2
    if fault in said:
        assert verdicts.needs_check(again) and not again.entry.write("program.bin", b"")
        (finding,) = doctor.cache("any")
        assert fault == "entry writable" or (finding.level.name == "NOTE" and "chmod 700" in finding.remedy)


def test_an_edited_program_with_a_right_checksum_is_not_trusted(next_process, make_spec, compilations):
    """By PoCL the text is the generated one or is not taken; other drivers' bytes lose the verdict on those before."""
    kernel = Kernel(make_spec(), Device.select())
    verdicts.record(kernel, True)
    next_process()
    assert not verdicts.needs_check(Kernel(make_spec(), Device.select()))
    edited = kernel.entry.read_binary().replace(b"a[i] + b[i]", b"2 * a[i] + b[i]")
    assert edited != kernel.entry.read_binary() and kernel.entry.write_binary(edited)
    next_process()
    device = Device.select()
    again = Kernel(make_spec(), device)
    assert works(again, device) and len(compilations) == 2
    again.entry.runs(edited)  # what a driver with binaries would have loaded
    assert verdicts.needs_check(again)

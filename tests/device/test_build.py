"""Programs are compiled once, damaged entries are made again, errors quote the user."""

import subprocess
import sys
import threading
import time
import warnings

import numpy as np
import pytest

from petsc_hdg.device import Arrays, Device, Kernel, build, cache, kernels_of, verdicts
from petsc_hdg.device.compilers import HERE, Compilers
from petsc_hdg.errors import DeviceError, PhysicsError

PHYSICS = """#line 1 "physics: poisson.f0"
static inline void f0(real *out) {
  out[0] = 1;
}
#line 1 "physics: poisson.f1"
static inline void f1(real *out) {
  int d = 0;
  out[d] = gradu[d];
}
"""


def works(kernel, device) -> bool:
    arrays = Arrays(device)
    a, total = arrays.to_device(np.arange(10.0)), arrays.empty(10)
    kernel(10, a, a, total, 10)
    return bool(np.array_equal(arrays.to_host(total, 10), 2 * np.arange(10.0) + 0.25))


def test_the_next_process_loads_the_binary(next_process, make_spec, compilations):
    for _ in range(2):
        device = Device.select()
        assert works(Kernel(make_spec(), device), device)
        next_process()
    assert len(compilations) == 1


def test_kernels_are_built_together(fresh_cache, make_spec, compilations, monkeypatch):
    """At the end of a block; one that is launched before has its program at once. Warnings of ours reach the user."""
    device = Device.select()
    monkeypatch.setattr(device, "is_gpu", True)
    with pytest.warns(UserWarning, match="of ours") as told, build.built_together(device):
        early, *others = [Kernel(make_spec(shift=shift), device) for shift in (0.25, 0.5, 0.75)]
        assert not compilations and works(early, device) and len(compilations) == 1
        warnings.warn("one of ours", stacklevel=1)
    assert len(told) == 1 and len(compilations) == 3 and all("program" in vars(kernel) for kernel in others)


def test_a_kernel_that_may_not_be_needed_fails_where_it_is(fresh_cache, make_spec, monkeypatch):
    device = Device.select()
    monkeypatch.setattr(device, "is_gpu", True)
    with build.built_together(device):
        bad = Kernel(make_spec(physics="nonsense"), device)
        bad.waits = True
    with pytest.raises(DeviceError, match="does not compile"):
        works(bad, device)


def test_other_processes_compile(fresh_cache, make_spec, monkeypatch, tmp_path):
    """Into the driver's cache. One that has ended leaves the program to this process."""
    device = Device.select()
    if not device.platform.startswith(build.POCL):
        pytest.skip("this test looks into PoCL's cache")
    monkeypatch.setenv("POCL_CACHE_DIR", str(tmp_path))
    compilers, spec = Compilers(device, 1), make_spec()
    deadline = time.monotonic() + 60
    while not compilers._ready and time.monotonic() < deadline:
        time.sleep(0.05)
    (process,) = compilers._ready
    for _ in range(HERE + 1):  # this process stands down when others are ready
        with compilers.turn(spec, build.build_options(spec)):
            pass
    assert list(tmp_path.rglob("program.bc")) and compilers._turns.qsize() == 1
    assert process.wait(60) == 0  # after a while without work
    for _ in range(2):
        with compilers.turn(spec, build.build_options(spec)):
            assert not compilers.are_alive


def test_devices_of_a_process_share_context_and_programs(fresh_cache, make_spec, monkeypatch):
    first, second = Device.select(), Device.select()
    kernels = [Kernel(make_spec(), first)]
    assert works(kernels[0], first)
    monkeypatch.setattr(build, "_loaded", None)  # fails where it is called
    kernels.append(Kernel(make_spec(), second))
    assert kernels[0].program is kernels[1].program and first.context is second.context
    assert first.queue != second.queue and works(kernels[1], second)


def test_kernels_wait_for_their_use_where_launches_compile(fresh_cache, make_spec, compilations):
    """Once one has told that the text of the physics compiles; those without physics wait in any case."""
    device, text = Device.select(), "static inline int none(void) { return 0; }"
    _, other, plain = [Kernel(make_spec(physics=text, shift=s), device) for s in (0.5, 0.25)] + [
        Kernel(make_spec(), device)
    ]
    assert len(compilations) == (1 if build.compiles_at_launch(device) else 3)
    assert works(other, device) and works(plain, device) and len(compilations) == 3


def test_local_arrays_reach_functions_too_long_to_inline(fresh_cache, make_spec, monkeypatch):
    """With optimizations: they replace an argument that is the same array in all calls by that array."""
    monkeypatch.setenv("PETSC_HDG_BUILD_OPTIONS", "")
    terms = " ".join(f"sum += s[{k}]*sqrt(x + {k});" for k in range(200))
    text = f"""static inline real total(__local const real *s, real x) {{ real sum = 0; {terms} return sum; }}
        __kernel void totals(__global real *out) {{
          __local real s[200];
          for (int k = 0; k < 200; ++k) s[k] = out[k];
          out[0] = total(s, 1);
          out[1] = total(s, out[2]);
        }}"""
    device = Device.select()
    arrays, kernel = Arrays(device), Kernel(make_spec(name="totals", physics=text, local_size=1), device)
    given = np.linspace(1.0, 2.0, 200)
    out = arrays.to_device(given)
    kernel(1, out)
    expected = [given @ np.sqrt(x + np.arange(200)) for x in (1.0, given[2])]
    np.testing.assert_allclose(arrays.to_host(out, 200)[:2], expected, rtol=1e-13)


def test_a_gpu_compiles_several_programs_at_a_time(fresh_cache, make_spec, monkeypatch):
    device, original = Device.select(), build._compiled
    monkeypatch.setattr(device, "is_gpu", True)
    together, made = threading.Barrier(2, timeout=30), []

    def compiled(device, spec, entry):
        together.wait()  # breaks, and fails, unless both are here at once
        made.append(threading.get_ident())
        return original(device, spec, entry)

    monkeypatch.setattr(build, "_compiled", compiled)
    specs = {"one": make_spec(), "same": make_spec(), "other": make_spec(precision="single")}
    kernels = kernels_of(specs, device)
    assert len(set(made)) == 2 and list(kernels) == list(specs) and works(kernels["same"], device)


def test_a_program_that_does_not_compile_fails_where_it_is_asked_for(fresh_cache, make_spec, monkeypatch):
    device = Device.select()
    monkeypatch.setattr(device, "is_gpu", True)
    good, bad = make_spec(), make_spec(physics="nonsense")
    build.build_programs(device, [bad, good])
    assert list(device.programs) == [build.program_digest(device, good)]
    with pytest.raises(DeviceError, match="does not compile"):
        Kernel(bad, device)


def test_digest_depends_on_driver_and_text(device, make_spec):
    other = Device.select()
    other.driver += " newer"
    digests = {build.program_digest(d, make_spec(**c)) for d in (device, other) for c in ({}, {"precision": "single"})}
    assert len(digests) == 4


@pytest.mark.parametrize("damage", ["half", "empty", "other", "garbage with a right checksum"])
def test_damaged_binary_is_made_again(next_process, make_spec, compilations, damage):
    device = Device.select()
    entry = Kernel(make_spec(), device).entry
    binary = entry.path("program.bin").read_bytes()
    if damage == "garbage with a right checksum":
        entry.write_binary(b"not a program")
    else:
        entry.path("program.bin").write_bytes({"half": binary[:100], "empty": b"", "other": binary[::-1]}[damage])
    next_process()
    device = Device.select()
    assert works(Kernel(make_spec(), device), device)
    assert len(compilations) == 2
    assert entry.read_binary() is not None


def test_unwritable_cache_is_no_error(fresh_cache, tmp_path, monkeypatch, make_spec):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PETSC_HDG_CACHE", str(tmp_path / "file" / "below"))
    device = Device.select()
    kernel = Kernel(make_spec(), device)
    assert works(kernel, device)
    verdicts.record(kernel, True)
    assert verdicts.needs_check(kernel)


def test_cache_folder_by_environment(monkeypatch):
    monkeypatch.delenv("PETSC_HDG_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere")
    assert str(cache.cache_folder()) == "/somewhere/petsc_hdg/kernels"


def test_user_error_names_the_users_line(fresh_cache, device, make_spec):
    with pytest.raises(PhysicsError, match=r"physics: poisson\.f1:3:\d+: .*gradu") as caught:
        Kernel(make_spec(physics=PHYSICS), device)
    assert "out[d] = gradu[d];" in str(caught.value)
    log = next(fresh_cache.glob("*/build.log"))
    assert str(log) in str(caught.value) and "gradu" in log.read_text()


def test_our_error_names_the_kernel(fresh_cache, device, make_spec):
    with pytest.raises(DeviceError, match=r"kernel 'selftest_add' does not compile.*selftest\.cl:\d+"):
        Kernel(make_spec(macros={"GROUP": "64 oops"}), device).program  # noqa: B018


@pytest.mark.parametrize(
    "log",
    [
        "<physics: poisson.f1>:3:12: error: use of undeclared identifier 'gradu'",
        "error: physics: poisson.f1:3:12: use of undeclared identifier 'gradu'",
        "1 warning\nphysics: poisson.f1:3:12: error: use of undeclared identifier 'gradu'\n  out[d]\n  ^",
        "<kernel>:2:1: warning: unused\n<kernel>:8:12: error: use of undeclared identifier 'gradu'",
        "<program source>:8:12: fatal error: use of undeclared identifier 'gradu'",
    ],
)
def test_messages_of_compilers_are_understood(log):
    (message,) = build.errors(log, PHYSICS)
    assert message.is_users
    assert str(message) == ("physics: poisson.f1:3:12: use of undeclared identifier 'gradu'\n    out[d] = gradu[d];")


def test_messages_beyond_the_program_are_kept():
    (message,) = build.errors("<kernel>:800:1: error: end of file", PHYSICS)
    assert not message.is_users and str(message).startswith("kernel:800:1: end of file")


def test_verdicts_are_remembered_by_kernel(fresh_cache, make_spec):
    device = Device.select()
    add, reverse = Kernel(make_spec(), device), Kernel(make_spec(name="selftest_reverse"), device)
    assert verdicts.needs_check(add) and verdicts.needs_check(reverse)
    verdicts.record(add, True, "0")
    verdicts.record(reverse, False, "off by one")
    again = Device.select()
    assert not verdicts.needs_check(Kernel(make_spec(), again))
    assert verdicts.needs_check(Kernel(make_spec(name="selftest_reverse"), again))
    assert verdicts.verdict(reverse)["detail"] == "off by one"


@pytest.mark.parametrize("content", ["{", "", "[1]", "3", '{"selftest_add": 3}', '{"selftest_add": null}', "\x00\xff"])
def test_damaged_verdicts_are_forgotten(fresh_cache, device, make_spec, content):
    kernel = Kernel(make_spec(shift=0.75), Device.select())
    verdicts.record(kernel, True)
    kernel.entry.path("verdicts.json").write_text(content)
    assert verdicts.needs_check(kernel) and verdicts.verdict(kernel) == {}
    verdicts.record(kernel, True)
    assert not verdicts.needs_check(kernel)


def test_two_jobs_and_a_vandal(fresh_cache, tmp_path):
    """Processes that use, replace and damage the same entry at once compute right sums."""
    script = tmp_path / "job.py"
    script.write_text(JOB)
    jobs = [subprocess.Popen([sys.executable, script, str(seed)], stdout=subprocess.PIPE, text=True) for seed in (1, 2)]
    for job in jobs:
        said, _ = job.communicate(timeout=120)
        assert job.returncode == 0 and said.split() == ["right"] * 6


JOB = """
import random, sys
import numpy as np
from petsc_hdg.codegen import KernelSpec
from petsc_hdg.device import Arrays, Device, Kernel

rng = random.Random(sys.argv[1])
spec = KernelSpec("selftest_add", ("selftest.cl",), {"GROUP": 64}, {"SHIFT": np.array([2.0])}, local_size=64)
for _ in range(6):
    device = Device.select()
    kernel, arrays = Kernel(spec, device), Arrays(device)
    a, out = arrays.to_device(np.arange(10.0)), arrays.empty(10)
    kernel(10, a, a, out, 10)
    print("right" if np.array_equal(arrays.to_host(out, 10), 2 * np.arange(10.0) + 2) else "wrong")
    path = kernel.entry.path("program.bin")
    damage = rng.choice(["cut", "flip", "remove"])
    try:
        content = path.read_bytes()
        if damage == "cut":
            path.write_bytes(content[: rng.randrange(len(content))])
        elif damage == "flip":
            place = rng.randrange(len(content))
            path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        else:
            path.unlink()
    except OSError:
        pass
"""


def test_lock_of_a_dead_process_is_free(fresh_cache):
    entry = cache.Entry("digest")
    hold = "import time\nwith cache.Entry('digest').locked():\n    print(1, flush=True)\n    time.sleep(60)"
    hold = "from petsc_hdg.device import cache\n" + hold
    process = subprocess.Popen([sys.executable, "-c", hold], stdout=subprocess.PIPE)
    try:
        assert process.stdout.readline().strip() == b"1"
        start = time.monotonic()
        with entry.locked(timeout=0.2):
            assert 0.2 <= time.monotonic() - start < 5
    finally:
        process.kill()
        process.wait()
    start = time.monotonic()
    with entry.locked(timeout=20):
        assert time.monotonic() - start < 5


@pytest.mark.quick
def test_ranks_compile_once(mpirun, tmp_path):
    script = tmp_path / "compile.py"
    script.write_text(
        "import numpy as np\n"
        "from mpi4py import MPI\n"
        "from petsc_hdg.codegen import KernelSpec\n"
        "from petsc_hdg.device import Device, Kernel, build\n"
        "done, original = [], build._compiled\n"
        "build._compiled = lambda *a: (done.append(1), original(*a))[1]\n"
        "device = Device.select('any', MPI.COMM_WORLD)\n"
        "spec = KernelSpec('selftest_add', ('selftest.cl',), {'GROUP': 64}, {'SHIFT': np.array([1.0])})\n"
        "MPI.COMM_WORLD.Barrier()\n"
        "Kernel(spec, device).program\n"
        "count = MPI.COMM_WORLD.allreduce(len(done))\n"
        "if MPI.COMM_WORLD.rank == 0: print('compilations', count)\n"
    )
    done = mpirun(3, script, env={"PETSC_HDG_CACHE": str(tmp_path / "kernels")})
    assert "compilations 1\n" in done.stdout


def test_pocl_makes_machine_code_at_a_launch_and_once_for_all_ranks(mpirun, tmp_path):
    """No code for launches that never come, and a kernel that three ranks launch is one file, written once."""
    if not build.compiles_at_launch(Device.select()):
        pytest.skip("this OpenCL driver makes machine code where it builds")
    script, folder = tmp_path / "launch.py", tmp_path / "pocl"
    folder.mkdir()
    script.write_text(
        "import sys\n"
        "from pathlib import Path\n"
        "import numpy as np\n"
        "from mpi4py import MPI\n"
        "from petsc_hdg.codegen import KernelSpec\n"
        "from petsc_hdg.device import Arrays, Device, Kernel, build\n"
        "comm, done, original = MPI.COMM_WORLD, [], build.Entry.write\n"
        "build.Entry.write = lambda self, name, content: (done.append(name), original(self, name, content))[1]\n"
        "device = Device.select('any', comm)\n"
        "spec = KernelSpec('selftest_add', ('selftest.cl',), {'GROUP': 64}, {'SHIFT': np.array([1.0])})\n"
        "kernel, arrays = Kernel(spec, device), Arrays(device)\n"
        "found = [len(list(Path(sys.argv[1]).rglob('*.so')))]\n"
        "comm.Barrier()\n"
        "a, total = arrays.to_device(np.arange(10.0)), arrays.empty(10)\n"
        "kernel(10, a, a, total, 10)\n"
        "sums = comm.gather(float(arrays.to_host(total, 10).sum()))\n"
        "found += [len(list(Path(sys.argv[1]).rglob('*.so'))), comm.allreduce(done.count('selftest_add.launched'))]\n"
        "if comm.rank == 0: print('found', found, sums)\n"
    )
    done = mpirun(3, script, folder, env={"PETSC_HDG_CACHE": str(tmp_path / "ours"), "POCL_CACHE_DIR": str(folder)})
    assert "found [0, 1, 1] [100.0, 100.0, 100.0]" in done.stdout, done.stdout

"""PETSc vectors as buffers, staged on the host or shared with ViennaCL."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from petsc4py import PETSc

from petsc_hdg.device import Arrays, Device, Kernel, VecAccess, vecs

PRECISIONS = ("double", "single")
EPS = {"double": 0.0, "single": 2.0**-23}


def vector(count: int, kind: str) -> PETSc.Vec:
    vec = PETSc.Vec().create(PETSc.COMM_SELF)
    vec.setSizes(count)
    vec.setType(kind)
    vec.setArray(np.random.default_rng(count).random(count))
    return vec


def added(access: VecAccess, kernel: Kernel, x, y, update: bool = False) -> None:
    """y = 2 x, or y = 2 y."""
    count = y.getLocalSize()
    if update:
        with access.update(y) as by:
            kernel(count, by, by, by, count)
    else:
        with access.read(x) as bx, access.write(y) as by:
            kernel(count, bx, bx, by, count)


def check(device, make_spec, precision, kind, mode):
    arrays = Arrays(device, precision)
    access, kernel = VecAccess(arrays), Kernel(make_spec(shift=0.0, precision=precision), device)
    assert access.mode == mode
    for count in (1, 100, 0, 100):
        x, y = vector(count, kind), vector(count, kind)
        values, state = x.getArray(readonly=True).copy(), y.stateGet()
        added(access, kernel, x, y)
        np.testing.assert_allclose(y.getArray(readonly=True), 2 * values, rtol=EPS[precision], atol=0)
        assert count == 0 or y.stateGet() > state
        added(access, kernel, x, y, update=True)
        np.testing.assert_allclose(y.getArray(readonly=True), 4 * values, rtol=EPS[precision], atol=0)
        np.testing.assert_array_equal(x.getArray(readonly=True), values)
    return arrays


@pytest.mark.parametrize("precision", PRECISIONS)
def test_host(device, make_spec, precision):
    arrays = check(device, make_spec, precision, "seq", "host")
    assert arrays.total() == (2 * 201 * arrays.real.itemsize, 2 * 201 * arrays.real.itemsize)


def test_reading_does_not_touch_the_vector(device):
    x = vector(10, "seq")
    state = x.stateGet()
    with VecAccess(Arrays(device)).read(x):
        pass
    assert x.stateGet() == state


@pytest.mark.parametrize("precision", PRECISIONS)
def test_a_failed_write_keeps_the_values(device, precision):
    arrays = Arrays(device, precision)
    access = VecAccess(arrays)
    x = vector(10, "seq")
    values, state = x.getArray(readonly=True).copy(), x.stateGet()
    for way in (access.write, access.update):
        with pytest.raises(ZeroDivisionError), way(x) as buffer:
            arrays.fill(buffer, 255)
            raise ZeroDivisionError
    np.testing.assert_array_equal(x.getArray(readonly=True), values)
    assert x.stateGet() == state
    with access.write(x) as buffer:
        arrays.fill(buffer)
    assert x.norm() == 0


def test_nested_reads_have_their_own_buffers(device):
    arrays = Arrays(device)
    access = VecAccess(arrays)
    x, y = vector(10, "seq"), vector(10, "seq")
    y.scale(3.0)
    with access.read(x) as bx, access.read(y) as by:
        np.testing.assert_array_equal(3 * arrays.to_host(bx, 10), arrays.to_host(by, 10))


def test_staging_memory_is_used_again(device):
    arrays = Arrays(device, "single")
    access = VecAccess(arrays)
    x = vector(10, "seq")
    seen = set()
    for _ in range(5):
        with access.read(x) as buffer:
            seen.add(buffer.int_ptr)
    assert len(seen) == 1


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("threads", (1, 3))
def test_long_vectors_pass_in_pieces(device, monkeypatch, precision, threads):
    """Each value once and at its place, on both ways, whatever the number of threads; later changes do not arrive."""
    pool = ThreadPoolExecutor(threads) if threads > 1 else None
    monkeypatch.setattr(vecs, "_threads", lambda: pool)
    monkeypatch.setattr(vecs, "PIECE", 512)
    arrays = Arrays(device, precision)
    monkeypatch.setattr(device, "is_gpu", True)  # a CPU takes doubles from where they are
    slot = vecs.Slot(arrays, 1001, "vectors")
    assert len(slot.pieces) > 7
    for seed in range(3):
        values = np.random.default_rng(seed).random(1001)
        given, back = values.copy(), np.full(1001, np.nan)
        slot.load(given)
        given[:] = np.nan
        slot.store(back)
        np.testing.assert_array_equal(back, values.astype(arrays.real))
    assert arrays.total() == (3 * 1001 * arrays.real.itemsize,) * 2


def test_pieces_make_up_the_whole():
    for count in (1, 2, 65537, 2 * 10**6, 2**21, 2**21 + 1, 10**7, 10**8):
        found = vecs.pieces(count, 8)
        assert found[0].start == 0 and found[-1].stop == count
        assert all(a.stop == b.start for a, b in zip(found[:-1], found[1:], strict=True))
        sizes = {8 * (p.stop - p.start) for p in found}
        assert len(found) == 1 if count <= 2**21 else max(sizes) <= vecs.PIECE < 2 * min(sizes)


@pytest.mark.requires_viennacl
@pytest.mark.parametrize("precision", PRECISIONS)
def test_viennacl_copies_nothing(make_spec, precision):
    device = Device.from_vec(vector(3, "viennacl"))
    assert device.from_petsc and "ViennaCL" in device.view()
    arrays = check(device, make_spec, precision, "viennacl", "viennacl")
    assert arrays.total() == (0, 0)


@pytest.mark.requires_viennacl
def test_viennacl_device_takes_host_vectors_too(make_spec):
    device = Device.from_vec(vector(3, "viennacl"))
    arrays = check(device, make_spec, "double", "seq", "viennacl")
    assert arrays.total() == (2 * 201 * 8, 2 * 201 * 8)


@pytest.mark.requires_viennacl
def test_viennacl_survives_an_exception(make_spec):
    device = Device.from_vec(vector(3, "viennacl"))
    access, x = VecAccess(Arrays(device)), vector(10, "viennacl")
    norm = x.norm()
    with pytest.raises(ZeroDivisionError), access.write(x):
        raise ZeroDivisionError
    assert x.norm() == norm
    x.scale(2.0)
    assert x.norm() == pytest.approx(2 * norm, rel=1e-14)


@pytest.mark.requires_viennacl
def test_profile_on_petscs_queue(make_spec):
    device = Device.from_vec(vector(3, "viennacl"))
    device.profile = True
    check(device, make_spec, "double", "viennacl", "viennacl")
    calls, seconds = device.seconds()["selftest_add"]
    assert calls == 6 and seconds > 0

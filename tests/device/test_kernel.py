"""Launches: results, arguments, remainders, limits, times."""

import numpy as np
import pytest

from petsc_hdg.codegen import Launch, signature
from petsc_hdg.device import Arrays, Device, Kernel
from petsc_hdg.errors import DeviceError

PRECISIONS = ("double", "single")


@pytest.mark.parametrize("precision", PRECISIONS)
@pytest.mark.parametrize("count", [1, 63, 64, 65, 1000])
def test_sum_is_exact(device, make_spec, precision, count):
    arrays = Arrays(device, precision)
    kernel = Kernel(make_spec(precision=precision), device)
    rng = np.random.default_rng(count)
    a, b = rng.integers(-1000, 1000, (2, count)).astype(float)
    total = arrays.zeros(count + 1)
    kernel(count, arrays.to_device(a), arrays.to_device(b), total, count)
    result = arrays.to_host(total, count + 1)
    assert result.dtype == arrays.real
    np.testing.assert_array_equal(result, np.append(a + b + 0.25, 0))


def test_local_memory_and_barriers(device, make_spec):
    arrays = Arrays(device)
    kernel = Kernel(make_spec(name="selftest_reverse"), device)
    reversed_ = arrays.empty(128)
    kernel(128, arrays.to_device(np.arange(128.0)), reversed_, 128)
    expected = np.arange(128.0).reshape(2, 64)[:, ::-1].ravel()
    np.testing.assert_array_equal(arrays.to_host(reversed_, 128), expected)


def test_nothing_to_do_launches_nothing(device, make_spec):
    assert Kernel(make_spec(), device)(0, None, None, None, 0) is None


def test_changed_arguments_are_seen(device, make_spec):
    arrays = Arrays(device)
    kernel = Kernel(make_spec(shift=0.0), device)
    one, two, total = arrays.to_device(np.ones(8)), arrays.to_device(np.full(8, 2.0)), arrays.zeros(8)
    for count, (a, b), expected in [(8, (one, one), 2), (8, (one, one), 2), (3, (two, two), 4), (8, (one, two), 3)]:
        arrays.fill(total)
        kernel(8, a, b, total, count)
        np.testing.assert_array_equal(arrays.to_host(total, 8), expected * (np.arange(8) < count))


def by_name(make_spec, **changes):
    """A spec whose arguments have names."""
    arguments = signature("const real *a\nconst real *b\nreal *total\nint count")
    return make_spec(shift=0.0, arguments=arguments, **changes)


def test_launches_bind_arguments_by_name(device, make_spec):
    arrays = Arrays(device)
    one, two, total = arrays.to_device(np.ones(200)), arrays.to_device(np.full(200, 2.0)), arrays.zeros(200)
    given = {"count": 200, "total": total, "b": two, "a": one, "other": None}
    kernel = Kernel(by_name(make_spec, launch=Launch(32, 64)), device)
    kernel.launch(90, given, first=32)  # three groups of 64 work-items, the first left out
    np.testing.assert_array_equal(arrays.to_host(total, 200), 3 * ((np.arange(200) >= 64) & (np.arange(200) < 192)))
    arrays.fill(total)
    kernel = Kernel(by_name(make_spec, launch=Launch(2, 1, "count")), device)  # along a row of 200
    kernel.launch(1, given)
    np.testing.assert_array_equal(arrays.to_host(total, 200), 3 * (np.arange(200) < 128))  # whole groups
    assert kernel.launch(0, given) is None


def test_launches_name_missing_arguments(device, make_spec):
    with pytest.raises(DeviceError, match="launch of kernel 'selftest_add' does not give its argument 'a'"):
        Kernel(by_name(make_spec), device).launch(1, {"b": None, "total": None, "count": 1})


def test_named_arguments_are_as_many_as_the_kernel_has(device, make_spec):
    with pytest.raises(DeviceError, match="takes 4 arguments, its spec names 1"):
        Kernel(make_spec(arguments=signature("int count")), device).program  # noqa: B018


@pytest.mark.parametrize("profile", [False, True])
def test_launches_with_arguments_that_stay(make_spec, profile):
    device = Device.select("any")
    device.profile = profile
    arrays = Arrays(device)
    kernel = Kernel(make_spec(shift=0.0), device)
    one, total = arrays.to_device(np.ones(8)), arrays.zeros(8)
    launch = kernel.bound(8, one, total, total, 5)
    for times in (1, 2, 3):
        launch()
        np.testing.assert_array_equal(arrays.to_host(total, 8), times * (np.arange(8) < 5))
    assert bool(device.seconds()) == profile
    assert kernel.bound(0, one, total, total, 5)() is None


@pytest.mark.parametrize("profile", [False, True])
def test_the_first_work_items_are_left_out(make_spec, profile):
    device = Device.select()
    device.profile = profile
    arrays, kernel = Arrays(device), Kernel(make_spec(), device)
    group = kernel.spec.local_size
    a, total = arrays.to_device(np.arange(4.0 * group)), arrays.zeros(4 * group)
    kernel(3 * group, a, a, total, 4 * group, first=2 * group)
    shift = arrays.to_host(total, 4 * group)[2 * group] - 4 * group
    inside = (np.arange(4 * group) >= 2 * group) & (np.arange(4 * group) < 3 * group)
    wanted = np.where(inside, 2 * np.arange(4 * group) + shift, 0)
    np.testing.assert_allclose(arrays.to_host(total, 4 * group), wanted, rtol=1e-15)
    kernel.bound(group, a, a, total, group)()
    assert kernel(2 * group, a, a, total, group, first=2 * group) is None
    with pytest.raises(DeviceError, match="cannot begin at work-item 1: "):
        kernel(group, a, a, total, group, first=1)


def test_parts_keep_their_arguments(device, make_spec, monkeypatch):
    arrays, kernel = Arrays(device), Kernel(make_spec(), device)
    a, b, c = (arrays.to_device(np.full(8, value)) for value in (1.0, 2.0, 3.0))
    out = [arrays.zeros(8) for _ in range(3)]
    assert kernel.of_part(None) is kernel and kernel.of_part(0) is kernel.of_part(0) is not kernel.of_part(1)
    sets = []
    hand_over = Kernel._set_argument
    monkeypatch.setattr(Kernel, "_set_argument", lambda self, *given: sets.append(1) or hand_over(self, *given))
    for _ in range(3):
        for part, (x, y) in enumerate(((a, b), (b, c), (c, a))):
            kernel.of_part(part)(8, x, y, out[part], 8)
    assert len(sets) == 3 * 4
    found = [arrays.to_host(buffer, 8)[0] for buffer in out]
    np.testing.assert_allclose(np.diff(found), [2.0, -1.0], atol=1e-14)


def test_kernels_that_are_gone_serve_others(device, make_spec):
    """With arguments of their own, and one at a time."""
    arrays, first = Arrays(device), Kernel(make_spec(), device)
    a, b, out = arrays.to_device(np.full(8, 1.0)), arrays.to_device(np.full(8, 2.0)), arrays.zeros(9)
    first(8, a, a, out, 8)
    handle = first.handle.int_ptr
    del first
    second, third = Kernel(make_spec(), device), Kernel(make_spec(), device)
    assert second.handle.int_ptr == handle != third.handle.int_ptr
    with pytest.raises(DeviceError, match="4 arguments"):
        second(8)
    second(8, b, b, out, 8)
    assert arrays.to_host(out, 8)[0] == 4.25


def test_one_program_for_kernels_of_one_text(device, make_spec):
    assert Kernel(make_spec(), device).program is Kernel(make_spec(name="selftest_reverse"), device).program


def test_wrong_number_of_arguments(device, make_spec):
    with pytest.raises(DeviceError, match="takes 4 arguments, 2 were given"):
        Kernel(make_spec(), device)(8, None, None)


def test_unknown_kernel(device, make_spec):
    with pytest.raises(DeviceError, match="no kernel 'absent'"):
        Kernel(make_spec(name="absent"), device).program  # noqa: B018


def test_work_group_must_be_the_declared_one(device, make_spec):
    arrays = Arrays(device)
    a = arrays.zeros(64)
    with pytest.raises(Exception, match="(?i)work.?group"):
        Kernel(make_spec(local_size=32), device)(64, a, a, a, 64)


def test_profile_counts_launches_and_seconds(make_spec):
    device = Device.select()
    device.profile = True
    arrays = Arrays(device)
    a = arrays.zeros(1000)
    kernel = Kernel(make_spec(), device)
    for _ in range(3):
        kernel(1000, a, a, a, 1000)
    calls, seconds = device.seconds()["selftest_add"]
    assert calls == 3 and 0 < seconds < 1
    for _ in range(5000):
        kernel(1, a, a, a, 1)
    assert len(device._events) < 5000 and device.seconds()["selftest_add"][0] == 5003
    device.profile = False
    kernel(1000, a, a, a, 1000)
    assert device.seconds()["selftest_add"][0] == 5003


def test_program_scope_table_of_32_kib(device, make_spec):
    """PoCL and NVIDIA take tables of the size that the largest elements have."""
    table = np.random.default_rng(0).random(4096)
    arrays = Arrays(device)
    a, total = arrays.zeros(8), arrays.empty(8)
    Kernel(make_spec(tables={"SHIFT": table}), device)(8, a, a, total, 8)
    np.testing.assert_array_equal(arrays.to_host(total, 8), table[0])

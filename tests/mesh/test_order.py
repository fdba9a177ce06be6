"""Cells and points that touch other ranks come last, on 1 … 4 ranks."""

import os

import numpy as np
import pytest

from petsc_hdg import threads
from petsc_hdg.threads import stable_order, stable_order_of

SCRIPT = __file__.replace("test_order", "run_order")


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_what_touches_other_ranks_is_last(mpirun, ranks):
    assert "order agrees" in mpirun(ranks, SCRIPT).stdout


@pytest.mark.parametrize("count", [0, 1, 5000])
def test_stable_order(count):
    numbers = np.random.default_rng(1).integers(-1, 40, count).astype(np.int32)
    assert np.array_equal(stable_order(numbers), np.argsort(numbers, kind="stable"))
    most = np.array([2**31 - 1, -1, 2**31 - 1, -(2**31)], np.int32)
    assert stable_order(most).tolist() == [3, 1, 0, 2]


@pytest.mark.parametrize("dtype", [np.int32, np.uint64, float])
@pytest.mark.parametrize("highest", [1, 50, 10**6])
def test_threads_sort_as_one(dtype, highest, monkeypatch):
    monkeypatch.setattr(threads, "FEW", 500)
    monkeypatch.setattr(threads, "threads_of_rank", lambda most: 5)
    random = np.random.default_rng(2)
    first, second = (random.integers(0, highest, 3003).astype(dtype) for _ in range(2))
    assert np.array_equal(stable_order(first), np.argsort(first, kind="stable"))
    assert np.array_equal(stable_order_of([first, second]), np.lexsort((second, first)))


def test_random_numbers_are_those_of_one_thread(monkeypatch):
    monkeypatch.setattr(threads, "CHUNK", 100)
    found = threads.random_numbers(-1.0, 3.0, 1050, 7)
    monkeypatch.setattr(threads, "threads_of_rank", lambda most: 1)
    assert np.array_equal(found, threads.random_numbers(-1.0, 3.0, 1050, 7))
    assert -1 < found.min() < -0.9 and 2.9 < found.max() < 3 and len(np.unique(found)) == 1050


@pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2, reason="there is nowhere else to run"
)
def test_threads_of_a_rank_leave_the_core_that_open_mpi_binds_it_to(monkeypatch):
    """They stay there if the user says how ranks are bound."""
    everywhere = os.sched_getaffinity(0)
    core = {min(everywhere)}
    for name in filter(threads.PLACED, list(os.environ)):
        monkeypatch.delenv(name)
    monkeypatch.setenv("OMPI_COMMAND", "python")
    monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "1")
    monkeypatch.setattr(threads.MPI, "get_vendor", lambda: ("Open MPI", (4, 1, 4)))

    def found() -> tuple[set, int]:
        with threads.thread_pool(1) as pool:
            return pool.submit(os.sched_getaffinity, 0).result(), threads.threads_of_rank(100)

    os.sched_setaffinity(0, core)
    threads._processors.cache_clear()
    try:
        assert found() == (everywhere, len(everywhere)) and os.sched_getaffinity(0) == core
        monkeypatch.setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "2")
        assert found() == (everywhere, len(everywhere) // 2)
        for name in ("OMPI_MCA_hwloc_base_binding_policy", "OMPI_MCA_rmaps_base_mapping_policy"):
            with monkeypatch.context() as told:
                told.setenv(name, "core")
                assert found() == (core, 1)
    finally:
        os.sched_setaffinity(0, everywhere)
        threads._processors.cache_clear()


def test_linear_algebra_has_the_threads_of_a_rank(monkeypatch):
    def count() -> list[int]:
        return [each["num_threads"] for each in threads._controller().info() if each["user_api"] == "blas"]

    monkeypatch.setattr(threads, "threads_of_rank", lambda most: 1)
    before = count()
    with threads.few_blas_threads():
        assert set(count()) == {1}
    assert count() == before and before

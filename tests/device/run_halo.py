"""Under mpiexec: random graphs of ghosts, exchanged by kernels and on the host, against a gather of all values."""

import sys

import numpy as np
from mpi4py import MPI

from petsc_hdg.device import Arrays, Device, Halo
from petsc_hdg.errors import DeviceError
from petsc_hdg.run import guarded

comm = MPI.COMM_WORLD


def graph(seed: int):
    """(owned size, owner ranks [g], owner indices [g]); the last rank has no ghosts."""
    sizes = [5 + 3 * rank for rank in range(comm.size)]
    rng = np.random.default_rng([seed, comm.rank])
    others = [rank for rank in range(comm.size) if rank != comm.rank]
    count = 0 if comm.rank == comm.size - 1 else 23
    ranks = rng.choice(others, count)
    return sizes[comm.rank], ranks, np.array([rng.integers(sizes[rank]) for rank in ranks], dtype=int)


def expected_sums(owned: np.ndarray, ghosts: np.ndarray, ranks, indices) -> np.ndarray:
    """Owners' values plus all ghosts' values, by ascending rank and then by position."""
    total = owned.copy()
    for values, their_ranks, their_indices in comm.allgather((ghosts, ranks, indices)):
        for value, rank, index in zip(values, their_ranks, their_indices, strict=True):
            if rank == comm.rank:
                total[index] += value
    return total


def check(device, precision: str, components: int) -> None:
    size, ranks, indices = graph(components)
    arrays = Arrays(device, precision)
    count = len(ranks)
    place = np.random.default_rng(comm.rank).permutation(count + 2)[:count] + size
    halo = Halo(comm, size, ranks, indices, arrays, components)
    local = Halo(comm, size, ranks, indices, arrays, components, ghost_place=place)
    rng = np.random.default_rng([7, comm.rank])
    for _ in range(3):
        owned = rng.random((size, components)).astype(arrays.real)
        everything = comm.allgather(owned)
        ghosts = np.array([everything[r][i] for r, i in zip(ranks, indices, strict=True)], arrays.real)
        ghosts = ghosts.reshape(count, components)
        sums = expected_sums(owned, ghosts, ranks, indices)
        on_host, added = np.zeros_like(ghosts), owned.copy()
        halo.plan.forward_host(owned, on_host)
        halo.plan.reverse_add_host(ghosts, added)
        np.testing.assert_array_equal(on_host, ghosts)
        np.testing.assert_array_equal(added, sums)

        bo, bg = arrays.to_device(owned), arrays.empty(count * components)
        halo.forward(bo, bg)
        np.testing.assert_array_equal(arrays.to_host(bg, ghosts.shape), ghosts)
        halo.reverse_add(bg, bo)
        np.testing.assert_array_equal(arrays.to_host(bo, owned.shape), sums)

        both = arrays.to_device(np.concatenate([owned, np.full((count + 2, components), -1.0)]))
        local.forward_begin(both)
        local.forward_end(both)
        found = arrays.to_host(both, (size + count + 2, components))
        np.testing.assert_array_equal(found[place], ghosts)
        np.testing.assert_array_equal(found[:size], owned)
        local.reverse_add(both, both)
        np.testing.assert_array_equal(arrays.to_host(both, owned.shape), sums)
    halo.destroy()
    local.destroy()


def fails(size: int, ranks: list, indices: list, word: str) -> None:
    try:
        Halo(comm, size, ranks, indices, Arrays(Device.select("any", comm)))
    except DeviceError as error:
        assert word in str(error), error
    else:
        raise AssertionError(f"no error for {ranks} {indices}")


def main() -> None:
    other = (comm.rank + 1) % comm.size
    if "bad" in sys.argv:
        first = comm.rank == 0
        fails(4, [0] if first else [], [0] if first else [], "owned by rank 0")
        fails(4, [99] if first else [], [0] if first else [], "owned by rank 99")
        fails(4, [other] if first else [], [4] if first else [], "point 4 of rank 1")
        fails(4, [other], [0, 1] if first else [0], "2 owner indices")
        if first:
            print("errors agree")
        return
    device = Device.select("any", comm)
    for precision in ("double", "single"):
        for components in (1, 3):
            check(device, precision, components)
    comm.Barrier()
    if comm.rank == 0:
        print("halo agrees")


guarded(main)  # a rank that fails ends them all

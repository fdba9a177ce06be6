"""Under mpiexec: random graphs of ghosts, exchanged by kernels and on the host, against a gather of all values."""

import sys
from dataclasses import replace

import numpy as np
from mpi4py import MPI

from petsc_hdg.device import Arrays, Device, Halo
from petsc_hdg.device import node as node_module
from petsc_hdg.device.node import Node
from petsc_hdg.errors import DeviceError
from petsc_hdg.run import guarded

comm = MPI.COMM_WORLD


def graph(seed: int, most: int = 23):
    """(owned size, owner ranks [g], owner indices [g]); the last rank has no ghosts."""
    sizes = [5 + 3 * rank for rank in range(comm.size)]
    rng = np.random.default_rng([seed, comm.rank])
    others = [rank for rank in range(comm.size) if rank != comm.rank]
    count = 0 if comm.rank == comm.size - 1 else most
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


def check(device, precision: str, components: int, way: str) -> None:
    device.halo = way
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
        np.add.at(added, halo.plan.send_points, halo.plan.rows_to_owners(ghosts))
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


def check_bytes(device, node, way: str, before) -> None:
    """Windows inside a node, messages between nodes, and nothing else."""
    sent = (
        comm.allreduce(device.exchanges.windows - before.windows),
        comm.allreduce(device.exchanges.messages - before.messages),
    )
    assert comm.allreduce(device.exchanges.count - before.count) > 0
    nodes = len(set(comm.allgather(int(node.members[0]))))
    assert (sent[0] > 0) == (way in ("auto", "windows") and nodes < comm.size), (way, sent)
    assert (sent[1] > 0) == (way != "peers" and (way == "messages" or nodes > 1)), (way, sent)


def check_many(device, node) -> None:
    """Exchanges made and dropped take no more memory; two under way at once, ended in the other order, both arrive."""
    arrays, sizes, blocks = Arrays(device), (1, 3), None
    for turn in range(30):
        size, ranks, indices = graph(turn, 3000)
        halos = [Halo(comm, size, ranks, indices, arrays, components=c) for c in sizes]
        owned = [np.random.default_rng([turn, comm.rank, c]).random((size, c)) for c in sizes]
        everything = [comm.allgather(values) for values in owned]
        given = [arrays.to_device(values) for values in owned]
        found = [arrays.empty(len(ranks) * c) for c in sizes]
        for halo, buffer in zip(halos, given, strict=True):
            halo.forward_begin(buffer)
        for halo, buffer in zip(halos[::-1], found[::-1], strict=True):
            halo.forward_end(buffer)
        for values, buffer, c in zip(everything, found, sizes, strict=True):
            wanted = np.array([values[r][i] for r, i in zip(ranks, indices, strict=True)]).reshape(len(ranks), c)
            np.testing.assert_array_equal(arrays.to_host(buffer, wanted.shape), wanted)
        del halo, halos
        blocks = blocks or len(node.windows._blocks)
    assert len(node.windows._blocks) == blocks


def check_full(device) -> None:
    """Where rank 0 finds no room, no rank has a window."""
    node_module.SHARED = "/proc"  # it has no free bytes
    check(device, "double", 1, "auto")
    assert device.exchanges.windows == 0 and comm.allreduce(device.exchanges.messages) > 0
    try:
        check(device, "double", 1, "windows")
    except DeviceError as error:
        assert "/dev/shm" in str(error)
    else:
        raise AssertionError("windows without room")
    if comm.allreduce(1) == comm.size and comm.rank == 0:
        print("no room is said")


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
    if "full" in sys.argv:
        check_full(device)
        return
    node = Node.of(comm)
    assert Node.of(comm) is node
    for way in sys.argv[1:]:
        before = replace(device.exchanges)
        for precision in ("double", "single"):
            for components in (1, 3):
                check(device, precision, components, way)
        check_bytes(device, node, way, before)
    device.halo = "auto"
    check_many(device, node)
    comm.Barrier()
    if comm.rank == 0:
        print("halo agrees")


guarded(main)  # a rank that fails ends them all

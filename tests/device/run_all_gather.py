"""Under mpiexec: numbers of all ranks on each of them, by windows, messages or peers, as the environment has nodes.

    run_all_gather.py HALO [BYTES]    -fe_halo; of a part of memory that other ranks write

Rank r has r % 2 + 2 r numbers, rank 0 none. Gathers follow each other without a pause, and come again recorded.
"""

import sys

import numpy as np
from mpi4py import MPI

from petsc_hdg.device import AllGather, Arrays, Device, Recorded, all_gather
from petsc_hdg.run import guarded

COMM = MPI.COMM_WORLD


@guarded
def main() -> None:
    arrays = Arrays(Device.select("any", COMM))
    arrays.device.halo = sys.argv[1]
    all_gather.MOST = float(sys.argv[2]) if sys.argv[2:] else all_gather.MOST
    counts = [rank % 2 + 2 * rank for rank in range(COMM.size)]
    own, gather = counts[COMM.rank], AllGather(COMM, counts[COMM.rank], arrays)
    assert (gather.total, gather.first) == (sum(counts), sum(counts[: COMM.rank]))
    recorded, before = Recorded(arrays.device), arrays.device.exchanges.count
    x, part = arrays.zeros(max(1, own)), arrays.zeros(max(1, own))
    out = [arrays.zeros(gather.total) for _ in range(2)]
    for turn in range(6):
        everything = np.sin(np.arange(gather.total) + turn)
        arrays.upload(x, everything[gather.first :][:own].copy(), "test")
        recorded.run(gather.gather, x, out[turn % 2])
        if turn % 2:
            for number, buffer in enumerate(out, turn - 1):
                np.testing.assert_array_equal(
                    arrays.to_host(buffer, gather.total), np.sin(np.arange(gather.total) + number)
                )
            gather.take(out[1], part)
            np.testing.assert_array_equal(arrays.to_host(part, own), everything[gather.first :][:own])
    exchanges = arrays.device.exchanges
    assert exchanges.count - before == 6
    ways = {"windows": exchanges.windows, "messages": exchanges.messages, "peers": exchanges.peers}
    said = COMM.allgather(" and ".join(f"by {way}" for way, sent in ways.items() if sent) or "nothing")
    if COMM.rank == 0:
        print(", ".join(said))

"""Data of all ranks on rank 0, one rank at a time."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

_CHUNK = 1 << 28  # bytes a message; MPI counts are 32-bit
_TAG = 7301


def pieces_in_rank_order(comm, own: bytes) -> Iterator[bytes]:
    """On rank 0: the bytes of rank 0, 1, 2, …; elsewhere: send `own` and yield nothing.

    Every rank must run the iterator to its end. Only one piece besides its own is held on rank 0.
    """
    if comm.rank:
        _send(comm, own)
        return
    yield own
    for source in range(1, comm.size):
        yield _receive(comm, source)


def _send(comm, data: bytes) -> None:
    comm.send(len(data), 0, _TAG)
    for start in range(0, len(data), _CHUNK):
        comm.Send(np.frombuffer(data, np.uint8)[start : start + _CHUNK], 0, _TAG)


def _receive(comm, source: int) -> bytes:
    data = np.empty(comm.recv(source=source, tag=_TAG), np.uint8)
    for start in range(0, len(data), _CHUNK):
        comm.Recv(data[start : start + _CHUNK], source, _TAG)
    return data.tobytes()


def whole_blocks(comm, data: bytes, size: int) -> bytes:
    """This rank's part of all ranks' bytes laid end to end, so that whole blocks of `size` bytes stay together: each
    rank has the blocks that begin in its own data. Collective."""
    ends = np.cumsum(comm.allgather(len(data)))
    end, total = int(ends[comm.rank]), int(ends[-1])
    start = end - len(data)
    first = min(-(-start // size) * size, end)
    request = None
    if first > start:  # a block that began before this rank's data
        owner = int(np.searchsorted(ends, start // size * size, side="right"))
        request = comm.Isend(np.frombuffer(data, np.uint8)[: first - start], owner, _TAG)
    parts = [data[first - start :]]
    last = min(-(-end // size) * size, total) if end > first else end
    for source in range(comm.rank + 1, comm.size):
        count = min(int(ends[source]), last) - end
        if count > 0:
            part = np.empty(count, np.uint8)
            comm.Recv(part, source, _TAG)
            parts.append(part.tobytes())
            end += count
    if request is not None:
        request.Wait()
    return b"".join(parts)


def gather_rows(comm, rows: np.ndarray) -> np.ndarray | None:
    """Rows [row, …] of all ranks, in rank order, on rank 0; None elsewhere. Collective.

    All ranks give the same shape after the first axis, and the same type.
    """
    rows = np.ascontiguousarray(rows)
    pieces = pieces_in_rank_order(comm, rows.tobytes())
    parts = [np.frombuffer(piece, rows.dtype).reshape(-1, *rows.shape[1:]) for piece in pieces]
    return np.concatenate(parts) if comm.rank == 0 else None

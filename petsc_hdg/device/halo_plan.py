"""Who sends which points to whom: the plan of a halo exchange, on the host, and the exchange of host arrays."""

from __future__ import annotations

import numpy as np
from mpi4py import MPI

from petsc_hdg.errors import DeviceError, collectively

_TAG_PLAN = 7101
_TAG_FORWARD = 7102
_TAG_REVERSE = 7103
OTHER = {"points": "ghosts", "ghosts": "points"}


class HaloPlan:
    """Lists made from a graph of ghosts, ordered by neighbour; building it is collective on `comm` (mpi4py).

    comm                the ranks
    owned_size          points this rank owns
    ghost_owner_rank    [ghost] rank that owns each ghost
    ghost_owner_index   [ghost] number of the ghost among its owner's owned points

    receive_ranks [r], receive_start [r + 1], receive_ghosts [slot]   ghosts, by owner and then by position
    send_ranks [s], send_start [s + 1], send_points [slot]            owned points, in the order the receiver wants
    targets [row], target_offsets [row + 1], target_slots [slot]      owned points that are ghosts elsewhere, and their
                                                                      send slots, by ascending rank: the order of sums
    """

    def __init__(self, comm, owned_size: int, ghost_owner_rank, ghost_owner_index):
        self.comm = comm
        self.owned_size = int(owned_size)
        ranks = np.asarray(ghost_owner_rank, dtype=np.int64).ravel()
        indices = np.asarray(ghost_owner_index, dtype=np.int64).ravel()
        with collectively(comm):
            _check_ghosts(comm, ranks, indices)
        order = np.argsort(ranks, kind="stable")
        self.receive_ranks, self.receive_start = _groups(ranks[order])
        self.receive_ghosts = order.astype(np.int32)
        self._find_senders(indices[order])
        with collectively(comm):
            self._check_points()
        self.target_slots = np.argsort(self.send_points, kind="stable").astype(np.int32)
        self.targets, counts = np.unique(self.send_points, return_counts=True)
        self.target_offsets = np.concatenate(([0], np.cumsum(counts))).astype(np.int32)

    @property
    def active(self) -> bool:
        """True if this rank sends or receives anything."""
        return bool(self.receive_ghosts.size or self.send_points.size)

    def _find_senders(self, wanted: np.ndarray) -> None:
        """Tell each owner which of its points are wanted here, and learn what the others want."""
        counts = np.zeros(self.comm.size, dtype=np.int64)
        counts[self.receive_ranks] = np.diff(self.receive_start)
        asked = np.empty_like(counts)
        self.comm.Alltoall(counts, asked)
        self.send_ranks = np.flatnonzero(asked)
        self.send_start = np.concatenate(([0], np.cumsum(asked[self.send_ranks])))
        self.send_points = self._exchanged("ghosts", wanted, _TAG_PLAN)

    def _check_points(self) -> None:
        wrong = (self.send_points < 0) | (self.send_points >= self.owned_size)
        if wrong.any():
            point = int(self.send_points[np.argmax(wrong)])
            raise DeviceError(f"a ghost refers to point {point} of rank {self.comm.rank}, which owns {self.owned_size}")
        self.send_points = self.send_points.astype(np.int32)

    def forward_host(self, owned: np.ndarray, ghosts: np.ndarray) -> None:
        """Fill `ghosts` [ghost, ...] with the owners' values of `owned` [point, ...]."""
        ghosts[self.receive_ghosts] = self._exchanged("points", owned[self.send_points], _TAG_FORWARD)

    def rows_to_owners(self, ghosts: np.ndarray) -> np.ndarray:
        """What other ranks have in `ghosts` [ghost, ...] for the points they are sent: [slot of send_points, ...]."""
        return self._exchanged("ghosts", ghosts[self.receive_ghosts], _TAG_REVERSE)

    def groups(self, side: str) -> list[tuple[int, int, int]]:
        """(rank, first slot, last slot) of each neighbour among the `points` that are sent or the `ghosts` received."""
        ranks, start = self.send_ranks, self.send_start
        if side == "ghosts":
            ranks, start = self.receive_ranks, self.receive_start
        return [(int(rank), int(start[i]), int(start[i + 1])) for i, rank in enumerate(ranks)]

    def _exchanged(self, side: str, values: np.ndarray, tag: int) -> np.ndarray:
        """Send the values [slot, ...] of a side; those of the other side's slots, which come."""
        values, others = np.ascontiguousarray(values), self.groups(OTHER[side])
        found = np.empty((others[-1][2] if others else 0, *values.shape[1:]), values.dtype)
        requests = [self.comm.Irecv(found[first:last], rank, tag) for rank, first, last in others]
        requests += [self.comm.Isend(values[first:last], rank, tag) for rank, first, last in self.groups(side)]
        MPI.Request.Waitall(requests)
        return found


def _check_ghosts(comm, ranks: np.ndarray, indices: np.ndarray) -> None:
    if ranks.shape != indices.shape:
        raise DeviceError(f"{ranks.size} owner ranks were given for {indices.size} owner indices of ghosts")
    wrong = (ranks < 0) | (ranks >= comm.size) | (ranks == comm.rank)
    if wrong.any():
        raise DeviceError(f"rank {comm.rank} has a ghost owned by rank {int(ranks[np.argmax(wrong)])} of {comm.size}")


def _groups(sorted_values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct values [g] of a sorted array and the start of each group [g + 1]."""
    values, start = np.unique(sorted_values, return_index=True)
    return values, np.append(start, sorted_values.size)

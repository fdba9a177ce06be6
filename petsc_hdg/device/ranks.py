"""Which device each rank has: a table, and a warning where ranks share a GPU."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from mpi4py import MPI

from petsc_hdg.device.context import Device
from petsc_hdg.device.node import Node
from petsc_hdg.device.platforms import identity
from petsc_hdg.errors import warn_user
from petsc_hdg.value_checks import plural

MOST = 16  # devices that are listed


@dataclass(frozen=True)
class Place:
    """Where a rank works: its node's number and name, the device's name and what tells it from its like there."""

    node: int
    host: str
    device: str
    identity: str
    is_gpu: bool


def places(device: Device, comm) -> list[Place]:
    """The Place of each rank of `comm` (mpi4py). Collective."""
    first = 0 if comm.size == 1 else int(Node.of(comm).members[0])
    mine = (first, MPI.Get_processor_name(), device.name, identity(device.cl_device), device.is_gpu)
    everyone = comm.allgather(mine)
    nodes = sorted({place[0] for place in everyone})
    return [Place(nodes.index(place[0]), *place[1:]) for place in everyone]


def table(found: list[Place]) -> list[str]:
    """A line for each device: node, name, ranks."""
    ranks: dict[Place, list[int]] = {}
    for rank, place in enumerate(found):
        ranks.setdefault(place, []).append(rank)
    lines = [_line(place, of, len({p.node for p in found}) > 1) for place, of in ranks.items()]
    if len(lines) > MOST:
        lines = [*lines[:MOST], f"  and {plural(len(lines) - MOST, 'more device')}"]
    return lines


def _line(place: Place, ranks: list[int], several_nodes: bool) -> str:
    where = f"node {place.node} ({place.host}), " if several_nodes else ""
    said = f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {', '.join(map(str, ranks))}"
    return f"  {said}: {where}{place.device}, {place.identity}"


def sharing(found: list[Place]) -> str:
    """How many ranks share GPUs, in a sentence; "" if none do."""
    of = Counter(place for place in found if place.is_gpu)
    shared = {place: count for place, count in of.items() if count > 1}
    if not shared:
        return ""
    most = max(shared, key=shared.get)
    where = f"{shared[most]} on {most.device} of node {most.node}"
    return (
        f"{sum(shared.values())} ranks share {plural(len(shared), 'GPU')} ({where}), "
        "which take turns: start as many ranks on a node as it has GPUs"
    )


def warn_of_sharing(found: list[Place]) -> None:
    """A warning from the first rank, once."""
    text = sharing(found)
    if text and MPI.COMM_WORLD.rank == 0:
        warn_user(text)

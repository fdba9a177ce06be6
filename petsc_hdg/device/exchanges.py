"""What the exchanges of ghost values of a device have taken so far."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass
class Exchanges:
    """count: exchanges.   waited: seconds in which the host waited for copies and neighbours, kernels maybe running.
    windows, messages: bytes that this rank has sent through shared memory and by messages.
    """

    count: int = 0
    waited: float = 0.0
    windows: int = 0
    messages: int = 0

"""What the exchanges of ghost values of a device have taken so far."""

from __future__ import annotations

from dataclasses import asdict, dataclass


@dataclass
class Exchanges:
    """count: exchanges.   waited: seconds in which the host waited for copies and neighbours, kernels maybe running.
    peers, windows, messages: bytes that this rank has sent into the memory of other devices, through shared memory of
    the hosts and by messages.
    """

    count: int = 0
    waited: float = 0.0
    peers: int = 0
    windows: int = 0
    messages: int = 0

    def add_peers(self, nbytes: int) -> None:
        """Count an exchange through the memory of other devices."""
        self.count += 1
        self.peers += nbytes

    def since(self, before: Exchanges) -> Exchanges:
        """What has come to those there were `before`."""
        earlier = asdict(before)
        return Exchanges(**{name: value - earlier[name] for name, value in asdict(self).items()})

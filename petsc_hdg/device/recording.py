"""Sequences of launches that are gone through once and then repeated, which costs the host a fraction of the calls."""

from __future__ import annotations

from contextlib import contextmanager

from petsc_hdg.device.context import Device

MOST = 32  # sequences that are kept: as many as the basis of a restarted method has vectors


class Recorded:
    """`run(function, *buffers)`: the launches of function(*buffers), which must be the same each time.

    What a function does is remembered for each choice of buffers and queue: launches of Kernels by themselves, anything
    else only where it is wrapped in `aside`. `merged(calls, device)` returns the calls to repeat in their place.
    """

    def __init__(self, device: Device, merged=None):
        self.device, self._merged = device, merged or (lambda calls, device: calls)
        self._kept: dict = {}

    def run(self, function, *buffers) -> None:
        """What function(*buffers) launches."""
        key = (self.device.queue, self.device.profile, *map(id, buffers))
        if self.device.recording is not None:  # inside of another sequence, which remembers the launches
            function(*buffers)
        elif key in self._kept:
            for call in self._kept[key][1]:
                call()
        elif len(self._kept) < MOST:
            self._record(key, function, buffers)
        else:
            function(*buffers)

    def _record(self, key, function, buffers) -> None:
        self.device.recording = calls = []
        try:
            function(*buffers)
        finally:
            self.device.recording = None
        # The buffers are kept, or others might get their ids.
        self._kept[key] = buffers, self._merged(calls, self.device)


def aside(device: Device, call) -> None:
    """Run call() now, and at each repetition of a sequence that is being recorded: what is more than launches."""
    if device.recording is None:
        call()
        return
    with unrecorded(device):
        call()
    device.recording.append(call)


@contextmanager
def unrecorded(device: Device):
    """Context manager: launches that belong to no sequence, such as trials."""
    calls, device.recording = device.recording, None
    try:
        yield
    finally:
        device.recording = calls


@contextmanager
def enclosed(device: Device, begin, end):
    """Context manager: begin() before, and end() after what is launched inside, at each repetition too."""
    aside(device, begin)
    try:
        yield
    finally:
        aside(device, end)

"""Processes that compile programs beside this one, for drivers that share what processes have compiled.

NVIDIA's compiler makes threads of a process wait for each other. Its driver keeps programs on disk by their text: one
that another process has compiled is built in milliseconds.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from threading import Thread

from petsc_hdg.device.platforms import opencl

HERE = 2  # programs that this process compiles at a time until the others are ready
SCRIPT = Path(__file__).with_name("compiler_process.py")


def can_share(device) -> bool:
    """True if a program that another process has compiled need not be compiled again."""
    return device.platform.startswith("NVIDIA") and os.environ.get("CUDA_CACHE_DISABLE", "0") == "0"


class Compilers:
    """`with compilers.turn(spec, options):` builds a program inside that one of `count` processes has compiled, or that
    none is free for. Threads use it at the same time."""

    def __init__(self, device, count: int):
        self._turns: SimpleQueue = SimpleQueue()  # processes that are free, and None for this one
        self._ready, self._starting = set(), [None] * count
        for _ in range(HERE):
            self._turns.put(None)
        platform = device.cl_device.platform
        numbers = opencl().get_platforms().index(platform), platform.get_devices().index(device.cl_device)
        call = [sys.executable, str(SCRIPT), *map(str, numbers)]
        for _ in range(count):
            Thread(target=self._start, args=(call,), daemon=True).start()

    def _start(self, call: list[str]) -> None:
        """Start a process, which is free once it has said so, and wait for its end."""
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        try:
            process = subprocess.Popen(call, **pipes)
            if process.stdout.readline():
                self._ready.add(process)
                self._turns.put(process)
        finally:
            self._starting.pop()
        with process:
            process.wait()
        self._ready.discard(process)

    @contextmanager
    def turn(self, spec, options: list[str]):
        """Context manager: inside the program may be built."""
        process = self._turns.get()
        if process is not None and not _tried(process, spec.program_source(), options):
            self._ready.discard(process)
            process = None
        yield
        if process is not None or not self._ready:
            self._turns.put(process)

    @property
    def are_alive(self) -> bool:
        """True if there is another process. They end by themselves when nobody asks them for a while."""
        return bool(self._starting or self._ready)


def _tried(process, source: str, options: list[str]) -> bool:
    try:
        pickle.dump((source, options), process.stdin)
        process.stdin.flush()
        return bool(process.stdout.readline())
    except (OSError, ValueError):  # it has ended
        return False

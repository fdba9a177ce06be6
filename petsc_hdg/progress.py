"""A line on the terminal that shows how far long work is: set-up, solves, runs in time, load steps."""

from __future__ import annotations

import sys
import threading
import time
from contextlib import contextmanager

from .database import any_given

PATIENCE, EVERY = 1.0, 0.25  # seconds of work before the first line, and between two of them
CLEAR = "\r\033[K"


class Progress:
    """Counters of the work that goes on, and the thread that shows them. One per process.

    is_on    True if lines are wanted: on rank 0 alone
    work     names of the tasks that are open, the outermost first
    """

    def __init__(self):
        self.is_on, self.work = False, []
        self._forget()

    def _forget(self) -> None:
        self.newton = self.linear = 0
        self.step: tuple[str, int, int | None] | None = None  # name, number, and how many there are
        self.time: tuple[float, float] | None = None  # now and at the end
        self.begin: tuple[float, float] | None = None  # the part that was done when the run began, and seconds then
        self.part = self.first = 0.0  # of the work that is done; the time at which a run in time began

    def settle(self, wanted: str, rank: int) -> None:
        """Follow -fe_progress: `auto` shows lines on a terminal where no monitor of PETSc writes its own."""
        shows = wanted == "on" or (wanted == "auto" and sys.stderr.isatty() and not any_given("", "monitor"))
        self.is_on = rank == 0 and shows

    @contextmanager
    def task(self, name: str):
        """Show the block as work under a name, if it takes longer than PATIENCE."""
        if not self.is_on:
            yield
            return
        self.work.append(name)
        shown = _Thread(self) if len(self.work) == 1 else None
        try:
            yield
        finally:
            self.work.pop()
            if shown is not None:
                shown.stop()
                self._forget()

    # Monitors of PETSc ---------------------------------------------------------------------------------------

    def watch(self, snes, ksp) -> None:
        """Count the steps of a SNES and the iterations of the KSP of its linear systems."""
        if self.is_on:
            snes.setMonitor(self._of_newton)
            ksp.setMonitor(self._of_linear)

    def watch_time(self, ts) -> None:
        """Follow the steps of a TS."""
        if self.is_on:
            ts.setMonitor(self._of_time)

    def _of_linear(self, ksp, iteration: int, norm: float) -> None:
        self.linear += iteration > 0

    def _of_newton(self, snes, iteration: int, norm: float) -> None:
        self.newton += iteration > 0

    def _of_time(self, ts, step: int, t: float, u) -> None:
        end = ts.getMaxTime()
        self.time = t, end
        if self.step is None or self.step[2] is None:  # not within the steps of a load
            self.step = "step", step, None
            self.first = t if self.begin is None else self.first
            self._reach(max((t - self.first) / (end - self.first), step / ts.getMaxSteps()))

    def count(self, name: str, number: int, most: int) -> None:
        """Note that a number of steps out of so many are done."""
        self.step = name, number, most
        self._reach(number / most)

    def _reach(self, part: float) -> None:
        """Note the part of the work that is done, from 0 to 1; the first one is where this run begins."""
        self.part = part
        if self.begin is None:
            self.begin = part, time.perf_counter()

    def text(self, seconds: float) -> str:
        """Return the line: what is done, how fast, and the time that is left."""
        said = [f"{self.work[-1] if self.work else ''} {_duration(seconds)}"]
        if self.step is not None:
            name, number, most = self.step
            said.append(f"{name} {number}" + (f" of {most}" if most else ""))
        if self.time is not None:
            said.append("t = {:.4g} of {:.4g}".format(*self.time))
        said += [f"{name} {count}" for name, count in (("Newton", self.newton), ("linear", self.linear)) if count]
        if self.linear:
            said.append(f"{self.linear / seconds:.3g} iterations/s")
        if self.begin is not None and self.part > self.begin[0]:
            rate = (self.part - self.begin[0]) / (time.perf_counter() - self.begin[1])
            said.append(f"{100 * self.part:.0f} %, {_duration((1 - self.part) / rate)} left")
        return ", ".join(said)


class _Thread(threading.Thread):
    """A thread that shows a line until it is stopped: rewritten on a terminal, one after the other in a file."""

    def __init__(self, progress: Progress):
        super().__init__(daemon=True)
        self._progress, self._done = progress, threading.Event()
        self.start()

    def run(self) -> None:
        begin, pause, on_terminal, shown = time.perf_counter(), PATIENCE, sys.stderr.isatty(), False
        while not self._done.wait(pause):
            line = self._progress.text(time.perf_counter() - begin)
            sys.stderr.write(f"{CLEAR}{line}" if on_terminal else f"{line}\n")
            sys.stderr.flush()
            pause, shown = EVERY, True
        if shown and on_terminal:
            sys.stderr.write(CLEAR)
            sys.stderr.flush()

    def stop(self) -> None:
        """End the line."""
        self._done.set()
        self.join()


PROGRESS = Progress()


def _duration(seconds: float) -> str:
    """Return seconds as a text such as 7 s, 2:05 or 1:00:00."""
    whole = int(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes = f"{whole // 60}" if whole < 3600 else f"{whole // 3600}:{whole // 60 % 60:02d}"
    return f"{minutes}:{whole % 60:02d}"

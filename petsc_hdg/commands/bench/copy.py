"""Bandwidth of a plain copy on the device: the limit that every row is set beside."""

from __future__ import annotations

import time

import numpy as np

from ...device import Arrays


def copy_bandwidth(device, repeats: int = 9) -> float:
    """Bytes a second, read plus written, of a copy from buffer to buffer (median of `repeats`)."""
    arrays = Arrays(device)
    count = (1 << 27) if device.is_gpu else (1 << 24)
    source, target = arrays.zeros(count), arrays.zeros(count)
    return 2 * 8 * count / median_seconds(device, lambda: arrays.copy(source, target, count), repeats, launches=5)


def median_seconds(device, launch, repeats: int, launches: int | None = None) -> float:
    """Median seconds of one `launch()`, from `repeats` measurements of several launches in a row.

    The number of launches is chosen so that a measurement takes some 20 ms, which hides the launch itself.
    """
    launch()
    device.finish()
    if launches is None:
        start = time.perf_counter()
        launch()
        device.finish()
        launches = int(np.clip(0.02 / max(time.perf_counter() - start, 1e-6), 1, 100))
    seconds = []
    for _ in range(repeats):
        start = time.perf_counter()
        for _ in range(launches):
            launch()
        device.finish()
        seconds.append((time.perf_counter() - start) / launches)
    return float(np.median(seconds))

"""The full set: every row of every scheme."""

from __future__ import annotations

import gc

from . import cg, hdg, poly, sipg

SCHEMES = (cg, hdg, sipg, poly)  # those of `bench trace` are among those of hdg


def rows(device, given, copy):
    """Yield bench rows, one after the other; `-only` picks among them."""
    for scheme in SCHEMES:
        yield from scheme.rows(device, given, copy)
        gc.collect()

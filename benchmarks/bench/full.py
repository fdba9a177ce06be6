"""The full set: every row of every scheme."""

from __future__ import annotations

from . import cg, hdg, poly, sipg

SCHEMES = (cg, hdg, sipg, poly)  # those of `bench trace` are among those of hdg


def groups(device, given, copy):
    """Yield groups of bench rows."""
    for scheme in SCHEMES:
        yield from scheme.groups(device, given, copy)

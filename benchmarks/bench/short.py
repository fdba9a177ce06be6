"""The short set: a few rows of each scheme, in two minutes on a GPU."""

from __future__ import annotations

from . import cg, hdg, poly, sipg, trace
from .group import Group

# (whose rows, what picks one of them)
CHOSEN = [
    (cg, "cg element cell triangle P1"),
    (cg, "cg whole patch triangle P1"),
    (cg, "cg whole patch tetrahedron P1"),
    (hdg, "hdg local matrices triangle P3"),
    (hdg, "hdg local solve triangle P3"),
    (trace, "trace dbf triangle P3"),
    (trace, "trace symmetric triangle P3"),
    (trace, "trace element congruent triangle P3"),
    (sipg, "sipg affine product, box quadrilateral P3"),
    (sipg, "sipg fused product, distorted quadrilateral P3"),
    (sipg, "sipg affine product, box hexahedron P4"),
    (sipg, "sipg affine product, distorted triangle P3"),
    (poly, "poly element kernel, 2, x4 tetrahedron P3"),
    (poly, "poly facet kernel, 2, x4 tetrahedron P3"),
]


def groups(device, given, copy):
    """Yield a group for each row."""
    for scheme, name in CHOSEN:
        group = next(g for g in scheme.groups(device, given, copy) if name in g.names)
        yield Group((name,), group.prepare)

"""The short set: a few rows of each scheme, in two minutes on a GPU."""

from __future__ import annotations

import gc
from argparse import Namespace

from . import cg, hdg, poly, sipg, trace

# (whose rows, what picks one of them)
CHOSEN = [
    (cg, "cg element cell triangle P1"),
    (cg, "cg whole patch triangle P1"),
    (cg, "cg whole patch tetrahedron P1"),
    (hdg, "hdg local matrices triangle P3"),
    (hdg, "hdg local solve triangle P3"),
    (trace, "trace dbf triangle P3"),
    (trace, "trace element symmetric triangle P3"),
    (trace, "trace element congruent triangle P3"),
    (sipg, "sipg affine product, box quadrilateral P3"),
    (sipg, "sipg fused product, distorted quadrilateral P3"),
    (sipg, "sipg affine product, box hexahedron P4"),
    (sipg, "sipg affine product, distorted triangle P3"),
    (poly, "poly element kernel, 2, x4 tetrahedron P3"),
    (poly, "poly facet kernel, 2, x4 tetrahedron P3"),
]


def rows(device, given, copy):
    """Yield bench rows, one after the other; `-only` picks among them."""
    for scheme, only in CHOSEN:
        if given.only in only:
            found = scheme.rows(device, Namespace(**{**vars(given), "only": only}), copy)
            yield next(row for row in found if not row["kernel"].startswith("peak"))
            found.close()
            gc.collect()  # operators and their parts hold each other, and the device's memory

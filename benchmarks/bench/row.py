"""A bench row: a kernel's time, beside what the device's memory allows."""

from __future__ import annotations

import math


def row(*, kernel, discretization, device, cells, dofs, dof_kind, seconds, nbytes, flops, copy, peer=None) -> dict:
    """One row as plain data; the run adds limits (`limited`), `name` and `elapsed_seconds` (record.py).

    dofs are of kind `dof_kind` (unique: assembled; element: each cell's own). nbytes: compulsory bytes, each input
    and output once. fraction_of_copy: their time at the bandwidth `copy` of the same run over the time measured.
    """
    return {
        "kernel": kernel,
        "scheme": discretization.name,
        "cell": discretization.mesh.cell,
        "degree": discretization.options.degree,
        "components": discretization.physics.num_components,
        "precision": discretization.options.precision,
        "device": device.name,
        "cells": cells,
        "dofs": dofs,
        "dof_kind": dof_kind,
        "seconds_median": seconds,
        "dof_per_s": dofs / seconds,
        "bytes_compulsory": nbytes,
        "flops": flops,
        "copy_GBs_same_run": copy / 1e9,
        "fraction_of_copy": nbytes / copy / seconds,
        "gflops": flops / seconds / 1e9,
        "peer": peer or {},
    }


def limited(made: dict, peak: float) -> dict:
    """The row beside its limit, given flops a second in registers of the same run.

    limit_seconds: the larger of the times that compulsory bytes take at the bandwidth of a copy and that flops take at
    that peak, unless the row brings a limit of its own. fraction_of_limit: that time over the one measured.
    """
    own = made.get("peak_gflops_same_run", peak / 1e9)
    memory = made["bytes_compulsory"] / (1e9 * made["copy_GBs_same_run"])
    limit = made.get("limit_seconds") or max(memory, made["flops"] / (1e9 * own))
    found = {"limit_seconds": limit, "fraction_of_limit": limit / made["seconds_median"]}
    return made | {"peak_gflops_same_run": own} | found


COLUMNS = (
    "kernel",
    "cell",
    "degree",
    "Mcells",
    "ms",
    "GDOF/s",
    "GB/s",
    "GF/s",
    "of copy",
    "of limit",
    "times as fast as",
)
WIDTHS = (-38, -17, 6, 7, 9, 8, 7, 7, 7, 8, -17)


def format_rows(rows: list[dict], header: bool = True) -> str:
    """Rows as a table."""
    lines = [_line(COLUMNS)] if header else []
    for r in rows:
        limit = r.get("fraction_of_limit")
        lines.append(
            _line(
                (
                    *(r["kernel"], _cell(r), r["degree"], f"{r['cells'] / 1e6:.2f}"),
                    *(_digits(1e3 * r["seconds_median"]), _digits(r["dof_per_s"] / 1e9)),
                    *(_digits(r["bytes_compulsory"] / r["seconds_median"] / 1e9), _digits(r["gflops"])),
                    *(f"{r['fraction_of_copy']:.3f}", "" if limit is None else f"{limit:.3f}", _peers(r)),
                )
            )
        )
    return "\n".join(lines)


def _peers(r: dict) -> str:
    """How many times as fast as each peer, and by how much results differ where the row says."""
    said = [f"{name} {seconds / r['seconds_median']:.2f}" for name, seconds in r.get("peer", {}).items()]
    return ", ".join(said + ([f"difference {r['difference']:.0e}"] if "difference" in r else []))


def _digits(value: float) -> str:
    """Three digits that count, without an exponent."""
    return f"{value:.{max(0, 2 - math.floor(math.log10(value)))}f}" if value > 0 else "0"


def _cell(r: dict) -> str:
    return r["cell"] + (f" × {r['components']}" if r["components"] > 1 else "")


def _line(values) -> str:
    cells = (f"{v:<{-w}}" if w < 0 else f"{v:>{w}}" for v, w in zip(values, WIDTHS, strict=True))
    return "  " + " ".join(cells).rstrip()

"""A bench row: a kernel's time, beside what the device's memory allows."""

from __future__ import annotations


def row(*, kernel, discretization, device, cells, dofs, dof_kind, seconds, nbytes, flops, copy, peer=None) -> dict:
    """One row as plain data.

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


def format_rows(rows: list[dict], header: bool = True) -> str:
    """Rows as a table."""
    lines = []
    if header:
        lines.append(
            f"  {'kernel':<34} {'cell':<14} {'degree':>6} {'Mcells':>8} {'ms':>9} "
            f"{'GDOF/s':>8} {'of copy':>8} {'GF/s':>8}"
        )
    for r in rows:
        lines.append(
            f"  {r['kernel']:<34} {r['cell']:<14} {r['degree']:>6} {r['cells'] / 1e6:>8.2f} "
            f"{1e3 * r['seconds_median']:>9.3f} {r['dof_per_s'] / 1e9:>8.3f} "
            f"{r['fraction_of_copy']:>8.3f} {r['gflops']:>8.{0 if r['gflops'] > 100 else 2}f}"
            + (f"  {r['fraction_of_peak']:.3f} of peak" if r.get("fraction_of_peak") else "")
        )
    return "\n".join(lines)

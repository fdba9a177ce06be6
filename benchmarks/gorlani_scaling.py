"""Tables 4.19 to 4.21 of Gorlani 2015 (benchmarks/papers/gorlani_2015_times.json) beside rows of `bench scaling`.

    mpiexec -n 4 python benchmarks/bench scaling -schemes sipg_gpu -degree 8 -unknowns 1327104 21233664 -json s.json
    python benchmarks/gorlani_scaling.py s.json

An interior penalty product on squares, FP64: 128 × 128 and 512 × 512 squares of degree 8 on each GPU are 1327104 and
21233664 unknowns. Rows of other sizes and degrees stand by themselves; numbers of GPUs that were not measured are
predicted by the model of the rows, on nodes of as many GPUs as the largest run had.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from bench import scaling_view

PAPER = json.loads((Path(__file__).parent / "papers" / "gorlani_2015_times.json").read_text())
GPUS = (1, 2, 4, 8, 16, 64, 256, 1024)
STRONG = {1024: "table4_20_strong_n1024_ms", 2048: "table4_21_strong_n2048_ms"}


def main() -> None:
    """Print a table a curve of interior penalty on quadrilaterals."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="rows of bench scaling")
    parser.add_argument("-network", type=float, nargs=2, default=(5e-6, 2.5e10), help="as bench scaling takes it")
    given = parser.parse_args()
    rows = [r for r in scaling_view.rows_of(given.files) if r["kernel"] == "links" or is_ours(r)]
    predicted = {curve["group"]: curve for curve in scaling_view.predicted(rows, given.network, GPUS)}
    cases = scaling_view.compared(rows)
    for group in dict.fromkeys(scaling_view.group(r) for r in cases):
        print_curve([r for r in cases if scaling_view.group(r) == group], predicted[group])


def is_ours(row: dict) -> bool:
    """Whether a row is of the paper's operator and cells."""
    return (row["scheme"], row["cell"]) == ("sipg_gpu", "quadrilateral")


def print_curve(cases: list[dict], curve: dict) -> None:
    """Lines of one curve: ms and efficiency, ours and the paper's, for each number of GPUs that either has."""
    last = max(cases, key=lambda r: r["ranks"])
    mode, degree, ours = last["mode"], last["degree"], {r["ranks"]: r for r in cases}
    side = round(((last["cells"] / last["ranks"]) if mode == "weak" else last["cells"]) ** 0.5)
    theirs = of_paper(mode, degree, side)
    where = "on each GPU" if mode == "weak" else "in all"
    print(f"{mode}, p = {degree}, {side} × {side} squares {where}, {last['device']}")
    print("   GPUs      ms   efficiency  halo  model    paper ms  efficiency  times faster")
    model = dict(zip(curve["ranks"], curve["product"], strict=True))
    for k in sorted({*ours, *theirs, *(model if theirs else ())}):
        print(
            f"  {k:5d} {_ours(ours.get(k))} {model.get(k, float('nan')):6.3f}  {_theirs(mode, k, theirs, ours.get(k))}"
        )


def of_paper(mode: str, degree: int, side: int) -> dict[int, float]:
    """GPUs → ms in the paper, where it has this case."""
    if mode == "weak":
        found = PAPER["table4_19_weak_p8_ms"].get(str(side), {}) if degree == 8 else {}
    else:
        found = PAPER[STRONG[side]].get(str(degree), {}) if side in STRONG else {}
    return {int(gpus): ms for gpus, ms in found.items()}


def _ours(row: dict | None) -> str:
    if row is None:
        return f"{'':>8} {'':>10} {'':>6}"
    return f"{1e3 * row['product_seconds']:8.4f} {row['product_efficiency']:10.3f} {row['halo_share']:6.3f}"


def _theirs(mode: str, gpus: int, theirs: dict, row: dict | None) -> str:
    if gpus not in theirs:
        return ""
    efficiency = theirs[1] / theirs[gpus] / (gpus if mode == "strong" else 1)
    faster = f"{1e-3 * theirs[gpus] / row['product_seconds']:12.0f}" if row else ""
    return f"{theirs[gpus]:10.4f} {efficiency:11.2f} {faster}"


if __name__ == "__main__":
    main()

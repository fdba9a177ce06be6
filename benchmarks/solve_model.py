"""A model of whole solves on many GPUs, from rows of solve_ranks.py on one and on several ranks.

    python benchmarks/solve_model.py one.json two.json -ranks 2 4 8 16 64

An iteration on k ranks takes

    F(k) + C + X (e + m(k)/w) + g + 8 c (1 - 1/k)/w + s log₂ k

F     the iteration on one rank without the coarse level, over k, at least launches times seconds of a launch
C     the coarse cycle on c unknowns, whole on each rank: it does not shrink
X     exchanges; e: of one, what a product on two ranks takes beyond half of one, over its exchanges; m: bytes of one,
      which shrink with the interface
g, s  latency of a gather; a sum over two ranks
w     bytes a second between ranks

Beyond the ranks of a node exchanges and gathers take the network's latency and bandwidth (-network). Strong: the same
problem on all. Weak: as many unknowns for each rank; C and the gather then grow with the ranks, as far as each rank
has all of the coarse level. A solve has one iteration more, whose residual is the first one, and copies host
vectors. The measured row on several ranks stands beside its prediction.
"""

from __future__ import annotations

import argparse
import json
import math
import re

LIMIT = 1 << 22  # unknowns of a coarse level that each rank has whole
PRODUCTS = 6  # of the finest level in a cycle
PLANE = ("triangle", "quadrilateral")


class Model:
    """Seconds of an iteration, from a row on one rank and one on several (`several["ranks"]`) of the same case.

    given: bandwidth, launch, network, node: see `main`.
    """

    def __init__(self, one: dict, several: dict, given):
        self.given, self.iterations, self.ranks = given, several["iterations"], several["ranks"]
        self.dim = 2 if several["cell"] in PLANE else 3
        alone, counts = several["alone_seconds"], several["iteration"]
        self.coarse, self.unknowns = one["alone_seconds"]["coarse"], _coarse_unknowns(several)
        self.fine = (one["seconds_median"] - one["seconds"]["copies"]) / (one["iterations"] + 1) - self.coarse
        self.copies = one["seconds"]["copies"], several["seconds"]["copies"] * self.ranks
        self.launches = sum(of.get("launches", 0) for name, of in one["levels"].items() if name == str(one["dofs"]))
        self.exchanges, self.sum = counts["exchanges"], alone["sum"]
        gathered = 8 * self.unknowns / self.ranks * counts["gathers"]
        self.bytes = max(0.0, counts.get("bytes", gathered) - gathered) / max(1.0, self.exchanges)
        of_product = round(self.exchanges / (PRODUCTS + 1))
        beyond = alone["product"] - one["alone_seconds"]["product"] / self.ranks
        self.latency = max(0.0, beyond / of_product - self.bytes / given.bandwidth)
        share = 8 * self.unknowns * (1 - 1 / self.ranks) / given.bandwidth
        self.gather = max(0.0, alone["gather"] - share)

    def seconds(self, ranks: int, weak: bool) -> float:
        """Of a solve; `weak`: of one with as many unknowns for each rank as one had."""
        if ranks == 1:
            return self.copies[0] + (self.iterations + 1) * (self.fine + self.coarse)
        growth, (latency, bandwidth) = ranks if weak else 1, self.given.network
        far = ranks > self.given.node
        between = min(self.given.bandwidth, bandwidth) if far else self.given.bandwidth
        sent = self.bytes * (growth * self.ranks / ranks) ** ((self.dim - 1) / self.dim)
        fine = max(self.fine * growth / ranks, self.launches * self.given.launch)
        exchange = self.latency + sent / between + (latency if far else 0.0)
        hops = math.log2(max(1.0, ranks / self.given.node))
        gather = self.gather + 8 * growth * self.unknowns * (1 - 1 / ranks) / between + hops * latency
        total = fine + growth * self.coarse + self.exchanges * exchange + gather
        sums = (self.sum + (latency if far else 0.0)) * math.log2(ranks)
        return self.copies[1] * growth / ranks + (self.iterations + 1) * (total + sums)


def _coarse_unknowns(row: dict) -> int:
    """Unknowns of the level below the finest, which the view names first."""
    return int(re.findall(r"\d+", row["view"][0])[0])


def main() -> None:
    """Print measured and predicted seconds of each case that the files have on one rank and on several."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", help="rows of solve_ranks.py")
    parser.add_argument("-ranks", type=int, nargs="+", default=[2, 4, 8, 16, 64])
    parser.add_argument("-bandwidth", type=float, default=2.5e10, help="bytes a second between ranks of a node")
    parser.add_argument("-launch", type=float, default=5e-6, help="seconds of a launch")
    parser.add_argument("-network", type=float, nargs=2, default=(5e-6, 2.5e10), help="seconds and bytes a second")
    parser.add_argument("-node", type=int, default=8, help="ranks of a node")
    given, rows = parser.parse_args(), []
    for path in given.files:
        with open(path, encoding="utf-8") as file:
            rows += [row for row in json.load(file) if "levels" in row]
    for several in (row for row in rows if row["ranks"] > 1):
        alike = [row for row in rows if row["ranks"] == 1 and (row["case"], row["dofs"]) == _name(several)]
        if alike:
            _print(alike[0], several, Model(alike[0], several, given), given.ranks)


def _name(row: dict) -> tuple[str, int]:
    return row["case"], row["dofs"]


def _print(one: dict, several: dict, model: Model, ranks: list[int]) -> None:
    measured, count = several["seconds_median"], several["ranks"]
    print(f"{one['case']}, {one['dofs']} unknowns, {model.unknowns} of the coarse level, {model.iterations} iterations")
    print(f"  one rank {1e3 * one['seconds_median']:.1f} ms", end="; ")
    print(f"{count} ranks measured {1e3 * measured:.1f}, predicted {1e3 * model.seconds(count, False):.1f} ms")
    print("  ranks   strong ms   efficiency   weak ms   efficiency")
    for k in ranks:
        strong, weak, alone = model.seconds(k, False), model.seconds(k, True), model.seconds(1, False)
        fits = k * model.unknowns <= LIMIT
        grown = f"{1e3 * weak:>9.1f}   {alone / weak:>10.2f}" if fits else f"{'in parts':>9}"
        print(f"  {k:>5}   {1e3 * strong:>9.1f}   {alone / k / strong:>10.2f}   {grown}")


if __name__ == "__main__":
    main()

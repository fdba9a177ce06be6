"""A model of scaling: what a rank takes by itself, what an exchange costs, and from these times on any number of ranks.

    product(n, 1)   = a₁ + b₁ n
    product(n, k)   = a + b n + e,      e = max(e₀, h(m) - φ (a + b n)),      h(m) = l + m / w
    iteration(n, 1) = product + c₁ + f₁ n
    iteration(n, k) = product + c + f n + 2 (r(k) - r(2)),                    r(k) = r₀ + r₁ log₂ k

n unknowns of a rank, k > 1 ranks. A product on several ranks goes in parts, so that its time without a halo, a + b n,
is not that on one rank; c holds what two sums over two ranks cost with their copies. h: the halo by itself, of m bytes
of a rank, by the sides of its block; φ: the share of a product that the halo hides behind. All numbers are fitted to
rows and links of the runs given; between nodes, where nothing was measured, l and w are what the caller says.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import log2

import numpy as np

from .blocks import dimension, parts_of

SUMS = 2  # reductions of an iteration of CG
SAME = 1.05  # exposed halos within this factor of the least are that


def key(row: dict) -> tuple:
    """What rows of one model have in common."""
    return row["scheme"], row["cell"], row["degree"], row["device"]


def line(x, y) -> tuple[float, float]:
    """Nonnegative (a, b) of y = a + b x, right to about the same part everywhere; a = 0 for a single x."""
    x, y = np.asarray(x, float), np.asarray(y, float)
    if len(np.unique(x)) < 2:
        return 0.0, float(np.median(y / x))
    weight = 1 / y
    b, a = np.polyfit(x, y, 1, w=weight)
    if a < 0:
        return 0.0, float(np.sum(weight**2 * x * y) / np.sum((weight * x) ** 2))
    if b < 0:
        return float(np.median(y)), 0.0
    return float(a), float(b)


@dataclass(frozen=True)
class Links:
    """What ranks of a node pay for each other: seconds and bytes a second of a halo, seconds of a sum over k ranks."""

    latency: float = 0.0
    bandwidth: float = np.inf
    sum_first: float = 0.0
    sum_doubling: float = 0.0

    @classmethod
    def fitted(cls, rows: list[dict]) -> Links:
        """From rows of `links`; halos as on the most ranks, which share the node's memory."""
        several = [row for row in rows if row["ranks"] > 1]
        if not several:
            return cls()
        most = max(row["ranks"] for row in several)
        latency, of_byte = line(*zip(*(pair for r in several if r["ranks"] == most for pair in r["halo"]), strict=True))
        first, doubling = line([log2(r["ranks"]) for r in several], [r["allreduce_seconds"] for r in several])
        return cls(latency, 1 / max(of_byte, 1e-15), first, doubling)

    def halo(self, nbytes: float) -> float:
        """Seconds of a halo of so many bytes of a rank."""
        return self.latency + nbytes / self.bandwidth

    def total(self, ranks: int) -> float:
        """Seconds of a sum over ranks."""
        return self.sum_first + self.sum_doubling * log2(ranks)

    def more(self, row: dict) -> float:
        """Seconds that the sums of an iteration take more than those over two ranks."""
        return SUMS * (self.total(row["ranks"]) - self.total(2)) if row["ranks"] > 1 else 0.0


@dataclass(frozen=True)
class Model:
    """Fitted numbers of one scheme, cell and degree on one device; see the module."""

    dim: int
    links: Links
    product: tuple[tuple[float, float], tuple[float, float]]  # (a, b) on one rank, on several
    vectors: tuple[tuple[float, float], tuple[float, float]]  # (c, f) on one rank, on several
    surface: float  # bytes of a side over unknowns to the power of (dim - 1) / dim
    least: float  # e0
    hidden: float  # φ

    @classmethod
    def fitted(cls, rows: list[dict], links: list[dict]) -> Model:
        """From rows of one `key`, and links of the same device."""
        dim, made = dimension(rows[0]["cell"]), Links.fitted(links)
        several = [r for r in rows if r["ranks"] > 1]
        kinds = [[r for r in rows if r["ranks"] == 1] or several, several or rows]
        product = tuple(_line(kind, lambda r: r["product_seconds_without_halo"]) for kind in kinds)
        vectors = tuple(
            _line(kind, lambda r: r["iteration_seconds"] - r["product_seconds"] - made.more(r)) for kind in kinds
        )
        sides = [r["halo_bytes"] / _area(r["dofs_rank"][1], dim) / max(1, r["neighbour_blocks"]) for r in several]
        return cls(dim, made, product, vectors, float(np.median(sides or [0.0])), *_hidden(several))

    def halo_bytes(self, unknowns: float, ranks: int) -> float:
        """Bytes that the rank with most neighbours sends."""
        sides = sum(min(2, n - 1) for n in parts_of(ranks, self.dim))
        return self.surface * sides * _area(unknowns, self.dim)

    def seconds(self, unknowns: float, ranks: int, per_node: int | None = None, network=(5e-6, 2.5e10)):
        """(product, iteration) of `unknowns` a rank.

        per_node: ranks of a node (None: all); beyond one, halos and sums take the network's (seconds, bytes a second).
        """
        (a, b), (c, f) = self.product[ranks > 1], self.vectors[ranks > 1]
        alone, vectors = a + b * unknowns, c + f * unknowns
        if ranks == 1:
            return alone, alone + vectors
        nbytes, total = self.halo_bytes(unknowns, ranks), self.links.total(ranks)
        halo = self.links.halo(nbytes)
        if per_node is not None and ranks > per_node:
            halo = max(halo, self.links.latency + network[0] + nbytes / network[1])
            total = self.links.total(per_node) + network[0] * log2(ranks / per_node)
        product = alone + max(self.least, halo - self.hidden * alone)
        return product, product + vectors + SUMS * (total - self.links.total(2))

    def efficiency(self, mode: str, unknowns: float, ranks: int, **where) -> tuple[float, float]:
        """Of (product, iteration) on `ranks`, `unknowns` a rank there, beside one rank; strong: beside all on one."""
        several = self.seconds(unknowns, ranks, **where)
        if mode == "weak":
            return tuple(a / b for a, b in zip(self.seconds(unknowns, 1), several, strict=True))
        return tuple(a / (ranks * b) for a, b in zip(self.seconds(unknowns * ranks, 1), several, strict=True))


def models(rows: list[dict]) -> dict[tuple, Model]:
    """A model for each key among rows of both kinds."""
    cases, links = split(rows)
    keys = dict.fromkeys(key(r) for r in cases)
    return {
        k: Model.fitted([r for r in cases if key(r) == k], [r for r in links if r["device"] == k[-1]]) for k in keys
    }


def split(rows: list[dict]) -> tuple[list[dict], list[dict]]:
    """Rows of cases, rows of links."""
    return [r for r in rows if r["kernel"] == "scaling"], [r for r in rows if r["kernel"] == "links"]


def checked(rows: list[dict]) -> list[dict]:
    """Predictions for the cases of most ranks by models of those of fewer, beside what was measured."""
    cases, links = split(rows)
    found = []
    for k in dict.fromkeys(key(r) for r in cases):
        mine = [r for r in cases if key(r) == k]
        most = max(r["ranks"] for r in mine)
        fewer = [r for r in mine if r["ranks"] < most]
        known = [r for r in links if r["device"] == k[-1] and r["ranks"] < most]
        if most < 3 or not any(r["ranks"] > 1 for r in fewer):
            continue
        model = Model.fitted(fewer, known)
        for r in (r for r in mine if r["ranks"] == most):
            product, iteration = model.seconds(r["dofs_rank"][1], most)
            found.append(
                {name: r[name] for name in ("scheme", "cell", "degree", "mode", "asked", "ranks")}
                | {"product": (product, r["product_seconds"]), "iteration": (iteration, r["iteration_seconds"])}
            )
    return found


def _line(rows: list[dict], seconds) -> tuple[float, float]:
    """(a, b) of what `seconds` says of each row, over the unknowns of a rank."""
    return line([r["dofs_rank"][1] for r in rows], [max(seconds(r), 1e-7) for r in rows])


def _area(unknowns: float, dim: int) -> float:
    return float(unknowns) ** ((dim - 1) / dim)


def _hidden(rows: list[dict]) -> tuple[float, float]:
    """(e0, φ): the least halo that is not hidden, and the share of a product that the rest hides behind."""
    if not rows:
        return 0.0, 1.0
    exposed = np.array([exposed_seconds(r) for r in rows])
    least = float(exposed.min())
    more = exposed > max(SAME * least, 1e-7)
    halo = np.array([r["halo_seconds_alone"] for r in rows])
    alone = np.array([r["product_seconds_without_halo"] for r in rows])
    if not more.any():
        return least, 1.0
    return least, float(np.clip(np.median(((halo - exposed) / alone)[more]), 0, 1))


def exposed_seconds(row: dict) -> float:
    """What the halo adds to a product."""
    return max(0.0, row["product_seconds"] - row["product_seconds_without_halo"])

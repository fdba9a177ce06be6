"""Names of boundaries and of cell regions, read from DMPlex labels.

A name is accepted if it is
* a DMPlex label ("wall"): its points of any value; Gmsh's physical names are such labels;
* a label and a value ("Face Sets:3").
"""

from __future__ import annotations

from copy import copy

import numpy as np
from petsc4py import PETSc

from ..errors import MeshError, collectively
from ..value_checks import shown

EXTERIOR = "boundary"  # the name of all exterior facets, in every mesh
INTERNAL = {"celltype", "depth", "dim", "pointSF"}


class Labels:
    """Label look-up on a DMPlex, agreed by all ranks. Making it is collective, and so is `points`."""

    def __init__(self, dm, comm, exchange):
        self.dm, self.comm, self.exchange = copy(dm), comm, exchange  # a reference, which outlives the owner's
        self.chart = dm.getChart()
        dim = dm.getDimension()
        self._stratum = {0: dm.getDepthStratum(dim), 1: dm.getDepthStratum(dim - 1)}
        names = set(map(dm.getLabelName, range(dm.getNumLabels()))) - INTERNAL
        self._known = self._agree({name: dm.getLabelIdIS(name).getIndices().tolist() for name in names})
        self._names = {height: self._having(height) for height in (0, 1)}

    def _agree(self, local: dict[str, list[int]]) -> dict[str, tuple[int, ...]]:
        """All label names of all ranks with all their values, in the same order everywhere."""
        merged: dict[str, set[int]] = {}
        for found in self.comm.allgather(local):
            for name, values in found.items():
                merged.setdefault(name, set()).update(values)
        return {name: tuple(sorted(merged[name])) for name in sorted(merged)}

    def _having(self, height: int) -> dict[str, list[tuple[str, int]]]:
        """(label, value) pairs that mark points of this height on some rank, by the names that stand for them."""
        pairs = [(label, value) for label, values in self._known.items() for value in values]
        start, end = self._stratum[height]
        counts = np.zeros(len(pairs), np.int64)
        for i, (label, value) in enumerate(pairs):
            points = stratum_points(self.dm, label, value)
            counts[i] = np.count_nonzero((points >= start) & (points < end))
        total = self.comm.allreduce(counts)
        names: dict[str, list[tuple[str, int]]] = {}
        for (label, value), count in zip(pairs, total, strict=True):
            if count:
                names.setdefault(label, []).append((label, value))
                names[f"{label}:{value}"] = [(label, value)]
        return names

    @property
    def boundaries(self) -> tuple[str, ...]:
        """Names of boundaries for people, "boundary" (all exterior facets) among them."""
        return tuple(sorted({*_spoken(self._names[1]), EXTERIOR}))

    @property
    def regions(self) -> tuple[str, ...]:
        """Names of cell regions for people."""
        return tuple(sorted(_spoken(self._names[0])))

    def has(self, name: str, height: int) -> bool:
        """Return True if points of this height (0 cells, 1 facets) carry the name, on any rank."""
        return name in self._names[height]

    def resolve(self, name: str, height: int, remedy: str = "") -> list[tuple[str, int]]:
        """(label, value) pairs that `name` stands for. Raises MeshError that lists the known names; remedy: words for
        the name of a boundary in the place of a region's, or the other way round."""
        what, other = ("boundary", "cell region") if height else ("cell region", "boundary")
        if not isinstance(name, str):
            raise MeshError(f"A {what} is given by its name, not by {shown(name)}: take them one by one.")
        if self.has(name, height):
            return self._names[height][name]
        hint = f" ('{name}' is a {other}{remedy})" if self.has(name, 1 - height) else ""
        listed = ", ".join(f"'{known}'" for known in (self.boundaries if height else self.regions)) or "none"
        raise MeshError(f"The mesh has no {what} called '{name}'{hint}; known here: {listed}.")

    def points(self, name: str, height: int) -> np.ndarray:
        """Points of a height (0 cells, 1 facets) with the name [point] bool. Collective. Raises MeshError."""
        mask = np.zeros(self.chart[1] - self.chart[0], bool)
        for label, value in self.resolve(name, height):
            mask[stratum_points(self.dm, label, value) - self.chart[0]] = True
        start, end = self._stratum[height]
        return self.exchange.any(mask)[start - self.chart[0] : end - self.chart[0]]


def require_exterior(name: str, inside: int, comm) -> None:
    """Raise MeshError for the name of an interface where its two sides would have to be told apart.

    inside: how many facets inside the mesh have the name on this rank. Collective.
    """
    total = comm.allreduce(inside)
    with collectively(comm):
        if total:
            raise MeshError(
                f"The boundary '{name}' holds facets inside the mesh; natural conditions, fluxes and integrals are "
                "those of exterior facets: give side=, the region whose cells see the facets, give these a name of "
                "their own, or cut the mesh there (without side= conditions inside are those whose f0 or g reads "
                "neither n, u_t, gradients nor auxiliary fields, and no f1)."
            )


def require_one_side(name: str, side: str, seen: np.ndarray, counts: np.ndarray, comm) -> None:
    """Raise MeshError for a region that does not tell apart the two sides of each facet of a name. Collective.

    seen, counts: how many cells of the region, and of the mesh, this rank's facets of that name have [facet].
    """
    both, without, some = (comm.allreduce(int(m.sum())) for m in (seen > 1, (seen == 0) & (counts > 1), seen > 0))
    with collectively(comm):
        if both:
            raise MeshError(
                f"The region '{side}' holds both cells of some facets of '{name}'; side= takes a region that lies on "
                "one side of the facets: give a smaller one."
            )
        if without or not some:
            where = "of some facets inside the mesh" if some else "of the facets"
            raise MeshError(
                f"The region '{side}' holds no cell {where} of '{name}'; side= takes a region with a cell of each of "
                "them: give another one, or these facets a name of their own."
            )


def _spoken(names: dict[str, list[tuple[str, int]]]) -> list[str]:
    """Names worth listing: labels, but PETSc's numbered sets ("Face Sets:3") only where nothing else has a name."""
    labels = [name for name, pairs in names.items() if name == pairs[0][0] and not name.endswith(" Sets")]
    return labels or [name for name, pairs in names.items() if name != pairs[0][0]]


def stratum_points(dm, name: str, value: int) -> np.ndarray:
    """Plex points of one value of a label on this rank."""
    if not dm.hasLabel(name) or dm.getStratumSize(name, value) == 0:
        return np.empty(0, np.int32)
    return dm.getStratumIS(name, value).getIndices()


def mark(dm, name: str, points: np.ndarray, value: int = 1) -> None:
    """Add points [n] to a value of a label, which is made if need be."""
    dm.createLabel(name)
    if len(points):
        merged = np.union1d(stratum_points(dm, name, value), points).astype(PETSc.IntType)
        dm.getLabel(name).setStratumIS(value, PETSc.IS().createGeneral(merged, comm=PETSc.COMM_SELF))

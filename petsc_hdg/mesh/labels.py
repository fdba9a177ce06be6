"""Names of boundaries and of cell regions, read from DMPlex labels.

A name is accepted if it is
* a DMPlex label ("wall"): its points of any value; Gmsh's physical names are such labels;
* a label and a value ("Face Sets:3").
"""

from __future__ import annotations

import numpy as np

from ..errors import MeshError

_INTERNAL = {"celltype", "depth", "dim", "pointSF"}


class Labels:
    """Label look-up on a DMPlex. Making it is collective, and so is `points`.

    `stratum[h]`-wise masks are bool arrays [point of the stratum], agreed by all ranks that hold a point.
    """

    def __init__(self, dm, comm, exchange):
        self.dm, self.comm, self.exchange = dm, comm, exchange
        self.chart = dm.getChart()
        dim = dm.getDimension()
        self._stratum = {0: dm.getDepthStratum(dim), 1: dm.getDepthStratum(dim - 1)}
        local = {}
        for i in range(dm.getNumLabels()):
            name = dm.getLabelName(i)
            if name not in _INTERNAL:
                local[name] = [int(v) for v in values_of(dm, name)]
        self._known = self._agree(local)
        self.boundaries = self._having(1)
        self.regions = self._having(0)

    def _agree(self, local: dict[str, list[int]]) -> dict[str, tuple[int, ...]]:
        """All label names of all ranks with all their values, in the same order everywhere."""
        merged: dict[str, set[int]] = {}
        for found in self.comm.allgather(local):
            for name, values in found.items():
                merged.setdefault(name, set()).update(values)
        return {name: tuple(sorted(merged[name])) for name in sorted(merged)}

    def _having(self, height: int) -> tuple[str, ...]:
        """Names (label, and label:value if it has several) that mark points of this height on some rank."""
        names, counts = [], []
        start, end = self._stratum[height]
        for name, values in self._known.items():
            sizes = []
            for value in values:
                points = stratum_points(self.dm, name, value)
                sizes.append(int(np.count_nonzero((points >= start) & (points < end))))
            names.append(name)
            counts.append(sum(sizes))
            if len(values) > 1 or name.endswith(" Sets"):
                names += [f"{name}:{value}" for value in values]
                counts += sizes
        totals = np.array(counts, np.int64)
        self.comm.Allreduce(totals.copy(), totals)
        return tuple(name for name, total in zip(names, totals, strict=True) if total)

    def resolve(self, name: str, height: int) -> list[tuple[str, int]]:
        """(label, value) pairs that `name` stands for. Raises MeshError that lists the known names."""
        known = self.boundaries if height else self.regions
        what = "boundary" if height else "cell region"
        if name in known and name in self._known:
            return [(name, value) for value in self._known[name]]
        label, _, value = name.rpartition(":")
        if name in known:
            return [(label, int(value))]
        other = self.regions if height else self.boundaries
        hint = f" ('{name}' is a {'cell region' if height else 'boundary'})" if name in other else ""
        listed = ", ".join(f"'{n}'" for n in known) or "none"
        raise MeshError(f"The mesh has no {what} called '{name}'{hint}; known here: {listed}.")

    def points(self, name: str, height: int) -> np.ndarray:
        """Points of a height (0 cells, 1 facets) that carry the name [point of the stratum] bool. Collective. Raises MeshError."""
        mask = np.zeros(self.chart[1] - self.chart[0], bool)
        for label, value in self.resolve(name, height):
            mask[stratum_points(self.dm, label, value) - self.chart[0]] = True
        start, end = self._stratum[height]
        return self.exchange.any(mask)[start - self.chart[0] : end - self.chart[0]]


def values_of(dm, name: str) -> np.ndarray:
    """Values of a label on this rank."""
    if not dm.hasLabel(name):
        return np.empty(0, np.int32)
    return dm.getLabelIdIS(name).getIndices()


def stratum_points(dm, name: str, value: int) -> np.ndarray:
    """Plex points of one value of a label on this rank."""
    if not dm.hasLabel(name) or dm.getStratumSize(name, value) == 0:
        return np.empty(0, np.int32)
    return dm.getStratumIS(name, value).getIndices()


def mark(dm, name: str, points: np.ndarray, value: int = 1) -> None:
    """Add points [n] to a value of a label, which is made if need be."""
    from petsc4py import PETSc

    dm.createLabel(name)
    if len(points):
        present = stratum_points(dm, name, value)
        merged = np.union1d(present, points).astype(PETSc.IntType)
        dm.getLabel(name).setStratumIS(value, PETSc.IS().createGeneral(merged, comm=PETSc.COMM_SELF))

"""Unknowns of a space-time slab: temporal functions of each spatial unknown, polytope by polytope."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.polynomial import legendre
from petsc4py import PETSc

from ..errors import OptionError, collectively


@dataclass(frozen=True)
class SlabTables:
    """Temporal functions at the times of a slab of one length; times are counted from its begin.

    times, weights [point]         Gauss rule on each interval between starts of local steps
    starts         [start]         starts of local steps, 0 first
    value, rate    [point, kind, column]  functions and their derivatives at the points
    after, jump    [start, kind, column]  functions behind the starts, and their jumps there, those across 0 without
                                          the slab before; a jump is 0 where no step of the kind begins
    end            [kind, column]  functions at the end of the slab
    """

    times: np.ndarray
    weights: np.ndarray
    starts: np.ndarray
    value: np.ndarray
    rate: np.ndarray
    after: np.ndarray
    jump: np.ndarray
    end: np.ndarray


class TimeBasis:
    """Polynomials of degree `degree` on each of `steps[kind]` equal parts of a slab, orthonormal in L2 of the slab.

    A column is a function: part by part, ascending degree in each. Sums over time are taken by `points` Gauss points
    on each interval of the common refinement of all kinds, so that facets between different kinds are integrated
    exactly as far as the rule is exact (degree 2 points - 1).
    """

    def __init__(self, degree: int, steps, points: int):
        self.degree, self.steps, self.points = degree, tuple(int(m) for m in steps), points
        self.size = degree + 1
        self.columns = max(self.steps) * self.size
        self.breaks = sorted({Fraction(j, m) for m in self.steps for j in range(m + 1)})

    def at(self, place: float, length: float) -> np.ndarray:
        """Functions [kind, column] at `place` in [0, 1] of a slab; where two parts meet, those of the first."""
        part = [min(max(int(np.ceil(place * m - 1e-12)) - 1, 0), m - 1) for m in self.steps]
        return self._rows([place], [part], length)[0][0]

    def tables(self, length: float) -> SlabTables:
        """All tables of slabs of one length."""
        points, weights = legendre.leggauss(self.points)
        places, parts, rule = [], [], []
        for begin, end in zip(self.breaks[:-1], self.breaks[1:], strict=True):
            inside = self._parts((begin + end) / 2)
            for x, w in zip(points, weights, strict=True):
                places.append(float(begin) + float(end - begin) * (1 + x) / 2)
                parts.append(inside)
                rule.append(w / 2 * float(end - begin) * length)
        value, rate = self._rows(places, parts, length)
        starts = self.breaks[:-1]
        after = self._rows([float(b) for b in starts], [self._parts(b) for b in starts], length)[0]
        begins = np.array([[(b * m).denominator == 1 for m in self.steps] for b in starts])
        before = self._rows([float(b) for b in starts], [self._parts(b, -1) for b in starts], length)[0]
        before[0] = 0
        return SlabTables(
            times=np.array(places) * length,
            weights=np.array(rule),
            starts=np.array([float(b) for b in starts]) * length,
            value=value,
            rate=rate,
            after=after,
            jump=(after - before) * begins[:, :, None],
            end=self.at(1.0, length),
        )

    def _parts(self, place: Fraction, shift: int = 0) -> list[int]:
        """Part of each kind that holds a place, or begins there; shift: so many parts earlier."""
        return [max(int(place * m) + shift, 0) for m in self.steps]

    def _rows(self, places, parts, length: float) -> tuple[np.ndarray, np.ndarray]:
        """Functions and their derivatives [place, kind, column], each kind in its part [place, kind]."""
        value = np.zeros((len(places), len(self.steps), self.columns))
        rate = np.zeros_like(value)
        powers = np.arange(self.size)
        for row, (place, inside) in enumerate(zip(places, parts, strict=True)):
            for kind, (m, part) in enumerate(zip(self.steps, inside, strict=True)):
                xi, factor = 2 * (place * m - part) - 1, np.sqrt((2 * powers + 1) * m / length)
                where = slice(part * self.size, (part + 1) * self.size)
                value[row, kind, where] = factor * legendre.legvander(xi, self.degree).ravel()
                slopes = [legendre.legval(xi, legendre.legder(np.eye(self.size)[k])) for k in powers]
                rate[row, kind, where] = factor * np.array(slopes) * 2 * m / length
        return value, rate


class SlabSpace:
    """Space-time functions on a slab (Dong, Georgoulis and Kappas 2021, section 2.3). Making one is collective.

    The temporal functions of a spatial unknown stand together, so those of a polytope do, in the order of the spatial
    unknowns. Space `tensor` (P_{p,q}): all functions of TimeBasis for each; `total` (P_p, with q = p): a function of
    the polytope of degree s goes with degrees in time up to p - s, p that of the polytope, and up to q.

    basis  TimeBasis
    kind   [owned] which of the basis' local steps a spatial unknown has;  most [owned] its highest degree in time
    start  [owned + 1] place of its first unknown on this rank
    """

    def __init__(self, disc, degree: int, space: str, local_steps=None, points: int | None = None):
        self.disc, self.space, comm = disc, space, disc.mesh.comm
        with collectively(comm):
            steps = _steps(disc, local_steps)
            self._check(space)
        present = sorted(set().union(*comm.allgather(set(np.unique(steps).tolist())))) or [1]
        self.basis = TimeBasis(degree, present, degree + 1 if points is None else points)
        self.kind = np.searchsorted(present, steps).astype(np.int32)
        room = _room(disc) if space == "total" else degree
        self.most = np.minimum(np.full(len(steps), degree), room).astype(np.int32)
        self.start = np.concatenate([[0], np.cumsum(np.array(present)[self.kind] * (self.most + 1))]).astype(np.int64)

    def _check(self, space: str) -> None:
        if space == "total" and not self.disc.is_polytopic:
            raise OptionError(
                f"space-time polynomials of total degree need poly_gpu, whose functions stand by degree, and the "
                f"scheme is {self.disc.name}; give -{self.disc.options.prefix}poly_time_space tensor, or poly_gpu"
            )

    @property
    def num_owned(self) -> int:
        """Space-time unknowns of this rank."""
        return int(self.start[-1])

    @property
    def shape(self) -> np.ndarray:
        """Number [owned] that tells unknowns with different temporal functions apart."""
        return self.kind * self.basis.size + self.most

    def columns(self, shape: int) -> np.ndarray:
        """Columns of the basis that are the functions of an unknown of a shape."""
        kind, most = divmod(int(shape), self.basis.size)
        parts = np.arange(self.basis.steps[kind])[:, None] * self.basis.size
        return (parts + np.arange(most + 1)).ravel()

    def places(self, numbers: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """PETSc's first space-time number and the shape [item] of spatial unknowns with PETSc's numbers [item].

        Negative numbers give -1 and shape 0. Collective.
        """
        comm, count = self.disc.mesh.dm.comm, len(self.kind)
        before = self.disc.mesh.comm.exscan(self.num_owned) or 0
        wanted = np.unique(numbers[numbers >= 0])
        found = [self._fetch(row, count, wanted, comm) for row in (before + self.start[:-1], self.shape)]
        at = np.searchsorted(wanted, numbers)
        at[numbers < 0] = 0
        if not len(wanted):
            return np.full(len(numbers), -1), np.zeros(len(numbers), np.int64)
        return np.where(numbers < 0, -1, found[0][at]), np.where(numbers < 0, 0, found[1][at])

    @staticmethod
    def _fetch(values: np.ndarray, count: int, wanted: np.ndarray, comm) -> np.ndarray:
        """Values of PETSc's numbers `wanted`, given those [owned] of each rank. Collective."""
        source = PETSc.Vec().createMPI((count, PETSc.DETERMINE), comm=comm)
        source.setArray(values.astype(float))
        target = PETSc.Vec().createSeq(len(wanted))
        which = PETSc.IS().createGeneral(wanted.astype(PETSc.IntType), comm=PETSc.COMM_SELF)
        scatter = PETSc.Scatter().create(source, which, target, None)
        scatter.scatter(source, target)
        found = target.getArray().astype(np.int64)
        for thing in (scatter, which, source, target):
            thing.destroy()
        return found


def _steps(disc, local_steps) -> np.ndarray:
    """Local steps [owned] of each spatial unknown. Raises OptionError."""
    count = disc.dofmap.num_owned
    if local_steps is None:
        return np.ones(count, np.int64)
    if not disc.is_polytopic:
        raise OptionError(
            f"local time steps are those of polytopes, and the scheme is {disc.name}; give -fe_backend poly_gpu, in "
            "which each cell is a polytope if nobody makes larger ones"
        )
    polytopes = disc.polytopes.count
    given = np.asarray(local_steps)
    if given.ndim == 0:
        given = np.full(polytopes, given)
    if given.shape != (polytopes,) or given.dtype.kind not in "iu" or (given < 1).any():
        raise OptionError(
            f"local steps were given as an array of shape {given.shape} and type {given.dtype}; give one integer of at "
            f"least 1 for each polytope of this rank, which has {polytopes}"
        )
    return np.repeat(given.astype(np.int64), _unknowns(disc))


def _room(disc) -> np.ndarray:
    """Degree [owned] of an unknown's polytope less that of its function."""
    size = disc.exponents.sum(axis=1) if disc.space == "total" else disc.exponents.max(axis=1, initial=0)
    count, unknowns = disc.polytopes.count, _unknowns(disc)
    numbers = disc.numbering.sizes[:count]
    inside = np.arange(unknowns.sum()) - np.repeat(np.cumsum(unknowns) - unknowns, unknowns)
    return np.repeat(disc.degrees, unknowns) - size[inside % np.repeat(numbers, unknowns)]


def _unknowns(disc) -> np.ndarray:
    """Spatial unknowns [polytope]."""
    return np.diff(disc.numbering.first)[: disc.polytopes.count]

"""Kernel specs of polytopic matrices: sizes of teams and their tiles, macros, tables; laps of work-groups."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..codegen import KernelSpec
from .large_tables import CONSTANT_BYTES, place_tables
from .legendre import num_basis

MOST_PANEL = 64  # rows of a block that a team does at once
MOST_UNROLLED = 64  # functions whose degrees are numbers in the program
GPU_GROUP = 128  # work-items of a work-group
GPU_LOCAL = 32 * 1024  # bytes of local memory of a work-group
CPU_GROUP, CPU_POINTS = 16, 8
MOST_TILE = {"volume": 6, "facets": 5}


@dataclass(frozen=True)
class TeamShape:
    """side × side work-items of tile × tile sums do panels of a block; `points` at a time, `teams` in a work-group."""

    tile: int
    side: int
    panels: int
    points: int
    teams: int

    @property
    def local_size(self) -> int:
        return self.teams * self.side**2

    def local_bytes(self, slots: int, arrays: int, real_bytes: int) -> int:
        """Local memory of a work-group."""
        return self.teams * arrays * self.side * self.tile * (slots * self.points | 1) * real_bytes


def tiling(rows: int, most: int) -> tuple[int, int, int]:
    """tile, side, panels for blocks of so many rows: least padding, then the largest tile."""
    panels = -(-rows // MOST_PANEL)
    panel = -(-rows // panels)
    if panel <= most:
        return panel, 1, panels
    tile = min(range(min(3, most), most + 1), key=lambda t: (-(-panel // t) * t - panel, -t))
    return tile, -(-panel // tile), panels


def team_shape(rows: int, slots: int, arrays: int, most_tile: int, real_bytes: int, limits) -> TeamShape:
    """Shape for blocks of so many rows; arrays of [panel, slots * points] stand in local memory."""
    tile, side, panels = tiling(rows, most_tile)
    group = GPU_GROUP if limits.is_gpu else CPU_GROUP
    most = min(limits.local_bytes, GPU_LOCAL) if limits.is_gpu else limits.local_bytes
    group = min(group, limits.max_work_group)
    points = max(2, min(side**2, 64)) if limits.is_gpu else CPU_POINTS
    shape = TeamShape(tile, side, panels, points, max(1, group // side**2))
    while shape.local_bytes(slots, arrays, real_bytes) > most and (shape.teams > 1 or shape.points > 1):
        fewer = shape.teams > 1 and shape.local_size > 32
        if fewer or shape.points == 1:
            shape = TeamShape(tile, side, panels, shape.points, shape.teams - 1)
        else:
            shape = TeamShape(tile, side, panels, shape.points - 1, shape.teams)
    return shape


class MatrixSpecs:
    """Specs of `poly_volume` and `poly_facets` of a PolytopicDG for one degree; of its physics' terms."""

    def __init__(self, disc):
        self.disc, self.fine = disc, disc.fine
        self.pairs = dependences(disc.physics)

    @property
    def volume_slots(self) -> int:
        """Products of a point: one with functions, dim with gradients, as the physics has them."""
        return int(self._tests_value) + self.disc.dim * int(self._tests_gradient)

    @property
    def facet_slots(self) -> int:
        """Products of a point of a facet: see poly_matrix_facets.cl."""
        if not self.disc.physics.is_linear:
            return 1 + self.disc.dim
        return 1 + int(self.fine.theta != 0 and ("f1", "u_x") in self.pairs)

    @property
    def _tests_gradient(self) -> bool:
        return any(test == "f1" for test, _ in self.pairs)

    @property
    def _tests_value(self) -> bool:
        return not self._tests_gradient or any(test == "f0" for test, _ in self.pairs)

    @property
    def _trial_gradient(self) -> bool:
        return any(trial == "u_x" for _, trial in self.pairs)

    @property
    def _trial_value(self) -> bool:
        return not self._trial_gradient or any(trial == "u" for _, trial in self.pairs)

    def volume(self, degree: int, atomic: bool = False) -> KernelSpec:
        """Spec of `poly_volume` for polytopes of a degree."""
        fine, flags = self.fine, {"TEST_VALUE": self._tests_value, "TRIAL_VALUE": self._trial_value}
        macros = {**fine._macros(), "NQ": fine.quadrature.num_points, **{k: int(v) for k, v in flags.items()}}
        sources = fine._sources("poly_basis.clh")
        sources = (*sources, "poly_matrix.clh", "poly_matrix_volume.cl")
        tables = fine._cell_tables(fine.quadrature)
        return self._spec("volume", sources, macros, tables, degree, self.volume_slots, atomic)

    def facets(self, degree: int, atomic: bool = False) -> KernelSpec:
        """Spec of `poly_facets` for polytopes none of whose neighbours, nor themselves, have a higher degree."""
        fine = self.fine
        macros = {**fine._macros(), **fine.flux_macros}
        headers = ("sipg_facet.clh", "poly_basis.clh", "poly_matrix.clh")
        sources = fine._flux_sources(*headers, "poly_matrix_facets.cl")
        return self._spec("facets", sources, macros, fine._plain_tables, degree, self.facet_slots, atomic)

    def _spec(self, part: str, sources, macros, tables, degree: int, slots: int, atomic: bool) -> KernelSpec:
        disc, fine, gpu = self.disc, self.fine, self.fine.limits.is_gpu
        rows = num_basis(disc.dim, degree, disc.space)
        arrays = 2 if part == "volume" else 3
        shape = team_shape(rows, slots, arrays, MOST_TILE[part], fine.real_bytes, fine.limits)
        # Work-items are at different points, and a constant cache serves different entries one by one.
        tables, placed = place_tables(tables, fine.real_bytes, 0 if gpu else CONSTANT_BYTES)
        name = f"poly_{part}"
        fine.global_tables[name] = placed.values
        macros = {
            **macros,
            **placed.macros,
            **disc.basis_macros(),
            "DEGREE": degree,
            "ROWS": rows,
            "TILE": shape.tile,
            "SIDE": shape.side,
            "PANELS": shape.panels,
            "TEAMS": shape.teams,
            "POINTS": shape.points,
            "SLOTS": slots,
            "GROUP": shape.local_size,
            "TRIAL_GRADIENT": int(self._trial_gradient),
            "ATOMIC": int(atomic),
            "UNROLL": '_Pragma("unroll")' if gpu and rows <= MOST_UNROLLED else "",
        }
        tables = {**tables, **disc.basis_tables()}
        size = shape.local_bytes(slots, arrays, fine.real_bytes)
        text, precision = fine.physics_text, disc.options.precision
        return KernelSpec(name, sources, macros, tables, text, precision, shape.local_size, size)


def dependences(physics) -> set[tuple[str, str]]:
    """(f0 or f1, u or u_x): which function may depend on what; a rate counts as the value."""
    hand = {"g0": ("f0", "u"), "g1": ("f0", "u_x"), "g2": ("f1", "u"), "g3": ("f1", "u_x")}
    found = set()
    for term in physics.terms.jacobian or physics.terms.residual:
        if term.kind in hand:
            found.add(hand[term.kind])
            continue
        inputs = term.program.inputs
        found |= {(term.kind, "u")} if inputs & {"u", "u_t"} else set()
        found |= {(term.kind, "u_x")} if "u_x" in inputs else set()
    return found


def bundles(spec: KernelSpec, laps: np.ndarray) -> np.ndarray:
    """Laps of each work-group, from those of its items [item]."""
    teams = spec.macros["TEAMS"]
    padded = np.zeros(-(-len(laps) // teams) * teams, np.int32)
    padded[: len(laps)] = laps
    return padded.reshape(-1, teams).max(axis=1)


def volume_laps(spec: KernelSpec, rows: np.ndarray) -> np.ndarray:
    """Laps [item] over the points of base cells."""
    return -(-(rows[:, 2] - rows[:, 1]) * spec.macros["NQ"] // spec.macros["POINTS"])


def facet_laps(spec: KernelSpec, rows: np.ndarray, interfaces: np.ndarray) -> np.ndarray:
    """Laps [item] over the points of facets, interface by interface."""
    each = -(-(interfaces[:, 2] - interfaces[:, 1]) * spec.macros["NQF"] // spec.macros["POINTS"])
    total = np.concatenate([[0], np.cumsum(each)])
    return total[rows[:, 2]] - total[rows[:, 1]]


def work_items(spec: KernelSpec, num_items: int, components: int) -> int:
    """Work-items of a launch."""
    groups = -(-num_items // spec.macros["TEAMS"]) * (components * spec.macros["PANELS"]) ** 2
    return groups * spec.local_size

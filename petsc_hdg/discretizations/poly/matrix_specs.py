"""Kernel specs of polytopic matrices: macros, tables, laps of work-groups."""

from __future__ import annotations

import numpy as np

from ...codegen import KernelSpec, Launch
from ...codegen.preamble import CONSTANT_BYTES
from ..symmetry import read_by_text
from .legendre import num_basis
from .scheme import FACETS, FACETS_BY_STEPS, VOLUME
from .team_shape import FEWEST_WARPS, TARGET, MmaShape, mma_shape, split_of, team_shape

EMULATED = False  # whether devices without tensor cores do as if they had them: for tests


class MatrixSpecs:
    """Specs of `poly_volume` and `poly_facets` of a PolytopicDG for one degree; of its physics' terms.

    volume_slots: products of a point, one with functions, dim with gradients, as the physics has them.
    """

    def __init__(self, disc):
        self.disc, self.fine = disc, disc.fine
        self.pairs = read_by_text(disc.physics)
        tested, read = {test for test, _ in self.pairs}, {trial for _, trial in self.pairs}
        self._tests_value = "f0" in tested or "f1" not in tested
        self._trial_gradient = "u_x" in read or any("u_x" in c.term.program.inputs for c in disc.physics.natural)
        self._trial_value = "u" in read or not self._trial_gradient
        self.volume_slots = int(self._tests_value) + disc.dim * int("f1" in tested)

    @property
    def facet_slots(self) -> int:
        """Products of a point of a facet: see poly_matrix_facets.cl."""
        if self._facet_macros["STATE"]:
            return 1 + self.disc.dim
        return 1 + int(self.fine.theta != 0 and ("f1", "u_x") in self.pairs)

    @property
    def _facet_macros(self) -> dict[str, int]:
        """Sizes of fluxes. Those of f1 on boundaries by gradients, and of conditions between cells, need what a physics
        that is not linear needs."""
        sizes = self.fine.flux_macros
        return {**sizes, "STATE": int(sizes["STATE"] or sizes["WALLS"] or self.disc.physics.has_boundary_f1)}

    def volume(self, degree: int, load: tuple[int, float] = (0, 0.0)) -> KernelSpec:
        """Spec of `poly_volume` for polytopes of a degree; load: how many items, and base cells of each."""
        fine, points = self.fine, self.fine.quadrature.num_points
        flags = {"TEST_VALUE": self._tests_value, "TRIAL_VALUE": self._trial_value}
        flags |= {f"{f}_{by}".upper(): (f, by) in self.pairs for f in ("f0", "f1") for by in ("u", "u_x")}
        macros = fine._macros() | {k: int(v) for k, v in flags.items()}
        macros |= {"NQ": points, "STATE": fine.flux_macros["STATE"]}
        sources = fine._sources("poly_items.clh", "poly_basis.clh", "poly_volume_state.clh", "poly_volume_point.clh")
        tables, load = fine._cell_tables(fine.quadrature), (load[0], load[1] * points)
        return self._spec("volume", sources, macros, tables, degree, self.volume_slots, load)

    def facets(self, degree: int, load: tuple[int, float] = (0, 0.0)) -> KernelSpec:
        """Spec of `poly_facets` for polytopes none of whose neighbours, nor themselves, have a higher degree; load: how
        many items, and interfaces of each."""
        fine, headers = self.fine, "sipg_facet poly_items poly_basis poly_facet_sides poly_facet_point".split()
        macros = {**fine._macros(), **self._facet_macros}
        sources, load = fine._flux_sources(*(f"{name}.clh" for name in headers)), (load[0], load[1] * 1e9)
        return self._spec("facets", sources, macros, fine._plain_tables, degree, self.facet_slots, load)

    def _spec(self, part: str, sources, macros, tables, degree: int, slots: int, load) -> KernelSpec:
        disc, fine, gpu = self.disc, self.fine, self.fine.limits.is_gpu
        rows = num_basis(disc.dim, degree, disc.space)
        warps = self._warps(part, degree, rows, slots, load[0])
        shape = warps or team_shape(part, rows, slots, fine.real_bytes, fine.limits)
        if gpu and not warps:
            shape = shape.with_split(split_of(shape, *load))
        products = ("mma.clh", "poly_mma.clh") if warps else ("poly_matrix.clh",)
        sources = (*sources, *products, f"{products[-1][:-4]}_{part}.cl")
        # Work-items are at different points, and a constant cache serves different entries one by one.
        most = 0 if gpu else CONSTANT_BYTES
        macros = {
            **macros,
            **disc.basis_macros(),
            **fine.limits.macros,
            **shape.macros,
            "DEGREE": degree,
            "ROWS": rows,
            "SLOTS": slots,
            "TRIAL_GRADIENT": int(self._trial_gradient),
            "UNROLL": disc.unroll(rows),
        }
        arguments = VOLUME if part == "volume" else FACETS_BY_STEPS if warps else FACETS
        panels = macros["NC"] * shape.macros["PANELS"]
        how = {"launch": Launch(shape.macros["TEAMS"], panels**2 * shape.local_size), "arguments": arguments}
        how |= {"most": most, "constants": disc.basis_tables()}
        sizes = shape.local_size, shape.local_bytes
        return fine.kernel_spec(f"poly_{part}", sources, macros, tables, *sizes, **how)

    def _warps(self, part: str, degree: int, rows: int, slots: int, items: int) -> MmaShape | None:
        """Shape of teams on tensor cores, where there are any, in double precision. Few items (0: not known) go to
        work-items, which share each."""
        fine, dim = self.fine, self.disc.dim
        if not (fine.limits.ptx >= TARGET or EMULATED) or fine.real_bytes != 8:
            return None
        lines = 2 * dim * (degree + 1)
        derivatives = 1 + dim if self.disc.physics.is_linear else (1 + dim) ** 2
        numbers = lines + slots * (1 + dim) if part == "volume" else 2 * (lines + derivatives) + dim
        shape = mma_shape(part, rows, numbers, slots, fine.limits)
        return shape if shape and (EMULATED or not items or items * shape.warps >= FEWEST_WARPS) else None


def split_rows(spec: KernelSpec, rows: np.ndarray) -> np.ndarray:
    """Items [item, 5] dealt out to the teams that share a polytope: each has its part of the entries."""
    split = spec.macros["SPLIT"]
    if split == 1:
        return rows
    found = np.repeat(rows, split, axis=0)
    ends = rows[:, 1:2] + (rows[:, 2:3] - rows[:, 1:2]) * np.arange(split + 1) // split
    found[:, 1], found[:, 2] = ends[:, :-1].ravel(), ends[:, 1:].ravel()
    return found


def facet_steps(spec: KernelSpec, interfaces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eights of points for kernels on tensor cores: `steps` [step, 4] and `step_first` [interface + 1], see
    poly_mma_facets.cl."""
    points = (interfaces[:, 2] - interfaces[:, 1]) * spec.macros["NQF"]
    count = -(-points // 8)
    first = np.concatenate([[0], np.cumsum(count)])
    of = np.repeat(np.arange(len(points)), count)
    at = 8 * (np.arange(first[-1]) - first[of])
    return np.stack([interfaces[of, 1], at, points[of], interfaces[of, 0]], axis=1).astype(np.int32), first


def bundles(spec: KernelSpec, laps: np.ndarray) -> np.ndarray:
    """Laps of each work-group, from those of its items [item]."""
    teams = spec.launch.cells
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

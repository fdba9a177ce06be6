"""Rows of the scheme sipg_gpu: products and residuals by each of its kernels, on copies of a grid in three states.

The physics is -∇·∇u = 1 with u = 0 on the boundary (by Nitsche). An affine product is that of cells with constant
coefficients; a fused one takes any physics and geometry in one pass; split ones take volume and fluxes one after the
other, the volume by products with tables, as in Gorlani 2015. What the states are: see tiled_sipg.py.
"""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np

from petsc_hdg.commands.bench import median_seconds
from petsc_hdg.device import Arrays
from petsc_hdg.discretizations.sipg.neighbours import Orientations, find_neighbours
from petsc_hdg.discretizations.transposition import DeviceLimits
from petsc_hdg.operators.sipg.operator import SIPGOperator
from petsc_hdg.options import Options
from petsc_hdg.physics import Dirichlet, Physics
from petsc_hdg.reference import ReferenceElement

from .group import Group, row_name
from .row import row
from .tiled_sipg import STATES, TiledSIPG, grid

GPU_CASES = [
    ("quadrilateral", (1, 2, 3, 4, 5, 6, 8)),
    ("hexahedron", (2, 3, 4, 5, 6, 7, 8)),
    ("triangle", (1, 2, 3, 4)),
    ("tetrahedron", (1, 2, 3, 4)),
]
CPU_CASES = [("quadrilateral", (1, 3, 5)), ("hexahedron", (2, 4)), ("triangle", (1, 3)), ("tetrahedron", (1, 3))]
GPU_FACES = {
    "triangle": (256, 128),
    "quadrilateral": (256, 256),
    "tetrahedron": (24, 24, 24),
    "hexahedron": (40, 40, 40),
}
CPU_FACES = {"triangle": (32, 32), "quadrilateral": (32, 32), "tetrahedron": (8, 8, 8), "hexahedron": (8, 8, 8)}
GPU_UNKNOWNS, CPU_UNKNOWNS = 3e7, 5e5  # of a mesh
# Kernels on each state, and the share of the unknowns they get; plain ones up to so many unknowns of a cell.
KERNELS = {
    "box": {"auto": 1, "split": 1 / 8},
    "renumbered": {"auto": 1},
    "distorted": {"auto": 1, "split": 1 / 8},
}
MOST_PLAIN = 64


def laplace() -> Physics:
    """-∇·∇u = 1, u = 0 on the boundary."""
    f1 = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
    return Physics({"u": 1}, "f0[0] = -1;", f1, boundary=[Dirichlet("boundary", "g[0] = 0;")], name="laplace")


def groups(device, given, copy):
    """Yield groups of bench rows, one for each operator; those on one grid share its neighbours."""
    faces = GPU_FACES if device.is_gpu else CPU_FACES
    for cell, degrees in GPU_CASES if device.is_gpu else CPU_CASES:
        for state in STATES:
            tile = partial(_tile, cell, faces[cell], state)
            for degree in degrees:
                for kernel in KERNELS[state]:
                    if kernel == "auto" or ReferenceElement(cell, degree).num_basis <= MOST_PLAIN:
                        yield _group(tile, device, given, copy, (cell, state, degree, kernel))


def titles(kernel: str) -> list[str]:
    """Rows of an operator made with `-sipg_kernel kernel`."""
    if kernel == "auto":
        return ["affine product", "fused product", "fused residual"]
    return ["split volume", "split flux", "split product", "split residual"]


class Tile:
    """A mesh and its cells' neighbours, found once for all degrees."""

    def __init__(self, cell: str, faces, state: str):
        self.state, self.mesh, self.physics = state, grid(cell, faces, state), laplace()
        self.neighbours = find_neighbours(self.mesh, self.physics, Orientations(cell))

    def num_dofs(self, degree: int) -> int:
        """Unknowns of a cell."""
        return ReferenceElement(self.mesh.cell, degree).num_basis

    def operator(self, device, given, degree: int, kernel: str, unknowns: float) -> SIPGOperator:
        """The operator on copies of the mesh with so many unknowns, about; by -cells with so many cells."""
        limits = DeviceLimits.of(device)
        options = Options(degree=degree, precision=given.fe_precision, backend="sipg_gpu", sipg_kernel=kernel)
        copies = max(1, round((given.cells or unknowns / self.num_dofs(degree)) / self.mesh.num_cells))
        disc = TiledSIPG(self.mesh, self.neighbours, self.physics, options, limits, copies)
        return SIPGOperator(disc, Arrays(device, given.fe_precision))


@lru_cache(maxsize=1)
def _tile(cell: str, faces: tuple, state: str) -> Tile:
    return Tile(cell, faces, state)


def _group(tile, device, given, copy, case: tuple) -> Group:
    """Rows of one operator on copies of tile()."""
    cell, state, degree, kernel = case
    straight = state != "distorted" or cell in ("triangle", "tetrahedron")
    known = [title for title in titles(kernel) if straight or title != "affine product"]
    titled = {row_name(f"sipg {title}, {state}", cell, degree): title for title in known}

    def prepare(names) -> dict:
        unknowns = (GPU_UNKNOWNS if device.is_gpu else CPU_UNKNOWNS) * KERNELS[state][kernel]
        op = tile().operator(device, given, degree, kernel, unknowns)
        launches = Launches(op).of

        def measured(title: str) -> dict:
            seconds = median_seconds(device, launches[title], given.repeat)
            return sipg_row(f"sipg {title}, {state}", op, seconds, copy)

        return {name: partial(measured, titled[name]) for name in names if titled[name] in launches}

    return Group(tuple(titled), prepare)


class Launches:
    """Launches of an SIPGOperator's kernels, linearized at zero: title → function of nothing."""

    def __init__(self, op: SIPGOperator):
        count, arrays = op.dofmap.num_owned, op.arrays
        self.op, zero = op, arrays.zeros(count)
        self.u = arrays.to_device(np.random.default_rng(3).uniform(-1, 1, count))
        self.out = arrays.zeros(count)
        op.linearize(zero)
        op.direction.use(self.u)
        self.of = self._passes() if op.discretization.options.sipg_kernel == "auto" else self._split()

    def _passes(self) -> dict:
        op, found = self.op, {}
        if op.fast is not None:
            found["affine product"] = lambda: self._run(op.fast)
        if op.fused is not None:
            found["fused product"] = lambda: self._run(op.fused)
            found["fused residual"] = lambda: op.residual(self.u, self.out)
        return found

    def _run(self, runner) -> None:
        for part in range(2):
            runner.run("action", self.out, part, du=self.op.direction)

    def _split(self) -> dict:
        op, where = self.op, {"du": self.op.direction}
        return {
            "split volume": lambda: op.run_cells("cg_action", op._element, **where),
            "split flux": lambda: op.run_around(op.kernels["sipg_facet_action"], op._element, **where),
            "split product": lambda: op.action(self.u, self.out),
            "split residual": lambda: op.residual(self.u, self.out),
        }


def sipg_row(title: str, op: SIPGOperator, seconds: float, copy: float) -> dict:
    """A row.

    bytes_compulsory: 2 reals an unknown, which is read once and written once (16 bytes in double precision). flops:
    additions and multiplications of the volume terms: on tensor cells of products along lines
    with the derivative matrix and its transpose, or of the tables' products; fluxes are not counted.
    """
    disc, unknowns = op.discretization, op.dofmap.num_owned
    made = row(
        kernel=title, discretization=disc, device=op.device, cells=disc.mesh.num_cells, dofs=unknowns,
        dof_kind="element", seconds=seconds, nbytes=2 * disc.real_bytes * unknowns,
        flops=disc.mesh.num_cells * volume_flops(op), copy=copy,
    )  # fmt: skip
    return made | {"state": title.split(", ")[-1]}


def volume_flops(op: SIPGOperator) -> int:
    """Additions and multiplications of the volume terms of a cell."""
    disc = op.discretization
    if disc.collocated:
        return 4 * disc.dim * (disc.options.degree + 1) * disc.num_dofs
    return disc.flops_per_cell

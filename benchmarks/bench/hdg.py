"""Rows of the scheme hdg_gpu: local matrices and local solve, those of statically condensed CG, and the trace products.

The meshes are copies of a shaken tile; the physics is -∇·∇u + u in each component.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from petsc_hdg.commands.bench import median_seconds
from petsc_hdg.device import Arrays
from petsc_hdg.discretizations.condensed.cg import CondensedCG
from petsc_hdg.discretizations.condensed.hdg import HybridizedDG
from petsc_hdg.discretizations.transposition import DeviceLimits
from petsc_hdg.operators.condensed.operator import CondensedOperator
from petsc_hdg.options import Options
from petsc_hdg.physics import Physics

from . import trace
from .group import Group, row_name
from .local_matrices import cell_row, has_lines, lines_row, local_matrices_row
from .tiled import TiledCondensedCG, TiledHDG, shaken_box

# (cell, components, degrees)
GPU_CASES = [
    ("triangle", 1, (1, 2, 3, 4, 5, 6, 7, 8, 9)),
    ("quadrilateral", 1, (1, 2, 3, 5)),
    ("tetrahedron", 1, (1, 2, 3, 4)),
    ("hexahedron", 1, (1, 2, 3)),
    ("triangle", 4, (1, 3)),
]
CPU_CASES = [
    ("triangle", 1, (1, 3, 5)),
    ("quadrilateral", 1, (1, 3)),
    ("tetrahedron", 1, (1, 2)),
    ("hexahedron", 1, (1,)),
]
GPU_FACES = {"triangle": (64, 64), "quadrilateral": (64, 64), "tetrahedron": (10, 10, 10), "hexahedron": (12, 12, 12)}
CPU_FACES = {"triangle": (8, 8), "quadrilateral": (8, 8), "tetrahedron": (2, 2, 2), "hexahedron": (3, 3, 3)}
GPU_BYTES, CPU_BYTES, MOST_CELLS = 4e9, 2e7, 4e6  # of K and U of all cells; cells


def reaction_diffusion(components: int) -> Physics:
    """-∇·∇u + u in each component."""
    text = f"for (c = 0; c < {components}; ++c)"
    return Physics(
        {"u": components},
        f0=f"{text} f0[c] = u[c];",
        f1=f"{text} for (d = 0; d < dim; ++d) f1[c*dim + d] = u_x[c*dim + d];",
        name="reaction-diffusion",
    )


def groups(device, given, copy):
    """Yield groups of bench rows, one for each mesh; those of `bench trace` last."""
    for cell, components, degrees in GPU_CASES if device.is_gpu else CPU_CASES:
        for degree in degrees:
            for name, (scheme, known) in SCHEMES.items():
                every = known | (lines(device, given, cell) if name == "hdg" else {})
                titled = [(f"{name} {title}", measure) for title, measure in every.items()]
                measures = {row_name(title, cell, degree, components): (title, made) for title, made in titled}
                case = (scheme, cell, components, degree)
                yield Group(tuple(measures), partial(_prepare, device, given, copy, case, measures))
    yield from trace.groups(device, given, copy)


def lines(device, given, cell: str) -> dict:
    """The row of sums along lines: on a GPU, or asked for, as what stands in for tensor cores takes a minute to
    compile."""
    asked = device.is_gpu or LINES.rpartition(", ")[2] in given.only
    return {LINES: lines_row} if cell == "hexahedron" and asked else {}


def _prepare(device, given, copy, case: tuple, measures: dict, names) -> dict:
    """Measurements of one scheme on one mesh, of measures[name] = title and function.

    The row of lines is left out where its cells have none.
    """
    disc, found = _discretization(device, given, *case), {}
    for name in names:
        title, measure = measures[name]
        if measure is not lines_row or has_lines(disc):
            found[name] = title, measure
    if not found:
        return {}
    op = CondensedOperator(disc, Arrays(device, given.fe_precision))
    op.linearize(op.arrays.zeros(op.dofmap.num_owned))
    return {name: partial(measure, title, op, given.repeat, copy) for name, (title, measure) in found.items()}


def _discretization(device, given, scheme, cell: str, components: int, degree: int):
    """It, on copies of a tile: of the cells asked for, or of the size that fills the device."""
    plain, tiled = scheme
    limits = DeviceLimits.of(device)
    options = Options(degree=degree, precision=given.fe_precision, hdg_tau="1", hdg_trace_mat="aij", hdg_share=False)
    mesh = shaken_box(cell, (GPU_FACES if device.is_gpu else CPU_FACES)[cell])
    tile = plain(mesh, reaction_diffusion(components), options, limits)
    each = 8 * tile.num_trace_dofs * (tile.num_trace_dofs + tile.num_eliminated)
    fitting = min(MOST_CELLS, (GPU_BYTES if device.is_gpu else CPU_BYTES) / each)
    return tiled(tile, max(1, round((given.cells or fitting) / mesh.num_cells)))


def local_solve_row(title, op, repeat, copy) -> dict:
    """The interior from the trace by U.

    bytes_compulsory: a cell's reals · (N M + 2 N) and 4 M; a real for each trace unknown.
    """
    disc = op.discretization
    x = op.arrays.to_device(np.random.default_rng(3).uniform(-1, 1, op.dofmap.num_owned))
    seconds = median_seconds(op.device, lambda: op.local_state(x), repeat)
    N, M, cells = disc.num_eliminated, disc.num_trace_dofs, disc.mesh.num_cells
    nbytes = cells * (disc.real_bytes * (N * M + 2 * N) + 4 * M) + disc.real_bytes * op.dofmap.num_owned
    return cell_row(title, op, seconds, nbytes, 2 * cells * N * M, copy)


LINES = "local matrices, lines"
SCHEMES = {
    "hdg": (
        (HybridizedDG, TiledHDG),
        {
            "local matrices": local_matrices_row(keep=True),
            "local matrices, K alone": local_matrices_row(keep=False),
            "local solve": local_solve_row,
        },
    ),
    "cg condensed": ((CondensedCG, TiledCondensedCG), {"local matrices": local_matrices_row(keep=True)}),
}

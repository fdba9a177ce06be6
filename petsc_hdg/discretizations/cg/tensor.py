"""Specs of continuous Galerkin by sums along lines, on quadrilaterals and hexahedra: tables of lines, launch shapes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ...codegen import KernelSpec, Launch, in_roles
from ...errors import OptionError
from ...reference import ReferenceElement, cell_quadrature, is_tensor
from ..lines import UNROLL, as_vectors, cpu_lanes, lagrange, tensor_order

LINES = ("lines.clh", "cg_tensor.clh", "cg_tensor_group.clh")
GPU_ITEMS = 128  # work-items of a group, at most: each takes up to 255 registers
FEW = 4  # cells of a group, from twice as many on half of them are faster
ROLLED = '_Pragma("unroll 1")'


@dataclass(frozen=True)
class LineShape:
    """Cells of a work-group, work-items of each (on a CPU 1, for all as vectors), bytes of local memory."""

    lanes: int
    threads: int
    local_bytes: int


def check_tensor(disc) -> None:
    """Raises OptionError where cells have no lines, or not even one fits the device's local memory."""
    prefix, most = disc.options.prefix, disc.limits.local_bytes
    if not is_tensor(disc.mesh.cell):
        raise OptionError(
            f"-{prefix}fe_kernel tensor sums along lines of quadrilaterals and hexahedra, the mesh has "
            f"{disc.mesh.cell} cells; use cell, transpose or auto"
        )
    if not line_shape(disc):
        raise OptionError(
            f"-{prefix}fe_kernel tensor needs {_reals(disc) * disc.real_bytes} bytes of local memory for a "
            f"{disc.mesh.cell} here, the device has {most}; use transpose or auto, or lower -{prefix}fe_degree or "
            f"-{prefix}fe_quadrature_degree"
        )


def line_flops(disc) -> int:
    """Additions and multiplications of a residual in a cell by tables of lines: axis after axis, there and back."""
    sizes, d = line_sizes(disc), disc.dim
    last = (1 + d) * sizes["NCOL"]
    second = 3 * sizes["N"] * sizes["NQ1"] if d == 3 else 0
    return 4 * disc.physics.num_components * sizes["N"] * sizes["NQ1"] * (2 * sizes["NLINE"] + second + last)


def line_diagonal_flops(disc) -> int:
    """The same of the element matrix' diagonal: products of two functions on a line, axis after axis."""
    sizes, d = line_sizes(disc), disc.dim
    last = ((1 + d) * (2 + d) // 2) * sizes["NCOL"]
    second = 6 * sizes["N"] * sizes["NQ1"] if d == 3 else 0
    return 2 * disc.physics.num_components * sizes["N"] * sizes["NQ1"] * (3 * sizes["NLINE"] + second + last)


def line_specs(disc) -> dict[str, KernelSpec]:
    """Specs of `cg_residual` and `cg_action`."""
    return _specs(disc, line_shape(disc), ("cg_residual", "cg_action"), *in_roles("cg_tensor.cl"))


def line_diagonal(disc) -> dict[str, KernelSpec]:
    """Spec of `cg_diagonal`, if a cell fits the device's local memory."""
    others = disc.dim * (disc.dim + 1) // 2
    shape = _shape(disc, _columns(disc, others, others + disc.dim + 1, 3))
    return _specs(disc, shape, ("cg_diagonal",), "cg_tensor_diagonal.cl") if shape else {}


def line_shape(disc) -> LineShape | None:
    """Launch shape of `line_specs`, None where not even one cell fits the device."""
    return _shape(disc, _reals(disc))


def _specs(disc, shape: LineShape, names, *files: str) -> dict[str, KernelSpec]:
    tables, gpu = line_tables(disc), disc.limits.is_gpu
    macros = {**disc._macros(), **line_sizes(disc), "UNROLL": UNROLL, "LANES": shape.lanes, "LOOPS": int(not gpu)}
    macros |= {"THREADS": shape.threads, "FRAME": "__private" if gpu else "__local", "PLACES": "tables"}
    macros["POINTS"] = UNROLL if gpu else ROLLED
    macros["IN_ORDER"] = int((tables["GEO_ORDER"] == np.arange(len(tables["GEO_ORDER"]))).all())
    items = shape.lanes * shape.threads if gpu else 1
    sources = disc._sources(*LINES, *files)
    launch = Launch(shape.lanes, items)
    specs = {n: disc._spec(n, sources, macros, tables, items, shape.local_bytes, launch=launch) for n in names}
    places = _places(tables["DOF_AT"])
    return {n: replace(s, table_buffer=places) if gpu else as_vectors(s) for n, s in specs.items()}


def _places(dof_at: np.ndarray) -> np.ndarray:
    """Positions of the numbers 0, 1, ... in a table, whose other entries are negative."""
    flat = dof_at.ravel()
    return np.argsort(flat)[np.count_nonzero(flat < 0) :].astype(float)


def _shape(disc, reals: int) -> LineShape | None:
    """Launch shape of kernels that take so many reals of local memory a cell."""
    sizes, limits, cell = line_sizes(disc), disc.limits, reals * disc.real_bytes
    if not limits.is_gpu:
        most, threads = cpu_lanes(disc), 1
        lanes = next((k for k in (most, 4, 2, 1) if k <= most and k * cell <= limits.local_bytes), 0)
    else:
        most = min(GPU_ITEMS, limits.max_work_group)
        threads = min(max(sizes["NLINE"], sizes["NCOL"]), most)
        lanes = min(most // threads, limits.local_bytes // cell)
        lanes //= 2 if lanes >= 2 * FEW else 1
    return LineShape(lanes, threads, lanes * cell) if lanes else None


def line_sizes(disc) -> dict[str, int]:
    """Sizes of lines, columns and geometry."""
    n, q = 1 + max(_degrees(disc)), len(line_rule(disc).weights)
    nodal, odd = np.diff(disc.auxiliary.starts) > 1, int(disc.limits.is_gpu)
    return {
        "N": n,
        "NQ1": q,
        "NLINE": n ** (disc.dim - 1),
        "NCOL": q ** (disc.dim - 1),
        "LINE_STEP": q | odd,
        "COLUMN_STEP": q ** (disc.dim - 1) | odd,
        "G": disc.mesh.geometry.degree + 1,
        "STATE": int(not disc.physics.is_linear),
        "NODAL": int(nodal.sum()),
        "PADDED": int(len(_degrees(disc)) > 1),
    }


def line_rule(disc):
    """The rule on an edge whose products are the cell's."""
    return cell_quadrature("interval", disc.quadrature_degree)


def line_tables(disc) -> dict[str, np.ndarray]:
    """Tables of cg_tensor.clh and cg_tensor.cl."""
    rule, most = line_rule(disc), line_sizes(disc)["N"]
    points, degrees = rule.points[:, 0], _degrees(disc)
    basis = [_padded(lagrange(edge_nodes(disc.mesh.cell, degree), points), most) for degree in degrees]
    geometry = lagrange(edge_nodes(disc.mesh.cell, disc.mesh.geometry.degree), points)
    starts = disc.auxiliary.starts
    nodal = np.diff(starts) > 1
    places = {
        "SET_OF": [degrees.index(s.element.degree) for s in disc.spaces for _ in range(s.components)],
        "DOF_AT": [dofs for s in disc.spaces for dofs in _dofs(s, most)],
        "AUX_AT": tensor_places(disc.auxiliary.element, most),
        "NODAL_OF": np.where(nodal, np.cumsum(nodal) - 1, -1),
        "NODAL_ROWS": starts[:-1][nodal],
        "GEO_ORDER": tensor_places(disc.geometry_element, disc.mesh.geometry.degree + 1),
    }
    tables = {
        "VALUE": np.stack([b[0] for b in basis]),
        "SLOPE": np.stack([b[1] for b in basis]),
        "W1": rule.weights,
        "PHI": geometry[0],
        "DPHI": geometry[1],
    }
    return disc._dof_tables() | tables | {name: np.asarray(table, dtype=np.int32) for name, table in places.items()}


def edge_nodes(cell: str, degree: int) -> np.ndarray:
    """Nodes of a Lagrange element along an edge [degree + 1], ascending on (0, 1)."""
    return np.unique(np.round(ReferenceElement(cell, degree).nodes[:, 0], 12))


def tensor_places(element: ReferenceElement, most: int) -> np.ndarray:
    """Basis function at each node of a grid with `most` nodes on an edge, the first axis fastest; -1 beyond the
    element's own."""
    count = element.degree + 1
    grid = np.full((most,) * element.dim, -1)
    order = tensor_order(element.nodes)
    grid[(slice(count),) * element.dim] = order.reshape((count,) * element.dim)
    return grid.ravel()


def _dofs(space, most: int) -> list[np.ndarray]:
    """Degrees of freedom of a cell at `tensor_places` of each component."""
    places = tensor_places(space.element, most)
    first = space.first_dof + np.arange(space.components)
    return [np.where(places < 0, -1, c + places * space.components) for c in first]


def _degrees(disc) -> list[int]:
    """Degrees that occur, that of the first field, and so of auxiliary fields, first."""
    return list(dict.fromkeys(s.element.degree for s in disc.spaces))


def _padded(tables, most: int) -> list[np.ndarray]:
    """Tables [point, basis] with zeros up to `most` basis functions."""
    return [np.pad(t, ((0, 0), (0, most - t.shape[1]))) for t in tables]


def _reals(disc) -> int:
    """Reals of local memory that the action takes for a cell."""
    components = disc.physics.num_components
    return _columns(disc, components * disc.dim, components * (1 + disc.dim), 2)


def _columns(disc, columns: int, of_point: int, planes: int) -> int:
    """Reals of `columns` columns beside those of the state, rates and auxiliary fields, of planes and corners; on a CPU
    of a column's geometry, too, and of what its points give."""
    sizes, dim, components = line_sizes(disc), disc.dim, disc.physics.num_components
    columns += components * (dim * sizes["STATE"] + int(disc.physics.uses_time_derivative)) + sizes["NODAL"] * dim
    nodes = sizes["N"] * sizes["NLINE"] * components  # which come and go through local memory on a GPU
    beside = nodes if disc.limits.is_gpu else dim * dim * sizes["G"] + of_point * sizes["NQ1"]
    corners = disc.geometry_element.num_basis * dim
    of_lines = planes * sizes["NLINE"] * sizes["LINE_STEP"]
    return corners + of_lines + columns * sizes["N"] * sizes["COLUMN_STEP"] + beside

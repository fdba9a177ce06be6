"""Specs of interior penalty in one pass on triangles and tetrahedra: tables, orders of nodes, launch shapes."""

from __future__ import annotations

from itertools import groupby

import numpy as np

from ...codegen import KernelSpec, Launch, in_roles
from ...codegen.preamble import CONSTANT_BYTES, SCATTERED_BYTES
from ...errors import OptionError
from ...reference import ReferenceElement, tabulate
from ...value_checks import plural
from ..lines import UNROLL
from .arguments import PASS
from .interleaved import CHUNK
from .tensor import NAMES, PassShape

POINTWISE = ("geometry.clh", "point.clh", "sipg_flux.clh", "sipg_simplex.clh", "sipg_simplex_point.clh")
CELL_DEGREES = {2: 4, 3: 2}  # up to which one work-item of a GPU holds a straight cell of one field
CELLS = 128  # work-items of such a work-group
ROLLED_DOFS = {2: 10, 3: 4}  # of a cell from which on its facets are done by the same instructions
CPU_LANES = 8  # cells that a CPU does at once where that pays, though it takes three times as long to compile
GPU_THREADS = 256  # work-items of a work-group of a GPU, at most
GPU_LOCAL_TARGET = 24 * 1024  # bytes of local memory that let several work-groups of a GPU run at once
MOST_UNROLLED = 400  # multiplications of a value and its gradient at a point up to which their loop is unrolled


def simplex_specs(disc, is_seldom: bool = False) -> dict[str, KernelSpec]:
    """Specs of `sipg_residual` and `sipg_action` of an InteriorPenalty. Raises OptionError (local memory)."""
    spaces = spaces_of(disc)
    macros = {**disc._macros(), **disc.flux_macros, "NQ": disc.quadrature.num_points, "NSPACES": len(spaces)}
    macros["NBASIS"] = sum(element.num_basis for element, _ in spaces)
    if suits_cell(disc):
        return cell_specs(disc, macros)
    shape = simplex_shape(disc, is_seldom)
    small = disc.num_dofs * (1 + disc.dim) <= MOST_UNROLLED
    macros |= {"LANES": shape.lanes, "THREADS": shape.threads, "HELD": "__local", "FOLDED": 0}
    macros["UNROLL"] = UNROLL if small else ""
    most = SCATTERED_BYTES if disc.limits.is_gpu and shape.lanes < CHUNK else CONSTANT_BYTES
    headers, tables = (*POINTWISE, "sipg_simplex_group.clh"), simplex_tables(disc)
    how = {"most": most, "arguments": PASS, "launch": Launch(shape.lanes, shape.local_size)}
    sizes, found = (shape.local_size, shape.local_bytes), {}
    for name, role in NAMES.items():
        roles = in_roles("sipg_simplex.cl", *([role] if is_seldom or disc.limits.is_gpu else []))
        found[name] = disc.kernel_spec(name, (*headers, *roles), macros, tables, *sizes, **how)
    return found


def suits_cell(disc) -> bool:
    """True if one work-item of a GPU does a cell."""
    few = disc.num_dofs <= disc.num_nodes and disc.element.degree <= CELL_DEGREES[disc.dim]
    return disc.limits.is_gpu and few and disc.mesh.geometry.is_affine


def cell_specs(disc, macros: dict) -> dict[str, KernelSpec]:
    """Specs of both kernels with one work-item a cell."""
    macros = macros | {"LANES": 1, "HELD": "__private", "FOLDED": 1, "CELLS": CELLS, "UNROLL": UNROLL}
    macros["UNROLL_FACETS"] = UNROLL if disc.num_dofs < ROLLED_DOFS[disc.dim] else '_Pragma("unroll 1")'
    rounded = {name: np.where(np.abs(table) < 1e-14, 0, table) for name, table in simplex_tables(disc).items()}
    headers = "load_node.clh", *POINTWISE, "sipg_simplex_cell.clh"
    sources = {name: (*headers, *in_roles("sipg_simplex_cell.cl", role)) for name, role in NAMES.items()}
    return {n: disc.kernel_spec(n, of, macros, rounded, CELLS, arguments=PASS) for n, of in sources.items()}


# Tables ---------------------------------------------------------------------------------------------------------------


def simplex_tables(disc) -> dict[str, np.ndarray]:
    """Tables of the cell, and of the facet opposite vertex 0; see sipg_simplex.cl."""
    rule, normals = disc.quadrature, disc.facet_rules[1]
    facet = disc.facet_rules[0][0]
    spaces = spaces_of(disc)
    components = np.array([count for _, count in spaces])
    functions = np.array([element.num_basis for element, _ in spaces])
    starts = {"SPACE_ROW": components * functions, "SPACE_COMP": components, "SPACE_BASIS": functions}
    tables = {
        **{name: np.append(0, np.cumsum(sizes)).astype(np.int32) for name, sizes in starts.items()},
        "AUX_START": disc.auxiliary.starts,
        "ORDER": np.concatenate([node_orders(element) for element, _ in spaces], axis=1),
        "GEO_ORDER": node_orders(disc.geometry_element),
        "WEIGHTS": rule.weights,
        "FACET_WEIGHTS": facet.weights,
        "FACET_NORMAL": normals[0],
    }
    for prefix, points in (("", rule.points), ("FACET_", facet.points)):
        found = [tabulate(element, points) for element, _ in spaces]
        tables[prefix + "BASIS"] = np.concatenate([table.values for table in found], axis=1)
        tables[prefix + "GRAD"] = np.concatenate([table.gradients for table in found], axis=1)
        tables[prefix + "GEO_GRAD"] = tabulate(disc.geometry_element, points).gradients
        tables[prefix + "GEO"] = disc.seen_geometry(points)
    return tables


def spaces_of(disc) -> list[tuple[ReferenceElement, int]]:
    """Element and number of components of the spaces of the kernels, each of consecutive fields of one degree."""
    runs = groupby(disc.spaces, key=lambda space: space.element)
    return [(element, sum(space.components for space in run)) for element, run in runs]


def vertex_orders(dim: int) -> np.ndarray:
    """Vertices [f, vertex] of a simplex in the order that begins with f, the others ascending."""
    return np.array([[f, *(v for v in range(dim + 1) if v != f)] for f in range(dim + 1)], dtype=np.int32)


def barycentric(points: np.ndarray) -> np.ndarray:
    """Barycentric coordinates [point, dim + 1] of reference points [point, dim] of a simplex."""
    return np.column_stack([1 - points.sum(axis=1), points])


def node_orders(element: ReferenceElement) -> np.ndarray:
    """A simplex' number [f, node] of each node if its vertices come in the order of `vertex_orders`."""
    nodes = barycentric(element.nodes)
    found = np.empty((element.dim + 1, len(nodes)), dtype=np.int32)
    for f, vertices in enumerate(vertex_orders(element.dim)):
        moved = np.empty_like(nodes)
        moved[:, vertices] = nodes
        found[f] = np.abs(moved[:, None] - nodes).max(axis=2).argmin(axis=1)
    return found


# Launch shape ---------------------------------------------------------------------------------------------------------


def simplex_shape(disc, is_seldom: bool = False) -> PassShape:
    """Cells and work-items of a work-group. Raises OptionError where not even one cell fits into local memory."""
    time, state = int(disc.physics.uses_time_derivative), int(not disc.physics.is_linear)
    largest, limits = cell_reals(disc, max(1 + time, 1 + state * (1 + time))) * disc.real_bytes, disc.limits
    most = limits.local_bytes
    if largest > most:
        raise OptionError(
            f"-{disc.options.prefix}fe_degree {disc.element.degree} with "
            f"{plural(disc.physics.num_components, 'component')} "
            f"needs {largest} bytes of local memory for a {disc.mesh.cell}, and the device has {most}; "
            f"lower -fe_degree, or give -{disc.options.prefix}sipg_kernel split"
        )
    if limits.is_gpu:
        target = max(min(most, GPU_LOCAL_TARGET), largest)
        lanes = next(k for k in (32, 16, 8, 4, 2, 1) if k * largest <= target)
        threads = max(2, min(disc.num_nodes, min(GPU_THREADS, limits.max_work_group) // lanes))
    else:
        pays = disc.dim == 2 and disc.physics.is_linear and not is_seldom
        lanes, threads = next(k for k in ((CPU_LANES, 4, 2, 1) if pays else (1,)) if k * largest <= most), 1
    return PassShape(lanes, threads, lanes * largest)


def cell_reals(disc, vectors: int) -> int:
    """Reals of local memory a cell takes, with so many vectors of its own and of a neighbour."""
    rows, components = disc.num_dofs, disc.physics.num_components
    points = max(disc.quadrature.num_points, disc.facet_rules[0][0].num_points)
    geometry = disc.geometry_element.num_basis * disc.dim + disc.auxiliary.num_rows + 1
    return (2 * vectors + 1) * rows + points * components * (1 + disc.dim) + 2 * geometry

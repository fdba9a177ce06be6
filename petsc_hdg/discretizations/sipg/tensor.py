"""Specs of interior penalty in one pass on quadrilaterals and hexahedra: tables of lines, places of facets, shapes."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

import basix
import numpy as np

from ...codegen import KernelSpec, Launch, in_roles
from ...errors import OptionError
from ...reference import gauss_lobatto, on_facets, tensor_points
from ...value_checks import plural
from ..lines import UNROLL, as_vectors, cpu_lanes, lagrange, tensor_order
from .arguments import TENSOR_PASS

GPU_THREADS = 128  # work-items of a work-group, at most: each takes up to 168 registers
CELL_NODES = 16  # of a cell up to which one work-item holds it
CELLS = 128  # work-items of a work-group that has one a cell
LINK = 6  # numbers of what is behind a facet
WARP = 32  # work-items that run in step
FACET_COST = 1.5  # of a node on a facet, in costs of its cell's interior
POINTWISE = ("geometry.clh", "point.clh", "sipg_flux.clh", "lines.clh", "sipg_tensor.clh")
CPU = ("load_node.clh", "sipg_around.clh", "sipg_tensor_point.clh", "sipg_tensor_group.clh")
GPU = ("load_node.clh", *POINTWISE, "sipg_around.clh", "sipg_node.clh")
NAMES = {"sipg_residual": "residual", "sipg_action": "action"}  # kernels and their roles


@dataclass(frozen=True)
class PassShape:
    """Cells a work-group does at once, work-items of each, bytes of local memory at most.

    With one work-item of each on a GPU, that holds its cell in registers.
    """

    lanes: int
    threads: int
    local_bytes: int

    @property
    def local_size(self) -> int:
        return self.lanes * self.threads


def gpu_shape(disc, geometry: int) -> PassShape | None:
    """Shape for a GPU, None where no cell fits. geometry: nodes on an edge."""
    if disc.dim == 2 and disc.num_dofs <= CELL_NODES and geometry == 2:
        return PassShape(CELLS, 1, 0)
    for lanes in (32, 16, 8, 4, 2, 1):
        most, size = min(GPU_THREADS, disc.limits.max_work_group) // lanes, lanes * cell_bytes(disc, geometry)
        if size <= disc.limits.local_bytes:
            return PassShape(lanes, max(2, min(disc.flux_macros["NQF"], most)), size)
    return None


def cell_bytes(disc, geometry: int) -> int:
    """Bytes of local memory a cell takes, with the state beside what is differentiated if that is read."""
    dim, components, faces = disc.dim, disc.physics.num_components, disc.num_facets_of_cell
    values = components * disc.num_nodes * (1 + dim + (not disc.physics.is_linear))
    shape = (geometry**dim + faces * geometry ** (dim - 1)) * dim
    return (values + shape + components * faces) * disc.real_bytes + 4 * LINK * faces


def node_rounds(dim: int, count: int, shape: PassShape) -> np.ndarray:
    """Node [round, thread] that a work-item does, or -1; count: nodes on an edge.

    Work-items that run in step take nodes on facets of the same axes, as far as there are some, and all as much work.
    """
    together = max(1, WARP // shape.lanes)
    while shape.threads % together:
        together //= 2
    indices = np.stack(np.unravel_index(np.arange(count**dim), (count,) * dim), axis=1)
    on_axes = (indices == 0) | (indices == count - 1)
    alike = defaultdict(list)
    for node, axes in enumerate(on_axes):
        alike[tuple(axes)].append(node)
    order = [node for axes in sorted(alike, key=sum, reverse=True) for node in alike[axes]]
    groups = [order[k : k + together] for k in range(0, len(order), together)]
    slots: list[list] = [[] for _ in range(shape.threads // together)]
    costs = [0.0] * len(slots)
    for group in groups:
        least = min(range(len(slots)), key=costs.__getitem__)
        slots[least].append(group)
        costs[least] += 1 + FACET_COST * on_axes[group].any(axis=0).sum()
    rounds = np.full((max(map(len, slots)), shape.threads), -1, dtype=np.int32)
    for slot, mine in enumerate(slots):
        for k, group in enumerate(mine):
            rounds[k, slot * together : slot * together + len(group)] = group
    return rounds


def tensor_specs(disc) -> dict[str, KernelSpec]:
    """Specs of `sipg_residual` and `sipg_action` of a collocated InteriorPenalty. Raises OptionError (local memory)."""
    shape, macros = tensor_shape(disc), {**disc._macros(), **disc.flux_macros, **tensor_sizes(disc), "UNROLL": UNROLL}
    tables, size = tensor_tables(disc), shape.local_bytes
    gpu = disc.limits.is_gpu
    launch = Launch(shape.lanes, shape.local_size if gpu else 1)
    how = {"arguments": TENSOR_PASS, "launch": launch}
    macros |= {"LANES": shape.lanes, "HELD": "__local", "STORED": int(gpu), "RSQRT": "rsqrt" if gpu else "1 / sqrt"}
    if not gpu:
        sources = (*POINTWISE, *CPU, *in_roles("sipg_tensor.cl"))
        return {n: as_vectors(disc._spec(n, sources, macros, tables, 1, size, **how)) for n in NAMES}
    if shape.threads == 1:
        macros |= {"LANES": 1, "HELD": "__private", "STORED": 0, "CELLS": shape.lanes}
        headers, file, sizes, how = (*GPU, "sipg_cell.clh"), "sipg_cell.cl", (shape.lanes,), {"arguments": TENSOR_PASS}
    else:
        tables["NODE_AT"] = node_rounds(disc.dim, macros["N"], shape)
        macros |= {"THREADS": shape.threads, "ROUNDS": len(tables["NODE_AT"])}
        headers, file, sizes = (*GPU, "sipg_node_group.clh"), "sipg_node.cl", (launch.items, size)
    return {n: disc._spec(n, (*headers, *in_roles(file, r)), macros, tables, *sizes, **how) for n, r in NAMES.items()}


def tensor_sizes(disc) -> dict[str, int]:
    """Sizes of lines and facets, of fields and of geometry."""
    geometry = disc.mesh.geometry.degree + 1
    return {"N": disc.element.degree + 1, "G": geometry, "GEO_FACET": geometry ** (disc.dim - 1)}


def tensor_tables(disc) -> dict[str, np.ndarray]:
    """One-dimensional tables, and places of nodes; see sipg_tensor.clh."""
    points, weights = gauss_lobatto(disc.element.degree)
    geometry = np.unique(np.round(disc.geometry_element.nodes[:, 0], 12))
    values, slopes = lagrange(geometry, points)
    return {
        "AUX_START": disc.auxiliary.starts,
        "D1": lagrange(points, points)[1],
        "W1": weights,
        "PHI": values,
        "DPHI": slopes,
        "NODE_ORDER": disc.tensor_order.astype(np.int32),
        "GEO_ORDER": tensor_order(disc.geometry_element.nodes).astype(np.int32),
        "PLACE": facet_places(disc, len(points)),
        "GEO_PLACE": facet_places(disc, len(geometry)),
    }


def facet_places(disc, count: int) -> np.ndarray:
    """Of a neighbour with `count` nodes on an edge, by its facet and orientation [F * NORIENT, 4]: the node at point 0
    of the own facet, steps from node to node along the own facet's axes (the second is 0 on edges), step inwards.
    """
    cell, dim = disc.mesh.cell, disc.dim
    points = tensor_points(np.linspace(0.0, 1.0, count), dim - 1)
    strides = count ** np.arange(dim)
    nodes = np.rint(on_facets(cell, points) * (count - 1)) @ strides
    at = nodes[:, disc.orientations.permutations(points)]
    inwards = -np.rint(basix.cell.facet_outward_normals(basix.CellType[cell])) @ strides
    second = at[..., count] - at[..., 0] if dim == 3 else np.zeros(at.shape[:2])
    rows = [at[..., 0], at[..., 1] - at[..., 0], second, np.broadcast_to(inwards[:, None], at.shape[:2])]
    return np.stack(rows, axis=-1).reshape(-1, 4).astype(np.int32)


# Launch shape ---------------------------------------------------------------------------------------------------------


def tensor_shape(disc) -> PassShape:
    """Cells and work-items of a work-group. Raises OptionError where not even one cell fits into local memory."""
    shape = gpu_shape(disc, tensor_sizes(disc)["G"]) if disc.limits.is_gpu else cpu_shape(disc)
    if shape is None:
        degree, prefix = disc.element.degree, disc.options.prefix
        raise OptionError(
            f"-{prefix}fe_degree {degree} with {plural(disc.physics.num_components, 'component')} needs more than the "
            f"{disc.limits.local_bytes} bytes of local memory that the device has for a {disc.mesh.cell}; lower "
            f"-{prefix}fe_degree, or give -{prefix}sipg_kernel split"
        )
    return shape


def cpu_shape(disc) -> PassShape | None:
    """Cells that a CPU does at once, as many as fit."""
    size, most = cell_reals(disc, 1 + int(not disc.physics.is_linear)) * disc.real_bytes, cpu_lanes(disc)
    lanes = (k for k in (most, 4, 2, 1) if k <= most and k * size <= disc.limits.local_bytes)
    return next((PassShape(k, 1, k * size) for k in lanes), None)


def cell_reals(disc, vectors: int) -> int:
    """Reals of local memory a cell takes where so many vectors are differentiated."""
    sizes, components, nodes, dim = tensor_sizes(disc), disc.physics.num_components, disc.num_nodes, disc.dim
    traces = 4 * components * disc.flux_macros["NQF"]
    geometry = (sizes["G"] ** dim + 2 * dim * sizes["GEO_FACET"]) * dim + (dim * dim + 1) * nodes
    return vectors * (components * nodes + traces) + components * (1 + dim) * nodes + geometry

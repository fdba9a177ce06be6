"""Specs of interior penalty in one pass on quadrilaterals and hexahedra: tables of lines, places of facets, shapes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import basix
import numpy as np

from ..codegen import KernelSpec, kernel_text
from ..errors import OptionError
from ..reference import gauss_lobatto, on_facets, tensor_points
from .interleaved import CHUNK

SOURCES = (
    "geometry.clh",
    "point.clh",
    "sipg_flux.clh",
    "sipg_tensor.clh",
    "sipg_tensor_point.clh",
    "sipg_tensor.cl",
)
LANES = kernel_text("sipg_lanes.clh")
CPU_BYTES = 64  # a vector register of AVX-512
GPU_THREADS = 256  # work-items of a work-group of a GPU, at most


@dataclass(frozen=True)
class TensorShape:
    """Cells a work-group does at once, work-items of each, bytes of local memory of a residual and of an action."""

    lanes: int
    threads: int
    residual_bytes: int
    action_bytes: int

    @property
    def local_size(self) -> int:
        return self.lanes * self.threads if self.threads > 1 else 1


def tensor_specs(disc) -> dict[str, KernelSpec]:
    """Specs of `sipg_residual` and `sipg_action` of a collocated InteriorPenalty. Raises OptionError (local memory)."""
    shape = tensor_shape(disc)
    macros = {
        **disc._macros(),
        **disc.flux_macros,
        **tensor_sizes(disc),
        "LANES": shape.lanes,
        "THREADS": shape.threads,
    }
    macros["UNROLL"] = '_Pragma("unroll")'
    tables = tensor_tables(disc)
    sizes = {"sipg_residual": shape.residual_bytes, "sipg_action": shape.action_bytes}
    specs = {n: disc._spec(n, SOURCES, macros, tables, shape.local_size, size) for n, size in sizes.items()}
    return specs if shape.threads > 1 else {n: replace(s, physics=LANES + s.physics) for n, s in specs.items()}


def tensor_items(disc, spec: KernelSpec, num_chunks: int) -> int:
    """Work-items over a number of chunks."""
    return num_chunks * (CHUNK // spec.macros["LANES"]) * spec.local_size


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
        "GEO_ORDER": np.lexsort(np.round(disc.geometry_element.nodes, 12).T).astype(np.int32),
        "PLACE": facet_places(disc, len(points)),
        "GEO_PLACE": facet_places(disc, len(geometry)),
    }


def lagrange(nodes: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lagrange basis of `nodes` [k] at points [i] on a line: values and derivatives [i, k]."""
    values, slopes = np.ones((2, len(points), len(nodes)))
    for k, node in enumerate(nodes):
        others = np.delete(nodes, k)
        factors = (points[:, None] - others) / (node - others)
        values[:, k] = factors.prod(axis=1)
        rest = [np.delete(factors, m, axis=1).prod(axis=1) / (node - other) for m, other in enumerate(others)]
        slopes[:, k] = np.sum(rest, axis=0)
    return values, slopes


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


def tensor_shape(disc) -> TensorShape:
    """Cells and work-items of a work-group. Raises OptionError where not even one cell fits into local memory."""
    residual, action = (cell_reals(disc, v) * disc.real_bytes for v in (1, 1 + int(not disc.physics.is_linear)))
    most, limits, prefix = disc.limits.local_bytes, disc.limits, disc.options.prefix
    if action > most:
        raise OptionError(
            f"-{prefix}fe_degree {disc.element.degree} with {disc.physics.num_components} components needs {action} "
            f"bytes of local memory for a {disc.mesh.cell}, and the device has {most}; lower -{prefix}fe_degree, or "
            f"give -{prefix}sipg_kernel split"
        )
    if limits.is_gpu:
        lanes = next(k for k in (32, 16, 8, 4, 2, 1) if k * action <= most)
        largest = min(GPU_THREADS, limits.max_work_group) // lanes
        threads = max(2, min(disc.num_nodes, largest))
    else:
        lanes, threads = next(k for k in (CPU_BYTES // disc.real_bytes, 4, 2, 1) if k * action <= most), 1
    return TensorShape(lanes, threads, lanes * residual, lanes * action)


def cell_reals(disc, vectors: int) -> int:
    """Reals of local memory a cell takes where so many vectors are differentiated."""
    sizes, components, nodes, dim = tensor_sizes(disc), disc.physics.num_components, disc.num_nodes, disc.dim
    traces = 4 * components * disc.flux_macros["NQF"]
    geometry = (sizes["G"] ** dim + 2 * sizes["GEO_FACET"]) * dim
    return vectors * (components * nodes + traces) + components * (1 + dim) * nodes + geometry

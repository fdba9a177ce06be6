"""Interior penalty with constant coefficients: tables, links and classes of cells, specs.

Rectangles and boxes: the product and all arrays are described in sipg_affine.clh. Sides of a cell are numbered
2 axis + end. Straight simplices: sipg_affine_simplex.cl.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...codegen import KernelSpec, Launch
from ...codegen.preamble import REAL_BYTES
from ...reference import ReferenceElement, cell_quadrature, facet_quadrature, gauss_lobatto
from ..congruence import group
from ..lines import lagrange
from .arguments import AFFINE, AFFINE_DATA, AFFINE_SIMPLEX
from .interleaved import CHUNK
from .simplex import barycentric, node_orders, vertex_orders

STRAIGHT = 256  # bit of a chunk whose neighbours are all owned cells of full chunks with the same frame
TOLERANCE = 1e-13  # of a cell's largest number, by which those of one class may differ
MOST_SHARE = 1 / 8  # classes over cells, from which on they do not pay
GPU_THREADS = 256  # work-items of a work-group of a GPU, at most
CELL_DEGREES = {2: 5, 3: 2}  # up to which a GPU's work-item keeps a cell in registers
LINES_EACH = {2: {6: 2}, 3: {4: 5, 6: 5, 7: 2, 8: 3}}  # lines of a work-item of a GPU at some degrees
USUAL_LINES = {2: 3, 3: 4}  # and at the others
AHEAD_BYTES, AHEAD_DEGREES = 6e6, {2: 6, 3: 2}  # what an NVIDIA GPU asks DRAM for in advance, and up to which degree
CPU_LANES = 8  # cells of a work-item of a CPU
ZERO = 1e-13  # entries of tables smaller than this are round-off
MOST_CLASSES = 2048  # whose data stay in cache
GROUP = {True: 128, False: 32}  # work-items of a work-group, on a GPU or not
MOST_UNROLLED = {"triangle": 4, "tetrahedron": 2}  # degree up to which registers hold the facets' sums
DIRICHLET, NATURAL = -1, -2  # behind a facet


# Tables ---------------------------------------------------------------------------------------------------------------


def line_matrix(degree: int, theta: float) -> np.ndarray:
    """Matrix [node, N + 2]: what a line of length and diffusivity 1 gives, over weights, from (other, own, other)."""
    points, weights = gauss_lobatto(degree)
    slopes, last = lagrange(points, points)[1], degree
    matrix = np.zeros((degree + 1, degree + 3))
    matrix[:, 1:-1] = slopes.T @ (weights[:, None] * slopes)
    for end, sign, other in ((0, -1, 0), (last, 1, -1)):
        outward = sign * slopes[end]
        matrix[end, 1:-1] -= outward / 2
        matrix[:, 1 + end] -= theta * outward / 2
        matrix[:, other] += theta * outward / 2
    return matrix / weights[:, None]


def line_tables(degree: int, theta: float) -> dict[str, np.ndarray]:
    """EVEN, ODD [(N + 1) / 2, (N + 3) / 2], SLOPE and WEIGHTS [N] of the kernels."""
    points, weights = gauss_lobatto(degree)
    count = degree + 1
    half, rows = (count + 3) // 2, (count + 1) // 2
    first = line_matrix(degree, theta)[:rows]
    left, right = first[:, :half], first[:, ::-1][:, :half]
    even, odd = (left + right) / 2, (left - right) / 2
    if count % 2:  # the middle node is its own mirror image
        even[:, -1], odd[:, -1] = left[:, -1], 0
    return {"EVEN": even, "ODD": odd, "SLOPE": -lagrange(points, points)[1][0], "WEIGHTS": weights}


# Neighbours -----------------------------------------------------------------------------------------------------------


def facet_of(dim: int) -> np.ndarray:
    """Facet [side] of the reference cell; the kernels' FACET_OF."""
    sides = np.arange(2 * dim)
    return np.where(sides % 2, dim + sides // 2, dim - 1 - sides // 2)


def code_bits(dim: int) -> int:
    """Low bits of a link, for the code and for whether the neighbour is mirrored with sign -1."""
    return 4 if dim == 2 else 7


def link_type(dim: int) -> tuple[np.dtype, int]:
    """Type of a link and the bits it has for cells: 16 bits in 2D, 31 in 3D."""
    return (np.dtype(np.uint16), 16 - code_bits(2)) if dim == 2 else (np.dtype(np.int32), 31 - code_bits(3))


def build_links(neighbour, code, mirrored, num_cells: int, num_orientations: int) -> tuple[np.ndarray, np.ndarray]:
    """header [chunk, 8] without classes, and links [chunk, side, 32].

    neighbour, code [facet, stride] of the discretization (orientation 0 permutes nothing); mirrored [facet, stride]:
    whether a boundary facet has Dirichlet data.
    """
    dim, chunks = len(neighbour) // 2, -(-num_cells // CHUNK)
    kind, bits = link_type(dim)
    cells = np.minimum(np.arange(chunks * CHUNK), max(num_cells - 1, 0))
    header = np.zeros((chunks, 8), dtype=np.int32)
    links = np.zeros((chunks, 2 * dim, CHUNK), dtype=kind)
    straight = np.arange(chunks) < num_cells // CHUNK
    facets = facet_of(dim)
    for side, facet in enumerate(facets):
        other, its = neighbour[facet, cells], code[facet, cells]
        outside = other < 0
        regular = ~outside & (other < num_cells // CHUNK * CHUNK) & (its == facets[side ^ 1] * num_orientations)
        its = 2 * np.where(outside, facet * num_orientations, its) + (outside & mirrored[facet, cells])
        other = np.where(outside, cells, other).reshape(chunks, CHUNK)
        base = other.min(axis=1)
        far = other.max(axis=1) - base >= 1 << bits
        straight &= regular.reshape(chunks, CHUNK).all(axis=1) & ~far
        header[:, side] = base
        header[:, 6] |= far.astype(np.int32) << side
        offset = np.where(far[:, None], 0, other - base[:, None])
        links[:, side] = (offset << code_bits(dim)) | its.reshape(chunks, CHUNK)
    header[:, 6] |= STRAIGHT * straight
    return header, links


# Classes --------------------------------------------------------------------------------------------------------------


def cell_edges(corners: np.ndarray) -> np.ndarray | None:
    """Edges [cell, axis, dim] from the first corner [cell, 2^dim, dim], or None where cells are no parallelepipeds."""
    dim = corners.shape[2]
    first = corners[:, :1]
    edges = corners[:, 2 ** np.arange(dim)] - first
    bits = np.arange(2**dim)[:, None] >> np.arange(dim) & 1
    bent = np.abs(first + np.einsum("va,cad->cvd", bits, edges) - corners).max(initial=0.0)
    return edges if bent <= 1e-12 * np.abs(corners).max(initial=1.0) else None


def metrics(edges: np.ndarray, tensor: np.ndarray) -> np.ndarray:
    """Metrics |K| J⁻¹ G J⁻ᵀ [cell, axis, axis] of cells with edges [cell, axis, dim] for a tensor G [dim, dim]."""
    normals = _cofactors(edges)  # rows of `edges` are columns of J: these are rows of J⁻¹ times its determinant
    fluxes = np.einsum("rs,asc->arc", tensor, normals)
    metric = np.empty((len(edges), *tensor.shape))
    for a, b in np.ndindex(*tensor.shape):
        metric[:, a, b] = (normals[a] * fluxes[b]).sum(axis=0)
    return metric / _volumes(edges, normals)[:, None, None]


def _cofactors(edges: np.ndarray) -> np.ndarray:
    """Cofactors [row, column, cell] of matrices [cell, row, column], 2 × 2 or 3 × 3; inverses by LAPACK take longer."""
    rows, dim = np.ascontiguousarray(np.moveaxis(edges, 0, 2)), edges.shape[1]
    if dim == 2:
        return np.stack([rows[1, ::-1], -rows[0, ::-1]]) * np.array([1.0, -1.0])[:, None]
    ahead, behind = np.roll(rows, -1, axis=1), np.roll(rows, 1, axis=1)
    return np.stack([ahead[a - 2] * behind[a - 1] - behind[a - 2] * ahead[a - 1] for a in range(3)])


def _volumes(edges: np.ndarray, cofactors: np.ndarray) -> np.ndarray:
    """|K| [cell] of cells with edges [cell, axis, dim] and their cofactors [axis, dim, cell]."""
    return np.abs((edges[:, 0].T * cofactors[0]).sum(axis=0))


def is_diagonal(metric: np.ndarray) -> bool:
    """True if metrics [cell, axis, axis] have no entries off the diagonal."""
    diagonal = np.einsum("caa->ca", metric)
    off = np.abs(metric - diagonal[:, :, None] * np.eye(metric.shape[1]))
    return bool((off.max(axis=(1, 2), initial=0.0) <= 1e-12 * np.abs(diagonal).max(axis=1, initial=0.0)).all())


def class_rows(
    edges, metric, mass: float, sigma, neighbour, code, num_orientations: int, end_weight: float
) -> np.ndarray:
    """Numbers [cell, 4 + 4 dim] of owned cells: metric [3], mass, then sigma and flux of each side.

    edges, metric [extended cell, …]; sigma [facet, cell]; neighbour, code [facet, stride]; end_weight: of a line's end.
    """
    dim, count = metric.shape[1], sigma.shape[1]
    facets, diagonal = facet_of(dim), np.einsum("caa->ca", metric)
    volume = _volumes(edges[:count], _cofactors(edges[:count]))
    length = np.linalg.norm(edges[:count], axis=2)
    axis_of = np.argsort(facets) // 2
    rows = np.zeros((count, 4 + 4 * dim))
    rows[:, :dim], rows[:, 3] = diagonal[:count], mass * volume
    for side, facet in enumerate(facets):
        other, axis = neighbour[facet, :count], axis_of[code[facet, :count] // num_orientations]
        inside = other >= 0
        behind = np.where(inside, diagonal[np.maximum(other, 0), axis], diagonal[:count, side // 2])
        surface = volume / length[:, side // 2]
        rows[:, 4 + 2 * side] = np.where(inside, 1, 0.5) * sigma[facet] * surface / end_weight
        rows[:, 5 + 2 * side] = behind / (2 * end_weight)
    return rows


def classes_of_cells(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """class_of_cell [cell] int32 and classes [class, number] of cells with numbers `rows` [cell, number]."""
    scale = np.abs(rows).max(axis=1, initial=0.0)
    most = int(MOST_SHARE * len(rows))
    shapes = group(rows, TOLERANCE * scale, np.zeros(len(rows), dtype=np.int64), most)
    if shapes is None:
        return np.arange(len(rows), dtype=np.int32), rows
    return shapes.shape, rows[shapes.representative]


def mark_classes(header: np.ndarray, class_of_cell: np.ndarray) -> None:
    """Write into a header [chunk, 8] which chunks have one class of cells [cell], -1 elsewhere."""
    cells = np.minimum(np.arange(len(header) * CHUNK), max(len(class_of_cell) - 1, 0))
    numbers = class_of_cell[cells].reshape(len(header), CHUNK)
    header[:, 7] = np.where((numbers == numbers[:, :1]).all(axis=1), numbers[:, 0], -1)


# Specs ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AffineShape:
    """Launch shape: `kernel` "lanes" (CPU_LANES cells of a work-item), "cell" (one) or "line" (`cells` of a
    work-group, `threads` work-items of each); `ahead`: chunks by which values are asked for in advance.
    """

    kernel: str
    cells: int = CHUNK
    threads: int = 1
    ahead: int = 0

    @property
    def local_size(self) -> int:
        return {"lanes": CHUNK // CPU_LANES, "cell": 64, "line": self.cells * self.threads}[self.kernel]

    @property
    def launch(self) -> Launch:
        """Cells of a chunk, and work-items for them."""
        return Launch(CHUNK, {"lanes": CHUNK // CPU_LANES, "cell": CHUNK, "line": CHUNK * self.threads}[self.kernel])


def affine_shape(dim: int, degree: int, real_bytes: int, limits) -> AffineShape | None:
    """The shape that suits a device of DeviceLimits, or None where not even one cell fits."""
    if not limits.is_gpu:
        return AffineShape("lanes")
    cell_bytes = (degree + 1) ** dim * real_bytes
    ahead = int(AHEAD_BYTES / (CHUNK * cell_bytes)) if limits.ptx and degree <= AHEAD_DEGREES[dim] else 0
    if degree <= CELL_DEGREES[dim]:
        return AffineShape("cell", ahead=ahead)
    cells = next((c for c in (32, 16, 8, 4, 2, 1) if c * cell_bytes <= limits.local_bytes), 0)
    if not cells:
        return None
    lines, each = (degree + 1) ** (dim - 1), LINES_EACH[dim].get(degree, USUAL_LINES[dim])
    most = min(GPU_THREADS, limits.max_work_group) // cells
    return AffineShape("line", cells, max(1, min(-(-lines // each), most)), ahead)


def affine_spec(dim: int, degree: int, theta: float, precision: str, shape: AffineShape) -> KernelSpec:
    """Spec of `sipg_affine_lanes`, `_cell` or `_line`."""
    count = degree + 1
    macros = {
        "DIM": dim,
        "N": count,
        "NDOF": count**dim,
        "NFACETS": 2 * dim,
        "CODE_BITS": code_bits(dim),
        "AHEAD": shape.ahead,
        "UNROLL": '_Pragma("unroll")',
    }
    local_bytes = 0
    if shape.kernel == "lanes":
        macros["LANES"] = CPU_LANES
    if shape.kernel == "line":
        macros |= {"CELLS": shape.cells, "THREADS": shape.threads}
        local_bytes = shape.cells * count**dim * (8 if precision == "double" else 4)
    name = f"sipg_affine_{shape.kernel}"
    tables = line_tables(degree, theta)
    sources, sizes = ("sipg_affine.clh", f"{name}.cl"), (shape.local_size, local_bytes)
    return KernelSpec(name, sources, macros, tables, "", precision, *sizes, AFFINE, shape.launch)


@dataclass(frozen=True)
class SimplexTables:
    """Tables of `sipg_affine_simplex.cl` for a cell shape and a degree; vertices of a simplex count from 0 to dim."""

    cell: str
    degree: int

    @cached_property
    def element(self) -> ReferenceElement:
        return ReferenceElement(self.cell, self.degree)

    @cached_property
    def gradient_element(self) -> ReferenceElement:
        """The element of degree p - 1, at whose nodes gradients are taken."""
        return ReferenceElement(self.cell, self.degree - 1)

    @property
    def dim(self) -> int:
        return self.element.dim

    @cached_property
    def pairs(self) -> np.ndarray:
        """Row [vertex, vertex] of the metric of each pair of vertices; 0 on the diagonal."""
        rows = np.zeros((self.dim + 1, self.dim + 1), dtype=np.int32)
        upper = np.triu_indices(self.dim + 1, 1)
        rows[upper] = np.arange(len(upper[0]))
        return rows + rows.T

    def first_facet(self, element: ReferenceElement) -> np.ndarray:
        """Nodes of an element on the facet opposite vertex 0, whose restrictions to it are not zero."""
        if element.degree == 0:
            return np.zeros(1, dtype=np.int32)
        return np.flatnonzero(barycentric(element.nodes)[:, 0] < ZERO).astype(np.int32)

    @cached_property
    def gauge(self) -> np.ndarray:
        """Vertex [gradient node] of the smallest edge, face or cell that holds a node."""
        return np.argmax(barycentric(self.gradient_element.nodes) > ZERO, axis=1).astype(np.int32)

    @cached_property
    def gradient(self) -> np.ndarray:
        """Derivative [gradient node, vertex, node] along the edge from the node's gauge to each vertex."""
        table = np.moveaxis(self.element.tabulate(self.gradient_element.nodes, 1)[1:], 0, -1)
        corners = np.concatenate([np.zeros((1, self.dim)), np.eye(self.dim)])
        edges = corners[None] - corners[self.gauge][:, None]
        found = np.einsum("abd,avd->avb", table, edges)
        return np.where(np.abs(found) < ZERO, 0.0, found)

    @cached_property
    def tables(self) -> dict[str, np.ndarray]:
        """Tables by the names the kernel needs."""
        rule, facets = cell_quadrature(self.cell, 2 * self.degree), facet_quadrature(self.cell, 2 * self.degree)[0][0]
        slopes, nodes = self.gradient_element, self.first_facet(self.element)
        on_facet, vertices = self.first_facet(slopes), vertex_orders(self.dim)
        order = node_orders(slopes)
        lift = np.full((self.dim + 1, slopes.num_basis), -1, dtype=np.int32)
        for f in range(self.dim + 1):
            lift[f, order[f, on_facet]] = np.arange(len(on_facet))
        trace, mixed = (e.tabulate(facets.points, 0)[0][:, n] for e, n in ((self.element, nodes), (slopes, on_facet)))
        return {
            "GRADIENT": self.gradient,
            "GAUGE": self.gauge,
            "ORDER": node_orders(self.element),
            "GRADIENT_ORDER": order,
            "PAIR": self.pairs,
            "NEIGHBOUR_PAIR": self.pairs[vertices[:, :1], vertices],
            "FACET_NODES": nodes,
            "FACET_GRADIENTS": on_facet,
            "LIFT_OF": lift,
            "FACET_MASS": means(facets.weights, trace, trace),
            "MIXED_MASS": means(facets.weights, mixed, trace),
            "GRADIENT_MASS": means(rule.weights, *2 * (slopes.tabulate(rule.points, 0)[0],)),
            "MASS": means(rule.weights, *2 * (self.element.tabulate(rule.points, 0)[0],)),
        }

    @property
    def sizes(self) -> dict[str, int]:
        """Macros of the sizes of tables."""
        tables = self.tables
        return {
            "DIM": self.dim,
            "NB": self.element.num_basis,
            "NG": self.gradient_element.num_basis,
            "NF": len(tables["FACET_NODES"]),
            "NFG": len(tables["FACET_GRADIENTS"]),
        }


def means(weights: np.ndarray, row: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Mean [row function, column function] of products of values [point, function], summed in extended precision."""
    share = (weights / weights.sum()).astype(np.longdouble)
    return ((row * share[:, None]).T @ column.astype(np.longdouble)).astype(float)


def affine_simplex_specs(disc, classes: bool, reaction: bool, automatic: bool) -> dict[str, KernelSpec]:
    """Specs of `sipg_affine_simplex` and `sipg_affine_simplex_data` of an InteriorPenalty."""
    tables = SimplexTables(disc.mesh.cell, disc.element.degree)
    rolled = tables.degree > MOST_UNROLLED[tables.cell]
    size, room = GROUP[disc.limits.is_gpu], disc.limits.local_bytes
    while size > 32 and local_bytes(tables, rolled, disc.options.precision, size) > room:
        size //= 2
    precision = disc.options.precision
    product = simplex_product_spec(tables, disc.theta, classes, reaction, automatic, precision, size, rolled)
    sources = ("geometry.clh", "point.clh", "sipg_flux.clh", "sipg_affine_simplex_data.cl")
    macros = {**disc._macros(), **disc.flux_macros, "TABLE": "__constant"}
    name, numbers = "sipg_affine_simplex_data", {"AUX_START": disc.auxiliary.starts}
    data = KernelSpec(name, sources, macros, numbers, disc.physics_text, precision, 32, arguments=AFFINE_DATA)
    return {product.name: product, data.name: data}


def simplex_product_spec(
    tables: SimplexTables,
    theta: int,
    classes: bool,
    reaction: bool,
    automatic: bool,
    precision: str,
    size: int,
    rolled: bool = False,
) -> KernelSpec:
    """Spec of `sipg_affine_simplex`; size: work-items of a work-group."""
    local = local_bytes(tables, rolled, precision, size)
    macros = {
        **tables.sizes,
        "CLASSES": int(classes),
        "REACTION": int(reaction),
        "AUTOMATIC": int(automatic),
        "ROLLED": int(rolled),
        "THETA": theta,
        "GROUP": size,
    }
    used = {name: table for name, table in tables.tables.items() if reaction or name != "MASS"}
    sources = ("sipg_affine_simplex.clh", "sipg_affine_simplex.cl")
    return KernelSpec("sipg_affine_simplex", sources, macros, used, "", precision, size, local, AFFINE_SIMPLEX)


def local_bytes(tables: SimplexTables, rolled: bool, precision: str, size: int) -> int:
    """Local memory of a work-group of `size` work-items, if facets are `rolled`: sums of a cell and of its facets."""
    sums = tables.element.num_basis + (tables.dim + 1) * tables.sizes["NFG"]
    return int(rolled) * size * sums * REAL_BYTES[precision]


# Cells ----------------------------------------------------------------------------------------------------------------


def links(neighbour: np.ndarray, code: np.ndarray, kinds: np.ndarray) -> np.ndarray:
    """Neighbours behind facets as the product reads them [facet, stride], from the discretization's arrays."""
    kind = kinds[np.maximum(-2 - neighbour, 0), 0] if len(kinds) else np.full(neighbour.shape, -1)
    outside = np.where((neighbour < -1) & (kind >= 0), DIRICHLET, NATURAL)
    return np.where(neighbour >= 0, 4 * neighbour + code, outside).astype(np.int32)


def cell_classes(data: np.ndarray, behind: np.ndarray, num_cells: int, pairs: np.ndarray):
    """Classes of cells with congruent neighbours: class_of [cell] uint16, data [row, class]; None if they do not pay.

    data [pair + 1, extended cell], behind [facet, cell] as the product reads them; pairs [facet, vertex] rows of the
    metric of a neighbour, in its order.
    """
    most = min(MOST_CLASSES, int(num_cells * MOST_SHARE))
    rows = np.ascontiguousarray(data.T)
    scale = np.abs(rows).max(axis=1, initial=0.0)
    shapes = group(rows, TOLERANCE * scale, np.zeros(len(rows), dtype=np.int64), most) if most else None
    if shapes is None:
        return None
    label = shapes.shape[:num_cells].astype(np.int64)
    for link in behind[:, :num_cells]:
        beyond = np.where(link >= 0, 4 * shapes.shape[np.maximum(link >> 2, 0)] + (link & 3), link) + 2
        label = np.unique(label * (beyond.max() + 1) + beyond, return_inverse=True)[1].ravel()
    _, first, class_of = np.unique(label, return_index=True, return_inverse=True)
    if len(first) > most:
        return None
    values = [data[:, shapes.representative[shapes.shape[first]]]]
    for link in behind[:, first]:
        other = shapes.representative[shapes.shape[np.maximum(link >> 2, 0)]]
        values.append(data[pairs[np.where(link >= 0, link & 3, 0), 1:].T, other])
    return class_of.ravel().astype(np.uint16), np.concatenate(values)

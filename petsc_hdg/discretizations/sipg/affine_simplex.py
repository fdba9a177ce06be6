"""Interior penalty with constant coefficients on straight simplices: tables, specs, classes of cells."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...codegen import KernelSpec
from ...codegen.preamble import REAL_BYTES
from ...reference import ReferenceElement, cell_quadrature, facet_quadrature
from ..congruence import group
from .arguments import AFFINE_DATA, AFFINE_SIMPLEX
from .simplex import barycentric, node_orders, vertex_orders

ZERO = 1e-13  # entries of tables smaller than this are round-off
TOLERANCE = 1e-13  # of the largest number of a cell, by which those of congruent cells may differ
MOST_CLASSES = 2048  # whose data stay in cache
MOST_SHARE = 1 / 8  # classes over cells, from which on they do not pay
GROUP = {True: 128, False: 32}  # work-items of a work-group, on a GPU or not
MOST_UNROLLED = {"triangle": 4, "tetrahedron": 2}  # degree up to which registers hold the facets' sums
DIRICHLET, NATURAL = -1, -2  # behind a facet


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
    sources = ("geometry.clh", "geometry_nodes.clh", "point.clh", "sipg_flux.clh", "sipg_affine_simplex_data.cl")
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

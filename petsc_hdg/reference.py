"""Lagrange elements on the reference cells, with the place of every degree of freedom, and their tables.

Quadrature rules are those of the reference cells and of each of their facets.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import basix
import numpy as np

CELLS = ("triangle", "quadrilateral", "tetrahedron", "hexahedron")
BELOW_APEX = 1e-7  # distance at which derivatives at the apex of a pyramid are taken
ROUND_OFF = 1e-14  # entries this close to a whole number are that number: kernels can leave out exact zeros


def cell_dim(cell: str) -> int:
    """Dimension of a reference cell by name."""
    return len(basix.topology(basix.CellType[cell])) - 1


def facet_cell(cell: str) -> str:
    """Name of the reference cell of a facet, of cells that have facets of one shape: `interval`, `triangle` or
    `quadrilateral`."""
    return entity_shapes(cell)[-2][0]


def entity_shapes(cell: str) -> list[list[str]]:
    """Shapes of the sub-entities of a reference cell: entity_shapes[dimension][sub-entity] is a name."""
    return [[kind.name for kind in kinds] for kinds in basix.cell.subentity_types(basix.CellType[cell])]


def facet_count(cell: str) -> int:
    """Number of facets of a reference cell."""
    return len(basix.topology(basix.CellType[cell])[cell_dim(cell) - 1])


def on_facets(cell: str, points: np.ndarray) -> np.ndarray:
    """Points [point, dim - 1] of the reference facet on each facet of a reference cell [facet, point, dim]."""
    kind, dim = basix.CellType[cell], cell_dim(cell)
    vertices = basix.geometry(kind)
    corners = vertices[[facet[:dim] for facet in basix.topology(kind)[dim - 1]]]
    return corners[:, :1] + points @ (corners[:, 1:] - corners[:, :1])


@dataclass(frozen=True)
class ReferenceElement:
    """Lagrange element P_k (simplices) or Q_k (tensor cells), nodes at warped Gauss-Lobatto points (k = 0: centroid).

    Prisms have products of P_k and polynomials along the height, pyramids the rational functions that are P_k and Q_k
    on their faces (Fuentes, Keith, Demkowicz and Nagaraj 2015). Numbering of vertices, edges, faces and basis functions
    is basix's.
    """

    cell: str  # several joined by " and ": what is the same for all of them
    degree: int

    def _basix(self):
        """The element in basix, made anew each time: basix complains of any that live until the interpreter ends."""
        return basix.create_element(
            basix.ElementFamily.P,
            basix.CellType[self.cell],
            self.degree,
            basix.LagrangeVariant.equispaced if self._is_moved else basix.LagrangeVariant.gll_warped,
            discontinuous=self.degree == 0,
        )

    @property
    def _is_moved(self) -> bool:
        """True where basix has equispaced nodes alone, and other cells have other nodes on the faces."""
        return self.cell == "pyramid" and self.degree > 2

    @property
    def dim(self) -> int:
        return cell_dim(self.cell)

    @property
    def num_basis(self) -> int:
        """Number of functions, of several shapes the largest."""
        if " and " in self.cell:
            return max(ReferenceElement(cell, self.degree).num_basis for cell in self.cell.split(" and "))
        return len(self.nodes)

    @cached_property
    def nodes(self) -> np.ndarray:
        """Interpolation points [basis, dim] in reference coordinates."""
        points = np.array(self._basix().points)
        if self._is_moved:
            ends = basix.geometry(basix.CellType[self.cell])
            line = ReferenceElement("interval", self.degree).nodes[2:]
            base = ReferenceElement("quadrilateral", self.degree)
            for (first, last), on in zip(
                basix.topology(basix.CellType[self.cell])[1], self.entity_dofs[1], strict=True
            ):
                points[on] = ends[first] + line * (ends[last] - ends[first])
            points[self.entity_dofs[2][0], :2] = base.nodes[base.entity_dofs[2][0]]
        return points

    @cached_property
    def entity_dofs(self) -> list[list[list[int]]]:
        """Basis functions that belong to each sub-entity: entity_dofs[dimension][sub-entity] is a list."""
        return [[list(on) for on in entities] for entities in self._basix().entity_dofs]

    def tabulate(self, points: np.ndarray, derivatives: int = 1) -> np.ndarray:
        """Basis and derivatives [1 + dim, point, basis] at reference points [point, dim].

        Without derivatives (`derivatives=0`): [1, point, basis]. At the apex of pyramids, where those of rational
        functions depend on the direction, derivatives are the limits along the axis.
        """
        points, element = np.ascontiguousarray(points), self._basix()
        table = np.asarray(element.tabulate(derivatives, points)[..., 0])
        if self.cell == "pyramid" and derivatives:
            below = np.array([[BELOW_APEX / 2, BELOW_APEX / 2, 1 - BELOW_APEX]])
            table[1:, points[:, 2] > 1 - BELOW_APEX] = element.tabulate(derivatives, below)[1:, :, :, 0]
        return table @ self._of_nodes if self._is_moved else table

    @cached_property
    def _of_nodes(self) -> np.ndarray:
        """Coefficients [function of basix, function] of the functions of `nodes`."""
        return np.linalg.inv(np.asarray(self._basix().tabulate(0, self.nodes)[0, ..., 0]))


@dataclass(frozen=True)
class Tabulation:
    """Values [point, basis] and reference gradients [point, basis, dim]."""

    values: np.ndarray
    gradients: np.ndarray


def table_of(element: ReferenceElement, points: np.ndarray, cell: str) -> np.ndarray:
    """Table [1 + dim, point, basis] of an element at points of a cell; of several shapes that of this one's functions,
    then zeros."""
    table = ReferenceElement(cell, element.degree).tabulate(points, 1)
    return np.pad(table, ((0, 0), (0, 0), (0, element.num_basis - table.shape[2])))


def tabulate(element: ReferenceElement, points: np.ndarray, cell: str = "") -> Tabulation:
    """Tabulate an element at reference points [point, dim], of several shapes the functions of one: see table_of."""
    table = table_of(element, points, cell or element.cell)
    table = np.where(np.abs(table - np.rint(table)) < ROUND_OFF, np.rint(table), table)
    return Tabulation(np.ascontiguousarray(table[0]), np.ascontiguousarray(np.moveaxis(table[1:], 0, -1)))


@dataclass(frozen=True)
class Quadrature:
    """Points [point, dim] in reference coordinates of the cell, weights [point] of the reference cell or facet."""

    points: np.ndarray
    weights: np.ndarray

    @property
    def num_points(self) -> int:
        return len(self.weights)


def _rule(cell: str, degree: int) -> Quadrature:
    points, weights = basix.make_quadrature(basix.CellType[cell], degree)
    return Quadrature(np.asarray(points), np.asarray(weights))


def cell_quadrature(cell: str, degree: int) -> Quadrature:
    """Rule exact for polynomials of total (tensor cells: each) degree `degree`."""
    return _rule(cell, degree)


def symmetric_quadrature(cell: str, degree: int) -> Quadrature:
    """A rule for norms, the same for any order of the cell's vertices.

    Above degree 8 there is no symmetric rule for tetrahedra in basix: the rule of degree 8 is applied to the four parts
    that the centroid makes, which is as accurate for smooth functions.
    """
    if cell != "tetrahedron" or degree <= 8:
        return _rule(cell, degree)
    rule = _rule(cell, 8)
    corners = basix.geometry(basix.CellType[cell])
    barycentric = np.column_stack([1 - rule.points.sum(axis=1), rule.points])
    parts = []
    for left_out in range(4):
        part = corners.copy()
        part[left_out] = corners.mean(axis=0)
        parts.append(barycentric @ part)
    return Quadrature(np.concatenate(parts), np.tile(rule.weights / 4, 4))


def facet_quadrature(cell: str, degree: int) -> tuple[list[Quadrature], np.ndarray]:
    """Rules on each facet of a reference cell, or of several, joined by " and ", in turn.

    Returns
        rules    one Quadrature a facet: points in the cell's reference coordinates, weights that measure it there;
                 those of facets of two shapes have as many points, some without weight
        normals  [facet, dim] outward unit normals of the reference cell
    """
    cells = cell.split(" and ")
    given = {shape: _rule(shape, degree) for name in cells for shape in entity_shapes(name)[-2]}
    most, rules, normals = max(rule.num_points for rule in given.values()), [], []
    for name in cells:
        kind, dim = basix.CellType[name], cell_dim(name)
        for facet, shape in zip(basix.topology(kind)[dim - 1], entity_shapes(name)[dim - 1], strict=True):
            corner, rule = basix.geometry(kind)[facet], given[shape]
            tangents = np.stack([corner[i + 1] - corner[0] for i in range(dim - 1)], axis=1)
            measure = np.sqrt(np.linalg.det(tangents.T @ tangents))
            more = most - rule.num_points
            points = np.pad(rule.points, ((0, more), (0, 0)), mode="edge")
            rules.append(Quadrature(corner[0] + points @ tangents.T, np.pad(rule.weights, (0, more)) * measure))
        normals.append(basix.cell.facet_outward_normals(kind))
    return rules, np.concatenate(normals)


def inside(cell: str, points: np.ndarray, distance: float) -> np.ndarray:
    """Points [point, dim] of a reference cell, those on its boundary moved inwards by a small distance, of
    prisms and pyramids all."""
    if is_tensor(cell):
        return np.clip(points, distance, 1 - distance)
    if cell in ("prism", "pyramid"):
        middle = basix.geometry(basix.CellType[cell]).mean(axis=0)
        return points + 4 * distance * (middle - points)
    barycentric = np.maximum(np.column_stack([1 - points.sum(axis=1), points]), distance)
    return barycentric[:, 1:] / barycentric.sum(axis=1, keepdims=True)


def gauss_lobatto(degree: int) -> tuple[np.ndarray, np.ndarray]:
    """Points [degree + 1], ascending on (0, 1), and weights: exact for polynomials of degree 2 `degree` - 1."""
    points, weights = basix.make_quadrature(
        basix.CellType.interval, 2 * degree - 1, basix.QuadratureType.gll, basix.PolysetType.standard
    )
    order = np.argsort(points[:, 0])
    return np.ascontiguousarray(points[order, 0]), np.ascontiguousarray(weights[order])


def collapse(cell: str, points: np.ndarray) -> np.ndarray:
    """Points [point, dim] of a reference cell from those of the square or cube, some of whose edges or faces collapse:
    functions of degree k on the cell are then some of degree k in each direction."""
    found, (x, y) = points.copy(), points[:, :2].T
    if cell in ("triangle", "tetrahedron", "prism"):  # facets of a triangle keep their numbers
        found[:, 0], found[:, 1] = x * (1 - y), (1 - x) * (1 - y)
    if cell in ("tetrahedron", "pyramid"):
        found[:, :2] *= 1 - points[:, 2:]
    return found


def tensor_points(points: np.ndarray, dim: int) -> np.ndarray:
    """Points [n^dim, dim] of the tensor product of `points` [n], the first coordinate fastest."""
    grids = np.meshgrid(*[points] * dim, indexing="ij")
    return np.stack([g.ravel(order="F") for g in grids], axis=1)


def tensor_weights(weights: np.ndarray, dim: int) -> np.ndarray:
    """Weights [n^dim] at `tensor_points`."""
    product = np.ones(1)
    for _ in range(dim):
        product = np.outer(weights, product).ravel()
    return product


def lobatto_cell_quadrature(cell: str, degree: int) -> Quadrature:
    """The rule on a quadrilateral or hexahedron, points in tensor order."""
    points, weights = gauss_lobatto(degree)
    dim = cell_dim(cell)
    return Quadrature(tensor_points(points, dim), tensor_weights(weights, dim))


def lobatto_facet_quadrature(cell: str, degree: int) -> tuple[list[Quadrature], np.ndarray]:
    """Rules on each facet of a quadrilateral or hexahedron, points in its tensor order, and outward normals."""
    points, weights = gauss_lobatto(degree)
    dim = cell_dim(cell)
    places = on_facets(cell, tensor_points(points, dim - 1))
    scaled = tensor_weights(weights, dim - 1)
    normals = np.asarray(basix.cell.facet_outward_normals(basix.CellType[cell]))
    return [Quadrature(p, scaled) for p in places], normals


def is_tensor(cell: str) -> bool:
    """True if a cell is a tensor product of intervals."""
    return cell in ("interval", "quadrilateral", "hexahedron")

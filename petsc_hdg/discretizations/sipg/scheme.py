"""Interior penalty: discontinuous elements, spectral on tensor cells; the product itself is the scheme."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...errors import PhysicsError, collectively
from ...reference import lobatto_cell_quadrature, lobatto_facet_quadrature, on_facets, tensor_points
from ..base import cell_fastest, check_one_degree, padded
from ..lines import tensor_order
from ..primal import PrimalDiscretization
from ..saddle_points import dependences
from .interleaved import create_section, discontinuous_dofmap, num_chunks
from .neighbours import MOST_NATURAL, Orientations, find_neighbours
from .specs import SIPGSpecs

DEGREES = {"triangle": (1, 6), "tetrahedron": (1, 6), "quadrilateral": (1, 40), "hexahedron": (1, 8)}


class InteriorPenalty(SIPGSpecs, PrimalDiscretization):
    """Numbering, arrays and (from SIPGSpecs) kernel specs of the scheme `sipg_gpu`. Making one is collective.

    A cell's rows are component by component, and nodes in each: in tensor order, x fastest, on quadrilaterals and
    hexahedra, in basix' order on simplices. stride covers the extended cells: owned ones, then ghosts.

    neighbours: what lies behind each facet; given, where it is known.   orientations: of the cell shape's facets.
    """

    name = "sipg_gpu"
    has_penalties = True

    def __init__(self, mesh, physics, options, limits=None, neighbours=None):
        self.degrees = degrees_of(mesh.cell)
        with collectively(mesh.comm):
            super().__init__(mesh, physics, options, limits)
            check_sipg(physics, mesh.dim)
        self.orientations = Orientations(mesh.cell)
        self.neighbours = neighbours or find_neighbours(mesh, physics, self.orientations)
        self.stride = padded(self.neighbours.num_extended)

    # Numbering -----------------------------------------------------------------------------------------------------

    @cached_property
    def _numbering(self):
        return discontinuous_dofmap(self.mesh, self.spaces, self.neighbours, self.row_of_dof)

    @property
    def dofmap(self):
        """Numbering of degrees of freedom (collective)."""
        return self._numbering[0]

    def _create_section(self, dm):
        return create_section(self.mesh, self.spaces, dm)

    @property
    def extended_dofs(self) -> np.ndarray:
        """Compact numbers [extended cell, dof]."""
        return self._numbering[1]

    @property
    def element(self):
        """The element of every component."""
        return self.spaces[0].element

    @cached_property
    def tensor_order(self) -> np.ndarray:
        """basix' number [node] of each node of a cell's rows."""
        nodes = self.element.nodes
        if not self.is_tensor:
            return np.arange(len(nodes))
        return tensor_order(nodes)

    @cached_property
    def row_of_dof(self) -> np.ndarray:
        """Row [dof] of each degree of freedom of a cell (field by field, basix' basis, component fastest)."""
        node = np.argsort(self.tensor_order)
        rows = [(s.first_component + np.arange(s.components)) * self.num_nodes + node[:, None] for s in self.spaces]
        return np.concatenate([r.ravel() for r in rows])

    @property
    def num_nodes(self) -> int:
        """Nodes of a cell, NB."""
        return self.element.num_basis

    @property
    def num_chunks(self) -> int:
        return num_chunks(self.mesh.num_cells)

    @property
    def theta(self) -> int:
        return self.options.sipg_theta

    # Quadrature ----------------------------------------------------------------------------------------------------

    @property
    def collocated(self) -> bool:
        """True if the quadrature points are the nodes: on tensor cells, unless the user gives a quadrature degree."""
        return self.is_tensor and self.options.quadrature_degree < 0

    @property
    def quadrature_degree(self) -> int:
        return 2 * self.element.degree - 1 if self.collocated else super().quadrature_degree

    @cached_property
    def quadrature(self):
        if self.collocated:
            return lobatto_cell_quadrature(self.mesh.cell, self.element.degree)
        return super().quadrature

    @cached_property
    def facet_rules(self):
        """Rules on each facet, and outward normals [F, dim] of the reference cell."""
        if self.collocated:
            return lobatto_facet_quadrature(self.mesh.cell, self.element.degree)
        return super().facet_rules

    @cached_property
    def facet_permutations(self) -> np.ndarray:
        """Point of the neighbour's facet [orientation, point] at each facet point."""
        rule = self.facet_rules[0][0]
        corners = on_facets(self.mesh.cell, np.zeros((1, self.dim - 1)))[0]
        ends = on_facets(self.mesh.cell, np.eye(self.dim - 1))[0] - corners
        return self.orientations.permutations((rule.points - corners) @ np.linalg.pinv(ends))

    @cached_property
    def facet_nodes(self) -> np.ndarray:
        """Node of a cell's rows [F, point] at each facet point of the collocated rule."""
        nodes = tensor_points(np.sort(np.unique(np.round(self.element.nodes[:, 0], 12))), self.dim)
        points = np.stack([rule.points for rule in self.facet_rules[0]])
        return np.argmin(np.abs(points[:, :, None] - nodes).sum(axis=-1), axis=2).astype(np.int32)

    # Arrays, cell fastest ------------------------------------------------------------------------------------------

    def cell_dofs(self) -> np.ndarray:
        """Compact numbers [dof, stride] of each extended cell's degrees of freedom."""
        return cell_fastest(self.extended_dofs, self.stride)

    def nodes(self) -> np.ndarray:
        return self.neighbours.nodes

    def cell_nodes(self) -> np.ndarray:
        return cell_fastest(self.neighbours.cell_nodes, self.stride)

    def neighbour_rows(self) -> np.ndarray:
        """Neighbour behind each facet [F, stride], see Neighbours.neighbour."""
        return cell_fastest(self.neighbours.neighbour, self.stride)

    def code_rows(self, walls: bool = False) -> np.ndarray:
        """The neighbour's facet times the number of orientations, plus the orientation [F, stride]; with `walls` these
        times the number of such codes are added, as sipg_flux.clh says."""
        code = self.neighbours.facet * self.orientations.count + self.neighbours.orientation
        if walls:
            code = code + self.neighbours.wall * (self.num_facets_of_cell * self.orientations.count)
        return cell_fastest(code.astype(np.int32), self.stride)

    def chunk_lists(self) -> tuple[np.ndarray, np.ndarray]:
        """Chunks without ghost neighbours, and the others."""
        touched = np.zeros(self.num_chunks, bool)
        touched[np.flatnonzero(self.neighbours.has_ghost) // 32] = True
        return np.flatnonzero(~touched).astype(np.int32), np.flatnonzero(touched).astype(np.int32)

    def element_numbers(self, numbers: np.ndarray | None = None) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """As in PrimalDiscretization: rows of each cell, with columns of itself and of the cell behind each facet."""
        numbers = self.dofmap.global_numbers if numbers is None else numbers
        (own,), _ = super().element_numbers(numbers)
        extended = np.full_like(own, -1)
        extended[:, : self.neighbours.num_extended] = numbers[self.extended_dofs].T
        behind = [np.where(cells >= 0, extended[:, np.maximum(cells, 0)], -1) for cells in self.neighbour_rows()]
        return [own] * (1 + len(behind)), [own, *behind]

    # Costs ---------------------------------------------------------------------------------------------------------

    @property
    def _point_costs(self) -> tuple[float, float]:
        if not self.is_tensor:
            return super()._point_costs
        functions = self.num_nodes * len(self.spaces)  # sums factorize
        return 4 * self.dim * functions ** (1 / self.dim) * functions, 2.0 * functions

    def facet_sides(self) -> np.ndarray:
        """Sides that a cell evaluates on each of its facets [num_cells, facet]: its own, and its neighbour's."""
        near = self.neighbours.neighbour[: self.mesh.num_cells]
        essential = (self.neighbours.kinds[:, :-1] >= 0).any(axis=1)
        sides, boundary = np.where(near >= 0, 2.0, 0.0), near < -1
        sides[boundary] = essential[-2 - near[boundary]]
        return sides


def degrees_of(cell: str) -> tuple[int, int]:
    """Lowest and highest degree on a cell shape."""
    return DEGREES[cell]


def check_sipg(physics, dim: int) -> None:
    """Raise PhysicsError for a physics in `dim` dimensions that sipg_gpu does not discretize."""
    check_one_degree(physics, "sipg_gpu")
    if len(physics.natural) > MOST_NATURAL:
        raise PhysicsError(
            f"physics '{physics.name}' has {len(physics.natural)} natural conditions; sipg_gpu takes {MOST_NATURAL}: "
            "join boundaries under one name"
        )
    _check_own_diffusion(physics, dim)


def _check_own_diffusion(physics, dim: int) -> None:
    """Raise PhysicsError for an equation that diffuses another component alone, which depends on this one in turn.

    Penalties are of the jumps of an equation's own component, so that nothing would hold those of the other one:
    u_t = v, v_t = Δu grows without bounds where Δu belongs to the equation of v.
    """
    count = physics.num_components
    if count == 1:
        return
    depends = dependences(physics, dim)
    diffuses, follows = depends[-1], np.any(depends, axis=0)
    for c, other in np.argwhere(diffuses & follows.T):
        if not diffuses[c, c]:
            names = [f"component {i} ('{_field(physics, i)}')" for i in (c, other)]
            raise PhysicsError(
                f"physics '{physics.name}' diffuses {names[1]} in the equation of {names[0]}, which has no diffusion "
                "of its own, and penalties are of an equation's own component: exchange the two equations (f0 and f1), "
                "or give -fe_backend cg_gpu or hdg_gpu"
            )


def _field(physics, component: int) -> str:
    return next(f.name for f in physics.fields if f.offset <= component < f.offset + f.components)

"""Interior penalty: discontinuous elements, spectral on tensor cells; the product itself is the scheme."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...codegen import KernelSpec, Launch, in_roles
from ...errors import PhysicsError, collectively
from ...mesh.shapes import CELLS, SHAPES
from ...reference import is_tensor, lobatto_cell_quadrature, lobatto_facet_quadrature, on_facets, tensor_points
from ..base import STEP_INWARDS, cell_fastest, padded
from ..block_specs import block_specs
from ..lines import tensor_order
from ..primal import PrimalDiscretization
from ..symmetry import dependences, foreign_diffusion
from .arguments import FACETS_OF_CELLS, LISTED_FACETS, PENALTY
from .interleaved import CHUNK, create_section, discontinuous_dofmap
from .mixed import FacetsOfShapes
from .neighbours import MOST_NATURAL, Orientations, find_neighbours
from .simplex import simplex_specs
from .tensor import tensor_specs

PLAIN = {  # sources -> their kernels: programs of what is used together
    in_roles("sipg_facet.cl"): ("sipg_facet_residual", "sipg_facet_action"),
    (*in_roles("sipg_facet.cl", "matrix"), "sipg_facet_coupling.cl"): ("sipg_facet_matrix", "sipg_facet_coupling"),
    ("point_block.clh", *in_roles("sipg_facet.cl", "diagonal")): ("sipg_facet_diagonal",),
}
SAME = 1e-9  # distance of reference coordinates that are the same
STEEP = 0.5  # each of two cells closes half of a jump
DEGREES = {"triangle": (1, 6), "tetrahedron": (1, 6), "quadrilateral": (1, 40), "hexahedron": (1, 8)}
DEGREES |= {"prism": (1, 3), "pyramid": (1, 3)}


def reads_gradient(physics) -> bool:
    """True if f0 depends on the gradient."""
    terms = physics.terms
    if terms.jacobian is not None and any(term.kind == "g1" for term in terms.jacobian):
        return True
    return any(term.kind == "f0" and "u_x" in term.program.inputs for term in terms.residual)


class InteriorPenalty(PrimalDiscretization):
    """Numbering, arrays and kernel specs of the scheme `sipg_gpu`. Making one is collective.

    A cell's rows are component by component, and the nodes of its field in each: in tensor order, x fastest, on
    quadrilaterals and hexahedra, in basix' order on simplices. stride covers the extended cells: owned ones, then
    ghosts.

    neighbours: what lies behind each facet; given, where it is known.   orientations: of the cell shape's facets.
    """

    name = "sipg_gpu"
    shapes, mixes = SHAPES, True
    has_penalties = True
    element_of_cell = None  # number [cell] of the element that each cell is a part of; None: all are elements

    def __init__(self, mesh, physics, options, limits=None, neighbours=None):
        self.degrees = degrees_of(mesh.cell)
        with collectively(mesh.comm):
            super().__init__(mesh, physics, options, limits)
            check_sipg(physics, mesh.dim)
        self.orientations = Orientations(mesh.cell)
        self.neighbours = neighbours or find_neighbours(mesh, physics, self.orientations)
        self.stride = padded(self.neighbours.num_extended)

    @classmethod
    def on(cls, mesh, physics, options, limits) -> InteriorPenalty:
        """As in Discretization: of cells with facets of one kind, or of several."""
        is_mixed = cls is InteriorPenalty and (len(mesh.parts) > 1 or mesh.cell not in CELLS)
        return (MixedPenalty if is_mixed else cls)(mesh, physics, options, limits)

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
        """The element of the fields of highest degree: that of all where they have one degree."""
        return max((space.element for space in self.spaces), key=lambda element: element.degree)

    @property
    def has_one_element(self) -> bool:
        return all(space.element == self.element for space in self.spaces)

    @property
    def tensor_order(self) -> np.ndarray:
        """basix' number [node] of each node of the rows of a component of `element`."""
        return self._order(self.element)

    def _order(self, element) -> np.ndarray:
        return tensor_order(element.nodes) if self.is_tensor else np.arange(element.num_basis)

    @cached_property
    def row_of_dof(self) -> np.ndarray:
        """Row [dof] of each degree of freedom of a cell (field by field, basix' basis, component fastest)."""
        rows = [
            s.first_dof + np.arange(s.components) * s.element.num_basis + np.argsort(self._order(s.element))[:, None]
            for s in self.spaces
        ]
        return np.concatenate([r.ravel() for r in rows])

    @property
    def num_nodes(self) -> int:
        """Nodes of `element`, NB."""
        return self.element.num_basis

    @property
    def num_chunks(self) -> int:
        """Chunks of the owned cells."""
        return -(-self.mesh.num_cells // CHUNK)

    @property
    def theta(self) -> int:
        return self.options.sipg_theta

    # Quadrature ----------------------------------------------------------------------------------------------------

    @property
    def collocated(self) -> bool:
        """True if the quadrature points are the nodes: on tensor cells with fields of one degree, unless the user gives
        a quadrature degree."""
        return self.is_tensor and self.options.quadrature_degree < 0 and self.has_one_element

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
        """Point of the neighbour's facet [orientation, point] at each facet point, of each kind of facets in turn."""
        rows, rules = [], self.facet_rules[0]
        for kind in range(len(self.orientations.kinds)):
            facet = int(np.argmax(self.orientations.kind_of == kind))
            cell = self.facet_cells[facet]
            at = on_facets(cell, np.eye(self.dim)[:, 1:])[facet - self.facet_cells.index(cell)]
            points = (rules[facet].points - at[0]) @ np.linalg.pinv(at[1:] - at[0])
            rows.append(self.orientations.permutations(points, kind))
        return np.concatenate(rows)

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
        touched[np.flatnonzero(self.neighbours.has_ghost) // CHUNK] = True
        return np.flatnonzero(~touched).astype(np.int32), np.flatnonzero(touched).astype(np.int32)

    def element_numbers(self, numbers: np.ndarray | None = None) -> tuple[list[np.ndarray], list[np.ndarray]]:
        """As in PrimalDiscretization: of each cell with itself, then of `sides` with the cells behind them."""
        extended = self.extended_numbers(self.dofmap.global_numbers if numbers is None else numbers)
        (cells, facets), count = self.sides, self.mesh.num_cells
        own = np.pad(extended[:, :count], ((0, 0), (0, self.stride - count)), constant_values=-1)
        more = ((0, 0), (0, padded(len(cells)) - len(cells)))
        rows, columns = extended[:, cells], extended[:, self.neighbours.neighbour[cells, facets]]
        return [own, np.pad(rows, more, constant_values=-1)], [own, np.pad(columns, more, constant_values=-1)]

    def extended_numbers(self, numbers: np.ndarray) -> np.ndarray:
        """Numbers [dof, extended cell] of degrees of freedom from those of compact numbers [unknown]."""
        return numbers[self.extended_dofs].T

    @cached_property
    def sides(self) -> np.ndarray:
        """Owned cells and their facets [2, side] int32 behind which there are other cells."""
        return np.stack(np.nonzero(self.neighbours.neighbour >= 0)).astype(np.int32)

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

    # Kernel specs ------------------------------------------------------------------------------------------------

    @property
    def flux_macros(self) -> dict[str, int]:
        """Sizes that the fluxes need beside those of CG."""
        return {
            "NB": self.num_nodes,
            "NFACETS": self.num_facets_of_cell,
            "NQF": self.facet_rules[0][0].num_points,
            "NORIENT": self.orientations.count,
            "THETA": self.theta,
            "F0_GRADIENT": int(reads_gradient(self.physics)),
            "FLUX_F1": int(self.theta != 0 or self.physics.has_boundary_f1),
            "STATE": int(not self.physics.is_linear),
            "WALLS": int(self.neighbours.has_walls),
            "STEPS": int(self.has_steps),
            "PERIODIC": int(self.mesh.geometry.periods.any()),
            "STEP_INWARDS": STEP_INWARDS[self.options.precision],
        }

    def _flux_sources(self, *files: str) -> tuple[str, ...]:
        return self._sources("sipg_flux.clh", *files)

    @cached_property
    def _plain_tables(self) -> dict[str, np.ndarray]:
        return {**self.facet_tables(*self.facet_rules), "PERM": self.facet_permutations.astype(np.int32)}

    @cached_property
    def _point_dofs(self) -> np.ndarray:
        """Degrees of freedom [F, point, dof] on the lines through a node on a facet: of each component as many."""
        points = np.stack([rule.points for rule in self.facet_rules[0]])
        apart = np.abs(points[:, :, None, :] - self.element.nodes) > SAME
        on_lines = apart.sum(axis=3) <= 1  # of reference coordinates
        found = np.nonzero(on_lines[:, :, self._dof_tables()["DOF_BASIS"] % self.num_nodes])[2]
        return found.reshape(*points.shape[:2], -1).astype(np.int32)

    def plain_specs(self) -> dict[str, KernelSpec]:
        """Specs of `sipg_facet_residual`, `_action`, `_matrix`, `_coupling`, `_diagonal`."""
        macros = {**self._macros(), **self.flux_macros}
        found = {}
        for files, names in PLAIN.items():
            for name in names:
                row = {"matrix": "stride", "coupling": "facet_stride"}.get(name[11:])
                how = {"launch": Launch(1, self.num_dofs, row), "arguments": LISTED_FACETS} if row else {}
                found[name] = self._facet_kernel(name, files, macros, self._plain_tables, **how)
        return found

    def _facet_kernel(self, name: str, files, macros, tables, **how) -> KernelSpec:
        """Spec of a kernel that goes around the facets of cells."""
        how = {"arguments": FACETS_OF_CELLS, **how}
        if self.collocated:
            macros = {**macros, "POINT_DOFS": self._point_dofs.shape[2]}
            tables = {**tables, "FACET_DOFS": self._point_dofs}
        size = self.limits.group(32)
        return self._spec(name, self._flux_sources("sipg_facet.clh", *files), macros, tables, size, **how)

    def transposed_specs(self) -> dict[str, KernelSpec]:
        """Specs of the transposed Jacobian's action: `cg_transposed` of cells, and `sipg_facet_transposed`."""
        name, macros = "sipg_facet_transposed", {**self._macros(), **self.flux_macros}
        files = ("sipg_facet_transposed.clh", *in_roles("sipg_facet.cl", "transposed"))
        return {**self.transposed_volume(), name: self._facet_kernel(name, files, macros, self._plain_tables)}

    def cell_block_specs(self, inverse: str = "") -> dict[str, KernelSpec]:
        """Specs of `column`, `turn`, `invert` and `apply` of diagonal blocks; inverse: the type of inverses."""
        return block_specs(self.num_dofs, self.limits, self.options.precision, self.row_of_dof, inverse)

    def flux_spec(self) -> KernelSpec:
        """Spec of `sipg_boundary_flux`."""
        name, macros = "sipg_boundary_flux", {**self._macros(), **self.flux_macros}
        return self._facet_kernel(name, (f"{name}.cl",), macros, self._plain_tables, arguments=LISTED_FACETS)

    @property
    def sees_least(self) -> bool:
        """True if penalties see the least diffusivity in cells, which may step there. Where nodes are points of both
        rules, each facet node's part of the energy bounds its flux."""
        return self.has_steps and not self.collocated

    def penalty_specs(self) -> dict[str, KernelSpec]:
        """Specs of `sipg_penalty`, and of `sipg_least` where penalties see that."""
        corners = self.orientations.corners
        fields = np.concatenate([np.full(s.components, k) for k, s in enumerate(self.spaces)])
        macros = {
            **self._macros(),
            **self.flux_macros,
            "NCORNERS": corners.shape[1],
            "BOUNDARY": 1 if self.is_paper else 2,
            "PAPER": int(self.is_paper),
            "STEEP": self.steep,
            "UPWIND": int(self.physics.is_linear),
            "NUMBERS": int(self.side_numbers is not None),
            "LEAST": int(self.sees_least),
            "NQ": self.quadrature.num_points,
        }
        tables = {
            **self._plain_tables,
            **(self._cell_tables(self.quadrature) if self.sees_least else {}),
            "FACET_RATIO": self.facet_ratios,
            "CORNERS": corners.astype(np.int32),
            "FIELD": fields.astype(np.int32),
        }
        files, launch = ("normal_derivatives.clh", "sipg_penalty.cl"), Launch(1, self.num_facets_of_cell, "stride")
        launches = {"sipg_penalty": launch} | ({"sipg_least": Launch()} if self.sees_least else {})
        given, how = (files, macros, tables), {"arguments": PENALTY, "constants": {"PENALTY": self.penalty_factors}}
        return {n: self._facet_kernel(n, *given, launch=each, **how) for n, each in launches.items()}

    @property
    def has_fused(self) -> bool:
        """True if one pass over the cells computes residual and action."""
        return self.collocated or not self.is_tensor

    def fused_specs(self, is_seldom: bool = False) -> dict[str, KernelSpec]:
        """Specs of `sipg_residual` and `sipg_action`; is_seldom: solves launch the residual a few times, and no
        action. Raises OptionError where local memory does not hold a cell."""
        return tensor_specs(self) if self.is_tensor else simplex_specs(self, is_seldom)

    @property
    def is_tensor(self) -> bool:
        """True if cells are tensor products of intervals."""
        return is_tensor(self.mesh.cell)

    @property
    def side_numbers(self) -> np.ndarray | None:
        """Numbers [F, extended cell] that stand for |F|/|K| in the penalty, or None."""
        return None

    @property
    def is_paper(self) -> bool:
        return self.options.sipg_penalty == "paper"

    @property
    def facet_ratios(self) -> np.ndarray:
        """|F|/|K| [F] of the reference cells."""
        sums = ((part.facet_rules[0], part.quadrature.weights.sum()) for part in self.parts)
        return np.array([rule.weights.sum() / size for rules, size in sums for rule in rules])

    @cached_property
    def penalty_degrees(self) -> np.ndarray:
        """Degree [component] of the gradients whose fluxes the penalty of a component bounds: the highest of those that
        it shares diffusion with."""
        degrees = np.repeat([s.element.degree for s in self.spaces], [s.components for s in self.spaces])
        diffuses = dependences(self.physics, self.dim)[-1]
        return np.where(diffuses | diffuses.T | np.eye(len(degrees), dtype=bool), degrees, 0).max(axis=1)

    @cached_property
    def penalty_factors(self) -> np.ndarray:
        """Factors [component, F] on the sides of facets, see `penalty_factor`."""
        return np.array([
            [self.penalty_factor(part.mesh.cell, p) for part in self.parts for _ in range(part.num_facets_of_cell)]
            for p in self.penalty_degrees.tolist()
        ])  # fmt: skip

    def penalty_factor(self, cell: str, degree: int) -> float:
        """Factor of (normal diffusivity) |F|/|K| of cells of a shape for gradients of functions of a degree p; with
        -sipg_penalty paper, over the facet's diameter.

        Simplices: (d + 1)/2 (p + 1)(p + d)/d, from the trace inequality on P_p shared by d + 1 facets (Warburton and
        Hesthaven 2003; Shahbazi 2005). Others: (p + 1)², twice what coercivity needs on rectangles, right prisms and
        pyramids. Paper: 100 p² (Gorlani 2015, section 4.3).
        """
        p, d, scale = degree, self.dim, self.options.sipg_penalty_scale
        if self.is_paper:
            return scale * 100.0 * p * p
        if cell in ("triangle", "tetrahedron"):
            return scale * (d + 1) / 2 * (p + 1) * (p + d) / d
        return scale * (p + 1.0) ** 2

    @property
    def steep(self) -> float:
        """Share of a jump over |K|/|F| that the gradient of nonlinear physics sees in its penalty, too."""
        return 0.0 if self.physics.is_linear else STEEP

    @property
    def penalty_formula(self) -> str:
        """The penalty in words."""
        scale = f"{self.options.sipg_penalty_scale:g} "
        if self.is_paper:
            return f"{scale}· 100 p² κ / h_F"
        words = {True: "(d+1)/2 (p+1)(p+d)/d", False: "(p+1)²"}
        factor = " or ".join(words[kind] for kind in sorted({part.mesh.shape.is_simplex for part in self.parts}))
        return f"{scale}· {factor} max κ |F|/|K|, twice that on the boundary"


class MixedPenalty(FacetsOfShapes, InteriorPenalty):
    """`sipg_gpu` on a mesh of several parts, or of cells with facets of two shapes."""


def degrees_of(cell: str) -> tuple[int, int]:
    """Lowest and highest degree on a cell shape, or on several joined by " and "."""
    return 1, min(DEGREES[name][1] for name in cell.split(" and "))


def check_sipg(physics, dim: int) -> None:
    """Raise PhysicsError for a physics in `dim` dimensions that sipg_gpu does not discretize."""
    if len(physics.natural) > MOST_NATURAL:
        raise PhysicsError(
            f"physics '{physics.name}' has {len(physics.natural)} natural conditions; sipg_gpu takes {MOST_NATURAL}: "
            "join boundaries under one name"
        )
    if found := foreign_diffusion(physics, dim):  # its jumps have no penalty, and grow without bounds in time
        raise PhysicsError(
            f"physics '{physics.name}' diffuses {found[1]} in the equation of {found[0]}, which has no diffusion of "
            "its own, and penalties are of an equation's own component: exchange the two equations (f0 and f1), or "
            "give -fe_backend cg_gpu"
        )

"""Kernel specs of interior penalty: the plain split of volume and fluxes, penalties, and where the fused ones are."""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ...codegen import KernelSpec, Launch, in_roles
from ...reference import is_tensor
from ..base import STEP_INWARDS
from ..primal_specs import PrimalSpecs
from .arguments import BOUNDARY_FLUX, FACETS_OF_CELLS, PENALTY
from .simplex import simplex_specs
from .tensor import tensor_specs

PLAIN = {  # sources -> their kernels: two programs, as either is used without the other
    in_roles("sipg_facet.cl"): ("sipg_facet_residual", "sipg_facet_action"),
    ("sipg_facet_matrix.cl",): ("sipg_facet_block", "sipg_facet_coupling"),
}
MOST_ITEMS = 256  # of a work-group that inverts a block
APPLY_GROUP = 64  # work-items that multiply by inverted blocks: of whole cells, of one where it has more
TILE, TILE_GROUP = 32, 128  # cells and entries of blocks that a work-group turns, its work-items
MOST_IN_REGISTERS = 96  # rows of a block of which each work-item has a column in registers
SAME = 1e-9  # distance of reference coordinates that are the same
STEEP = 0.5  # each of two cells closes half of a jump


class SIPGSpecs(PrimalSpecs):
    """The part of InteriorPenalty that describes its kernels; see there for the attributes it reads."""

    element_kernels = ("auto", "cell", "transpose")  # where no pass does volume and fluxes together
    element_of_cell = None  # number [cell] of the element that each cell is a part of; None: all are elements

    @cached_property
    def variant(self) -> str:
        """Variant of the volume kernels."""
        return "cell" if self.options.kernel == "auto" else self.options.kernel

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
        """Specs of `sipg_facet_residual`, `_action`, `_block`, `_coupling`."""
        macros = {**self._macros(), **self.flux_macros}
        found = {}
        for files, names in PLAIN.items():
            for name in names:
                columns = self.num_dofs * {"block": 1, "coupling": self.num_facets_of_cell}.get(name[11:], 0)
                launch = Launch(1, columns, "stride") if columns else Launch()
                found[name] = self._facet_kernel(name, files, macros, self._plain_tables, launch=launch)
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
        facets = self._facet_kernel(name, files, macros, self._plain_tables)
        return {"cg_transposed": self.transposed_volume(), name: facets}

    def diagonal_spec(self) -> KernelSpec:
        """Spec of `sipg_diagonal`."""
        macros = {**self._macros(), **self.flux_macros, "NQ": self.quadrature.num_points}
        tables = {**self._plain_tables, **self._cell_tables(self.quadrature)}
        return self._facet_kernel("sipg_diagonal", ("point_block.clh", "sipg_diagonal.cl"), macros, tables)

    def cell_block_specs(self, inverse: str = "") -> dict[str, KernelSpec]:
        """Specs of `column`, `turn`, `invert` and `apply` of diagonal blocks; inverse: the type of inverses."""
        size, limits = self.num_dofs, self.limits
        most = min(MOST_ITEMS, limits.max_work_group) if limits.is_gpu else 1
        items = next(n for n in range(min(size, most), 0, -1) if size % n == 0)
        in_registers = limits.is_gpu and 1 < size <= min(most, MOST_IN_REGISTERS)
        macros = {"NDOF": size, "GROUP": min(size, most), "ITEMS": items, "TILE": TILE, "TILE_GROUP": TILE_GROUP}
        macros |= {"IN_REGISTERS": int(in_registers), "APPLY_GROUP": items * max(1, APPLY_GROUP // items)}
        macros |= {"INVERSE": inverse} if inverse else {}
        tables = {"ROW": self.row_of_dof.astype(np.int32)}
        shapes = {"column": (Launch(1, size, "stride"), 64), "invert": (Launch(1, macros["GROUP"]), macros["GROUP"])}
        shapes["apply"] = Launch(1, items), macros["APPLY_GROUP"]
        shapes["turn"] = Launch(TILE, TILE_GROUP * -(-(size**2) // TILE)), TILE_GROUP
        given = ("cell_block.cl",), macros, tables, "", self.options.precision
        return {
            name: KernelSpec(f"cell_block_{name}", *given, local_size, launch=launch)
            for name, (launch, local_size) in shapes.items()
        }

    def flux_spec(self) -> KernelSpec:
        """Spec of `sipg_boundary_flux`."""
        name, macros = "sipg_boundary_flux", {**self._macros(), **self.flux_macros}
        return self._facet_kernel(name, (f"{name}.cl",), macros, self._plain_tables, arguments=BOUNDARY_FLUX)

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
            "PENALTY": self.penalty_factor,
            "BOUNDARY": 1 if self.is_paper else 2,
            "PAPER": int(self.is_paper),
            "STEEP": self.steep,
            "UPWIND": int(self.physics.is_linear),
            "NUMBERS": int(self.side_numbers is not None),
            "LEAST": int(self.sees_least),
            "NQ": self.quadrature.num_points,
        }
        rules = self.facet_rules[0]
        ratio = np.array([rule.weights.sum() for rule in rules]) / self.quadrature.weights.sum()
        tables = {
            **self._plain_tables,
            **(self._cell_tables(self.quadrature) if self.sees_least else {}),
            "FACET_RATIO": ratio,
            "CORNERS": corners.astype(np.int32),
            "FIELD": fields.astype(np.int32),
        }
        files, launch = ("normal_derivatives.clh", "sipg_penalty.cl"), Launch(1, self.num_facets_of_cell, "stride")
        launches = {"sipg_penalty": launch} | ({"sipg_least": Launch()} if self.sees_least else {})
        given = files, macros, tables
        return {n: self._facet_kernel(n, *given, arguments=PENALTY, launch=each) for n, each in launches.items()}

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
    def penalty_factor(self) -> float:
        """Factor of (normal diffusivity) |F|/|K|; with -sipg_penalty paper, over the facet's diameter.

        Tensor cells: (p + 1)², twice what coercivity needs on rectangles; simplices: (d + 1)/2 (p + 1)(p + d)/d, from
        the trace inequality on P_p shared by d + 1 facets (Warburton and Hesthaven 2003; Shahbazi 2005). Paper: 100 p²
        (Gorlani 2015, section 4.3).
        """
        p, d, scale = self.element.degree, self.dim, self.options.sipg_penalty_scale
        if self.is_paper:
            return scale * 100.0 * p * p
        if self.is_tensor:
            return scale * (p + 1.0) ** 2
        return scale * (d + 1) / 2 * (p + 1) * (p + d) / d

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
        tensor = "(p+1)²" if self.is_tensor else "(d+1)/2 (p+1)(p+d)/d"
        return f"{scale}· {tensor} max κ |F|/|K|, twice that on the boundary"


def reads_gradient(physics) -> bool:
    """True if f0 depends on the gradient."""
    terms = physics.terms
    if terms.jacobian is not None and any(term.kind == "g1" for term in terms.jacobian):
        return True
    return any(term.kind == "f0" and "u_x" in term.program.inputs for term in terms.residual)

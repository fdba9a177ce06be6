"""Kernel specs of polytopic DG that take functions to the base cells and back."""

from __future__ import annotations

import numpy as np

from ...codegen import KernelSpec, Launch
from ...codegen.preamble import CONSTANT_BYTES
from ...reference import ReferenceElement
from ..base import cell_fastest
from ..legendre import num_basis
from .arguments import ACTION

TRANSFERS = ("poly_expand", "poly_restrict")
MOST_UNROLLED = 64  # functions whose degrees are numbers in the program
GPU_GROUP, CPU_GROUP = 64, 1  # work-items of a work-group
POINTS_OF_LANE = {"nodes": 2, "action": 12}  # at least, where more work-items share a polytope
CHUNK = 16  # functions whose sums are added up at once


class PolytopicSpecs:
    """The part of PolytopicDG that describes its kernels; see there for the attributes it reads."""

    def basis_macros(self) -> dict[str, int]:
        """Sizes that poly_basis.clh needs."""
        return {"DIM": self.dim, "NC": self.physics.num_components, "DEGREE": self.largest, "NP": len(self.exponents)}

    def basis_tables(self) -> dict[str, np.ndarray]:
        """Tables that poly_basis.clh needs."""
        k = np.arange(self.largest + 1)
        return {"EXPONENTS": self.exponents, "NORMS": np.sqrt(2.0 * k + 1)}

    def nested_tables(self, degree: int) -> dict[str, np.ndarray]:
        """Tables that poly_nested.clh needs for functions of a degree."""
        norms, powers = self.basis_tables()["NORMS"], self.exponents[: num_basis(self.dim, degree, self.space)]
        at = np.full((degree + 1,) * self.dim, -1, np.int32)
        at[tuple(powers.T)] = np.arange(len(powers))
        return {"FUNCTION_AT": at, "SCALES": norms[powers].prod(axis=1), "NORMS": norms}

    def box_rows(self) -> np.ndarray:
        """Centre and two over the width of each extended polytope's box [extended, 2, dim]."""
        lower, upper = self.numbering.lower, self.numbering.upper
        return np.stack([(lower + upper) / 2, 2 / (upper - lower)], axis=1)

    def polytope_rows(self) -> np.ndarray:
        """Polytope [stride] of each extended base cell."""
        return cell_fastest(self.numbering.polytope_of[:, None], self.fine.stride)

    def unroll(self, rows: int) -> str:
        """Pragma of loops over so many functions. Loops stay loops on CPUs: registers gain nothing there, and programs
        take twice as long to compile."""
        if not self.fine.limits.is_gpu:
            return '_Pragma("nounroll")'
        return '_Pragma("unroll")' if rows <= MOST_UNROLLED else ""

    def sum_macros(self, rows: int, points: float, of: str) -> dict[str, int | str]:
        """Sizes that poly_sum.clh needs for so many functions, and points (`of` a POINTS_OF_LANE) of a polytope on
        average."""
        group, lanes = (GPU_GROUP, (8, 16, 32)) if self.fine.limits.is_gpu else (CPU_GROUP, (CPU_GROUP,))
        fitting = [n for n in lanes if n == lanes[0] or POINTS_OF_LANE[of] * n <= points]
        sizes = {"ROWS": rows, "LANES": fitting[-1], "GROUP": group, "CHUNK": min(rows, CHUNK)}
        return {**sizes, "UNROLL": self.unroll(rows)}

    def transfer_specs(self) -> dict[str, KernelSpec]:
        """Specs of `poly_expand` and `poly_restrict`."""
        fine = self.fine
        nodes = fine.element.nodes[fine.tensor_order]
        table = ReferenceElement(self.mesh.cell, 1).tabulate(nodes, 0)[0]
        macros = {**self.basis_macros(), "NB": fine.num_nodes, "NNODES": table.shape[1]}
        macros |= self.sum_macros(len(self.exponents), fine.num_nodes * self.cells_of_polytope, "nodes")
        tables = {**self.basis_tables(), "NODE_GEO": table}
        sources = ("poly_basis.clh", "poly_sum.clh", "poly_transfer.cl")
        local = self._sum_bytes(macros)
        return {
            n: KernelSpec(n, sources, macros, tables, "", self.options.precision, macros["GROUP"], local)
            for n in TRANSFERS
        }

    def action_spec(self, degree: int, facets: float) -> KernelSpec:
        """Spec of `poly_action` for polytopes none of whose neighbours, nor themselves, have a higher degree; facets:
        of a polytope on average."""
        fine, rows = self.fine, num_basis(self.dim, degree, self.space)
        tested = {test for test, _ in dependences(self.physics)}
        points = fine.quadrature.num_points * self.cells_of_polytope + facets * fine.facet_rules[0][0].num_points
        headers = "sipg_facet.clh poly_facet_sides.clh poly_nested.clh poly_volume_state.clh poly_sum.clh".split()
        macros = {
            **fine._macros(),
            **fine.flux_macros,
            **self.basis_macros(),
            **self.sum_macros(rows, points, "action"),
            "DEGREE": degree,
            "NQ": fine.quadrature.num_points,
            "TEST_VALUE": int("f0" in tested),
            "TEST_GRADIENT": int("f1" in tested),
        }
        group, teams = macros["GROUP"], macros["GROUP"] // macros["LANES"]
        local = self._sum_bytes(macros) + fine.real_bytes * teams * macros["NC"] * rows
        sources, tables = fine._flux_sources(*headers, "poly_action.cl"), fine._cell_tables(fine.quadrature)
        how = {"arguments": ACTION, "launch": Launch(teams, group * macros["NC"])}
        how |= {"most": 0 if fine.limits.is_gpu else CONSTANT_BYTES, "constants": self.nested_tables(degree)}
        return fine.kernel_spec("poly_action", sources, macros, {**fine._plain_tables, **tables}, group, local, **how)

    @property
    def cells_of_polytope(self) -> float:
        """Base cells of a polytope on average."""
        return self.mesh.num_cells / max(1, self.polytopes.count)

    def _sum_bytes(self, macros) -> int:
        """Local memory of the sums of poly_sum.clh."""
        return self.fine.real_bytes * macros["CHUNK"] * (macros["GROUP"] + 1)


def dependences(physics) -> set[tuple[str, str]]:
    """(f0 or f1, u or u_x): which function may depend on what; a rate counts as the value."""
    hand = {"g0": ("f0", "u"), "g1": ("f0", "u_x"), "g2": ("f1", "u"), "g3": ("f1", "u_x")}
    found = set()
    for term in physics.terms.jacobian or physics.terms.residual:
        if term.kind in hand:
            found.add(hand[term.kind])
            continue
        inputs = term.program.inputs
        found |= {(term.kind, "u")} if inputs & {"u", "u_t"} else set()
        found |= {(term.kind, "u_x")} if "u_x" in inputs else set()
    return found

"""Kernel specs of polytopic DG that take functions to the base cells and back."""

from __future__ import annotations

import numpy as np

from ..codegen import KernelSpec
from ..reference import ReferenceElement
from .base import cell_fastest

TRANSFERS = ("poly_expand", "poly_restrict")


class PolytopicSpecs:
    """The part of PolytopicDG that describes its kernels; see there for the attributes it reads."""

    def basis_macros(self) -> dict[str, int]:
        """Sizes that poly_basis.clh needs."""
        return {"DIM": self.dim, "NC": self.physics.num_components, "DEGREE": self.largest, "NP": len(self.exponents)}

    def basis_tables(self) -> dict[str, np.ndarray]:
        """Tables that poly_basis.clh needs."""
        k = np.arange(self.largest + 1)
        return {"EXPONENTS": self.exponents, "NORMS": np.sqrt(2.0 * k + 1)}

    def box_rows(self) -> np.ndarray:
        """Centre and two over the width of each extended polytope's box [extended, 2, dim]."""
        lower, upper = self.numbering.lower, self.numbering.upper
        return np.stack([(lower + upper) / 2, 2 / (upper - lower)], axis=1)

    def polytope_rows(self) -> np.ndarray:
        """Polytope [stride] of each extended base cell."""
        return cell_fastest(self.numbering.polytope_of[:, None], self.fine.stride)

    def transfer_specs(self) -> dict[str, KernelSpec]:
        """Specs of `poly_expand` and `poly_restrict`."""
        fine = self.fine
        nodes = fine.element.nodes[fine.tensor_order]
        table = ReferenceElement(self.mesh.cell, 1).tabulate(nodes, 0)[0]
        macros = {**self.basis_macros(), "NB": fine.num_nodes, "NNODES": table.shape[1]}
        tables = {**self.basis_tables(), "NODE_GEO": table}
        sources = ("poly_basis.clh", "poly_transfer.cl")
        precision = self.options.precision
        return {n: KernelSpec(n, sources, macros, tables, "", precision, 32) for n in TRANSFERS}

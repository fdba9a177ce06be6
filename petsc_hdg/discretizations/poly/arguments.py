"""Arguments of the kernels of polytopes that integrate over base cells and their facets."""

from __future__ import annotations

from ...codegen import signature
from ..primal_arguments import POINTWISE
from ..sipg.arguments import AROUND

_ITEMS = signature("""
    const real *boxes [polytope, 2, DIM]
    const int *sizes [polytope]: functions
    int num_items
    const int *items [item, 5]: see poly_items.clh; so of the others
    const int *turns
    int add: whether to add to what stands there
    real *out: values of the matrix
""")
VOLUME = POINTWISE + _ITEMS + signature("const int *cells: base cells of all polytopes")
FACETS = (
    AROUND
    + _ITEMS
    + signature("""
    const int *interfaces [interface, 5]: see poly_matrix_facets.cl
    const int *facets [facet]: cell * NFACETS + facet of the cell
""")
)
FACETS_BY_STEPS = FACETS + signature("""
    const int4 *steps [step]: of eight points of an interface, see poly_mma_facets.cl
    const int *step_first [interface + 1]
""")
ACTION = AROUND + signature("""
    const real *boxes [polytope, 2, DIM]
    int num_items
    const int *items [item, 5]: see poly_action.cl; so of the others
    const int *cells
    const int *facets
    const int *of_cell [stride]: polytope of a base cell
    const int *begin [polytope + 1]: place of its first unknown
    int n_unknowns: owned ones
    const real *direction: of the polytopes' unknowns
    const real *direction_tail
    real *out: of the polytopes' unknowns
""")

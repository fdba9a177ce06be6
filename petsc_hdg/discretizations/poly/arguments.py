"""Arguments of the kernels of polytopes that integrate over base cells and their facets; see their files for shapes."""

from __future__ import annotations

from ...codegen import signature
from ..primal import POINTWISE
from ..sipg.arguments import AROUND

_ITEMS = signature("""
    const real *boxes; const int *sizes; int num_items; const int *items [item, 5]; const int *turns
    int add: whether to add to what stands there; real *out: values of the matrix
""")
VOLUME = POINTWISE + _ITEMS + signature("const int *cells: base cells of all polytopes")
FACETS = AROUND + _ITEMS + signature("const int *interfaces [interface, 5]; const int *facets")
FACETS_BY_STEPS = FACETS + signature("const int4 *steps [step]; const int *step_first [interface + 1]")
ACTION = AROUND + signature("""
    const real *boxes; int num_items; const int *items [item, 5]; const int *cells; const int *facets
    const int *of_cell; const int *begin; int n_unknowns: owned ones of the polytopes
    const real *direction; const real *direction_tail; real *out
""")

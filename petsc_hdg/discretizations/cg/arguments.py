"""Arguments of the kernels of patches; see cg_patch.cl for shapes."""

from __future__ import annotations

from ...codegen import signature
from ..primal_arguments import POINTWISE

PATCHES = POINTWISE + signature("""
    int places; int clusters; int num_rounds; int most_places: of a patch; int most_words; int most_slots
    const int *heads; const int *rounds; const int *place_dofs; const real *place_x; const ulong *words
    real *owned: complete sums; real *border: sums to be finished
    const real *patch_aux; local real2 *local_: local memory of the patch
""")

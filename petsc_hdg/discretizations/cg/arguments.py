"""Arguments of the kernels of patches."""

from __future__ import annotations

from ...codegen import signature
from ..primal_arguments import POINTWISE

PATCHES = POINTWISE + signature("""
    int places: vertices of all patches
    int clusters: of all patches
    int num_rounds
    int most_places: of a patch; so of words and slots
    int most_words
    int most_slots
    const int *heads [patch, 7 + CLUSTER]
    const int *rounds [patch, 2, num_rounds]
    const int *place_dofs [NC, places]
    const real *place_x [DIM, places]
    const ulong *words: of each patch in turn
    real *owned [n_owned]: complete sums
    real *border: sums to be finished
    const real *patch_aux [NAUX, CLUSTER, clusters]
    local real2 *local_: local memory of the patch
""")

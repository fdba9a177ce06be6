"""Arguments of the kernels of interior penalty: what lies behind the facets of cells, beside what all kernels read."""

from __future__ import annotations

from ...codegen import signature
from ..primal_arguments import POINTWISE

BEHIND = signature("""
    const int *neighbour [NFACETS, stride]: cell behind each facet, -1: no term, -2 - k: boundary kind k
    const int *code [NFACETS, stride]: the neighbour's facet, its orientation, and a wall, see sipg_flux.clh
    const real *sigma_ [NC, NFACETS, stride]: penalties
    const int *kinds [kind, NC + 1]: see sipg_flux.clh
""")
AROUND = POINTWISE + BEHIND
FACETS_OF_CELLS = AROUND + signature("real *out: as each kernel says")
BOUNDARY_FLUX = FACETS_OF_CELLS + signature("""
    const int *facets [2, facet_stride]: cell, its facet
    int facet_stride
""")
PENALTY = POINTWISE + signature("""
    const int *neighbour [NFACETS, stride]
    const int *code [NFACETS, stride]
    real *sigma_ [NC, NFACETS, stride]: penalties
    const int *kinds [kind, NC + 1]
    const real *numbers [NFACETS, stride]: in place of |F|/|K|, if NUMBERS
""")
CHUNKS = (
    signature("""
    int num_chunks: that are gone through
    int num_cells: owned ones
    int num_ghosts: cells of other ranks
    int stride
    real t: time
    real shift: derivative of u_t by u
    const real *constants_ [NCONST]
    const real *nodes [node, DIM]: coordinates
    const int *cell_nodes [NNODES, stride]
    const real *aux [NAUX, stride]: auxiliary rows
    const real *tables: those that constant memory does not hold, laid end to end
""")
    + BEHIND
    + signature("""
    const int *chunks [num_chunks]
    const real *u_owned: state, chunk by chunk
    const real *u_tail: its ghosts; so of the others
    const real *ut_owned: rate u_t
    const real *ut_tail
    const real *du_owned: direction
    const real *du_tail
""")
)
PASS = CHUNKS + signature("real *out: owned values")
AFFINE = signature("""
    int num_chunks: that are gone through
    int num_cells: owned ones
    int num_ghosts: cells of other ranks
    int stride
    const int *restrict chunks [num_chunks]: none for all
    const int4 *restrict header [chunk, 2]: see sipg_affine.clh; so of the others
    const link_t *restrict links [chunk, side, 32]
    const int4 *restrict steps
    const int *restrict class_of_cell
    const real4 *restrict classes
    const int *restrict neighbour [NFACETS, stride]
    const real *restrict owned: direction, chunk by chunk
    const real *restrict tail: its ghosts
    real *restrict out: owned values
    real *restrict parts: of the sum of own values times results, if wanted
""")
AFFINE_SIMPLEX = signature("""
    int num_chunks: that are gone through
    int num_cells: owned ones
    int num_ghosts: cells of other ranks
    int stride
    int data_stride: padded number of cells, or of classes
    real factor: of penalties that follow from the metric
    const int *restrict behind [NFACETS, stride]: see sipg_affine_simplex.cl; so of the others
    const ushort *restrict class_of
    const real *restrict data
    const real *restrict penalty
    const int *restrict chunks [num_chunks]: none for all
    const real *restrict u_owned: direction, chunk by chunk
    const real *restrict u_tail: its ghosts
    real *restrict out: owned values
    real *restrict parts: of the sum of own values times results, if wanted
""")
AFFINE_DATA = CHUNKS + signature("""
    real *data: see sipg_affine_simplex_data.cl
    real *penalty
""")

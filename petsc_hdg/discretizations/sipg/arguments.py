"""Arguments of the kernels of interior penalty: what lies behind the facets of cells, beside what all kernels read."""

from __future__ import annotations

from dataclasses import replace

from ...codegen import signature
from ..primal import POINTWISE

BEHIND = signature("""
    const int *neighbour [NFACETS, stride]: cell behind each facet, -1: no term, -2 - k: boundary kind k
    const int *code [NFACETS, stride]: the neighbour's facet, its orientation, and a wall, see sipg_flux.clh
    const real *sigma_ [NC, NFACETS, stride]: penalties; const int *kinds [kind, NC + 1]: see sipg_flux.clh
""")
AROUND = POINTWISE + BEHIND
FACETS_OF_CELLS = AROUND + signature("real *out: as each kernel says")
LISTED_FACETS = FACETS_OF_CELLS + signature("const int *facets [2, facet_stride]: cell, its facet; int facet_stride")
PENALTY = (
    *(replace(a, type="real *") if a.name == "sigma_" else a for a in AROUND),
    *signature(
        "const real *numbers [NFACETS, stride]: in place of |F|/|K|, if NUMBERS; "
        "real *least [NC, stride]: least trace of the diffusivity in a cell, if LEAST"
    ),
)
CHUNKS = (
    *signature("int num_chunks; int num_cells: owned ones; int num_ghosts: cells of other ranks"),
    *(a for a in POINTWISE if a.name in "stride t shift constants_ nodes cell_nodes aux tables".split()),
    *BEHIND,
    *signature("const int *chunks [num_chunks]"),
    *(a for a in POINTWISE if a.name.endswith(("_owned", "_tail")) and a.type == "const real *"),
)
PASS = CHUNKS + signature("real *out: owned values")
TENSOR_PASS = PASS + signature("const real *own: du_owned, or other values of the cells than their neighbours read")
AFFINE_DATA = CHUNKS + signature("real *data: see sipg_affine_simplex_data.cl; real *penalty")
AFFINE = CHUNKS[:4] + signature("""
    const int *restrict chunks [num_chunks]: none for all; const int4 *restrict header: as sipg_affine.clh says
    const link_t *restrict links; const int4 *restrict steps; const int *restrict class_of_cell
    const real4 *restrict classes; const int *restrict neighbour [NFACETS, stride]
    const real *restrict u_owned: direction, chunk by chunk; const real *restrict u_tail: its ghosts
    real *restrict out; real *restrict parts: of the sum of own values times results, if wanted
""")
AFFINE_SIMPLEX = CHUNKS[:4] + signature("""
    int data_stride: padded number of cells, or of classes; real factor: of penalties that follow from the metric
    const int *restrict behind: as sipg_affine_simplex.cl says; const ushort *restrict class_of
    const real *restrict data; const real *restrict penalty; const int *restrict chunks [num_chunks]: none for all
    const real *restrict u_owned: direction, chunk by chunk; const real *restrict u_tail: its ghosts
    real *restrict out; real *restrict parts: of the sum of own values times results, if wanted
""")

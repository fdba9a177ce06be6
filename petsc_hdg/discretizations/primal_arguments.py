"""Arguments of kernels that evaluate the fields of cells; `stride` is the padded number of cells."""

from __future__ import annotations

from ..codegen import signature

POINTWISE = signature("""
    int num_cells: cells, or facets in kernels of facets
    int stride; int n_owned: owned degrees of freedom of the vectors
    real t: time; real shift: derivative of u_t by u; const real *constants_ [NCONST]
    const int *dofs [NDOF, stride]: compact numbers, [cell, NDOF] for gather_cells.clh
    const real *nodes [node, DIM]: coordinates; const int *cell_nodes [NNODES, stride]
    const real *stored_geometry [DIM * DIM + 1, stride]: inverse Jacobian and |det|, for geometry_stored.clh
    const real *aux [NAUX, stride]: auxiliary rows
    const real *tables: those that constant memory does not hold, laid end to end
    const real *u_owned [n_owned]: state; const real *u_tail: ghosts, then essential values
    const real *ut_owned [n_owned]: rate u_t; const real *ut_tail
    const real *du_owned [n_owned]: direction; const real *du_tail
""")
CELLS = POINTWISE + signature("real *out: as each kernel says")
FACETS = POINTWISE + signature("""
    int facet_stride; int first: entry of `out` where the kernel begins
    const int *facets [3, facet_stride]: cell, facet of the reference cell, index of the condition
    real *out: as each kernel says
""")

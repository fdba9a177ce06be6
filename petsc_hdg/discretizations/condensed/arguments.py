"""Arguments of the kernels of condensation and recovery by their names; the kernels' files say what results are."""

from __future__ import annotations

from ...codegen import signature

_DATA = "const int *cell_nodes [NNODES, stride]; const int *conditions [NFACETS, stride]: bits of natural conditions"
CELLS = signature(f"""
    int num_cells: of the launch; int first: of them; int stride: padded number of all
    int n_owned: owned unknowns of the trace; real t: time
    const real *stabilization: see TAU in condense_point.clh; const real *facet_tau [NFACETS, stride, NC]
    const real *constants_ [NCONST]; const int *dofs [NDOF, stride]; const real *nodes [node, DIM]: coordinates; {_DATA}
    const real *aux [NAUX, stride]; const real *tables: those that constant memory does not hold, laid end to end
    const real *trace_owned [n_owned]; const real *trace_tail: ghosts, then essential values
    real *interior [NE, stride]
""")
RECOVERY = signature("""
    int num_cells; int stride; real t; const real *constants_ [NCONST]; const real *nodes [node, DIM]
    const int *cell_nodes [NNODES, stride]; const real *aux [NAUX, stride]; const real *tables
    const real *x_e [NFUN, NC, stride]: coefficients of u and of the trace
""")
_MATRICES = "real *scratch: what does not live in registers or local memory"
_RESULTS = "real *residual [NM, stride]; real *solution [NE, stride]"
ARGUMENTS = {
    "condense": CELLS
    + signature(f"int batch; {_MATRICES}; real *schur; real *recovery; {_RESULTS}; real *status [stride]"),
    "condense_solve": CELLS
    + signature(f"int most_steps; real tolerance; {_MATRICES}; real *residual [NM, stride]; real *status [stride]"),
    "condense_residual": CELLS
    + signature(f"{_MATRICES}; real *residual [NM, stride]; real *inner [NE, stride]; real *status [stride]"),
    "condense_product": CELLS
    + signature(f"""
        {_MATRICES}; const real *w_interior [NE, stride]; const real *w_owned; const real *w_tail
        real *residual [NM, stride]; real *inner [NE, stride]
    """),
    "condense_kept": CELLS + signature(f"{_MATRICES}; const real *given [NE, stride]; {_RESULTS}"),
    "condense_given": CELLS + signature(f"{_MATRICES}; const real *given [NE, stride]; {_RESULTS}"),
    "condense_element": CELLS + signature(f"int batch; {_MATRICES}; real *matrices; real *status [stride]"),
    "condense_shared": CELLS + signature(f"const int *shape [cell]; const real *solver; {_RESULTS}"),
    "hdg_stabilization": CELLS + signature("real *found [NFACETS, stride, NC]"),
    "hdg_gradient": RECOVERY + signature("real *out"),
    "hdg_star": RECOVERY + signature("int first; int last; real *pool: working memory of cells; real *out"),
    "hdg_boundary_integral": RECOVERY + signature("const int *facets [2, facet_stride]; int facet_stride; real *out"),
}
ARGUMENTS["hdg_integral"] = ARGUMENTS["hdg_error"] = RECOVERY + signature(
    "const real *star [NSTAR, NC, stride]; real *out"
)

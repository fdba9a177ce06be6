"""Bad options, and options that do not go together: name → (call of communicator and folder, pattern), a part of
bad_input_table.py.
"""

from __future__ import annotations

from bad_input_calls import by_database, clamped, mesh, on_a_device_without, physics, problem
from sample_meshes import divided, hanging
from sample_time import waves

import petsc_hdg as fe
from petsc_hdg.options import BACKENDS, Options
from petsc_hdg.physics import library

TWO_DEGREES = {"u": 1, "v": fe.Field(1, degree_offset=-1)}
DIFFUSION = {name: "for (d = 0; d < dim; ++d) f1[d] = u_x[d];" for name in TWO_DEGREES}
CONTINUITY = {"pressure": "f0[0] = u_x[0] + u_x[3];"}
LAPLACE = "for (d = 0; d < 2*dim; ++d) f1[d] = u_x[d];"
STRESS = {"velocity": "for (d = 0; d < 4; ++d) f1[d] = u_x[d] - (d % 3 == 0 ? u[2] : 0.0);"}

BAD_OPTIONS = {
    "unknown backend": (lambda c, f: by_database(c, fe_backend="dg"), "fe_backend dg: not known; valid are cg_gpu"),
    "unknown option": (
        lambda c, f: by_database(c, fe_degre="2"),
        r"-fe_degre is not an option; known are .*; did you mean -fe_degree\?",
    ),
    "degree 0": (
        lambda c, f: by_database(c, fe_degree="0"),
        "fe_degree 0 gives field 'u' the degree 0; cg_gpu takes 1 to 9",
    ),
    "degree 10": (
        lambda c, f: fe.Problem(mesh(c, simplex=False), clamped(), Options(degree=10, check_kernels=False)),
        "degree 10; cg_gpu takes 1 to 9",
    ),
    "first-order subspace of two degrees": (
        lambda c, f: problem(c, library.stokes(2), degree=2, pmat="conforming"),
        "-fe_pmat conforming takes fields of one degree, and physics 'stokes' has a degree_offset; use -fe_pmat aij",
    ),
    "degree 41": (lambda c, f: by_database(c, fe_degree="41"), "fe_degree 41: give a whole number from"),
    "degree as a word": (lambda c, f: by_database(c, fe_degree="two"), "fe_degree two: give a whole number"),
    "degrees by field": (
        lambda c, f: problem(c, clamped(), degree={"u": 2}),
        r"-fe_degree {'u': 2}: give a whole number; fe.Field\(components, degree_offset=-1\) is",
    ),
    "flag as a word": (lambda c, f: by_database(c, fe_view="maybe"), "fe_view maybe: give true or false"),
    "unknown precision": (
        lambda c, f: by_database(c, fe_precision="half"),
        "half: not known; valid are double, single",
    ),
    "unknown kernel": (lambda c, f: by_database(c, fe_kernel="fast"), "fast: not known; valid are auto, cell"),
    "patches of second order": (
        lambda c, f: by_database(c, fe_kernel="patch", fe_degree="2"),
        "patch takes one field of degree 1",
    ),
    "kernel of other schemes": (
        lambda c, f: by_database(c, fe_backend="hdg_gpu", fe_kernel="patch"),
        "-fe_kernel patch has no effect on hdg_gpu, which takes auto; leave it out$",
    ),
    "kernel beside condensation": (
        lambda c, f: by_database(c, cg_condense="", fe_kernel="tensor"),
        "-fe_kernel tensor has no effect on cg_gpu with -cg_condense, which takes auto; leave it out$",
    ),
    "kernel of polytopes": (
        lambda c, f: by_database(c, fe_backend="poly_gpu", fe_kernel="cell"),
        "-fe_kernel cell has no effect on poly_gpu, which takes auto; leave it out$",
    ),
    "kernel that discontinuous cells do not have": (
        lambda c, f: by_database(c, fe_backend="sipg_gpu", sipg_kernel="split", fe_kernel="transpose"),
        "-fe_kernel transpose has no effect on sipg_gpu, which takes auto; leave it out$",
    ),
    "unknown matrix": (
        lambda c, f: by_database(c, fe_pmat="dense"),
        "dense: not known; valid are auto, aij, conforming, agglomerates, none",
    ),
    "conforming subspace of condensed CG": (
        lambda c, f: by_database(c, fe_pmat="conforming", cg_condense=""),
        "-fe_pmat conforming does not go with -cg_condense; use -fe_pmat aij",
    ),
    "GAMG on the conforming subspace": (
        lambda c, f: by_database(c, fe_backend="sipg_gpu", fe_pmat="conforming", pc_type="gamg"),
        "conforming goes with -pc_type mg; gamg takes the assembled matrix: use -fe_pmat aij or auto",
    ),
    "stabilization of no effect": (lambda c, f: by_database(c, hdg_tau="0"), "-hdg_tau 0: give auto, upwind, a number"),
    "negative stabilization": (lambda c, f: by_database(c, hdg_tau="-1.5"), "-hdg_tau -1.5: give auto, upwind"),
    "no stabilization": (lambda c, f: by_database(c, hdg_tau=""), "-hdg_tau : give auto, upwind, a number above 0"),
    "stabilization that is no expression": (
        lambda c, f: problem(c, backend="hdg_gpu", hdg_tau="1 +"),
        "-hdg_tau 1 \\+: '1 \\+' is not a complete expression of C",
    ),
    "stabilization of an unknown name": (
        lambda c, f: problem(c, clamped(constants={"kappa": 1.0}), backend="hdg_gpu", hdg_tau="fabs(kapa)"),
        "-hdg_tau .*: unknown name 'kapa'; did you mean 'kappa'",
    ),
    "stabilization by the solution": (
        lambda c, f: physics(stabilization="u_x[0]"),
        "stabilization.*'u_x' cannot be used",
    ),
    "stabilization that is not positive": (
        lambda c, f: problem(c, backend="hdg_gpu", hdg_tau="x[0] - 0.5").solve(),
        "tau is not positive and finite on a facet of cell .*; give -hdg_tau",
    ),
    "degree 10 of HDG": (lambda c, f: problem(c, backend="hdg_gpu", degree=10), "degree 10; hdg_gpu takes 0 to 9"),
    "HDG of two degrees": (
        lambda c, f: problem(c, library.stokes(2), backend="hdg_gpu", degree=2),
        "'stokes' has degree_offset -1 of 'pressure'",
    ),
    "HDG of many components": (
        lambda c, f: problem(c, fe.Physics({"u": 6}, "f0[0] = 1;"), backend="hdg_gpu"),
        "6 components .* at most 5",
    ),
    "unknown option of HDG": (
        lambda c, f: by_database(c, hdg_taw="2"),
        "-hdg_taw is not an option; known are -hdg_tau",
    ),
    "misspelt condensation": (
        lambda c, f: by_database(c, cg_condensed="1"),
        "-cg_condensed is not an option; known are",
    ),
    "unknown trace matrix": (
        lambda c, f: by_database(c, hdg_trace_mat="csr"),
        "-hdg_trace_mat csr: not known; valid are auto, dbf, element, symmetric, aij",
    ),
    "penalty of no effect": (
        lambda c, f: by_database(c, fe_backend="sipg_gpu", sipg_penalty_scale="0"),
        "-sipg_penalty_scale 0.0: give a number between 0",
    ),
    "negative penalty": (
        lambda c, f: by_database(c, fe_backend="sipg_gpu", sipg_penalty_scale="-2"),
        "-sipg_penalty_scale -2.0: give a number between 0",
    ),
    "penalty as a word": (lambda c, f: by_database(c, sipg_penalty_scale="big"), "scale big: give a number"),
    "unknown penalty": (
        lambda c, f: by_database(c, sipg_penalty="arnold"),
        "-sipg_penalty arnold: not known; valid are shahbazi, paper",
    ),
    "theta of 2": (lambda c, f: by_database(c, sipg_theta="2"), "-sipg_theta 2: give a whole number from -1 to 1"),
    "unknown product": (
        lambda c, f: by_database(c, sipg_kernel="quick"),
        "-sipg_kernel quick: not known; valid are auto",
    ),
    "unknown option of interior penalty": (
        lambda c, f: by_database(c, sipg_eta="100"),
        "-sipg_eta is not an option; known are -sipg_penalty, -sipg_penalty_scale",
    ),
    "degree 0 of interior penalty": (
        lambda c, f: problem(c, backend="sipg_gpu", degree=0),
        "degree 0; sipg_gpu takes 1 to 6",
    ),
    "degree 7 of interior penalty": (
        lambda c, f: problem(c, backend="sipg_gpu", degree=7),
        "degree 7; sipg_gpu takes 1 to 6",
    ),
    "interior penalty of two degrees in one pass": (
        lambda c, f: fe.Problem(
            fe.Mesh.box((2, 2), simplex=False, comm=c),
            fe.Physics(TWO_DEGREES, f1=DIFFUSION),
            Options(backend="sipg_gpu", degree=2, sipg_kernel="fused", check_kernels=False),
        ),
        "-sipg_kernel fused integrates quadrilateral cells at the nodes that all fields share; leave",
    ),
    "agglomerates of two degrees": (
        lambda c, f: problem(
            c, fe.Physics(TWO_DEGREES, f1=DIFFUSION), backend="sipg_gpu", degree=2, pmat="agglomerates"
        ),
        "-fe_pmat agglomerates takes fields of one degree, and physics 'physics' has a degree_offset; use -fe_pmat aij",
    ),
    **{
        f"a saddle point by {backend}, offset {offset}": (
            lambda c, f, backend=backend, offset=offset: problem(
                c,
                fe.Physics({"velocity": 2, "pressure": fe.Field(1, offset)}, CONTINUITY, STRESS),
                backend=backend,
                degree=2,
            ),
            "has no 'pressure' in the equation of 'pressure', which couples to 'velocity' by gradient and divergence",
        )
        for backend, offset in (("cg_gpu", 0), ("sipg_gpu", 0), ("poly_gpu", 0), ("poly_gpu", -1))
    },
    "a saddle point without diffusion by interior penalty": (
        lambda c, f: problem(
            c,
            fe.Physics(
                {"velocity": 2, "pressure": fe.Field(1, -1)},
                CONTINUITY | {"velocity": "for (d = 0; d < 2; ++d) f0[d] = u[d];"},
                {"velocity": "for (d = 0; d < 4; ++d) f1[d] = d % 3 == 0 ? -u[2] : 0.0;"},
            ),
            backend="sipg_gpu",
            degree=2,
        ),
        "give -fe_backend hdg_gpu, cg_gpu with degree_offset=-1 of 'pressure'",
    ),
    "data of a component inside the mesh": (
        lambda c, f: fe.Problem(
            divided(c),
            fe.Physics({"u": 2}, None, LAPLACE, boundary=[fe.Dirichlet("middle", "g[1] = 0;", components=[1])]),
            Options(backend="sipg_gpu", check_kernels=False),
        ),
        "of some components on 'middle', which holds facets inside the mesh; sipg_gpu and poly_gpu take data of all",
    ),
    **{
        f"diffusion of another component by {backend}": (
            lambda c, f, backend=backend: problem(c, waves("v"), backend=backend),
            r"diffuses component 0 \('u'\) in the equation of component 1 \('v'\), which has no diffusion of its own",
        )
        for backend in ("sipg_gpu", "poly_gpu")
    },
    "flux through facets inside the mesh": (
        lambda c, f: (made := fe.Problem(divided(c), clamped(), Options(check_kernels=False))).flux(
            "middle", made.create_vec()
        ),
        "The boundary 'middle' holds facets inside the mesh; natural conditions, fluxes and integrals are",
    ),
    **{
        f"a flux by the normal inside the mesh by {backend}": (
            lambda c, f, backend=backend: fe.Problem(
                divided(c),
                physics(boundary=[fe.Dirichlet("boundary", 0.0), fe.Neumann("middle", "g[0] = n[0];")]),
                Options(backend=backend, check_kernels=False),
            ).solve(),
            "The boundary 'middle' holds facets inside the mesh; natural conditions, fluxes and integrals are",
        )
        for backend in ("cg_gpu", "hdg_gpu", "sipg_gpu", "poly_gpu")
    },
    "fast product of a coefficient": (
        lambda c, f: problem(
            c,
            physics(f1="for (d = 0; d < dim; ++d) f1[d] = (1 + x[0])*u_x[d];"),
            backend="sipg_gpu",
            sipg_kernel="affine",
        ),
        "-sipg_kernel affine takes one component, constant coefficients",
    ),
    "fused product by Gauss points": (
        lambda c, f: fe.Problem(
            mesh(c, simplex=False),
            clamped(),
            Options(backend="sipg_gpu", sipg_kernel="fused", quadrature_degree=5, check_kernels=False),
        ),
        "-sipg_kernel fused integrates quadrilateral cells at the nodes that all fields share; leave",
    ),
    "interior penalty too high for local memory": (
        lambda c, f: on_a_device_without(
            c, {"backend": "sipg_gpu", "degree": 6, "sipg_kernel": "fused"}, local_bytes=64
        ),
        "local memory",
    ),
    **{
        f"hanging nodes, {backend}": (
            lambda c, f, b=backend: fe.Problem(hanging(c), clamped(), Options(backend=b, check_kernels=False)),
            r"The mesh has hanging nodes, 1 of them, the first near \(1, 0.5\)",
        )
        for backend in BACKENDS
    },
    "negative tile": (
        lambda c, f: by_database(c, hdg_tile_cells="-1"),
        "hdg_tile_cells -1: give a whole number from 0",
    ),
    "local tolerance as a word": (lambda c, f: by_database(c, hdg_local_rtol="tight"), "tight: give a number"),
    "local tolerance of 1": (
        lambda c, f: by_database(c, hdg_local_rtol="1"),
        "local_rtol 1.0: give a number between 0",
    ),
    "no local iterations": (lambda c, f: by_database(c, hdg_local_max_it="0"), "give a whole number from 1 to 10000"),
    "quadrature degree": (lambda c, f: by_database(c, fe_quadrature_degree="99"), "from -1 to 30"),
    "too many blocks": (
        lambda c, f: by_database(c, fe_kernel="transpose", fe_degree="4", fe_num_blocks="64"),
        "fe_num_blocks 64 needs .* threads",
    ),
    "pressure of degree 0": (
        lambda c, f: problem(c, library.stokes(2), degree=1),
        "gives field 'pressure' the degree 0",
    ),
}

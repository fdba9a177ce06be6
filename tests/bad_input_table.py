"""Bad inputs to physics, options, problems, devices, solvers: name → (call of communicator and folder, pattern).

Bad meshes are in tests/mesh/bad_inputs.py, bad polytopes in bad_input_poly.py. Each call is collective and must raise a
PetscHdgError of one sentence.
"""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from unittest import mock

import numpy as np
from bad_input_poly import BAD_POLY
from petsc_options import petsc_options
from sample_meshes import divided, hanging

import petsc_hdg as fe
from petsc_hdg.options import Options
from petsc_hdg.physics import CFile, library

FLUX = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
MESHES = Path(__file__).parent / "meshes"


def physics(f0="f0[0] = -1;", f1=FLUX, boundary=(), **more):
    """A physics, checked in 2D."""
    made = fe.Physics({"u": 1}, f0, f1, boundary=boundary, name="poisson", **more)
    made.check(2)
    return made


def mesh(c, faces=(3, 3), **more):
    return fe.Mesh.box(faces, comm=c, **more)


def problem(c, the_physics=None, **options):
    options.setdefault("check_kernels", False)
    return fe.Problem(mesh(c), the_physics or clamped(), Options(**options))


def clamped(**more):
    return physics(boundary=[fe.Dirichlet("boundary", 0.0)], **more)


def with_options(call, **values):
    """The value of `call()` under options of PETSc's database."""
    with petsc_options(**values):
        return call()


def by_database(c, **values):
    """A problem whose options come from the database."""
    return with_options(lambda: fe.Problem(mesh(c), clamped()), **values)


def solve(c, the_physics, **values):
    return with_options(lambda: problem(c, the_physics).solve(), **values)


@contextmanager
def device_without(**attributes):
    """Devices that lack what `attributes` say."""
    made = fe.Device.__init__

    def make(self, *args, **kwargs):
        made(self, *args, **kwargs)
        for name, value in attributes.items():
            setattr(self, name, value)

    with mock.patch.object(fe.Device, "__init__", make):
        yield


def on_a_device_without(c, options=None, **attributes):
    with device_without(**attributes):
        return fe.Problem(mesh(c), clamped(), Options(check_kernels=False, **(options or {})))


def no_platform(c):
    with mock.patch("petsc_hdg.device.platforms.all_devices", list):
        return problem(c)


def heated(c, value):
    made = problem(c, library.poisson(kappa=fe.Auxiliary(1), boundary=[fe.Dirichlet("boundary", 0.0)]))
    made.set_auxiliary("kappa", value)
    return made


def regional(c):
    made = fe.Problem(
        fe.Mesh.from_file(MESHES / "regions.msh", comm=c),
        library.poisson(kappa=fe.Auxiliary(1), boundary=[fe.Dirichlet("wall", 0.0)]),
        Options(check_kernels=False),
    )
    made.set_auxiliary("kappa", {"west": 1.0})


def unset(c):
    problem(c, library.poisson(kappa=fe.Auxiliary(1), boundary=[fe.Dirichlet("boundary", 0.0)])).solve()


def report_to(c, folder, name: str):
    made = problem(c, report=str(folder / "no such folder" / name))
    made.report(made.create_vec())


NOT_FINITE = "stopped without a solution|finite|NaN"

BAD = {
    # Physics: the place is named
    "unknown name": (lambda c, f: physics(f1="f1[0] = 1;\nf1[1] = gradu[0];"), r"poisson.*f1.*2.*gradu"),
    "missing semicolon": (lambda c, f: physics("f0[0] = 1\n"), r"poisson.*f0"),
    "unbalanced brace": (lambda c, f: physics("if (x[0] > 0) { f0[0] = 1;"), r"poisson.*f0"),
    "unknown function": (lambda c, f: physics("f0[0] = 1;\n\nf0[0] = sinus(x[0]);"), r"f0.*3.*sinus"),
    "wrong number of arguments": (lambda c, f: physics("f0[0] = pow(x[0]);"), r"f0.*pow"),
    "index outside u": (lambda c, f: physics("f0[0] = u[1];"), r"f0.*u\[1\]|f0.*1"),
    "index outside x": (lambda c, f: physics("f0[0] = x[5];"), r"f0.*x"),
    "index outside f1": (lambda c, f: physics(f1="for (d = 0; d <= dim; ++d) f1[d] = u_x[d];"), r"f1"),
    "unset variable": (lambda c, f: physics("PetscReal w;\nf0[0] = w;"), r"f0.*2.*w"),
    "writes to an input": (lambda c, f: physics("u[0] = 1; f0[0] = u[0];"), r"f0.*u"),
    "unknown constant": (lambda c, f: physics("f0[0] = kapa;", constants={"kappa": 1.0}), r"f0.*kapa"),
    "constant not a number": (lambda c, f: physics("f0[0] = k;", constants={"k": "one"}), "constant.*k"),
    "constant not finite": (lambda c, f: physics("f0[0] = k;", constants={"k": np.nan}), "constant.*k"),
    "unknown constant changed": (lambda c, f: problem(c).set_constants(kappa=2.0), "no constant 'kappa'"),
    "constant changed to NaN": (
        lambda c, f: problem(c, clamped(constants={"k": 1.0})).set_constants(k=float("nan")),
        "constant 'k' is nan; give a finite number",
    ),
    "no fields": (lambda c, f: fe.Physics({}), "no fields"),
    "no components": (lambda c, f: fe.Physics({"u": 0}), "0 components"),
    "fields as a list": (lambda c, f: fe.Physics(["u"]), "mapping"),
    "field name with a blank": (lambda c, f: fe.Physics({"my u": 1}), "cannot be named so"),
    "unknown space": (
        lambda c, f: physics(auxiliary={"k": fe.Auxiliary(1, "facet")}),
        "'facet'; the spaces are cell, nodal",
    ),
    "condition of unknown kind": (lambda c, f: physics(boundary=["left"]), "left|str"),
    "condition on unknown field": (
        lambda c, f: physics(boundary=[fe.Dirichlet("left", 0.0, field="p")]),
        "'p'",
    ),
    "condition on unknown component": (
        lambda c, f: physics(boundary=[fe.Dirichlet("left", 0.0, components=[3])]),
        "3",
    ),
    "exact where none is given": (lambda c, f: physics(boundary=[fe.Dirichlet("left", "exact")]), "exact"),
    "g never written": (lambda c, f: physics(boundary=[fe.Dirichlet("left", "PetscReal s = x[0];")]), r"g\[0\]|g"),
    "unknown Jacobian block": (lambda c, f: physics(jacobian={"g4": "g4[0] = 1;"}), "g4"),
    "missing C file": (lambda c, f: physics(Path(f) / "none.c"), "none.c"),
    "function not in the C file": (lambda c, f: physics(CFile(Path(__file__), "f0_heat")), "f0_heat|bad_input_table"),
    "wrong dimension": (lambda c, f: physics().check(4), "4 dimensions; 1, 2 and 3"),
    # Options
    "unknown backend": (lambda c, f: by_database(c, fe_backend="dg"), "fe_backend dg: not known; valid are cg_gpu"),
    "unknown option": (lambda c, f: by_database(c, fe_degre="2"), "-fe_degre is not an option; known are"),
    "degree 0": (
        lambda c, f: by_database(c, fe_degree="0"),
        "fe_degree 0 gives field 'u' the degree 0; cg_gpu takes 1 to 4",
    ),
    "degree 5": (lambda c, f: by_database(c, fe_degree="5"), "degree 5; cg_gpu takes 1 to 4"),
    "degree 40": (lambda c, f: by_database(c, fe_degree="40"), "fe_degree 40: give a whole number from"),
    "degree as a word": (lambda c, f: by_database(c, fe_degree="two"), "fe_degree two: give a whole number"),
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
    "stabilization of no effect": (lambda c, f: by_database(c, hdg_tau="0"), "-hdg_tau 0: give auto, a number above 0"),
    "negative stabilization": (lambda c, f: by_database(c, hdg_tau="-1.5"), "-hdg_tau -1.5: give auto, a number above"),
    "no stabilization": (lambda c, f: by_database(c, hdg_tau=""), "-hdg_tau : give auto, a number above 0, or a C"),
    "stabilization that is no expression": (
        lambda c, f: problem(c, backend="hdg_gpu", hdg_tau="1 +"),
        "-hdg_tau 1 \\+: '1 \\+' is not a complete expression of C",
    ),
    "stabilization of an unknown name": (
        lambda c, f: problem(c, clamped(constants={"kappa": 1.0}), backend="hdg_gpu", hdg_tau="fabs(kapa)"),
        "-hdg_tau .*: unknown name 'kapa'; did you mean 'kappa'",
    ),
    "stabilization by the solution": (lambda c, f: physics(stabilization="u[0]"), "stabilization.*'u' cannot be used"),
    "stabilization that is not positive": (
        lambda c, f: problem(c, backend="hdg_gpu", hdg_tau="x[0] - 0.5").solve(),
        "tau is not positive and finite on a facet of cell .*; give -hdg_tau",
    ),
    "degree 10 of HDG": (lambda c, f: problem(c, backend="hdg_gpu", degree=10), "degree 10; hdg_gpu takes 0 to 9"),
    "full HDG of a transient physics": (
        lambda c, f: problem(c, physics("f0[0] = u_t[0];"), backend="hdg_gpu", hdg_setting="full").solve(),
        "hdg_setting full does not go with u_t",
    ),
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
    "single precision beside an assembled trace matrix": (
        lambda c, f: problem(c, backend="hdg_gpu", hdg_trace_precision="single", pmat="aij"),
        "-hdg_trace_precision single goes with -fe_pmat none, and it is aij: leave one of them out",
    ),
    "unknown setting": (
        lambda c, f: by_database(c, hdg_setting="mixed"),
        "mixed: not known; valid are condensed, full",
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
    "interior penalty of two degrees": (
        lambda c, f: problem(c, library.stokes(2), backend="sipg_gpu", degree=2),
        "'stokes' has degree_offset -1 of 'pressure', and all fields of sipg_gpu",
    ),
    "data inside the mesh": (
        lambda c, f: fe.Problem(
            divided(c),
            physics(boundary=[fe.Dirichlet("middle", 0.0)]),
            Options(backend="sipg_gpu", check_kernels=False),
        ),
        "'middle', which holds facets inside the mesh; sipg_gpu takes conditions on the exterior only",
    ),
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
        "-sipg_kernel fused integrates quadrilateral cells at their nodes; leave -fe_quadrature_degree out",
    ),
    "interior penalty too high for local memory": (
        lambda c, f: on_a_device_without(
            c, {"backend": "sipg_gpu", "degree": 6, "sipg_kernel": "fused"}, local_bytes=64
        ),
        "local memory",
    ),
    "hanging nodes": (
        lambda c, f: fe.Problem(hanging(c), clamped(), Options(backend="sipg_gpu", check_kernels=False)),
        r"The mesh has hanging nodes, 1 of them, the first near \(1, 0.5\)",
    ),
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
    # Labels and data
    "unknown label of an essential condition": (
        lambda c, f: problem(c, physics(boundary=[fe.Dirichlet("lid", 0.0)])),
        "no boundary called 'lid'; known here: .*'top'",
    ),
    "unknown label of a natural condition": (
        lambda c, f: problem(c, physics(boundary=[fe.Neumann("lid", "g[0] = 1;")])),
        "no boundary called 'lid'",
    ),
    "auxiliary field not set": (lambda c, f: unset(c), "'kappa' has no values yet: call problem.set_auxiliary"),
    "unknown auxiliary field": (
        lambda c, f: problem(c).set_auxiliary("kappa", 1.0),
        "no auxiliary field 'kappa'.*none",
    ),
    "auxiliary array of the wrong shape": (lambda c, f: heated(c, np.ones((3, 5))), r"array of shape \(3, 5\)"),
    "auxiliary function of the wrong shape": (lambda c, f: heated(c, lambda x: np.ones(7)), r"returned shape \(7,\)"),
    "auxiliary not for all regions": (lambda c, f: regional(c), "no value in 22 cells: the regions west do not cover"),
    "errors without an exact solution": (
        lambda c, f: (lambda p: p.errors(p.create_vec()))(problem(c)),
        "no exact solution to compare with",
    ),
    # Devices
    "no such device": (
        lambda c, f: by_database(c, fe_device="abacus"),
        "no OpenCL device matches 'abacus'; it may be gpu",
    ),
    "no such device number": (lambda c, f: by_database(c, fe_device="99"), "no OpenCL device matches '99'"),
    "no device at all": (lambda c, f: no_platform(c), "no OpenCL device was found: install an OpenCL driver"),
    "no double precision": (
        lambda c, f: on_a_device_without(c, has_fp64=False),
        "double precision.*-fe_precision single",
    ),
    "no local memory": (
        lambda c, f: on_a_device_without(c, {"kernel": "transpose", "degree": 4}, local_bytes=64),
        "local memory, the device has 64",
    ),
    # Solvers
    "NaN from the physics": (
        lambda c, f: solve(c, clamped_with("f0[0] = sqrt(-1 - u[0]*u[0]);")),
        NOT_FINITE,
    ),
    "NaN in the Jacobian": (
        lambda c, f: solve(c, clamped_with("f0[0] = u[0] >= 0 ? sqrt(u[0]) - 1 : -1;")),
        NOT_FINITE,
    ),
    "singular Jacobian": (
        lambda c, f: solve(c, physics("f0[0] = -1;", None), pc_type="lu" if c.size == 1 else "jacobi"),
        "has no solution: .* must balance",
    ),
    "too few iterations": (
        lambda c, f: solve(c, clamped_with("f0[0] = -x[0];"), ksp_max_it="1", pc_type="none"),
        "DIVERGED_MAX_IT after 1 iterations",
    ),
    "unknown solver": (lambda c, f: solve(c, clamped(), ksp_type="magic"), "magic|ksp_type"),
    "unknown preconditioner": (lambda c, f: solve(c, clamped(), pc_type="magic"), "magic|pc_type"),
    # Output
    "report in no folder": (lambda c, f: report_to(c, f, "r.json"), "r.json"),
    "picture in no folder": (
        lambda c, f: (lambda p: p.plot(f / "none" / "u.png", p.create_vec()))(problem(c)),
        "u.png",
    ),
    "VTU in no folder": (
        lambda c, f: (lambda p: p.write(f / "none" / "u.vtu", p.create_vec()))(problem(c)),
        "u.vtu",
    ),
    # Meshes, of which tests/mesh has many more
    "missing mesh file": (
        lambda c, f: with_options(lambda: fe.Mesh.from_options(c), dm_plex_filename="none.msh"),
        "none.msh does not exist",
    ),
    "mixed cells": (lambda c, f: fe.Mesh.from_file(MESHES / "mixed.msh", comm=c), "one shape in a mesh"),
    **BAD_POLY,
}


def clamped_with(f0: str):
    return physics(f0, boundary=[fe.Dirichlet("boundary", 0.0)])

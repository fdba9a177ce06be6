"""Orders in time of BDF, whose first steps are made apart, and of Rosenbrock methods: u_t = -u and u_t = -u².

python benchmarks/bdf_start.py
"""

from __future__ import annotations

import sys

import numpy as np
import petsc4py

import petsc_hdg as fe

petsc4py.init(sys.argv)

from petsc4py import PETSc  # noqa: E402

from petsc_hdg.database import defaults_in_database  # noqa: E402

STEPS = 10, 20, 40, 80
LAWS = {"u_t = -u": ("u[0]", "exp(-t)"), "u_t = -u^2": ("u[0]*u[0]", "1/(1 + t)")}
METHODS = {f"bdf {order}": {"ts_type": "bdf", "ts_bdf_order": str(order)} for order in (2, 3, 4, 5, 6)}
METHODS |= {f"rosw {kind}": {"ts_type": "rosw", "ts_rosw_type": kind} for kind in ("ra34pw2", "4l")}


def error(law: str, count: int) -> float:
    """L2 error at t = 1 of so many steps from u = 1."""
    rate, exact = LAWS[law]
    physics = fe.Physics(
        {"u": 1}, f"f0[0] = u_t[0] + {rate};", "for (d = 0; d < dim; ++d) f1[d] = 0*u_x[d];", exact=f"u[0] = {exact};"
    )
    problem = fe.Problem(fe.Mesh.box((1, 1), simplex=False), physics, backend="cg_gpu", degree=1)
    return problem.errors(problem.solve_in_time(problem.interpolate(1.0), 1.0, 1 / count), 1.0)["L2"]


for method, options in METHODS.items():
    for law in LAWS:
        with defaults_in_database("", {**options, "ksp_rtol": "1e-13", "snes_rtol": "1e-12"}, unless="none"):
            errors = np.array([error(law, count) for count in STEPS])
        orders = ", ".join(f"{value:.2f}" for value in np.log2(errors[:-1] / errors[1:]))
        PETSc.Sys.Print(f"{method:14} {law:10} errors {errors[0]:.1e} to {errors[-1]:.1e}, orders {orders}")

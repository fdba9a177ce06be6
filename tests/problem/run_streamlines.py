"""Under mpiexec: values of solutions with -cg_stabilization supg at points, as JSON {degree: values}."""

from __future__ import annotations

import json

import numpy as np
from petsc4py import PETSc

import petsc_hdg as fe

POINTS = np.random.default_rng(1).uniform(0.1, 0.9, (20, 2))


def source(wind: tuple = (2.0, 1.0), kappa: float = 1e-6, **given) -> fe.Physics:
    """b·∇u - κΔu = 1 with u = 0 around: min x_d / b_d, with layers where the wind leaves."""
    convection = " + ".join(f"{speed}*u_x[{d}]" for d, speed in enumerate(wind))
    flux = "for (d = 0; d < dim; ++d) f1[d] = kappa*u_x[d];"
    around = [fe.Dirichlet("boundary", 0.0)]
    return fe.Physics({"u": 1}, f"f0[0] = {convection} - 1;", flux, constants={"kappa": kappa}, boundary=around)


def main() -> None:
    found = {}
    for degree in (1, 2):
        problem = fe.Problem(fe.Mesh.box((8, 8)), source(), degree=degree, cg_stabilization="supg")
        found[degree] = problem.at(problem.solve(), POINTS)["u"].ravel().tolist()
    PETSc.Options()["fe_mesh_ranks"] = "1"
    alone = fe.Problem(fe.Mesh.box((8, 8)), source(), degree=2, cg_stabilization="supg")
    np.testing.assert_allclose(alone.at(alone.solve(), POINTS)["u"].ravel(), found[2], rtol=1e-6)
    PETSc.Sys.Print(json.dumps(found))


if __name__ == "__main__":
    main()

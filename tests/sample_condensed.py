"""Physics of the tests of condensed schemes: linear and nonlinear, one to five components, all coefficients."""

from __future__ import annotations

import numpy as np

from petsc_hdg.physics import Auxiliary, BoundaryFlux, Dirichlet, Neumann, Physics, Robin, library

LAPLACE = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
ZERO_LEFT = Dirichlet("left", "g[0] = 0.2 + x[1];")
OBLIQUE = "for (d = 0; d < dim; ++d) f1[d] = 0.05*x[0]*u_x[dim - 1 - d] - 0.1*n[d]*u[0];"


def tensor() -> Physics:
    """Anisotropic diffusion by a tensor with a nodal coefficient."""
    return Physics(
        {"u": 1},
        f0="f0[0] = -a[0]*x[0];",
        f1="for (d = 0; d < dim; ++d) f1[d] = (1 + d)*a[0]*u_x[d] + 0.2*(u_x[0] + u_x[dim - 1]);",
        auxiliary={"k": Auxiliary(1, "nodal")},
        boundary=[ZERO_LEFT, Neumann("right", "g[0] = n[0]*a[0] + x[1];")],
        name="tensor diffusion",
    )


def convection() -> Physics:
    """Convection, diffusion and reaction, with coefficients constant in the cell and nodal, and time."""
    return Physics(
        {"u": 1},
        f0="f0[0] = beta*u[0] - t*x[0] + a_x[dim]*u_x[0];",
        f1="for (d = 0; d < dim; ++d) f1[d] = a[0]*u_x[d] - (1 + d)*u[0];",
        auxiliary={"nu": Auxiliary(1, "cell"), "w": Auxiliary(1, "nodal")},
        constants={"beta": 0.7},
        boundary=[ZERO_LEFT, Robin("right", "f0[0] = (n[0] + 1.5)*u[0] + 0.3*u_x[0] - x[1]*beta;", f1=OBLIQUE)],
        name="convection",
    )


def elasticity(dim: int) -> Physics:
    """A displacement, clamped in one component only on part of the boundary."""
    return library.elasticity(
        dim,
        "f0[0] = -1.0; f0[1] = x[0];",
        boundary=[
            Dirichlet("left", 0.0),
            Dirichlet("bottom", "g[1] = 0.1*x[0];", components=(1,)),
            Neumann("right", "g[0] = x[1];"),
        ],
    )


def five() -> Physics:
    """Five coupled components in two fields, not symmetric."""
    rows = " ".join(f"f0[{c}] = u[{c}] - u[{(c + 1) % 3}] + 0.1*u[{3 + c % 2}]*x[0] + x[1];" for c in range(3))
    return Physics(
        {"v": 3, "w": 2},
        f0={"v": rows, "w": "f0[0] = u[3] + u_x[0]; f0[1] = u[4] - u[0];"},
        f1={
            "v": "for (d = 0; d < 3*dim; ++d) f1[d] = (1 + 0.1*d)*u_x[d] + 0.1*u_x[3*dim + d % dim];",
            "w": "for (d = 0; d < 2*dim; ++d) f1[d] = u_x[3*dim + d] - 0.2*u[d % 3];",
        },
        boundary=[
            Dirichlet("left", "g[0] = x[1]; g[1] = 0; g[2] = 1;", field="v"),
            Robin("right", "f0[0] = u[3] - u[0]; f0[1] = 0.3*u_x[1];", field="w"),
        ],
        name="five components",
    )


def minimal_surface() -> Physics:
    return library.minimal_surface(boundary=[Dirichlet("boundary", "g[0] = 0.3*sin(PETSC_PI*x[0])*(1 + x[1]);")])


def nonlinear(f1: str | None = None) -> Physics:
    """Diffusivity and reaction that depend on u, a Robin condition that is not linear and reads the gradient."""
    return Physics(
        {"u": 1},
        f0="f0[0] = u[0]*u[0]*u[0] - 1 + x[0];",
        f1="for (d = 0; d < dim; ++d) f1[d] = (1 + a[0]*u[0]*u[0])*u_x[d];",
        auxiliary={"k": Auxiliary(1, "cell")},
        boundary=[ZERO_LEFT, Robin("right", "f0[0] = u[0]*u[0] + 0.2*u_x[0]*n[0] + u[0];", f1=f1)],
        name="nonlinear diffusion",
    )


def burgers() -> Physics:
    """Diffusion with the flux u²/2 along a fixed direction."""
    return Physics(
        {"u": 1},
        f0="f0[0] = -1 - x[0];",
        f1="for (d = 0; d < dim; ++d) f1[d] = 0.2*u_x[d] - 0.5*u[0]*u[0]*(d == 0 ? 1.0 : 0.5);",
        boundary=[Dirichlet("left", "g[0] = 1 + 0.2*x[1];"), Dirichlet("boundary", "g[0] = 0.5;")],
        stabilization="1.5",
        name="Burgers",
    )


def law(stabilization: str | None = None) -> Physics:
    """A system of two laws with a matrix of stabilization that follows the state, and boundary fluxes that read all of
    it beside a Robin condition."""
    stabilization = (
        stabilization or "S[0] = 2 + a[0]*u[0]*u[0]; S[1] = 0.1*u[1]*n[0]; S[2] = x[1]*u[0]; S[3] = 2 + u[1];"
    )
    return Physics(
        {"u": 2},
        f0="f0[0] = 3*u[0] + u[1]*u[1] - 1 - t; f0[1] = 2*u[1] + 0.1*u_x[0]*u[0] - x[0];",
        f1="""for (d = 0; d < dim; ++d) {
              f1[d] = 0.5*u_x[d] - u[0]*u[0]/u[1];
              f1[dim + d] = u_x[dim + d] - d*u[0]*u[1]; }""",
        auxiliary={"k": Auxiliary(1, "nodal")},
        boundary=[
            Dirichlet("top", "g[0] = 1; g[1] = 1 + x[0];"),
            BoundaryFlux(
                "left", "b[0] = f_hat[0] + u[0]*u_in[1] + 0.2*u_x[dim]; b[1] = u[1] - u_in[1]*n[0] + f_hat[1]*u[0];"
            ),
            Robin("left", "f0[0] = u[0]*u[1]; f0[1] = 0.1*u_x[0];"),
            BoundaryFlux("right", "b[0] = u[0] - u_in[0]; b[1] = f_hat[1] - 0.1;"),
        ],
        stabilization=stabilization,
        name="law",
    )


def poisson() -> Physics:
    return Physics({"u": 1}, "f0[0] = -1 - x[0];", LAPLACE, boundary=[ZERO_LEFT], name="Poisson")


def by_name(name: str, dim: int) -> Physics:
    """The physics by name, in a dimension."""
    made = {
        "poisson": poisson,
        "tensor": tensor,
        "convection": convection,
        "elasticity": lambda: elasticity(dim),
        "five": five,
        "minimal surface": minimal_surface,
        "nonlinear": nonlinear,
        "oblique": lambda: nonlinear(OBLIQUE),
        "burgers": burgers,
        "law": law,
        "speeds": lambda: law("tau[0] = 1 + fabs(u[0]*n[0]); tau[1] = 2 + u[1]*u[1];"),
        "matrix": lambda: library.elasticity(
            dim, stabilization="for (c = 0; c < Nc*Nc; ++c) S[c] = c % (Nc + 1) ? 0.2 : 2;"
        ),
    }
    return made[name]()


def cell_balance(operator, x, t: float = 0.0) -> tuple[float, float]:
    """Largest |Σ flux - ∫ f0| of a cell and a component, and the largest flux or source, over all ranks."""
    through, source = operator.recovery.fluxes(x, t)
    gap = np.abs(through.sum(axis=1) - source).max(initial=0.0)
    scale = max(np.abs(through).max(initial=0.0), np.abs(source).max(initial=0.0))
    found = operator.discretization.mesh.comm.allgather((float(gap), float(scale)))
    return max(f[0] for f in found), max(f[1] for f in found)

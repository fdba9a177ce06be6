"""Physics for the default preconditioner of hybridizable DG, with the kind of their derivatives."""

from __future__ import annotations

import petsc_hdg as fe
from petsc_hdg.physics import library

ZERO = (fe.Dirichlet("boundary", 0.0),)


def diffusion(f0: str = "f0[0] = -1;", k: str = "1.0", boundary=ZERO, **others) -> fe.Physics:
    """-∇·(k ∇u) + … = … of one component."""
    return fe.Physics(
        {"u": 1}, f0=f0, f1=f"for (d = 0; d < dim; ++d) f1[d] = ({k})*u_x[d];", boundary=list(boundary), **others
    )


def pair(f0: str, f1: str, components: int = 2, **others) -> fe.Physics:
    """A system with zero on the whole boundary."""
    zero = fe.Dirichlet("boundary", [0.0] * components)
    return fe.Physics({"u": components}, f0=f0, f1=f1, boundary=[zero], **others)


NO_FLUX = "for (d = 0; d < dim; ++d) f1[dim*dim + d] = 0;"
GRADIENTS = "for (c = 0; c < 2; ++c) for (d = 0; d < dim; ++d) f1[c*dim + d] = u_x[c*dim + d];"
P_LAPLACE = """
    PetscReal s = 1e-4;
    for (d = 0; d < dim; ++d) s += u_x[d]*u_x[d];
    for (d = 0; d < dim; ++d) f1[d] = sqrt(s)*u_x[d];
"""
CROSSED = "for (d = 0; d < dim; ++d) { f1[d] = u_x[d] + 0.9*u_x[dim+d]; f1[dim+d] = 0.9*u_x[d] + u_x[dim+d]; }"
PAIR = "for (d = 0; d < dim; ++d) { f1[d] = (1 + u[1]*u[1])*u_x[d]; f1[dim+d] = (1 + u[0]*u[0])*u_x[dim+d]; }"

TURNED = "f1[0] = u_x[0] + u_x[1]; f1[1] = u_x[1] - u_x[0]; if (dim > 2) f1[2] = u_x[2];"


def turning_load() -> fe.Physics:
    """An elastic body in a field of force across the displacement, clamped on the left."""
    clamped, load = [fe.Dirichlet("left", [0.0] * 3)], "f0[0] = -1 + u[1]; f0[1] = 1 - u[0]; f0[2] = 0;"
    return library.elasticity(3, load, lame_lambda=8.4, boundary=clamped)


# Name → physics, kind of its derivative.
PHYSICS = {
    "Poisson": (diffusion(), "symmetric"),
    "coefficient": (diffusion(k="a[0]", auxiliary={"k": 1}), "symmetric"),
    "reaction": (diffusion("f0[0] = -1 + 1e4*u[0];"), "symmetric"),
    "Helmholtz": (diffusion("f0[0] = -1 - 100*u[0];"), "symmetric"),
    "no condition": (diffusion("f0[0] = -cos(PETSC_PI*x[0]);", boundary=()), "symmetric"),
    "Robin": (diffusion(boundary=(fe.Robin("boundary", "f0[0] = 10*u[0];"),)), "symmetric"),
    "Robin of another slope": (diffusion(boundary=(fe.Robin("boundary", "f0[0] = u_x[0];"),)), "coupled"),
    "cubic reaction": (diffusion("f0[0] = -1 + u[0]*u[0]*u[0];"), "symmetric"),
    "p-Laplacian": (fe.Physics({"u": 1}, "f0[0] = -1;", P_LAPLACE, boundary=list(ZERO)), "symmetric"),
    "coupled": (pair("f0[0] = -1 + 10*u[0] - 5*u[1]; f0[1] = -2 - 5*u[0] + 10*u[1];", GRADIENTS), "symmetric"),
    "cross diffusion": (pair("f0[0] = -1; f0[1] = -2;", CROSSED), "symmetric"),
    "coupled one way": (pair("f0[0] = -1 - 5*u[1]; f0[1] = -2;", GRADIENTS), "coupled"),
    "turned tensor": (fe.Physics({"u": 1}, "f0[0] = -1;", TURNED, boundary=list(ZERO)), "coupled"),
    "turning load": (turning_load(), "coupled"),
    "1 + u²": (diffusion(k="1 + u[0]*u[0]"), "diffusive"),
    "1 + v², 1 + u²": (pair("f0[0] = -1; f0[1] = -2;", PAIR), "diffusive"),
    "wind": (diffusion("f0[0] = -1 + w*u_x[0];", constants={"w": 0.0}), "convective"),
    "wind, 1 + u²": (diffusion("f0[0] = -1 + u_x[0] + u[0]*u[0];", k="1 + u[0]*u[0]"), "convective"),
    "transport": (fe.Physics({"u": 1}, "f0[0] = -1 + u_x[0];", None, boundary=list(ZERO)), "other"),
    "Hamilton-Jacobi": (diffusion("f0[0] = -1; for (d = 0; d < dim; ++d) f0[0] += u_x[d]*u_x[d];"), "other"),
    "Burgers": (fe.Physics({"u": 1}, "f0[0] = -1;", "for (d = 0; d < dim; ++d) f1[d] = u_x[d] - u[0]*u[0];"), "other"),
    "heat": (diffusion("f0[0] = u_t[0];"), "symmetric"),
    "heat, 1 + u²": (diffusion("f0[0] = u_t[0] - 1;", k="1 + u[0]*u[0]"), "diffusive"),
}

"""Laws for interior penalty, as our physics and as what scikit-fem's forms are made of: f0 and f1 as functions of u."""

from __future__ import annotations

import numpy as np

from petsc_hdg.physics import Dirichlet, Neumann, Physics, Robin, library


class Transport:
    """Diffusion by a tensor, convection in f1 and in f0, reaction; what f0 and f1 are as functions of u."""

    def physics(self, dim: int) -> Physics:
        return Physics(
            {"u": 1},
            f0="f0[0] = 3*u[0] - x[0] + 0.7*u_x[0];",
            f1="""
                f1[0] = (1 + x[0])*u_x[0] + 0.2*u_x[1];
                f1[1] = 0.2*u_x[0] + (2 + x[0]*x[1])*u_x[1];
                if (dim > 2) f1[2] = 1.5*u_x[2];
                for (d = 0; d < dim; ++d) f1[d] -= 0.5*(d + 1)*u[0];
            """,
            boundary=[
                Dirichlet("left", "g[0] = 0.2 + x[1];"),
                Robin("right", "f0[0] = (1 + x[1])*u[0] - 2;"),
                Neumann("top", "g[0] = x[0];"),
            ],
            name="transport",
        )

    def diffusion(self, slope, x):
        """Diffusive part of f1 [component, dim, …] for gradients slope."""
        a, b = slope[:, 0], slope[:, 1]
        rows = [(1 + x[0]) * a + 0.2 * b, 0.2 * a + (2 + x[0] * x[1]) * b]
        return np.concatenate([np.stack(rows, axis=1), 1.5 * slope[:, 2:]], axis=1)

    def convection(self, value, x):
        return np.stack([-0.5 * (d + 1) * value for d in range(len(x))], axis=1)

    def reaction(self, value, slope, x):
        return 3 * value + 0.7 * slope[:, 0]

    def facet_reaction(self, value, normal, x):
        """f0 of a gradient value * normal."""
        return 0.7 * value * normal[0]

    def source(self, x):
        return -x[:1]

    def data(self, x):
        return 0.2 + x[1:2]

    def robin(self, value, x):
        return (1 + x[1]) * value

    natural = {"right": lambda x: 0 * x[:1] - 2, "top": lambda x: -x[:1]}
    held = {"left": (0,)}


class Elasticity:
    """Elasticity with a reaction, clamped on the left and, in one component, at the bottom."""

    def physics(self, dim: int) -> Physics:
        source = "for (d = 0; d < dim; ++d) f0[d] = (d + 1)*x[0]*u[d] - x[1];"
        boundary = [
            Dirichlet("left", "for (int c = 0; c < dim; ++c) g[c] = x[1] + c;"),
            Dirichlet("bottom", "g[1] = x[1] + 1;", components=(1,)),
            Robin("right", "for (d = 0; d < dim; ++d) f0[d] = x[1]*u[d];"),
        ]
        return library.elasticity(dim, source, lame_lambda=1.3, mu=0.7, boundary=boundary)

    def diffusion(self, slope, x):
        trace = np.einsum("cc...->...", slope)
        return 0.7 * (slope + slope.swapaxes(0, 1)) + 1.3 * np.eye(len(x))[:, :, None, None] * trace

    def convection(self, value, x):
        return np.zeros((len(x), *value.shape)).swapaxes(0, 1)

    def reaction(self, value, slope, x):
        return np.arange(1, len(x) + 1)[:, None, None] * x[0] * value

    def facet_reaction(self, value, normal, x):
        return 0 * value

    def source(self, x):
        return np.stack([-x[1]] * len(x))

    def data(self, x):
        return x[1] + np.arange(len(x))[:, None, None]

    def robin(self, value, x):
        return x[1] * value

    natural: dict = {}
    held = {"left": (0, 1, 2), "bottom": (1,)}


LAWS = {"transport": Transport(), "elasticity": Elasticity()}

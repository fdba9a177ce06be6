"""Advection-diffusion-reaction with constants in solution and coefficients, so that one program has many solutions."""

from __future__ import annotations

import sympy

from petsc_hdg.physics import Dirichlet, Physics, Symbols, manufactured

WIND = (1.0, 0.6, -0.4)
CONSTANTS = {"eps": 1.0, "speed": 1.0, "smooth": 1.0, "q1": 0.0, "q2": 0.0, "q3": 0.0, "q4": 0.0}


def blended(dim: int) -> Physics:
    """-∇·(eps ∇u) + speed w·∇u + u = f with Dirichlet data everywhere.

    u = smooth · (a product of waves) + Σ_k q_k (l^k + m^k) with two linear functions l and m.
    """
    s = Symbols(dim, {"u": 1})
    eps, speed, smooth = sympy.symbols("eps speed smooth")
    x = list(s.x)
    exact = smooth * sympy.sin(x[0] + 0.5)
    for y in x[1:]:
        exact *= sympy.cos(1.5 * y - 0.3)
    line = x[0] - 0.6 * x[1] + 0.3 * x[-1]
    other = 0.5 * x[0] + x[-1] - 0.4
    for k in range(1, 5):
        exact += sympy.Symbol(f"q{k}") * (line**k + other**k)

    def flux(u, grad):
        return eps * grad

    def reaction(u, grad):
        return speed * sum(w * g for w, g in zip(WIND, grad, strict=False)) + u

    return Physics(
        {"u": 1},
        f0=reaction(s.value("u"), s.grad("u")) + manufactured(s.x, exact, flux, reaction),
        f1=flux(s.value("u"), s.grad("u")),
        boundary=[Dirichlet("boundary", "exact")],
        exact=exact,
        constants=CONSTANTS,
        name=f"blended {dim}",
    )

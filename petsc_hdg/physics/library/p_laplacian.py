"""The p-Laplace equation, -∇·((ε² + |∇u|²)^((p-2)/2) ∇u) = f."""

from __future__ import annotations

from petsc_hdg.physics.pointwise import Physics

_FLUX = """\
PetscReal square = epsilon * epsilon;
for (PetscInt d = 0; d < dim; ++d) square += u_x[d] * u_x[d];
const PetscReal weight = PetscPowReal(square, 0.5 * (p - 2.0));
for (PetscInt d = 0; d < dim; ++d) f1[d] = weight * u_x[d];"""


def p_laplacian(f0: object = "f0[0] = -1.0;", *, p: float = 3.0, epsilon: float = 1e-5, **others) -> Physics:
    """Field u with exponent `p` > 1, regularised by `epsilon` (a gradient); both are constants, for continuation."""
    others.setdefault("name", "p_laplacian")
    others["constants"] = {"p": p, "epsilon": epsilon, **dict(others.get("constants") or {})}
    return Physics({"u": 1}, f0, _FLUX, **others)

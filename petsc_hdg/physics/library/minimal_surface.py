"""The minimal surface equation, -∇·(∇u / √(1 + |∇u|²)) = f."""

from __future__ import annotations

from petsc_hdg.physics.pointwise import Physics

_FLUX = """\
PetscReal square = 1.0;
for (PetscInt d = 0; d < dim; ++d) square += PetscSqr(u_x[d]);
for (PetscInt d = 0; d < dim; ++d) f1[d] = u_x[d] / PetscSqrtReal(square);"""


def minimal_surface(f0: object = None, **others) -> Physics:
    """Height u of a surface over the plane (in any dimension); f0 = -f."""
    others.setdefault("name", "minimal_surface")
    return Physics({"u": 1}, f0, _FLUX, **others)

"""What the tables of wrong physics are made of."""

from __future__ import annotations

import pytest

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics import Physics

FLUX = "for (PetscInt d = 0; d < dim; ++d)\n  f1[d] = u_x[d];"


def text(f0: str, **others):
    """A physics with this f0 in two dimensions."""
    return lambda: Physics({"u": 1}, f0, FLUX, **others).device_source(2)


def given(*arguments, **others):
    """A physics of these arguments in two dimensions."""
    return lambda: Physics(*arguments, **others).device_source(2)


def boundary(condition, **others):
    """Poisson with one boundary condition."""
    return lambda: Physics({"u": 1}, None, FLUX, boundary=[condition], **others).device_source(2)


def helper(helpers: str, f0: str = "f0[0] = f(u[0]);"):
    """A physics with a helper function."""
    return text(f0, helpers=helpers)


WHOLE = (
    "void f0_u(PetscInt dim, PetscInt Nf, PetscInt NfAux, const PetscInt uOff[], const PetscInt uOff_x[],"
    "const PetscScalar u[], const PetscScalar u_t[], const PetscScalar u_x[], const PetscInt aOff[],"
    "const PetscInt aOff_x[], const PetscScalar a[],"
    "const PetscScalar a_t[], const PetscScalar a_x[], PetscReal t, const PetscReal x[], PetscInt numConstants,"
    "const PetscScalar constants[], PetscScalar f0[])\n{\n"
)


def assert_one_clear_sentence(do, message: str) -> None:
    """`do` raises a PhysicsError whose text has `message`, names the physics and is one line."""
    with pytest.raises(PhysicsError) as caught:
        do()
    said = str(caught.value)
    assert message in said
    assert "physics" in said and "\n" not in said and len(said) < 600

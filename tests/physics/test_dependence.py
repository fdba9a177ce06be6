"""Physics.dependence: the constants and auxiliary components that matrices may read."""

from __future__ import annotations

import pytest

from petsc_hdg.physics import Dirichlet, Neumann, Physics, Robin

FLUX = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
CONSTANTS = {"p": 1.0, "q": 2.0, "r": 3.0}
HELPERS = "PetscReal second(const PetscReal *v) { return v[1]; } PetscReal twice(PetscReal s) { return 2*s; }"
# f0 → constants and auxiliary components (of three) that its derivative may read
TEXTS = {
    "f0[0] = p*u[0] + q*a[1];": ("p", ()),
    "f0[0] = -q;": ("", ()),
    "f0[0] = constants[1]*u[0];": ("q", ()),
    "f0[0] = a[2]*u_x[0] + r*a[0];": ("", (2,)),
    "f0[0] = twice(q*u[0]) + twice(p);": ("q", ()),
    "f0[0] = second(constants)*u[0];": ("pqr", ()),
    "f0[0] = second(constants) + u[0];": ("", ()),
    "for (PetscInt i = 0; i < 2; ++i) f0[0] += constants[i]*u[0];": ("pqr", ()),
    "const PetscReal *c = &constants[1]; f0[0] = c[1]*u[0];": ("pqr", ()),
    "PetscReal s = p; s *= q; f0[0] = s*u[0] + r;": ("pq", ()),
    "if (p > 0) f0[0] = u[0] + q; else f0[0] = q;": ("p", ()),
    "f0[0] = a_x[dim]*u[0] - a[0];": ("", (1,)),
    "f0[0] = q*u_t[0] + p*t;": ("q", ()),
}


def reads(f0=None, f1=FLUX, with_stabilization=False, **others) -> tuple[str, tuple]:
    made = Physics({"u": 1}, f0, f1, auxiliary={"k": 3}, constants=CONSTANTS, helpers=HELPERS, **others)
    found = made.dependence(2, with_stabilization)
    return "".join(made.constant_names[number] for number in found.constants), found.auxiliary


@pytest.mark.parametrize("f0", TEXTS)
def test_derivatives_of_a_source(f0):
    assert reads(f0) == TEXTS[f0]


def test_a_flux():
    assert reads("f0[0] = q;", "for (d = 0; d < dim; ++d) f1[d] = p*a[0]*u_x[d] + r*a[1];") == ("p", (0,))


def test_a_jacobian_by_hand_is_what_is_read():
    g3 = "for (d = 0; d < dim; ++d) g3[d*dim + d] = r;"
    assert reads("f0[0] = p*u[0];", jacobian={"g3": g3}) == ("r", ())


def test_conditions_count_where_they_are_differentiated():
    given = [Dirichlet("left", "g[0] = p;"), Neumann("top", "g[0] = q*a[0];"), Robin("right", "f0[0] = r*u[0] - q;")]
    assert reads(boundary=given) == ("r", ())


def test_what_conditions_add_to_matrices():
    """Nothing, the same on every facet, or what differs: where they read x, and where they multiply gradients."""
    texts = {"f0": "f0[0] = x[0];", "f1": "f1[0] = u[0];"}, {"f0": "f0[0] = u[0];"}, {"f0": "f0[0] = x[0]*u[0];"}
    given = [Robin(label, **text) for label, text in zip(("left", "right", "top"), texts, strict=True)]
    made = Physics({"u": 1}, None, FLUX, boundary=[*given, Neumann("bottom", "g[0] = 1;")])
    assert made.dependence(2).natural == (0, 2, 1, 2, 0) and made.has_boundary_f1 and made.is_linear


def test_a_stabilization_counts_where_a_scheme_has_it():
    assert reads(stabilization="tau[0] = 1 + q + a[1];") == ("", ())
    assert reads(stabilization="tau[0] = 1 + q + a[1];", with_stabilization=True) == ("q", (1,))

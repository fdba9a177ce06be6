"""Physics.constant_jacobian: linear, with a derivative that reads nothing that varies inside a cell."""

from __future__ import annotations

import pytest
from agreement import random_state

from petsc_hdg.physics import Auxiliary, Physics, Robin, library

FLUX = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
FIELDS = {"k": 1, "m": Auxiliary(2, "nodal"), "r": 1}
HELPERS = "PetscReal scaled(const PetscReal *v, PetscReal s) { return v[0] * s; }"
# f0 → whether the Jacobian of f0 and FLUX is constant in a cell; k is a[0], m is a[1] and a[2], r is a[3]
TEXTS = {
    "f0[0] = 3.0 * u[0] + u_t[0] - sin(x[0]);": True,
    "f0[0] = u[0] * u[0];": False,
    "f0[0] = x[0] * u[0];": False,
    "f0[0] = u[0] > 0 ? u[0] : 0.0;": False,
    "f0[0] = (1 + t * kappa) * u[0];": True,
    "f0[0] = a[0] * u[0] + a[1] + a_x[2] * x[1];": True,
    "f0[0] = a[3] * u_x[0];": True,
    "f0[0] = a[1] * u[0];": False,
    "f0[0] = a[aOff[1] + 1] * u[0];": False,
    "f0[0] = a[aOff[2]] * u[0];": True,
    "f0[0] = a_x[1 * dim] * u[0];": False,
    "f0[0] = a_x[3 * dim] * u[0];": True,
    "for (PetscInt i = 0; i < 1; ++i) f0[0] += a[i] * u[0];": False,
    "PetscReal s = x[0], w = a[2]; f0[0] = 2.0 * u[0] + s * w;": True,
    "PetscReal s = x[0]; s = 2.0; f0[0] = s * u[0];": False,
    "if (x[0] > 0.5) f0[0] = u[0]; else f0[0] = 2 * u[0];": False,
    "f0[0] = scaled(u, a[0]);": True,
    "f0[0] = scaled(u, x[0]);": False,
    "f0[0] = scaled(&a[0], u[0]);": False,
    "const PetscReal *m = &a[1]; f0[0] = m[0] * u[0];": False,
    "PetscReal s = dim > 2 ? x[0] : 1.0; f0[0] = s * u[0];": True,
}


def physics(f0=None, f1=FLUX, **others) -> Physics:
    return Physics({"u": 1}, f0, f1, auxiliary=FIELDS, constants={"kappa": 2.0}, helpers=HELPERS, **others)


@pytest.mark.parametrize("f0", TEXTS)
def test_differentiated(f0):
    assert physics(f0).constant_jacobian(2) == TEXTS[f0]


@pytest.mark.parametrize("f0", [f0 for f0 in TEXTS if TEXTS[f0]])
def test_what_is_called_constant_is(f0):
    made = physics(f0)
    made.check(2)
    blocks = []
    for seed in (1, 2):
        state = random_state(made, 2, seed)
        a, a_x = [0.7, *state["a"][1:3], 0.4], state["a_x"]
        a_x[[0, 3]] = 0
        given = made.interpreter(2).g_blocks(state["u"], state["u_t"], state["u_x"], a, a_x, 0.3, 1.5, state["x"])
        blocks.append([block.tolist() for block in given])
    assert blocks[0] == blocks[1]


def test_dimension_counts():
    made = physics("PetscReal s = dim > 2 ? x[0] : 1.0; f0[0] = s * u[0];")
    assert [made.constant_jacobian(dim) for dim in (1, 2, 3)] == [True, True, False]


@pytest.mark.parametrize(
    "g3, constant",
    [
        ("g3[0] = 1;", True),
        ("g3[0] = a[0]; g3[3] = a[3];", True),
        ("g3[0] = a[1];", False),
        ("g3[0] = u[0];", False),
        ("PetscReal unused = x[0]; g3[0] = 1;", True),
        ("g3[0] = 1 + x[0];", False),
    ],
)
def test_written_by_hand(g3, constant):
    assert physics("f0[0] = x[0] * u[0];", jacobian={"g3": g3}).constant_jacobian(2) == constant


def test_boundary_terms_count_for_linearity_alone():
    assert physics(boundary=Robin("a", "f0[0] = x[0] * n[0] * u[0];")).constant_jacobian(2)
    assert not physics(boundary=Robin("a", "f0[0] = u[0] * u[0];")).constant_jacobian(2)


def test_library():
    assert library.poisson().constant_jacobian(3)
    assert library.poisson(kappa=Auxiliary(1)).constant_jacobian(2)
    assert not library.poisson(kappa=Auxiliary(1, "nodal")).constant_jacobian(2)

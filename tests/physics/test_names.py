"""Fields and auxiliary fields by name: the same device text as by PETSc's offsets, in every kind of text; refusals."""

from __future__ import annotations

import pytest

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics import Auxiliary, Dirichlet, Field, Neumann, Physics, Robin
from petsc_hdg.physics.objective import Objective

FIELDS = {"v": 2, "p": Field(1, degree_offset=-1)}
AUXILIARY = {"kappa": 1, "heat": Auxiliary(2, "nodal")}
PAIRS = {
    "value of one component": ("p*p", "u[uOff[1]]*u[uOff[1]]"),
    "value with an index": ("p[0] + v[1]", "u[uOff[1] + 0] + u[1]"),
    "gradient of one component": ("p_x[dim - 1]", "u_x[uOff_x[1] + dim - 1]"),
    "gradient with two indices": ("v_x[1][dim - 1]", "u_x[1*dim + dim - 1]"),
    "flat gradient": ("v_x[dim]", "u_x[dim]"),
    "time derivative": ("p_t + v_t[1]", "u_t[uOff[1]] + u_t[1]"),
    "auxiliary": ("kappa*heat[1]", "a[0]*a[aOff[1] + 1]"),
    "gradient of auxiliary": (
        "heat_x[1][dim - 1] + heat_x[0] + kappa_x[0]",
        "a_x[2*dim + dim - 1] + a_x[dim] + a_x[0]",
    ),
    "constant": ("beta*p", "constants[0]*u[2]"),
}


def with_texts(f0: str, natural: str, flux: str) -> Physics:
    """A physics with these texts, in which each may be read."""
    return Physics(
        FIELDS,
        {"p": f"f0[0] = {f0};"},
        {"v": f"for (d = 0; d < 2*dim; ++d) f1[d] = {f0}*x[0];"},
        auxiliary=AUXILIARY,
        constants={"beta": 2.0},
        boundary=[Robin("right", f"f0[0] = {natural}*n[0];", "p"), Neumann("top", f"g[0] = {flux};", "p")],
        stabilization=f"1 + sqr({flux})",
    )


@pytest.mark.parametrize("dim", [1, 2, 3])
@pytest.mark.parametrize("name", PAIRS)
def test_names_are_offsets(name, dim):
    by_name, by_offset = PAIRS[name]
    flux = PAIRS["auxiliary"] if name.endswith("auxiliary") else ("beta", "constants[0]")
    texts = [with_texts(text, text, data).device_source(dim) for text, data in zip(PAIRS[name], flux, strict=True)]
    assert texts[0] == texts[1] and by_name != by_offset
    if "_t" not in by_name:
        made = with_texts("1", "1", "1")
        assert Objective(made, by_name, dim).text == Objective(made, by_offset, dim).text


def test_locals_and_petsc_names_come_first():
    physics = Physics({"p": 1, "u": 1}, {"p": "PetscReal u_ = 2, p = 3; f0[0] = p + u[uOff[0]] + u_;"})
    assert physics.interpreter(2).pw_residual([5.0, 7.0], None, None, None, None, 0.0, None)[0][0] == 3 + 5 + 2
    physics = Physics({"p": 1, "u": 1}, {"p": "u*u_t + 10*u[uOff[0]]"})  # with an index u is PETSc's array
    assert physics.interpreter(2).pw_residual([5.0, 7.0], [0.0, 2.0], None, None, None, 0.0, None)[0][0] == 14 + 50
    physics = Physics({"d": 1}, "f0[0] = d; for (d = 0; d < dim; ++d) f0[0] += 10*d_x[d]*d;")
    assert physics.interpreter(2).pw_residual([5.0], None, [[3.0, 4.0]], None, None, 0.0, None)[0][0] == 5 + 40


@pytest.mark.parametrize("text", ["u[c]*T", "u_x[c*dim + d]", "f0[0] = a[1];"])
def test_an_array_of_all_fields_is_not_taken_for_a_field(text):
    """PETSc's u[0] is T here, which nobody means who calls a field u."""
    physics = {"fields": {"T": 1, "u": 2}, "auxiliary": {"k": 1, "a": 1}, "f1" if "d]" in text else "f0": {"u": text}}
    with pytest.raises(PhysicsError, match=r"(u|u_x|a)\[i\] is PETSc's array of all fields, and .* is not its first"):
        Physics(**physics)
    Physics(**physics | {"fields": {"u": 2, "T": 1}, "auxiliary": {"a": 1, "k": 1}})


def test_helpers_and_whole_functions():
    whole = """
        static PetscReal square(const PetscScalar w[]) { return w[0]*w[0] + w[1]*w[1]; }
        static void f0_p(PetscInt dim, PetscInt Nf, PetscInt NfAux, const PetscInt uOff[], const PetscInt uOff_x[],
          const PetscScalar u[], const PetscScalar u_t[], const PetscScalar u_x[], const PetscInt aOff[],
          const PetscInt aOff_x[], const PetscScalar a[], const PetscScalar a_t[], const PetscScalar a_x[], PetscReal t,
          const PetscReal x[], PetscInt numConstants, const PetscScalar constants[], PetscScalar f0[])
        { f0[0] = square(v) + 10*p + 100*square(v_x); }
    """
    physics = Physics({"q": 1, "v": 2, "p": 1}, {"p": whole})
    u_x = [[9.0, 9.0], [1.0, 2.0], [9.0, 9.0], [9.0, 9.0]]
    found = physics.interpreter(2).pw_residual([9.0, 3.0, 4.0, 7.0], None, u_x, None, None, 0.0, None)
    assert found[0][3] == 25 + 70 + 500


BAD = {
    "f0[0] = p_x[dim];": "index 2 is outside p_x, which has 2 element",
    "f0[0] = v[2];": "index 2 is outside v, which has 2 element",
    "f0[0] = v_x[2][0];": "index 2 is outside v_x, which has 2 element",
    "f0[0] = v;": "'v' is an array; write v.i.",
    "f0[0] = p_x;": "'p_x' is an array; write p_x.i.",
    "f0[0] = u;": "'u' is an array; write u.i.",
    "f0[0] = p[0][0];": "'p' takes 1 indices, here it has 2",
    "p = 3; f0[0] = p;": "'p' is an input or const and cannot be written",
    "f0[0] = hat[0];": "unknown name 'hat'; did you mean 'heat'",
}


@pytest.mark.parametrize("text", BAD)
def test_refusals(text):
    with pytest.raises(PhysicsError, match=BAD[text]):
        Physics(FIELDS, {"p": text}, auxiliary=AUXILIARY).check(2)


def test_indices_that_are_not_known_are_checked():
    physics = Physics(FIELDS, {"p": "PetscInt i = x[0] > 0 ? 2 : 0; f0[0] = v[i];"})
    with pytest.raises(PhysicsError, match="index 2 is outside v"):
        physics.interpreter(2).pw_residual([0.0, 0.0, 0.0], None, None, None, None, 0.0, [1.0, 0.0])


NOT_HERE = {
    "Dirichlet data may depend on x, t, auxiliary fields and constants alone": [Dirichlet("left", "g[0] = v[0];", "p")],
    "a Neumann flux may not depend on the solution": [Neumann("left", "g[0] = p;", "p")],
}


@pytest.mark.parametrize("reason", NOT_HERE)
def test_conditions_say_why_a_name_is_not_theirs(reason):
    with pytest.raises(PhysicsError, match=f"'(p|v)' cannot be used here: {reason}"):
        Physics(FIELDS, {"p": "f0[0] = 1;"}, auxiliary=AUXILIARY, boundary=NOT_HERE[reason])


def test_an_exact_solution_reads_no_field():
    with pytest.raises(PhysicsError, match="'p' cannot be used here: this text does not read u"):
        Physics(FIELDS, {"p": "f0[0] = 1;"}, exact={"v": "u[0] = p; u[1] = 0;"})


@pytest.mark.parametrize("name", ["t", "dim"])
def test_a_number_of_petsc_that_a_field_is_called_too(name):
    for given in ({"fields": {name: 1}}, {"fields": {"u": 1}, "auxiliary": {name: 1}}):
        Physics(**given, f0="f0[0] = u[0];").check(2)
        with pytest.raises(PhysicsError, match=f"'{name}' may be PETSc's number of .* or of .*field '{name}'; rename"):
            Physics(**given, f0=f"2*{name}")
    local = Physics({name: 1}, f0=f"PetscReal {name} = 3; f0[0] = {name};")
    assert local.interpreter(2).pw_residual([5.0], None, None, None, None, 0.0, None)[0][0] == 3


@pytest.mark.parametrize(
    "given, owners",
    [
        (
            {"constants": {"kappa": 1.0}, "auxiliary": {"kappa": 1}},
            "auxiliary field 'kappa' or of the constant 'kappa'",
        ),
        ({"auxiliary": {"v": 1}}, "field 'v' or of auxiliary field 'v'"),
        ({"constants": {"v_x": 1.0}}, "field 'v' or of the constant 'v_x'"),
    ],
)
def test_names_with_two_meanings_are_refused_where_they_are_used(given, owners):
    name = "kappa" if "kappa" in owners else "v_x" if "v_x" in owners else "v[0]"
    Physics({"v": 1}, "f0[0] = u[0];", **given).check(2)
    with pytest.raises(PhysicsError, match=f"may be of {owners}; give one of them another name"):
        Physics({"v": 1}, f"f0[0] = {name};", **given)

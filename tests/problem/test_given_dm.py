"""Physics on the fields of a DM: what PETSc's finite elements say, and what of it is refused."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from petsc4py import PETSc

import petsc_hdg as fe
from petsc_hdg.errors import PhysicsError
from petsc_hdg.petsc import c_library

STOKES = {
    "f0": {"velocity": "f0[0] = -force*x[1]; f0[1] = a[1];", "pressure": "f0[0] = u_x[0] + u_x[3];"},
    "f1": {"velocity": "for (d = 0; d < 4; ++d) f1[d] = a[0]*u_x[d] - (d % 3 ? 0 : u[2]);"},
}
GIVEN = {"constants": {"force": 2.0}, "boundary": fe.Dirichlet("boundary", "g[0] = 0;\ng[1] = 0;", field="velocity")}


def element(name: str, components: int, degree: int, simplex: bool = False) -> PETSc.FE:
    """A PetscFE in two dimensions."""
    made = PETSc.FE().createLagrange(2, components, simplex, degree, -1)
    made.setName(name)
    return made


def square(*elements: PETSc.FE) -> PETSc.DMPlex:
    """Four squares with fields."""
    dm = PETSc.DMPlex().createBoxMesh((2, 2), simplex=False, interpolate=True)
    for number, each in enumerate(elements):
        dm.setField(number, each)
    if elements:
        dm.createDS()
    return dm


@pytest.fixture
def stokes():
    """A DM with velocity, pressure of one degree less, and two auxiliary fields."""
    dm = square(element("velocity", 2, 2), element("pressure", 1, 1))
    given = dm.clone()
    for number, each in enumerate((element("nu", 1, 0), element("wind", 2, 1))):
        given.setField(number, each)
    given.createDS()
    dm.setAuxiliaryVec(given.createLocalVec(), None)
    return dm


def test_physics_of_a_dm(stokes):
    """It is the physics that names all fields itself; its degree is that of a problem, unless that is given another."""
    physics = fe.Physics.from_dm(stokes, **STOKES, **GIVEN)
    fields = {"velocity": 2, "pressure": fe.Field(1, degree_offset=-1)}
    auxiliary = {"nu": 1, "wind": fe.Auxiliary(2, space="nodal")}
    assert physics.digest == fe.Physics(fields, auxiliary=auxiliary, **STOKES, **GIVEN).digest
    assert physics.degree == physics.with_constants(force=1.0).degree == 2
    problem = fe.Problem(fe.Mesh(stokes), physics, nullspace={"pressure": "constant"})
    problem.set_auxiliary("nu", 1.0)
    problem.set_auxiliary("wind", lambda x: x)
    assert problem.options.degree == 2 and problem.options.backend == "cg_gpu"
    assert np.isfinite(problem.solve().norm())
    for _ in range(3):  # petsc4py lends elements and vectors
        assert fe.Physics.from_dm(stokes, **STOKES, **GIVEN).digest == physics.digest
        gc.collect()


def test_what_is_given_stands(stokes):
    """Fields of one degree, as hdg_gpu wants them."""
    fields = {"velocity": 2, "pressure": 1}
    physics = fe.Physics.from_dm(stokes, **STOKES, **GIVEN, fields=fields, degree=3)
    assert [f.degree_offset for f in physics.fields] == [0, 0] and len(physics.auxiliary) == 2
    assert physics.degree == 3
    bare = square(element("u", 1, 3))
    assert fe.Physics.from_dm(bare, "f0[0] = a[0];", auxiliary={"k": 1}).auxiliary[0].name == "k"


def on_region() -> PETSc.DMPlex:
    """A DM with a field on a label alone, which petsc4py cannot make."""
    dm, part = square(), element("part", 1, 1)
    dm.setField(0, element("u", 1, 1))
    c_library.call("DMAddField", *(c_library._pointer(each) for each in (dm, dm.getLabel("Face Sets"), part)))
    dm.createDS()
    return dm


def broken() -> PETSc.DMPlex:
    """A DM with a discontinuous field of first degree."""
    options = PETSc.Options("broken_")
    options["petscspace_degree"], options["petscdualspace_lagrange_continuity"] = 1, 0
    return square(PETSc.FE().createDefault(2, 1, False, -1, "broken_"))


REFUSED = {
    "no DM": (lambda: 3, "read from a DM, and 3 is given"),
    "no fields": (lambda: square(element("u", 1, 1)).clone(), "has no fields.*clones have none"),
    "one name": (lambda: square(element("u", 1, 1), element("u", 1, 1)), "two fields of the DM are called 'u'"),
    "on a region": (on_region, "has 1 of its 2 fields; .* region of a label"),
    "fewer functions": (lambda: square(element("u", 1, 2, simplex=True)), "6 functions in a cell, .* degree 2 has 9"),
    "discontinuous": (broken, "is not continuous"),
}


@pytest.mark.parametrize(("make", "message"), REFUSED.values(), ids=REFUSED)
def test_what_is_refused(make, message):
    with pytest.raises(PhysicsError, match=message):
        fe.Physics.from_dm(make(), "f0[0] = 1;")

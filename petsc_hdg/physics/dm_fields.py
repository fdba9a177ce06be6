"""Fields of a physics from a DM, and the auxiliary fields of the DM of its auxiliary vector."""

from __future__ import annotations

from math import comb

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics.layout import Auxiliary, Field
from petsc_hdg.value_checks import plural, shown

INSTEAD = "name the fields of the physics yourself by fields={…}"


def fields_of(dm) -> dict:
    """`fields` and `degree` of a Physics: the highest degree of the DM's fields, from which the others differ."""
    elements = _elements(dm, "field")
    for name, element in elements.items():
        degree, dim = _degree(element), element.getSpatialDimension()
        count = element.getNumComponents() * (comb(degree + dim, dim) if dm.isSimplex() else (degree + 1) ** dim)
        if element.getDimension() != count:
            raise PhysicsError(
                f"field '{name}' of the DM has {element.getDimension()} functions in a cell, and that of Lagrange "
                f"elements of degree {degree} has {count}; {INSTEAD}"
            )
        if degree and not _kept(element.getDualSpace).getLagrangeContinuity():
            raise PhysicsError(
                f"field '{name}' of the DM is not continuous, and it is the scheme that says so here "
                f"(-fe_backend hdg_gpu, sipg_gpu, poly_gpu); {INSTEAD}"
            )
    degrees = {name: _degree(element) for name, element in elements.items()}
    highest = max(degrees.values())
    fields = {name: Field(e.getNumComponents(), degrees[name] - highest) for name, e in elements.items()}
    return {"fields": fields, "degree": highest}


def auxiliary_of(dm) -> dict[str, Auxiliary]:
    """`auxiliary` of a Physics: "cell" for degree 0, "nodal" for others."""
    vector = _kept(dm.getAuxiliaryVec)
    if not vector.handle:
        return {}
    elements = _elements(_kept(vector.getDM), "auxiliary field")
    spaces = {name: "nodal" if _degree(element) else "cell" for name, element in elements.items()}
    return {name: Auxiliary(element.getNumComponents(), spaces[name]) for name, element in elements.items()}


def _elements(dm, word: str) -> dict:
    """The PetscFE of each field, by its name."""
    if not hasattr(dm, "getNumFields") or not dm.handle:
        raise PhysicsError(f"the fields of a physics are read from a DM, and {shown(dm)} is given")
    count, elements = dm.getNumFields(), {}
    if not count:
        raise PhysicsError(f"the DM has no {word}s; give it some by dm.setField (clones have none), or {INSTEAD}")
    everywhere = _fields_everywhere(dm)
    if everywhere != count:
        raise PhysicsError(
            f"the PetscDS of the DM has {everywhere} of its {plural(count, word)}; call dm.createDS(), and where a "
            f"{word} lives on the region of a label, {INSTEAD}"
        )
    for number in range(count):
        element = dm.getField(number)[0]
        name = element.getName()
        if not hasattr(element, "getBasisSpace"):
            raise PhysicsError(f"{word} '{name}' of the DM is a {element.getClassName()}, and no PetscFE; {INSTEAD}")
        if name in elements:
            raise PhysicsError(f"two {word}s of the DM are called '{name}'; give each a name of its own by fe.setName")
        elements[name] = element
    return elements


def _fields_everywhere(dm) -> int:
    """Number of fields of the PetscDS of the whole mesh; 0 if there is none."""
    try:
        return dm.getDS().getNumFields()
    except Exception:  # PETSc's, before dm.createDS
        return 0


def _degree(element) -> int:
    return int(_kept(element.getBasisSpace).getDegree()[0])


def _kept(get):
    """Return the result of `get` with a reference of its own: petsc4py lends some objects and yet destroys them."""
    lent = get()
    count = lent.getRefCount() if lent.handle else 0
    other = get()
    if count and other.getRefCount() == count:
        lent.incRef()
        other.incRef()
    return other

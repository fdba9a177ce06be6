"""The physics contract: what a user writes once, and every scheme reads."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import comb
from numbers import Integral
from types import MappingProxyType
from typing import Any

import numpy as np

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics.constants import boundaries, check_constants, spread
from petsc_hdg.physics.dependence import Dependence, dependence
from petsc_hdg.physics.device_text import device_text
from petsc_hdg.physics.instance import Instance
from petsc_hdg.physics.interpreter.interpret import Interpreter, first_run, run_stabilization
from petsc_hdg.physics.layout import Auxiliary, Field, make_fields
from petsc_hdg.physics.lowering.signatures import F0
from petsc_hdg.physics.reader import UPWIND, Reader
from petsc_hdg.physics.terms import Condition, Terms
from petsc_hdg.representation import Described
from petsc_hdg.value_checks import plural, shown

INSTEAD = "name the fields of the physics yourself by fields={…}"


@dataclass(frozen=True, eq=False)
class Physics(Described):
    """Pointwise functions of  ∫ φ·f0 + ∇φ:f1 dx + ∫_Γ φ·f0_bd + ∇φ:f1_bd ds = 0  for all φ (PETSc's convention),
    checked when made.

    fields     name -> number of components or Field(components, degree_offset), in the order of field numbers.
               In texts `p[c]`, `p_x[c][d]` and `p_t[c]` are field p and its derivatives, next to PETSc's
               `u[uOff[1] + c]`; a field of one component is `p` too, and its gradient `p_x[d]`
    f0, f1     C text (a body, or a whole function in PETSc's signature), pathlib.Path or CFile of a C file, sympy
    expressions,
               or a mapping of field names to one of these; None is zero
    auxiliary  name -> number of components or Auxiliary(components, space); in the text `kappa`, `kappa_x[d]` as fields
    constants  name -> number; in the text `constants[i]`, or the name itself. Or name -> {boundary: number}, the value
               in texts of conditions on these boundaries; `constants[i]` counts the others first
    above      name of a constant -> the number that its values have to be above
    positive   name -> function of u [component, …] and constants by name: a quantity [...] above 0 where f0 and f1 have
               values, which messages name
    boundary   Dirichlet, Neumann and Robin conditions, and BoundaryFlux
    jacobian   hand-written {"g0": text, …}, or {(test field, trial field): {"g0": text, …}}; replaces differentiation
    helpers    C text of functions the others may call
    exact      name of field -> text that writes u[c] of x, t and constants
    name       used in messages
    stabilization  of hybridizable methods: text that writes tau[c] for each component of all fields, or a matrix
               S[c * Nc + d], from u (the trace), x, n, t, a, a_x and constants; or an expression, or a number above 0,
               for every component; or "upwind": |A|, A = Σ n_d ∂f1_d/∂u, of a hyperbolic system of first order
    degree     of problems that are given none
    dim        the dimension that it is for; None: any

    Raises PhysicsError, naming the function and the line, for what cannot be read, checked or differentiated.
    """

    PUBLIC = tuple(
        "auxiliary boundary check constants degree device_source exact f0 f1 fields from_dm interpreter is_linear "
        "name uses_time_derivative with_constants with_stabilization".split()
    )

    fields: Mapping | tuple
    f0: object = None
    f1: object = None
    auxiliary: Mapping | tuple = field(default=(), kw_only=True)
    constants: Mapping[str, float | Mapping[str, float]] | None = field(default=None, kw_only=True)
    above: Mapping[str, float] | None = field(default=None, kw_only=True)
    positive: Mapping[str, Callable] = field(default_factory=dict, kw_only=True)
    boundary: Sequence = field(default=(), kw_only=True)
    jacobian: Mapping | None = field(default=None, kw_only=True)
    helpers: object = field(default="", kw_only=True)
    name: str = field(default="physics", kw_only=True)
    exact: object = field(default=None, kw_only=True)
    stabilization: object = field(default=None, kw_only=True)
    degree: int | None = field(default=None, kw_only=True)
    dim: int | None = field(default=None, kw_only=True)

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name or any(c in self.name for c in '"\\\n'):
            raise PhysicsError(f"a physics cannot be called {self.name!r}; give a short text without quotes")
        fields = make_fields(self.name, self.fields, Field)
        if not fields:
            raise PhysicsError(f"physics '{self.name}' has no fields; give at least one, e.g. {{'u': 1}}")
        auxiliary = make_fields(self.name, self.auxiliary, Auxiliary)
        constants = check_constants(self.name, self.constants, self.above or {})
        if not (isinstance(self.positive, Mapping) and all(map(callable, self.positive.values()))):
            raise PhysicsError(f"physics '{self.name}': positive is {shown(self.positive)}; give a dict of functions")
        given = {"fields": fields, "auxiliary": auxiliary, "constants": MappingProxyType(constants)}
        for key, value in given.items():
            object.__setattr__(self, key, value)
        reader = Reader(self.name, fields, auxiliary, tuple(constants), self.helpers)
        terms = reader.read(self.f0, self.f1, self.boundary, self.jacobian, self.exact, self.stabilization)
        object.__setattr__(self, "terms", terms)
        object.__setattr__(self, "_texts", tuple(reader.texts))

    terms: Terms = field(init=False, repr=False)
    _texts: tuple = field(init=False, repr=False, compare=False)

    def __repr__(self) -> str:
        name, *said = (words for words in self.facts().values() if words)
        return f"<Physics '{name}': {'; '.join(said)}>"

    def facts(self) -> dict[str, str]:
        """Fields, data and conditions, in words."""
        conditions = (*self.dirichlet, *self.natural)
        where = [f"{c.kind} on {c.label}" + (f" from {c.side}" if c.side else "") for c in conditions]
        return {
            "name": self.name,
            "fields": ", ".join(f"{f.name} ({plural(f.components, 'component')})" for f in self.fields),
            "data": f"auxiliary {', '.join(a.name for a in self.auxiliary)}" if self.auxiliary else "",
            "constants": ", ".join(
                f"{name} = {value:g}" for name, value in zip(self.constant_names, self.constant_values, strict=True)
            ),
            "conditions": "; ".join(dict.fromkeys(where)),
        }

    @classmethod
    def from_dm(cls, dm: Any, f0: object = None, f1: object = None, **given: Any) -> Physics:
        """The physics on the fields of a DM: names, components and degrees of its PetscFE's, and the auxiliary fields
        of the DM of its auxiliary vector.

        What petsc4py does not show is given as to Physics: functions, constants and boundary conditions; what is given
        of the rest stands instead of what the DM says. Raises PhysicsError for fields that no scheme has.
        """
        known = {} if "fields" in given else fields_of(dm)
        if "auxiliary" not in given:
            known["auxiliary"] = auxiliary_of(dm)
        return cls(**{"f0": f0, "f1": f1, **known, **given})

    @property
    def num_components(self) -> int:
        """Components of all fields."""
        return sum(entry.components for entry in self.fields)

    @property
    def num_auxiliary(self) -> int:
        """Components of all auxiliary fields."""
        return sum(entry.components for entry in self.auxiliary)

    @property
    def constant_names(self) -> tuple[str, ...]:
        """Names of the constants, in the order of `constants[i]`."""
        return tuple(self.constants or ())

    @property
    def constant_values(self) -> np.ndarray:
        """Values of the constants [name]."""
        return np.array(list((self.constants or {}).values()), float)

    @property
    def dirichlet(self) -> tuple[Condition, ...]:
        """Dirichlet conditions; their place is the `condition` of pw_dirichlet."""
        return self.terms.dirichlet

    @property
    def natural(self) -> tuple[Condition, ...]:
        """Neumann and Robin conditions, f0 and f1 of a Robin condition apart; their place is the `condition` of
        pw_boundary."""
        return self.terms.natural

    @property
    def boundary_fluxes(self) -> tuple[Condition, ...]:
        """Natural conditions in the place of f̂·n = 0."""
        return tuple(condition for condition in self.natural if condition.kind == "BoundaryFlux")

    @property
    def has_boundary_f1(self) -> bool:
        """True if a natural condition multiplies gradients of test functions."""
        return any(condition.term.kind == "f1" for condition in self.natural)

    @property
    def has_exact(self) -> bool:
        """True if an exact solution is given."""
        return bool(self.terms.exact)

    @property
    def has_stabilization(self) -> bool:
        """True if a stabilization is given."""
        return self.terms.stabilization is not None

    @property
    def upwinds(self) -> bool:
        """True if upwinding is asked for as the stabilization."""
        return ("stabilization", UPWIND) in self._texts

    @property
    def is_conservation_law(self) -> bool:
        """True if the stabilization reads u or there are boundary fluxes."""
        term = self.terms.stabilization
        follows = term is not None and "u" in term.program.inputs
        return follows or bool(self.boundary_fluxes)

    @property
    def stabilizes_by_state(self) -> bool:
        """True if the stabilization reads the trace or is a matrix."""
        term = self.terms.stabilization
        return term is not None and ("u" in term.program.inputs or term.kind == "S")

    @property
    def has_stabilization_matrix(self) -> bool:
        """True if the stabilization is a matrix."""
        return self.terms.stabilization is not None and self.terms.stabilization.kind == "S"

    @property
    def has_jacobian(self) -> bool:
        """True if the Jacobian is hand-written."""
        return self.terms.jacobian is not None

    @cached_property
    def uses_time_derivative(self) -> bool:
        """True if any function reads u_t."""
        return any("u_t" in term.program.inputs for term in self.terms.all())

    @cached_property
    def is_linear(self) -> bool:
        """True if the residual is surely affine in the solution (in 1, 2 and 3 dimensions, where it is defined)."""
        return all(instance.is_linear for instance in self._valid_instances())

    def constant_jacobian(self, dim: int) -> bool:
        """True if the physics is linear and g0 … g3 are surely the same at all points of a cell in `dim` dimensions."""
        return self.instance(dim).has_constant_jacobian

    def flux_has_steps(self, dim: int) -> bool:
        """True if f1 may jump where x passes a bound, in `dim` dimensions."""
        return self.instance(dim).flux_has_steps

    def dependence(self, dim: int, with_stabilization: bool = False) -> Dependence:
        """On what element matrices depend besides geometry and constants, in `dim` dimensions."""
        return dependence(self.instance(dim), with_stabilization)

    def _valid_instances(self) -> list[Instance]:
        found, errors = [], []
        for dim in (1, 2, 3):
            try:
                instance = self.instance(dim)
                instance.is_linear  # noqa: B018  (differentiates)
                found.append(instance)
            except PhysicsError as error:
                errors.append(error)
        if not found:
            raise errors[-1]
        return found

    @cached_property
    def digest(self) -> str:
        """Hexadecimal digest of everything but the values of constants."""
        fields = [(f.name, f.components, f.degree_offset) for f in self.fields]
        auxiliary = [(a.name, a.components, a.space) for a in self.auxiliary]
        content = repr((self.name, fields, auxiliary, self.constant_names, self._texts))
        return hashlib.sha256(content.encode()).hexdigest()

    @cached_property
    def _instances(self) -> dict[int, Instance]:
        return {}

    def instance(self, dim: int) -> Instance:
        """The physics in `dim` dimensions. Raises PhysicsError for a dimension that it is not for."""
        if not isinstance(dim, Integral) or dim not in (1, 2, 3):
            raise PhysicsError(
                f"physics '{self.name}' was asked for in {shown(dim)} dimensions; 1, 2 and 3 are possible"
            )
        if dim != (self.dim or dim):
            raise PhysicsError(f"physics '{self.name}' is made for dimension {self.dim}; give one made for {dim}")
        if dim not in self._instances:
            self._instances[dim] = Instance(self.terms, self.fields, self.auxiliary, len(self.constant_names), dim)
        return self._instances[dim]

    def check(self, dim: int) -> None:
        """Run every function once in `dim` dimensions: PhysicsError for indices outside arrays and unset variables."""
        instance, values = self.instance(dim), self.constant_values
        if instance.ran_with != values.tobytes():
            first_run(instance, values)
            instance.ran_with = values.tobytes()

    def check_stabilization(self, dim: int) -> None:
        """Run the stabilization once in `dim` dimensions: PhysicsError for what `check` finds, in it alone."""
        run_stabilization(self.instance(dim), self.constant_values)

    def device_source(self, dim: int) -> str:
        """C text (OpenCL C 1.2 and C99) of the pw_* functions in `dim` dimensions, after `check`."""
        self.check(dim)
        instance = self.instance(dim)
        if instance.text is None:
            instance.text = device_text(instance)
        return instance.text

    def interpreter(self, dim: int) -> Interpreter:
        """The pw_* functions on numpy arrays, interpreted."""
        self.check(dim)
        return Interpreter(self.instance(dim), self.constant_values)

    def with_constants(self, **values: float | Mapping[str, float]) -> Physics:
        """The same physics with other values of named constants; its text and digest are the same.

        Those of boundaries are given by a dict, or by one number for all of them. Raises PhysicsError for an unknown
        name.
        """
        checked = check_constants(self.name, spread(self.constant_names, values), self.above or {})
        unknown = [name for name in checked if name not in self.constant_names]
        if unknown:
            known = ", ".join(self.constant_names) or "none"
            raise PhysicsError(f"physics '{self.name}' has no constant '{unknown[0]}'; its constants are: {known}")
        new = object.__new__(Physics)
        new.__dict__.update(self.__dict__)
        object.__setattr__(new, "constants", MappingProxyType(dict(self.constants or {}) | checked))
        return new

    def text_key(self, given: object, over: str | None) -> tuple | None:
        """A key of a text over cells (None) or a boundary, whose meaning is the same for the same key. None for what is
        no text."""
        label = over if over in boundaries(self.constant_names) else None
        return (given, over is not None, label) if isinstance(given, str) else None

    def with_stabilization(self, stabilization: object) -> Physics:
        """The same physics with another stabilization, given as to Physics; None takes it away."""
        reader = Reader(self.name, tuple(self.fields), tuple(self.auxiliary), self.constant_names, self.helpers)
        terms = replace(self.terms, stabilization=reader.stabilization(stabilization))
        slots = [text for text in self._texts if text[0] != "stabilization"]
        slots += [text for text in reader.texts if text[0] == "stabilization"]
        return self._changed(stabilization=stabilization, terms=terms, _texts=tuple(slots))

    def with_rates(self) -> Physics:
        """The same physics with u_t added to f0 of each component."""
        reader = Reader(self.name, tuple(self.fields), tuple(self.auxiliary), self.constant_names, "")
        text = "for (PetscInt c = 0; c < {1}; ++c) f0[c] += u_t[{0} + c];"
        texts = {field.name: text.format(field.offset, field.components) for field in self.fields}
        terms = replace(self.terms, residual=self.terms.residual + reader.of_fields("rates", texts, F0, "f0"))
        return self._changed(terms=terms, _texts=(*self._texts, *reader.texts))

    def with_one_degree(self) -> Physics:
        """The same physics with all fields of the degree of the discretization."""
        if not any(field.degree_offset for field in self.fields):
            return self
        return self._changed(fields=tuple(replace(field, degree_offset=0) for field in self.fields))

    def _changed(self, **attributes: object) -> Physics:
        """Return a copy with other attributes, which are not checked; values cached from the old ones are dropped."""
        new = object.__new__(Physics)
        new.__dict__.update({entry.name: getattr(self, entry.name) for entry in fields(Physics)} | attributes)
        return new


def fields_of(dm: Any) -> dict:
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


def auxiliary_of(dm: Any) -> dict[str, Auxiliary]:
    """`auxiliary` of a Physics: "cell" for degree 0, "nodal" for others."""
    vector = _kept(dm.getAuxiliaryVec)
    if not vector.handle:
        return {}
    elements = _elements(_kept(vector.getDM), "auxiliary field")
    spaces = {name: "nodal" if _degree(element) else "cell" for name, element in elements.items()}
    return {name: Auxiliary(element.getNumComponents(), spaces[name]) for name, element in elements.items()}


def _elements(dm: Any, word: str) -> dict:
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


def _fields_everywhere(dm: Any) -> int:
    """Number of fields of the PetscDS of the whole mesh; 0 if there is none."""
    try:
        return dm.getDS().getNumFields()
    except Exception:  # PETSc's, before dm.createDS
        return 0


def _degree(element: Any) -> int:
    return int(_kept(element.getBasisSpace).getDegree()[0])


def _kept(get: Any) -> Any:
    """Return the result of `get` with a reference of its own: petsc4py lends some objects and yet destroys them."""
    lent = get()
    count = lent.getRefCount() if lent.handle else 0
    other = get()
    if count and other.getRefCount() == count:
        lent.incRef()
        other.incRef()
    return other

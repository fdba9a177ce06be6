"""A physics in one dimension: every function with its numbers put in, its derivative, and a first run of it."""

from __future__ import annotations

from functools import cached_property

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics.dependence import varies_in_cell
from petsc_hdg.physics.terms import FACET_STATE, STATE, Form, Term, Terms, form
from petsc_hdg.physics.tree.derivative import has_jumps

_X = frozenset({"x"})
_READ = frozenset({"x", "a", "a_x", "u", "u_x", "u_t", "t", "constants"})


class Instance:
    """The functions of a physics in `dim` dimensions.

    residual, jacobian (None: by differentiation), dirichlet, natural, exact, stabilization (of one or none): tuples of
    Form in the order of `terms`.
    ran_with: constants of the last first run that found no mistake. codes: functions that the interpreter has compiled.
    text: the text for devices, once it is made.
    """

    def __init__(self, terms: Terms, fields: tuple, auxiliary: tuple, constants: int, dim: int):
        self.terms, self.fields, self.auxiliary, self.num_constants, self.dim = terms, fields, auxiliary, constants, dim
        self.num_components = sum(field.components for field in fields)
        self.num_auxiliary = sum(field.components for field in auxiliary)
        self.ran_with: bytes | None = None
        self.codes: dict = {}
        self.text: str | None = None

    def _form(self, term: Term, active: frozenset = frozenset()) -> Form:
        return form(term, self.dim, self.fields, self.auxiliary, self.num_constants, active)

    @cached_property
    def residual(self) -> tuple[Form, ...]:
        """Terms f0 and f1, differentiated unless the Jacobian is hand-written."""
        active = STATE if self.terms.jacobian is None else frozenset()
        return tuple(self._form(term, active) for term in self.terms.residual)

    @cached_property
    def jacobian(self) -> tuple[Form, ...] | None:
        """Hand-written g0 … g3."""
        return None if self.terms.jacobian is None else tuple(self._form(term) for term in self.terms.jacobian)

    @cached_property
    def natural(self) -> tuple[Form, ...]:
        """Neumann and Robin conditions and boundary fluxes; all but Neumann's are differentiated."""
        kinds = self.terms.natural
        return tuple(self._form(c.term, frozenset() if c.kind == "Neumann" else FACET_STATE) for c in kinds)

    @cached_property
    def dirichlet(self) -> tuple[Form, ...]:
        """Dirichlet data."""
        return tuple(self._form(condition.term) for condition in self.terms.dirichlet)

    @cached_property
    def exact(self) -> tuple[Form, ...]:
        """Exact solution, differentiated by x."""
        return tuple(self._form(term, _X) for term in self.terms.exact)

    @cached_property
    def stabilization(self) -> tuple[Form, ...]:
        """Stabilization of all components, if there is one, differentiated by the trace."""
        term = self.terms.stabilization
        return () if term is None else (self._form(term, frozenset({"u"})),)

    def all(self) -> tuple[Form, ...]:
        """Every form."""
        volume, boundary = self.residual + (self.jacobian or ()), self.natural + self.dirichlet
        return volume + boundary + self.exact + self.stabilization

    @cached_property
    def is_linear(self) -> bool:
        """True if residual and boundary terms are affine in the solution: no derivative and no branch reads it."""
        forms = self.residual
        if self.jacobian is not None:
            try:
                forms = tuple(self._form(term, STATE) for term in self.terms.residual)
            except PhysicsError:  # of a function without a derivative
                return False
        forms += self.natural
        derivatives = [entry.derivative for entry in forms] + [entry.program for entry in self.jacobian or ()]
        reads = any(program.inputs & FACET_STATE for program in derivatives if program is not None)
        reads |= any("u" in entry.program.inputs for entry in self.stabilization)
        return not reads and not any(has_jumps(entry.program, FACET_STATE) for entry in forms)

    @cached_property
    def has_steps(self) -> bool:
        """True if a function of the equation or its conditions may jump where x passes a bound, as coefficients of
        regions do."""
        forms = self.residual + (self.jacobian or ()) + self.natural + self.dirichlet
        return any(has_jumps(entry.program, _X) for entry in forms)

    @cached_property
    def derivative_may_jump(self) -> bool:
        """True if derivatives of f0, f1 or a natural condition may jump where what they read passes a bound, so that
        some places and data do not tell of others."""
        natural = (entry.derivative for entry in self.natural if entry.derivative is not None)
        return any(has_jumps(program, _READ) for program in (*self._volume_derivatives, *natural))

    @cached_property
    def flux_has_steps(self) -> bool:
        """True if f1 may jump where x passes a bound."""
        forms = (entry for entry in self.residual + (self.jacobian or ()) if entry.term.kind in ("f1", "g2", "g3"))
        return any(has_jumps(entry.program, _X) for entry in forms)

    @cached_property
    def has_constant_jacobian(self) -> bool:
        """True if the residual is affine in the solution and its derivative in f0 and f1 is the same at all points of
        a cell: it depends on constants, t and auxiliary fields of the space "cell" alone.
        """
        nodal = [f.offset + c for f in self.auxiliary if f.space == "nodal" for c in range(f.components)]
        numbers = {"a": nodal, "a_x": [number * self.dim + d for number in nodal for d in range(self.dim)]}
        return self.is_linear and not any(varies_in_cell(program, numbers) for program in self._volume_derivatives)

    @property
    def _volume_derivatives(self) -> list:
        """Programs of the derivatives of f0 and f1 that are not zero: found, or hand-written."""
        found = [entry.derivative for entry in self.residual] if self.jacobian is None else []
        return [program for program in found if program is not None] + [entry.program for entry in self.jacobian or ()]

"""A pointwise function to integrate or to look at: PETSc's objective of DMPlexComputeIntegralFEM and …BdIntegral."""

from __future__ import annotations

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics.device_text import objective_text
from petsc_hdg.physics.interpreter.interpret import run
from petsc_hdg.physics.layout import Field
from petsc_hdg.physics.lowering.signatures import OBJECTIVE
from petsc_hdg.physics.reader import Reader
from petsc_hdg.physics.terms import Form, Term, form
from petsc_hdg.physics.tree import ir

MOST = 64  # components


class Objective:
    """Numbers obj [component] of u, u_x, a, a_x, x, t and constants of a physics, in `dim` dimensions.

    over: boundary that it is integrated over, where it may read the outward unit normal n [dim]. None: cells.

    given: one expression; statements that assign to obj[c], or a whole function in PETSc's signature, as C text, as
    pathlib.Path or as CFile; a number; a sympy expression, or a sequence of them.
    components: how many numbers there are, the highest obj[c] that the text assigns telling.

    what: it is, for messages.

    Raises PhysicsError, naming the line, for what cannot be read or checked.
    """

    def __init__(self, physics, given, dim: int, over: str | None = None, what: str = "integrand"):
        self._physics, self._dim, self.on_boundary = physics, dim, over is not None
        reader = Reader(physics.name, physics.fields, physics.auxiliary, physics.constant_names, physics.helpers)
        term = reader.objective(given, MOST, over, what)
        self.components = self._count(term)
        self.form = self._form(term, self.components)
        run(self.form, physics.constant_values)

    @property
    def reads_auxiliary(self) -> bool:
        """True if it reads auxiliary fields."""
        return bool(self.form.program.inputs & {"a", "a_x"})

    @property
    def text(self) -> str:
        """C text (OpenCL C 1.2 and C99) of pw_objective and what it calls."""
        return objective_text(self.form, self.on_boundary)

    def _form(self, term: Term, components: int) -> Form:
        """The term in `dim` dimensions with so many components."""
        sized = Term(term.program, term.kind, Field(components, name=term.field.name))
        physics = self._physics
        return form(sized, self._dim, physics.fields, physics.auxiliary, len(physics.constants))

    def _count(self, term: Term) -> int:
        """Components that a text assigns: by numbers in it, or in a first run."""
        found = self._form(term, MOST)
        main, noted = found.program.main, _Noted([0.0] * MOST)
        run(found, self._physics.constant_values, noted)
        targets = [node.target for node in ir.walk(*main.body) if isinstance(node, ir.Assign)]
        places = [node.index for node in targets if isinstance(node, ir.Element) and node.name in main.outputs]
        assigned = noted.written | {index.value for index in places if isinstance(index, ir.Num)}
        left = min(set(range(MOST)) - assigned, default=MOST)
        count = max(assigned, default=0) + 1
        if left < count:
            name = OBJECTIVE.output
            message = f"{name}[{left}] is never assigned, but {name}[{count - 1}] is; write {name}[{left}] = …;"
            raise term.program.source.error(None, message)
        return count


class Flux(Objective):
    """The physics' own f1 of a field, in `dim` dimensions: numbers obj [component, dim].

    physics: as a scheme takes it; terms: those that the user wrote. Raises PhysicsError.
    """

    def __init__(self, physics, terms, name: str, dim: int):
        term = next((term for term in terms.residual if (term.kind, term.field.name) == ("f1", name)), None)
        start = f"physics '{physics.name}', f1 of field '{name}': "
        if term is None:
            raise PhysicsError(f"{start}there is none; give a text of what is to be shown")
        if "u_t" in term.program.inputs:
            raise PhysicsError(f"{start}it reads u_t, which one state does not tell; give a text without it")
        self.on_boundary, self.components = False, term.size(dim)
        self.form = form(term, dim, physics.fields, physics.auxiliary, len(physics.constants))


class _Noted(list):
    """Numbers that remember which of them were written."""

    def __init__(self, values: list):
        super().__init__(values)
        self.written: set[int] = set()

    def __setitem__(self, index: int, value) -> None:
        self.written.add(index)
        super().__setitem__(index, value)

"""Fields that follow from a solution: its values and gradients at reference points of cells, and functions of these."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from numbers import Integral

import numpy as np

from ... import stages
from ...discretizations import CellField
from ...discretizations.dofmap import ALL
from ...discretizations.integral_specs import EXTRA_DEGREE, error_rule
from ...errors import OptionError, collectively
from ...mesh.order import box
from ...reference import ReferenceElement, entity_shapes, facet_quadrature, on_facets
from ...representation import Described
from ...value_checks import number, plural, reals, shown, whole_number
from .point_functions import point_function, require_auxiliary

CHUNK = 1 << 14  # cells whose points are evaluated at a time


def cell_fields(problem, u, t: float = 0.0, star: bool = True, part: int = 0) -> list[CellField]:
    """The fields of u in this rank's cells of a part of the mesh, and what the scheme recovers from it, with u* or
    without. Collective."""
    with problem.reading(u, t) as owned:
        if problem.is_condensed and not star:
            return problem.operator.recovery.fields(owned, t, star)
        return problem.operator.parts[part].cell_fields(owned, t)


class Derived(Described):
    """A field that `problem.field` makes: one of the solution, one that the scheme recovers, or a function of them.

    It keeps what it needs, so that it stays when the vector or the problem's data change.

    name        in files and messages
    components  numbers at a point
    element     whose nodes `values` and `coordinates` take by default; of facets where it is on a boundary; None where
                there are several shapes
    parts       the field in the cells, or on the facets, of each shape; itself where there is one
    """

    PUBLIC = ("along", "at", "components", "coordinates", "element", "extremes", "means", "name", "parts", "values")

    def __init__(self, state: State, name: str, components: int, sample: Callable, facets=None):
        """sample(points, cells, normals) gives values [cell, point, component] at reference points of cells; facets:
        cells [facet] and local facets [facet] of a boundary, and their shape."""
        self.name, self.components, self._state, self._sample, self._facets = name, components, state, sample, facets
        self.parts: tuple[Derived, ...] = (self,)
        self._rows: list = [ALL]  # of each part among the cells or facets
        self.element: ReferenceElement | None = state.element
        if facets is not None:
            self.element = ReferenceElement(facets[2], state.element.degree)

    @classmethod
    def joined(cls, parts: Sequence[Derived], rows: list) -> Derived:
        """The field of several parts; rows: numbers of each part's cells or facets among all."""
        if len(parts) == 1:
            return parts[0]
        first = parts[0]
        found = cls(first._state, first.name, first.components, first._sample, first._facets)
        found.element, found.parts, found._rows = None, tuple(parts), rows
        return found

    def __repr__(self) -> str:
        facts = self.facts()
        return f"<Derived '{self.name}': {plural(self.components, 'component')}, in {facts['where']}>"

    def facts(self) -> dict[str, str]:
        """Name, components and place, in words."""
        count = sum(len(p._facets[0]) if p._facets else p._state.mesh.num_cells for p in self.parts)
        where = plural(count, "facet" if self.on_boundary else "cell")
        return {"name": self.name, "components": f"{self.components}", "where": f"{where} of this rank"}

    @property
    def on_boundary(self) -> bool:
        """True for a field on the facets of a boundary."""
        return self._facets is not None

    def values(self, points=None) -> np.ndarray:
        """Values [cell, point, component] at reference points [point, dim], in this rank's cells (or facets).

        None: the nodes of `element`. Raises OptionError for points of another shape, and for cells of several shapes,
        whose `parts` have values.
        """
        return self._at(*self._reference(points))

    def coordinates(self, points=None) -> np.ndarray:
        """Coordinates [cell, point, dim] of the same places, in the mesh's length unit."""
        return self._state.places.at(*self._reference(points)[:2])

    def extremes(self) -> tuple[np.ndarray, np.ndarray]:
        """Smallest and largest values [component] at the nodes of `element`, of all ranks. Collective.

        They are inf and -inf where there are no facets.
        """
        found = np.concatenate([part.values().reshape(-1, self.components) for part in self.parts])
        smallest, largest = box(self._state.problem.comm, found)
        return smallest, largest

    def means(self) -> np.ndarray:
        """Mean values [cell, component] of this rank's cells (or facets)."""
        state = self._state
        if len(self.parts) > 1:
            of_parts = [part.means() for part in self.parts]
            found = np.empty((sum(map(len, of_parts)), self.components))
            for rows, of in zip(self._rows, of_parts, strict=True):
                found[rows] = of
            return found
        if self._facets is None:
            rule = error_rule(state.discretization)
            points, weights, cells, normals = rule.points, rule.weights, ALL, None
            weights = weights * np.abs(np.linalg.det(state.jacobian(points)))
        else:
            cells, local, _ = self._facets
            rules, normals = state.facet_rules()
            points, normals = np.array([rule.points for rule in rules])[local], normals[local]
            _, stretch = state.normals(points, cells, normals)
            weights = np.array([rule.weights for rule in rules])[local] * stretch
        found = self._at(points, cells, normals)
        return np.einsum("cp,cpk->ck", weights, found) / weights.sum(axis=1, keepdims=True)

    def at(self, points) -> np.ndarray:
        """Values [point, component] at places [point, dim] that are the same on all ranks, as `Problem.at`. Collective.

        Raises OptionError for points outside of the mesh, and for a field on a boundary.
        """
        problem = self._state.problem
        with collectively(problem.comm):
            require_cells(self)
        return problem.locate([[part] for part in self.parts], points)[self.name]

    def along(self, start, end, points: int = 101) -> tuple[np.ndarray, np.ndarray]:
        """Distances [point] from `start` [dim] and values [point, component] on the line to `end` [dim]. Collective.

        points: how many, both ends included. Raises OptionError as `at`.
        """
        with collectively(self._state.problem.comm):
            part = np.linspace(0.0, 1.0, whole_number("The number of points along a line", points, 2, 10**8))
            first, last = (reals("An end of a line", place, OptionError) for place in (start, end))
            if not first.shape == last.shape == (self._state.dim,):
                raise OptionError(
                    f"A line from {shown(start)} to {shown(end)} was asked for; give {self._state.dim} coordinates of "
                    "each end."
                )
        return part * np.linalg.norm(last - first), self.at(first + part[:, None] * (last - first))

    def sample(self, points: np.ndarray, cells=ALL) -> np.ndarray:
        """Values [cell, point, component] at reference points [point, dim], or [cell, point, dim], of some cells."""
        return self._at(points, cells, None)

    def only(self, components) -> Derived:
        """The field of some components: numbers, or names, see component_names. Raises OptionError. Not collective."""
        names = component_names(self.components, self._state.dim)
        known: dict = {number: number for number in range(self.components)} | names
        single = isinstance(components, str | Integral) or not isinstance(components, Sequence | np.ndarray)
        entries = [components] if single else list(components)
        if not entries or any(
            isinstance(e, bool) or not isinstance(e, str | Integral) or e not in known for e in entries
        ):
            words = f"numbers from 0 to {self.components - 1}" if self.components > 1 else "0"
            raise OptionError(
                f"The components of '{self.name}' are given as {shown(components)}; give {words}"
                + (f", or names among {', '.join(names)}." if names else ".")
            )
        chosen = [known[entry] for entry in entries]
        return self.named(f"{self.name}[{','.join(map(str, entries))}]", chosen)

    def named(self, name: str, chosen: list[int] | None = None) -> Derived:
        """The same under another name, of all components or some."""
        made, count = [], self.components if chosen is None else len(chosen)
        for part in self.parts:
            given = part._sample
            some = given if chosen is None else lambda *where, given=given: given(*where)[..., chosen]
            made.append(Derived(part._state, name, count, some, part._facets))
        return Derived.joined(made, self._rows)

    def _at(self, points: np.ndarray, cells, normals) -> np.ndarray:
        if normals is not None:
            normals, _ = self._state.normals(points, cells, normals)
        return self._sample(points, cells, normals)

    def _reference(self, given) -> tuple:
        """Reference points, cells and the reference cell's normals [facet, dim] of places in all cells or facets."""
        if self.element is None:
            shapes = " and ".join(part.element.cell for part in self.parts if part.element)
            raise OptionError(f"Values of '{self.name}' in {shapes} cells were asked for; take them of its parts.")
        points = self.element.nodes if given is None else reals("The array of reference points", given, OptionError)
        if points.ndim != 2 or points.shape[1] != self.element.dim:
            raise OptionError(
                f"Reference points are given as an array of shape {points.shape}; give one row of {self.element.dim} "
                f"coordinates of the reference {self.element.cell} for each point."
            )
        if self._facets is None:
            return points, ALL, None
        cells, local, _ = self._facets
        return on_facets(self._state.element.cell, points)[local], cells, self._state.facet_rules()[1][local]


def component_names(count: int, dim: int) -> dict[str, int]:
    """Numbers of `count` components by name, in `dim` dimensions: x, y, z of vectors; xx, xy, … of tensors, such as
    gradients of vectors (component, then direction)."""
    letters = "xyz"[:dim]
    names = {dim: list(letters), dim * dim: [first + second for first in letters for second in letters]}.get(count, [])
    return {name: number for number, name in enumerate(names)}


def require_cells(field: Derived) -> None:
    """Raise OptionError for a field on a boundary."""
    if field.on_boundary:
        raise OptionError(f"The field '{field.name}' is on a boundary; give one without over=, or take its values().")


class State:
    """Values of a solution that pointwise functions read at a time, in this rank's cells. Its making is collective.

    element: of the highest degree among the fields, 1 at least.   places: the CellField of coordinates.
    """

    def __init__(self, problem, u, t: float = 0.0, star: bool = True, part: int = 0):
        """star: whether u* of hdg_gpu, which is a problem in each cell, is asked for.   part: its number."""
        self.problem, self.t, self.dim, self.part = problem, t, problem.mesh.dim, part
        self.known = {field.name: field for field in cell_fields(problem, u, t, star, part)}
        self.mesh, self.discretization = problem.mesh.parts[part], problem.discretization.parts[part]
        mesh, disc, rows = self.mesh, self.discretization, problem.operator.parts[part].aux_rows
        self.element = ReferenceElement(mesh.cell, max(1, *(field.element.degree for field in self.known.values())))
        geometry = ReferenceElement(mesh.cell, mesh.geometry.degree)
        nodes = mesh.geometry.nodes[mesh.geometry.cell_nodes[: mesh.num_cells]]
        self.places, self.is_affine = CellField("x", geometry, nodes), geometry.num_basis == mesh.dim + 1
        self.constants = np.array([*problem.physics.constants.values(), 0.0])
        self.auxiliary = [
            CellField(name, ReferenceElement(mesh.cell, 0) if values.shape[1] == 1 else disc.auxiliary.element, values)
            for name, values in disc.auxiliary.onto(disc.auxiliary.element, rows, mesh.num_cells)
            if name in {given.name for given in problem.physics.auxiliary}
        ]

    @classmethod
    def of_parts(cls, problem, u, t: float = 0.0, star: bool = True) -> list[State]:
        """The states of the parts of the mesh. Collective."""
        return [cls(problem, u, t, star, part) for part in range(len(problem.mesh.parts))]

    # Fields --------------------------------------------------------------------------------------------------------

    @property
    def coordinates(self) -> np.ndarray:
        """Coordinates [cell, node, dim] of the nodes of `element`."""
        return self.places.at(self.element.nodes)

    def nodal(self, given):
        """Values [cell, node, component] at the nodes of `element` of a text or a field; arrays stay as they are."""
        if not isinstance(given, str | Derived):
            return given
        return self._field_of(given, None).sample(self.element.nodes)

    def all(self, given=()) -> list[Derived]:
        """The fields of the solution, what the scheme recovers from it, and derived ones by name: a mapping to texts or
        fields, or a list of fields. Raises OptionError. Not collective."""
        found = [self.field(name) for name in self.known]
        found += [self._field_of(entry, name) for name, entry in named_entries(given)]
        names = [field.name for field in found]
        for name in names:
            if names.count(name) > 1:
                raise OptionError(f"Two fields are called '{name}'; give the derived one another name.")
        return found

    def field(self, given, name: str | None = None, over: str | None = None, facets=None) -> Derived:
        """See Problem.field; facets: those of the boundary `over`. Raises PhysicsError. Not collective."""
        label = name or (given if isinstance(given, str) else "field")
        found = self.known.get(given) if isinstance(given, str) else None
        if found is not None:
            return Derived(self, label, found.values.shape[2], lambda p, cells, _: found.at(p, cells), facets)
        for field in self.problem.physics.fields:
            if given == f"grad_{field.name}":
                size = field.components * self.dim
                return Derived(self, label, size, lambda p, cells, _, f=field: self.gradient(f.name, p, cells), facets)
        function = point_function(self.problem, given, name, over)
        if function.reads_auxiliary:
            require_auxiliary(self.problem)

        def sample(points, cells, normals):
            numbers, parts = np.arange(self.mesh.num_cells)[cells], []
            for begin in range(0, max(1, len(numbers)), CHUNK):
                part = slice(begin, begin + CHUNK)
                own = points[part] if points.ndim == 3 else points
                rows = self.rows(own, numbers[part], None if normals is None else normals[part])
                parts.append(function(rows, self.t, self.constants))
            return np.concatenate(parts)

        return Derived(self, label, function.components, sample, facets)

    def _field_of(self, entry, name: str | None) -> Derived:
        if not isinstance(entry, Derived):
            return self.field(entry, name)
        require_cells(entry)
        mine = entry.parts[self.part] if len(entry.parts) > 1 else entry
        if mine._state.mesh is not self.mesh:
            raise OptionError(f"The field '{entry.name}' is of another mesh or a part; give one of this problem's.")
        return mine.named(name or entry.name)

    # Values at points ----------------------------------------------------------------------------------------------

    def rows(self, points: np.ndarray, cells, normals) -> np.ndarray:
        """Inputs of a pointwise function [cell, point, u | u_x | a | a_x | x | n], see pointwise.cl."""
        own = [self.known[field.name] for field in self.problem.physics.fields]
        parts = [field.at(points, cells) for field in own]
        parts += [self.gradient(field.name, points, cells) for field in own]
        parts += [field.at(points, cells) for field in self.auxiliary]
        parts += [self._flat(self._gradient(field, points, cells)) for field in self.auxiliary]
        x = self.places.at(points, cells)
        return np.concatenate([*parts, x, np.zeros_like(x) if normals is None else normals], axis=2)

    def gradient(self, name: str, points: np.ndarray, cells=ALL) -> np.ndarray:
        """Gradients [cell, point, component dim] of a field: as the scheme recovers them, else of its polynomials."""
        found = self.known.get(f"grad_{name}")
        if found is not None:
            return found.at(points, cells)
        return self._flat(self._gradient(self.known[name], points, cells))

    def _gradient(self, field: CellField, points, cells) -> np.ndarray:
        return field.slopes(points, cells) @ inverse(self.jacobian(points, cells))

    @staticmethod
    def _flat(gradients: np.ndarray) -> np.ndarray:
        return gradients.reshape(*gradients.shape[:2], gradients.shape[2] * gradients.shape[3])

    def jacobian(self, points: np.ndarray, cells=ALL) -> np.ndarray:
        """Derivatives [cell, point, dim, direction] of coordinates by reference ones; of one point in affine cells."""
        return self.places.slopes(points[..., :1, :] if self.is_affine else points, cells)

    def normals(self, points: np.ndarray, cells, reference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Outward unit normals [facet, point, dim] at points on facets with normals [facet, dim] of the reference cell,
        and how much larger the facet is there than on the reference cell [facet, point]."""
        jacobian = self.jacobian(points, cells)
        n = np.einsum("fprd,fr->fpd", inverse(jacobian), reference)
        size = np.linalg.norm(n, axis=2)
        whole = np.ones(points.shape[:2])  # also where one point stands for all
        return n / size[..., None] * whole[..., None], np.abs(np.linalg.det(jacobian)) * size * whole

    def facet_rules(self):
        """Rules on the facets of the reference cell and their outward normals [facet, dim]."""
        return facet_quadrature(self.element.cell, self.problem.discretization.quadrature_degree + EXTRA_DEGREE)


def inverse(matrices: np.ndarray) -> np.ndarray:
    """Inverses of matrices [..., dim, dim] of dimension 2 or 3 by their cofactors: LAPACK takes 100 times as long."""
    if matrices.shape[-1] == 2:
        (a, b), (c, d) = np.moveaxis(matrices, (-2, -1), (0, 1))
        return np.moveaxis(np.array([[d, -b], [-c, a]]) / (a * d - b * c), (0, 1), (-2, -1))
    first, second, third = np.moveaxis(matrices, -2, 0)
    columns = np.stack([np.cross(second, third), np.cross(third, first), np.cross(first, second)], axis=-1)
    return columns / (first * columns[..., 0]).sum(axis=-1)[..., None, None]


def named_entries(given) -> list[tuple[str | None, object]]:
    """Pairs of a name, or None, and a text or field. Raises OptionError."""
    if isinstance(given, Mapping):
        entries = list(given.items())
    elif isinstance(given, list | tuple):
        entries = [(None, entry) for entry in given]
    else:
        entries = [(0, None)]
    for name, entry in entries:
        if not (isinstance(name, str) and name or name is None and isinstance(entry, Derived)):
            raise OptionError(
                f"Fields to write are given as {shown(given)}; give a dict of names to texts or fields, as "
                'fields={"speed": "hypot(u[0], u[1])"}, or a list of fields that problem.field has made.'
            )
    return entries


def field(problem, given, u, t: float, name: str | None, over: str | None, side: str | None, components) -> Derived:
    """See Problem.field."""
    with collectively(problem.comm):
        number("The time t", t)
        for what, value in (("name", name), ("boundary", over), ("side", side)):
            if value is not None and not (isinstance(value, str) and value):
                raise OptionError(f"The {what} of a field is given as {shown(value)}; give a text, or leave it out.")
        if side is not None and over is None:
            raise OptionError(
                f"A field as the side {shown(side)} sees it was asked for, of no boundary; give over= too."
            )
        if problem.is_condensed:
            require_auxiliary(problem)
    facets = None if over is None else problem.mesh.boundary_facets(over, side is not None, side)
    with stages.stage("output"):
        states = State.of_parts(problem, u, t, star=isinstance(given, str) and given.endswith("_star"))
        with collectively(problem.comm):
            parts, rows = [], []
            for state in states:
                for where, own in _facets_of(state.mesh, facets):
                    parts.append(state.field(given, name, over, own))
                    rows.append(where)
            whole = Derived.joined(parts, rows)
            if components is None:
                return whole
            part = whole.only(components)
            return part.named(name) if name else part


def _facets_of(part, facets):
    """Numbers among all, and what a Derived takes, of the cells of a part of a mesh, or of the facets of each shape
    that these have; facets: cells and local facets of the mesh, or None."""
    if facets is None:
        yield part.cells, None
        return
    cells, local = facets
    shapes = np.array(entity_shapes(part.cell)[-2])
    for name in dict.fromkeys(shapes.tolist()):
        where = np.flatnonzero((cells >= part.cells.start) & (cells < part.cells.stop))
        where = where[shapes[local[where]] == name]
        yield where, (cells[where] - part.first, local[where], name)


def checked_outputs(problem, given) -> dict:
    """Texts of derived fields by name. Raises PhysicsError or OptionError for what they cannot be. Collective."""
    with collectively(problem.comm):
        outputs = dict(named_entries(given))
        of_state = {text for f in problem.physics.fields for text in (f.name, f"grad_{f.name}", f"{f.name}_star")}
        for name, text in outputs.items():
            if name is None or isinstance(text, Derived):
                raise OptionError(
                    f"Outputs are given as {shown(given)}; give a dict of names to texts, which hold for any solution."
                )
            if not (isinstance(text, str) and text in of_state):
                point_function(problem, text, name, None)
    return outputs

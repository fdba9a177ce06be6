"""Data a user gives to a problem, in the forms people write them: vectors, auxiliary fields, functions of places."""

from __future__ import annotations

import numpy as np
from petsc4py import PETSc

from ..discretizations.dofmap import dof_nodes, element_nodes
from ..discretizations.poly.legendre import project, quadrature_points
from ..errors import OptionError, PhysicsError, collectively
from ..options import Options
from ..petsc.lifetimes import alive
from ..physics import Physics
from ..reference import ReferenceElement
from ..value_checks import plural, reals, shown
from . import cells_in_time

_TIME = "time"  # attribute of states


def chosen_options(physics, options, prefix: str, defaults: dict) -> Options:
    """The options that a problem is given, or those of the database. Raises OptionError, PhysicsError."""
    if not isinstance(physics, Physics):
        raise PhysicsError(f"A problem takes a Physics, and {shown(physics)} is given; fe.Physics makes one")
    if options is None:
        degree = {} if physics.degree is None else {"degree": physics.degree}
        return Options.from_petsc(prefix, **degree | defaults)
    if not isinstance(options, Options):
        raise OptionError(f"A problem takes Options, and {shown(options)} is given; leave them out to have PETSc's")
    options.validate()
    return options


def solver(given):
    """A SNES or a TS. Raises OptionError for what is none, and for one that was destroyed."""
    if not isinstance(given, PETSc.SNES | PETSc.TS):
        raise OptionError(f"A problem is attached to a SNES or a TS, and {shown(given)} is given")
    return alive(given, "The solver that a problem is attached to", OptionError)


def require_vec(problem, u) -> None:
    """Raise OptionError, the same on all ranks, unless u is a vector of the problem's unknowns. Collective."""
    own = cells_in_time.num_owned(problem)
    is_vec = isinstance(u, PETSc.Vec) and u.handle
    found = problem.comm.allgather((u.getLocalSize() if is_vec else shown(u), own))
    for rank, (given, wanted) in enumerate(found):
        if given != wanted:
            wrong = (
                f"A vector of {plural(given, 'unknown')} on rank {rank} was given to a problem that has {wanted} there"
                if isinstance(given, int)
                else f"{given} was given where a solution, a PETSc Vec, is wanted"
            )
            raise OptionError(f"{wrong}; give what solve, interpolate or create_vec of this problem returns.")


def copied(problem, u) -> PETSc.Vec:
    """A copy of a vector of the problem's unknowns. Collective. Raises OptionError for any other."""
    require_vec(problem, u)
    return u.copy()


def auxiliary_values(discretization, name: str, value) -> list[np.ndarray]:
    """Values [cell, row, component], of each part of the mesh, of an auxiliary field, from any form that
    `Problem.set_auxiliary` takes. Collective."""
    mesh, parts = discretization.mesh, discretization.parts
    with collectively(mesh.comm):
        field, _ = discretization.auxiliary.field(name)
    rows = [1 if field.space == "cell" else part.auxiliary.element.num_basis for part in parts]
    shapes = [(part.mesh.num_cells, count, field.components) for part, count in zip(parts, rows, strict=True)]
    if isinstance(value, dict):
        found = _by_region(mesh, name, value, (mesh.num_cells, 1, field.components))
    elif callable(value):
        with collectively(mesh.comm):
            of_parts = [_of_coordinates(*each, field, value) for each in zip(parts, shapes, strict=True)]
            for part, values in zip(parts, of_parts, strict=True):
                _require_finite(f"the function for auxiliary field '{name}'", values, part.mesh)
        return of_parts
    else:
        found = _of_numbers(mesh, name, field, value)
    return [np.broadcast_to(found[part.mesh.cells], shape) for part, shape in zip(parts, shapes, strict=True)]


def _of_numbers(mesh, name: str, field, value) -> np.ndarray:
    """Values [cell, 1, component] from numbers of a field, or of each cell. Collective."""
    shape = (mesh.num_cells, 1, field.components)
    with collectively(mesh.comm):
        array = reals(f"auxiliary field '{name}'", value, PhysicsError)
        if not array.ndim or len(array) != mesh.num_cells:
            _require_finite(f"auxiliary field '{name}'", array)
        else:
            _require_finite(f"auxiliary field '{name}'", array, mesh)
        if array.ndim and len(array) == mesh.num_cells and array.size == mesh.num_cells * field.components:
            return np.broadcast_to(array.reshape(mesh.num_cells, 1, field.components), shape)
        if array.size == field.components:
            return np.broadcast_to(array.reshape(field.components), shape)
        raise PhysicsError(
            f"auxiliary field '{name}' was given an array of shape {array.shape}; give {field.components} number(s), "
            f"an array [{mesh.num_cells} cells, {field.components}], a dict of regions, or a function of x"
        )


def _by_region(mesh, name: str, value: dict, shape) -> np.ndarray:
    out = np.full(shape, np.nan)
    for region in sorted(value):
        numbers = reals(f"auxiliary field '{name}' in region '{region}'", value[region], PhysicsError)
        _require_finite(f"auxiliary field '{name}' in region '{region}'", numbers)
        if numbers.size not in (1, shape[2]):
            raise PhysicsError(
                f"auxiliary field '{name}' was given {numbers.size} numbers in region '{region}'; give {shape[2]}"
            )
        out[mesh.cell_mask(region)] = numbers
    left = mesh.comm.allreduce(int(np.isnan(out[:, 0, 0]).sum()))
    if left:
        raise PhysicsError(
            f"auxiliary field '{name}' has no value in {plural(left, 'cell')}: the regions "
            f"{', '.join(sorted(value))} do not cover the mesh, whose regions are {', '.join(mesh.cell_regions)}"
        )
    return out


def _of_coordinates(part, shape, field, function) -> np.ndarray:
    centre = np.mean(ReferenceElement(part.mesh.cell, 1).nodes, axis=0, keepdims=True)
    x = element_nodes(part.mesh, centre if field.space == "cell" else part.auxiliary.element.nodes)
    values = reals(f"the function for auxiliary field '{field.name}'", function(x), PhysicsError)
    if values.size != np.prod(shape) and values.size != np.prod(shape[:2]):
        raise PhysicsError(
            f"the function for auxiliary field '{field.name}' returned shape {values.shape} "
            f"for coordinates of shape {x.shape}; it must return {x.shape[:-1]} or {(*x.shape[:-1], field.components)}"
        )
    components = shape[2] if values.size == np.prod(shape) else 1
    return np.broadcast_to(values.reshape(*shape[:2], components), shape)


def _require_finite(what: str, values: np.ndarray, mesh=None) -> None:
    """Raise PhysicsError for values that are not finite, with the first such cell if the values are [cell, ...]."""
    wrong = ~np.isfinite(values)
    if not wrong.any():
        return
    where = ""
    if mesh is not None:
        cell = int(np.flatnonzero(wrong.reshape(len(wrong), -1).any(axis=1))[0])
        centre = mesh.geometry.nodes[mesh.geometry.cell_nodes[cell]].mean(axis=0)
        where = f" in the cell around ({', '.join(f'{x:.4g}' for x in centre)})"
    raise PhysicsError(f"{what} has the value {values[wrong][0]}{where}; give finite numbers")


def nodal_values(discretization, value) -> np.ndarray:
    """Values [owned] of this rank's degrees of freedom that interpolate functions of x, with poly_gpu their L2
    projections, with hdg_gpu in time those of the cells too; forms as `Problem.interpolate`.

    Raises PhysicsError for an unknown field or values that do not fit.
    """
    fields, dofmap = discretization.physics.fields, discretization.dofmap
    given = value if isinstance(value, dict) else {fields[0].name: value}
    known = [f.name for f in fields]
    unknown = [name for name in given if name not in known]
    if unknown:
        raise PhysicsError(f"there is no field '{unknown[0]}' to interpolate; the fields are {', '.join(known)}")
    if discretization.is_polytopic:
        return project(discretization, _values_at(fields, given, quadrature_points(discretization)))
    out = np.zeros(dofmap.num_owned)
    for part, space in discretization.spaces_of_parts:
        inside = [f for f in fields if 0 <= f.offset - space.first_component < space.components]
        nodes = dof_nodes(part.mesh, space)
        numbers = dofmap.compact[part.dofmap.cell_dofs[:, space.first_dof : space.first_dof + space.num_dofs]]
        values = _values_at(inside, given, nodes).reshape(numbers.shape)
        mine = numbers < dofmap.num_owned
        out[numbers[mine]] = values[mine]
    return np.concatenate([out, *_cell_values(discretization, given)])


def _cell_values(discretization, given: dict) -> list[np.ndarray]:
    """Values [cell, node, component], flat, at the nodes of cells whose interior is a part of the state."""
    if not discretization.in_time:
        return []
    nodes = element_nodes(discretization.mesh, discretization.cell_element.nodes)
    return [_values_at(discretization.physics.fields, given, nodes).ravel()]


def _values_at(fields, given: dict, nodes: np.ndarray) -> np.ndarray:
    """Values [cell, node, component of all fields] of {field name: function of x, or numbers}; others are zero."""
    return np.concatenate([_fitting(f, given.get(f.name, 0.0), nodes) for f in fields], axis=2)


def _fitting(field, function, nodes: np.ndarray) -> np.ndarray:
    """Values [cell, node, component] of a function of x, or of numbers."""
    shape = (*nodes.shape[:2], field.components)
    values = reals(f"field '{field.name}'", function(nodes) if callable(function) else function, PhysicsError)
    if not np.isfinite(values).all():
        at = ""
        if values.shape[:2] == shape[:2]:
            cell, node = np.argwhere(~np.isfinite(values))[0][:2]
            at = f" at ({', '.join(f'{x:.4g}' for x in nodes[cell, node])})"
        raise PhysicsError(f"field '{field.name}' was given a value that is not finite{at}; give finite numbers")
    if values.shape == shape[:2] and field.components == 1:
        return values[:, :, None]
    if values.shape not in (shape, (field.components,), ()):
        raise PhysicsError(
            f"field '{field.name}' was given values of shape {values.shape} at places of shape {nodes.shape}; "
            f"give {field.components} number(s), or a function of x that returns {shape}"
        )
    return np.broadcast_to(values, shape)


def require_exact(physics) -> None:
    """Raise PhysicsError if the physics gives no exact solution."""
    if not physics.has_exact:
        raise PhysicsError(
            f"physics '{physics.name}' has no exact solution to compare with: "
            f"give exact={{'{physics.fields[0].name}': 'u[0] = ...;'}}"
        )


def made_at(u: PETSc.Vec, t: float) -> PETSc.Vec:
    """The state u, which knows from now on that it is that of time t."""
    u.setAttr(_TIME, t)
    return u


def time_of(u: object, t: float | None) -> float:
    """The time t, or of None that which the state u knows, else 0."""
    known = u.getAttr(_TIME) if t is None and isinstance(u, PETSc.Vec) and u.handle else None
    return (known or 0.0) if t is None else t

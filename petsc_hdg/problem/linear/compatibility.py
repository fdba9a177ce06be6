"""Balance of source and fluxes where a solution is known up to constants or rigid motions: without it there is none."""

from __future__ import annotations

import numpy as np
from mpi4py.MPI import MAX
from petsc4py import PETSc

from ...discretizations.dofmap import element_nodes
from ...errors import SolveError, warn_user
from ...reference import ReferenceElement, cell_quadrature

REFUSED = 0.1  # imbalance over the size of the data from which on nothing is solved
WAVES = 2.0  # data are called smooth if quadrature is as good for them as for WAVES radians across the domain
ROUNDINGS = 1000.0  # of the terms at a guess, that an imbalance may be
CHUNK = 1 << 14  # cells whose moments are taken at once: temporaries stay in the cache
REST = 10.0  # residual of what is made orthogonal, over that of the solution, up to which it is one too


def check(problem, u: PETSc.Vec) -> None:
    """Raise SolveError if source and fluxes do not balance in the left null space of the Jacobian at u, and warn, on
    rank 0, of an imbalance that quadrature of smooth data does not make: the solver leaves it out of the data.
    Collective."""
    calls = problem.callbacks
    space = calls.null_space
    if not len(space.candidates):
        return
    calls.linearize(problem.snes, u, calls.jacobian, calls.preconditioning)
    if not len(space.left):
        return
    sums, scales, rounding = _imbalance(problem, u)
    shares = np.where(np.abs(sums) > rounding, np.abs(sums) / np.where(scales > 0, scales, 1.0), 0.0)
    if shares.max() > REFUSED:
        raise SolveError(
            f"physics '{problem.physics.name}' has no solution: where its conditions leave the solution free, source "
            f"and fluxes must balance, and they {_told(space, sums, shares > REFUSED)}; give a Dirichlet or Robin "
            "condition, or data that balance"
        )
    allowed = _of_quadrature(problem)
    if shares.max() > allowed and problem.comm.rank == 0:
        warn_user(
            f"source and fluxes of physics '{problem.physics.name}', which where its conditions leave the solution "
            f"free must balance, {_told(space, sums, shares > allowed)}, {100 * shares.max():.2g} % of their size: the "
            "solution is that of data from which this is taken away; give data that balance, or a Dirichlet or Robin "
            "condition"
        )


def _imbalance(problem, u: PETSc.Vec) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Sums [mode] of the residual at u times each mode of the left null space; the size of what is summed, there or at
    zero, for all modes of a field the largest; and rounding of the terms at u, or of those that essential data of a
    field make at zero: of a lid that slides along a cavity they are zero in each cell, but for rounding. Collective.

    At a solution nothing but the imbalance would be left to compare it with.
    """
    space, comm = problem.callbacks.null_space, problem.comm
    columns = space.modes.columns(problem.discretization, space.left)
    zero, terms, rounding = u.duplicate(), u.duplicate(), np.zeros(len(space.left))
    zero.set(0.0)
    sizes = []
    for state in (zero, u) if u.norm() > 0 else (zero,):
        problem.callbacks.residual(None, state, terms)
        values = terms.getArray(readonly=True)
        sums = comm.allreduce(columns.T @ values)
        sizes.append(comm.allreduce(np.abs(columns.T) @ np.abs(values)))
    amplitudes = np.abs(u.getArray(readonly=True)) if len(sizes) > 1 else _of_data(problem, u)
    if comm.allreduce(float(amplitudes.max(initial=0.0)), MAX) > 0:
        random = np.random.default_rng(comm.rank)
        zero.setArray(amplitudes * random.standard_normal(u.getLocalSize()))
        problem.callbacks.jacobian.mult(zero, terms)
        parts = np.abs(columns.T) @ np.abs(terms.getArray(readonly=True))
        rounding = ROUNDINGS * np.finfo(problem.arrays.real).eps * comm.allreduce(parts)
    for vector in (zero, terms):
        vector.destroy()
    sizes = np.nan_to_num(np.array(sizes), nan=0.0, posinf=0.0).max(axis=0)
    of_same_field = np.abs(space.left).max(axis=2)
    shared = (_of_fields(problem.physics, of_same_field) @ _of_fields(problem.physics, of_same_field).T) > 0
    return sums, (shared * sizes).max(axis=1), rounding


def _of_data(problem, u: PETSc.Vec) -> np.ndarray:
    """Largest essential value of its field [owned], for each unknown of this rank, of schemes that eliminate essential
    degrees of freedom; else zero. u is zero. Collective."""
    found, begin = np.zeros(u.getLocalSize()), u.getOwnershipRange()[0]
    if problem.is_condensed:
        return found
    with problem.access.read(u) as owned:
        of_parts = [part.cell_fields(owned, 0.0) for part in problem.operator.parts]
    for fields, unknowns in zip(zip(*of_parts, strict=True), problem.index_sets().values(), strict=True):
        largest = max(float(np.abs(field.values).max(initial=0.0)) for field in fields)
        largest = problem.comm.allreduce(largest, MAX)
        found[unknowns.getIndices() - begin] = largest
    return found


def _of_fields(physics, parts: np.ndarray) -> np.ndarray:
    """Largest part [mode, field] of parts [mode, component]."""
    return np.stack([parts[:, f.offset : f.offset + f.components].max(axis=1) for f in physics.fields], axis=1)


def _told(space, sums: np.ndarray, which: np.ndarray) -> str:
    """Say what source and fluxes sum to in some modes of the left null space."""
    fields, found = space.discretization.physics.fields, []
    for mode, total in zip(space.left[which], sums[which], strict=True):
        parts = [f for f in fields if np.abs(mode[f.offset : f.offset + f.components]).any()]
        if len(fields) == 1 and fields[0].components == 1:
            found.append(f"sum to {total:.3e}")
        elif len(parts) == 1 and parts[0].components == space.modes.dim:
            found.append(_resultant(space.modes, parts[0], mode, total))
        else:
            numbers = [(f.name, c, mode[f.offset + c, 0]) for f in parts for c in range(f.components)]
            terms = " + ".join(f"{value:.4g} {name}[{c}]" for name, c, value in numbers if value)
            found.append(f"sum to {total:.3e} in {terms}")
    return " and ".join(found)


def _resultant(modes, field, mode: np.ndarray, total: float) -> str:
    """The resultant force along a free translation, or moment about a free rotation's axis, of loads on a field."""
    here = mode[field.offset : field.offset + field.components]
    shift, turn = here[:, 0], here[:, 1:] / modes.radius
    speed = np.linalg.norm(turn) / np.sqrt(2)
    if speed == 0:
        length = np.linalg.norm(shift)
        return f"have the resultant force {-total / length:.3e} on '{field.name}' along {_vector(shift / length)}"
    about = _vector(modes.middle - np.linalg.pinv(turn) @ shift)
    speed *= np.sign(turn[1, 0]) if modes.dim == 2 else 1.0  # counter-clockwise
    if modes.dim == 3:
        axis = np.array([turn[2, 1], turn[0, 2], turn[1, 0]]) / speed
        about = f"the axis {_vector(axis)} through {about}"
    return f"have the resultant moment {-total / speed:.3e} on '{field.name}' about {about}"


def _vector(values: np.ndarray) -> str:
    return f"({', '.join(f'{value:.4g}' for value in np.round(values, 12) + 0.0)})"


def _of_quadrature(problem) -> float:
    """The imbalance, over the size of the data, that rounding or a rule on the largest cells may leave. Collective."""
    mesh, rounding = problem.mesh, float(np.sqrt(np.finfo(problem.arrays.real).eps))
    nodes = mesh.geometry.nodes[mesh.geometry.cell_nodes[: mesh.num_cells]]
    largest = mesh.comm.allreduce(float(np.ptp(nodes, axis=1).max(initial=0.0)), MAX)
    part = largest / float(np.ptp(mesh.corners, axis=0).max())  # extent of the largest cell over that of the domain
    return max(rounding, min(REFUSED, (WAVES * part) ** (problem.discretization.quadrature_degree + 1)))


def make_orthogonal(problem, u: PETSc.Vec) -> None:
    """Take from a solution its part in the right null space of the Jacobian, in L2 over all cells, where the rest is a
    solution as well: of nonlinear physics it may be none. Collective."""
    space = problem.callbacks.null_space
    if not len(space.right):
        return
    moments, gram = (problem.comm.allreduce(part) for part in _moments(problem, u))
    part = space.modes.columns(problem.discretization, space.right) @ np.linalg.solve(gram, moments)
    found = u.copy()
    found.setArray(u.getArray(readonly=True) - part)
    if problem.physics.is_linear or _solves(problem, found, u):
        found.copy(u)
    found.destroy()


def _solves(problem, found: PETSc.Vec, u: PETSc.Vec) -> bool:
    """Return True if the residual at `found` is as small as at u, or as PETSc asks for. Collective."""
    rtol, atol = problem.snes.getTolerances()[:2]
    zero, residual, norms = u.duplicate(), u.duplicate(), []
    zero.set(0.0)
    for state in (zero, u, found):
        problem.callbacks.residual(None, state, residual)
        norms.append(residual.norm())
    for vector in (zero, residual):
        vector.destroy()
    return not problem.operator.failure and norms[2] <= max(REST * norms[1], rtol * norms[0], atol)


def _moments(problem, u: PETSc.Vec) -> tuple[np.ndarray, np.ndarray]:
    """This rank's part of the moments [mode] of a solution with each mode, and of those of the modes [mode, mode]."""
    space, count = problem.callbacks.null_space, len(problem.callbacks.null_space.right)
    moments, gram = np.zeros(count), np.zeros((count, count))
    with problem.reading(u) as buffer:
        of_parts = [part.solution_fields(buffer, 0.0) for part in problem.operator.parts]
    for mesh, fields in zip(problem.mesh.parts, of_parts, strict=True):
        _add_moments(space, mesh, fields, moments, gram)
    return moments, gram


def _add_moments(space, mesh, fields, moments: np.ndarray, gram: np.ndarray) -> None:
    """Add those of the cells of a part of the mesh, with these fields there."""
    curved = 0 if mesh.geometry.is_affine else mesh.dim * mesh.geometry.degree
    degree = max(1, *(field.element.degree for field in fields)) + max(1, mesh.geometry.degree) + curved
    rule = cell_quadrature(mesh.cell, degree)
    slopes = ReferenceElement(mesh.cell, mesh.geometry.degree).tabulate(rule.points)[1:]
    for first in range(0, mesh.num_cells, CHUNK):
        part = slice(first, min(first + CHUNK, mesh.num_cells))
        nodes = mesh.geometry.nodes[mesh.geometry.cell_nodes[part]]
        stretch = np.abs(np.linalg.det(np.einsum("rqb,cbd->cqdr", slopes, nodes, optimize=True)))
        modes = space.modes.at(space.right, element_nodes(mesh, rule.points, part))  # [cell, point, component, mode]
        weighted = modes * (stretch * rule.weights)[:, :, None, None]
        values = [np.einsum("qn,cnk->cqk", f.element.tabulate(rule.points, 0)[0], f.values[part]) for f in fields]
        moments += np.einsum("cqkm,cqk->m", weighted, np.concatenate(values, axis=2), optimize=True)
        gram += np.einsum("cqkm,cqkn->mn", weighted, modes, optimize=True)

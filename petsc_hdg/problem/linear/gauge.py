"""The one among solutions that differ by constants or rigid motions: it is orthogonal to them in L2 of the body."""

from __future__ import annotations

import numpy as np
from petsc4py import PETSc

from ...discretizations.dofmap import element_nodes
from ...reference import ReferenceElement, cell_quadrature

CHUNK = 1 << 14  # cells whose moments are taken at once: temporaries stay in the cache
REST = 10.0  # residual of what is made orthogonal, over that of the solution, up to which it is one too


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
    space, mesh = problem.callbacks.null_space, problem.mesh
    with problem.reading(u) as buffer:
        fields = problem.operator.solution_fields(buffer, 0.0)
    curved = 0 if mesh.geometry.is_affine else mesh.dim * mesh.geometry.degree
    degree = max(1, *(field.element.degree for field in fields)) + max(1, mesh.geometry.degree) + curved
    rule = cell_quadrature(mesh.cell, degree)
    slopes = ReferenceElement(mesh.cell, mesh.geometry.degree).tabulate(rule.points)[1:]
    count = len(space.right)
    moments, gram = np.zeros(count), np.zeros((count, count))
    for first in range(0, mesh.num_cells, CHUNK):
        part = slice(first, min(first + CHUNK, mesh.num_cells))
        nodes = mesh.geometry.nodes[mesh.geometry.cell_nodes[part]]
        stretch = np.abs(np.linalg.det(np.einsum("rqb,cbd->cqdr", slopes, nodes, optimize=True)))
        modes = space.modes.at(space.right, element_nodes(mesh, rule.points, part))  # [cell, point, component, mode]
        weighted = modes * (stretch * rule.weights)[:, :, None, None]
        values = [np.einsum("qn,cnk->cqk", f.element.tabulate(rule.points, 0)[0], f.values[part]) for f in fields]
        moments += np.einsum("cqkm,cqk->m", weighted, np.concatenate(values, axis=2), optimize=True)
        gram += np.einsum("cqkm,cqkn->mn", weighted, modes, optimize=True)
    return moments, gram

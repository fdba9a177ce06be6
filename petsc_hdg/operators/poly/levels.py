"""Coarse levels: lower degrees on the same polytopes, then the first on larger and larger agglomerates of them.

The spaces are nested, the forms are not: each level has its own penalties (Antonietti, Houston, Hu, Sarti and Verani
2017), as those of a finer one are too strong for larger cells.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np

from ...discretizations import PolytopicDG
from ...errors import collectively
from ...mesh.polytopal.agglomerate import coarsen
from ...mesh.polytopes import Polytopes
from ..assembled import AssembledMatrix
from .injection import injection, unknowns
from .operator import PolytopicOperator

DEGREE = 1  # of coarse levels
DIRECT = 3  # highest degree with no other between it and that
FEW = 100  # polytopes over all ranks: no more levels
REDUCTION = 0.7  # of the number of polytopes, at least, or there are no more levels: ranks keep one each


class AgglomerateLevels:
    """Coarse levels below a discontinuous scheme, the finest first: same physics, constants, fields and state.

    Making one is collective. Below higher degrees the first ones have the same polytopes.

    fine        operator of the scheme, a PolytopicOperator or a SIPGOperator
    operators   [level] PolytopicOperator
    matrices    [level] AssembledMatrix of the Jacobian, integrated on the level itself
    injections  [level] AIJ matrix that writes functions of a level in the next finer space
    bounds      what gives smoothers their bounds by its `update` after each one of the levels, or None
    """

    def __init__(self, fine, access, comm, vec_type: str):
        self.fine, self.access = fine, access
        finest = fine.discretization
        discretizations = [finest, *_coarser(finest)]
        self.operators = [PolytopicOperator(disc, fine.arrays) for disc in discretizations[1:]]
        with collectively(finest.mesh.comm):
            for operator in self.operators:
                operator.assembly.compile()
                operator.fine.penalty_kernels  # noqa: B018
        self.matrices = [_matrix(operator, comm, vec_type) for operator in self.operators]
        pairs = zip(discretizations[:-1], discretizations[1:], strict=True)
        self.injections = [injection(*pair, comm) for pair in pairs]
        for mat in self.injections:
            mat.setVecType(vec_type)
        self._version: int | None = None  # of the finest level's data, as the others have them
        self.bounds = None

    @property
    def counts(self) -> list[int]:
        """Polytopes of each level over all ranks. Collective."""
        comm = self.fine.discretization.mesh.comm
        return comm.allreduce(np.array([o.discretization.polytopes.count for o in self.operators])).tolist()

    def update(self, u, t: float = 0.0, u_t=None, shift: float = 0.0) -> None:
        """Fill the matrices at a state of the finest level (PETSc vectors). Collective."""
        self._update_data()
        with self.access.read_state(u, u_t) as (x, x_t):
            states = self._on_cells(x)
            rates = [None] * len(states) if u_t is None else self._on_cells(x_t)
        for operator, matrix, state, rate in zip(self.operators, self.matrices, states, rates, strict=True):
            if operator.follows_solution:
                operator.restart()
            operator.fine.linearize(state, t, rate, shift)
            matrix.update()
        if self.bounds is not None:
            self.bounds.update()

    def _update_data(self) -> None:
        """Constants and auxiliary fields as the finest level has them now. Collective."""
        if self._version == self.fine.version:
            return
        self._version = self.fine.version
        rows, finest = self.fine.aux_rows, self.fine.discretization
        for operator in self.operators:
            operator.set_constants(self.fine.constants)
            element = operator.discretization.auxiliary.element
            for name, values in finest.auxiliary.onto(element, rows, finest.mesh.num_cells):
                operator.set_auxiliary(name, values)

    # States ----------------------------------------------------------------------------------------------

    def _on_cells(self, u) -> list:
        """Buffers [level] of a state's nodal values on the base cells, by the element that each level has there; zeros
        for linear physics.
        """
        if self.fine.discretization.physics.is_linear:
            return [operator.fine._zero for operator in self.operators]
        is_polytopic = self.fine.discretization.is_polytopic
        fine, nodal = (self.fine.fine, self.fine.expand(u)) if is_polytopic else (self.fine, u)
        given, found = fine.arrays.to_host(nodal, max(1, fine.dofmap.num_owned), name="states"), {}
        for coarse in (operator.fine for operator in self.operators):
            wanted = coarse.discretization.element
            if wanted.degree not in found:
                out = np.zeros(max(1, coarse.dofmap.num_owned))
                table = fine.discretization.element.tabulate(wanted.nodes, 0)[0]  # [coarse node, node]
                for here, there in zip(unknowns(fine.discretization), unknowns(coarse.discretization), strict=True):
                    out[there] = given[here] @ table.T
                found[wanted.degree] = fine.arrays.to_device(out, "states")
        return [found[operator.fine.discretization.element.degree] for operator in self.operators]


def _coarser(finest) -> list[PolytopicDG]:
    """Discretizations of the coarse levels. Collective."""
    mesh, comm = finest.mesh, finest.mesh.comm
    is_polytopic = finest.is_polytopic
    polytopes = finest.polytopes if is_polytopic else Polytopes.of_cells(mesh)
    found = []
    for degree in degrees_below(finest.largest if is_polytopic else finest.element.degree):
        found.append(_discretization(found[-1] if found else finest, polytopes, degree))
    total = comm.allreduce(polytopes.count)
    while total > FEW or not found:
        polytopes = coarsen(_with(mesh, polytopes), max(1, total >> mesh.dim))
        before, total = total, comm.allreduce(polytopes.count)
        if found and total > REDUCTION * before:
            break
        found.append(_discretization(found[-1] if found else finest, polytopes))
    return found


def degrees_below(degree: int) -> list[int]:
    """Degrees of the levels on the polytopes of the finest one: 4 has 2 and 1 below it, 6 has 3 and 1."""
    found = []
    while degree > DEGREE:
        degree = degree // 2 if degree > DIRECT else DEGREE
        found.append(degree)
    return found


def _with(mesh, polytopes: Polytopes):
    """The mesh with other polytopes; everything else is shared."""
    other = copy.copy(mesh)
    other.polytopes = polytopes
    return other


def _discretization(finer, polytopes: Polytopes, degree: int = DEGREE) -> PolytopicDG:
    degrees = polytopes.degrees
    low = polytopes if degrees is None else replace(polytopes, degrees=np.minimum(degrees, degree))
    options = replace(
        finer.options,
        backend="poly_gpu",
        kernel="auto",
        degree=min(degree, finer.options.degree),
        quadrature_degree=-1,
        sipg_kernel="split",
        poly_space="total",
        poly_assembly="2",
    )
    return PolytopicDG(_with(finer.mesh, low), finer.physics, options, finer.limits, finer)


def _matrix(operator: PolytopicOperator, comm, vec_type: str) -> AssembledMatrix:
    owned = operator.dofmap.num_owned
    total = operator.discretization.mesh.comm.allreduce(owned)
    return AssembledMatrix(operator, (owned, total), comm, vec_type)

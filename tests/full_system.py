"""The system of u, q and û together as one assembled matrix: an oracle of condensation, for small problems.

With the lift q̃ = M⁻¹ D (u, û), W the element vector of u, q̃ and û tested by functions of their own:
    W_u + D_uᵀ M⁻¹ W_q = 0,    M q̃ - D (u, û) = 0,    W_t + D_tᵀ M⁻¹ W_q = 0
Eliminating q̃ and u cell by cell leaves the condensed system; here nothing is eliminated. Cells are evaluated in numpy.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from petsc4py import PETSc

from petsc_hdg import operators
from petsc_hdg.discretizations.condensed.oracle import CellTables, CondensedOracle, cell_tables
from petsc_hdg.petsc import c_library
from petsc_hdg.reference import facet_quadrature

ROUNDS = 5  # solves with a stabilization that the solution of the last one asks for


class FullSystem:
    """Vectors and matrix of all unknowns on the cells of all ranks. Building one is collective.

    Unknowns of a rank: [cell, u then q̃] of its cells, then its owned trace.
    """

    def __init__(self, operator, access):
        self.operator, self.access, self.disc = operator, access, operator.discretization
        self.comm, self.cells = self.disc.mesh.comm, self.disc.mesh.num_cells
        self.oracle = CondensedOracle(self.disc, tables=self._tables())
        self.num_u = self.disc.num_eliminated
        self.num_inner = self.num_u + self.num_gradient * self.disc.components
        self.num_owned = self.disc.dofmap.num_owned
        self.size = self.cells * self.num_inner + self.num_owned
        self.numbers = self._global_numbers()
        self.trace = self.disc.dm.createGlobalVec()

    def _global_numbers(self) -> np.ndarray:
        """Row [cell, dof] of each degree of freedom of a cell, u, q̃, trace; -1: essential."""
        dofmap, rank = self.disc.dofmap, self.comm.rank
        owned = np.array(self.comm.allgather(self.num_owned))
        inner = np.array(self.comm.allgather(self.cells * self.num_inner))
        traces = dofmap.global_numbers[dofmap.compact[dofmap.cell_dofs]].astype(np.int64)
        owner = np.searchsorted(np.cumsum(owned), traces, side="right")
        shifted = np.where(traces < 0, -1, traces + np.cumsum(inner)[np.minimum(owner, len(inner) - 1)])
        first = (inner + owned)[:rank].sum()
        mine = first + np.arange(self.cells * self.num_inner).reshape(self.cells, self.num_inner)
        return np.concatenate([mine, shifted], axis=1).astype(PETSc.IntType)

    # Functions of a cell: u, the components of q̃, û ----------------------------------------------------

    @property
    def num_gradient(self) -> int:
        """Scalar functions of q̃."""
        return self.disc.dim * self.disc.lift.element.num_basis

    def _spread(self, table: np.ndarray) -> np.ndarray:
        """A table [..., function] of u and û with zeros for q̃ between."""
        return np.insert(table, [self.disc.num_interior] * self.num_gradient, 0, axis=-1)

    def _gradients(self, points: np.ndarray) -> np.ndarray:
        """q̃ [point, dim, function] at points of the reference cell."""
        basis = self.disc.lift.element.tabulate(points, 0)[0]
        found = np.stack([np.kron(row, basis) for row in np.eye(self.disc.dim)], axis=1)
        return np.pad(found, ((0, 0), (0, 0), (self.disc.num_interior, self.disc.num_trace)))

    def _tables(self) -> CellTables:
        """Tables of the functions at the points of the rules."""
        found, rules = cell_tables(self.disc), facet_quadrature(self.disc.mesh.cell, self.disc.quadrature_degree)[0]
        kept = (found.value, found.trace, found.jump, found.inside, found.plain)
        value, trace, jump, inside, plain = map(self._spread, kept)
        on_facets = np.stack([self._gradients(rule.points) for rule in rules])
        return CellTables(value, self._gradients(self.disc.quadrature.points), trace, on_facets, jump, inside, plain)

    @cached_property
    def _maps(self) -> tuple[np.ndarray, np.ndarray]:
        """`tested`: what the rows take of W; `relation`: what they add that is linear in (u, q̃, û) [dof, dof]."""
        lift, inside, count = self.disc.lift, self.disc.num_interior, self.num_gradient
        q, size = slice(inside, inside + count), self.disc.num_functions + count
        tested, relation = np.eye(size), np.zeros((size, size))
        tested[:, q] = self._spread(lift.gradient.reshape(count, -1)).T
        tested[q] = 0
        relation[q] = -self._spread(lift.moments.reshape(count, -1))
        relation[q, q] = np.kron(np.eye(self.disc.dim), lift.mass)
        eye = np.eye(self.disc.components)
        return np.kron(tested, eye), np.kron(relation, eye)

    # PETSc -----------------------------------------------------------------------------------------------

    def follow(self) -> None:
        """Take the stabilization that the operator has for a state, where it follows states."""
        if self.operator.stabilization is not None:
            self.oracle.given_tau = self.operator.stabilization.values()

    def create_vec(self) -> PETSc.Vec:
        return PETSc.Vec().createMPI((self.size, PETSc.DECIDE), comm=self.disc.petsc_comm)

    @cached_property
    def matrix(self) -> PETSc.Mat:
        """The AIJ matrix, not filled yet."""
        sizes = (self.size, PETSc.DECIDE)
        mat = PETSc.Mat().create(self.disc.petsc_comm)
        mat.setSizes((sizes, sizes))
        mat.setType("aij")
        row, column = np.indices((self.numbers.shape[1],) * 2).reshape(2, -1)
        c_library.set_preallocation_coo(mat, self.numbers[:, row].ravel(), self.numbers[:, column].ravel())
        return mat

    def states(self, x: PETSc.Vec, t: float = 0.0) -> np.ndarray:
        """u, q̃ and û [cell, dof] of a vector, ghost and essential values included. Collective."""
        values, dofmap = x.getArray(readonly=True), self.disc.dofmap
        split = self.cells * self.num_inner
        self.trace.setArray(values[split:])
        with self.access.read(self.trace) as owned:
            traces = self.operator.values(owned, t)[dofmap.compact[dofmap.cell_dofs]]
        return np.concatenate([values[:split].reshape(self.cells, self.num_inner), traces], axis=1)

    def residual(self, snes, x, f) -> None:
        """SNES function. Collective."""
        tested, relation = self._maps
        states, vectors = self.states(x), np.zeros(self.numbers.shape)
        for cell, state in enumerate(states):
            aux, constants = self.operator.aux_rows[:, cell], self.operator.constants
            vectors[cell] = tested @ self.oracle.vector(cell, state, aux, constants) + relation @ state
        f.set(0.0)
        f.setOption(PETSc.Vec.Option.IGNORE_NEGATIVE_INDICES, True)
        f.setValues(self.numbers.ravel(), vectors.ravel(), addv=True)
        f.assemble()

    def linearize(self, snes, x, jacobian, preconditioner) -> None:
        """SNES Jacobian. Collective."""
        tested, relation = self._maps
        values = np.zeros((self.cells, self.numbers.shape[1] ** 2))
        for cell, state in enumerate(self.states(x)):
            aux, constants = self.operator.aux_rows[:, cell], self.operator.constants
            values[cell] = (tested @ self.oracle.derivative(cell, state, aux, constants) + relation).ravel()
        c_library.set_values_coo(preconditioner, values.ravel())
        for mat in (jacobian, preconditioner):
            mat.assemble()

    def split(self, x: PETSc.Vec) -> tuple[np.ndarray, np.ndarray, PETSc.Vec]:
        """u [cell, dof], coefficients of q̃ [cell, dim, basis, component] and the trace of a vector. Collective."""
        states = self.states(x)
        q = states[:, self.num_u : self.num_inner]
        shape = (self.cells, self.disc.dim, self.disc.lift.element.num_basis, self.disc.components)
        return states[:, : self.num_u], q.reshape(shape), self.trace.copy()

    def join(self, trace: PETSc.Vec) -> PETSc.Vec:
        """The vector of a given trace with u = 0 and q = 0."""
        x = self.create_vec()
        x.setArray(np.concatenate([np.zeros(self.cells * self.num_inner), trace.getArray(readonly=True)]))
        return x


def solve_full(problem) -> tuple[PETSc.Vec, np.ndarray]:
    """The trace of the solution of all unknowns together, and u [cell, dof] in the frames of the reference cell, by LU.
    Collective."""
    problem.callbacks  # noqa: B018  checks the kernels of recovery
    system, trace = FullSystem(problem.operator, problem.access), problem.create_vec()
    snes, x = PETSc.SNES().create(problem.petsc_comm), system.join(trace)
    snes.setFunction(system.residual, system.create_vec())
    snes.setJacobian(system.linearize, system.matrix, system.matrix)
    snes.setType("ksponly" if problem.physics.is_linear else "newtonls")
    snes.getKSP().setType("preonly")
    snes.getKSP().getPC().setType("lu" if problem.comm.size == 1 else "redundant")
    snes.setFromOptions()
    problem.operator.restart()
    with problem.access.read(trace) as owned:
        problem.operator.begin(owned)
    for _ in range(ROUNDS):
        system.follow()
        snes.solve(None, x)
        assert snes.getConvergedReason() > 0
        u, _, trace = system.split(x)
        if problem.physics.is_linear:
            break
        operators.write_interior(problem.operator, u.T)
        with problem.access.read(trace) as buffer:
            if problem.operator.suits(buffer):
                break
    return trace, u

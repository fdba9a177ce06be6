"""The system of u, q and û together as one assembled matrix: an oracle of condensation, for small problems.

With the lift q̃ = M⁻¹ D (u, û) of LiftedFunctions, W the element vector of u, q̃ and û tested by functions of their own:
    W_u + D_uᵀ M⁻¹ W_q = 0,    M q̃ - D (u, û) = 0,    W_t + D_tᵀ M⁻¹ W_q = 0
Eliminating q̃ and u cell by cell leaves the condensed system; here nothing is eliminated. Cells are evaluated in numpy.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from petsc4py import PETSc

from petsc_hdg import operators
from petsc_hdg.discretizations.condensed.oracle import CondensedOracle
from petsc_hdg.petsc import c_library

ROUNDS = 5  # solves with a stabilization that the solution of the last one asks for


class FullSystem:
    """Vectors and matrix of all unknowns on the cells of all ranks. Building one is collective.

    Unknowns of a rank: [cell, u then q̃] of its cells, then its owned trace.
    """

    def __init__(self, operator, access):
        self.operator, self.access, self.disc = operator, access, operator.discretization
        self.comm, self.cells = self.disc.mesh.comm, self.disc.mesh.num_cells
        self.oracle = CondensedOracle(self.disc, mixed=True)
        functions, components = self.oracle.functions, self.disc.components
        self.num_u = functions.num_interior * components
        self.num_inner = (functions.num_interior + functions.num_gradient) * components
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

    # Maps between functions of a cell --------------------------------------------------------------------

    @cached_property
    def _maps(self) -> tuple[np.ndarray, np.ndarray]:
        """`tested`: what the rows take of W; `relation`: what they add that is linear in (u, q̃, û) [dof, dof]."""
        functions = self.oracle.functions
        inside, count = functions.num_interior, functions.num_gradient
        q = slice(inside, inside + count)
        moments, mass = functions.moments().reshape(count, -1), functions.mass()
        lift = np.linalg.solve(mass, functions.moments()).reshape(count, -1)
        tested, relation = np.eye(functions.num_mixed), np.zeros((functions.num_mixed, functions.num_mixed))
        tested[:, q] = functions.spread(lift).T
        tested[q] = 0
        relation[q] = -functions.spread(moments)
        relation[q, q] = np.kron(np.eye(functions.interior.dim), mass)
        eye = np.eye(self.disc.components)
        return np.kron(tested, eye), np.kron(relation, eye)

    @cached_property
    def _kept(self) -> np.ndarray:
        """Mask of the entries of a cell's matrix that may differ from zero [dof, dof]."""
        tested, relation = self._maps
        rows = np.abs(tested).max(axis=1) > 0
        return rows[:, None] | (relation != 0)

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
        row, column = np.nonzero(self._kept)
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
        values = np.zeros((self.cells, np.count_nonzero(self._kept)))
        for cell, state in enumerate(self.states(x)):
            aux, constants = self.operator.aux_rows[:, cell], self.operator.constants
            values[cell] = (tested @ self.oracle.derivative(cell, state, aux, constants) + relation)[self._kept]
        c_library.set_values_coo(preconditioner, values.ravel())
        for mat in (jacobian, preconditioner):
            mat.assemble()

    def split(self, x: PETSc.Vec) -> tuple[np.ndarray, np.ndarray, PETSc.Vec]:
        """u [cell, dof], coefficients of q̃ [cell, dim, basis, component] and the trace of a vector. Collective."""
        states, functions = self.states(x), self.oracle.functions
        q = states[:, self.num_u : self.num_inner]
        shape = (self.cells, functions.interior.dim, functions.element.num_basis, self.disc.components)
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

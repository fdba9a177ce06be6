"""The null spaces of a Jacobian, found by products with constants and rigid motions that essential conditions leave."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from petsc4py import PETSc

from ...database import defaults_in_database
from ...errors import PhysicsError, SolveError
from ...value_checks import shown
from ..input_data import nodal_values
from . import direct_solvers

CERTAIN = 1e-9  # of the largest entry, below which one is zero
HELD = 1e-10  # of a mode's size: values on essential boundaries from which on they hold it
ROUNDINGS = 100.0  # J m over J r, r = m times random numbers, up to which J m is rounding
CLAIMED = 1e-6  # the same for modes that the user says are in the null space
OURS = "petsc_hdg_null_space"  # attribute of a matrix: the null space that it has from us


class AffineModes:
    """Arrays [mode, component, 1 + dim] of functions with all components of a physics: values at the middle of the
    mesh, and slopes along (x - middle) / radius. Making one is collective.

    middle [dim], radius: of the box around the mesh, its radius along the longest side.
    """

    def __init__(self, mesh, physics):
        self.mesh, self.physics, self.dim = mesh, physics, mesh.dim
        self.middle = mesh.corners.mean(axis=0)
        self.radius = float(np.ptp(mesh.corners, axis=0).max()) / 2

    def constants(self, field) -> np.ndarray:
        """The constants of each component of a field."""
        found = np.zeros((field.components, self.physics.num_components, 1 + self.dim))
        found[np.arange(field.components), field.offset + np.arange(field.components), 0] = 1.0
        return found

    def rigid(self, field) -> np.ndarray:
        """The same and, if the field has a component for each dimension, its rotations about the middle."""
        if field.components != self.dim:
            return self.constants(field)
        planes = [(a, b) for a in range(self.dim) for b in range(a + 1, self.dim)]
        turns = np.zeros((len(planes), self.physics.num_components, 1 + self.dim))
        for turn, (a, b) in zip(turns, planes, strict=True):
            turn[field.offset + a, 1 + b], turn[field.offset + b, 1 + a] = -1.0, 1.0
        return np.concatenate([self.constants(field), turns])

    def at(self, modes: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Values [..., component, mode] at places x [..., dim]."""
        return np.einsum("...d,mcd->...cm", (x - self.middle) / self.radius, modes[:, :, 1:]) + modes[:, :, 0].T

    def columns(self, discretization, modes: np.ndarray) -> np.ndarray:
        """This rank's unknowns [owned, mode] of a discretization that interpolate modes."""
        found = [nodal_values(discretization, self._functions(mode)) for mode in modes]
        return np.stack(found, axis=1) if found else np.zeros((discretization.dofmap.num_owned, 0))

    def _functions(self, mode: np.ndarray) -> dict:
        """{field: function of x [..., dim] that gives [..., component]} of one mode."""
        parts = {f.name: mode[None, f.offset : f.offset + f.components] for f in self.physics.fields}
        return {name: lambda x, part=part: self.at(part, x)[..., 0] for name, part in parts.items()}


def _echelon(rows: np.ndarray) -> np.ndarray:
    """Reduced row echelon form of independent rows, with largest entries of 1, from the last pivot to the first."""
    rows, found = rows.copy(), []
    for column in range(rows.shape[1]):
        free = [row for row in range(len(rows)) if row not in found]
        if not free:
            break
        pivot = free[int(np.argmax(np.abs(rows[free, column])))]
        if abs(rows[pivot, column]) <= CERTAIN * np.abs(rows[free]).max():
            rows[free, column] = 0.0
            continue
        found.append(pivot)
        rows[pivot] /= rows[pivot, column]
        others = np.arange(len(rows)) != pivot
        rows[others] -= np.outer(rows[others, column], rows[pivot])
    rows = rows[found[::-1]]
    rows[np.abs(rows) <= CERTAIN * np.abs(rows).max(axis=1, initial=0.0, keepdims=True)] = 0.0
    return rows / np.abs(rows).max(axis=1, initial=0.0, keepdims=True)


KINDS = {"constant": AffineModes.constants, "rigid": AffineModes.rigid, "none": None}


class NullSpace:
    """Right and left null space of the Jacobian of a discretization, as it is at its last linearization.

    right, left [mode, component, 1 + dim]: AffineModes m with J m = 0, and with mᵀ J = 0.
    claimed: {field: one of KINDS}, what the user says of fields; others are found out.
    Making one is not collective.
    """

    def __init__(self, discretization, eps: float, claimed: dict[str, str]):
        self.discretization, self.claimed, self._tolerance = discretization, claimed, ROUNDINGS * eps
        self.comm = discretization.mesh.comm
        self.right = self.left = self._left_over = self._none()
        self._coefficients: int | None = None  # of the operator, that the modes at hand belong to

    @cached_property
    def modes(self) -> AffineModes:
        """Collective at first use."""
        return AffineModes(self.discretization.mesh, self.discretization.physics)

    @cached_property
    def candidates(self) -> np.ndarray:
        """Modes that essential conditions leave free. Collective at first use."""
        found, physics = [self._none()], self.discretization.physics
        for field in physics.fields:
            kind = self.claimed.get(field.name)
            if kind is None:
                found.append(self._free(self.modes.rigid(field)))
            elif KINDS[kind] is not None:
                found.append(KINDS[kind](self.modes, field))
        return np.concatenate(found)

    def _none(self) -> np.ndarray:
        return np.zeros((0, self.discretization.physics.num_components, 1 + self.discretization.dim))

    def _free(self, modes: np.ndarray) -> np.ndarray:
        """Combinations of modes that vanish at the vertices where essential conditions hold. Collective."""
        mesh = self.discretization.mesh
        values = [np.zeros((0, len(modes)))]
        for condition in self.discretization.physics.dirichlet:
            vertices = np.unique(mesh.topology.entity_vertices[mesh.dim - 1][mesh.facet_mask(condition.label)])
            there = self.modes.at(modes, mesh.geometry.nodes[vertices])
            components = condition.field.offset + np.array(condition.components)
            values.append(there[:, components].reshape(-1, len(modes)))
        values = np.concatenate(values)
        count = max(1, self.comm.allreduce(len(values)))
        return self._combined(modes, _small(triangle(self.comm, values / np.sqrt(count)), HELD))

    def _combined(self, modes: np.ndarray, coefficients: np.ndarray) -> np.ndarray:
        """Combinations of modes, or others of their span: those without rotation apart, with many zeros."""
        combined = np.tensordot(coefficients, modes, 1)[:, :, ::-1]
        _, components, numbers = combined.shape
        rows = _echelon(np.moveaxis(combined, 2, 1).reshape(len(combined), components * numbers))
        return np.moveaxis(rows.reshape(len(rows), numbers, components), 1, 2)[:, :, ::-1]

    # Finding ---------------------------------------------------------------------------------------------

    def restart(self) -> None:
        """Forget what linearizations have ruled out: another solve begins. Collective."""
        self._coefficients = None

    def follow(self, calls) -> None:
        """Find the null spaces of the Jacobian as it is now, and tell the matrices of them. Collective.

        Modes that were in neither at the linearization before are not looked at again until data change.
        """
        if self._coefficients != calls.operator.coefficients:
            self._coefficients, self._left_over = calls.operator.coefficients, self.candidates
            self.right = self.left = self._none()
        if len(self._left_over):
            self._find(calls.solved)
        self._tell(calls)

    def _find(self, jacobian: PETSc.Mat) -> None:
        modes, random = self._left_over, np.random.default_rng(self.comm.rank)
        columns = self._columns(jacobian, self.discretization, modes)
        others = [f for f in self.discretization.physics.fields if f.name not in self.claimed]
        of_others = [np.abs(modes[:, f.offset : f.offset + f.components]).any(axis=(1, 2)) for f in others]
        claimed = ~np.any(of_others, axis=0)  # all of a mode belongs to fields that the user has said something of
        parts = self._right(jacobian, columns, random, claimed), self._left(jacobian, columns, random, claimed)
        self.right, self.left = (self._combined(modes, part) for part in parts)
        if self.right.shape == self.left.shape and np.allclose(self.right, self.left, atol=CERTAIN):
            self.left = self.right
        self._left_over = self._combined(modes, _independent(np.concatenate(parts)))

    def _right(self, jacobian, columns, random, claimed) -> np.ndarray:
        """Coefficients [found, mode] of what the Jacobian maps to zero. Raises SolveError for a claim that is wrong."""
        products = _products(jacobian, columns)
        sizes = _norms(self.comm, _products(jacobian, columns * random.standard_normal(columns.shape)))
        sizes = np.where(sizes > 0, sizes, 1.0)
        parts = _norms(self.comm, products) / sizes
        wrong = claimed & ~(parts <= CLAIMED)
        if wrong.any():
            raise SolveError(self._refusal(int(np.flatnonzero(wrong)[0]), parts))
        products[:, claimed] = 0.0
        return _small(triangle(self.comm, products / sizes), self._tolerance) / sizes

    def _left(self, jacobian, columns, random, claimed) -> np.ndarray:
        """Coefficients [found, mode] of what all products with the Jacobian are orthogonal to."""
        products = _products(jacobian, random.standard_normal((len(columns), 1 + columns.shape[1])))
        sums = self.comm.allreduce(columns.T @ products)  # [mode, product]
        sizes = np.sqrt(self.comm.allreduce(columns.T**2 @ products**2)).max(axis=1, initial=0.0)
        sizes = np.where(sizes > 0, sizes, 1.0)
        sums /= sizes[:, None]
        sums[claimed & (np.abs(sums).max(axis=1, initial=0.0) <= CLAIMED)] = 0.0
        return _small(sums.T, self._tolerance) / sizes

    def _refusal(self, number: int, parts: np.ndarray) -> str:
        component = int(np.flatnonzero(np.abs(self._left_over[number]).any(axis=1))[0])
        field = next(f for f in self.discretization.physics.fields[::-1] if f.offset <= component)
        return (
            f"nullspace={{'{field.name}': '{self.claimed[field.name]}'}} was given, and the Jacobian maps such "
            f"functions to {parts[number]:.1e} of what it makes of rough ones: conditions or terms of the physics fix "
            f"them; leave '{field.name}' out, or take the conditions away"
        )

    # Telling ---------------------------------------------------------------------------------------------

    def _tell(self, calls) -> None:
        """Give the matrices what was found and take from them what is so no more; a user's own stays. Collective.

        Where the Jacobian of nonlinear physics has balance laws alone, the solution is made unique by the same modes.
        """
        null = self.right if len(self.right) >= len(self.left) else self.left
        alone = len(self.right) == 1 and not len(self.left) and not self.discretization.physics.is_linear
        fits = calls.assembled is not None and calls.solved.getSize()[0] <= direct_solvers.IN_SPACE
        computed = self._computed(calls) if alone and fits else None  # Newton's method sees what is left out
        for mat in calls.matrices:
            if mat == calls.jacobian and mat != calls.solved:
                continue
            before, now = mat.getAttr(OURS), mat.getNullSpace().handle
            if (now and (before is None or now != before.handle)) or (before is None and not len(null)):
                continue
            is_coarse = calls.conforming is not None and mat == calls.conforming.mat
            disc = calls.conforming.discretization if is_coarse else self.discretization
            space = self._space(mat, disc, null)
            mat.setNullSpace(space)
            left = space if self.left is null else self._space(mat, disc, self.left)
            mat.setTransposeNullSpace(computed if computed and disc is self.discretization else left)
            mat.setAttr(OURS, space if len(null) else None)

    def _computed(self, calls) -> PETSc.NullSpace:
        """The left null space where one mode is the right one and none the left one, as of an enclosed flow whose
        density depends on its state: w with (A + δ δᵀ)ᵀ w = δ, A the assembled matrix, δ where the mode is largest.
        Collective."""
        mat = calls.assembled.mat
        mode = np.abs(self._columns(mat, self.discretization, self.right)[:, 0])
        owner = int(np.argmax(self.comm.allgather(mode.max(initial=0.0))))
        moved, (w, delta) = mat.copy(), mat.createVecs()
        delta.set(0.0)
        moved.setOption(PETSc.Mat.Option.NEW_NONZERO_ALLOCATION_ERR, False)
        if self.comm.rank == owner:
            row = int(mode.argmax()) + mat.getOwnershipRange()[0]
            moved.setValue(row, row, 1.0, addv=True)
            delta.setValue(row, 1.0)
        moved.assemble()
        delta.assemble()
        ksp = PETSc.KSP().create(mat.comm)
        ksp.setOperators(moved)
        ksp.setType("fgmres")  # by the residual itself, which pivots that were moved leave large
        ksp.setTolerances(rtol=1e-13, max_it=10)
        direct_solvers.set_factors(ksp.getPC(), self.discretization.options.deterministic)
        prefix = f"{self.discretization.options.prefix}left_null_"
        ksp.setOptionsPrefix(prefix)
        with defaults_in_database(prefix, direct_solvers.SINGULAR, unless="pc_type"):
            ksp.setFromOptions()
            ksp.solveTranspose(delta, w)
        w.normalize()
        space = PETSc.NullSpace().create(vectors=[w], comm=mat.comm)
        for thing in (ksp, moved, w, delta):
            thing.destroy()
        return space

    def _columns(self, mat: PETSc.Mat, discretization, modes: np.ndarray) -> np.ndarray:
        """Modes in the unknowns [row, mode] of a matrix: of states in time those of the trace, which come first."""
        return self.modes.columns(discretization, modes)[: mat.getLocalSize()[0]]

    def _space(self, mat: PETSc.Mat, discretization, modes: np.ndarray) -> PETSc.NullSpace:
        """The span of modes, or what PETSc takes for none. Collective."""
        if not len(modes):
            return PETSc.NullSpace()
        vectors = orthonormal(self.comm, mat.createVecLeft, self._columns(mat, discretization, modes))
        space = PETSc.NullSpace().create(vectors=vectors, comm=mat.comm)
        for vector in vectors:
            vector.destroy()
        return space


def checked_claims(physics, dim: int, given) -> dict[str, str]:
    """{field: one of KINDS} that a user gives. Raises PhysicsError."""
    names = [f.name for f in physics.fields]
    if not isinstance(given, dict | None):
        raise PhysicsError(f"nullspace={shown(given)} is given; give a dict, e.g. {{'{names[-1]}': 'constant'}}")
    for name, kind in (given or {}).items():
        if name not in names:
            raise PhysicsError(f"nullspace names the field {shown(name)}; the fields are {', '.join(names)}")
        if not isinstance(kind, str) or kind not in KINDS:
            raise PhysicsError(f"nullspace={{'{name}': {shown(kind)}}} is given; give one of {', '.join(KINDS)}")
        components = physics.fields[names.index(name)].components
        if kind == "rigid" and components != dim:
            raise PhysicsError(
                f"nullspace={{'{name}': 'rigid'}} is given for a field of {components} components in {dim} dimensions; "
                f"give 'constant', or a field of {dim} components"
            )
    return dict(given or {})


def set_near_nullspace(discretization, mat: PETSc.Mat) -> None:
    """Give GAMG the rigid-body modes if the only field is a displacement (one component a dimension). Collective.

    Where unknowns stand in blocks, which are not components, other physics gets the constants of each component.
    """
    fields, modes = discretization.physics.fields, AffineModes(discretization.mesh, discretization.physics)
    if not (len(fields) == 1 and fields[0].components == modes.dim) and discretization.block_size == 1:
        return
    found = np.concatenate([modes.rigid(f) if len(fields) == 1 else modes.constants(f) for f in fields])
    columns = modes.columns(discretization, found)[: mat.getLocalSize()[0]]  # of states in time the trace comes first
    vectors = orthonormal(modes.mesh.comm, mat.createVecLeft, columns)
    mat.setNearNullSpace(PETSc.NullSpace().create(vectors=vectors, comm=mat.comm))
    for vector in vectors:
        vector.destroy()


# Numbers of all ranks --------------------------------------------------------------------------------------


def triangle(comm, columns: np.ndarray) -> np.ndarray:
    """The upper triangle R [mode, mode] of a QR factorization of columns [owned, mode] of all ranks. Collective."""
    parts = np.concatenate(comm.allgather(np.linalg.qr(columns, mode="r")))
    missing = max(0, parts.shape[1] - len(parts))
    return np.linalg.qr(np.pad(parts, ((0, missing), (0, 0))), mode="r")


def _small(matrix: np.ndarray, tolerance: float) -> np.ndarray:
    """Right singular vectors [found, column] of singular values up to a tolerance; none if not all is finite."""
    if not matrix.size or not np.isfinite(matrix).all():
        return np.zeros((0, matrix.shape[1]))
    values, vectors = np.linalg.svd(matrix)[1:]
    return vectors[np.pad(values, (0, len(vectors) - len(values))) <= tolerance]


def _independent(rows: np.ndarray) -> np.ndarray:
    """An orthonormal basis [found, column] of the span of rows."""
    if not rows.size:
        return rows[:0]
    values, vectors = np.linalg.svd(rows, full_matrices=False)[1:]
    return vectors[values > CLAIMED * values[0]]


def _norms(comm, columns: np.ndarray) -> np.ndarray:
    """Euclidean norms [column] over all ranks. Collective."""
    return np.sqrt(comm.allreduce((columns**2).sum(axis=0)))


def _products(mat: PETSc.Mat, columns: np.ndarray) -> np.ndarray:
    """The products [owned, column] of a matrix with columns. Collective."""
    (x, y), out = mat.createVecs(), np.empty_like(columns)
    for column in range(columns.shape[1]):
        x.setArray(columns[:, column])
        mat.mult(x, y)
        out[:, column] = y.getArray(readonly=True)
    for vector in (x, y):
        vector.destroy()
    return out


def orthonormal(comm, create, columns: np.ndarray) -> list[PETSc.Vec]:
    """Orthonormal vectors, made by `create()`, with the span of columns [owned, column]. Collective."""
    for _ in range(2):  # twice is enough, as of Gram and Schmidt
        found = triangle(comm, columns)
        diagonal = np.abs(np.diag(found))
        kept = diagonal > CLAIMED**2 * diagonal.max(initial=0.0)
        found = found if kept.all() else triangle(comm, columns[:, kept])
        columns = np.linalg.solve(found.T, columns[:, kept].T).T
    vectors = []
    for column in columns.T:
        vectors.append(create())
        vectors[-1].setArray(column)
    return vectors

"""Functions of places that are affine in each component: constants and rigid motions, what a null space is made of."""

from __future__ import annotations

import numpy as np

from ..input_data import nodal_values

CERTAIN = 1e-9  # of the largest entry, below which one is zero


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

    def simplest(self, modes: np.ndarray) -> np.ndarray:
        """Modes with the same span: those without rotation apart, each with a largest entry of 1 and many of 0."""
        count, components, _ = modes.shape
        rows = _echelon(np.moveaxis(modes[:, :, ::-1], 2, 1).reshape(count, components * (1 + self.dim)))
        return np.moveaxis(rows.reshape(len(rows), 1 + self.dim, components), 1, 2)[:, :, ::-1]


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

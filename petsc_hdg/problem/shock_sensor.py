"""Shock capturing: Persson and Peraire's sensor sets an artificial viscosity, one value per cell."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from petsc4py import PETSc

from ..errors import OptionError, PhysicsError, collectively
from ..reference import ReferenceElement, cell_quadrature
from ..value_checks import number, shown


class ShockSensor:
    """Artificial viscosity of a problem's cells by the smoothness of a scalar.

        sensor = fe.ShockSensor(problem, "u[0]", speed=2.0)
        sensor.update(u0)
        u = problem.solve_in_time(u0, t1, dt, monitor=sensor)

    A cell's share is S = |s - Π s|² / |s|², in the L2 norm of the reference cell. s is the quantity, projected onto
    the polynomials of the problem's degree p, and Π projects onto those of degree p - 1. The viscosity is

        ε = ε₀ (1 + sin(π (log₁₀ S - s₀) / (2 κ))) / 2,   ε₀ = speed h / p,

    0 for log₁₀ S < s₀ - κ, ε₀ for log₁₀ S > s₀ + κ. h is the cell's shortest edge.

    problem    petsc_hdg.Problem of degree 2 or more; its scheme is not `poly_gpu`
    quantity   name of a field of one component or C text of one expression, as `Problem.field` takes them
    auxiliary  auxiliary field of the physics, of one component and constant per cell, which gets the viscosity
    speed      viscosity over length: a number, 0 or more, or a C text of u, whose largest value in the cell is taken
    threshold  s₀ (None: -2.5 - 4 log₁₀ p; 4 is the paper's, -2.5 is from trials with Sod's tube)
    width      κ, above 0

    The viscosity is 0 until the first `update`. Making a sensor is collective. Raises OptionError, PhysicsError.
    Source: P.-O. Persson, J. Peraire, Sub-cell shock capturing for discontinuous Galerkin methods, AIAA 2006-112.
    """

    def __init__(
        self,
        problem,
        quantity: str = "u[0]",
        auxiliary: str = "artificial_viscosity",
        speed: float | str = 1.0,
        threshold: float | None = None,
        width: float = 1.0,
    ):
        self.problem, self.quantity, self.auxiliary, self.speed = problem, quantity, auxiliary, speed
        with collectively(problem.comm):
            self._check(width)
            degree, cell = problem.options.degree, problem.mesh.cell
            self.threshold = -2.5 - 4 * np.log10(degree)
            if threshold is not None:
                self.threshold = number("The threshold of a shock sensor", threshold)
            self.width = width
            rule = cell_quadrature(cell, 2 * degree)
            self._points, root = rule.points, np.sqrt(rule.weights)[:, None]
            tables = [ReferenceElement(cell, k).tabulate(rule.points, 0)[0] for k in (degree, degree - 1)]
            self._all, self._low = (np.linalg.qr(root * table)[0] for table in tables)  # orthonormal [point, mode]
            self._root = root[:, 0]
            self._length = _shortest_edges(problem.mesh) / degree
        problem.set_auxiliary(auxiliary, 0.0)

    def _check(self, width) -> None:
        physics, options = self.problem.physics, self.problem.options
        if options.degree < 2 or self.problem.discretization.is_polytopic:
            raise OptionError(
                f"a shock sensor is asked for with {options.backend} of degree {options.degree}; it needs hdg_gpu, "
                "sipg_gpu or cg_gpu of degree 2 or more: at degree 1 the highest modes are the slope"
            )
        fields = {field.name: field for field in physics.auxiliary}
        field = fields.get(self.auxiliary)
        if field is None or field.components != 1 or field.space != "cell":
            raise PhysicsError(
                f"a shock sensor sets the auxiliary field {shown(self.auxiliary)}, which physics '{physics.name}' "
                f"{'lacks' if field is None else 'has with other values'}; give the physics "
                f'auxiliary={{{shown(self.auxiliary)}: fe.Auxiliary(1, "cell")}}'
            )
        if not isinstance(self.speed, str) and not number("The speed of a shock sensor", self.speed) >= 0:
            raise OptionError(
                f"The speed of a shock sensor is given as {self.speed}; give 0, a number above, or a text."
            )
        if not number("The width of a shock sensor", width) > 0:
            raise OptionError(f"The width of a shock sensor is given as {width}; give a number above 0.")

    def indicator(self, u: PETSc.Vec, t: float | None = None) -> np.ndarray:
        """log₁₀ S [cell] of a state, at its time by default, in this rank's cells; -inf where S = 0. Collective."""
        values = self._sampled(self.quantity, "quantity", u, t) * self._root
        modes = values @ self._all
        smooth = modes @ self._all.T
        rough = smooth - (smooth @ self._low) @ self._low.T
        norm = (modes**2).sum(axis=1)
        with np.errstate(divide="ignore"):
            return np.log10((rough**2).sum(axis=1) / np.where(norm == 0, 1.0, norm))

    def update(self, u: PETSc.Vec, t: float | None = None) -> np.ndarray:
        """Set the auxiliary field by a state, at its time by default; return its values [cell] in this rank's cells.

        Collective. Raises PhysicsError for values that are not finite.
        """
        ramp = np.clip((self.indicator(u, t) - self.threshold) / self.width, -1.0, 1.0)
        speed = self.speed
        if isinstance(speed, str):
            speed = np.fmax.reduce(self._sampled(speed, "speed", u, t), axis=1)  # NaN only where all points have it
        viscosity = speed * self._length * 0.5 * (1.0 + np.sin(0.5 * np.pi * ramp))
        self.problem.set_auxiliary(self.auxiliary, viscosity)
        return viscosity

    def __call__(self, t: float, u: PETSc.Vec) -> None:
        """`update` as a monitor of `Problem.solve_in_time`."""
        self.update(u, t)

    def _sampled(self, text: str, what: str, u: PETSc.Vec, t: float | None) -> np.ndarray:
        """Values [cell, point] of a text."""
        found = self.problem.field(text, u, t)
        with collectively(self.problem.comm):
            if found.components != 1:
                raise OptionError(
                    f"The {what} of a shock sensor, {shown(text)}, has {found.components} components; give one of one"
                )
            return found.values(self._points)[:, :, 0]


def _shortest_edges(mesh) -> np.ndarray:
    """Least distance [cell] between two vertices of each of this rank's cells."""
    corners = ReferenceElement(mesh.cell, 1).num_basis  # of basix, first among the nodes
    x = mesh.geometry.nodes[mesh.geometry.cell_nodes[: mesh.num_cells, :corners]]
    pairs = combinations(range(corners), 2)
    return np.min([np.linalg.norm(x[:, i] - x[:, j], axis=1) for i, j in pairs], axis=0)

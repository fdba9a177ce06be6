"""What a problem tells of its solutions: norms, values, fluxes, files, pictures, reports."""

from __future__ import annotations

import numpy as np
from petsc4py import PETSc

from .. import stages
from . import inputs, results


class Evaluated:
    """A problem whose solutions are looked at."""

    def errors(self, u: PETSc.Vec, t: float = 0.0) -> dict[str, float]:
        """Norms of the error over components and ranks. Raises PhysicsError without an exact solution.

        L2 of u, H1 (the seminorm: L2 of the gradient) and, with hdg_gpu, star: L2 of the superconvergent u*.
        """
        inputs.require_exact(self.physics)
        with stages.stage("output"), self.access.read(u) as buffer:
            squares = self.comm.allreduce(self.operator.errors(buffer, t))
        return {name: float(np.sqrt(row.sum())) for name, row in zip(self.operator.norms, squares, strict=True)}

    def cell_values(self, u: PETSc.Vec, t: float = 0.0) -> dict[str, np.ndarray]:
        """Values [cell, node, component] of each field at its nodes, essential values included (collective).

        With hdg_gpu also `grad_u` (component, then direction) and `u_star` of each field u.
        """
        return {field.name: field.values for field in results.cell_fields(self, u, t)}

    def write(self, path, u: PETSc.Vec, t: float = 0.0) -> None:
        """Write a VTU file with all fields of u, high order where the fields are. Collective."""
        with stages.stage("output"):
            results.write_vtu(self, path, u, t)

    def write_trace(self, path, u: PETSc.Vec, t: float = 0.0) -> None:
        """Write a VTU file of the trace on all facets, each once, with hdg_gpu. Collective. Raises OptionError."""
        with stages.stage("output"):
            results.write_trace(self, path, u, t)

    def flux(self, label: str, u: PETSc.Vec, t: float = 0.0) -> np.ndarray:
        """∫ f1·n over the exterior facets of a named boundary [component], as Neumann conditions give it. Collective.

        With hdg_gpu it is the numerical flux, which balances the sources in each cell and over the mesh to rounding.
        Raises MeshError for an unknown boundary.
        """
        with stages.stage("output"), self.access.read(u) as buffer:
            return self.operator.flux(label, buffer, t)

    def plot(self, path, u: PETSc.Vec, t: float = 0.0, **settings) -> None:
        """Write a PNG picture of the first field of u. Collective."""
        with stages.stage("output"):
            results.write_png(self, path, u, t, **settings)

    def report(self, u: PETSc.Vec | None = None) -> dict:
        """What was run and how it went; written to the file of `-fe_report` if given. Collective."""
        return results.report(self, u)

    def summary(self, report: dict | None = None, u: PETSc.Vec | None = None) -> str:
        """The report as a table for the terminal. Collective."""
        return results.summary(report or self.report(u))

    def view(self) -> str:
        """Lines that describe discretization, device and Vec mode. Collective."""
        return results.describe(self)

"""Evaluation of solutions: norms, values, fluxes, integrals, files, pictures, reports."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from petsc4py import PETSc

from ... import stages
from ...errors import collectively
from ...mesh.geometry import Locator
from ...output import FORMATS, Grid, Picture, format_report
from ...value_checks import FilePath, number, text
from .. import input_data
from ..input_data import time_of
from . import derived_fields, results, solution_values
from .derived_fields import Derived, cell_fields
from .point_functions import Exact, integral
from .rate import rate_of

Fields = Mapping[str, object] | Sequence[object] | None  # derived fields, as `field` makes and takes them


class Evaluated:
    """A problem whose solutions are looked at.

    The time t of a state is that at which a run or `interpolate` made it, and 0 of others, unless it is given.
    """

    comm: Any
    access: Any
    mesh: Any
    operator: Any
    _outputs: dict

    @contextmanager
    def reading(self, u: PETSc.Vec, t: float = 0.0) -> Iterator[Any]:
        """The buffer of a solution at a time, for a block of kernels. Collective.

        Raises OptionError for any other vector, and for a time that is no finite number.
        """
        with collectively(self.comm):
            number("The time t", t)
        input_data.require_vec(self, u)
        with self.access.read(u) as buffer:
            yield buffer

    @cached_property
    def exact(self) -> Exact:
        """The exact solution of the physics, where there is one."""
        return Exact(self)

    def errors(self, u: PETSc.Vec, t: float | None = None, field: str | None = None) -> dict[str, float]:
        """Norms of the error over components of a field (None: of all fields) and ranks. Collective.

        L2 of u, H1 (the seminorm: L2 of the gradient) and, with hdg_gpu, star: L2 of the superconvergent u*.
        Raises PhysicsError without an exact solution of the field, or of any.
        """
        t = time_of(u, t)
        components = self.exact.components(field)
        with stages.stage("output"), self.reading(u, t) as buffer:
            squares = self.comm.allreduce(self.operator.errors(buffer, t))[:, components]
        return {name: float(np.sqrt(row.sum())) for name, row in zip(self.operator.norms, squares, strict=True)}

    def cell_values(self, u: PETSc.Vec, t: float | None = None) -> dict[str, Any]:
        """Values [cell, node, component] of each field at its nodes, essential values included (collective). On a mesh
        of several shapes they are lists of such arrays, one for each of `mesh.parts`.

        With hdg_gpu also `grad_u` (component, then direction) and `u_star` of each field u.
        """
        t = time_of(u, t)
        of_parts = [cell_fields(self, u, t, part=part) for part in range(len(self.mesh.parts))]
        if len(of_parts) == 1:
            return {field.name: field.values for field in of_parts[0]}
        return {fields[0].name: [field.values for field in fields] for fields in zip(*of_parts, strict=True)}

    def field(
        self,
        given: object,
        u: PETSc.Vec,
        t: float | None = None,
        *,
        name: str | None = None,
        over: str | None = None,
        side: str | None = None,
        components: int | str | Sequence[int | str] | None = None,
    ) -> Derived:
        """A field that follows from a solution: to evaluate at places and in cells, to plot, to write. Collective.

        given  C text of one expression, "hypot(u[0], u[1])", or statements that set obj[c], of u, u_x, a, a_x, x, t and
               constants, as `integral` takes it; the name of a field as `cell_values` has it ("u", with hdg_gpu
               "u_star"); "grad_u", the gradient (component, then direction) of a field u by any scheme; "f1", or
               "f1_u" where there are several fields, the physics' own flux
        name   in files and messages (None: the text)
        over   boundary, as conditions name it: the field is on its facets, and its text may read the outward unit
               normal n[dim]
        side   name of a region: the values are those of its cells, also on facets of `over` inside the mesh
        components  one or a list of them (None: all), by number, or by name where there are as many as a vector or a
               tensor has: "x", "y", "z", or "xy" for the slope of component x in direction y

        Values are those of the cells, in every scheme, and jump between them where gradients do; u_x of hdg_gpu is q.
        On a mesh of several shapes the `parts` of the field have values in the cells of each.
        Raises PhysicsError for what the text cannot be, MeshError for an unknown region or boundary, OptionError for a
        side without a boundary and for unknown components.
        """
        t = time_of(u, t)
        return derived_fields.field(self, given, u, t, name, over, side, components)

    @property
    def outputs(self) -> dict:
        """Derived fields by name, as texts that `field` takes: `write` and `-fe_output` write them, `plot` knows them.

        Setting it is collective, and raises PhysicsError or OptionError for what a text or a name cannot be.
        """
        return dict(self._outputs)

    @outputs.setter
    def outputs(self, given: Mapping[str, object]) -> None:
        self._outputs = derived_fields.checked_outputs(self, given)

    def write(self, path: FilePath, u: PETSc.Vec, t: float | None = None, fields: Fields = None) -> None:
        """Write a VTU file with all fields of u, high order where the fields are. Collective.

        fields: more of them, a dict of names to texts or fields, or a list of fields, as `field` takes and makes them
        (None: those of `outputs`).

        A path NAME.pvd adds a file NAME_00000.vtu, NAME_00001.vtu, … to the series that NAME.pvd lists with its times,
        in place of what it has from time t on. The first call begins it anew, but after a restart from a checkpoint.
        A path NAME.xdmf does so with NAME_00000.h5, … in HDF5, of degree 2 at most, from arrays gathered on rank 0.
        """
        t = time_of(u, t)
        with stages.stage("output"):
            if isinstance(path, str | Path) and Path(path).suffix.lower() in FORMATS:
                results.add_to_series(self, path, u, t, fields=fields)
            else:
                results.write_vtu(self, path, u, t, fields)

    def to_numpy(
        self, u: PETSc.Vec, t: float | None = None, fields: Fields = None, *, gather: bool = False
    ) -> Grid | None:
        """Nodes, cells and values as numpy arrays: points, cells, point_data, cell_data. Collective.

        fields  derived ones too, as `write` takes them
        gather  all ranks' arrays on the first rank, None on the others; else each rank has those of its own cells

        The nodes are those of the highest degree among the fields. With cg_gpu cells share them, but on periodic meshes
        and where there are derived fields, which may jump; else each cell has nodes of its own. Raises OptionError.
        """
        t = time_of(u, t)
        return solution_values.grid_of(self, u, t, fields, gather)

    def to_meshio(self, u: PETSc.Vec, t: float | None = None, fields: Fields = None, *, gather: bool = True) -> Any:
        """`to_numpy` as a meshio.Mesh of degree 1 or 2, sampled from higher degrees. Collective."""
        return self._converted(Grid.to_meshio, u, time_of(u, t), fields, gather)

    def to_pyvista(self, u: PETSc.Vec, t: float | None = None, fields: Fields = None, *, gather: bool = True) -> Any:
        """`to_numpy` as a pyvista.UnstructuredGrid. Collective. Raises OptionError where PyVista is missing."""
        return self._converted(Grid.to_pyvista, u, time_of(u, t), fields, gather)

    def _converted(self, convert: Callable[[Grid], Any], *given: Any) -> Any:
        grid = solution_values.grid_of(self, *given)
        with collectively(self.comm):
            return None if grid is None else convert(grid)

    @cached_property
    def collections(self) -> dict:
        """The series of files that this problem has begun, by their paths: see output.Collection."""
        return {}

    def write_trace(self, path: FilePath, u: PETSc.Vec, t: float | None = None) -> None:
        """Write a VTU file of the trace on all facets, each once, with hdg_gpu. Collective. Raises OptionError."""
        t = time_of(u, t)
        with stages.stage("output"):
            results.write_trace(self, path, u, t)

    def flux(self, label: str, u: PETSc.Vec, t: float | None = None, side: str | None = None) -> np.ndarray:
        """∫ f1·n over the facets of a named boundary [component], as Neumann conditions give it. Collective.

        side  name of a region: what flows out of its cells there, also inside the mesh, with poly_gpu where polytopes
              end; sources of the region are balanced by all of its boundary. None: facets are exterior

        It is the scheme's own, which balances the sources of a steady solution over the mesh to rounding, with hdg_gpu
        in each cell: the numerical flux, with cg_gpu the consistent one, such as reactions of supports. Of unsteady
        physics it has the rates of change at u too, for which cg_gpu solves with the mass matrix. Natural boundaries
        have what their conditions give.
        Raises MeshError for an unknown boundary or region, facets inside the mesh without a side, and a region that has
        none or both of their cells.
        """
        with collectively(self.comm):
            text("The side of a flux", side)
        t = time_of(u, t)
        with stages.stage("output"), self.reading(u, t):
            rate = rate_of(self, u, t) if self.operator.flux_takes_rate else None
            with self.access.read_state(u, rate) as (state, u_t):
                return self.operator.flux(label, state, t, side, **({} if rate is None else {"u_t": u_t}))

    def integral(
        self,
        integrand: object,
        u: PETSc.Vec,
        t: float | None = None,
        label: str | None = None,
        over: str | None = None,
        side: str | None = None,
    ) -> float | np.ndarray:
        """∫ of a pointwise function of u over the mesh, a named region of cells or a named boundary. Collective.

        integrand: C text of one expression, "u[0]*u[0] + kappa*u_x[1]", or statements that set obj[c]: what f0 may be,
        but for u_t. A float for obj[0] alone, else an array [component].
        label      region of cells
        over       boundary, as conditions name it ("boundary": all exterior facets); the text may read the outward unit
                   normal n[dim]. Its parts sum up to the whole where they do not overlap.
        side       name of a region: n, gradients, auxiliary values and, where it jumps, u are those of its cells, also
                   on facets of `over` that are inside the mesh

        With hdg_gpu u is that of the cells, on a boundary the trace, and u_x their gradient q; `flux` gives the
        numerical flux. Else both are those of the cells: essential values are then those of cg_gpu alone.
        The rules integrate as high a degree as those of `errors`. Each text is compiled once. Raises PhysicsError for
        what the text cannot be, MeshError for an unknown region or boundary and for facets inside the mesh without a
        side, OptionError for a label and a boundary, or a side without one.
        """
        return integral(self, integrand, u, time_of(u, t), label, over, side)

    def at(self, u: PETSc.Vec, points: ArrayLike, t: float | None = None) -> dict[str, np.ndarray]:
        """Values [point, component] of each field, as `cell_values` names them, at places on all ranks. Collective.

        points: rows [point, dim] of coordinates in the mesh's length unit, or one place [dim]; the same on all ranks.
        Where a field jumps the value is that of one of the cells that meet there. Raises OptionError for points outside
        of the mesh.
        """
        t = time_of(u, t)
        return self.locate([state.all() for state in derived_fields.State.of_parts(self, u, t)], points)

    def locate(self, fields: list, points: ArrayLike) -> dict[str, np.ndarray]:
        """The same of Derived fields, those of each part in a list."""
        return solution_values.values_at(self, fields, points)

    @cached_property
    def locators(self) -> list[Locator]:
        """Finds the cells of each part by place."""
        return [Locator(part) for part in self.mesh.parts]

    def plot(
        self,
        path: FilePath | None,
        u: PETSc.Vec,
        t: float | None = None,
        *,
        field: str | Sequence[str] | None = None,
        values: object = None,
        displacement: object = None,
        cell_regions: ArrayLike | None = None,
        boundaries: Mapping[str, tuple] | None = None,
        title: str = Picture.title,
        subtitle: str = Picture.subtitle,
        label: str = Picture.label,
        mesh_lines: bool = Picture.mesh_lines,
        inset: bool | tuple = Picture.inset,
        contours: int = Picture.contours,
        scale: float | None = Picture.scale,
        colour_map: str | None = Picture.colour_map,
        view: tuple[float, float] = Picture.view,
        cut: bool | None = Picture.cut,
        region_width: float | None = None,
        dpi: int = Picture.dpi,
    ) -> Any:
        """Draw a solution: in 2D shaded with contour lines, in 3D the lit outer surface (by PyVista where that is
        installed); write it as PNG. Collective.

        path          of the file; None writes none
        field         name of the field that is shown, as `cell_values` and `outputs` name them (None: the first);
                      several names make pictures side by side
        values        shown instead of a field: what `field` makes or takes, or [cell], or [cell, node] or
                      [cell, node, component] at the nodes of any degree, of this rank's cells; of several components
                      the magnitude is shown, and the label says so; at nodes of several shapes a list of such arrays
        displacement  what `field` makes or takes, or [cell, node, dim] at the nodes of any degree: the shape is drawn
                      deformed by `scale` times this
        scale         None: the largest displacement becomes a tenth of the mesh's size
        cell_regions  [cell] integers: lines are drawn between regions (None: of poly_gpu between polytopes)
        region_width  of these lines, in points (None: 1.2, 0.6 between polytopes)
        boundaries    name -> (cells [n], local facets [n]), as Mesh.boundary_facets gives: coloured, with a legend (2D)
        title, subtitle, label (of the colour bar)
        mesh_lines    draw the edges of cells
        inset         a magnified disc with the mesh (2D): True, (x, y) or (x, y, radius)
        contours      about how many contour lines (2D; 0: none)
        colour_map    name of one of matplotlib's (None: dark to light, or blue to red about 0 for values of both signs)
        view          azimuth and elevation in degrees (3D)
        cut           leave out the cells of the near half (3D; None: if the surface shows less than 5 % of the range)
        dpi           pixels per inch of a picture some 8 inches wide

        Returns matplotlib's Figure on rank 0, which a notebook shows, and None on other ranks. Raises OptionError on
        all ranks for what does not fit, a missing matplotlib, or a path that cannot be written.
        """
        t = time_of(u, t)
        with stages.stage("output"):
            return results.write_png(
                self, path, u, t, field, values,
                displacement=displacement, cell_regions=cell_regions, boundaries=boundaries, title=title,
                subtitle=subtitle, label=label, mesh_lines=mesh_lines, inset=inset, contours=contours, scale=scale,
                colour_map=colour_map, view=view, cut=cut, region_width=region_width, dpi=dpi,
            )  # fmt: skip

    def report(self, u: PETSc.Vec | None = None) -> dict:
        """Report of the run: settings, results, times; written to the file of `-fe_report` if given. Collective."""
        return results.report(self, u)

    def summary(self, report: dict | None = None, u: PETSc.Vec | None = None) -> str:
        """The report as a table for the terminal. Collective."""
        return format_report(self.report(u) if report is None else report)

    def view(self) -> str:
        """Lines that describe discretization, device and Vec mode. Collective."""
        return results.describe(self)

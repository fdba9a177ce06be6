"""Results of a problem: values in cells, files, series of files with a state each, pictures, the report."""

from __future__ import annotations

import weakref
from dataclasses import asdict
from pathlib import Path

import numpy as np

from ... import output, stages
from ...device import ranks
from ...discretizations.dofmap import element_nodes
from ...errors import OptionError, PetscHdgError, collectively
from ...mesh.labels import EXTERIOR
from ...mesh.partition.rebalance import balance
from ...output import Collection
from ...output.arrays import at_nodes
from ...petsc import lifetimes
from ...reference import CELLS, ReferenceElement, collapse, on_facets
from ...value_checks import number, plural, shown
from .. import matrices
from ..input_data import require_vec
from ..linear import direct_solvers, field_splits
from ..memory_traffic import memory_line
from .derived_fields import Derived, State
from .solution_values import cell_data, grid_of, polytope_numbers

OUTLINE_WIDTH = 0.6  # of polytopes in pictures, in points
LOPSIDED = 1.2  # from which on rebalancing pays
FEW_OF_A_GPU = 1_500_000  # unknowns of each up to which one GPU solves faster than several (docs/parallel.md)
_WRITERS: dict[str, weakref.ref] = {}  # the problem that writes a file by itself


def write_vtu(problem, path, u, t: float = 0.0, fields=None) -> None:
    """Write all fields of u and derived ones at the nodes of the highest degree, with the auxiliary fields that are
    constant in the cell as cell data. Collective."""
    blocks = []
    for state, data in zip(State.of_parts(problem, u, t), cell_data(problem), strict=True):
        with collectively(problem.comm):
            found = state.all(problem.outputs if fields is None else fields)
            values = {f.name: f.sample(state.element.nodes) for f in found}
        blocks.append((state.mesh.cell, state.element.degree, state.coordinates, values, data))
    output.write_vtu(path, problem.comm, *blocks[0], more=blocks[1:])


def write_trace(problem, path, u, t: float = 0.0) -> None:
    """Write the trace on the skeleton, each facet once. Collective. Raises OptionError where the scheme has none."""
    with problem.reading(u, t) as owned:
        cells, local, fields = problem.operator.trace_fields(owned, t)
    mesh, element = problem.mesh, fields[0].element
    points = np.empty((len(cells), element.num_basis, mesh.dim))
    for facet, places in enumerate(on_facets(mesh.cell, element.nodes)):
        points[local == facet] = element_nodes(mesh, places, cells[local == facet])
    values = {f.name: f.values for f in fields}
    rank = {"rank": np.full(len(cells), problem.comm.rank, dtype=float)}
    output.write_vtu(path, problem.comm, element.cell, element.degree, points, values, rank, facets=True)


def write_png(problem, path, u, t: float = 0.0, field=None, values=None, **settings):
    """Draw a field, the first one by default, several side by side, or other values; with poly_gpu polytopes are
    outlined. Rank 0 gets the Figure. Collective. Raises OptionError for a field that there is not."""
    states = State.of_parts(problem, u, t)
    with collectively(problem.comm):
        cell, tables = _drawn_shape(states)
        fields = [{f.name: f for f in state.all(problem.outputs)} for state in states]
        names = [field] if isinstance(field, str | None) else list(field)
        for name in names:
            if name is not None and (values is not None or name not in fields[0]):
                raise OptionError(
                    f"A picture of the field {shown(name)}{'' if values is None else ' and of other values'} was asked "
                    f"for; give one of the fields {', '.join(fields[0])}, or values."
                )
        if len(names) > 1:
            values = {name: _drawn(states, tables, [of[name] for of in fields]) for name in names}
        elif values is None:
            first = names[0] or next(iter(fields[0]))
            values = _drawn(states, tables, [of[first] for of in fields])
            if values.shape[2] > 1 and not settings["label"]:
                settings["label"] = f"magnitude of {first}"
        else:
            values = _drawn(states, tables, values)
        settings["displacement"] = _drawn(states, tables, settings["displacement"])
        points = _joined(tables, [state.coordinates for state in states])
    outlined = problem.discretization.is_polytopic and settings["cell_regions"] is None
    if outlined:
        settings["cell_regions"] = polytope_numbers(problem)
    if settings["region_width"] is None:
        settings["region_width"] = OUTLINE_WIDTH if outlined else output.Picture.region_width
    return output.plot(path, problem.comm, cell, states[0].element.degree, points, values, **settings)


def _drawn_shape(states: list[State]) -> tuple[str, list[np.ndarray]]:
    """Shape of cells as pictures take them, and matrices [node there, node] to their nodes from those of each part.

    Cells of several shapes, prisms and pyramids are squares or cubes some of whose sides have collapsed, on which the
    same functions are polynomials of the same degree in each direction.
    """
    first = states[0]
    if len(states) == 1 and first.mesh.cell in CELLS:
        return first.mesh.cell, [np.eye(first.element.num_basis)]
    cell = "quadrilateral" if first.dim == 2 else "hexahedron"
    nodes = ReferenceElement(cell, first.element.degree).nodes
    return cell, [state.element.tabulate(collapse(state.mesh.cell, nodes), 0)[0] for state in states]


def _joined(tables: list[np.ndarray], parts: list[np.ndarray]) -> np.ndarray:
    """Values [cell, node, component] of all cells as pictures take them, from those of each part."""
    return np.concatenate([table @ of for table, of in zip(tables, parts, strict=True)])


def _drawn(states: list[State], tables: list[np.ndarray], given):
    """Values [cell, node, component] of a text, a field or fields of each part; of arrays, those at nodes in a list of
    the arrays of each part where there are several; [cell] as they are. Raises OptionError."""
    if isinstance(given, str | Derived):
        return _joined(tables, [state.nodal(given) for state in states])
    parts = given if isinstance(given, list | tuple) and len(given) == len(states) else [given]
    if isinstance(parts[0], Derived):
        return _joined(tables, [state.nodal(of) for state, of in zip(states, parts, strict=True)])
    if np.ndim(parts[0]) < 2:
        return given
    if len(parts) != len(states):
        raise OptionError(
            f"Values at nodes to draw are given as {shown(given)}; give a list of arrays [cell, node], one of each "
            "shape of cells, as problem.cell_values has them."
        )
    pairs = zip(parts, states, strict=True)
    return _joined(tables, [at_nodes("values", of, each.element, each.mesh.num_cells) for of, each in pairs])


def view_kernels(problem) -> None:
    """Write each program's text to the folder of `-fe_kernel_view`, or print it (`stdout`), on rank 0. Collective."""
    where = problem.options.kernel_view
    with collectively(problem.comm):
        if problem.comm.rank != 0:
            return
        for name, kernel in problem.operator.all_kernels().items():
            if where == "stdout":
                print(kernel.spec.program_source())
            else:
                _write_text(Path(where), f"{name}.cl", kernel.spec.program_source())


def _write_text(folder: Path, name: str, text: str) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    except OSError as error:
        raise OptionError(
            f"-fe_kernel_view cannot write {folder / name} ({error.strerror}); "
            "give a folder that can be written, or stdout"
        ) from None


def report(problem, u=None) -> dict:
    """The run in numbers; written as JSON if `-fe_report FILE` is given. Collective."""
    traffic = problem.traffic
    errors = problem.errors(u) if u is not None and problem.physics.has_exact else dict.fromkeys(problem.operator.norms)
    data = {
        "backend": problem.discretization.name,
        "degree": problem.options.degree,
        "ranks": problem.comm.size,
        "cells": problem.mesh.num_cells_all,
        "dofs": problem.num_unknowns,
        "device": problem.device.name,
        "precision": problem.options.precision,
        "vec_mode": problem.vec_mode,
        "balance": balance_numbers(problem),
        "newton_iterations": problem.newton_iterations,
        "iterations": problem.linear_iterations,
        "errors": errors,
        "seconds": {name: round(value, 6) for name, value in stages.SECONDS.items()},
        "bytes": {name: dict(counts) for name, counts in problem.arrays.callbacks.items()},
        "solve_bytes": traffic and {"to_device": traffic.to_device, "to_host": traffic.to_host},
        "halo": traffic and asdict(traffic.exchanges),
        "devices": [f"{place.host}: {place.device}, {place.identity}" for place in problem.places],
        "device_memory": {"held": problem.device.memory.held, "most": problem.device.memory.most},
    }
    if problem.options.profile:
        launches = problem.device.seconds().items()
        data["kernels"] = {name: {"calls": calls, "seconds": seconds} for name, (calls, seconds) in launches}
    if problem.options.report:
        output.write_report(problem.options.report, problem.comm, data)
    return output.Report(data)


def describe(problem) -> str:
    """Discretization, device and Vec mode in a few lines. Collective."""
    disc, options = problem.discretization, problem.options
    cells = problem.mesh.num_cells_all
    names = ", ".join(f"{s.name} ({s.components} × degree {s.element.degree})" for s in disc.spaces)
    points = [plural(part.quadrature.num_points, "point") for part in disc.parts]
    kernel, variant = problem.operator.main_kernel.spec, getattr(disc, "variant", "condensed")
    shape = ", ".join(f"{k.lower()} {kernel.macros[k]}" for k in ("THREADS", "CELLS", "BATCHES") if k in kernel.macros)
    lines = [
        f"scheme: {disc.name}, physics '{problem.physics.name}', {plural(cells, f'{problem.mesh.cell} cell')} "
        f"(geometry of degree {problem.mesh.geometry.degree}) on {plural(problem.comm.size, 'rank')}",
        f"  fields: {names}; {plural(problem.num_unknowns, 'unknown')}; "
        f"quadrature of degree {disc.quadrature_degree}, {' and '.join(points)}",
        f"  kernel: {variant} ({shape or 'one thread per cell'}), {options.precision} precision, "
        f"{'linear' if problem.physics.is_linear else 'nonlinear'}",
        *([f"  '{EXTERIOR}' is {problem.mesh.left_out}"] if problem.mesh.left_out else []),
        *problem.operator.details(complete=not problem.missing_auxiliary),
        *matrices.view(problem),
        *direct_solvers.view(problem),
        *field_splits.view_saddle(problem),
        *balance_lines(problem),
        problem.device.view(),
        *(ranks.table(problem.places) if problem.comm.size > 1 else []),
        memory_line(problem),
        f"  Vec mode: {problem.vec_mode} ({problem.vec_type} vectors)",
    ]
    return "\n".join(lines)


def balance_numbers(problem) -> dict:
    """Number of ranks with cells; of these, largest cost over the mean, fewest and most cells and unknowns; part
    of cells that touch other ranks. Collective."""
    comm, mesh = problem.comm, problem.mesh
    found = comm.allgather((mesh.num_cells, problem.discretization.dofmap.num_owned, mesh.num_inner))
    cells, unknowns, inner = zip(*([rank for rank in found if rank[0]] or found), strict=True)
    return {
        "ranks": len(cells),
        "cost": balance(comm, problem.cell_costs),
        "cells": [min(cells), max(cells)],
        "unknowns": [min(unknowns), max(unknowns)],
        "outer_cells": 1 - sum(inner) / max(sum(cells), 1),
    }


def balance_lines(problem) -> list[str]:
    """The numbers in a line for `-fe_view`, where there are several ranks. Collective."""
    if problem.comm.size == 1:
        return []
    found = balance_numbers(problem)
    (few, most), (fewest, largest) = found["cells"], found["unknowns"]
    remedy = "fe.rebalance(mesh, problem.cell_costs) evens it out"
    if problem.mesh.polytopes is not None:
        remedy = "give `cost` to fe.agglomerate"
    advice = f" ({remedy})" if found["cost"] > LOPSIDED else ""
    lines = [
        f"  partition: {few} to {most} cells and {fewest} to {largest} unknowns per rank, largest cost over mean "
        f"{found['cost']:.3f}{advice}; {100 * found['outer_cells']:.0f} % of the cells touch other ranks"
    ]
    ranks, size = found["ranks"], problem.comm.size
    if ranks < size:
        lines.append(f"  cells on {ranks} of {size} ranks; -fe_mesh_ranks {size} gives cells to all")
    if problem.device.is_gpu and ranks > 1 and largest <= FEW_OF_A_GPU:
        few = f"each has less than {FEW_OF_A_GPU / 1e6:g} million unknowns"
        lines.append(f"  fewer GPUs may solve faster (-fe_mesh_ranks {ranks - 1}): {few}")
    return lines


def add_to_series(problem, path, u, t: float = 0.0, time: float | None = None, fields=None) -> None:
    """Add the state u at time t to a series, under another time if one is given. Collective. Raises OptionError.

    A series goes on where this problem has begun it, or has taken the state of a checkpoint; else it begins anew.
    """
    with collectively(problem.comm):
        time = number("The time t", t if time is None else time)
    require_vec(problem, u)
    known = problem.collections
    if str(path) not in known:
        known[str(path)] = Collection(path, problem.comm, goes_on=problem.checkpoints.restarted)
    has_arrays = known[str(path)].format is output.FORMATS[".xdmf"]

    def write(file, before: str) -> str | None:
        """The text of a state's arrays, which are written on rank 0, or none of a VTU file. Collective."""
        if not has_arrays:
            return write_vtu(problem, file, u, t, fields)
        grid = grid_of(problem, u, t, fields, gather=True)
        with collectively(problem.comm):
            return None if grid is None else output.write_arrays(file, grid, before)

    known[str(path)].add(time, write)


def write_after_step(problem, u, t: float, step: int, ends: bool, time: float | None = None) -> None:
    """Write the state after a step of a run if `-fe_output` wants it, or the run ends. Collective."""
    if problem.options.output and (ends or step % problem.options.output_interval == 0):
        claim_series(problem, problem.options.output, "series", "fe_output", OptionError)
        add_to_series(problem, problem.options.output, u, t, time)


def watch_series(problem, ts) -> None:
    """Let a TS write a series, if `-fe_output` asks for it: the first state, that after each interval, the last one."""
    found, last = weakref.ref(problem), []  # the problem may itself keep the TS; the step that was told last

    def monitor(ts, step: int, t: float, u) -> None:
        problem = found()
        if problem is not None and last != [step]:  # a TS that continues passes the present state again
            last[:] = [step]
            write_after_step(problem, u, t, step, ends=ts.getConvergedReason() > 0)

    if problem.options.output:
        ts.setMonitor(monitor)


def claim_series(problem, path, what: str, option: str, kind: type[PetscHdgError]) -> None:
    """Raise an error of a kind if two problems would write the file of an option by turns. Collective.

    what: the file, in words;  option: its name without prefix.
    """
    writer = _WRITERS.get(str(path))
    if writer is not None and writer() is not problem:
        lifetimes.destroy(problem.comm)  # ends a problem that was given up, which Python may hold in cycles
    with collectively(problem.comm):
        if writer is not None and writer() not in (None, problem):
            raise kind(
                f"Two problems of this run would write the {what} {path} by turns; give them prefixes, and options "
                f"-PREFIX_{option} of their own."
            )
    _WRITERS[str(path)] = weakref.ref(problem)

"""Kernel specs of integrals over cells and boundaries: norms of errors, and what users integrate.

Their rules integrate EXTRA_DEGREE more than those of the residual.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from ..codegen import KernelSpec
from ..physics.objective import Objective
from ..reference import facet_quadrature, symmetric_quadrature

EXTRA_DEGREE = 4


def error_rule(disc):
    """The rule of errors and integrals, which treats all corners of a cell alike."""
    return symmetric_quadrature(disc.mesh.cell, disc.quadrature_degree + EXTRA_DEGREE)


def _macros(name: str, rows: int, rule, reads_auxiliary: bool = False) -> dict[str, int | str]:
    return {"INTEGRAL": name, "NOBJ": rows, "READS_AUX": int(reads_auxiliary), "NQ": rule.num_points}


# Schemes whose unknowns are those of the cells --------------------------------------------------------------------


def cell_error_spec(disc) -> KernelSpec:
    """Spec of `cg_error`: squares of errors of u, then of its gradient [2, component]."""
    rule = error_rule(disc)
    macros = _macros("cg_error", 2 * disc.physics.num_components, rule)
    return _of_cells(disc, macros, rule, "error_squares.clh")


def cell_integral_spec(disc, objective: Objective) -> KernelSpec:
    """Spec of `cg_integral` of a user's function, or of `cg_boundary_integral`."""
    if objective.on_boundary:
        tables = disc.facet_tables(*facet_quadrature(disc.mesh.cell, disc.quadrature_degree + EXTRA_DEGREE))
        name, rows = "cg_boundary_integral", objective.components
        own = {"rows": rows, "NOBJ": rows, "TIME": 0, "INTEGRAL": name}  # no u_t is read
        return replace(disc.facet_spec(name, ("boundary_integral.cl",), tables, **own), physics=objective.text)
    rule = error_rule(disc)
    macros = _macros("cg_integral", objective.components, rule, objective.reads_auxiliary)
    return replace(_of_cells(disc, macros, rule), physics=objective.text)


def _of_cells(disc, macros: dict, rule, *sources: str) -> KernelSpec:
    files = disc._sources("integral.cl")
    files = (*files[:-1], *sources, files[-1])
    tables, rows = disc._cell_tables(rule), macros["NOBJ"]
    macros, size = {**disc._macros(), **macros}, disc.limits.group(32)
    return disc._spec(macros["INTEGRAL"], files, macros, tables, size, rows=rows)


# Condensed schemes ------------------------------------------------------------------------------------------------


def condensed_error_spec(specs, with_star: bool = True) -> KernelSpec:
    """Spec of `hdg_error`: squares of errors of u, of its gradient, and of u* [2 or 3, component]."""
    disc = specs.disc
    rule = error_rule(disc)
    star = specs.star_element.tabulate(rule.points, 0)[0] if with_star else np.zeros((0, 0))
    macros = _macros("hdg_error", (2 + with_star) * disc.components, rule)
    return _of_condensed(specs, macros, rule, star, specs.tables(rule.points), "error_squares.clh")


def condensed_integral_spec(specs, objective: Objective) -> KernelSpec:
    """Spec of `hdg_integral` of a user's function, or of `hdg_boundary_integral`."""
    if objective.on_boundary:
        return _over_facets(specs, objective)
    rule = error_rule(specs.disc)
    macros = _macros("hdg_integral", objective.components, rule, objective.reads_auxiliary)
    tables = specs.disc.cell_tables(rule)
    return replace(_of_condensed(specs, macros, rule, np.zeros((0, 0)), tables), physics=objective.text)


def _over_facets(specs, objective: Objective) -> KernelSpec:
    disc, degree, name = specs.disc, specs.disc.quadrature_degree + EXTRA_DEGREE, "hdg_boundary_integral"
    tables = {"AUX_START": disc.auxiliary.starts, **disc.facet_point_tables(degree)}
    tables["FACET_OP"] = disc.facet_operator_table(degree)
    macros = {"INTEGRAL": name, "NOBJ": objective.components, "READS_AUX": int(objective.reads_auxiliary)}
    macros["NQF"] = tables["FACET_WEIGHTS"].shape[1]
    files = ("facet_normal.clh", "hdg_facet.clh", "boundary_integral.cl")
    return replace(specs.spec(name, macros, tables, files=files), physics=objective.text)


def _of_condensed(specs, macros: dict, rule, star: np.ndarray, tables: dict, *sources: str) -> KernelSpec:
    tables = {**tables, "STAR": star, "WEIGHTS": rule.weights}
    macros = {**macros, "NSTAR": star.shape[1]}
    return specs.spec(macros["INTEGRAL"], macros, tables, files=(*sources, "integral.cl"))

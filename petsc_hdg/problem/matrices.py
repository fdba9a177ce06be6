"""The callbacks of a problem, with the matrices that they fill and multiply by.

Products by stored entries stand in the place of kernels where a CPU does them sooner.
"""

from __future__ import annotations

import weakref
from functools import partial

import numpy as np
from petsc4py import PETSc

from .. import operators, stages
from ..device import VecAccess
from ..discretizations.condensed.hdg_checks import has_point_flux
from ..discretizations.symmetry import derivative_kind
from ..errors import DeviceError, collectively
from ..operators.check import check_kernels
from . import cells_in_time, solution_checks
from .linear import agglomerate_levels, field_splits, kept_levels, null_space, two_level

_REASONS = {
    "symmetric": "symmetric",
    "diffusive": "symmetric but for coefficients of gradients that follow the state",
    "coupled": "without convection",
    "convective": "of little convection in a cell",
    "flow": "that of a conservation law",
    "other": "not symmetric",
}
# Time of a product by kernels on one core over that by entries, by scheme and shape of the cells, of degree 1, 2 and 3
# (benchmarks/stored_products.py).
TIMES = {
    "cg_gpu": {
        "triangle": (14.0, 5.0, 2.5),
        "quadrilateral": (18.0, 4.5),
        "tetrahedron": (30.0, 7.0),
        "hexahedron": (11.0,),
    },
    "sipg_gpu": {"triangle": (18.0, 10.0, 5.3), "quadrilateral": (3.7,), "tetrahedron": (25.0, 8.0)},
}
LEAST = 3.0  # of that over the cores and the components, for entries take the time of 5 to 40 products
FEW = 20_000  # unknowns up to which other parts of a solve take longer
MEMORY = 0.1  # part of the memory
BYTES = 24  # of an entry of an element matrix while a matrix is made


def callbacks(problem) -> operators.Callbacks:
    """Residual and Jacobian of a problem whose data are complete; kernels are checked before. Collective."""
    if problem.options.check_kernels:
        with stages.stage("compile"), collectively(problem.comm):
            check_kernels(problem.operator)
    operator, sizes = problem.operator, (problem.discretization.dofmap.num_owned, problem.num_unknowns)
    with stages.stage("discretize"):
        conforming = two_level.conforming_subspace(problem)
        if conforming is None and problem.pmat == "conforming":
            problem.pmat = "aij"
            with collectively(problem.comm):
                operator.compile(matrices=True)
        assembled = assembled_matrix(problem, sizes)
        levels = agglomerate_levels.agglomerate_levels(problem)
    jacobian, first = _jacobian(problem, sizes, assembled), None
    if problem.options.sipg_check_coercivity and problem.discretization.has_penalties:
        first = partial(solution_checks.check_coercivity, weakref.proxy(problem))
    if problem.has_cell_states:
        calls = cells_in_time.callbacks(problem, jacobian, assembled, conforming)
    else:
        rough = _rough(problem, sizes, conforming)
        calls = operators.Callbacks(operator, problem.access, jacobian, assembled, conforming, first, levels, rough)
    eps = float(np.finfo(problem.arrays.real).eps)
    if problem.stores:
        calls.stored = jacobian.getPythonContext().stored
    calls.null_space = null_space.NullSpace(problem.discretization, eps, problem.nullspace)
    calls.kept_levels = kept_levels.KeptLevels(problem)
    calls.set_up = partial(field_splits.split, weakref.proxy(problem))
    return calls


def derivative(problem) -> str:
    """Return `derivative_kind` of the physics, or `flow` of conservation laws by traces: what settles the
    preconditioner of other schemes than polytopic."""
    scheme, physics = problem.scheme, problem.physics
    if scheme.is_polytopic:
        return "other"
    is_flow = scheme.has_jumps and (physics.stabilizes_by_state or has_point_flux(physics, problem.options))
    return "flow" if is_flow else derivative_kind(physics, problem.mesh.dim)


def view(problem) -> list[str]:
    """Lines for -fe_view: products by stored entries; the matrix of the preconditioner of a trace system, and the
    reason, where the user leaves that open."""
    if problem.stores:
        return ["  products: by stored entries, which take a CPU less time than kernels"]
    if not problem.discretization.has_jumps or problem.options.pmat != "auto":
        return []
    kind, levels = problem.derivative, problem.pmat == "conforming"
    if kind == "convective" and "traces" in problem.told:
        return ["  preconditioner: aij, because convection in a cell is large"]
    as_usual = levels == (kind not in ("flow", "other"))
    why = f", because the derivative of the physics is {_REASONS[kind]}" if as_usual else ""
    return [f"  preconditioner: {problem.pmat}{why}"]


def assembled_matrix(problem, sizes) -> operators.AssembledMatrix | None:
    """The matrix of all unknowns, or of the trace, where one is assembled."""
    if problem.assembles or (problem.is_condensed and problem.operator.format is None):
        return _matrix(problem, sizes)
    return None


def _matrix(problem, sizes) -> operators.AssembledMatrix:
    assembled = operators.AssembledMatrix(problem.operator, sizes, problem.petsc_comm, problem.vec_type)
    if not problem.discretization.is_polytopic:
        null_space.set_near_nullspace(problem.discretization, assembled.mat)
    return assembled


def _jacobian(problem, sizes, assembled) -> PETSc.Mat:
    """The matrix of products: a shell, or the assembled one where that is all there is, or cheaper."""
    if assembled is not None and problem.discretization.is_polytopic:
        return assembled.mat
    if not problem.is_condensed:
        stored = (assembled or _matrix(problem, sizes)) if problem.stores else None
        context = operators.JacobianContext(problem.operator, problem.access, assembled, stored)
    elif problem.operator.format is not None:
        context = operators.TraceMatrix(problem.operator, problem.access, assembled)
    else:
        return assembled.mat
    return context.as_mat(sizes, problem.petsc_comm, problem.vec_type)


def _rough(problem, sizes, conforming) -> PETSc.Mat | None:
    """The matrix in single precision for preconditioners: products that the levels of a conforming subspace smooth."""
    if conforming is None or not two_level.in_single_precision(problem):
        return None
    try:
        with stages.stage("compile"), collectively(problem.comm):  # as the operator itself is made
            copy = problem.operator.in_precision("single")
            copy.compile()
    except DeviceError:  # it is not needed: levels are in double precision where there is no room for it
        return None
    context = operators.JacobianContext(copy, VecAccess(copy.arrays))
    return context.as_mat(sizes, problem.petsc_comm, problem.vec_type)


def suit_stored(problem) -> bool:
    """Return True if products of Krylov methods and smoothers take stored entries by default: of many unknowns, unless
    matrices follow the time, a kernel is named or kernels for constant coefficients do the products. Collective."""
    options, disc, device = problem.options, problem.discretization, problem.device
    named = options.products == "kernels" or (options.kernel, options.sipg_kernel) != ("auto", "auto")
    follows_time = problem.physics.uses_time_derivative and not disc.is_steady
    times = TIMES.get(options.backend, {}).get(problem.mesh.cell, ())[options.degree - 1 : options.degree]
    is_large = problem.num_unknowns > FEW and options.precision == "double"
    if named or follows_time or problem.is_condensed or not (times and is_large):
        return False
    cores = device.compute_units * problem.physics.num_components
    entries = disc.mesh.num_cells * disc.num_dofs**2 * (1 + disc.has_penalties * disc.num_facets_of_cell)
    here = not device.is_gpu and getattr(problem.operator, "fast", None) is None
    here = here and times[0] >= LEAST * cores and entries * BYTES <= MEMORY * device.memory_bytes
    return problem.comm.allreduce(int(not here)) == 0

"""First use of a kernel of polytopic DG on a device: compare it with numpy on two base cells and two polytopes."""

from __future__ import annotations

from contextlib import nullcontext

import numpy as np

from ...discretizations.dofmap import element_nodes
from ...discretizations.poly.legendre import tabulate
from ..check import compare, fetched, random_values, sampled
from ..sipg.check import check_sipg


def check_poly(operator) -> None:
    """Check the kernels of a PolytopicOperator that have not been checked on this device yet. Not collective.

    Raises DeviceError naming the kernel and the difference.
    """
    compare(operator, {"poly_expand": _check_expand, "poly_restrict": _check_restrict}, nullcontext)
    check_sipg(operator.fine)


def _check_expand(operator) -> tuple[np.ndarray, np.ndarray]:
    """Values [cell, node, component] of a random function at the nodes of the sample's cells."""
    disc, arrays = operator.discretization, operator.arrays
    values = random_values(5, max(1, disc.dofmap.num_owned))
    expanded = operator.expand(arrays.to_device(values, "kernel check"))
    found = fetched(operator, expanded, disc.fine.dofmap.num_owned)
    cells = sampled(disc.mesh.num_cells)
    expected = [_basis(disc, cell) @ _coefficients(disc, values, cell) for cell in cells]
    return _by_node(disc, found[disc.fine.dofmap.cell_dofs[cells]]), np.array(expected)


def _check_restrict(operator) -> tuple[np.ndarray, np.ndarray]:
    """Sums of random nodal values against the functions of the sample's polytopes."""
    disc, arrays = operator.discretization, operator.arrays
    values = random_values(6, max(1, disc.fine.dofmap.num_owned))
    out = arrays.zeros(max(1, disc.dofmap.num_owned))
    operator.restrict(arrays.to_device(values, "kernel check"), out)
    found = fetched(operator, out, disc.dofmap.num_owned)
    first, (start, cells) = disc.numbering.first, disc.polytopes.cells
    got, expected = [], []
    for polytope in sampled(disc.polytopes.count):
        own = cells[start[polytope] : start[polytope + 1]]
        rows = _by_node(disc, values[disc.fine.dofmap.cell_dofs[own]])
        sums = sum(_basis(disc, cell).T @ row for cell, row in zip(own, rows, strict=True))
        got.append(found[first[polytope] : first[polytope + 1]])
        expected.append(sums.T.ravel())
    return np.concatenate(got), np.concatenate(expected)


def _by_node(disc, values: np.ndarray) -> np.ndarray:
    """Values [cell, dof] of base cells, field by field in the numbering of cells, as [cell, node, component]."""
    fields = [values[:, f.first_dof : f.first_dof + f.num_dofs] for f in disc.fine.spaces]
    shapes = [(len(values), -1, f.components) for f in disc.fine.spaces]
    return np.concatenate([part.reshape(shape) for part, shape in zip(fields, shapes, strict=True)], axis=2)


def _basis(disc, cell: int) -> np.ndarray:
    """Functions [node, function] of a base cell's polytope at the nodes of its element."""
    polytope = disc.polytopes.of_cell[cell]
    x = element_nodes(disc.mesh, disc.fine.element.nodes, [cell])
    values = tabulate(disc.exponents, disc.box_coordinates([polytope], x))[0][0]
    return values[:, : disc.numbering.sizes[polytope]]


def _coefficients(disc, values: np.ndarray, cell: int) -> np.ndarray:
    """Values of the unknowns [function, component] of a base cell's polytope."""
    polytope, first = disc.polytopes.of_cell[cell], disc.numbering.first
    return values[first[polytope] : first[polytope + 1]].reshape(disc.physics.num_components, -1).T

"""Polytopes for the tests: random agglomerates, and operators of poly_gpu whose columns can be looked at."""

from __future__ import annotations

import numpy as np

from petsc_hdg.device import Arrays, Device
from petsc_hdg.discretizations import PolytopicDG
from petsc_hdg.discretizations.transposition import DeviceLimits
from petsc_hdg.mesh.polytopes import Polytopes
from petsc_hdg.operators import PolytopicOperator
from petsc_hdg.options import Options

_DEVICES: list = []


def grown(mesh, count: int, seed: int, degrees=None) -> Polytopes:
    """Connected polytopes that grow at random from `count` random cells of a mesh on one rank, all of it.

    degrees: numbers of which each polytope draws one, the largest at least once; or None.
    """
    random = np.random.default_rng(seed)
    facets = mesh.topology.entity[mesh.dim - 1][: mesh.num_cells]
    near: list[list[int]] = [[] for _ in range(mesh.num_cells)]
    order = np.argsort(facets.ravel(), kind="stable")
    twice = np.flatnonzero(np.diff(facets.ravel()[order]) == 0)
    for a, b in zip(order[twice] // facets.shape[1], order[twice + 1] // facets.shape[1], strict=True):
        near[a].append(int(b))
        near[b].append(int(a))
    of_cell = np.full(mesh.num_cells, -1, np.int32)
    seeds = random.permutation(mesh.num_cells)[:count]
    of_cell[seeds] = np.arange(count)
    border = [(int(c), n) for c in seeds for n in near[c]]
    while border:
        cell, behind = border.pop(random.integers(len(border)))
        if of_cell[behind] < 0:
            of_cell[behind] = of_cell[cell]
            border += [(behind, n) for n in near[behind]]
    assert (of_cell >= 0).all() and len(np.unique(of_cell)) == count
    drawn = None
    if degrees is not None:
        drawn = random.choice(degrees, count)
        drawn[random.integers(count)] = max(degrees)
    return Polytopes(of_cell, count, drawn)


def polytopic(mesh, polytopes: Polytopes, physics, degree: int, **settings) -> PolytopicOperator:
    """The operator of poly_gpu on a mesh of one rank, which gets the polytopes."""
    mesh.polytopes = polytopes
    if not _DEVICES:
        _DEVICES.append(Device.select("any", mesh.comm))
    device = _DEVICES[0]
    options = Options(backend="poly_gpu", degree=degree, check_kernels=False, **settings)
    limits = DeviceLimits.of(device)
    return PolytopicOperator(PolytopicDG(mesh, physics, options, limits), Arrays(device, "double"))


def columns(operator: PolytopicOperator) -> np.ndarray:
    """The matrix [row, column] of a linear physics through the action."""
    count = operator.dofmap.num_owned
    operator.linearize(operator.arrays.zeros(count))
    found = np.empty((count, count))
    for k in range(count):
        found[:, k] = applied(operator, operator.action, np.eye(count)[k])
    return found


def constant(operator: PolytopicOperator) -> np.ndarray:
    """The residual [row] at zero: minus the right-hand side."""
    return applied(operator, operator.residual, np.zeros(operator.dofmap.num_owned))


def applied(operator: PolytopicOperator, function, values: np.ndarray) -> np.ndarray:
    """function(vector, out) [row]: `operator.residual` or `.action`."""
    out = operator.arrays.zeros(len(values))
    function(operator.arrays.to_device(values, "vector"), out)
    return operator.arrays.to_host(out, len(values), name="result").astype(float)


def assembled(operator: PolytopicOperator) -> np.ndarray:
    """The assembled matrix [row, column], at the state of the last `linearize`; triplets are summed."""
    count = operator.dofmap.num_owned
    out = np.zeros((count, count))
    rows, columns = operator.discretization.matrix_numbers()
    np.add.at(out, (rows, columns), operator.matrices().astype(float))
    return out

"""Anisotropy of diffusion in the cells: of stretched cells, or of tensors that no mesh follows."""

from __future__ import annotations

import math

import numpy as np

from ...discretizations.symmetry import NEARLY
from ...options import of_one_degree
from . import cell_samples

# The least anisotropy that makes iterations slow in the plane: scheme, least degree -> ratio (benchmarks/defaults.py).
SLOW = {
    "cg_gpu": {1: 300.0},
    "hdg_gpu": {0: 1000.0},
    "sipg_gpu": {2: 1000.0, 4: 100.0},
    "poly_gpu": {1: 1000.0},
}
MOST_OF_SQUARES = {"hdg_gpu": 2}  # degree up to which that holds for quadrilaterals
# The least anisotropy at which levels with incomplete factors take less time than levels without a matrix, of degree 1,
# 2 and 3: scheme -> shape of the cells (benchmarks/stretched_cells.py). Set-up counts: that of hexahedra is long.
NEVER = math.inf
FACTORS = {
    "cg_gpu": {
        "triangle": (NEVER, 100.0, 100.0),
        "quadrilateral": (NEVER, 100.0, 100.0),
        "tetrahedron": (NEVER, 200.0, 200.0),
        "hexahedron": (NEVER, 600.0, NEVER),
    },
    "hdg_gpu": {
        "triangle": (30.0, 30.0, 30.0),
        "quadrilateral": (60.0, 60.0, 60.0),
        "tetrahedron": (30.0, 30.0, 30.0),
        "hexahedron": (300.0, 3000.0, NEVER),
    },
    "sipg_gpu": {
        "triangle": (30.0, 30.0, 30.0),
        "quadrilateral": (100.0, 100.0, 1000.0),
        "tetrahedron": (30.0, 30.0, 30.0),
        "hexahedron": (300.0, NEVER, NEVER),
    },
}
ON_GPUS = 1000.0  # the same of aggregates of the matrix on one GPU, where strong couplings are along edges
MOST_ON_GPUS = {"cg_gpu": 32, "hdg_gpu": 16, "sipg_gpu": 32}  # unknowns of a cell there: more make dense aggregates
MOST_OF_SEVERAL = 100_000  # cells times components, of several components in the plane
ACROSS = 10.0  # the largest coupling of the directions of a cell's edges that counts as along them


def typical(problem) -> float:
    """Return the median over cells of the largest anisotropy of a component. Collective."""
    return cell_samples.median(problem, [_of_cell(nodes, *blocks) for nodes, blocks in cell_samples.blocks(problem)])


def in_words(ratio: float) -> str:
    """Return a typical anisotropy as a reason."""
    return f"diffusion in the cells is about {ratio:.2g} times as strong along one direction as along another"


def wants_factors(problem) -> bool:
    """Return True if levels of the matrix suit a problem better than levels without one, whose smoothers are slow where
    anisotropy is strong, as bulk stiffness makes it too: of low degree; of several components in the plane, on CPUs,
    up to a number of cells. Collective."""
    options, mesh, parts = problem.options, problem.mesh, problem.physics.num_components
    least = FACTORS.get(options.backend, {}).get(mesh.cell, ())[max(options.degree, 1) - 1 :][:1]
    suits = parts == 1 or (mesh.dim == 2 and mesh.num_cells_all * parts <= MOST_OF_SEVERAL)
    suits = suits and of_one_degree(problem.physics) and problem.derivative in NEARLY
    if not (least and suits):
        return False
    if not problem.device.has_solvers:
        return typical(problem) >= least[0]
    is_sparse = least[0] < NEVER and problem.discretization.matrix_layout[0] <= MOST_ON_GPUS[options.backend]
    suits = parts == 1 and problem.comm.size == 1 and is_sparse and options.precision == "double"
    suits = suits and not problem.physics.uses_time_derivative
    return suits and typical(problem) >= ON_GPUS and follows_edges(problem)


def follows_edges(problem) -> bool:
    """Return True if strong couplings are along edges of the cells, as stretching makes them. Collective."""
    mesh = problem.mesh
    if mesh.shape.is_simplex:
        corners = [np.roll(np.arange(mesh.dim + 1), turn) for turn in range(mesh.dim + 1)]
    else:
        corners = [np.array([0, *(2**k for k in range(mesh.dim))])]  # the first one and those that an edge joins to it
    samples = cell_samples.blocks(problem)
    across = [min(_across_edges(nodes[c], blocks[3][0, 0]) for c in corners) for nodes, blocks in samples]
    return cell_samples.median(problem, across) <= ACROSS


def _across_edges(corners: np.ndarray, diffusion: np.ndarray) -> float:
    """Return how strongly diffusion [dim, dim] couples the directions of the edges from the first of some corners
    [dim + 1, dim] to the others: the condition number of its matrix in them, scaled to a diagonal of ones."""
    inverse = np.linalg.pinv((corners[1:] - corners[0]).T)
    along = inverse @ diffusion @ inverse.T
    scale = np.sqrt(np.maximum(np.diag(along), np.finfo(float).tiny))
    values = np.linalg.eigvalsh((along + along.T) / (2 * np.outer(scale, scale)))
    return float(values[-1] / values[0]) if values[0] > 0 else math.inf


def is_slow(problem, ratio: float) -> bool:
    """Return True if iterations are slow for a typical anisotropy."""
    scheme, degree, mesh = problem.options.backend, problem.options.degree, problem.mesh
    if mesh.dim != 2 or not (mesh.shape.is_simplex or degree <= MOST_OF_SQUARES.get(scheme, degree)):
        return False
    return ratio >= min((least for known, least in SLOW[scheme].items() if degree >= known), default=math.inf)


def _of_cell(nodes: np.ndarray, g0: np.ndarray, g1: np.ndarray, g2: np.ndarray, g3: np.ndarray) -> float:
    """Return the largest ratio of eigenvalues of J⁻¹ K J⁻ᵀ of a component, K its diffusion.

    J maps a cube to the ellipsoid of the cell's nodes [node, dim]. Where reaction or convection of the component,
    measured likewise, is larger than diffusion in the weak direction, that counts in its place.
    """
    _, sizes, axes = np.linalg.svd(nodes - nodes.mean(axis=0), full_matrices=False)
    inverse, largest = axes.T / (sizes / len(nodes) ** 0.5), 1.0
    for c in range(len(g3)):
        values = np.linalg.eigvalsh(inverse.T @ (g3[c, c] + g3[c, c].T) @ inverse / 2)
        rest = abs(g0[c, c]) + np.linalg.norm((g1[c, c] - g2[c, c]) @ inverse)
        if values[0] > 0:
            largest = max(largest, (values[-1] + rest) / (values[0] + rest))
    return float(largest)

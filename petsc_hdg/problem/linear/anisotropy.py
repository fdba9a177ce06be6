"""Anisotropy of diffusion in the cells: of stretched cells, or of tensors that no mesh follows."""

from __future__ import annotations

import math

import numpy as np

from ...discretizations.symmetry import NEARLY
from . import cell_samples

# The least anisotropy that makes iterations slow in the plane: scheme, least degree -> ratio (benchmarks/defaults.py).
SLOW = {
    "cg_gpu": {1: 300.0},
    "hdg_gpu": {0: 1000.0},
    "sipg_gpu": {2: 1000.0, 4: 100.0},
    "poly_gpu": {1: 1000.0},
}
MOST_OF_SQUARES = {"hdg_gpu": 2}  # degree up to which that holds for quadrilaterals
# The least ratio along edges at which multigrid on the matrix takes less time than two levels: scheme -> on
# quadrilaterals, on triangles; and the highest degree.
MATRICES = {"cg_gpu": (300.0, 300.0), "hdg_gpu": (500.0, 500.0), "sipg_gpu": (300.0, 50.0)}
MOST_OF_MATRICES = 3


def typical(problem) -> float:
    """Return the median over cells of the largest anisotropy of a component. Collective."""
    return cell_samples.median(problem, [_of_cell(nodes, *blocks) for nodes, blocks in cell_samples.blocks(problem)])


def wants_matrix(problem) -> bool:
    """Return True if algebraic multigrid on the matrix suits the stretched cells of a scalar physics in the plane
    better than two levels, whose smoother is slow there: on one rank of a CPU, which assembles fast, of low degree.
    Collective."""
    options, mesh, scheme = problem.options, problem.mesh, problem.options.backend
    suits = scheme in MATRICES and mesh.dim == 2 and problem.comm.size == 1 and not problem.device.is_gpu
    suits = suits and options.degree <= MOST_OF_MATRICES and problem.derivative in NEARLY
    if not suits or problem.physics.num_components > 1:
        return False
    corners = ((0, 1, 2), (1, 2, 0), (2, 0, 1)) if mesh.shape.is_simplex else ((0, 1, 2),)
    samples = cell_samples.blocks(problem)
    ratios = [max(_of_edges(nodes[list(c)], blocks[3][0, 0]) for c in corners) for nodes, blocks in samples]
    return cell_samples.median(problem, ratios) >= MATRICES[scheme][mesh.shape.is_simplex]


def _of_edges(corners: np.ndarray, diffusion: np.ndarray) -> float:
    """Return the ratio of diffusion [dim, dim] along the edges from the first of three corners [corner, dim] to the
    others, in units of their lengths."""
    inverse = np.linalg.pinv((corners[1:] - corners[0]).T)
    along = np.diag(inverse @ diffusion @ inverse.T)
    return float(along.max() / along.min()) if along.min() > 0 else 1.0


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

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
# The least ratio along edges at which multigrid on the matrix takes less time than two levels, and the highest degree:
# scheme -> shape of the cells. Tensors turned from all edges by 10° or more seldom have it, and two levels suit them.
# Matrices of hexahedra with jumps take longer than all iterations.
MATRICES = {
    "cg_gpu": {
        "quadrilateral": (300.0, 3),
        "triangle": (300.0, 3),
        "hexahedron": (3000.0, 2),
        "tetrahedron": (100.0, 3),
    },
    "hdg_gpu": {
        "quadrilateral": (500.0, 3),
        "triangle": (500.0, 3),
        "hexahedron": (1000.0, 2),
        "tetrahedron": (300.0, 3),
    },
    "sipg_gpu": {"quadrilateral": (300.0, 3), "triangle": (50.0, 3), "tetrahedron": (50.0, 3)},
}


def typical(problem) -> float:
    """Return the median over cells of the largest anisotropy of a component. Collective."""
    return cell_samples.median(problem, [_of_cell(nodes, *blocks) for nodes, blocks in cell_samples.blocks(problem)])


def wants_matrix(problem) -> bool:
    """Return True if algebraic multigrid on the matrix suits the stretched cells of a scalar physics better than two
    levels, whose smoother is slow there: on CPUs, which assemble fast, of low degree. On several ranks the ratio has to
    be larger where each has all of that multigrid, and the iterations of two levels grow with its root. Collective."""
    options, mesh = problem.options, problem.mesh
    least, highest = MATRICES.get(options.backend, {}).get(mesh.cell, (math.inf, -1))
    suits = not problem.device.is_gpu and problem.physics.num_components == 1
    if not suits or options.degree > highest or problem.derivative not in NEARLY:
        return False
    if mesh.shape.is_simplex:
        corners = [np.roll(np.arange(mesh.dim + 1), turn) for turn in range(mesh.dim + 1)]
    else:
        corners = [np.array([0, *(2**k for k in range(mesh.dim))])]  # the first one and those that an edge joins to it
    samples = cell_samples.blocks(problem)
    ratios = [max(_of_edges(nodes[c], blocks[3][0, 0]) for c in corners) for nodes, blocks in samples]
    return cell_samples.median(problem, ratios) >= least * (1 if suits_factors(problem) else problem.comm.size**2)


def suits_factors(problem) -> bool:
    """Return True if multigrid on the matrix of stretched cells is PETSc's GAMG with incomplete factors as smoothers:
    for traces in space, where petsc_hdg.AMG takes up to eleven times the iterations (benchmarks/stretched_cells.py)."""
    return problem.options.backend == "hdg_gpu" and problem.mesh.dim == 3


def _of_edges(corners: np.ndarray, diffusion: np.ndarray) -> float:
    """Return the ratio of diffusion [dim, dim] along the edges from the first of some corners [dim + 1, dim] to the
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

"""What a physics asks of solvers, by its derivatives in some cells, before there is a matrix.

Measures are the size of convection, the anisotropy of diffusion (stretched cells, tensors that no mesh follows), the
resistance to changes of volume, waves that the cells are too large for, and polytopes on both sides of an interface
between materials, which cost the order of convergence.
"""

from __future__ import annotations

import math

import numpy as np
from mpi4py.MPI import MAX

from ...discretizations.symmetry import NEARLY, OF_DEGREES, constraints
from ...errors import warn_user
from ...mesh.order import samples
from ...mesh.whole_mesh import centroids
from ...options import of_one_degree

SAMPLES = 32  # cells of each rank that are looked at
LARGE_PECLET = 10.0  # cell Péclet number from which on convection is told
# The least anisotropy that makes iterations slow in the plane: scheme, least degree -> ratio (benchmarks/defaults.py).
SLOW_ALONG = {
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
# Of each degree the least ratio of bulk to shear stiffness of a warning (Poisson's ratios 0.49 and 0.4995), and what
# may happen: second degree loses one of its three orders.
LOCKING = {1: (40.0, "much too small (locking)"), 2: (1000.0, "less accurate by an order (locking)")}
# The least ratio that makes iterations slow on triangles, on quadrilaterals and in space (benchmarks/defaults.py).
SLOW_RATIO = {
    "cg_gpu": (40.0, 40.0, 1000.0),
    "hdg_gpu": (40.0, 1000.0, 1000.0),
    "sipg_gpu": (40.0, 40.0, 1000.0),
    "poly_gpu": (40.0, 40.0, math.inf),
}
HARD_RATIO = 1000.0  # the least ratio that makes them slow with incomplete factors, too
MOST_POLYTOPES, MOST_CELLS = 128, 8  # of each rank, and of each of these, that are looked at
LARGE_JUMP = 2.0  # ratio of the diffusion of two of these cells from which on it is told
LARGE_POLLUTION = {"hdg_gpu": 10.0}  # least pollution number of a warning; that of the other schemes is 1


def sampled_blocks(problem) -> list[tuple]:
    """Nodes [node, dim] of some of this rank's cells, and the physics' g0 … g3 there at zero, without time; none while
    auxiliary fields have no values, or where one is not finite. They are kept until data that matrices read change."""
    if problem.missing_auxiliary:
        return []
    if problem.samples is None:
        with np.errstate(all="ignore"):  # a physics may be singular at zero
            found = list(_evaluated(problem))
        problem.samples = [one for one in found if all(np.isfinite(block).all() for block in one[1])]
    return problem.samples


def _evaluated(problem):
    mesh, physics = problem.mesh, problem.physics
    interpreter, dim = physics.interpreter(mesh.dim), mesh.dim
    flat = np.zeros((physics.num_components, dim))
    for cell in samples(mesh.num_cells, SAMPLES):
        part = mesh.parts[mesh.part_of(cell)]
        nodes = mesh.geometry.nodes[part.geometry.cell_nodes[cell - part.first]]
        rest = sampled_inputs(problem, cell, nodes.mean(axis=0))
        yield nodes, interpreter.g_blocks(flat[:, 0], flat[:, 0], flat, *rest)


def sampled_inputs(problem, cell: int, x: np.ndarray) -> tuple:
    """Arguments of `Interpreter.g_blocks` after the state, at x [dim] in a cell: a, a_x (zero), t, the shift of u_t, x,
    constants."""
    number, count = problem.mesh.part_of(cell), problem.physics.num_auxiliary
    operator, cell = problem.operator.parts[number], cell - problem.mesh.parts[number].first
    starts = operator.discretization.auxiliary.starts[: count + 1]  # without rates of hdg_gpu
    a = np.array([operator.aux_rows[i:j, cell].mean() for i, j in zip(starts[:-1], starts[1:], strict=True)])
    return a, np.zeros((count, len(x))), 0.0, 0.0, x, operator.constants


def median(problem, values: list[float]) -> float:
    """Median of the values of all ranks' cells, 0 of none. Collective."""
    found = np.concatenate(problem.comm.allgather(np.array(values)))
    return float(np.median(found)) if len(found) else 0.0


def large_peclet(problem) -> float:
    """The median cell Péclet number of a steady physics by cg_gpu where it is LARGE_PECLET, else 0. Collective."""
    if problem.options.backend != "cg_gpu" or problem.physics.uses_time_derivative:
        return 0.0
    typical = _peclet(problem)
    return typical if typical >= LARGE_PECLET else 0.0


def is_large_on_traces(problem) -> bool:
    """Return True if incomplete LU along the flow suits a trace better than two levels, which are there by default.
    Collective."""
    is_open = problem.pmat == "conforming" and problem.options.pmat == "auto" and problem.derivative == "convective"
    is_large = is_open and problem.is_condensed and _peclet(problem) >= LARGE_PECLET
    if is_large:
        problem.told.add("traces")
    return is_large


def _peclet(problem) -> float:
    """The median cell Péclet number |b| h / (2 k κ) of a physics. Collective.

    b is the derivative of f0 by ∇u, or of f1 by u, of a component, κ the least eigenvalue of its diffusion, h the
    cell's extent along b and k the degree. Of nonlinear physics it is that of the state zero.
    """
    found = [
        max(_cell_peclet(g1[c, c], g2[c, c], g3[c, c], nodes) for c in range(len(g3)))
        for nodes, (_, g1, g2, g3) in sampled_blocks(problem)
    ]
    return median(problem, found) / max(problem.options.degree, 1)


def warn_of_convection(problem, peclet: float) -> None:
    """Tell the user, on rank 0 and once, of schemes for convection."""
    upwinds = problem.options.cg_stabilization == "supg"
    if peclet and not upwinds and problem.comm.rank == 0 and "convection" not in problem.told:
        warn_user(
            f"the cell Péclet number |b| h / (2 k κ) of physics '{problem.physics.name}' is about {peclet:.2g}: by "
            f"cg_gpu the solution may oscillate; -{problem.prefix}cg_stabilization supg, or "
            f"-{problem.prefix}fe_backend sipg_gpu or hdg_gpu, suit convection"
        )
    if peclet:
        problem.told.add("convection")


def _cell_peclet(by_gradient: np.ndarray, of_flux: np.ndarray, diffusion: np.ndarray, nodes: np.ndarray) -> float:
    """|b| h / (2 κ) of a component in a cell with these nodes [node, dim]; zero without diffusion, as of a pressure."""
    wind = max(by_gradient, of_flux, key=np.linalg.norm)
    least = np.linalg.eigvalsh((diffusion + diffusion.T) / 2)[0]
    return float(np.ptp(nodes @ wind) / (2 * least)) if least > 0 else 0.0


def typical_anisotropy(problem) -> float:
    """Return the median over cells of the largest anisotropy of a component. Collective."""
    return median(problem, [_anisotropy(nodes, *blocks) for nodes, blocks in sampled_blocks(problem)])


def anisotropy_in_words(ratio: float) -> str:
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
        return typical_anisotropy(problem) >= least[0]
    is_sparse = least[0] < NEVER and problem.discretization.matrix_layout[0] <= MOST_ON_GPUS[options.backend]
    suits = parts == 1 and problem.comm.size == 1 and is_sparse and options.precision == "double"
    suits = suits and not problem.physics.uses_time_derivative
    return suits and typical_anisotropy(problem) >= ON_GPUS and follows_edges(problem)


def follows_edges(problem) -> bool:
    """Return True if strong couplings are along edges of the cells, as stretching makes them. Collective."""
    mesh = problem.mesh
    if mesh.shape.is_simplex:
        corners = [np.roll(np.arange(mesh.dim + 1), turn) for turn in range(mesh.dim + 1)]
    else:
        corners = [np.array([0, *(2**k for k in range(mesh.dim))])]  # the first one and those that an edge joins to it
    samples = sampled_blocks(problem)
    across = [min(_across_edges(nodes[c], blocks[3][0, 0]) for c in corners) for nodes, blocks in samples]
    return median(problem, across) <= ACROSS


def _across_edges(corners: np.ndarray, diffusion: np.ndarray) -> float:
    """Return how strongly diffusion [dim, dim] couples the directions of the edges from the first of some corners
    [dim + 1, dim] to the others: the condition number of its matrix in them, scaled to a diagonal of ones."""
    inverse = np.linalg.pinv((corners[1:] - corners[0]).T)
    along = inverse @ diffusion @ inverse.T
    scale = np.sqrt(np.maximum(np.diag(along), np.finfo(float).tiny))
    values = np.linalg.eigvalsh((along + along.T) / (2 * np.outer(scale, scale)))
    return float(values[-1] / values[0]) if values[0] > 0 else math.inf


def is_anisotropy_slow(problem, ratio: float) -> bool:
    """Return True if iterations are slow for a typical anisotropy."""
    scheme, degree, mesh = problem.options.backend, problem.options.degree, problem.mesh
    if mesh.dim != 2 or not (mesh.shape.is_simplex or degree <= MOST_OF_SQUARES.get(scheme, degree)):
        return False
    return ratio >= min((least for known, least in SLOW_ALONG[scheme].items() if degree >= known), default=math.inf)


def _anisotropy(nodes: np.ndarray, g0: np.ndarray, g1: np.ndarray, g2: np.ndarray, g3: np.ndarray) -> float:
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


def stiffness_ratio(problem) -> float:
    """Return the largest ratio of bulk to shear stiffness of a vector field in some cells, 0 without. Collective."""
    fields = [f for f in problem.physics.fields if f.components == problem.mesh.dim > 1]
    if not fields:
        return 0.0
    ratios = [_stiffness_ratio(g3[f.offset :, f.offset :]) for _, (*_, g3) in sampled_blocks(problem) for f in fields]
    return problem.comm.allreduce(max(ratios, default=0.0), MAX)


def warn_once(problem, subject: str, text: str) -> None:
    """Warn on rank 0, and note on all ranks that a subject has been told; callers ask for that before."""
    problem.told.add(subject)
    if problem.comm.rank == 0:
        warn_user(text)


def warn_of_locking(problem, ratio: float) -> None:
    """Warn on rank 0, once, and name degrees and schemes that do not lock."""
    degree = max(1, problem.options.degree)
    if problem.options.backend == "hdg_gpu" or degree not in LOCKING or "locking" in problem.told:
        return
    least, outcome = LOCKING[degree]
    if ratio < least:
        return
    warn_once(
        problem,
        "locking",
        f"physics '{problem.physics.name}' resists changes of volume about {ratio:.2g} times as much as shear: "
        f"displacements of degree {degree} by {problem.options.backend} may be {outcome}; "
        f"-{problem.prefix}fe_degree {degree + 1} or more, or -{problem.prefix}fe_backend hdg_gpu, do better",
    )


def warn_of_equal_degrees(problem) -> None:
    """Warn on rank 0, once, of a field that its own value hardly bounds, as the pressure of a nearly incompressible
    body, in a space of no lower degree than that of the field it constrains. Collective."""
    physics, told = problem.physics, "equal degrees"
    pairs = [(p, v) for p in physics.fields for v in physics.fields if p.degree_offset >= v.degree_offset and p != v]
    if problem.options.backend not in OF_DEGREES or not pairs or told in problem.told:
        return
    names = constraints(physics, problem.mesh.dim)
    for p, v in ((p, v) for p, v in pairs if p.name in names):
        ratios = [_constraint_ratio(blocks, p, v) for _, blocks in sampled_blocks(problem)]
        if problem.comm.allreduce(max(ratios, default=0.0), MAX) < LOCKING[1][0]:
            continue
        warn_once(
            problem,
            told,
            f"physics '{physics.name}' bounds '{p.name}' by little but '{v.name}', whose degree is no higher: a "
            f"pair that is not stable, '{p.name}' may be wrong by its size; give it "
            f"degree_offset={v.degree_offset - 1}, or -{problem.prefix}fe_backend hdg_gpu",
        )


def _constraint_ratio(blocks: tuple, p, v) -> float:
    """Return the coupling of two fields by gradient and divergence over the diffusion of v times the own term of p, as
    bulk over shear stiffness."""
    g0, g1, g2, g3 = blocks
    own, other = (slice(f.offset, f.offset + f.components) for f in (p, v))
    diffusion = np.abs(g3[other, other]).max() * np.abs(g0[own, own]).max()
    coupling = np.abs(g1[own, other]).max() * np.abs(g2[other, own]).max()
    return float(coupling / diffusion) if diffusion > 0 else 0.0


def is_stiffness_slow(problem, ratio: float) -> bool:
    """Return True if iterations are slow for a ratio of bulk to shear stiffness."""
    mesh = problem.mesh
    return ratio >= SLOW_RATIO[problem.options.backend][2 if mesh.dim > 2 else int(not mesh.shape.is_simplex)]


def _stiffness_ratio(g3: np.ndarray) -> float:
    """Return bulk over shear stiffness of g3 [component, component, dim, dim]; 0 without shear stiffness."""
    dim = g3.shape[-1]
    volume, shear = np.eye(dim), np.zeros((dim, dim))
    shear[0, 1] = shear[1, 0] = 1.0
    bulk, slide = (np.einsum("cd,cbde,be->", e, g3[:dim, :dim], e) / np.sum(e * e) for e in (volume, shear))
    return float(bulk / slide) if slide > 0 else 0.0


def warn_of_waves(problem) -> None:
    """Warn on rank 0, once, if the pollution number of a steady linear physics is large. Collective.

    That is k L (k h / 2p)^(2p), the phase error of waves of wave number k along the extent L of the mesh by cells of
    size h and degree p (Ihlenburg and Babuška 1997).
    """
    physics, options = problem.physics, problem.options
    if not physics.is_linear or physics.uses_time_derivative or "waves" in problem.told or problem.missing_auxiliary:
        return
    problem.told.add("waves")
    length = float(np.ptp(problem.mesh.corners, axis=0).max())
    samples = sampled_blocks(problem)
    numbers = [(_wave_number(g0, g3), np.ptp(cell, axis=0).max()) for cell, (g0, _, _, g3) in samples]
    found = [(k * size, k) for k, size in numbers]
    angle, k = problem.comm.allreduce(max(found, default=(0.0, 0.0)), MAX)
    if problem.comm.rank == 0 and _pollution(k * length, angle, options.degree) >= LARGE_POLLUTION.get(
        options.backend, 1.0
    ):
        warn_user(
            f"the waves of physics '{physics.name}' have the length {2 * math.pi / k:.2g}, that is "
            f"{2 * math.pi / angle:.2g} cells of degree {options.degree}: phase errors may be as large as the "
            f"solution; take {_remedy(problem, k * length, angle)}"
        )


def _pollution(waves: float, angle: float, degree: int) -> float:
    """Return the pollution number; `angle` is k h, `waves` k L."""
    return waves * (angle / (2 * max(degree, 0.5))) ** (2 * max(degree, 0.5))


def _remedy(problem, waves: float, angle: float) -> str:
    found = problem.discretization
    _, most = found.degrees_accepted if found.is_polytopic else found.degrees
    higher = range(problem.options.degree + 1, most + 1)
    enough = next((degree for degree in higher if _pollution(waves, angle, degree) < 0.1), None)
    return (f"-{problem.prefix}fe_degree {enough} or " if enough else "") + "smaller cells"


def _wave_number(g0: np.ndarray, g3: np.ndarray) -> float:
    """Return the largest √(-∂f0/∂u / κ) of a component, κ the least eigenvalue of its diffusion; 0 without waves."""
    found = 0.0
    for c in range(len(g0)):
        least = np.linalg.eigvalsh((g3[c, c] + g3[c, c].T) / 2)[0]
        if least > 0 and -math.inf < g0[c, c] < 0:
            found = max(found, math.sqrt(-g0[c, c] / least))
    return found


def warn_of_straddling(problem) -> None:
    """Warn on rank 0, once, if diffusion differs between the cells of a polytope, by values per cell or because the
    text steps with x. Of nonlinear physics it is that at zero. Collective."""
    physics, polytopes = problem.physics, problem.mesh.polytopes
    steps = problem.discretization.has_steps or any(field.space == "cell" for field in physics.auxiliary)
    if polytopes is None or not steps or "interfaces" in problem.told or problem.missing_auxiliary:
        return
    problem.told.add("interfaces")
    (start, order), centres = polytopes.cells, centroids(problem.mesh)
    listed = [order[start[k] : start[k + 1]] for k in samples(polytopes.count, MOST_POLYTOPES)]
    with np.errstate(all="ignore"):
        ratios = [_jump(problem, cells[samples(len(cells), MOST_CELLS)], centres) for cells in listed]
    ratios = np.concatenate(problem.comm.allgather(ratios))
    large = ratios[ratios >= LARGE_JUMP]
    if len(large) and problem.comm.rank == 0:
        warn_user(
            f"the diffusion of physics '{physics.name}' differs by factors of up to {large.max():.2g} within "
            f"{len(large)} of {len(ratios)} polytopes that were looked at, which costs the order of convergence; "
            "agglomerate the cells of each material apart, by regions of the mesh or fe.agglomerate(mesh, count, "
            "groups=…)"
        )


def _jump(problem, cells: np.ndarray, centres: np.ndarray) -> float:
    """Return the largest ratio of the diffusion of a component in two of some cells, given the centres [cell, dim] of
    all; 1 where it is not positive."""
    physics, dim = problem.physics, problem.mesh.dim
    flat, interpreter, found = np.zeros((physics.num_components, dim)), physics.interpreter(dim), []
    for cell in cells:
        g3 = interpreter.g_blocks(flat[:, 0], flat[:, 0], flat, *sampled_inputs(problem, cell, centres[cell]))[3]
        found.append(np.einsum("ccdd->c", g3))
    low, high = np.min(found, axis=0), np.max(found, axis=0)
    suits = (low > 0) & np.isfinite(high)
    return float(np.max(high[suits] / low[suits], initial=1.0))

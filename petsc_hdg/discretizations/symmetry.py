"""What couples to what in a physics: symmetry of its derivative, exact or nearly, told by random samples of what it
reads; fields that only couple to others by gradient and divergence (saddle points).
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from ..errors import PhysicsError

OF_DEGREES = ("cg_gpu", "sipg_gpu")  # schemes whose fields may differ in degree
SAMPLES = 4  # the first half of positive numbers alone


def random_inputs(physics, dim: int, seed: int, positive: bool = False) -> tuple[tuple, tuple, np.ndarray]:
    """State u [component], u_t, u_x [component, dim]; what else `Interpreter.g_blocks` takes: a, a_x, t, the shift of
    u_t (1 if it is read), x [dim], constants; and a vector [dim] for a normal, not of length 1.

    positive: all numbers of any seed are.
    """
    random, low = np.random.default_rng(seed), 0.1 if positive or seed < SAMPLES // 2 else -1.0
    count, aux = physics.num_components, physics.num_auxiliary
    a, a_x = random.uniform(low, 1, aux), random.uniform(low, 1, (aux, dim))
    x, normal = random.uniform(low, 1, (2, dim))
    constants, t = random.uniform(low, 1, len(physics.constants)), random.uniform(0.1, 1)
    state = random.uniform(low, 1, count), np.zeros(count), random.uniform(low, 1, (count, dim))
    return state, (a, a_x, t, float(physics.uses_time_derivative), x, constants), normal


NEARLY = "symmetric", "diffusive"  # kinds whose smoothers are those of symmetric matrices
TOLERANCE = 1e-13
SIZES = (1.0, 0.25, 0.0625)  # of random gradients, as deformations have that turn no cell inside out


def read_by_text(physics) -> set[tuple[str, str]]:
    """(f0 or f1, u or u_x): which function may depend on what; a rate counts as the value."""
    hand = {"g0": ("f0", "u"), "g1": ("f0", "u_x"), "g2": ("f1", "u"), "g3": ("f1", "u_x")}
    found = set()
    for term in physics.terms.jacobian or physics.terms.residual:
        if term.kind in hand:
            found.add(hand[term.kind])
            continue
        inputs = term.program.inputs
        found |= {(term.kind, "u")} if inputs & {"u", "u_t"} else set()
        found |= {(term.kind, "u_x")} if "u_x" in inputs else set()
    return found


def has_symmetric_derivative(physics, dim: int) -> bool:
    """True if g0 … g3 of a physics, and those of its natural conditions, make symmetric matrices, everywhere.

    Random samples may miss a region: texts that are not `plain` do not count as symmetric.
    """
    return is_plain(physics, dim) and derivative_kind(physics, dim) == "symmetric"


def is_plain(physics, dim: int) -> bool:
    """True if by its text a physics does not convect, and samples tell of all places and data: none of its derivatives
    jumps."""
    convects = read_by_text(physics) & {("f0", "u_x"), ("f1", "u")}
    return not convects and not physics.instance(dim).derivative_may_jump


def derivative_kind(physics, dim: int) -> str:
    """`symmetric`, `diffusive`, `coupled`, `convective` or `other`: what matrices g0 … g3 of a physics, and of its
    natural conditions, make.

    diffusive: symmetric but for coefficients of the gradient that depend on the state, as in f1 = k(u) ∇u. Then f0
    reads no gradient (g1 = 0), g2 = k'(u) ∇u is zero where the gradient is, and g0 and g3 are symmetric. Convection by
    g2 is to diffusion in a cell as the change of k there is to k: little on meshes that resolve k.
    coupled: each component diffuses, nothing convects, and g0, g3 or natural conditions are not symmetric.
    convective: each component diffuses, and convection depends on data alone, so that how large it is can be asked.

    State, constants, auxiliary values, x, n and t are random: what holds for some of their values only, does not. A
    sample outside the domain of a function, as of the logarithm, is replaced by a positive one with a smaller gradient.
    """
    with np.errstate(all="ignore"):
        if all(_is_symmetric(physics, dim, seed) for seed in range(SAMPLES)):
            return "symmetric"
        if all(_is_diffusive(physics, dim, seed) for seed in range(SAMPLES)):
            return "diffusive"
        if not all(_diffuses(physics, dim, seed) for seed in range(SAMPLES)):
            return "other"
        if not any(_convects(physics, dim, seed) for seed in range(SAMPLES)):
            return "coupled"
        return "convective" if all(_convects_by_data(physics, dim, seed) for seed in range(SAMPLES)) else "other"


def fields_without_own_terms(physics, dim: int) -> list[str]:
    """Names of fields that their own equation does not read, as the pressure of an incompressible flow: the diagonal
    block is zero and the matrix a saddle point."""
    with np.errstate(all="ignore"):
        blocks = [_blocks(physics, dim, seed)[:4] for seed in range(SAMPLES)]
    found = []
    for f in physics.fields:
        own = slice(f.offset, f.offset + f.components)
        if not any(np.any(block[own, own]) for sample in blocks for block in sample):
            found.append(f.name)
    return found


def _is_symmetric(physics, dim: int, seed: int) -> bool:
    g0, g1, g2, g3, pairs = _blocks(physics, dim, seed)
    return _agree([(g1, g2.transpose(1, 0, 2)), *pairs], g0, g1, g2, g3)


def _is_diffusive(physics, dim: int, seed: int) -> bool:
    *blocks, pairs = _blocks(physics, dim, seed)
    return not _convects(physics, dim, seed) and _agree(pairs, *blocks)


def _convects(physics, dim: int, seed: int) -> bool:
    g0, g1, g2, g3, _ = _blocks(physics, dim, seed)
    level = _blocks(physics, dim, seed, slope=0.0)[2]
    return not _agree([(g1, 0 * g1), (level, 0 * level)], g0, g1, g2, g3)


def _convects_by_data(physics, dim: int, seed: int) -> bool:
    if physics.is_linear:
        return True
    g0, g1, _, g3, _ = _blocks(physics, dim, seed)
    _, still, level, _, _ = _blocks(physics, dim, seed, slope=0.0)
    _, at_rest, at_zero, _, _ = _blocks(physics, dim, seed, slope=0.0, level=0.0)
    return _agree([(g1, still), (g1, at_rest), (level, at_zero)], g0, g1, level, g3)


def _diffuses(physics, dim: int, seed: int) -> bool:
    return bool(np.diagonal(_blocks(physics, dim, seed)[3]).any(axis=(0, 1)).all())


@lru_cache(maxsize=6 * SAMPLES)
def _blocks(physics, dim: int, seed: int, slope: float = 1.0, level: float = 1.0) -> tuple:
    """g0, g1, g2, g3, and pairs of what is equal where g0, g3 and natural conditions are symmetric: nan if no sample
    is in the domain of the physics.

    slope, level: factors of the random gradients, and of the random values."""
    for size in SIZES:
        for positive in (False, True):
            found = _blocks_of(physics, dim, random_inputs(physics, dim, seed, positive), size * slope, level)
            if all(np.isfinite(block).all() for block in (*found[:4], *(one for one, _ in found[4]))):
                return found
    return found


def _blocks_of(physics, dim: int, inputs: tuple, slope: float, level: float) -> tuple:
    """`_blocks` of one sample."""
    interpreter, count = physics.interpreter(dim), physics.num_components
    (u, u_t, u_x), (a, a_x, t, shift, x, constants), normal = inputs
    state = level * u, u_t, slope * u_x
    g0, g1, g2, g3 = interpreter.g_blocks(*state, a, a_x, t, shift, x, constants)
    pairs = [(g0, g0.T), (g3, g3.transpose(1, 0, 3, 2))]
    rest, on_labels = (a, a_x, t, 0.0, x, normal / np.linalg.norm(normal), constants), {}
    along = np.eye(count * (1 + dim)).reshape(1 + dim, count, -1)
    rates = along[0], None, np.moveaxis(along[1:], 0, 1)
    for number, condition in enumerate(physics.natural):  # f0 and f1 of a label and side are symmetric together
        f0, f1 = interpreter.pw_boundary_jacobian(number, *state, *rates, *rest)
        given = np.concatenate([f0[None], np.moveaxis(f1, 1, 0)]).reshape(len(along[0, 0]), -1)
        place = condition.label, condition.side
        on_labels[place] = on_labels.get(place, 0) + given
    pairs += [(given, given.T) for given in on_labels.values()]
    return g0, g1, g2, g3, pairs


def _agree(pairs: list, *blocks) -> bool:
    scale = max(np.abs(one).max(initial=0.0) for one in (*blocks, *(one for one, _ in pairs)))
    return all(np.abs(one - other).max(initial=0.0) <= TOLERANCE * scale for one, other in pairs)


def dependences(physics, dim: int) -> list[np.ndarray]:
    """True where the equation of a component reads another one [component, component], for g0, g1, g2 and g3 each."""
    state, rest, _ = random_inputs(physics, dim, 0)
    blocks = physics.interpreter(dim).g_blocks(*state, *rest)
    count = physics.num_components
    return [np.abs(block).reshape(count, count, -1).max(axis=2) > 0 for block in blocks]


def foreign_diffusion(physics, dim: int) -> tuple[str, str] | None:
    """The components, in words, of an equation without diffusion of its own and of what it diffuses, which depends on
    it in turn, as u_t = v, v_t = Δu with Δu in the equation of v; None if there is none."""
    depends = dependences(physics, dim)
    for c, other in np.argwhere(depends[-1] & np.any(depends, axis=0).T):
        if not depends[-1][c, c]:
            owners = [next(f.name for f in physics.fields if i < f.offset + f.components) for i in (c, other)]
            words = [f"component {i} ('{name}')" for i, name in zip((c, other), owners, strict=True)]
            return words[0], words[1]
    return None


def constraints(physics, dim: int) -> list[str]:
    """Names of fields that constrain others, as the pressure of incompressible flow or of nearly incompressible bodies:
    their own equation reads nothing of them but their value, and they couple to others by gradient and divergence, or
    it does not read them at all. None if components that they couple to have no diffusion."""
    depends, without, names = dependences(physics, dim), fields_without_own_terms(physics, dim), []
    derivatives, own = depends[1] | depends[2] | depends[3], np.zeros(physics.num_components, bool)
    coupled = (depends[1] | depends[2]) & (depends[1] | depends[2]).T
    for f in physics.fields:
        part = slice(f.offset, f.offset + f.components)
        if f.name in without or (coupled[part].any() and not derivatives[part, part].any()):
            names.append(f.name)
            own[part] = True
    read = coupled[own].any(axis=0)
    return names if read.any() and depends[3].diagonal()[read].all() else []


def reason(physics, dim: int, name: str) -> str:
    """Why a field makes the matrix a saddle point, as a part of a sentence."""
    what = "terms" if name in fields_without_own_terms(physics, dim) else "derivatives"
    return f"it is a saddle point: the equation of '{name}' has no {what} of '{name}'"


def check_stable(physics, dim: int, scheme: str) -> None:
    """Raise PhysicsError for a field that only couples to another one by gradient and divergence, as the pressure of
    Stokes flow, in spaces of one degree: no such pair is stable. In discontinuous spaces nothing bounds its jumps.

    One degree less is stable, in continuous spaces (Taylor and Hood) and in discontinuous ones (Toselli 2002). Where
    the other field does not diffuse, no penalty acts on its jumps, and it converges too slowly by interior penalty:
    such pairs are refused as well."""
    if len(physics.fields) < 2:
        return
    depends, fields = dependences(physics, dim), physics.fields
    starts = [f.offset for f in fields]
    by_fields = np.logical_or.reduceat(np.logical_or.reduceat(depends[1] | depends[2], starts, 0), starts, 1)
    pairs = [(fields[i], fields[j]) for i, j in np.argwhere(by_fields & by_fields.T)]
    without = fields_without_own_terms(physics, dim) if pairs else []
    for own, other in pairs:
        diffuses = depends[3].diagonal()[other.offset : other.offset + other.components].all()
        stable = OF_DEGREES if diffuses else OF_DEGREES[:1]
        is_lower = scheme in stable and own.degree_offset < other.degree_offset
        if own.name in without and not is_lower:
            raise PhysicsError(
                f"physics '{physics.name}' has no '{own.name}' in the equation of '{own.name}', which couples to "
                f"'{other.name}' by gradient and divergence (a saddle point), and fields of one degree are stable "
                f"there by hdg_gpu alone; give -fe_backend hdg_gpu, {' or '.join(stable)} with degree_offset=-1 of "
                f"'{own.name}', or add a term of '{own.name}' to its equation"
            )

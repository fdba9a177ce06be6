"""Tables of condensation by tensor cores: matrices and functions in the order in which lanes of a warp take them."""

from __future__ import annotations

from itertools import product

import numpy as np

from ..symmetry import read_by_text
from .launch_shapes import WarpShape
from .tensor_factors import tensor_tables


def constant_terms(disc) -> dict[str, np.ndarray]:
    """Tables TERM_ROW, TERM_COLUMN, TERMS [term, column function, row function] and, with jumps, JUMP_SQUARES.

    disc: a CondensedDiscretization. A term is a derivative that the physics can have: of f0 or of a reference component
    of f1, by the value or by a reference component of the gradient.
    """
    gradient = list(range(1, disc.dim + 1))
    places = {"f0": [0], "f1": gradient, "u": [0], "u_x": gradient}
    pairs = sorted({pair for f, by in read_by_text(disc.physics) for pair in product(places[f], places[by])})
    table, weights = disc.operator_table(disc.quadrature.points), disc.quadrature.weights
    terms = [_moments(weights, table[:, p], table[:, k]) for p, k in pairs]
    shape = (0, disc.num_functions, disc.num_functions)
    found = {
        "TERM_ROW": np.array([p for p, _ in pairs] or [0], dtype=np.int32),
        "TERM_COLUMN": np.array([k for _, k in pairs] or [0], dtype=np.int32),
        "TERMS": np.stack(terms) if terms else np.zeros((1, *shape[1:])),
    }
    if disc.has_jumps:
        each = zip(disc.facet_rules[0], disc.jump_table(), strict=True)
        found["JUMP_SQUARES"] = np.stack([_moments(rule.weights, jump, jump) for rule, jump in each])
    return found


def _moments(weights: np.ndarray, row: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Σ_q weight row column [column function, row function], summed in extended precision.

    All cells share these matrices, so their rounding adds up over the mesh instead of averaging out: a constant is
    held on a cell by the jumps alone, which are smaller than the gradients by τ h / k⁴.
    """
    weighted = weights.astype(np.longdouble)[:, None] * row
    return (column.astype(np.longdouble).T @ weighted).astype(float)


_CELL = ("mma.clh", "condense_warp.clh", "condense_warp_cell.clh")


def warp_constant(disc, shape: WarpShape) -> tuple[tuple[str, ...], dict, dict]:
    """Sources, tables and macros of condense_warp.cl."""
    terms = constant_terms(disc)
    if shape.symmetric and disc.components == 1:
        terms = merged_terms(terms)
    matrices = [terms["TERMS"], *([terms["JUMP_SQUARES"]] if disc.has_jumps else [])]
    tiled = tiled_matrices(np.concatenate(matrices), shape, disc.components)
    tables = {
        "TILED": tiled,
        "TILED_TERMS": terms_of_blocks(tiled, shape),
        "VALUE_TILED": tiled_values(disc.operator_table(disc.quadrature.points), 4),
        "TERM_ROW": terms["TERM_ROW"],
        "TERM_COLUMN": terms["TERM_COLUMN"],
    }
    if disc.has_jumps:
        tables["JUMP_TILED"] = tiled_values(disc.jump_table().reshape(-1, 1, disc.num_functions), 8)
    macros = {"NTERMS": len(terms["TERM_ROW"])}
    return (*_CELL, "condense_batch.clh", "condense_warp.cl"), tables, macros


def warp_points(disc, shape: WarpShape) -> tuple[tuple[str, ...], dict, dict]:
    """Sources, tables and macros of condense_warp_points.cl."""
    tables = {"POINT_ROWS": point_rows(disc.operator_table(disc.quadrature.points), shape)}
    if disc.has_jumps:
        tables["JUMP_ROWS"] = jump_rows(disc.jump_table().reshape(-1, disc.num_functions), shape)
    return (*_CELL, "condense_warp_points.cl"), tables, {"BLOCK_PITCH": 6}


def warp_tensor(disc, shape: WarpShape) -> tuple[tuple[str, ...], dict, dict]:
    """Sources, tables and macros of condense_warp_tensor.cl."""
    tables, macros = tensor_tables(disc.factors, shape, disc.line_room // shape.teams - disc.team_vectors)
    return (*_CELL, "condense_warp_tensor.cl"), tables, macros


def tiled_matrices(matrices: np.ndarray, shape: WarpShape, components: int) -> np.ndarray:
    """Matrices [term, column function, row function] as [pair, octet of columns, term, half, lane, 2]: TILED in
    condense_warp.cl.
    """
    rows, columns = 16 * shape.pairs, 8 * shape.column_blocks * shape.warps
    whole = np.zeros((len(matrices), columns, rows))
    expanded = np.repeat(np.repeat(matrices, components, axis=1), components, axis=2)
    whole[:, : shape.size, : shape.size] = expanded[:, :columns, :rows]
    # [term, octet of columns, pair of columns, column of it, pair, half, row]
    split = whole.reshape(len(matrices), columns // 8, 4, 2, shape.pairs, 2, 8)
    return np.ascontiguousarray(split.transpose(4, 1, 0, 5, 6, 2, 3))


def terms_of_blocks(tiled: np.ndarray, shape: WarpShape) -> np.ndarray:
    """Bits [pair, octet of a warp]: matrices that are not zero there for all warps."""
    found = tiled.reshape(shape.pairs, shape.column_blocks, shape.warps, tiled.shape[2], -1).any(axis=(2, 4))
    return (found << np.arange(tiled.shape[2])).sum(axis=2).astype(np.int32)


def tiled_values(values: np.ndarray, per_step: int) -> np.ndarray:
    """Factors of MMA [step, group, pair of functions, half, lane, 2] from values [point, number, function].

    per_step points of a step, 4 or 8, of a step. With 4, groups are pairs of numbers of a point (an odd one has zeros
    beside it); with 8 there is one number, and the pair is of points 4 apart.
    """
    points, numbers, functions = values.shape
    steps, pairs = -(-points // per_step), -(-functions // 16)
    groups = (numbers + 1) // 2
    whole = np.zeros((steps * per_step, groups * 2 if per_step == 4 else 1, pairs * 16))
    whole[:points, :numbers, :functions] = values
    if per_step == 8:
        whole = whole.reshape(steps, 2, 4, 1, pairs, 2, 8).transpose(0, 3, 4, 5, 6, 2, 1)
    else:
        whole = whole.reshape(steps, 4, groups, 2, pairs, 2, 8).transpose(0, 2, 4, 5, 6, 1, 3)
    return np.ascontiguousarray(whole)


def merged_terms(terms: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Terms of constant_terms of one component, for a symmetric derivative: a pair and its mirror image are one."""
    place = {pair: k for k, pair in enumerate(zip(terms["TERM_ROW"], terms["TERM_COLUMN"], strict=True))}
    kept = [(pair, k) for pair, k in place.items() if pair[0] <= pair[1]]
    images = [place.get(pair[::-1]) if pair[0] < pair[1] else None for pair, _ in kept]
    matrices = [
        terms["TERMS"][k] + (0 if i is None else terms["TERMS"][i]) for (_, k), i in zip(kept, images, strict=True)
    ]
    rows, columns = np.array([pair for pair, _ in kept], dtype=np.int32).T
    return {**terms, "TERM_ROW": rows.copy(), "TERM_COLUMN": columns.copy(), "TERMS": np.stack(matrices)}


def point_rows(values: np.ndarray, shape: WarpShape) -> np.ndarray:
    """Factors of MMA [pair of points, octet, lane, 2] from values [point, number, function]: POINT_ROWS in
    condense_warp_points.cl. There are four numbers at most.
    """
    points, numbers, functions = values.shape
    whole = np.zeros((-(-points // 2) * 2, 4, 8 * shape.octets))
    whole[:points, :numbers, :functions] = values
    # [pair of points, point, pair of numbers, number, octet, row]
    split = whole.reshape(-1, 2, 2, 2, shape.octets, 8)
    return np.ascontiguousarray(split.transpose(0, 4, 5, 1, 2, 3))


def jump_rows(jumps: np.ndarray, shape: WarpShape) -> np.ndarray:
    """Jumps [point, function] as [eight points, octet, lane, 2]: JUMP_ROWS there."""
    points, functions = jumps.shape
    whole = np.zeros((-(-points // 8) * 8, 8 * shape.octets))
    whole[:points, :functions] = jumps
    split = whole.reshape(-1, 2, 4, shape.octets, 8)  # [eight points, half, point, octet, row]
    return np.ascontiguousarray(split.transpose(0, 3, 4, 2, 1))

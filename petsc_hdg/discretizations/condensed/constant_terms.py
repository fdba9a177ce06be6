"""Matrices of the reference cell for physics whose derivatives are the same at all points of an affine cell."""

from __future__ import annotations

import numpy as np

from ...reference import facet_quadrature


def constant_terms(disc) -> dict[str, np.ndarray]:
    """Tables TERM_ROW, TERM_COLUMN, TERMS [term, column function, row function] and, with jumps, JUMP_SQUARES.

    disc: a CondensedDiscretization. A term is a derivative that the physics can have: of f0 or of a reference component
    of f1, by the value or by a reference component of the gradient.
    """
    pairs = _pairs(disc.physics, disc.dim)
    table, weights = disc.operator_table(disc.quadrature.points), disc.quadrature.weights
    terms = [_moments(weights, table[:, p], table[:, k]) for p, k in pairs]
    shape = (0, disc.num_functions, disc.num_functions)
    found = {
        "TERM_ROW": np.array([p for p, _ in pairs] or [0], dtype=np.int32),
        "TERM_COLUMN": np.array([k for _, k in pairs] or [0], dtype=np.int32),
        "TERMS": np.stack(terms) if terms else np.zeros((1, *shape[1:])),
    }
    if disc.has_jumps:
        rules = facet_quadrature(disc.mesh.cell, disc.quadrature_degree)[0]
        jumps = disc.jump_table()
        found["JUMP_SQUARES"] = np.stack([_moments(r.weights, j, j) for r, j in zip(rules, jumps, strict=True)])
    return found


def _moments(weights: np.ndarray, row: np.ndarray, column: np.ndarray) -> np.ndarray:
    """Σ_q weight row column [column function, row function], summed in extended precision.

    All cells share these matrices, so their rounding adds up over the mesh instead of averaging out: a constant is
    held on a cell by the jumps alone, which are smaller than the gradients by τ h / k⁴.
    """
    weighted = weights.astype(np.longdouble)[:, None] * row
    return (column.astype(np.longdouble).T @ weighted).astype(float)


def _pairs(physics, dim: int) -> list[tuple[int, int]]:
    """(row, column) of the derivatives that the physics' functions can have; 0: value, 1 … dim: gradient."""
    gradient = range(1, dim + 1)
    rows = {"f0": [0], "f1": list(gradient), "g0": [0], "g1": [0], "g2": list(gradient), "g3": list(gradient)}
    columns = {"g0": [0], "g1": list(gradient), "g2": [0], "g3": list(gradient)}
    found = set()
    for term in physics.terms.jacobian or physics.terms.residual:
        inputs = term.program.inputs
        if term.kind in columns:
            mine = columns[term.kind]
        else:
            mine = ([0] if {"u", "u_t"} & set(inputs) else []) + (list(gradient) if "u_x" in inputs else [])
        found |= {(row, column) for row in rows[term.kind] for column in mine}
    return sorted(found)

"""Dependences of the pointwise functions of a physics on values and gradients."""

from __future__ import annotations


def dependences(physics) -> set[tuple[str, str]]:
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

"""Number of turns of a loop: known before it begins, or counted while it runs."""

from __future__ import annotations

from petsc_hdg.physics.tree import ir
from petsc_hdg.physics.tree.ir import INT, Binary, Loop, Name, Num

MOST_TURNS = 100_000  # of a loop that is counted
_LEFT = {"<": "+=", "<=": "+=", ">": "-=", ">=": "-="}  # how the left side of a comparison counts towards the right one
_RIGHT = {"<": "-=", "<=": "-=", ">": "+=", ">=": "+="}


def is_bounded(loop: Loop) -> bool:
    """True if `loop` counts an integer towards a limit that does not change, as `for (i = 0; i < n; ++i)` does."""
    inside = list(ir.walk(loop.body, loop.step))
    changed = {node.target.name for node in inside if isinstance(node, ir.Assign)}
    changed |= {node.name for node in inside if isinstance(node, ir.Ref)}
    counted = [node for node in loop.step if isinstance(node.value, Num) and node.value.value > 0]
    counts = {node.target.name: node.op for node in counted if isinstance(node.target, Name)}
    in_body = {node.target.name for node in ir.walk(loop.body) if isinstance(node, ir.Assign)}

    def ends(condition) -> bool:
        if not isinstance(condition, Binary):
            return False
        if condition.op == "&&":
            return ends(condition.left) or ends(condition.right)
        left, right = condition.left, condition.right
        return (INT == left.type == right.type) and (
            reaches(left, right, _LEFT.get(condition.op)) or reaches(right, left, _RIGHT.get(condition.op))
        )

    def reaches(counter, limit, op: str | None) -> bool:
        name = getattr(counter, "name", None)
        once = sum(node.target.name == name for node in loop.step) == 1 and name not in in_body
        return (
            op is not None
            and isinstance(counter, Name)
            and counts.get(name) == op
            and once
            and not ir.names_used(limit) & changed
            and not any(isinstance(node, ir.Ref) and node.name == name for node in inside)
        )

    return ends(loop.condition)

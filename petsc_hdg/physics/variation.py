"""Whether what a program computes may vary inside a cell."""

from __future__ import annotations

from collections.abc import Collection

from petsc_hdg.physics.terms import STATE
from petsc_hdg.physics.tree import ir
from petsc_hdg.physics.tree.ir import Program
from petsc_hdg.physics.tree.liveness import prune

_VARYING = STATE | {"x", "n"}
_GIVEN = ("a", "a_x")


def varies_in_cell(program: Program, nodal: dict[str, Collection[int]]) -> bool:
    """Whether a specialised program, without what its output does not need, reads a value that varies inside a cell:
    the solution, x, n, or an element of a or a_x that is among the numbers `nodal` has for that array.

    An index that is not known before the program runs counts as every element.
    """
    main = _pruned(program)
    return bool(_inputs(main) & _VARYING) or any(_reads(main.body, name, nodal[name]) for name in _GIVEN if nodal[name])


def reads_time(program: Program) -> bool:
    """Whether a specialised program, without what its output does not need, reads t."""
    return "t" in _inputs(_pruned(program))


def _inputs(main) -> frozenset:
    return frozenset(ir.names_used(*main.body) & {parameter.name for parameter in main.parameters} - main.outputs)


def reads_component(program: Program, component: int, dim: int) -> bool:
    """Whether a specialised program may read an auxiliary component or its gradient."""
    body = _pruned(program).body
    return _reads(body, "a", (component,)) or _reads(body, "a_x", range(component * dim, component * dim + dim))


def reads_constant(program: Program, number: int) -> bool:
    """Whether a specialised program may read a constant."""
    return _reads(_pruned(program).body, "constants", (number,))


def _pruned(program: Program):
    """The main function without what its output does not need."""
    return prune(program.main, set(program.main.outputs), {helper.name: helper for helper in program.helpers})


def _reads(body: tuple, array: str, numbers: Collection[int]) -> bool:
    for node in ir.walk(*body):
        if isinstance(node, ir.Ref) and node.name == array:
            return True
        if isinstance(node, ir.Element) and node.name == array:
            if not isinstance(node.index, ir.Num) or node.index.value in numbers:
                return True
    return False

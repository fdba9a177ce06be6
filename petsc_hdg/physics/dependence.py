"""On what the element matrices of a linear physics depend, besides the cell's geometry."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from petsc_hdg.physics.terms import STATE
from petsc_hdg.physics.tree import ir
from petsc_hdg.physics.tree.ir import Program
from petsc_hdg.physics.tree.liveness import prune

_VARYING = STATE | {"x", "n"}
_GIVEN = ("a", "a_x")


def varies_in_cell(program: Program, nodal: dict[str, Collection[int]]) -> bool:
    """True if a specialised program, without what its output does not need, reads a value that varies inside a cell:
    the solution, x, n, or an element of a or a_x that is among the numbers `nodal` has for that array.

    An index that is not known before the program runs counts as every element.
    """
    main = _pruned(program)
    return bool(_inputs(main) & _VARYING) or any(_reads(main.body, name, nodal[name]) for name in _GIVEN if nodal[name])


def reads_time(program: Program) -> bool:
    """Return True if a specialised program, without what its output does not need, reads t."""
    return "t" in _inputs(_pruned(program))


def _inputs(main) -> frozenset:
    return frozenset(ir.names_used(*main.body) & {parameter.name for parameter in main.parameters} - main.outputs)


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


_NOTHING: dict[str, tuple] = {"a": (), "a_x": ()}


@dataclass(frozen=True)
class Dependence:
    """Inputs that derivatives read.

    on_place    whether they may read x or the solution (or n, in a stabilization)
    auxiliary   components of auxiliary data that they may read, ascending
    constants   numbers of constants that they may read, ascending
    natural     of each natural condition 0: it adds nothing to matrices, 1: the same on every facet, 2: it reads x or
                n, or it multiplies gradients
    on_time     whether they may read t
    """

    on_place: bool
    auxiliary: tuple[int, ...]
    constants: tuple[int, ...]
    natural: tuple[int, ...]
    on_time: bool


def dependence(instance, with_stabilization: bool) -> Dependence:
    """The Dependence of a physics' Instance; `with_stabilization`: its stabilization counts too."""
    programs = [form.derivative for form in instance.residual] if instance.jacobian is None else []
    programs += [form.program for form in instance.jacobian or ()]
    programs += [form.program for form in instance.stabilization] if with_stabilization else []
    programs = [program for program in programs if program is not None]
    robin = [form.derivative for form in instance.natural]
    slopes = [form.term.kind in ("f1", "b") for form in instance.natural]
    natural = tuple(
        0 if p is None else 1 + int(is_slope or varies_in_cell(p, _NOTHING))
        for p, is_slope in zip(robin, slopes, strict=True)
    )
    on_place = not instance.is_linear or any(varies_in_cell(p, _NOTHING) for p in programs)
    read, dim = [p for p in (*programs, *robin) if p is not None], instance.dim
    bodies = [_pruned(p).body for p in read]
    auxiliary = tuple(
        c
        for c in range(instance.num_auxiliary)
        if any(_reads(body, "a", (c,)) or _reads(body, "a_x", range(c * dim, c * dim + dim)) for body in bodies)
    )
    constants = tuple(k for k in range(instance.num_constants) if any(_reads(b, "constants", (k,)) for b in bodies))
    return Dependence(on_place, auxiliary, constants, natural, any(map(reads_time, read)))

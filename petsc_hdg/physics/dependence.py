"""On what the element matrices of a linear physics depend, besides the cell's geometry."""

from __future__ import annotations

from dataclasses import dataclass

from petsc_hdg.physics.variation import reads_component, reads_constant, reads_time, varies_in_cell

_NOTHING: dict[str, tuple] = {"a": (), "a_x": ()}


@dataclass(frozen=True)
class Dependence:
    """What derivatives read.

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
    read = [p for p in (*programs, *robin) if p is not None]
    components = range(instance.num_auxiliary)
    auxiliary = tuple(c for c in components if any(reads_component(p, c, instance.dim) for p in read))
    constants = tuple(k for k in range(instance.num_constants) if any(reads_constant(p, k) for p in read))
    return Dependence(on_place, auxiliary, constants, natural, any(map(reads_time, read)))

"""A pointwise function as a program: the checked function and the helpers it calls."""

from __future__ import annotations

from dataclasses import dataclass

from petsc_hdg.physics.text.source import Source
from petsc_hdg.physics.tree import ir
from petsc_hdg.physics.tree.ir import Function


@dataclass(frozen=True)
class Program:
    """One pointwise function with every helper it calls, callees first. `source` is the text of the main function."""

    source: Source
    main: Function
    helpers: tuple = ()

    @property
    def inputs(self) -> frozenset:
        """Inputs that the main function uses (u, u_t, …, also dim and uOff)."""
        own = {parameter.name for parameter in self.main.parameters} - self.main.outputs
        return frozenset(ir.names_used(*self.main.body) & own)

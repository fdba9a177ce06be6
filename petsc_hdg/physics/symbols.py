"""Symbols to write a physics with in sympy, and the source term of a manufactured solution."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import sympy
from sympy import Matrix, Symbol

from petsc_hdg.physics.layout import Auxiliary, Field, make_fields


def _symbol(text: str) -> Symbol:
    """A real symbol that prints as the C text it stands for."""
    return Symbol(text, real=True)


@dataclass(frozen=True)
class Symbols:
    """The arguments of PETSc's pointwise functions as sympy symbols in `dim` dimensions.

    fields, auxiliary   name -> number of components, as given to Physics
    constants           names of constants

        s = Symbols(2, {"u": 1}, constants=("kappa",))
        Physics({"u": 1}, f0=-sympy.sin(s.x[0]), f1=s.constant("kappa") * s.grad("u"), constants={"kappa": 2.0})
    """

    dim: int
    fields: Mapping[str, object]
    auxiliary: Mapping[str, object] | tuple = ()
    constants: Sequence[str] = ()

    @property
    def x(self) -> Matrix:
        """Coordinates [dim]."""
        return Matrix([_symbol(f"x[{d}]") for d in range(self.dim)])

    @property
    def n(self) -> Matrix:
        """Outward unit normal [dim], on the boundary."""
        return Matrix([_symbol(f"n[{d}]") for d in range(self.dim)])

    @property
    def t(self) -> Symbol:
        """Time."""
        return _symbol("t")

    def constant(self, name: str) -> Symbol:
        """A named constant."""
        return _symbol(name)

    def value(self, field: str) -> Symbol | Matrix:
        """A field: a symbol, or a Matrix [component, 1]."""
        return self._values("u", self.fields, Field, field)

    def rate(self, field: str) -> Symbol | Matrix:
        """The time derivative of a field: a symbol, or a Matrix [component, 1]."""
        return self._values("u_t", self.fields, Field, field)

    def grad(self, field: str) -> Matrix:
        """The gradient of a field: a Matrix [dim, 1] for one component, else [component, dim]."""
        return self._gradient("u_x", self.fields, Field, field)

    def given(self, name: str) -> Symbol | Matrix:
        """An auxiliary field: a symbol, or a Matrix [component, 1]."""
        return self._values("a", self.auxiliary, Auxiliary, name)

    def grad_given(self, name: str) -> Matrix:
        """The gradient of an auxiliary field: a Matrix [dim, 1] for one component, else [component, dim]."""
        return self._gradient("a_x", self.auxiliary, Auxiliary, name)

    def _values(self, array: str, given, kind: type, name: str) -> Symbol | Matrix:
        field = {entry.name: entry for entry in make_fields("symbols", given, kind)}[name]
        symbols = [_symbol(f"{array}[{field.offset + c}]") for c in range(field.components)]
        return symbols[0] if field.components == 1 else Matrix(symbols)

    def _gradient(self, array: str, given, kind: type, name: str) -> Matrix:
        field, dim = {entry.name: entry for entry in make_fields("symbols", given, kind)}[name], self.dim
        rows = [
            [_symbol(f"{array}[{(field.offset + c) * dim + d}]") for d in range(dim)] for c in range(field.components)
        ]
        return Matrix(rows[0]) if field.components == 1 else Matrix(rows)


def divergence(flux: Matrix, x: Matrix):
    """Divergence of a flux: a number for a vector [dim, 1], else [component, 1] of a Matrix [component, dim]."""
    if flux.shape[1] == 1:
        return sum(sympy.diff(flux[d], x[d]) for d in range(len(x)))
    return Matrix([sum(sympy.diff(flux[c, d], x[d]) for d in range(len(x))) for c in range(flux.shape[0])])


def manufactured(x: Matrix, exact, flux: Callable, reaction: Callable | None = None):
    """The source s with which u = `exact` solves  reaction(u, ∇u) + s - ∇·flux(u, ∇u) = 0;  f0 is reaction + s.

    exact     expression of `x`, or Matrix [component, 1] of them
    flux      f1 as a function of (u, ∇u), with ∇u [dim, 1], or [component, dim] for several components
    """
    if isinstance(exact, sympy.MatrixBase):
        gradient = Matrix([[sympy.diff(entry, direction) for direction in x] for entry in exact])
    else:
        gradient = Matrix([sympy.diff(exact, direction) for direction in x])
    source = divergence(Matrix(flux(exact, gradient)), x)
    return source if reaction is None else source - reaction(exact, gradient)

"""Parts of PETSc's input arrays by the names of fields: `p` of u, `p_x` of u_x, `p_t` of u_t, `kappa` of a."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from petsc_hdg.physics.tree.ir import INT, REAL, Binary, Expr, Name, Num, Symbol

_DIM = Name("dim", INT)


@dataclass(frozen=True)
class Part:
    """The values, gradients or time derivatives of one field.

    array       input array [component of all fields] or [component of all fields, dim]
    first       number of the field's first component
    components  of the field
    owner       field in words
    """

    array: str
    first: int
    components: int
    owner: str

    @property
    def is_number(self) -> bool:
        """True if the name alone is a number: a value of a field with one component."""
        return self.components == 1 and not self.array.endswith("_x")

    def symbol(self, indices: int) -> Symbol:
        """The part as an array: of gradients [component, dim], with two indices, or flat."""
        count = Num(str(self.components), INT)
        if not self.array.endswith("_x"):
            return Symbol(self.array, REAL, (count,), const=True)
        flat = _DIM if self.components == 1 else Binary("*", count, _DIM, INT)
        return Symbol(self.array, REAL, (count, _DIM) if indices == 2 else (flat,), const=True)

    def index(self, within: Expr) -> Expr:
        """Place in the whole array of a place in the part."""
        first = Num(str(self.first), INT)
        if self.first == 0:
            return within
        return Binary("+", Binary("*", first, _DIM, INT) if self.array.endswith("_x") else first, within, INT)


def parts_of(fields: tuple, auxiliary: tuple) -> Mapping[str, tuple[Part, ...]]:
    """All that each name may mean; more than one meaning is refused where the name is used."""
    found: dict[str, tuple[Part, ...]] = {}
    for kind, entries, arrays in (("field", fields, ("u", "u_x", "u_t")), ("auxiliary field", auxiliary, ("a", "a_x"))):
        for entry in entries:
            for array in arrays:
                part = Part(array, entry.offset, entry.components, f"{kind} '{entry.name}'")
                name = entry.name + array[1:]
                found[name] = (*found.get(name, ()), part)
    return found

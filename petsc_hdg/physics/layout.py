"""Fields of a physics and their places in the arrays of all components; boundary conditions, by label name."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Any

from petsc_hdg.errors import PhysicsError
from petsc_hdg.physics.tree.specialise import Setting

_IDENTIFIER = re.compile(r"[A-Za-z]\w*\Z")
SPACES = ("cell", "nodal")


@dataclass(frozen=True)
class Field:
    """A field to solve for.

    components     numbers at a point
    degree_offset  its polynomial degree less that of the discretization (-1 for a Taylor-Hood pressure)
    name, offset   set by Physics: its name and the number of its first component
    """

    components: int = 1
    degree_offset: int = 0
    name: str = ""
    offset: int = 0


@dataclass(frozen=True)
class Auxiliary:
    """A given field: `space` is "cell" (one value a cell) or "nodal" (in the solution's space)."""

    components: int = 1
    space: str = "cell"
    name: str = ""
    offset: int = 0


def make_fields(physics: str, given: Any, kind: type) -> tuple:
    """Fields of class `kind` from a mapping of names to them or to their number of components."""
    word = "field" if kind is Field else "auxiliary field"
    if not isinstance(given, Mapping):
        if isinstance(given, tuple) and not given:
            return ()
        kind_given = type(given).__name__
        raise PhysicsError(
            f"physics '{physics}': {word}s are given as a {kind_given}; give a mapping of names, e.g. {{'u': 1}}"
        )
    found, offset = [], 0
    for name, entry in given.items():
        field = kind(components=entry) if isinstance(entry, int) and not isinstance(entry, bool) else entry
        _check(physics, word, name, field, kind)
        found.append(replace(field, name=name, offset=offset))
        offset += field.components
    return tuple(found)


def _check(physics: str, word: str, name: object, field: Any, kind: Any) -> None:
    start = f"physics '{physics}': {word} '{name}'"
    if not isinstance(name, str) or not _IDENTIFIER.match(name):
        raise PhysicsError(
            f"{start} cannot be named so; a name has letters, digits and underscores and begins with a letter"
        )
    if not isinstance(field, kind):
        raise PhysicsError(
            f"{start} is a {type(field).__name__}; give its number of components or a {kind.__name__}(…)"
        )
    if not isinstance(field.components, int) or isinstance(field.components, bool) or field.components < 1:
        raise PhysicsError(f"{start} has {field.components} components; it needs an integer of at least 1")
    if kind is Auxiliary and field.space not in SPACES:
        raise PhysicsError(f"{start} has space '{field.space}'; the spaces are {', '.join(SPACES)}")


def setting(
    dim: int, fields: tuple, auxiliary: tuple, constants: int, outputs: Mapping[str, int], components: int
) -> Setting:
    """The numbers of a physics in `dim` dimensions; `outputs` gives the size of what is written, `components` is Nc."""
    u_offsets = (0, *accumulate(field.components for field in fields))
    a_offsets = (0, *accumulate(field.components for field in auxiliary))
    num_u, num_a = u_offsets[-1], a_offsets[-1]
    ints = {"dim": dim, "Nf": len(fields), "NfAux": len(auxiliary), "numConstants": constants, "Nc": components}
    arrays = {"uOff": u_offsets, "aOff": a_offsets}
    arrays |= {f"{name}_x": tuple(offset * dim for offset in offsets) for name, offsets in arrays.items()}
    sizes = {
        "u": num_u,
        "u_t": num_u,
        "u_x": num_u * dim,
        "a": num_a,
        "a_x": num_a * dim,
        "x": dim,
        "n": dim,
        "constants": constants,
        "u_in": num_u,
        "f_hat": num_u,
    }
    return Setting(ints, arrays, sizes | dict(outputs))


@dataclass(frozen=True)
class Dirichlet:
    """u = g on `label`. `g` writes g[c] for each component c of the field and may use x, t, a and constants; "exact"
    takes the physics' exact solution, the name of an auxiliary field its values.

    label       name of a boundary, or a list of names, here and in the other conditions
    field       name of the field; may be left out if there is one
    components  numbers of the constrained components; all if None
    """

    label: str | Sequence[str]
    g: object
    field: str | None = None
    components: Sequence[int] | None = None


@dataclass(frozen=True)
class Neumann:
    """f1·n = g on `label`, so f0_bd = -g. `g` writes g[c] and may use x, t, n, a, a_x and constants; the name of an
    auxiliary field takes its values.

    side  name of a region: the facets of `label` as its cells see them, also inside the mesh
    """

    label: str | Sequence[str]
    g: object
    field: str | None = None
    side: str | None = None


@dataclass(frozen=True)
class Robin:
    """∫ φ·f0 + ∇φ:f1 ds on `label`, PETSc's boundary functions f0_bd and f1_bd: they write f0[c] and f1[c*dim + d], and
    may use the solution and its gradient as well. f0 alone says f1·n = -f0; None is zero.

    side  name of a region: n, gradients, auxiliary values and ∇φ are those of its cells, also inside the mesh, where u
          and φ have one value, with discontinuous functions the mean of both sides
    """

    label: str | Sequence[str]
    f0: object = None
    field: str | None = None
    f1: object = None
    side: str | None = None


@dataclass(frozen=True)
class BoundaryFlux:
    """b(û, u, q) = 0 on `label` in the place of f̂·n = 0, for conservation laws by `hdg_gpu`.

    `b` writes b[c] for each component c of all fields. It may use `u`, the trace û; `u_in`, the value in the cell;
    `u_x`, the gradient q; `f_hat`, the numerical flux f̂·n out of the cell with the sign of f1; and x, n, t, a, a_x and
    constants. Examples: u[c] - g (the value g), f_hat[c] (no flux), u[c] - u_in[c] (outflow).

    suits: (expression of u, n, x, t, constants; what to do where it is false), or None. Solutions that do not suit the
    condition on most of the boundary cause a warning.
    diffusive: what to do where f1 reads no gradient, of a condition that only diffusion imposes; else empty.
    """

    label: str | Sequence[str]
    b: object
    suits: tuple[str, str] | None = None
    diffusive: str = ""

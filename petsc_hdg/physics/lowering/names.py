"""The names a physics may call functions and constants by: PETSc's, OpenCL C's and C's, and which are refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from petsc_hdg.physics.functions import BUILTINS
from petsc_hdg.physics.text.parse import INT_TYPES, REAL_TYPES
from petsc_hdg.physics.tree.ir import INT, REAL, Binary, Expr, Name, Num, Symbol

ALL_INPUTS = ("u", "u_t", "u_x", "n", "a", "a_x", "x", "t", "g", "f0", "f1", "ctx", "u_tShift", "u_in", "f_hat")
_C_WORDS = "if else for while do switch case default break continue return const static inline void struct sizeof goto"
_ARGUMENTS = "dim Nf NfAux Nc uOff uOff_x aOff aOff_x a_t time numConstants constants"

# Functions of OpenCL C that write through pointers, or belong to vectors.
MEMBERS = (
    "a member of a structure is not supported, but for those of the context: the gradient of a field u is u_x[d], "
)
MEMBERS += "of component c u_x[c*dim + d], and functions have C's names, such as sin"
MEANT = {"pi": "PETSC_PI", "y": "x[1]", "z": "x[2]"}  # by names of other languages
NOT_OFFERED = dict.fromkeys(
    ("grad", "div", "inner", "dot"), "write sums of u_x[c*dim + d], or u_x[d] of one component"
) | {
    "frexp": "it writes through a pointer; use ldexp and logb",
    "modf": "it writes through a pointer; use trunc(x) and x - trunc(x)",
    "fract": "it writes through a pointer; use x - floor(x)",
    "sincos": "it writes through a pointer; use sin and cos",
    "remquo": "it writes through a pointer; use remainder",
    "lgamma_r": "it writes through a pointer; use lgamma",
    "printf": "a physics cannot print",
    "PetscPrintf": "a physics cannot print",
    "rand": "a physics must give the same value each time",
}

# PETSc's functions of a real or a scalar, whose names end so: ours are theirs in small letters, but for some.
_STEMS = "Sqrt Cbrt Exp Log Log2 Log10 Pow Sin Cos Tan Asin Acos Atan Atan2 Sinh Cosh Tanh Asinh Acosh Atanh Ceil "
_STEMS += "Floor Round Trunc Fmod Hypot Erf Erfc TGamma LGamma CopySign Copysign Sign Fma"
_PETSC_STEMS = {stem: stem.lower() for stem in _STEMS.split()} | {"Abs": "fabs", "Max": "fmax", "Min": "fmin"}
ALIASES = {f"Petsc{stem}{kind}": name for stem, name in _PETSC_STEMS.items() for kind in ("Real", "Scalar")}
_DIM = Name("dim", INT)
ALIASES |= {
    "PetscSqr": "sqr",
    "PetscPowRealInt": "pown",
    "PetscPowScalarInt": "pown",
    "PetscPowScalarReal": "pow",
    "PetscClipInterval": "clamp",
    "PetscIsNanReal": "isnan",
    "PetscIsInfReal": "isinf",
    "PetscIsInfOrNanReal": "isinf",
    "PetscIsNanScalar": "isnan",
    "PetscAbsInt": "abs",
    "PetscMaxInt": "max",
    "PetscMinInt": "min",
}
# PETSc's macros that take integers as well as reals: the function for all integers, the function otherwise.
GENERIC = {
    "PetscMax": ("max", "fmax"),
    "PetscMin": ("min", "fmin"),
    "PetscAbs": ("abs", "fabs"),
    "max": ("max", "fmax"),
    "min": ("min", "fmin"),
}
# Functions that return their argument, since a PetscScalar is real here, or zero.
IDENTITIES = frozenset({"PetscRealPart", "PetscConj", "PetscRealPartComponent"})

CONSTANTS = {
    "PETSC_PI": "3.1415926535897932384626433832795029",
    "PETSC_PHI": "1.6180339887498948482045868343656381",
    "PETSC_SQRT2": "1.4142135623730950488016887242096981",
    "M_PI": "3.1415926535897932384626433832795029",
    "M_PI_2": "1.5707963267948966192313216916397514",
    "M_PI_4": "0.78539816339744830961566084581987572",
    "M_1_PI": "0.31830988618379067153776752674502872",
    "M_2_PI": "0.63661977236758134307553505349005745",
    "M_E": "2.7182818284590452353602874713526625",
    "M_LN2": "0.69314718055994530941723212145817657",
    "M_LN10": "2.3025850929940456840179914546843642",
    "M_LOG2E": "1.4426950408889634073599246810018921",
    "M_LOG10E": "0.43429448190325182765112891891660508",
    "M_SQRT2": "1.4142135623730950488016887242096981",
    "M_SQRT1_2": "0.70710678118654752440084436210484904",
}
INT_CONSTANTS = {"PETSC_TRUE": 1, "PETSC_FALSE": 0, "PETSC_SUCCESS": 0, "true": 1, "false": 0}
# Constants whose value depends on the precision; petsc.clh defines them.
PRECISION_CONSTANTS = {
    "PETSC_MACHINE_EPSILON": 2.0**-52,
    "PETSC_SQRT_MACHINE_EPSILON": 2.0**-26,
    "PETSC_SMALL": 1e-10,
    "PETSC_MAX_REAL": 1.7976931348623157e308,
    "PETSC_MIN_REAL": -1.7976931348623157e308,
    "PETSC_INFINITY": 4.4942328371557893e307,
    "PETSC_NINFINITY": -4.4942328371557893e307,
}
# Names that no constant of the user's can have.
RESERVED = {*CONSTANTS, *INT_CONSTANTS, *REAL_TYPES, *INT_TYPES, *_C_WORDS.split(), *_ARGUMENTS.split(), *ALL_INPUTS}
RESERVED -= {"g"}


def canonical(name: str) -> str | None:
    """Canonical name of a built-in called `name` (PETSc's, OpenCL's or C's), or None."""
    return ALIASES.get(name, name if name in BUILTINS else None)


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

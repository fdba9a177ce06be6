"""The options of petsc_hdg: the only module that reads `-fe_*` from PETSc's database, once, into frozen data."""

from __future__ import annotations

from dataclasses import dataclass, field, fields, replace

from .errors import OptionError

BACKENDS = ("cg_gpu",)
PRECISIONS = ("double", "single")
PMATS = ("aij", "none")
VARIANTS = ("auto", "cell", "transpose", "patch")

_TRUE = ("1", "true", "yes", "on", "")
_FALSE = ("0", "false", "no", "off")


def _option(default, help, choices=None, minimum=None, maximum=None):
    """A dataclass field that carries what the database parser and `-help` need."""
    return field(default=default, metadata={"help": help, "choices": choices, "minimum": minimum, "maximum": maximum})


@dataclass(frozen=True)
class Options:
    """What the user asked for with `-fe_*`; every attribute `name` is the option `-fe_name`.

    `prefix` is the PETSc options prefix: with prefix `a_` the option is `-a_fe_degree`.
    """

    backend: str = _option("cg_gpu", "scheme that discretizes the physics", choices=BACKENDS)
    degree: int = _option(1, "polynomial degree of the fields", minimum=0, maximum=16)
    precision: str = _option("double", "floating-point type on the device", choices=PRECISIONS)
    device: str = _option("any", "OpenCL device: gpu, cpu, any, an index, or part of a name")
    quadrature_degree: int = _option(
        -1, "degree the quadrature integrates exactly (-1: twice the degree)", minimum=-1, maximum=30
    )
    deterministic: bool = _option(True, "bitwise equal results between runs (all kernels give them now)")
    kernel: str = _option(
        "auto",
        "element kernel: one thread a cell, thread transposition, or patches of first-order cells",
        choices=VARIANTS,
    )
    num_blocks: int = _option(
        0, "N_bl: cell blocks a work-group holds at once (0: chosen from the device)", minimum=0, maximum=64
    )
    num_batches: int = _option(1, "N_cb: batches of cells a work-group does in turn", minimum=1, maximum=64)
    pmat: str = _option("aij", "matrix for the preconditioner: assembled, or none (matrix-free only)", choices=PMATS)
    view: bool = _option(False, "describe the discretization, the device and the Vec mode")
    kernel_view: str = _option("", "folder that receives the text of each generated kernel ('stdout' prints it)")
    report: str = _option("", "JSON file that receives the run's report")
    check_kernels: bool = _option(True, "compare each new kernel with numpy before its first use on a device")
    profile: bool = _option(False, "time each kernel with device events")
    prefix: str = ""

    @classmethod
    def from_petsc(cls, prefix: str | None = None, **defaults) -> Options:
        """Read the database. `defaults` replace the class defaults where the user gives no option.

        Raises OptionError, the same on all ranks, for a value that is not accepted or an unknown `-fe_*` name.
        """
        from petsc4py import PETSc

        base = replace(cls(prefix=prefix or ""), **defaults)
        given = _given(PETSc.Options(), base.prefix)
        known = {f.name: f for f in fields(cls) if f.name != "prefix"}
        for name in given:
            if name not in known:
                raise OptionError(
                    f"-{base.prefix}fe_{name} is not an option; known are " + ", ".join(f"-fe_{k}" for k in known)
                )
        values = {name: _parse(known[name], base.prefix, text) for name, text in given.items()}
        options = replace(base, **values)
        options.validate()
        return options

    def validate(self) -> None:
        """Raise OptionError for a value outside what its option accepts."""
        for f in fields(self):
            if f.name != "prefix":
                _check(f, self.prefix, getattr(self, f.name))

    @classmethod
    def help(cls, prefix: str = "") -> str:
        """The options in the form of PETSc's `-help`."""
        lines = [
            "Finite elements on OpenCL devices (petsc_hdg) options -------------------------------------------------"
        ]
        for f in fields(cls):
            if f.name == "prefix":
                continue
            choices = f" (choose one of) {' '.join(f.metadata['choices'])}" if f.metadata["choices"] else ""
            shown = str(f.default).lower() if isinstance(f.default, bool) else f.default
            lines.append(f"  -{prefix}fe_{f.name} <now {shown} : formerly {shown}>: {f.metadata['help']}{choices}")
        return "\n".join(lines)


def _given(database, prefix: str) -> dict[str, str]:
    """Options `-<prefix>fe_<name>` of the database as {name: text}."""
    start = f"{prefix}fe_"
    found = {key: text or "" for key, text in database.getAll().items() if key.startswith(start)}
    for key in found:
        database.hasName(key)  # tells PETSc that the option is used
    return {key[len(start) :]: text for key, text in found.items()}


def _parse(f, prefix: str, text: str):
    name = f"-{prefix}fe_{f.name}"
    if isinstance(f.default, bool):
        if text.lower() in _TRUE:
            return True
        if text.lower() in _FALSE:
            return False
        raise OptionError(f"{name} {text}: give true or false")
    if isinstance(f.default, int):
        try:
            return int(text)
        except ValueError:
            raise OptionError(f"{name} {text}: give a whole number") from None
    return text


def _check(f, prefix: str, value) -> None:
    name = f"-{prefix}fe_{f.name} {value}"
    choices, low, high = f.metadata["choices"], f.metadata["minimum"], f.metadata["maximum"]
    if choices and value not in choices:
        raise OptionError(f"{name}: not known; valid are {', '.join(choices)}")
    if low is not None and not low <= value <= high:
        raise OptionError(f"{name}: give a whole number from {low} to {high}")

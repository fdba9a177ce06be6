"""The options of petsc_hdg, `-fe_*` and those of one scheme, read from PETSc's database once, into frozen data."""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass, fields, replace

from ..errors import OptionError
from ..given import text as given_text
from .fields import SCHEME_PREFIXES, check, option, option_name, parse

BACKENDS = ("cg_gpu", "hdg_gpu", "sipg_gpu", "poly_gpu")
PRECISIONS = ("double", "single")
HALOS = ("auto", "windows", "messages")
PMATS = ("auto", "aij", "conforming", "agglomerates", "none")
VARIANTS = ("auto", "cell", "transpose", "tensor", "patch")
TRACE_MATS = ("auto", "dbf", "element", "symmetric", "aij")
CG_STABILIZATIONS = ("none", "supg")
SETTINGS = ("condensed", "full")
PENALTIES = ("shahbazi", "paper")
SIPG_KERNELS = ("auto", "affine", "fused", "split", "stored", "congruent")
POLY_SPACES = ("total", "tensor")
POLY_SUBDIVISIONS = ("cells", "coarse")
POLY_PENALTIES = ("trace", "paper")
TIME_SPACES = ("tensor", "total")
POLY_ASSEMBLIES = ("2", "1", "atomic")

# How options of an object with the prefix `hdg_` go on, such as -hdg_ksp_type: none of ours.
_PETSC_STARTS = ("dm_", "fe_", "ksp_", "mat_", "pc_", "snes_", "tao_", "ts_", "vec_", *SCHEME_PREFIXES)


def _tau_fault(value) -> str | None:
    """What is wrong with `-hdg_tau`, as far as no physics is needed."""
    text = str(value).strip()
    try:
        wrong = not (0 < float(text) < math.inf)
    except ValueError:
        wrong = not text
    return "give auto, a number above 0, or a C expression such as 1 + fabs(n[0])" if wrong else None


def _output_fault(value) -> str | None:
    """What is wrong with the name of `-fe_output`."""
    text = str(value)
    return "give a name that ends in .pvd" if text and not text.lower().endswith(".pvd") else None


@dataclass(frozen=True)
class Options:
    """What the user asked for; every attribute `name` is the option `-fe_name`, but for those of one scheme, which
    begin with `hdg_`, `sipg_`, `poly_` or `cg_` and are called as the attribute is.

    `prefix` is the PETSc options prefix: with prefix `a_` the options are `-a_fe_degree` and `-a_hdg_tau`.
    """

    backend: str = option("cg_gpu", "scheme that discretizes the physics", choices=BACKENDS)
    degree: int = option(1, "polynomial degree of the fields", minimum=0, maximum=16)
    precision: str = option("double", "floating-point type on the device", choices=PRECISIONS)
    device: str = option("any", "OpenCL device: gpu, cpu, any, an index, or part of a name")
    halo: str = option(
        "auto", "between ranks of a node: shared memory (auto, windows) or messages as between nodes", choices=HALOS
    )
    quadrature_degree: int = option(
        -1, "degree the quadrature integrates exactly (-1: twice the degree)", minimum=-1, maximum=30
    )
    deterministic: bool = option(
        True, "bitwise equal results between runs: kernels always give them, METIS deals cells out alike each time"
    )
    kernel: str = option(
        "auto",
        "element kernel: one thread a cell, thread transposition, sums along lines, or patches of first-order cells",
        choices=VARIANTS,
    )
    num_blocks: int = option(
        0, "N_bl: cell blocks a work-group holds at once (0: chosen from the device)", minimum=0, maximum=64
    )
    num_batches: int = option(1, "N_cb: batches of cells a work-group does in turn", minimum=1, maximum=64)
    pmat: str = option(
        "auto",
        "matrices for the preconditioner: assembled, of the conforming first-order subspace, of agglomerates, or none",
        choices=PMATS,
    )
    pmat_precision: str = option(
        "double", "entries of matrices that multigrid inside our Krylov methods keeps on the device", choices=PRECISIONS
    )
    view: bool = option(False, "describe the discretization, the device and the Vec mode")
    kernel_view: str = option("", "folder that receives the text of each generated kernel ('stdout' prints it)")
    report: str = option("", "JSON file that receives the run's report")
    check_kernels: bool = option(True, "compare each new kernel with numpy before its first use on a device")
    profile: bool = option(False, "time each kernel with device events")
    checkpoint: str = option(
        "", "HDF5 file that receives the state every -fe_checkpoint_interval steps, and at the end"
    )
    checkpoint_interval: int = option(
        10, "steps (in time, of a load, or of Newton's method) between checkpoints", minimum=1, maximum=2**31 - 1
    )
    restart: str = option("", "checkpoint whose state the run goes on from")
    output: str = option(
        "",
        "PVD file that names VTU files of the state with their times, every -fe_output_interval steps and at the end",
        check=_output_fault,
    )
    output_interval: int = option(
        1, "steps (in time, of slabs or of a load) between states of -fe_output", minimum=1, maximum=2**31 - 1
    )
    hdg_tau: str = option(
        "auto",
        "stabilization: auto, a number, or a C expression of x[], n[], a[] and constants",
        check=_tau_fault,
    )
    hdg_trace_mat: str = option(
        "auto",
        "trace matrix: the best for mesh and device, blocks of facets, cells, symmetric ones once, or assembled",
        choices=TRACE_MATS,
    )
    hdg_trace_precision: str = option(
        "double", "entries of the trace matrix that preconditioners take, without an assembled one", choices=PRECISIONS
    )
    hdg_share: bool = option(True, "cells that are copies of each other share local solvers and trace matrices")
    hdg_keep: bool = option(True, "keep U and the condensed right-hand side of linear physics, else recompute")
    hdg_tile_cells: int = option(
        0, "cells condensed at once (0: chosen from the device's memory)", minimum=0, maximum=2**31 - 1
    )
    hdg_setting: str = option("condensed", "unknowns of the solver: the trace, or u, q and the trace", choices=SETTINGS)
    hdg_local_max_it: int = option(25, "most Newton iterations of a cell's local problem", minimum=1, maximum=10_000)
    hdg_local_rtol: float = option(
        1e-12, "reduction of the residual that ends a cell's local Newton iteration", minimum=0, maximum=1
    )
    hdg_enrich: bool = option(True, "gradient space of degree k+1 on quadrilaterals and hexahedra")
    cg_condense: bool = option(False, "eliminate the interior of CG cells")
    cg_stabilization: str = option(
        "none", "of convection by CG: none, or streamline upwinding in the test functions", choices=CG_STABILIZATIONS
    )
    sipg_penalty: str = option(
        "shahbazi", "penalty from the trace inequality of each facet, or 100 p²/h_F as in the paper", choices=PENALTIES
    )
    sipg_penalty_scale: float = option(1.0, "factor of the penalty", minimum=0, maximum=1e12)
    sipg_theta: int = option(1, "symmetric (1), incomplete (0) or nonsymmetric (-1) method", minimum=-1, maximum=1)
    sipg_kernel: str = option(
        "auto",
        "product: fast for constant coefficients, one fused pass, volume and fluxes apart, or stored local matrices",
        choices=SIPG_KERNELS,
    )
    sipg_check_coercivity: bool = option(False, "estimate the smallest eigenvalue and warn if the penalty is too small")
    poly_agglomerates: int = option(
        0, "polytopes of the whole mesh, made of its cells (0: each cell is one)", minimum=0, maximum=2**31 - 1
    )
    poly_space: str = option(
        "total", "polynomials of total degree, or of that degree in each coordinate", choices=POLY_SPACES
    )
    poly_subdivision: str = option(
        "cells",
        "triangles of agglomerates in the plane: the mesh's own cells, or as few as their outlines take",
        choices=POLY_SUBDIVISIONS,
    )
    poly_penalty: str = option(
        "trace", "penalty from each polytope's trace constant, or from appendix A of the paper", choices=POLY_PENALTIES
    )
    poly_penalty_scale: float = option(1.0, "factor of the penalty of polytopes", minimum=0, maximum=1e12)
    poly_assembly: str = option(
        "2",
        "matrix by a sparsity pattern first and one writer a block, by triplets with duplicates, or by atomic sums",
        choices=POLY_ASSEMBLIES,
    )
    poly_time_degree: int = option(1, "degree in time of space-time slabs", minimum=0, maximum=3)
    poly_time_space: str = option(
        "tensor", "space-time polynomials: a degree in time times one in space, or total degree", choices=TIME_SPACES
    )
    prefix: str = ""

    @classmethod
    def from_petsc(cls, prefix: str | None = None, **defaults) -> Options:
        """Read the database. `defaults` replace the class defaults where the user gives no option.

        Raises OptionError, the same on all ranks, for a value that is not accepted or an unknown `-fe_*` or `-hdg_*`
        name, and for a default that no option has.
        """
        from petsc4py import PETSc

        _check_names(cls, defaults)
        base = replace(cls(prefix=given_text("The prefix of options", prefix)), **defaults)
        known = {option_name(f): f for f in fields(cls) if f.name != "prefix"}
        given = _given(PETSc.Options(), base.prefix, known)
        values = {known[name].name: parse(known[name], base.prefix, text) for name, text in given.items()}
        options = replace(base, **values)
        options.validate()
        return options

    def validate(self) -> None:
        """Raise OptionError for a value outside what its option accepts."""
        for f in fields(self):
            if f.name != "prefix":
                check(f, self.prefix, getattr(self, f.name))

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
            lines.append(f"  -{prefix}{option_name(f)} <now {shown} : formerly {shown}>: {f.metadata['help']}{choices}")
        return "\n".join(lines)


def _check_names(cls, given) -> None:
    known = [f.name for f in fields(cls) if f.name != "prefix"]
    for name in given:
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
            raise OptionError(f"{name}= is not an option; {hint}")


def _given(database, prefix: str, known) -> dict[str, str]:
    """Our options of the database as {name without `prefix`: text}; OptionError for names that are not `known`."""
    found = {}
    for key in database.getAll():
        name = key[len(prefix) :]
        if not key.startswith(prefix) or not _is_ours(name, known):
            continue
        if name not in known:
            start = name[: name.index("_") + 1]
            listed = ", ".join(f"-{entry}" for entry in known if entry.startswith(start))
            raise OptionError(f"-{key} is not an option; known are {listed}")
        found[name] = database.getString(key, "")  # the value with its blanks, which getAll cuts; PETSc sees it used
    return found


def _is_ours(name: str, known) -> bool:
    """Whether an option is one of `known` or was meant to be."""
    if name in known or name.startswith("fe_"):
        return True
    for start in ("hdg_", "sipg_", "poly_"):
        if name.startswith(start):
            return not name.removeprefix(start).startswith(_PETSC_STARTS)
    return name.startswith(("cg_cond", "cg_stab"))

"""The options of petsc_hdg, `-fe_*` and those of one scheme, read from PETSc's database once, into frozen data.

What they leave open is settled by the scheme and by PETSc's own: which matrices a preconditioner takes.
"""

from __future__ import annotations

import difflib
import math
from dataclasses import dataclass, fields, replace

from .database import SCHEME_PREFIXES, check, given_truth, option, option_name, parse
from .errors import OptionError
from .log import LEVELS
from .value_checks import text as given_text

BACKENDS = ("cg_gpu", "hdg_gpu", "sipg_gpu", "poly_gpu")
PRECISIONS = ("double", "single")
VARIANTS = ("auto", "cell", "transpose", "tensor", "patch")

# How options of an object with the prefix `hdg_` go on, such as -hdg_ksp_type: none of ours.
_PETSC_STARTS = ("dm_", "fe_", "ksp_", "mat_", "pc_", "snes_", "tao_", "ts_", "vec_", *SCHEME_PREFIXES)
# Coarse levels for -pc_type mg, and the schemes that have them.
_LEVELS = {"conforming": ("cg_gpu", "hdg_gpu", "sipg_gpu"), "agglomerates": ("sipg_gpu", "poly_gpu")}
ASSEMBLED = 1  # degree up to which continuous elements are assembled by default
ATTACHED = 4  # the same for solvers of the user's own, whose PC may want a matrix
# PC types that need nothing but products and the diagonal, or bring their own matrices.
MATRIX_FREE_PCS = ("none", "jacobi", "python", "shell", "ksp", "composite", "mat")


def _tau_fault(value) -> str | None:
    """What is wrong with `-hdg_tau`, as far as no physics is needed."""
    text = str(value).strip()
    try:
        wrong = not (0 < float(text) < math.inf)
    except ValueError:
        wrong = not text
    return "give auto, upwind, a number above 0, or a C expression such as 1 + fabs(n[0])" if wrong else None


def _output_fault(value) -> str | None:
    """What is wrong with the name of `-fe_output`."""
    text = str(value)
    return "give a name that ends in .pvd or .xdmf" if text and not text.lower().endswith((".pvd", ".xdmf")) else None


@dataclass(frozen=True)
class Options:
    """What the user asked for; every attribute `name` is the option `-fe_name`, but for those of one scheme, which
    begin with `hdg_`, `sipg_`, `poly_` or `cg_` and are called as the attribute is.

    `prefix` is the PETSc options prefix: with prefix `a_` the options are `-a_fe_degree` and `-a_hdg_tau`.
    """

    backend: str = option("cg_gpu", "discretization scheme", choices=BACKENDS)
    degree: int = option(1, "polynomial degree of the fields", minimum=0, maximum=40)
    precision: str = option("double", "floating-point type on the device", choices=PRECISIONS)
    device: str = option("any", "OpenCL device: gpu, cpu, any, an index, or part of a name")
    halo: str = option(
        "auto",
        "halo exchange within a node: the fastest one, kernels, shared memory, messages",
        choices=("auto", "peers", "windows", "messages"),
    )
    quadrature_degree: int = option(
        -1, "degree of exactness of the quadrature (-1: twice the polynomial degree)", minimum=-1, maximum=30
    )
    mesh_ranks: int = option(
        0, "number of ranks that get cells (0: chosen from the cells and the devices)", minimum=0, maximum=2**31 - 1
    )
    deterministic: bool = option(
        True, "reproducible partition by coordinates (kernels are always bitwise reproducible)"
    )
    kernel: str = option(
        "auto",
        "element kernel: one thread per cell, thread transposition, sum factorization, patches of first-order cells",
        choices=VARIANTS,
    )
    num_blocks: int = option(
        0, "N_bl: concurrent cell blocks per work-group (0: chosen from the device)", minimum=0, maximum=64
    )
    num_batches: int = option(1, "N_cb: successive batches of cells per work-group", minimum=1, maximum=64)
    pmat: str = option(
        "auto",
        "preconditioner matrix: assembled, conforming first-order subspace, agglomerates, none",
        choices=("auto", "aij", "conforming", "agglomerates", "none"),
    )
    products: str = option(
        "auto",
        "products with the Jacobian: by stored entries where a CPU does these sooner, never",
        choices=("auto", "kernels"),
    )
    pmat_precision: str = option(
        "auto", "precision of multigrid on the device: vectors, products, matrices", choices=("auto", *PRECISIONS)
    )
    view: bool = option(False, "description of discretization, device and Vec mode on stdout")
    kernel_view: str = option("", "folder for the text of each generated kernel ('stdout': print it)")
    progress: str = option(
        "auto",
        "line of progress on stderr: on a terminal without PETSc's monitors, always, never",
        choices=("auto", "on", "off"),
    )
    log_level: str = option(
        "warning",
        "messages: none, warnings, also what a run does, also times of stages and programs",
        choices=tuple(LEVELS),
    )
    report: str = option("", "JSON file for the report of the run")
    check_kernels: bool = option(True, "comparison of each kernel with numpy before its first use on a device")
    profile: bool = option(False, "kernel timings from device events")
    checkpoint: str = option("", "HDF5 file for the state, written every -fe_checkpoint_interval steps and at the end")
    checkpoint_interval: int = option(
        10,
        "number of steps (in time, of a load, or of Newton's method) between checkpoints",
        minimum=1,
        maximum=2**31 - 1,
    )
    restart: str = option("", "checkpoint to continue from")
    output: str = option(
        "",
        "NAME.pvd of VTU files, or NAME.xdmf of HDF5: one every -fe_output_interval steps and at the end",
        check=_output_fault,
    )
    output_interval: int = option(
        1, "number of steps (in time, of slabs or of a load) between files of -fe_output", minimum=1, maximum=2**31 - 1
    )
    hdg_tau: str = option(
        "auto",
        "stabilization τ: auto, upwind, a number, or a C expression of u[] (the trace), x[], n[], a[] and constants",
        check=_tau_fault,
    )
    hdg_flux: str = option(
        "auto",
        "flux at facets: by the physics, f1 projected into the gradient space, f1 of trace and gradient at points",
        choices=("auto", "projected", "pointwise"),
    )
    hdg_trace_mat: str = option(
        "auto",
        "trace matrix storage: dense facet blocks, element matrices, packed symmetric blocks, PETSc AIJ",
        choices=("auto", "dbf", "element", "symmetric", "aij"),
    )
    hdg_share: bool = option(True, "shared local solvers and trace matrices of congruent cells")
    hdg_keep: bool = option(True, "cache of U, and of the condensed right-hand side of linear physics")
    hdg_tile_cells: int = option(
        0, "number of cells condensed at once (0: chosen from the device memory)", minimum=0, maximum=2**31 - 1
    )
    hdg_local_max_it: int = option(25, "maximum Newton iterations per local problem", minimum=1, maximum=10_000)
    hdg_local_rtol: float = option(
        1e-12, "relative residual tolerance of the local Newton iteration", minimum=0, maximum=1
    )
    hdg_enrich: bool = option(True, "gradient space of degree k+1 on quadrilaterals and hexahedra")
    cg_condense: bool = option(False, "static condensation of continuous elements")
    cg_stabilization: str = option(
        "none", "stabilization of convection in cg_gpu: none, streamline upwinding", choices=("none", "supg")
    )
    sipg_penalty: str = option(
        "shahbazi", "penalty: trace inequality per facet, or 100 p²/h_F as in the paper", choices=("shahbazi", "paper")
    )
    sipg_penalty_scale: float = option(1.0, "factor of the penalty", minimum=0, maximum=1e12)
    sipg_theta: int = option(1, "method: symmetric (1), incomplete (0), nonsymmetric (-1)", minimum=-1, maximum=1)
    sipg_kernel: str = option(
        "auto",
        "product kernel: constant coefficients, one pass, volume then fluxes",
        choices=("auto", "affine", "fused", "split"),
    )
    sipg_check_coercivity: bool = option(
        False, "estimate of the smallest eigenvalue, with a warning if the penalty is too small"
    )
    poly_agglomerates: int = option(
        0, "number of agglomerates of the whole mesh (0: each cell is a polytope)", minimum=0, maximum=2**31 - 1
    )
    poly_space: str = option(
        "total", "polynomial space: total degree, degree in each coordinate", choices=("total", "tensor")
    )
    poly_subdivision: str = option(
        "cells",
        "quadrature triangles of agglomerates in 2D: the mesh's own cells, as few as the outlines allow",
        choices=("cells", "coarse"),
    )
    poly_penalty_scale: float = option(1.0, "factor of the polytopic penalty", minimum=0, maximum=1e12)
    poly_time_degree: int = option(1, "polynomial degree in time of space-time slabs", minimum=0, maximum=3)
    poly_time_space: str = option(
        "tensor", "space-time polynomials: tensor product of space and time, total degree", choices=("tensor", "total")
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
    known = [f.name for f in fields(cls) if f.name not in ("prefix", "mesh_ranks")]
    for name in given:
        if name == "mesh_ranks":
            raise OptionError("mesh_ranks= comes too late, cells have their ranks; give -fe_mesh_ranks before the mesh")
        if name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"known are {', '.join(known)}"
            if name.startswith(("ksp_", "pc_", "snes_", "ts_", "mat_", "vec_", "dm_")):
                hint = f"PETSc's options go to the command line, or PETSc.Options()['{name}'] = ... before"
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
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"; did you mean -{prefix}{close[0]}?" if close else ""
            raise OptionError(f"-{key} is not an option; known are {listed}{hint}")
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


def chosen_pmat(options: Options, physics, derivative: str = "other", assembled: int = ASSEMBLED) -> str:
    """`aij`, `conforming`, `agglomerates` or `none`: what `-fe_pmat` says, `auto` settled by the scheme, its degree,
    the fields of the physics and the user's -pc_type.

    derivative: of hybridizable DG, as `matrices.derivative` says; `convective` stands for little convection.
    assembled: degree up to which continuous elements are assembled; ATTACHED for solvers of the user's own, which
    traces give a matrix whatever their degree.
    Raises OptionError for `conforming` and `agglomerates` where they do not go with them.
    """
    from petsc4py import PETSc

    given = PETSc.Options(options.prefix).getString("pc_type", "mg")
    if options.pmat in _LEVELS:
        _check_levels(options, physics, given)
    if options.pmat != "auto":
        return options.pmat
    if takes_differences(options.prefix):
        return "aij"
    if options.backend == "poly_gpu" and given == "mg":
        return "agglomerates"
    if options.backend == "hdg_gpu":
        if options.hdg_trace_mat == "aij" or given != "mg" or assembled != ASSEMBLED or derivative == "other":
            return "aij"
        if derivative == "flow":  # steps of pseudo time grow without end
            grows = PETSc.Options(options.prefix).getString("ts_type", "") == "pseudo"
            return "none" if physics.uses_time_derivative and not grows else "aij"
        return "conforming"
    has_subspace = options.backend == "cg_gpu" and not options.cg_condense and of_one_degree(physics)
    if options.backend != "sipg_gpu" and not (options.degree > assembled and has_subspace):
        return "aij"
    return "conforming" if given == "mg" else "none" if given in MATRIX_FREE_PCS else "aij"


def takes_differences(prefix: str) -> bool:
    """Whether PETSc's options have SNES fill the Jacobian by differences of residuals, which takes an assembled one."""
    return any(given_truth(prefix, name, False) for name in ("snes_fd", "snes_fd_color"))


def loses_levels(prefix: str) -> bool:
    """Whether the TS asked for resets its PC, which then has no levels: ARKIMEX before DIRK joined it."""
    from petsc4py import PETSc

    given = PETSc.Options(prefix).getString("ts_type", "")
    return given == "arkimex" and not hasattr(PETSc.TS.Type, "DIRK")


def of_one_degree(physics) -> bool:
    """Whether all fields of a physics have the same degree."""
    return not any(f.degree_offset for f in physics.fields)


def _check_levels(options: Options, physics, pc_type: str) -> None:
    name, schemes = f"-{options.prefix}fe_pmat", _LEVELS[options.pmat]
    if options.backend not in schemes:
        raise OptionError(
            f"{name} {options.pmat} goes with {' and '.join(schemes)}, and -{options.prefix}fe_backend is "
            f"{options.backend}; use {name} aij"
        )
    if options.pmat == "conforming" and options.cg_condense:
        raise OptionError(f"{name} conforming does not go with -{options.prefix}cg_condense; use {name} aij")
    takes_one = options.pmat == "agglomerates" or options.backend == "cg_gpu"
    if takes_one and not of_one_degree(physics):
        raise OptionError(
            f"{name} {options.pmat} takes fields of one degree, and physics '{physics.name}' has a degree_offset; use "
            f"{name} aij"
        )
    if pc_type != "mg" and pc_type not in MATRIX_FREE_PCS:
        raise OptionError(
            f"{name} {options.pmat} goes with -{options.prefix}pc_type mg; {pc_type} takes the assembled matrix: use "
            f"{name} aij or auto"
        )

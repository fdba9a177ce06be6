"""`mpiexec -n N python -m petsc_hdg check`: the same answer on 1 … N ranks, and on every device of the node.

-only TEXT: of the cases, such as `hdg_gpu, hexahedra Q2`, those whose name contains this text.

`python -m petsc_hdg check script.py`: those of a script on several numbers of ranks, see check_script.
"""

from __future__ import annotations

import argparse

from petsc4py import PETSc

from ..device.platforms import all_devices, describe
from ..discretizations import SCHEMES
from ..errors import OptionError, PetscHdgError
from ..mesh import Mesh
from ..options import Options
from ..physics import Dirichlet, Physics
from ..problem import Problem
from ..value_checks import plural
from . import check_script
from .arguments import own_arguments

# Of the norms of errors; the solution is of size one, so this is rounding and the solver's tolerance.
TOLERANCE = {"double": 1e-12, "single": 1e-5}
CASES = {  # name -> faces, simplices, degree
    "triangles P3": ((6, 6), True, 3),
    "quadrilaterals Q3": ((5, 5), False, 3),
    "tetrahedra P3": ((2, 2, 2), True, 3),
    "hexahedra Q2": ((2, 2, 2), False, 2),
}


def main(arguments: list[str]) -> int:
    """Print one line a comparison; the exit code is 1 if any differs by more than rounding. Raises OptionError."""
    if any(name.endswith(".py") for name in arguments):
        return check_script.main(arguments)
    world = PETSc.COMM_WORLD.tompi4py()
    options = Options.from_petsc()
    failed = 0
    for title, (backend, case) in _chosen(arguments).items():
        reference = world.bcast(_error(world, 1, case, options, backend))
        for ranks in range(2, world.size + 1):
            got = _error(world, ranks, case, options, backend)
            different = _report(f"{title}, {ranks} ranks", reference, got, options) if world.rank == 0 else None
            failed += world.bcast(different)
        failed += _check_devices(world, title, reference, case, options, backend)
    PETSc.Sys.Print("all agree" if not failed else f"different: {plural(failed, 'comparison')}")
    return 1 if failed else 0


def _chosen(arguments: list[str]) -> dict[str, tuple]:
    """Title → (scheme, case) of what is compared. Raises OptionError."""
    parser = argparse.ArgumentParser(prog="petsc-hdg check", allow_abbrev=False, description=__doc__)
    parser.add_argument("-only", default="", help="cases whose name contains this text")
    only = own_arguments(parser, arguments)[0].only
    every = {f"{backend}, {name}": (backend, case) for backend in SCHEMES for name, case in CASES.items()}
    chosen = {title: case for title, case in every.items() if only in title}
    if not chosen:
        raise OptionError(f"-only '{only}' is in the name of no case; these are {'; '.join(every)}")
    return chosen


def _error(world, ranks: int, case, options, backend: str, device: str | None = None) -> float | None:
    """L2 error of a small solve on the first `ranks` ranks; None on the others."""
    comm = world.Split(0 if world.rank < ranks else 1, world.rank)
    try:
        if world.rank >= ranks:
            return None
        faces, simplex, degree = case
        chosen = Options(
            **_plain(options, backend),
            backend=backend,
            degree=degree,
            device=device or options.device,
            poly_agglomerates=5,
        )
        mesh = Mesh.box(faces, simplex=simplex, comm=PETSc.Comm(comm))
        problem = Problem(mesh, _physics(), chosen)
        problem.snes.getKSP().setTolerances(rtol=1e-13)
        return problem.errors(problem.solve())["L2"]
    finally:
        comm.Free()


def _plain(options, backend: str) -> dict:
    """Options that cases take. Of element kernels cg_gpu alone has a choice in all of them."""
    kernel = options.kernel if backend == "cg_gpu" else "auto"
    kept = {name: getattr(options, name) for name in ("precision", "check_kernels", "deterministic")}
    return {**kept, "kernel": kernel}


def _physics() -> Physics:
    exact = "PetscReal s = 0; for (d = 0; d < dim; ++d) s += (d + 1) * x[d];"
    return Physics(
        {"u": 1},
        f0=exact + "f0[0] = (dim == 2 ? 5.0 : 14.0) * sin(s);",
        f1="for (d = 0; d < dim; ++d) f1[d] = -u_x[d];",
        boundary=[Dirichlet("boundary", "exact")],
        exact={"u": exact + "u[0] = sin(s);"},
        name="check",
    )


def _check_devices(world, title: str, reference: float, case, options, backend: str) -> int:
    """Compare all devices that rank 0 sees."""
    failed = 0
    for number, device in enumerate(all_devices() if world.rank == 0 else []):
        try:
            got = _error(PETSc.COMM_SELF.tompi4py(), 1, case, options, backend, str(number))
        except PetscHdgError as error:
            print(f"  {title}, {describe(device)}: {error}")
            failed += 1
            continue
        failed += _report(f"{title}, {describe(device)}", reference, got, options)
    return world.bcast(failed)


def _report(title: str, reference: float, got: float, options) -> int:
    difference = abs(got - reference)
    ok = difference <= TOLERANCE[options.precision]
    print(
        f"  {title}: {'agrees' if ok else 'DIFFERS'}, L2 error {got:.6e}, difference {difference:.1e}",
        flush=True,
    )
    return 0 if ok else 1

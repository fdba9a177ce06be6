"""Under mpiexec: Krylov methods on the device against PETSc's, on random partitions; prints one JSON object of results.

run_krylov.py METHOD:THEIRS[:OPTION] ...: {argument: {case: [iterations, reason, PETSc's, largest relative difference of
the early history and of the solution]}}, and for CG under "sums" how many sums over ranks a solve of so many iterations
takes.
"""

import json
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from unittest import mock

import numpy as np
from petsc4py import PETSc

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from krylov_systems import EARLY, FACES, LEVELS, SCHEMES, laplacian, solved, wave  # noqa: E402
from sample_meshes import box_mesh  # noqa: E402
from sample_physics import smooth_poisson  # noqa: E402

from petsc_hdg.krylov import matrices  # noqa: E402
from petsc_hdg.krylov.vectors import Vectors  # noqa: E402
from petsc_hdg.options import Options
from petsc_hdg.problem import Problem  # noqa: E402
from petsc_hdg.run import guarded  # noqa: E402

SUMS = matrices.sums_products


def difference(a, b) -> float:
    comm = PETSc.COMM_WORLD.tompi4py()
    part = float(np.abs(a - b).max(initial=0)), float(np.abs(b).max(initial=0))
    over, scale = (max(numbers) for numbers in zip(*comm.allgather(part), strict=True))
    return over / scale


def compared(mat, b, method: str, theirs: str, monitored: bool = False, guess=None, **options) -> list:
    """Of two solves; `monitored`: with residuals of the solutions that monitors see in the place of the history."""
    seen: dict = {}

    def watch(ksp, _, norm):
        seen.setdefault(ksp.getType(), []).append(ksp.buildResidual().norm())

    setting = (lambda ksp: ksp.setMonitor(watch)) if monitored else None
    ours, other = (solved(m, mat, b, guess, setting, **options) for m in (method, theirs))
    if monitored:
        ours, other = (replace(s, history=np.array(seen[t])) for s, t in ((ours, "python"), (other, theirs)))
    length = min(EARLY, len(ours.history), len(other.history))
    early = difference(ours.history[:length], other.history[:length])
    return [ours.iterations, ours.reason, other.iterations, other.reason, early, difference(ours.x, other.x)]


@cache
def system(backend: str, faces, **given):
    """(Jacobian, right-hand side) at zero, the same for all methods."""
    mesh = box_mesh("triangle", faces, seed=3, comm=PETSc.COMM_WORLD, partition_seed=1)
    problem = Problem(
        mesh, smooth_poisson(), Options(backend=backend, check_kernels=False, **SCHEMES[backend], **given)
    )
    calls, zero, b = problem.callbacks, problem.create_vec(), problem.create_vec()
    calls.linearize(None, zero, calls.jacobian, calls.matrices[-1])
    calls.residual(None, zero, b)
    b.scale(-1.0)
    return calls.jacobian, b


def on_scheme(backend: str, faces, method: str, theirs: str, monitored: bool = False, **options) -> list:
    return compared(*system(backend, faces), method, theirs, monitored, **options)


def of_cg(theirs: str, **given) -> dict:
    """More cases for conjugate gradients: norms, a first guess, multigrid; and the sums over ranks."""
    mat = laplacian(60, comm=PETSc.COMM_WORLD)
    b, guess = wave(mat), wave(mat)
    guess.scale(0.3)
    found = {
        f"{norm}, {pc}": compared(mat, b, "CG", theirs, ksp_norm_type=norm, pc_type=pc, **given)
        for norm in ("unpreconditioned", "natural")
        for pc in ("none", "jacobi")
    }
    found["guess"] = compared(mat, b, "CG", theirs, guess=guess, pc_type="jacobi", **given)
    found["multigrid"] = compared(mat, b, "CG", theirs, pc_type="gamg", ksp_rtol=1e-8, **LEVELS, **given)
    found["one rank does not sum"] = one_does_not_sum(theirs, **given)
    with mock.patch.object(Vectors, "over_ranks", autospec=True, side_effect=Vectors.over_ranks) as summed:
        done = solved("CG", mat, b, pc_type="jacobi", **given)
        counts = [done.iterations, summed.call_count]
        done = solved("CG", mat, b, pc_type="jacobi")
    return found | {"sums": [*counts, done.iterations, summed.call_count - counts[1]]}


def one_does_not_sum(theirs: str, **given) -> list:
    """Products of blocks of cells sum p·w by cells on all ranks but one, as where ranks store blocks in other ways."""
    jacobian, b = system("hdg_gpu", FACES["triangle"], hdg_trace_mat="symmetric")
    here = PETSc.COMM_WORLD.rank != 1
    with mock.patch.object(matrices, "sums_products", lambda context: SUMS(context) if here else None):
        return compared(jacobian, b, "CG", theirs, pc_type="jacobi", **given)


def main(method: str, theirs: str, *names: str) -> dict:
    options = dict.fromkeys(names, "") if names or method != "CG" else {"ksp_cg_single_reduction": "0"}
    found = of_cg(theirs, **options) if method == "CG" else {}
    jacobi = {"pc_type": "jacobi", **options}
    for backend, pc in (("sipg_gpu", "jacobi"), ("hdg_gpu", "FacetBlockJacobi"), ("cg_gpu", "jacobi")):
        given = {"pc_type": "python", "pc_python_type": f"petsc_hdg.{pc}"} if pc != "jacobi" else {"pc_type": pc}
        found[backend] = on_scheme(backend, FACES["triangle"], method, theirs, **given, **options)
    found["monitored"] = on_scheme("sipg_gpu", FACES["triangle"], method, theirs, method == "CG", **jacobi)
    found["two cells"] = on_scheme("sipg_gpu", (1, 1), method, theirs, **jacobi)
    polynomial = {"pc_type": "python", "pc_python_type": "petsc_hdg.ChebyshevPC"}
    found["polynomial"] = on_scheme("sipg_gpu", FACES["triangle"], method, theirs, **polynomial, **options)
    mat = laplacian(comm=PETSc.COMM_WORLD, singular=True)
    constants = PETSc.NullSpace().create(constant=True, comm=mat.comm)
    mat.setNullSpace(constants)
    mat.setTransposeNullSpace(constants)
    found["null space"] = compared(mat, wave(mat), method, theirs, **jacobi)
    found["staged"] = compared(mat, wave(mat), method, theirs, pc_type="bjacobi", **options)
    return found


def run() -> int:
    result = {words: main(*words.split(":")) for words in sys.argv[1:]}
    if PETSc.COMM_WORLD.rank == 0:
        print(json.dumps(result))
    return 0


if __name__ == "__main__":
    sys.exit(guarded(run))

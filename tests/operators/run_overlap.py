"""Under mpiexec: products and residuals read no ghosts before these have come, and inner kernels run meanwhile.

Ghosts are not a number until they come: a kernel that reads them too early spoils the result. On one queue, with a
second one, and with exchanges that stand alone (as where unknowns are few) results are the same to the last bit.
"""

import sys
from contextlib import contextmanager
from unittest import mock

import numpy as np
import petsc4py

petsc4py.init(sys.argv)

from mpi4py import MPI  # noqa: E402

import petsc_hdg as fe  # noqa: E402
from petsc_hdg.device import Halo  # noqa: E402
from petsc_hdg.device.kernel import Kernel  # noqa: E402
from petsc_hdg.krylov.sell_matrix import SellMatrix  # noqa: E402
from petsc_hdg.run import guarded  # noqa: E402

comm = MPI.COMM_WORLD
PHYSICS = {"f0": "f0[0] = -1 + u[0];", "f1": "for (d = 0; d < dim; ++d) f1[d] = (1 + x[0])*u_x[d];"}
CONSTANT = {"f0": "f0[0] = -1 + u[0];", "f1": "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"}
CUBIC = {"f0": "f0[0] = -1 + u[0]*u[0]*u[0];", "f1": "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"}
CASES = {
    "cg_gpu patch": ({"degree": 1}, PHYSICS),
    "cg_gpu cell": ({"degree": 2, "kernel": "cell", "pmat": "aij"}, PHYSICS),
    "cg_gpu transpose": ({"degree": 2, "kernel": "transpose"}, PHYSICS),
    "hdg_gpu dbf": ({"degree": 1, "hdg_trace_mat": "dbf"}, PHYSICS),
    "hdg_gpu element": ({"degree": 1, "hdg_trace_mat": "element", "hdg_share": False}, PHYSICS),
    "hdg_gpu symmetric": ({"degree": 1, "hdg_trace_mat": "symmetric"}, PHYSICS),
    "hdg_gpu congruent": ({"degree": 1, "hdg_trace_mat": "auto"}, CONSTANT),
    "hdg_gpu newton": ({"degree": 1, "hdg_tile_cells": 100}, CUBIC),
    "sipg_gpu affine": ({"degree": 2}, CONSTANT),
    "sipg_gpu fused": ({"degree": 2, "sipg_kernel": "fused"}, PHYSICS),
    "sipg_gpu split": ({"degree": 2, "sipg_kernel": "split"}, PHYSICS),
    "poly_gpu": ({"degree": 1}, PHYSICS),
}
WAYS = ("one queue", "two queues", "alone")
BY_ELEMENTS = ("cg_gpu cell", "cg_gpu transpose", "hdg_gpu element")
_between: list = []  # work-items of the launches between a begin and its end, while one is under way
_log: list[int] = []


def watch() -> None:
    """Count work-items launched while exchanges are under way."""
    launch = Kernel._launch

    def counted(self, groups, offset):
        for exchange in _between:
            exchange.append(groups[0])
        return launch(self, groups, offset)

    Kernel._launch = counted
    for what in ("forward", "reverse_add"):
        begin, end = getattr(Halo, f"{what}_begin"), getattr(Halo, f"{what}_end")

        def begun(self, source, begin=begin):
            begin(self, source)
            if self.plan.active:
                _between.append([])

        def ended(self, target, end=end):
            if self.plan.active:
                _log.append(sum(_between.pop()))
            end(self, target)

        setattr(Halo, f"{what}_begin", begun)
        setattr(Halo, f"{what}_end", ended)


def spoil(vector, halo, problem) -> None:
    """Ghosts that are not a number, and so are element vectors."""
    arrays, operator = problem.arrays, problem.callbacks.operator
    elements = element_vectors(operator)
    if elements is not None:
        arrays.upload(elements, np.full(elements.size // arrays.real.itemsize, np.nan, arrays.real), "test")
    tail = arrays.to_host(vector.tail, int(halo.places.max(initial=0)) + 1)
    tail[halo.places] = np.nan
    arrays.upload(vector.tail, tail, "test")


def element_vectors(operator):
    """The buffer of what cells add to rows, None where there is none."""
    holder = getattr(operator, "format", operator)
    return getattr(getattr(holder, "chosen", holder), "_element", None)


def twice(what, vector, halo, problem, n: int) -> np.ndarray:
    """Two calls, the second after its ghosts are spoilt, agree to the last bit; something ran meanwhile."""
    arrays, found = problem.arrays, []
    for _ in range(2):
        spoil(vector, halo, problem)
        out = arrays.to_device(np.full(n, np.nan))
        _log.clear()
        what(out)
        found.append(arrays.to_host(out, n))
    assert np.isfinite(found[0]).all() and np.array_equal(*found)
    assert _log and (_log[0] > 0 or halo.alone), f"nothing runs while ghosts come: {problem.scheme.name} {_log}"
    waits = halo.alone and not isinstance(vector, SellMatrix)
    assert not (waits and _log[0]), f"{problem.scheme.name} does not wait for ghosts {_log}"
    return found[0]


def made(name: str, mesh) -> fe.Problem:
    settings, physics = CASES[name]
    physics = fe.Physics({"u": 1}, **physics, boundary=[fe.Dirichlet("left", "g[0] = x[1];")])
    return fe.Problem(mesh, physics, backend=name.split()[0], **settings)


@contextmanager
def going(way: str, problem):
    """Exchanges in one of the WAYS."""
    with mock.patch.object(Halo, "alone", property(lambda self: way == "alone", lambda self, _: None), create=True):
        problem.device.two_queues = way == "two queues"
        yield


def check(name: str, problem: fe.Problem, way: str) -> list[np.ndarray]:
    with going(way, problem):
        return results(name, problem)


def results(name: str, problem: fe.Problem) -> list[np.ndarray]:
    u, n = problem.create_vec(), problem.discretization.dofmap.num_owned
    u.setArray(np.random.default_rng(comm.rank).random(n))
    operator = problem.callbacks.operator
    problem.callbacks.linearize(None, u, problem.callbacks.jacobian, problem.callbacks.preconditioning)
    assert element_vectors(operator) is not None or name not in BY_ELEMENTS
    with problem.access.read(u) as x:
        if name == "hdg_gpu newton":  # local problems begin where the last ones ended

            def residual(out):
                problem.arrays.fill(operator.interior)
                operator.residual(x, out)

            return [twice(residual, operator.current, operator.halo, problem, n)]
        if name.startswith("hdg"):
            border = operator.format.border
            return [twice(lambda out: operator.action(x, out), border.x, border.halo, problem, n)]
        direction = operator.products.direction if name.startswith("poly") else operator.direction
        action = operator.products.run if name.startswith("poly") else operator.action  # as on GPUs
        found = [twice(lambda out: action(x, out), direction, direction.operator.halo, problem, n)]
        if name == "cg_gpu cell":  # of which the matrix is at hand
            matrix = SellMatrix(problem.callbacks.preconditioning, problem.arrays)
            found += [twice(lambda out: matrix.apply(x, out), matrix, matrix.halo, problem, n)]
        if not name.startswith("poly"):
            found += [twice(lambda out: operator.residual(x, out), operator.current, operator.halo, problem, n)]
    return found


def main() -> None:
    watch()
    for name in sys.argv[1].split(",") if len(sys.argv) > 1 else CASES:
        problem = made(name, fe.Mesh.box([24, 20], simplex="transpose" not in name))
        for one, *others in zip(*(check(name, problem, way) for way in WAYS), strict=True):
            assert all(np.array_equal(one, other) for other in others), name
    if comm.allreduce(1) == comm.size and comm.rank == 0:
        print("overlap agrees")


guarded(main)

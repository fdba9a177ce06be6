"""ViennaCL vectors of a problem beside those on the host: PETSc's operations with zeros, duplicates, and runs in time.

mpiexec -n 2 python tests/petsc_library/run_viennacl.py
"""

import ctypes
import itertools

import numpy as np
from petsc4py import PETSc
from petsc_options import petsc_options

import petsc_hdg as fe
from petsc_hdg.petsc.c_library import call
from petsc_hdg.run import guarded

FLUX = "for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d];"
HEAT = "f0[0] = u_t[0] - 10*sin(3*x[0] + 5*t);"
FACTORS = 0.0, 1.0, 0.3


def problem(kind: str, **options) -> fe.Problem:
    physics = fe.Physics({"u": 1}, HEAT, FLUX, boundary=[fe.Dirichlet("boundary", 0.0)])
    with petsc_options(dm_vec_type=kind):
        return fe.Problem(fe.Mesh.box((6, 6)), physics, check_kernels=False, **options)


def vectors(like: PETSc.Vec) -> list[PETSc.Vec]:
    """Three duplicates of duplicates, with numbers that host and device have."""
    found = [like.duplicate().duplicate() for _ in range(3)]
    for seed, vector in enumerate(found):
        assert not vector.getArray(readonly=True).any() and vector.norm() == 0
        vector.setArray(np.random.default_rng([seed, like.comm.rank]).standard_normal(like.getLocalSize()))
        vector.scale(1.5)
        vector.getArray(readonly=True), vector.norm()
    return found


def add(z, x, y, factors) -> None:
    """z = a x + b y + c z, which petsc4py lacks."""
    given = [ctypes.c_void_p(v.handle) for v in (x, y)]
    call("VecAXPBYPCZ", ctypes.c_void_p(z.handle), *map(ctypes.c_double, factors), *given)


def check_operations() -> None:
    host, device = (problem(kind).create_vec() for kind in ("standard", "viennacl"))
    cases = [lambda z, x, y, f=f: add(z, x, y, f) for f in itertools.product(FACTORS, repeat=3)]
    cases += [lambda z, x, y, f=f: z.maxpy(f, [x, y, x]) for f in itertools.product(FACTORS, repeat=3)]
    for case in cases:
        results = []
        for like in (host, device):
            z, x, y = vectors(like)
            case(z, x, y)
            copied = z.getArray(readonly=True).copy(), z.copy().getArray(readonly=True).copy()
            assert np.array_equal(*copied) and np.isclose(z.norm(), z.copy().norm(), rtol=1e-14)
            results.append(copied[0])
        np.testing.assert_allclose(results[1], results[0], atol=1e-14)
    z, x, _ = vectors(device)
    add(z, x, x.copy(), (-1e200, 1e200, 0.0))
    assert z.norm() == 0  # products that are not rounded would leave 1e184


def check_runs() -> None:
    """ARKIMEX and DIRK lose values where cells have a state without a rate, as traces do, and begin with a step of no
    length where t is not 0."""
    for backend, method in itertools.product(("cg_gpu", "hdg_gpu"), ("bdf", "arkimex", "dirk", "rosw")):
        ends = []
        for kind in ("standard", "viennacl"):
            one = problem(kind, backend=backend)
            with petsc_options(ts_type=method):
                start = one.interpolate(lambda x: np.sin(np.pi * x).prod(axis=-1) / 3)
                ends.append(one.solve_in_time(start, 0.14, 0.01, 0.1).norm())
            assert (one.vec_mode == "viennacl") == (kind == "viennacl")
        assert np.isclose(*ends, rtol=1e-8), (backend, method, ends)


def main() -> None:
    check_operations()
    check_runs()
    PETSc.Sys.Print("the same")


if __name__ == "__main__":
    guarded(main)

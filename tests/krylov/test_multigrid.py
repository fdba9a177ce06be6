"""PETSc's multigrid on the device gives what PETSc gives, to the six digits of Chebyshev's bounds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from krylov_systems import laplacian, laplacian_2d, multigrid, solved
from mirrored import difference
from mpi4py import MPI
from petsc4py import PETSc
from sample_meshes import box_mesh
from sample_physics import smooth_poisson

from petsc_hdg.krylov.matrices import Unsupported
from petsc_hdg.krylov.multigrid import inverse
from petsc_hdg.krylov.sell_matrix import SellMatrix
from petsc_hdg.krylov.smoothers import (
    BlockSmoother,
    Smoother,
    chebyshev_bounds,
    chebyshev_steps,
    inverse_blocks,
    richardson_scale,
)
from petsc_hdg.krylov.vectors import Vectors
from petsc_hdg.options import Options
from petsc_hdg.problem import Problem

SCRIPT = Path(__file__).with_name("mirrored.py")
DIGITS = 2e-6  # six digits of the bounds of a few smoothers


@pytest.mark.parametrize("backend, degree", [("cg_gpu", 2), ("hdg_gpu", 1), ("sipg_gpu", 2), ("poly_gpu", 1)])
def test_default_preconditioners_of_the_schemes(backend, degree):
    problem = Problem(
        box_mesh("triangle", (16, 16), seed=3, comm=PETSc.COMM_SELF),
        smooth_poisson(),
        Options(backend=backend, degree=degree, check_kernels=False),
    )
    problem.solve()
    found, mirror = difference(problem.snes.getKSP().getPC())
    assert found < DIGITS and len(mirror.levels) >= 1


@pytest.mark.parametrize("setting", [{}, {"pc_mg_cycle_type": "w"}, {"mg_levels_ksp_type": "richardson"}])
@pytest.mark.parametrize("precision", ["double", "single"])
def test_cycles_and_smoothers(setting, precision):
    found, mirror = difference(multigrid(laplacian_2d(30), **setting), precision)
    assert found < DIGITS and len(mirror.levels) >= 2
    assert mirror.cycles == (2 if setting.get("pc_mg_cycle_type") == "w" else 1)


def test_blocks_of_points():
    pc = multigrid(laplacian_2d(30, block=2), mg_levels_pc_type="pbjacobi")
    assert difference(pc)[0] < DIGITS


def test_a_coarsest_level_on_the_host(monkeypatch):
    for name in ("MOST_INVERSE", "MOST_JOINED"):
        monkeypatch.setattr(f"petsc_hdg.krylov.multigrid.{name}", 0)
    assert difference(multigrid(laplacian_2d(30)))[0] < DIGITS


@pytest.mark.parametrize(
    "setting, why",
    [
        ({"mg_levels_ksp_type": "gmres"}, "KSP of type gmres"),
        ({"mg_levels_pc_type": "sor"}, "PC of type sor"),
        ({"pc_mg_type": "additive"}, "another type than multiplicative"),
    ],
)
def test_what_cannot_be_mirrored_is_said(setting, why):
    with pytest.raises(Unsupported, match=why):
        difference(multigrid(laplacian_2d(30), **setting))


def test_ranks(mpirun):
    given = ("-fe_backend", "sipg_gpu", "-fe_degree", "2", "-dm_plex_box_faces", "12,12")
    assert float(mpirun(3, SCRIPT, *given, timeout=200).stdout.splitlines()[-1]) < DIGITS


def test_chebyshev_steps_damp_as_the_polynomial_does():
    """The error of an eigenvector: T_k((theta - λ)/delta) / T_k(theta/delta)."""
    lower, upper, steps = 0.2, 2.2, 4
    theta, delta = (upper + lower) / 2, (upper - lower) / 2
    for eigenvalue in (0.1, 0.3, 1.0, 2.1):
        before, now = 0.0, 0.0
        for keep, mix, scale in chebyshev_steps(lower, upper, steps):
            before, now = now, keep * before + mix * now + scale * (1 - eigenvalue * now)
        wanted = [np.polynomial.chebyshev.chebval(z / delta, [0] * steps + [1]) for z in (theta - eigenvalue, theta)]
        assert abs((1 - eigenvalue * now) - wanted[0] / wanted[1]) < 1e-14


def test_numbers_in_views():
    assert chebyshev_bounds("  eigenvalue targets used: min 0.16, max 1.76149\n  eigenvalues") == (0.16, 1.76149)
    assert chebyshev_bounds("  eigenvalue estimates used:  min = 0.1, max = 1.1\n") == (0.1, 1.1)
    assert richardson_scale("    damping factor=0.7\n") == 0.7
    assert richardson_scale("    using self-scale best computed damping factor\n") is None


def test_cycles_in_single_precision_lead_to_the_same_solution(capfd):
    """GAMG on an AIJ matrix with a jump of 1e4: cycles of floats precondition as well."""
    mat = laplacian_2d(30)
    scale = mat.createVecLeft()
    scale.setArray(np.where(np.arange(900) % 30 < 15, 1.0, 100.0))
    mat.diagonalScale(scale, scale)
    b = mat.createVecLeft()
    b.set(1.0)
    given = {"pc_type": "gamg", "pc_gamg_coarse_eq_limit": 20, "ksp_rtol": 1e-10, "ksp_view": ""}
    double, single = (solved("CG", mat, b, fe_pmat_precision=p, **given) for p in ("double", "single"))
    assert abs(double.iterations - single.iterations) <= 1
    assert np.abs(double.x - single.x).max() < 1e-8 * np.abs(double.x).max()
    assert "in single precision" in capfd.readouterr().out


@pytest.mark.parametrize("cycle", ["v", "w"])
def test_small_levels_joined_to_one_matrix(cycle):
    """Their visits are linear: the application is the same, to rounding, and to the last bit when repeated."""
    pc = multigrid(laplacian_2d(40), pc_mg_cycle_type=cycle, pc_gamg_coarse_eq_limit=4, pc_gamg_threshold=0.05)
    _, mirror = difference(pc)
    sizes = [level.total for level in mirror.levels]
    assert len(sizes) >= 3
    before = applied(mirror, sizes[-1])
    mirror.join(sizes[-2], 0)
    assert mirror._small == len(sizes) - 1
    joined = [applied(mirror, sizes[-1]) for _ in range(3)]  # the second and third are repetitions
    assert all(np.array_equal(joined[0], later) for later in joined)
    np.testing.assert_allclose(joined[0], before, rtol=0, atol=1e-13 * np.abs(before).max())
    mirror.join(sizes[0] - 1, sizes[0] - 1)  # no level is as small
    assert mirror._joined is None
    np.testing.assert_array_equal(applied(mirror, sizes[-1]), before)


def test_small_levels_solved_by_an_inverse():
    """Two levels with an exact solution on the coarse one, by numpy; a singular matrix is left to the visits."""
    pc = multigrid(laplacian_2d(40), pc_gamg_coarse_eq_limit=4, pc_gamg_threshold=0.05)
    _, mirror = difference(pc)
    sizes = [level.total for level in mirror.levels]
    mirror.join(0, sizes[-2])
    arrays, given = mirror.levels[-1].interpolation.arrays, np.cos(np.arange(sizes[-2]))
    b, x = arrays.to_device(given), arrays.zeros(sizes[-2])
    mirror._visit(len(sizes) - 1, b, x)
    dense = pc.getMGSmoother(len(sizes) - 1).getOperators()[0].convert("dense").getDenseArray()
    np.testing.assert_allclose(arrays.to_host(x, sizes[-2]), np.linalg.solve(dense, given), rtol=1e-11, atol=1e-13)
    assert inverse(laplacian(40, singular=True), Vectors(arrays, 40, MPI.COMM_SELF)) is None


@pytest.mark.parametrize("zero", [True, False])
def test_blocks_multiplied_into_the_matrix(zero):
    """Smoothing with M⁻¹ A and M⁻¹ b at hand is smoothing with M⁻¹."""
    pc = multigrid(laplacian_2d(30, block=2), mg_levels_pc_type="pbjacobi")
    made, mat = difference(pc)[1].levels[-1].smoother, pc.getOperators()[0]
    arrays, blocks = made.vectors.arrays, SellMatrix(inverse_blocks(mat), made.vectors.arrays)
    plain = Smoother(SellMatrix(mat, arrays), blocks, made.vectors, made.steps)
    product = SellMatrix(inverse_blocks(mat).matMult(mat), arrays)
    ours = BlockSmoother(product, blocks, plain.vectors, plain.steps)
    b, found = arrays.to_device(np.cos(np.arange(plain.vectors.count))), []
    for smoother in (plain, ours):
        x = arrays.to_device(np.sin(np.arange(plain.vectors.count)))
        smoother.begin(b)
        for _ in range(2):
            smoother.smooth(b, x, zero)
        found.append(arrays.to_host(x, plain.vectors.count))
    np.testing.assert_allclose(found[1], found[0], rtol=0, atol=1e-13 * np.abs(found[0]).max())


def applied(mirror, size: int) -> np.ndarray:
    arrays = mirror.levels[-1].interpolation.arrays
    out = arrays.zeros(size)
    mirror.apply(arrays.to_device(np.cos(np.arange(size))), out)
    return arrays.to_host(out, size)

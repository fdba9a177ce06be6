"""What PETSc refuses or survives and a solver on the device must too: other sizes, a zero matrix, one level."""

from __future__ import annotations

import pytest
from krylov_systems import laplacian, wave
from petsc4py import PETSc
from petsc_options import petsc_options

import petsc_hdg as fe
from petsc_hdg.errors import SolveError, our_error

METHODS = ["CG", "BiCGStab", "GMRES", "FGMRES", "Chebyshev"]


def solver(mat: PETSc.Mat, method: str, pc: str = "none") -> PETSc.KSP:
    ksp = PETSc.KSP().create(mat.comm)
    ksp.setOperators(mat)
    ksp.setType("python")
    ksp.setPythonContext(getattr(fe, method)())
    ksp.getPC().setType(pc)
    return ksp


def refusal(ksp: PETSc.KSP, b, x) -> str:
    """What the solver says of vectors or matrices; a current PETSc wraps it into an error of its own."""
    with pytest.raises((SolveError, PETSc.Error)) as caught:
        ksp.solve(b, x)
    error = our_error(caught.value)
    assert isinstance(error, SolveError)
    return str(error)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("sizes", [(20, 20), (12, 20), (20, 12)])
def test_vectors_of_another_size(method, sizes):
    b, x = (PETSc.Vec().createSeq(size) for size in sizes)
    said = refusal(solver(laplacian(12, PETSc.COMM_SELF), method), b, x)
    assert f"petsc_hdg.{method} has vectors of 12 entries, and one of 20 was given: mat.createVecs() makes" in said


@pytest.mark.parametrize("method", METHODS)
def test_a_matrix_that_is_not_square(method):
    mat = PETSc.Mat().createAIJ((3, 5), nnz=1, comm=PETSc.COMM_SELF)
    mat.assemble()
    x, b = mat.createVecs()
    said = refusal(solver(mat, method), b, x)
    assert "was given matrices of 3 by 5, 3 by 5: it takes square ones of one size" in said


@pytest.mark.parametrize("method", METHODS)
def test_a_zero_matrix_has_no_solution(method):
    mat = laplacian(12, PETSc.COMM_SELF)
    b = wave(mat)
    mat.zeroEntries()
    ksp = solver(mat, method)
    ksp.solve(b, b.duplicate())
    assert ksp.getConvergedReason() < 0


@pytest.mark.parametrize("method", METHODS)
def test_no_unknowns(method):
    mat = PETSc.Mat().createAIJ((0, 0), nnz=0, comm=PETSc.COMM_SELF)
    mat.assemble()
    ksp = solver(mat, method)
    ksp.solve(*mat.createVecs())
    assert ksp.getConvergedReason() > 0


def test_multigrid_of_one_level():
    mat = laplacian(12, PETSc.COMM_SELF)
    b, ksp = wave(mat), solver(mat, "CG", "mg")
    ksp.getPC().setMGLevels(1)
    ksp.solve(b, b.duplicate())
    assert ksp.getConvergedReason() > 0
    assert ksp.getPythonContext().preconditioner.note == "by PETSc (mg), staged: multigrid of one level"


def test_levels_without_unknowns_are_left_out():
    """In a box of cells all of whose vertices are on the boundary."""
    physics = fe.Physics(
        {"u": 1}, "f0[0] = -1;", "f1[0] = u_x[0]; f1[1] = u_x[1];", boundary=[fe.Dirichlet("boundary", 0.0)]
    )
    mesh = fe.Mesh.box((2, 1), simplex=False, comm=PETSc.COMM_SELF)
    with petsc_options(ksp_type="python", ksp_python_type="petsc_hdg.CG"):
        problem = fe.Problem(mesh, physics, degree=4, pmat="conforming", check_kernels=False)
        problem.solve()
    note = problem.snes.getKSP().getPythonContext().preconditioner.note
    assert note == "by PETSc (lu), staged" and problem.linear_iterations == 1

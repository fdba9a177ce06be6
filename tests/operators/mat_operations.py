"""A table of operations on the shell matrices of all schemes, each compared with the same on the converted AIJ."""

from __future__ import annotations

import numpy as np
from petsc4py import PETSc

from petsc_hdg import Dirichlet, Mesh, Physics, Problem, SpaceTime
from petsc_hdg.errors import PetscHdgError, our_error

CASES = {
    "cg": {"backend": "cg_gpu", "degree": 2},
    "cg assembled": {"backend": "cg_gpu", "degree": 1},
    "hdg auto": {"backend": "hdg_gpu", "degree": 1, "pmat": "none"},
    "hdg dbf assembled": {"backend": "hdg_gpu", "degree": 1, "hdg_trace_mat": "dbf", "pmat": "aij"},
    "hdg element": {"backend": "hdg_gpu", "degree": 1, "hdg_trace_mat": "element", "pmat": "conforming"},
    "sipg": {"backend": "sipg_gpu", "degree": 1},
    "sipg assembled": {"backend": "sipg_gpu", "degree": 1, "pmat": "aij"},
    "poly": {"backend": "poly_gpu", "degree": 1, "pmat": "none"},
    "slab": {"backend": "cg_gpu", "degree": 1, "pmat": "none", "poly_time_degree": 1},
}


def product(mat, x, name="mult"):
    y = x.duplicate()
    getattr(mat, name)(x, y)
    return y.getArray().copy()


def changed(operation):
    """The product with a matrix after an operation on it."""

    def run(mat, x):
        operation(mat, x)
        return product(mat, x)

    return run


def in_place(mat, x):
    mat.convert("aij")
    return product(mat, x)


def duplicated(values: bool):
    def run(mat, x):
        other = mat.duplicate(copy=values)
        mat.scale(3.0)
        other.assemble()
        return product(other, x)

    return run


def first_rows(comm):
    return PETSc.IS().createStride(1 if comm.rank == 0 else 0, comm=comm)


READS = {
    "mult": product,
    "multTranspose": lambda m, x: product(m, x, "multTranspose"),
    "multAdd": lambda m, x: added(m.multAdd, x),
    "multTransposeAdd": lambda m, x: added(m.multTransposeAdd, x),
    "createTranspose": lambda m, x: product(PETSc.Mat().createTranspose(m), x, "multTranspose"),
    "getDiagonal": lambda m, x: m.getDiagonal().getArray().copy(),
    "getDiagonalBlock": lambda m, x: own_rows(m.getDiagonalBlock(), x),
    "convert": lambda m, x: product(m.convert("aij", PETSc.Mat()), x),
    "convert in place": in_place,
    "norm": lambda m, x: np.array([m.norm(PETSc.NormType.FROBENIUS)]),
    "isSymmetric": lambda m, x: np.array([float(m.isSymmetric(1e-8))]),
    "equal": lambda m, x: np.array([float(m.equal(m))]),
    "getValue": lambda m, x: np.array([m.getValue(m.getOwnershipRange()[0], m.getOwnershipRange()[0])]),
    "transpose": lambda m, x: product(m.transpose(PETSc.Mat()), x),
    "duplicate with values": duplicated(True),
    "duplicate": duplicated(False),
}
CHANGES = {
    "scale": lambda m, x: m.scale(2.5),
    "scale twice": lambda m, x: (m.scale(2.5), m.assemble(), m.scale(-2.0)),
    "shift": lambda m, x: m.shift(0.5),
    "diagonalScale": lambda m, x: m.diagonalScale(x, x),
    "setDiagonal": lambda m, x: m.setDiagonal(x),
    "zeroEntries": lambda m, x: m.zeroEntries(),
    "zeroRows": lambda m, x: m.zeroRows(first_rows(m.comm)),
    "zeroRowsColumns": lambda m, x: m.zeroRowsColumns(first_rows(m.comm)),
    "setValue": lambda m, x: (m.setValue(m.getOwnershipRange()[0], m.getOwnershipRange()[0], 1.0), m.assemble()),
    "copy": lambda m, x: m.convert("aij", PETSc.Mat()).copy(m),
}
TABLE = {**READS, **{name: changed(run) for name, run in CHANGES.items()}}
AFTER_SCALING = ("multTranspose", "getDiagonal", "convert", "norm", "multAdd")


def scaled(run):
    """An operation on a matrix that was scaled."""
    return lambda mat, x: (mat.scale(2.5), run(mat, x))[1]


TABLE |= {f"{name} when scaled": scaled(READS[name]) for name in AFTER_SCALING}

ALWAYS = {"mult", "multAdd", "createTranspose", "getDiagonal", "convert", "convert in place", "equal", "scale"}
ALWAYS |= {"scale twice", "getDiagonal when scaled", "convert when scaled", "multAdd when scaled"}
ALWAYS |= {"multTranspose", "multTransposeAdd", "multTranspose when scaled"}
BY_ENTRIES = {"getDiagonalBlock", "norm", "norm when scaled"}
COPIES = {"duplicate with values", "duplicate"}


def added(multiply, x):
    y = x.duplicate()
    multiply(x, x, y)
    return y.getArray().copy()


def own_rows(block, x):
    """The product of a diagonal block with this rank's values."""
    given, out = block.createVecs()
    given.setArray(x.getArray())
    block.mult(given, out)
    return out.getArray().copy()


def works(case: str, operation: str) -> bool:
    """Whether a matrix has an operation; else it refuses it."""
    stored, assembled = case.startswith("hdg"), case.endswith("assembled")
    if operation in BY_ENTRIES:
        return assembled
    return operation in ALWAYS or (operation in COPIES and stored)


def problem_of(case: str, comm) -> Problem:
    rate = "(1 + u[0]*u[0])*u_t[0] + " if case == "slab" else ""
    physics = Physics(
        {"u": 1},
        f0=f"f0[0] = {rate}u[0]*u[0] + u_x[0];",
        f1="for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d];",
        boundary=[Dirichlet("left", "g[0] = x[1];")],
    )
    return Problem(Mesh.box([2, 2], simplex=True, comm=comm), physics, **CASES[case])


def matrices_of(case: str, comm):
    """The shell matrices of a case, and a function that linearizes them anew."""
    problem = problem_of(case, comm)
    state = problem.interpolate(lambda x: 0.3 + x[..., 0] * x[..., 1])
    if case == "slab":
        slab = SpaceTime(problem)
        slab.begin(state, 0.1, 0.3)
        slab.solution.setArray(np.sin(np.arange(*slab.solution.getOwnershipRange())))
        return [slab.jacobian], lambda: slab._linearize(None, slab.solution, slab.jacobian, None)
    calls = problem.callbacks

    def linearize():
        calls.forget()
        calls.linearize(None, state, calls.jacobian, calls.preconditioning)

    return [calls.jacobian], linearize


def check(case: str, comm) -> None:
    """All operations on the matrices of a case: those that it has are right, the others are refused on all ranks."""
    matrices, linearize = matrices_of(case, comm)
    x = matrices[0].createVecRight()
    x.setArray(1 + np.cos(np.arange(*x.getOwnershipRange())))
    for operation, run in TABLE.items():
        for mat in matrices:
            linearize()
            where = f"{operation} of '{case}' on {comm.size} ranks"
            if works(case, operation):
                expected, found = run(mat.convert("aij", PETSc.Mat()), x), run(mat, x)
                tolerance = 1e-5 if mat is not matrices[0] else 1e-11
                scale = 1 + np.abs(expected).max(initial=0)
                assert np.abs(found - expected).max(initial=0) <= tolerance * scale, where
            else:
                assert refuses(run, mat, x), where
        if operation == "convert in place":
            matrices, linearize = matrices_of(case, comm)  # the matrix is PETSc's now


def refuses(run, mat, x) -> bool:
    try:
        run(mat, x)
    except PetscHdgError as error:
        return "-fe_pmat aij" in str(error)
    except PETSc.Error as error:  # of 3.26 it wraps ours
        ours = our_error(error)
        return (
            "-fe_pmat aij" in str(ours) if ours is not None else error.ierr in (56, 83)
        )  # a method that the context lacks: PETSC_ERR_SUP, of 3.26 PETSC_ERR_USER
    return False

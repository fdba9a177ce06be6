"""Under mpiexec: trace formats against AIJ on random partitions; prints one JSON object of relative errors."""

import json

import numpy as np
from bare_trace import BareTrace
from petsc4py import PETSc
from sample_meshes import SHAPES
from trace_samples import congruent

from petsc_hdg.device.vecs import VecAccess
from petsc_hdg.krylov.matrices import sums_products
from petsc_hdg.operators.trace.matrix import TraceMatrix
from petsc_hdg.operators.trace.stores import create_format
from petsc_hdg.run import guarded

KINDS = ("dbf", "element", "congruent", "symmetric")
ESSENTIAL = {"whole": [("left", (0, 1))], "partial": [("left", (1,)), ("top", (0, 1))]}


def errors(cell: str, kind: str, essential: str) -> dict[str, float]:
    settings = {"comm": PETSc.COMM_WORLD, "partition_seed": 1, "symmetric": kind == "symmetric"}
    op = BareTrace(cell, 1, 2, ESSENTIAL[essential], **settings)
    assert op.mesh.comm.allreduce(op.dofmap.num_ghosts) > 0
    if kind == "congruent":  # cells of two shapes, each rank's own
        shape = np.arange(op.mesh.num_cells) % 2
        op.K, op.format = op.K[shape], congruent(op, shape)
    else:
        op.format = create_format(kind, op)
        op.format.share(None)
    op.fill(op.format, 3)
    aij = op.aij()
    mat = TraceMatrix(op, VecAccess(op.arrays)).as_mat(aij.getSizes()[0], aij.comm, PETSc.Vec.Type.STANDARD)
    x, y = mat.createVecs()
    x.setArray(np.random.default_rng(op.mesh.comm.rank).uniform(-1, 1, x.getLocalSize()))
    found = {}
    for name in ("mult", "multTranspose"):
        expected = y.duplicate()
        getattr(mat, name)(x, y)
        getattr(aij, name)(x, expected)
        found[name] = relative(y, expected)
    summing = sums_products(mat.getPythonContext())
    assert (summing is None) == (kind in ("dbf", "element"))
    if summing is not None:
        mat.mult(x, y)
        found["parts of x·y"] = parts_error(op, mat, summing, x, x.dot(y) / x.norm() / y.norm())
    found["diagonal"] = relative(mat.getDiagonal(), aij.getDiagonal())
    pc = PETSc.PC().create(aij.comm)
    pc.setOperators(mat)
    pc.setType("python")
    pc.setPythonType("petsc_hdg.FacetBlockJacobi")
    pc.setUp()
    pc.apply(x, y)
    found["block Jacobi"] = relative(y, block_solve(op, aij, x, pc.getPythonContext().blocks.layout))
    return found


def parts_error(op, mat, summing, x, expected: float) -> float:
    """How far the parts of x·A x of all ranks are from it, over |x| |A x|."""
    count, y = summing.num_parts, x.duplicate()
    summing.parts = op.arrays.to_device(np.full(max(1, count), np.nan))
    mat.mult(x, y)
    parts, summing.parts = op.arrays.to_host(summing.parts, count), None
    return abs(op.mesh.comm.allreduce(parts.sum()) / x.norm() / y.norm() - expected)


def block_solve(op, aij, x, layout) -> PETSc.Vec:
    """Solve with the blocks of this rank's facets, taken from AIJ."""
    start = x.getOwnershipRange()[0]
    values, y = x.getArray(), x.duplicate()
    solved = np.zeros_like(values)
    for numbers in layout.numbers[: layout.num_owned]:
        mine = numbers[numbers < op.dofmap.num_owned]
        block = aij.getValues(mine + start, mine + start)
        solved[mine] = np.linalg.solve(block, values[mine])
    y.setArray(solved)
    return y


def relative(got, expected) -> float:
    size = expected.norm(PETSc.NormType.INFINITY)
    assert size > 1e-3
    return (got - expected).norm(PETSc.NormType.INFINITY) / size


def run() -> None:
    cases = [(cell, kind, essential) for cell in SHAPES for kind in KINDS for essential in ESSENTIAL]
    PETSc.Sys.Print(json.dumps({" ".join(case): errors(*case) for case in cases}))


if __name__ == "__main__":
    guarded(run)

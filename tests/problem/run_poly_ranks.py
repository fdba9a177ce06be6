"""Norms of polytopic DG on random partitions: run_ranks.py says how it is called."""

import numpy as np
from petsc4py import PETSc
from petsc_options import petsc_options
from run_ranks import print_norms
from sample_condensed import by_name
from sample_meshes import DIM, box_mesh

import petsc_hdg as fe
from petsc_hdg.operators import JacobianContext
from petsc_hdg.options import Options
from petsc_hdg.problem import Problem
from petsc_hdg.run import guarded

CASES = {"triangle": ("convection", 9), "quadrilateral": ("elasticity", 7), "tetrahedron": ("tensor", 8)}


def degrees(x: np.ndarray) -> np.ndarray:
    """1 or 2 for each centroid."""
    return 1 + (x[:, 0] > 0.5)


def wave(problem, frequency: float) -> PETSc.Vec:
    components = problem.physics.num_components

    def values(x):
        return np.stack([np.cos(frequency * x[..., 0] + c + 2 * x[..., -1]) for c in range(components)], axis=-1)

    return problem.interpolate({problem.physics.fields[0].name: values})


def norms(mesh, name: str, count: int) -> dict:
    """Norms of F, J, J du and the penalties at a state given by coordinates, and the solution's."""
    mesh = fe.agglomerate(mesh, count, degrees=degrees)
    options = Options(backend="poly_gpu", degree=2, check_kernels=False)
    problem = Problem(mesh, by_name(name, DIM[mesh.cell]), options)
    for field in problem.physics.auxiliary:
        problem.set_auxiliary(field.name, lambda x: 1 + 0.5 * x[..., 0] * x[..., 1])
    u, du = wave(problem, 1.0), wave(problem, 3.0)
    f, y, d = (problem.create_vec() for _ in range(3))
    calls = problem.callbacks
    matrix = calls.assembled.mat
    calls.residual(None, u, f)
    calls.linearize(None, u, calls.jacobian, matrix)
    product = JacobianContext(problem.operator, problem.access)
    product.mult(None, du, y)
    product.getDiagonal(matrix, d)
    sizes = mesh.comm.allreduce(
        np.array([mesh.polytopes.count, mesh.num_cells, problem.discretization.dofmap.num_owned])
    )
    difference = y.copy()
    difference.axpy(-1.0, matrix * du)
    assert difference.norm() < 1e-12 * y.norm(), difference.norm() / y.norm()
    sigma = mesh.comm.allreduce(float(problem.operator.fine.penalties().sum()))
    return {
        "sizes": sizes.tolist(),
        "residual": f.norm(),
        "matrix": matrix.norm(PETSc.NormType.FROBENIUS),
        "diagonal": d.norm(),
        "action": y.norm(),
        "energy": y.dot(du),
        "penalties": sigma,
        "balance": mesh.polytopes.balance,
    }


def main(seed: int, faces: dict) -> dict:
    found = {}
    for cell in (cell for cell in CASES if cell in faces):
        name, count = CASES[cell]
        mesh = box_mesh(cell, seed=3, order_seed=seed, comm=PETSc.COMM_WORLD, partition_seed=seed)
        with petsc_options(ksp_type="preonly"):
            found[cell] = norms(mesh, name, count)
    return found


if __name__ == "__main__":
    guarded(lambda: print_norms(main))

"""Under mpiexec: solutions that are known up to constants or rigid motions, by every scheme; prints JSON.

run_null_space.py [CASE ...]: {case: {scheme: error}}.
"""

import json
import sys

import numpy as np
from mpi4py.MPI import MAX
from petsc4py import PETSc
from sample_meshes import box_mesh

import petsc_hdg as fe
from petsc_hdg.discretizations.dofmap import element_nodes
from petsc_hdg.options import BACKENDS, Options
from petsc_hdg.physics import library
from petsc_hdg.problem import Problem
from petsc_hdg.run import guarded


def error(physics, backend: str, name: str, exact) -> float:
    """The largest difference at the nodes of all cells between a field that a scheme finds and a function of places."""
    mesh = box_mesh("triangle", comm=PETSc.COMM_WORLD, partition_seed=4)
    problem = Problem(mesh, physics, Options(backend=backend, degree=2, check_kernels=False))
    with problem.reading(problem.solve()) as u:
        field = next(f for f in problem.operator.solution_fields(u, 0.0) if f.name == name)
    difference = field.values - exact(element_nodes(mesh, field.element.nodes))
    return problem.comm.allreduce(float(np.abs(difference).max(initial=0.0)), MAX)


def insulated(backend: str) -> float:
    """u = x² + xy - 7/12 by its source and fluxes alone, in the space of the scheme."""
    physics = fe.Physics(
        {"u": 1},
        "f0[0] = 2.0;",
        "for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
        boundary=[
            fe.Neumann("left", "g[0] = -x[1];"),
            fe.Neumann("right", "g[0] = 2 + x[1];"),
            fe.Neumann("bottom", "g[0] = -x[0];"),
            fe.Neumann("top", "g[0] = x[0];"),
        ],
    )
    return error(physics, backend, "u", lambda x: (x[..., :1] + x[..., 1:]) * x[..., :1] - 7 / 12)


TRACTIONS = {
    "left": "-5*x[1], x[1]",
    "right": "5 + 5*x[1], 1 - x[1]",
    "bottom": "-x[0], x[0]",
    "top": "x[0] - 1, 7 - x[0]",
}


def body(held=()) -> fe.Physics:
    """Plane strain u = (x² + xy, y² - xy) with λ = μ = 1 by its loads and what holds it."""
    loads = [fe.Neumann(side, "g[0] = {}; g[1] = {};".format(*text.split(","))) for side, text in TRACTIONS.items()]
    return library.elasticity(2, "f0[0] = 4.0; f0[1] = 8.0;", boundary=[*held, *loads])


def orthogonal(*modes):
    """The exact displacement less its part, in L2 of the square, in functions of places `modes`."""

    def exact(x):
        return np.stack([x[..., 0] ** 2 + x[..., 0] * x[..., 1], x[..., 1] ** 2 - x[..., 0] * x[..., 1]], axis=-1)

    points, weights = np.polynomial.legendre.leggauss(4)
    x = np.stack(np.meshgrid(points, points), axis=-1).reshape(-1, 2) / 2 + 0.5
    root = np.sqrt(np.outer(weights, weights)).reshape(-1, 1)
    inside = np.stack([(root * mode(x)).ravel() for mode in modes], axis=1)
    parts = np.linalg.lstsq(inside, (root * exact(x)).ravel(), rcond=None)[0]
    return lambda x: exact(x) - sum(part * mode(x) for part, mode in zip(parts, modes, strict=True))


def turn(x):
    return np.stack([-x[..., 1], x[..., 0]], axis=-1)


def along(axis: int):
    return lambda x: np.zeros(x.shape) + np.eye(2)[axis]


def free(backend: str) -> float:
    """A body without supports."""
    return error(body(), backend, "u", orthogonal(along(0), along(1), turn))


def roller(backend: str) -> float:
    """A body on rollers, which may slide up."""
    return error(body([fe.Dirichlet("left", 0.0, components=[0])]), backend, "u", orthogonal(along(1)))


def enclosed(backend: str) -> float:
    """Stokes flow (y², x²) in a box whose pressure x - 1/2 nothing fixes, nor says so."""
    physics = library.stokes(
        2,
        "f0[0] = 2.0 - 1.0; f0[1] = 2.0;",
        boundary=[fe.Dirichlet("boundary", "g[0] = x[1]*x[1]; g[1] = x[0]*x[0];", field="velocity")],
    )
    return error(physics, backend, "pressure", lambda x: x[..., :1] - 0.5)


CASES = {"insulated": insulated, "free": free, "roller": roller, "enclosed": enclosed}
SCHEMES = {case: BACKENDS for case in CASES} | {"enclosed": ("cg_gpu",)}  # others take fields of one degree


def run() -> None:
    found = {case: {backend: CASES[case](backend) for backend in SCHEMES[case]} for case in sys.argv[1:] or CASES}
    PETSc.Sys.Print(json.dumps(found))


if __name__ == "__main__":
    guarded(run)  # a rank that fails ends the others

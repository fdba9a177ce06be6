"""Under mpiexec: `run_direct.py` solves small systems that are not definite by default solvers and prints JSON."""

import json

import numpy as np
from petsc4py import PETSc

import petsc_hdg as fe
from petsc_hdg.physics import library
from petsc_hdg.problem.linear import direct_solvers
from petsc_hdg.run import guarded


def stokes(enclosed: bool) -> fe.Physics:
    """A flow that a force turns; its pressure is known up to a constant if it is enclosed."""
    sides = ["boundary"] if enclosed else ["left", "top"]
    walls = [fe.Dirichlet(side, 0.0, field="velocity") for side in sides]
    return library.stokes(2, "f0[0] = -x[1]; f0[1] = x[0]*x[0];", boundary=walls)


def wind(diffusion: float, more: str = "") -> fe.Physics:
    return fe.Physics(
        {"u": 1},
        f0=f"f0[0] = -1{more};",
        f1="for (d = 0; d < dim; ++d) f1[d] = eps*u_x[d] - u[0]*(d + 1);",
        constants={"eps": diffusion},
        boundary=[fe.Dirichlet("boundary", 0.0)],
    )


def helmholtz(wave: float) -> fe.Physics:
    return fe.Physics(
        {"u": 1},
        f0="f0[0] = -1 - k*k*u[0];",
        f1="for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
        constants={"k": wave},
        boundary=[fe.Dirichlet("boundary", 0.0)],
    )


def box(faces: int, comm=PETSc.COMM_SELF, simplex: bool = True) -> fe.Mesh:
    return fe.Mesh.box((faces, faces), simplex=simplex, comm=comm)


def body(lame_lambda: float) -> fe.Physics:
    """Definite, and the harder for multigrid the less compressible."""
    return library.elasticity(
        2, "f0[0] = -x[1]; f0[1] = x[0]*x[0];", lame_lambda=lame_lambda, boundary=fe.Dirichlet("boundary", 0.0)
    )


def layers() -> fe.Physics:
    """Diffusion that is 10⁴ times as strong along a direction that no mesh has."""
    return fe.Physics(
        {"u": 1},
        f0="f0[0] = -1;",
        f1="PetscReal s = 0.6*u_x[0] + 0.8*u_x[1]; f1[0] = 1e-4*u_x[0] + 0.6*s; f1[1] = 1e-4*u_x[1] + 0.8*s;",
        boundary=[fe.Dirichlet("boundary", 0.0)],
    )


def stretched(comm) -> fe.Problem:
    """Tetrahedra smoothed by factors of each rank's part."""
    mesh = fe.Mesh.box((4, 4, 4), upper=(1.0, 1.0, 0.01), comm=comm)
    return fe.Problem(mesh, helmholtz(0.0), degree=1, backend="sipg_gpu")


def modes(comm) -> fe.Problem:
    """Three components with convection: aggregates of fewer nodes than they have modes."""
    physics = fe.Physics(
        {"u": 3},
        f0="for (c = 0; c < 3; ++c) f0[c] = u[c]*u[c]*u[c] + 0.5*u[(c + 1) % 3] - 1;",
        f1="for (c = 0; c < 3; ++c) for (d = 0; d < dim; ++d) f1[c*dim + d] = u_x[c*dim + d] - u[c];",
        boundary=[fe.Dirichlet("left", 0.0)],
    )
    return fe.Problem(fe.Mesh.box((4, 4, 4), comm=comm), physics, degree=2, cg_condense=True)


CASES = {
    "enclosed": lambda comm: fe.Problem(box(8, comm), stokes(True), degree=2),
    "open": lambda comm: fe.Problem(box(8, comm), stokes(False), degree=2),
    "wind": lambda comm: fe.Problem(box(20, comm, simplex=False), wind(1e-3), degree=1),
    "rubber": lambda comm: fe.Problem(box(8, comm, simplex=False), body(5e3), degree=4),
    "stiff": lambda comm: fe.Problem(box(8, comm, simplex=False), body(20.0), degree=6),
    "layers": lambda comm: fe.Problem(box(8, comm), layers(), degree=2, backend="hdg_gpu"),
    "waves": lambda comm: fe.Problem(box(10, comm, simplex=False), helmholtz(20.0), degree=3, backend="hdg_gpu"),
}


def numbers(problem) -> dict:
    """Reason for LU, iterations, the part of the load that is left, and a number of the solution."""
    u, f = problem.solve(), problem.create_vec()
    problem.callbacks.residual(None, u, f)
    left = f.norm()
    problem.callbacks.residual(None, problem.create_vec(), f)
    energy = np.atleast_1d(problem.integral("u[0]*u[0]*(1 + x[0])", u))
    return {"direct": problem.direct, "its": problem.linear_iterations, "left": left / f.norm(), "energy": energy[0]}


def run() -> None:
    found = {name: numbers(make(PETSc.COMM_WORLD)) for name, make in CASES.items()}
    direct_solvers.MOST = 100  # as if it were large
    found["large stiff"] = numbers(CASES["stiff"](PETSc.COMM_WORLD))
    problem = stretched(PETSc.COMM_WORLD)
    found["stretched"] = numbers(problem) | {"factors": bool(problem.factors)}
    found["modes"] = numbers(modes(PETSc.COMM_WORLD))
    PETSc.Sys.Print(json.dumps(found))


if __name__ == "__main__":
    guarded(run)  # a rank that fails ends the others

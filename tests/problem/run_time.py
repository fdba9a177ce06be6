"""Runs in time on several ranks: the same solutions as on one, which each rank finds for itself.

mpiexec -n 3 python tests/problem/run_time.py
"""

from petsc4py import PETSc
from petsc_options import petsc_options
from sample_space_time import blobs, moving, moving_at_start, problem_of
from sample_time import HEATED, NONLINEAR, problem_in_time, start

from petsc_hdg.run import guarded

BACKENDS = ("cg_gpu", "hdg_gpu", "sipg_gpu", "poly_gpu")


def moved(backend: str, comm) -> dict[str, float]:
    """Errors of a linear run whose data depend on t."""
    problem = problem_of(moving(), blobs if backend == "poly_gpu" else None, 2, faces=3, comm=comm, backend=backend)
    problem.set_constants(cubic=1.0, rich=1.0)
    u = problem.solve_in_time(problem.interpolate(moving_at_start), 0.4, 0.1)
    return problem.errors(u, 0.4)


def newton(backend: str, comm) -> dict[str, float]:
    """Errors of a nonlinear run."""
    problem = problem_in_time(NONLINEAR, comm, backend=backend)
    return problem.errors(problem.solve_in_time(start(problem, 0.2), 0.4, 0.1, 0.2), 0.4)


def explicit(backend: str, comm) -> dict[str, float]:
    """Errors of a run by an explicit method whose mass matrix follows the solution."""
    problem = problem_in_time(HEATED, comm, backend=backend)
    with petsc_options(ts_type="rk"):
        return problem.errors(problem.solve_in_time(start(problem, 0.2), 0.204, 1e-3, 0.2), 0.4)


def transposed(backend: str, comm) -> dict[str, float]:
    """Norms of products and solves with the Jacobian and its transpose."""
    problem = problem_in_time(NONLINEAR, comm, backend=backend)
    ts, calls, u = problem.create_ts(), problem.callbacks, start(problem, 0.3)
    ksp = ts.getSNES().getKSP()
    calls.ijacobian(None, 0.3, u, u, 2.0, calls.jacobian, calls.preconditioning)
    ksp.setOperators(calls.jacobian, calls.preconditioning)
    found, y = {}, u.duplicate()
    for name in ("mult", "multTranspose", "solve", "solveTranspose"):
        getattr(calls.jacobian if name.startswith("mult") else ksp, name)(u, y)
        found[name] = y.norm()
    return found


def main() -> None:
    with petsc_options(ksp_rtol="1e-13"):
        compare()


def compare() -> None:
    world = PETSc.COMM_WORLD.tompi4py()
    runs = [(moved, backend) for backend in BACKENDS] + [(newton, "hdg_gpu"), (transposed, "hdg_gpu")]
    runs += [(explicit, "cg_gpu"), (explicit, "poly_gpu")]
    for run, backend in runs:
        alone, together = run(backend, PETSc.COMM_SELF), run(backend, PETSc.COMM_WORLD)
        worst = max(abs(together[name] - alone[name]) / abs(alone[name]) for name in alone)
        found = world.allgather((together, worst))
        assert all(other == found[0][0] for other, _ in found), (run.__name__, backend, found)
        assert max(worst for _, worst in found) < 1e-9, (run.__name__, backend, found)
    PETSc.Sys.Print(f"the same in time on {world.size} ranks")


if __name__ == "__main__":
    guarded(main)  # a rank that fails ends the others

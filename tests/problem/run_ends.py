"""mpiexec -n N python run_ends.py HOW SCHEME,… [options]: problems on all ranks and on each one, and the program's end.

HOW is where they are then: `given up`, by turns in a function and in a cycle of references, while the last rank gave up
an object after the one that held it; `kept` in a global; kept while all ranks have `raised` an exception that nobody
catches, one has (`raised on one`), all `exit` or are `interrupted`; or made by the first rank `alone`. `-faces 4,3` are
those of the box, `-in_time` adds steps in time.
"""

import sys

import petsc4py

petsc4py.init(sys.argv)

from petsc4py import PETSc  # noqa: E402

import petsc_hdg as fe  # noqa: E402

HOW, SCHEMES, COMM, KEPT = sys.argv[1], sys.argv[2].split(","), PETSc.COMM_WORLD, []
FACES = tuple(map(int, PETSc.Options().getString("faces", "4,3").split(",")))


def made(scheme: str, comm, cycle: bool):
    from petsc_hdg.physics import library  # not before: the ranks that make no problem know nothing of the package

    options, left = PETSc.Options(), fe.Dirichlet("left", 0.0)
    mesh = fe.Mesh.box(FACES, simplex=options.getBool("simplex", True), comm=comm)
    if options.getBool("in_time", False):
        flux = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
        problem = fe.Problem(mesh, fe.Physics({"u": 1}, "f0[0] = u_t[0] - 1.0;", flux, boundary=[left]), backend=scheme)
        u = problem.solve_in_time(problem.interpolate(0.0), 0.2, 0.1)
        problem.snes.setUp()  # of cells and trace, a solver in a solver
    else:
        problem = fe.Problem(mesh, library.poisson(boundary=[left]), backend=scheme)
        u = problem.solve()
    assert u.norm() > 0 and problem.integral("u[0]", u) > 0
    if cycle:
        problem.me, problem.solution = problem, u
    return problem, u


def give_up_a_part_late() -> None:
    """A preconditioner is destroyed with its solver on all ranks but the last, where Python has it longer."""
    from petsc_hdg.petsc import lifetimes

    ksp = PETSc.KSP().create(COMM)
    pc = ksp.getPC()
    if COMM.rank < COMM.size - 1:
        del pc
    del ksp
    lifetimes.destroy(COMM)


if HOW != "alone" or COMM.rank == 0:
    for number, name in enumerate(SCHEMES):
        for each in (PETSc.COMM_SELF,) if HOW == "alone" else (COMM, PETSc.COMM_SELF):
            found = made(name, each, cycle=number % 2 == 0)
            KEPT += [found] if HOW not in ("given up", "alone") else []
            found = None
if HOW == "given up":
    give_up_a_part_late()
print("solved", flush=True)
if HOW == "raised":
    raise ValueError("on all ranks")
if HOW == "raised on one" and COMM.rank == COMM.size - 1:
    raise ValueError("on one rank")
if HOW == "exit":
    sys.exit()
if HOW == "interrupted":
    raise KeyboardInterrupt

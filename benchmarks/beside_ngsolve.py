"""Whole programs beside NGSolve: what a user waits for, from the start of Python to a number of the solution.

    python benchmarks/beside_ngsolve.py -other PYTHON [-cases space plane …] [-repeat 3] [-json beside_ngsolve.json]

PYTHON is an interpreter with NGSolve (pip install ngsolve). Both programs solve on the same structured mesh of
simplices with elements of one degree, by one thread: ours with default options (cg_gpu on PoCL), without caches and
with full ones; NGSolve's by its usual solvers, BDDC-CG for diffusion in space, sparse Cholesky in time, UMFPACK for
Newton's method. Rows have the least processor seconds of all repetitions, in turns, and the numbers, which must agree.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve()
CASES = {
    "space": "-∇·((1 + x + sin² 3y) ∇u) = 1, 24 576 tetrahedra, degree 2",
    "plane": "-∇·((1 + u²) ∇u) = 50 x, 20 000 triangles, degree 3",
    "rubber": "neo-Hookean bar stretched by 0.3, 3072 tetrahedra, degree 2",
    "cavity": "Navier-Stokes, Re 100, Taylor-Hood, 3200 triangles, degrees 2 and 1",
    "heat": "50 steps of backward Euler, 8192 triangles, degree 2",
}
CACHES = {"PETSC_HDG_CACHE": "kernels", "POCL_CACHE_DIR": "pocl"}
AGREE = 2e-3  # relative difference of the numbers: heat begins at interpolants and at projections


def ours(case: str) -> tuple:
    """Unknowns, and the integral that both programs print."""
    import petsc4py

    import petsc_hdg as fe
    from petsc_hdg.physics import library

    petsc4py.init([sys.argv[0], "-fe_progress", "off", "-ts_type", "beuler"])

    zero, faces, degree, integrand = fe.Dirichlet("boundary", 0.0), (100, 100), 3, "u"
    if case == "space":
        faces, degree = (16, 16, 16), 2
        physics = fe.Physics({"u": 1}, "-1.0", "(1 + x[0] + PetscSqr(sin(3*x[1])))*u_x[d]", boundary=zero)
    elif case == "plane":
        physics = fe.Physics({"u": 1}, "-50*x[0]", "(1 + u*u)*u_x[d]", boundary=zero)
    elif case == "rubber":
        faces, degree, integrand = (8, 8, 8), 2, "u[0]"
        ends = [fe.Dirichlet("left", 0.0), fe.Dirichlet("right", [0.3, 0.0, 0.0])]
        physics = library.neo_hookean(3, boundary=ends)
    elif case == "cavity":
        faces, degree, integrand = (40, 40), 2, "u[0]*u[0]"
        walls = fe.Dirichlet(["left", "right", "bottom"], 0.0, field="u")
        lid = fe.Dirichlet("top", ["16*PetscSqr(x[0]*(1 - x[0]))", 0.0], field="u")
        physics = fe.Physics(
            {"u": 2, "p": fe.Field(1, degree_offset=-1)},
            {"u": "u[0]*u_x[c*2] + u[1]*u_x[c*2 + 1]", "p": "u_x[0] + u_x[3]"},
            {"u": "0.01*u_x[c*2 + d] - (c == d ? p : 0.0)"},
            boundary=[lid, walls],
        )
    else:
        faces, degree = (64, 64), 2
        physics = fe.Physics({"u": 1}, "u_t - 1", "u_x[d]", boundary=zero)
    problem = fe.Problem(fe.Mesh.box(faces), physics, degree=degree)
    begin = "sin(PETSC_PI*x[0])*sin(PETSC_PI*x[1])"
    u = problem.solve_in_time(problem.interpolate(begin), 0.5, 0.01) if case == "heat" else problem.solve()
    return problem.num_unknowns, float(problem.integral(integrand, u))


def theirs(case: str) -> tuple:
    """The same by NGSolve."""
    import ngsolve as ng
    from ngsolve.meshes import MakeStructured2DMesh, MakeStructured3DMesh

    ng.SetNumThreads(1)
    x, y, dx, grad, sides = ng.x, ng.y, ng.dx, ng.grad, "left|right|top|bottom"
    n = {"space": 16, "plane": 100, "rubber": 8, "cavity": 40, "heat": 64}[case]
    if case in ("space", "rubber"):
        mesh = MakeStructured3DMesh(hexes=False, nx=n, ny=n, nz=n)
    else:
        mesh = MakeStructured2DMesh(quads=False, nx=n, ny=n)
    if case == "rubber":
        space = ng.VectorH1(mesh, order=2, dirichlet="left|right")
    elif case == "cavity":
        space = ng.VectorH1(mesh, order=2, dirichlet=sides) * ng.H1(mesh, order=1) * ng.NumberSpace(mesh)
    else:
        space = ng.H1(mesh, order=3 if case == "plane" else 2, dirichlet=".*" if case == "space" else sides)
    u, v = space.TnT()
    found, a = ng.GridFunction(space), ng.BilinearForm(space)
    if case == "space":
        a += (1 + x + ng.sin(3 * y) ** 2) * grad(u) * grad(v) * dx
        f, preconditioner = ng.LinearForm(1 * v * dx).Assemble(), ng.Preconditioner(a, "bddc")
        a.Assemble()
        found.vec.data = ng.CGSolver(a.mat, preconditioner.mat, maxiter=500, tol=1e-8) * f.vec
    elif case == "heat":
        f, mass = ng.LinearForm(0.01 * v * dx).Assemble(), ng.BilinearForm(u * v * dx).Assemble()
        a += u * v * dx + 0.01 * grad(u) * grad(v) * dx
        a.Assemble()
        found.Set(ng.sin(ng.pi * x) * ng.sin(ng.pi * y))
        inverse = a.mat.Inverse(space.FreeDofs(), "sparsecholesky")
        for _ in range(50):
            found.vec.data = inverse * (mass.mat * found.vec + f.vec).Evaluate()
    elif case == "plane":
        a += (1 + u * u) * grad(u) * grad(v) * dx - 50 * x * v * dx
    elif case == "rubber":
        F = ng.Id(3) + ng.Grad(u)
        energy = 0.5 * (ng.Trace(F.trans * F) - 3) - ng.log(ng.Det(F)) + 0.5 * ng.log(ng.Det(F)) ** 2
        a += ng.Variation(energy * dx)
        found.Set(ng.CF((0.3 * x, 0, 0)), ng.BND)
    else:
        (u, p, mean), (v, q, other) = space.TnT()
        a += (0.01 * ng.InnerProduct(ng.Grad(u), ng.Grad(v)) + ng.InnerProduct(ng.Grad(u) * u, v)) * dx
        a += (-p * ng.div(v) - q * ng.div(u) + mean * q + other * p) * dx
        found.components[0].Set(ng.CF((16 * (x * (1 - x)) ** 2, 0)), definedon=mesh.Boundaries("top"))
    if case in ("plane", "rubber", "cavity"):
        _newton(ng, a, found)
    value = {"rubber": found[0], "cavity": found.components[0][0] ** 2 if case == "cavity" else None}.get(case, found)
    return space.ndof, float(ng.Integrate(value * dx, mesh))


def _newton(ng, a, found) -> None:
    """Newton's method until steps are small in the energy."""
    residual, step = found.vec.CreateVector(), found.vec.CreateVector()
    for _ in range(20):
        a.Apply(found.vec, residual)
        a.AssembleLinearization(found.vec)
        step.data = a.mat.Inverse(a.space.FreeDofs(), "umfpack") * residual
        found.vec.data -= step
        if abs(ng.InnerProduct(step, residual)) < 1e-20:
            return


def run(python: str, how: str, case: str, caches: Path) -> dict:
    """A program in a process of its own: its numbers and processor seconds."""
    own = {name: str(caches / folder) for name, folder in CACHES.items()}
    one = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "POCL_MAX_PTHREAD_COUNT": "1", "PETSC_OPTIONS": ""}
    call = [python, "-W", "ignore", str(HERE), "-run", how, case]
    path = (
        {"PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), os.environ.get("PYTHONPATH", "")])}
        if how == "ours"
        else {}
    )
    done = subprocess.run(call, env={**os.environ, **own, **one, **path}, capture_output=True, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def main() -> None:
    """Print a line for each case; with -json write the rows too."""
    if sys.argv[1:2] == ["-run"]:
        import resource

        unknowns, value = {"ours": ours, "theirs": theirs}[sys.argv[2]](sys.argv[3])
        spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        seconds = sum(part.ru_utime + part.ru_stime for part in spent)
        print(json.dumps({"unknowns": unknowns, "value": value, "seconds": round(seconds, 2)}))
        return
    parser = argparse.ArgumentParser(allow_abbrev=False, description=__doc__.splitlines()[0])
    parser.add_argument("-other", required=True, help="Python with NGSolve")
    parser.add_argument("-cases", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("-repeat", type=int, default=3)
    parser.add_argument("-json", type=Path)
    given, rows = parser.parse_args(), []
    for case in given.cases:
        found: dict = {"cold": [], "warm": [], "ngsolve": []}
        for _ in range(given.repeat):
            with tempfile.TemporaryDirectory() as caches:
                for name in ("cold", "warm"):
                    found[name].append(run(sys.executable, "ours", case, Path(caches)))
                found["ngsolve"].append(run(given.other, "theirs", case, Path(caches)))
        value, other = found["warm"][0]["value"], found["ngsolve"][0]["value"]
        if abs(value - other) > AGREE * abs(other):
            sys.exit(f"{case}: {value} and {other} do not agree")
        least = {name: min(each["seconds"] for each in of) for name, of in found.items()}
        rows.append(
            {"case": case, "what": CASES[case], "unknowns": found["warm"][0]["unknowns"], "value": value, **least}
        )
        print(*rows[-1].values(), flush=True)
    if given.json:
        given.json.write_text(json.dumps(rows, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()

"""Gorlani's problem: -Δu = f on the unit square of n × n squares, by matrix-free interior penalty of degree 1 to 40.

    python examples/poisson_sipg.py -solution A -n 4,8 -degrees 2,3
    python examples/poisson_sipg.py -solution E -n 4,8,16,32,64 -degrees 2,3,4,5,6 -fe_device gpu

Solutions A to E and tables 4.6 to 4.10 are those of P. Gorlani's thesis (Politecnico di Milano, 2015), printed beside.
Its entries hold for the penalty 200 p²/h on all facets (the text says 100), which is the default here, and for
norms by the rule of the cells with p + 1 Gauss-Lobatto points in each direction, where the solution superconverges: L2
falls as h^(p+2). H1 is the full norm. With -one_cell the mesh is one square and the penalty 100, as in its tables 4.3
to 4.5. Solutions C and D are polynomials: at p ≥ 3 and p ≥ 2 their errors are rounding.

Scheme: interior penalty (-fe_backend sipg_gpu), nodes and quadrature at the Gauss-Lobatto points, Dirichlet data by
Nitsche's method; conjugate gradients whose matrix is a kernel.
Things to try: -fe_view, -sipg_penalty shahbazi -sipg_penalty_scale 1, -fe_quadrature_degree 8, -sipg_kernel split,
-ksp_monitor, -ksp_rtol 1e-6, -pc_type jacobi.
"""

import json
import sys
from pathlib import Path

import numpy as np
import petsc4py
import sympy

import petsc_hdg as fe
from petsc_hdg.physics import Symbols

petsc4py.init(sys.argv)

from petsc4py import PETSc

from petsc_hdg.discretizations.dofmap import element_nodes

x, y = Symbols(2, {"u": 1}).x
SOLUTIONS = {
    "A": x * (1 - x) * y * (1 - y) * sympy.exp(x - y),
    "B": sympy.sin(2 * sympy.pi * y) * (x - x**2) * sympy.exp(3 * x),
    "C": x**3 * y * (1 - y),
    "D": x**2 * y**2,
    "E": sympy.cos(8 * sympy.pi * x) + sympy.cos(8 * sympy.pi * y),
}
PAPER = json.loads((Path(__file__).parents[1] / "benchmarks" / "papers" / "gorlani_2015.json").read_text())


def create_problem(name: str, n: int, degree: int, **settings) -> fe.Problem:
    """The problem with a known solution by name, on n × n squares; what the user gives as an option wins."""
    exact = SOLUTIONS[name]
    physics = fe.Physics(
        {"u": 1},
        f0=exact.diff(x, 2) + exact.diff(y, 2),
        f1="for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
        boundary=[fe.Dirichlet("boundary", "exact")],
        exact=exact,
        name=f"Poisson {name}",
    )
    settings = {"sipg_penalty": "paper", "sipg_penalty_scale": 2.0, **settings}
    mesh = fe.Mesh.box((n, n), simplex=False)
    return fe.Problem(mesh, physics, backend="sipg_gpu", degree=degree, **settings)


def errors(problem: fe.Problem, u: PETSc.Vec, name: str) -> dict[str, float]:
    """L2, H1 and largest error, all at the nodes of the cells, which are squares. Collective."""
    disc, exact = problem.discretization, SOLUTIONS[name]
    side = problem.mesh.comm.allreduce(problem.mesh.num_cells) ** -0.5
    points, weights = disc.quadrature.points, disc.quadrature.weights * side**2
    table = disc.element.tabulate(points)  # [1 + direction, point, basis]
    places = element_nodes(problem.mesh, points)
    found = np.einsum("kqb,cb->kcq", table, problem.cell_values(u)["u"][..., 0])
    wanted = [
        np.broadcast_to(sympy.lambdify((x, y), e)(places[..., 0], places[..., 1]), found[0].shape)
        for e in (exact, exact.diff(x), exact.diff(y))
    ]
    # Cells may be turned: reference gradients times the inverse Jacobian [cell, reference, physical].
    corners = problem.mesh.geometry.nodes[problem.mesh.geometry.cell_nodes[: problem.mesh.num_cells]]
    inverse = np.linalg.inv((corners[:, 1:3] - corners[:, :1]).swapaxes(1, 2))
    slopes = np.einsum("kcq,ckd->dcq", found[1:], inverse)
    difference = np.stack([found[0], *slopes]) - wanted
    sums = problem.comm.allreduce(np.einsum("kcq,kcq,q->k", difference, difference, weights))
    largest = max(problem.comm.allgather(np.abs(difference[0]).max(initial=0)))
    return {"L2": sums[0] ** 0.5, "H1": sums.sum() ** 0.5, "Linf": float(largest)}


def paper_row(name: str, n: int, degree: int) -> dict:
    """The paper's errors, {} where it has none."""
    many, one = PAPER["tables4_6_to_4_10_errors"], PAPER["tables4_3_to_4_5_one_cell_penalty_100"]
    rows = one[name] if n == 1 else [row for row in many[name] if row["n"] == n]
    return next((row for row in rows if row["p"] == degree), {})


@fe.main
def main():
    options = PETSc.Options()
    name, one_cell = options.getString("solution", "A"), options.getBool("one_cell", False)
    sizes = [1] if one_cell else [int(n) for n in options.getString("n", "4,8").split(",")]
    for option, value in {"ksp_rtol": "1e-15", "ksp_max_it": "20000"}.items():
        if not options.hasName(option):
            options[option] = value
    for degree in map(int, options.getString("degrees", "2,3").split(",")):
        for n in sizes:
            settings = {"sipg_penalty_scale": 1 / degree**2} if one_cell else {}
            problem = create_problem(name, n, degree, **settings)
            u = problem.solve()
            found, paper = errors(problem, u, name), paper_row(name, n, degree)
            columns = "   ".join(f"{k} {v:.5e} ({paper.get(k, float('nan')):.5e})" for k, v in found.items())
            PETSc.Sys.Print(f"{name}   n {n:3d}   p {degree}   {columns}   iterations {problem.linear_iterations}")

"""Stretched cells and turned tensors: levels without a matrix beside others, and what the default is.

    python benchmarks/stretched_cells.py -fe_device cpu -u_rows "sipg_gpu:tetrahedron:1:10:10,100"

Rows are scheme:cells:degree:boxes along each axis:stretches, of -∇·((1 + x² + y)∇u) = 1 with natural conditions on half
of the sides. With :turned behind it a row is of the unit square or cube, and diffusion is as strong as that stretch
would make it, along 30° from the first axis. Each line has iterations, seconds of the first solve with all kernels in
the cache, and of another one.
"""

from __future__ import annotations

import sys
import time

import petsc4py

import petsc_hdg as fe

petsc4py.init(sys.argv)

from petsc4py import PETSc  # noqa: E402

from petsc_hdg.database import defaults_in_database  # noqa: E402
from petsc_hdg.mesh.cell_list import box_cell  # noqa: E402

ROWS = "cg_gpu:tetrahedron:2:15:10,100;sipg_gpu:triangle:1:65:10,100;sipg_gpu:tetrahedron:1:10:10,100"
WAYS = {
    "default": {},
    "two levels": {"fe_pmat": "conforming"},
    "AMG": {"fe_pmat": "aij", "pc_type": "python", "pc_python_type": "petsc_hdg.AMG"},
}


def physics(dim: int, turned: float) -> fe.Physics:
    """Diffusion with a variable coefficient, and with a tensor turned from all edges where `turned` is not 1."""
    f1 = "for (d = 0; d < dim; ++d) f1[d] = (1 + x[0]*x[0] + x[1])*u_x[d];"
    if turned != 1:
        f1 = (
            "const PetscReal s = sqrt(0.75)*u_x[0] + 0.5*u_x[1], weak = 1/(turned*turned);"
            "for (d = 0; d < dim; ++d) f1[d] = weak*u_x[d] + (d == 0)*sqrt(0.75)*s + (d == 1)*0.5*s;"
        )
    sides = [fe.Dirichlet(name, 0.0) for name in ("left", "bottom", "front")[:dim]]
    return fe.Physics({"u": 1}, f0="f0[0] = -1;", f1=f1, boundary=sides, constants={"turned": turned})


def measure(mesh, scheme: str, degree: int, turned: float) -> str:
    """One line of a problem by the options that are set."""
    for _ in range(2):  # the first one compiles
        start = time.perf_counter()
        problem = fe.Problem(mesh, physics(mesh.dim, turned), backend=scheme, degree=degree)
        problem.solve()
        first = time.perf_counter() - start
    start = time.perf_counter()
    problem.solve()
    again, count = time.perf_counter() - start, problem.snes.getKSP().getIterationNumber()
    kind = problem.snes.getKSP().getPC().getType()
    return f"{problem.num_unknowns:8} unknowns, {count:4} iterations, {first:6.2f} s, {again:6.2f} s, {kind}"


def main() -> None:
    """All rows."""
    for row in PETSc.Options().getString("u_rows", ROWS).split(";"):
        scheme, cell, degree, boxes, stretches, *more = row.split(":")
        dim, simplex = next(kind for kind in ((2, True), (2, False), (3, True), (3, False)) if box_cell(*kind) == cell)
        for stretch in map(float, stretches.split(",")):
            upper = (*(1.0,) * (dim - 1), 1.0 if more else 1 / stretch)
            mesh = fe.Mesh.box((int(boxes),) * dim, simplex, upper=upper)
            for way, options in WAYS.items():
                strong = {"pc_amg_strong": "0.75"} if way == "AMG" and scheme != "cg_gpu" else {}
                with defaults_in_database("", {**options, **strong}, unless="pc_type"):
                    line = measure(mesh, scheme, int(degree), stretch if more else 1.0)
                print(
                    f"{scheme:8} {cell:14} degree {degree} 1:{stretch:<4g} {' '.join(more)} {way:10} {line}", flush=True
                )


if __name__ == "__main__":
    main()

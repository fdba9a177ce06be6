"""Products with the Jacobian on a CPU: by kernels and by stored entries.

    python benchmarks/stored_products.py -fe_device cpu -u_rows "cg_gpu:tetrahedron:2:24,sipg_gpu:triangle:1:150"

Rows are scheme:cells:degree:boxes along each axis, of -∇·((1 + x² + y)∇u) = 1. Each line has the milliseconds of both
products, their ratio on the cores that OpenCL has, and in how many products by kernels the entries are computed.
problem/stored_products.py has these ratios times the cores.
"""

from __future__ import annotations

import sys
import time

import petsc4py

import petsc_hdg as fe

petsc4py.init(sys.argv)

from petsc4py import PETSc  # noqa: E402

from petsc_hdg.mesh.cell_list import box_cell  # noqa: E402

ROWS = (
    "cg_gpu:triangle:1:300,cg_gpu:triangle:2:200,cg_gpu:triangle:3:140,cg_gpu:quadrilateral:1:300,"
    "cg_gpu:quadrilateral:2:200,cg_gpu:tetrahedron:1:40,cg_gpu:tetrahedron:2:24,cg_gpu:hexahedron:1:40,"
    "cg_gpu:hexahedron:2:20,sipg_gpu:triangle:1:150,sipg_gpu:triangle:2:110,sipg_gpu:triangle:3:80,"
    "sipg_gpu:quadrilateral:1:150,sipg_gpu:quadrilateral:2:100,sipg_gpu:tetrahedron:1:20,sipg_gpu:tetrahedron:2:10"
)
REPEATS = 7


def least(call) -> float:
    """Seconds of the fastest of some calls, after one."""
    call()
    found = []
    for _ in range(REPEATS):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)


def measure(scheme: str, cell: str, degree: int, boxes: int) -> str:
    """One line."""
    dim = 2 if cell in ("triangle", "quadrilateral") else 3
    simplex = cell == box_cell(dim, True)
    f1 = "for (d = 0; d < dim; ++d) f1[d] = (1 + x[0]*x[0] + x[1])*u_x[d];"
    physics = fe.Physics({"u": 1}, "-1", f1, boundary=[fe.Dirichlet("boundary", 0.0)])
    mesh = fe.Mesh.box((boxes,) * dim, simplex=simplex)
    problem = fe.Problem(mesh, physics, backend=scheme, degree=degree, pmat="aij", products="kernels")
    calls, x, y = problem.callbacks, problem.create_vec(), problem.create_vec()
    calls.linearize(None, x, calls.jacobian, calls.preconditioning)
    computed = least(lambda: calls.assembled.update())
    x.setRandom()
    kernels, stored = (least(lambda mat=mat: mat.mult(x, y)) for mat in (calls.jacobian, calls.assembled.mat))
    cores = problem.device.cl_device.max_compute_units
    return (
        f"{scheme:9}{cell:14}{degree} {problem.num_unknowns:8} unknowns, {1e3 * kernels:7.2f}, {1e3 * stored:6.2f} ms, "
        f"ratio {kernels / stored:5.2f} on {cores} cores, entries in {computed / kernels:4.1f} products"
    )


def main() -> None:
    for row in PETSc.Options().getString("u_rows", ROWS).split(","):
        scheme, cell, degree, boxes = row.split(":")
        print(measure(scheme, cell, int(degree), int(boxes)), flush=True)


if __name__ == "__main__":
    main()

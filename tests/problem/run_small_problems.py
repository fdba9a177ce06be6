"""Body of tests/problem/test_small_problems.py: problems of few unknowns by default solvers, as JSON on rank 0."""

from __future__ import annotations

import json

from mpi4py import MPI

import petsc_hdg as fe

CASES = (
    ("hdg_gpu", False, (1, 1), 1), ("hdg_gpu", True, (1, 1), 2), ("cg_gpu", True, (1, 1), 2),
    ("cg_gpu", True, (2, 2, 2), 1), ("sipg_gpu", True, (1, 1), 2),
)  # fmt: skip


def physics(components: int) -> fe.Physics:
    """-Δu + u = 1 for each component."""
    zero = [0.0] * components if components > 1 else 0.0
    return fe.Physics(
        {"u": components},
        "".join(f"f0[{c}] = u[{c}] - 1.0; " for c in range(components)),
        f"for (d = 0; d < {components}*dim; ++d) f1[d] = u_x[d];",
        boundary=[fe.Dirichlet("boundary", zero)],
    )


found = []
for backend, simplex, faces, components in CASES:
    problem = fe.Problem(fe.Mesh.box(faces, simplex=simplex), physics(components), backend=backend, check_kernels=False)
    u, f = problem.solve(), problem.create_vec()
    problem.callbacks.residual(None, u, f)
    found.append([problem.num_unknowns, problem.linear_iterations, f.norm(), problem.integral("u[0]", u)])
if MPI.COMM_WORLD.rank == 0:
    print(json.dumps(found))

"""The doctor's small solve: a problem whose exact solution the elements contain."""

from __future__ import annotations


def largest_error(choice: str = "any") -> tuple[float, int]:
    """Error in L2 and iterations for -Δu = 0 on 8 × 8 × 2 triangles, u = x + 2y on the boundary, on device `choice`."""
    import petsc_hdg as fe

    exact = "u[0] = x[0] + 2 * x[1];"
    physics = fe.Physics(
        {"u": 1},
        f0=None,
        f1="for (PetscInt d = 0; d < dim; ++d) f1[d] = u_x[d];",
        boundary=[fe.Dirichlet("boundary", "exact")],
        exact={"u": exact},
    )
    problem = fe.Problem(fe.Mesh.box([8, 8]), physics, fe.Options(device=choice, degree=1))
    u = problem.solve()
    return problem.errors(u)["L2"], problem.linear_iterations

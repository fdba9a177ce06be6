"""A space-time slab with local steps, degrees 1 and 2 and space-time total degree: prints one JSON object of norms."""

import json

from petsc4py import PETSc
from petsc_options import petsc_options
from sample_space_time import blobs, cyclic_steps, moving, moving_at_start, problem_of

from petsc_hdg.problem import SpaceTime
from petsc_hdg.run import guarded


def main() -> None:
    with petsc_options(ksp_rtol="1e-13"):
        problem = problem_of(moving(), blobs, 2, comm=PETSc.COMM_WORLD, degrees=lambda x: 2 + (x[:, 0] > 0.5))
        problem.set_constants(linear=1.0, rich=0.0)
        space_time = SpaceTime(problem, 2, "total", cyclic_steps(problem, [1, 2, 3]))
        norms = space_time.norms()
        end = space_time.march(problem.interpolate(moving_at_start), 0.0, 0.4, 2, norms)
        exact = norms.values["L2(L2)"]
        problem.set_constants(cubic=1.0, rich=1.0)
        norms = space_time.norms()
        end = space_time.march(problem.interpolate(moving_at_start), 0.0, 0.4, 2, norms)
    x, f = space_time.solution, space_time.create_vec()
    space_time._residual(space_time.snes, x * 2, f)
    product = space_time.create_vec()
    space_time.jacobian.mult(x, product)
    found = {
        "ranks": problem.comm.size,
        "sizes": [problem.num_unknowns, space_time.num_unknowns],
        "matrix": space_time.matrix.norm(PETSc.NormType.FROBENIUS),
        "residual": f.norm(),
        "product": product.norm(),
        "solution": end.norm(),
        "L2(L2)": norms.values["L2(L2)"],
        "exact": exact,
    }
    PETSc.Sys.Print(json.dumps(found))


if __name__ == "__main__":
    guarded(main)  # a rank that fails ends the others

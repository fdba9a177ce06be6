"""Gas along a flat plate at Re 10⁴ and Mach 0.2, steady: skin friction beside Blasius' boundary layer.

    python examples/flat_plate_hdg.py -along 12 -up 14

The compressible Navier-Stokes equations in units of the free stream and of the length of the plate, 0 < x < 1 on y = 0.
The plane before it is one of symmetry; behind x = 1 the pressure is that of the free stream, elsewhere at a distance of
4 waves leave by characteristics. Blasius' local skin friction is 0.664 / √(x Re).

Scheme: hybridizable DG on rectangles, finer towards the plate and its leading edge; pseudo-transient continuation from
the free stream.
Things to try: -height 10 (a wider domain), -reynolds 1e5 -grade 8, -flux roe, -fe_degree 3, -ts_monitor.
"""

import sys

import numpy as np
import petsc4py

import petsc_hdg as fe
from petsc_hdg.physics import library
from petsc_hdg.physics.library import gas

petsc4py.init(sys.argv)

from petsc4py import PETSc

STEADY = {"ts_type": "pseudo", "ts_pseudo_increment": 1.5, "ts_max_steps": 60, "ksp_type": "preonly", "pc_type": "lu"}


def channel(ahead: int, along: int, up: int, height: float, grade: float) -> fe.Mesh:
    """Rectangles on -height < x < 1, 0 < y < height."""
    x = np.concatenate([-np.geomspace(height, 0.02, ahead), np.linspace(0, 1, along + 1) ** 1.7])
    y = height * np.expm1(grade * np.linspace(0, 1, up + 1)) / np.expm1(grade)
    i, j = (each.ravel() for each in np.meshgrid(np.arange(len(x) - 1), np.arange(up)))
    first = j * len(x) + i
    cells = np.stack([first, first + 1, first + len(x), first + len(x) + 1], axis=1)
    mesh = fe.Mesh.from_cells(cells, np.stack(np.meshgrid(x, y), axis=-1).reshape(-1, 2), cell="quadrilateral")
    mesh.name_boundary("plate", lambda x: (x[..., 1] == 0) & (x[..., 0] >= 0))
    mesh.name_boundary("before", lambda x: (x[..., 1] == 0) & (x[..., 0] <= 0))
    mesh.name_boundary("behind", lambda x: x[..., 0] == 1)
    return mesh


@fe.main
def main():
    options = PETSc.Options()
    for name, value in STEADY.items():
        if not options.hasName(name):
            options[name] = value
    reynolds, mach, height = (options.getReal(*given) for given in (("reynolds", 1e4), ("mach", 0.2), ("height", 4.0)))
    sizes = (options.getInt(*given) for given in (("ahead", 7), ("along", 10), ("up", 12)))
    stream = [1.0, 1.0, 0.0, 1 / (1.4 * 0.4 * mach**2) + 0.5]
    state = " ".join(f"w[{c}] = {value!r};" for c, value in enumerate(stream))
    physics = library.compressible_navier_stokes(
        2,
        gas.RATE,
        mach=mach,
        reynolds=reynolds,
        flux=options.getString("flux", "lax_friedrichs"),
        boundary=[
            gas.no_slip_wall("plate"),
            gas.slip_wall("before"),
            gas.pressure_outflow("behind", "1/(gamma*mach*mach)"),
            gas.far_field("boundary", state),
        ],
    )
    mesh = channel(*sizes, height, options.getReal("grade", 6.0))
    problem = fe.Problem(mesh, physics, backend="hdg_gpu", degree=2)
    u = problem.solve_in_time(problem.interpolate(stream), 1e7, dt=0.05)
    drag = -2 * problem.flux("plate", u, problem.time)[1]
    friction = problem.field("2/reynolds*u_x[3]/u[0]", u, problem.time)  # 2/Re ∂v₀/∂y at a wall
    x = np.linspace(0.2, 0.8, 4)
    PETSc.Sys.Print(f"{problem.num_unknowns} unknowns, {problem.time_steps} steps   drag coefficient {drag:.5f}")
    for place, found in zip(x, friction.at(np.stack([x, 0 * x], axis=1))[:, 0], strict=True):
        blasius = 0.664 / np.sqrt(place * reynolds)
        PETSc.Sys.Print(
            f"x {place:.1f}   skin friction {found:.5f}   Blasius {blasius:.5f}   ratio {found / blasius:.3f}"
        )

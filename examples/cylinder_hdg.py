"""Gas around a circular cylinder at Re 40 and Mach 0.2, steady: the drag, and the pair of eddies behind it.

    python examples/cylinder_hdg.py -around 32 -out 16 -u_picture cylinder.png

The compressible Navier-Stokes equations in units of the free stream and of the diameter. The wall has no velocity and
no heat flux; at a distance of 20 diameters waves leave by characteristics. The drag coefficient is 2 ∫ f̂·n ds along the
stream, of the numerical flux itself, so that it balances the momentum of the cells. Incompressible flow has 1.50 to
1.54 (Fornberg, J. Fluid Mech. 98, 1980: 1.498; Linnick, Fasel, J. Comput. Phys. 204, 2005: 1.54).

Scheme: hybridizable DG; pseudo-transient continuation from the free stream, implicit steps that grow as the residual
falls.
Things to try: -reynolds 20, -mach 0.4, -flux roe, -fe_degree 3, -ts_monitor, -ts_pseudo_increment 2.
"""

import sys

import petsc4py

petsc4py.init(sys.argv)

import numpy as np
from petsc4py import PETSc

import petsc_hdg as fe
from petsc_hdg.physics import library
from petsc_hdg.physics.library import gas

FAR = 20.0
DEFAULTS = {"ts_type": "pseudo", "ts_pseudo_increment": 1.5, "ts_max_steps": 60, "ksp_type": "preonly", "pc_type": "lu"}


def annulus(around: int, out: int):
    """Points [point, 2], quadrilaterals [cell, 4] between the cylinder and the far field, facets [facet, 2] of both."""
    radius, angle = 0.5 * (2 * FAR) ** np.linspace(0, 1, out + 1), 2 * np.pi * np.arange(around) / around
    points = np.stack([np.outer(radius, np.cos(angle)), np.outer(radius, np.sin(angle))], axis=-1).reshape(-1, 2)
    ring, k = np.meshgrid(np.arange(out) * around, np.arange(around), indexing="ij")
    following = (k + 1) % around
    cells = np.stack([ring + k, ring + around + k, ring + following, ring + around + following], axis=-1)
    wall = np.stack([k[0], following[0]], axis=-1)
    return points, cells.reshape(-1, 4), wall, wall + out * around


@fe.main
def main():
    options = PETSc.Options()
    for name, value in DEFAULTS.items():
        if not options.hasName(name):
            options[name] = value
    reynolds, mach = options.getReal("reynolds", 40.0), options.getReal("mach", 0.2)
    points, cells, wall, far = annulus(options.getInt("around", 24), options.getInt("out", 12))
    mesh = fe.Mesh.from_cells(cells, points, boundaries={"cylinder": wall, "far": far}, cell="quadrilateral")
    stream = [1.0, 1.0, 0.0, 1 / (1.4 * 0.4 * mach**2) + 0.5]
    state = " ".join(f"w[{c}] = {value!r};" for c, value in enumerate(stream))
    physics = library.compressible_navier_stokes(
        2,
        gas.RATE,
        mach=mach,
        reynolds=reynolds,
        flux=options.getString("flux", "lax_friedrichs"),
        boundary=[gas.far_field("far", state), gas.no_slip_wall("cylinder")],
    )
    problem = fe.Problem(mesh, physics, backend="hdg_gpu", degree=2)
    u = problem.solve_in_time(problem.interpolate(stream), 1e7, dt=0.05)
    drag = -2 * problem.flux("cylinder", u, problem.time)
    PETSc.Sys.Print(
        f"{problem.num_unknowns} unknowns, {problem.time_steps} steps   "
        f"drag coefficient {drag[1]:.4f}, lift {drag[2]:.1e}, mass through the wall {abs(drag[0]):.1e}"
    )
    if picture := options.getString("u_picture", ""):
        speed = problem.field("hypot(u[1], u[2])/u[0]", u, problem.time)
        problem.plot(picture, u, problem.time, values=speed, title=f"Re {reynolds:g}, Mach {mach:g}", label="speed")

"""Gas around a circular cylinder at Mach 0.2: a pair of eddies at Re 40, steady; at Re 100 a street of them in time.

    python examples/cylinder_hdg.py -around 32 -out 16 -u_picture cylinder.png
    python examples/cylinder_hdg.py -reynolds 100 -end 60

The compressible Navier-Stokes equations in units of the free stream and of the diameter. The wall has no velocity and
no heat flux; at a distance of -far diameters (20) waves leave by characteristics. The drag coefficient is 2 ∫ f̂·n ds
along the stream, of the numerical flux itself, so that it balances the momentum of the cells. Incompressible flow at
Re 40 has a drag of 1.52 and eddies 2.1 to 2.4 diameters long, at Re 100 a Strouhal number of 0.164 or 0.165
(sources in docs/conservation_laws.md); the drag at Re 40 is 1.53 with -far 60 -out 15 -fe_degree 3.

Scheme: hybridizable DG on cells of second order; pseudo-transient continuation from the free stream, implicit steps
that grow as the residual falls, or with -end BDF of second order in time.
Things to try: -far 60 -out 15, -reynolds 20, -mach 0.4, -flux roe, -fe_degree 3, -ts_monitor, -ts_pseudo_increment 2.
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


def annulus(around: int, out: int, far: float) -> fe.Mesh:
    """Quadrilaterals between the cylinder and a circle of radius `far`; nodes within the cylinder are moved onto it."""
    radius, angle = 0.5 * (2 * far) ** np.linspace(0, 1, out + 1), 2 * np.pi * np.arange(around) / around
    points = np.stack([np.outer(radius, np.cos(angle)), np.outer(radius, np.sin(angle))], axis=-1).reshape(-1, 2)
    ring, k = np.meshgrid(np.arange(out) * around, np.arange(around), indexing="ij")
    following = (k + 1) % around
    cells = np.stack([ring + k, ring + around + k, ring + following, ring + around + following], axis=-1)
    wall = np.stack([k[0], following[0]], axis=-1)
    sides = {"cylinder": wall, "far": wall + out * around}
    mesh = fe.Mesh.from_cells(cells.reshape(-1, 4), points, boundaries=sides, cell="quadrilateral")
    return mesh.curved(lambda x: x * np.maximum(1, 0.5 / np.linalg.norm(x, axis=1, keepdims=True)))


@fe.main
def main():
    options = PETSc.Options()
    reynolds, mach, end = (options.getReal(*given) for given in (("reynolds", 40.0), ("mach", 0.2), ("end", 0.0)))
    for name, value in () if end else STEADY.items():
        if not options.hasName(name):
            options[name] = value
    mesh = annulus(options.getInt("around", 24), options.getInt("out", 12), options.getReal("far", 20.0))
    per_mass = 1 / (1.4 * 0.4 * mach**2)
    state = f"w[0] = 1; w[1] = 1; w[2] = 0; w[3] = {per_mass + 0.5!r};"
    physics = library.compressible_navier_stokes(
        2,
        gas.RATE,
        mach=mach,
        reynolds=reynolds,
        flux=options.getString("flux", "lax_friedrichs"),
        boundary=[gas.far_field("far", state), gas.no_slip_wall("cylinder")],
    )
    problem, forces = fe.Problem(mesh, physics, backend="hdg_gpu", degree=2), []

    def record(t, u):
        forces.append((t, *-2 * problem.flux("cylinder", u, t)))

    def start(x):
        gust = np.exp(-(x**2).sum(axis=-1) / 8) if end else 0 * x[..., 0]  # across the stream, to make the wake swing
        return np.stack([1 + 0 * gust, 1 + 0 * gust, 0.5 * gust, per_mass + 0.5 + gust**2 / 8], axis=-1)

    u = problem.interpolate(start)
    u = problem.solve_in_time(u, end or 1e7, dt=0.1 if end else 0.05, monitor=record)
    t, mass, drag, lift, _ = np.array(forces).T
    PETSc.Sys.Print(
        f"{problem.num_unknowns} unknowns, {problem.time_steps} steps   "
        f"drag coefficient {drag[-1]:.4f}, lift {lift[-1]:.1e}, mass through the wall {abs(mass[-1]):.1e}"
    )
    if end:
        rising = np.flatnonzero((lift[:-1] < 0) & (lift[1:] >= 0) & (t[1:] > end / 2))
        at, late = t[rising] - lift[rising] / np.diff(lift)[rising] * np.diff(t)[rising], t > end / 2
        strouhal = (len(at) - 1) / np.ptp(at) if len(at) > 1 else np.nan
        PETSc.Sys.Print(
            f"from t = {end / 2:g}: drag {drag[late].mean():.3f}, lift ± {np.ptp(lift[late]) / 2:.3f}, Strouhal number "
            f"{strouhal:.4f} of {max(len(at) - 1, 0)} periods"
        )
    else:
        x, speed = problem.field("u[1]", u, problem.time).along((0.51, 0.0), (5.51, 0.0), 501)
        PETSc.Sys.Print(f"eddies of length {x[speed[:, 0] < 0].max(initial=0) + 0.01:.2f}")
    if picture := options.getString("u_picture", ""):
        speed = problem.field("hypot(u[1], u[2])/u[0]", u, problem.time)
        problem.plot(picture, u, problem.time, values=speed, title=f"Re {reynolds:g}, Mach {mach:g}", label="speed")

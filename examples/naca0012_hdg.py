"""Gas around the airfoil NACA 0012 at Re 5000, Mach 0.5 and no incidence, steady: drag and the point of separation.

    python examples/naca0012_hdg.py -around 20 -out 18 -u_picture naca0012.png

The compressible Navier-Stokes equations in units of the free stream and of the chord. The wall has no velocity and no
heat flux; at a distance of 15 chords waves leave by characteristics. The drag coefficient is 0.0551 and the
flow separates at 80 to 81 % of the chord (docs/conservation_laws.md).

Scheme: hybridizable DG on a C-mesh of second-order quadrilaterals; pseudo-transient continuation from the free stream,
whose steps are one step of Newton's method each, shortened where it leads to a gas without pressure.
Things to try: -reynolds 2000 -mach 0.3, -incidence 2, -flux roe, -fe_degree 3, -ts_monitor, -snes_monitor.
"""

import sys

import numpy as np
import petsc4py

import petsc_hdg as fe
from petsc_hdg.physics import library
from petsc_hdg.physics.library import gas

petsc4py.init(sys.argv)

from petsc4py import PETSc

FAR = 15.0
STEADY = {"ts_type": "pseudo", "ts_pseudo_increment": 1.5, "ts_max_steps": 60, "ksp_type": "preonly", "pc_type": "lu"}


def thickness(x):
    """Half of it, of the airfoil with a closed trailing edge."""
    return 0.6 * (0.2969 * np.sqrt(x) - x * (0.1260 + x * (0.3516 - x * (0.2843 - x * 0.1036))))


def onto_airfoil(x):
    """Places [node, 2], those within the airfoil moved up or down onto it."""
    half = thickness(np.clip(x[:, 0], 0, 1))
    within = (np.abs(x[:, 1]) < half) & (x[:, 1] != 0)
    return np.stack([x[:, 0], np.where(within, np.sign(x[:, 1]) * half, x[:, 1])], axis=1)


def c_mesh(around: int, wake: int, out: int) -> tuple[fe.Mesh, np.ndarray]:
    """Lines from the wake's lower side around the airfoil to its upper side, and places [facet, 2] on the airfoil."""
    s, far = (
        np.linspace(-1, 1, 2 * around + 1),
        1 + FAR * np.expm1(4.5 * np.linspace(0, 1, wake + 1)[1:]) / np.expm1(4.5),
    )
    profile = 0.5 * (1 - np.cos(np.pi * s))
    x = np.concatenate([far[::-1], profile, far])
    inner = np.stack([x, np.pad(np.sign(s) * thickness(profile) * (np.abs(s) < 1), wake)], axis=1)
    arc = np.stack([1 - FAR * np.cos(0.5 * np.pi * s), FAR * np.sin(0.5 * np.pi * s)], axis=1)
    ends = np.stack([far, np.full(wake, FAR)], axis=1)
    outer = np.concatenate([ends[::-1] * [1, -1], arc, ends])
    part = np.expm1(6.5 * np.linspace(0, 1, out + 1)) / np.expm1(6.5)
    points = inner + part[:, None, None] * (outer - inner)
    number = np.arange(points[..., 0].size).reshape(out + 1, -1)
    number[0, : -wake - 2 : -1] = number[0, : wake + 1]  # both sides of the wake's middle
    cells = np.stack([number[:-1, :-1], number[:-1, 1:], number[1:, :-1], number[1:, 1:]], axis=-1).reshape(-1, 4)
    wall = np.stack([number[0, wake : -wake - 1], number[0, wake + 1 : -wake or None]], axis=1)
    points = points.reshape(-1, 2)
    mesh = fe.Mesh.from_cells(cells, points, boundaries={"airfoil": wall}, cell="quadrilateral")
    return mesh.curved(onto_airfoil), onto_airfoil(points[wall].mean(axis=1))


@fe.main
def main():
    options = PETSc.Options()
    for name, value in STEADY.items():
        if not options.hasName(name):
            options[name] = value
    reynolds, mach, incidence = (
        options.getReal(*given) for given in (("reynolds", 5000.0), ("mach", 0.5), ("incidence", 0.0))
    )
    mesh, wall = c_mesh(*(options.getInt(*given) for given in (("around", 12), ("wake", 8), ("out", 12))))
    along = np.array([np.cos(np.radians(incidence)), np.sin(np.radians(incidence))])
    stream = [1.0, *along.tolist(), 1 / (1.4 * 0.4 * mach**2) + 0.5]
    state = " ".join(f"w[{c}] = {value!r};" for c, value in enumerate(stream))
    physics = library.compressible_navier_stokes(
        2,
        gas.RATE,
        mach=mach,
        reynolds=reynolds,
        flux=options.getString("flux", "lax_friedrichs"),
        boundary=[gas.no_slip_wall("airfoil"), gas.far_field("boundary", state)],
    )
    problem = fe.Problem(mesh, physics, backend="hdg_gpu", degree=2)
    u = problem.solve_in_time(problem.interpolate(stream), 1e7, dt=0.05)
    force = -2 * problem.flux("airfoil", u, problem.time)[1:3]
    upper = wall[wall[:, 1] > 0]
    turning = problem.field("(u_x[4] - u_x[3])/u[0]", u, problem.time).at(upper)[:, 0]  # of the wall's own direction
    k = np.flatnonzero((turning[:-1] < 0) & (turning[1:] >= 0) & (upper[1:, 0] > 0.2))
    part = turning[k] / (turning[k] - turning[k + 1])
    separation = upper[k, 0] + part * (upper[k + 1, 0] - upper[k, 0])
    PETSc.Sys.Print(
        f"{problem.num_unknowns} unknowns, {problem.time_steps} steps   drag coefficient {force @ along:.5f}, lift "
        f"{force @ [-along[1], along[0]]:.1e}, separation at {separation[0] if len(k) else np.nan:.3f}"
    )
    if picture := options.getString("u_picture", ""):
        speed = problem.field("hypot(u[1], u[2])/u[0]", u, problem.time)
        problem.plot(picture, u, problem.time, values=speed, title=f"Re {reynolds:g}, Mach {mach:g}", label="speed")

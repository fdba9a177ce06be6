"""The Taylor-Green vortex in space: large eddies that decay into small ones, the Navier-Stokes equations of a gas.

    python examples/taylor_green_hdg.py -faces 4 -fe_degree 2 -end 1 -ts_monitor

Planes of symmetry cut one eighth, [0, π]³, out of a flow of period 2π; -whole takes all of it, on a periodic mesh of
eight times the cells. At Mach 0.1 the gas is nearly incompressible.
Its kinetic energy falls by what viscosity turns into heat, 2/Re ∫ S:S with S = (∇v + ∇vᵀ)/2 without its trace. Both
rates are printed; they agree as far as the grid and the step resolve the flow.

Scheme: hybridizable DG with the Lax-Friedrichs flux and slip walls; BDF of second order in time.
Things to try: -reynolds 400, -faces 8 -fe_degree 3 -end 10 on a GPU, -flux roe, -whole, -ts_dt 0.05, -ts_bdf_order 3.
"""

import sys

import numpy as np
import petsc4py

import petsc_hdg as fe
from petsc_hdg.physics import library
from petsc_hdg.physics.library import gas

petsc4py.init(sys.argv)

from petsc4py import PETSc

MACH = 0.1
# Kinetic energy, its dissipation, volume.
RATES = """
PetscReal v_x[9], spread = 0.0, strain = 0.0;
for (PetscInt c = 0; c < 3; ++c)
  for (PetscInt d = 0; d < 3; ++d) v_x[c*3 + d] = (u_x[(1 + c)*3 + d] - u[1 + c]/u[0]*u_x[d])/u[0];
for (PetscInt c = 0; c < 3; ++c) spread += v_x[c*3 + c];
for (PetscInt c = 0; c < 3; ++c)
  for (PetscInt d = 0; d < 3; ++d) {
    const PetscReal S = 0.5*(v_x[c*3 + d] + v_x[d*3 + c]) - (c == d)*spread/3.0;
    strain += S*S;
  }
obj[0] = 0.5*(u[1]*u[1] + u[2]*u[2] + u[3]*u[3])/u[0];
obj[1] = 2.0/reynolds*strain;
obj[2] = 1.0;
"""


def start(x: np.ndarray, pressure: float, gamma: float) -> np.ndarray:
    """Conserved variables [..., 5] at x [..., 3], of temperature 1."""
    (s, c), cz = (np.sin(x), np.cos(x)), np.cos(x[..., 2])
    p = pressure + (np.cos(2 * x[..., 0]) + np.cos(2 * x[..., 1])) * (np.cos(2 * x[..., 2]) + 2) / 16
    rho, v0, v1 = p / pressure, s[..., 0] * c[..., 1] * cz, -c[..., 0] * s[..., 1] * cz
    return np.stack([rho, rho * v0, rho * v1, 0 * rho, p / (gamma - 1) + 0.5 * rho * (v0**2 + v1**2)], axis=-1)


def vortex(faces: int, reynolds: float = 100.0, flux: str = "lax_friedrichs", whole: bool = False) -> fe.Problem:
    """The flow on faces³ cells of [0, π]³, or its whole period on (2 faces)³."""
    wall, sides = () if whole else gas.slip_wall("boundary"), 2 * faces if whole else faces
    given = {"mach": MACH, "reynolds": reynolds, "flux": flux, "boundary": wall}
    physics = library.compressible_navier_stokes(3, gas.RATE, **given)
    periods = {"upper": 3 * (2 * np.pi,), "periodic": "xyz"} if whole else {"upper": 3 * (np.pi,)}
    return fe.Problem(fe.Mesh.box(3 * (sides,), simplex=False, **periods), physics, backend="hdg_gpu", degree=2)


def decay(problem: fe.Problem, end: float, dt: float = 0.1) -> np.ndarray:
    """Time, energy, its loss and the dissipation [4, step] of a run, per volume."""
    gamma, history = problem.physics.constants["gamma"], []

    def record(t, u):
        energy, dissipated, volume = problem.integral(RATES, u, t)
        history.append((t, energy / volume, dissipated / volume))

    u = problem.interpolate(lambda x: start(x, 1 / (gamma * MACH**2), gamma))
    record(0.0, u)
    problem.solve_in_time(u, end, dt=dt, monitor=record)
    t, energy, dissipated = np.array(history).T
    lost = -np.gradient(energy, t, edge_order=min(2, len(t) - 1))
    return np.array([t, energy, lost, dissipated])


@fe.main
def main():
    options = PETSc.Options()
    faces, reynolds = options.getInt("faces", 3), options.getReal("reynolds", 100.0)
    problem = vortex(faces, reynolds, options.getString("flux", "lax_friedrichs"), options.getBool("whole", False))
    rows = decay(problem, options.getReal("end", 0.5), options.getReal("dt", 0.1)).T
    for k in np.unique(np.linspace(0, len(rows) - 1, 11).astype(int)):
        t, energy, lost, dissipated = rows[k]
        PETSc.Sys.Print(f"t {t:5.2f}   energy {energy:.5f}   lost {lost:.5f}   dissipated {dissipated:.5f}")

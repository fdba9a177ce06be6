"""Heat in a wrench of two materials, -∇·(κ∇u) = f, from a Gmsh file to a picture.

    mpiexec -n 2 python examples/demo.py -fe_degree 2 -ksp_type cg -pc_type gamg -ksp_monitor -fe_view

Two problems on one mesh. The first has a known solution, so that the error can be said; the second is the picture:
the jaw is hot, a hand holds the grip, the ring loses heat, the outline is insulated.

Scheme: continuous Lagrange elements (-fe_backend cg_gpu). κ is one number in each region of the mesh.
Boundary conditions by the names in the Gmsh file: Dirichlet on "jaw", Neumann on "ring" and "outline", Robin on
"handle". Things to try: -fe_degree 4, -fe_precision single, -fe_device gpu, -dm_vec_type viennacl, -log_view, other
numbers below.
"""

import sys
from pathlib import Path

import petsc4py
import sympy as sp

import petsc_hdg as fe
from petsc_hdg.physics import Symbols, manufactured

petsc4py.init(sys.argv)

from petsc4py import PETSc

MESH = Path(__file__).parent / "meshes" / "wrench.msh"
OUTPUT = Path("output")
KAPPA = {"steel": 1.0, "grip": 0.2}  # by the names of the regions
HAND, TRANSFER = 33.0, 0.5  # temperature of the hand, and the heat it takes for each degree


def known() -> fe.Physics:
    """A physics with a known solution; sympy makes f and the fluxes from it.

    On the two arcs where the materials meet the solution is flat, so that κ∇u·n does not jump there.
    """
    s = Symbols(2, {"u": 1}, {"kappa": 1})
    (x, y), u, kappa = s.x, s.value("u"), s.given("kappa")
    exact = sp.cos(3 * x) * sp.cosh(2 * y)
    for centre in (0.85, 1.55):  # of circles of radius 0.16
        distance = (x - centre) ** 2 + y**2 - 0.16**2
        exact *= 1 - sp.exp(-((distance / 0.06) ** 4))
    flux = kappa * sum(sp.diff(exact, s.x[d]) * s.n[d] for d in range(2))
    return fe.Physics(
        {"u": 1},
        f0=manufactured(s.x, exact, lambda u, grad: kappa * grad),
        f1=kappa * s.grad("u"),
        auxiliary={"kappa": 1},
        boundary=[
            fe.Dirichlet("jaw", "exact"),
            fe.Neumann("ring", flux),
            fe.Neumann("outline", flux),
            fe.Robin("handle", TRANSFER * (u - exact) - flux),
        ],
        exact=exact,
        name="known solution",
    )


def hot_jaw() -> fe.Physics:
    """The same equation in C: f1 = κ∇u is the flux, f0 = -f, here what the faces lose to the air; a[0] is κ.

    The outline has no condition: it is insulated.
    """
    return fe.Physics(
        {"u": 1},
        f0="f0[0] = loss*(u[0] - air);",
        f1="for (d = 0; d < dim; ++d) f1[d] = a[0]*u_x[d];",
        auxiliary={"kappa": 1},
        constants={"hand": HAND, "transfer": TRANSFER, "air": 20.0, "loss": 1.2},
        boundary=[
            fe.Dirichlet("jaw", "g[0] = 120;"),
            fe.Neumann("ring", "g[0] = -5;"),
            fe.Robin("handle", "f0[0] = transfer*(u[0] - hand);"),
        ],
        name="hot jaw",
    )


def solve(mesh: fe.Mesh, physics: fe.Physics):
    PETSc.Sys.Print(f"\n{physics.name}:")
    problem = fe.Problem(mesh, physics, degree=2)
    problem.set_auxiliary("kappa", KAPPA)
    return problem, problem.solve()


@fe.main
def main():
    mesh = fe.Mesh.from_file(MESH)
    problem, u = solve(mesh, known())
    PETSc.Sys.Print(problem.summary(problem.report(u)))

    problem, u = solve(mesh, hot_jaw())
    OUTPUT.mkdir(exist_ok=True)
    problem.write(OUTPUT / "wrench.vtu", u)
    problem.plot(
        OUTPUT / "wrench.png",
        u,
        title="Heat in a wrench",
        subtitle="jaw at 120 °C, a warm hand at the grip (κ 5 times smaller), heat drawn at the ring",
        label="°C",
        cell_regions=mesh.cell_mask("grip"),
        boundaries={name: mesh.boundary_facets(name) for name in ("jaw", "ring", "handle", "outline")},
        contours=18,
        inset=True,
    )
    PETSc.Sys.Print(f"\nwritten: {OUTPUT / 'wrench.vtu'} and {OUTPUT / 'wrench.png'}")

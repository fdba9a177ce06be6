"""Under mpiexec: `run_flows.py CASE FACES...` solves flows by the options of PETSc's tutorials; prints iterations and
errors of velocity and pressure on boxes of so many faces, as JSON."""

import json
import sys

from petsc4py import PETSc
from petsc_options import petsc_options

import petsc_hdg as fe
from petsc_hdg.physics import library
from petsc_hdg.run import guarded

TIME, STEPS = 0.2, 2
TAYLOR_HOOD = {"velocity": 2, "pressure": fe.Field(1, degree_offset=-1)}
DIVERGENCE = "f0[0] = 0; for (d = 0; d < dim; ++d) f0[0] += u_x[d*dim + d];"
STRESS = """
for (PetscInt c = 0; c < dim; ++c) {{
  for (d = 0; d < dim; ++d) f1[c*dim + d] = {0};
  f1[c*dim + c] -= u[dim];
}}"""
SCHUR = {
    "ksp_type": "fgmres",
    "ksp_rtol": "1e-9",
    "pc_type": "fieldsplit",
    "pc_fieldsplit_type": "schur",
    "pc_fieldsplit_schur_fact_type": "full",
    "fieldsplit_velocity_pc_type": "redundant",
}
# The inner solves of ex46, ex69 and ex62, of which the last two take the pressure's mass matrix.
OPTIONS = {
    "navier_stokes": {"fieldsplit_pressure_ksp_rtol": "1e-10", "fieldsplit_pressure_pc_type": "jacobi"},
    "navier_stokes_selfp": {
        "pc_fieldsplit_schur_precondition": "selfp",
        "fieldsplit_pressure_ksp_rtol": "1e-10",
        "fieldsplit_pressure_pc_type": "gamg",
        "fieldsplit_pressure_mg_levels_ksp_max_it": "2",
    },
    "variable_viscosity": {"fieldsplit_pressure_ksp_rtol": "1e-9", "fieldsplit_pressure_pc_type": "jacobi"},
    "stokes": {
        "pc_fieldsplit_schur_fact_type": "upper",
        "fieldsplit_velocity_ksp_type": "cg",
        "fieldsplit_velocity_ksp_rtol": "1e-4",
        "fieldsplit_velocity_pc_type": "gamg",
        "fieldsplit_pressure_ksp_type": "cg",
        "fieldsplit_pressure_ksp_rtol": "1e-4",
        "fieldsplit_pressure_pc_type": "jacobi",
    },
    "stokes_selfp": {
        "ksp_gmres_restart": "200",
        "pc_fieldsplit_schur_fact_type": "upper",
        "pc_fieldsplit_schur_precondition": "selfp",
        "fieldsplit_velocity_ksp_type": "cg",
        "fieldsplit_velocity_ksp_rtol": "1e-4",
        "fieldsplit_velocity_pc_type": "gamg",
        "fieldsplit_pressure_ksp_type": "preonly",
        "fieldsplit_pressure_pc_type": "gamg",
    },
}


def walls(**more) -> dict:
    return {"boundary": fe.Dirichlet("boundary", "exact", field="velocity"), **more}


def navier_stokes(dim: int) -> fe.Physics:
    """The flow (t + x² + y², t + 2x² - 2xy) with the pressure x + y - 1, of Reynolds number 400."""
    convected = "u[0]*u_x[{0}] + u[1]*u_x[{0} + 1]".format
    exact = "(t + x[0]*x[0] + x[1]*x[1])", "(t + 2*x[0]*x[0] - 2*x[0]*x[1])"
    sources = [
        f"1 + {exact[0]}*2*x[0] + {exact[1]}*2*x[1] - 4/Re + 1",
        f"1 + {exact[0]}*(4*x[0] - 2*x[1]) - {exact[1]}*2*x[0] - 4/Re + 1",
    ]
    f0 = " ".join(f"f0[{c}] = u_t[{c}] + {convected(2 * c)} - ({sources[c]});" for c in range(2))
    return fe.Physics(
        TAYLOR_HOOD,
        {"velocity": f0, "pressure": DIVERGENCE},
        {"velocity": STRESS.format("u_x[c*dim + d]/Re")},
        constants={"Re": 400.0},
        **walls(exact={"velocity": f"u[0] = {exact[0]}; u[1] = {exact[1]};", "pressure": "u[0] = x[0] + x[1] - 1;"}),
    )


def variable_viscosity(dim: int) -> fe.Physics:
    """The flow (y², x²) with the pressure x - ½ and a viscosity that grows from 1 to 1e3 with x."""
    mu = "PetscExpReal(PetscLogReal(1e3)*x[0])"
    strain = f"{mu}*(u_x[c*dim + d] + u_x[d*dim + c])"
    source = f"const PetscReal mu = {mu}, slope = PetscLogReal(1e3)*mu; f0[0] = 2*mu - 1; "
    return fe.Physics(
        TAYLOR_HOOD,
        {"velocity": source + "f0[1] = 2*mu + slope*(2*x[0] + 2*x[1]);", "pressure": DIVERGENCE},
        {"velocity": STRESS.format(strain)},
        **walls(exact={"velocity": "u[0] = x[1]*x[1]; u[1] = x[0]*x[0];", "pressure": "u[0] = x[0] - 0.5;"}),
    )


def stokes(dim: int) -> fe.Physics:
    """The flow (y², z², x²), in the plane (y², x²), with the pressure x - ½."""
    velocity = " ".join(f"u[{c}] = x[{(c + 1) % dim}]*x[{(c + 1) % dim}];" for c in range(dim))
    source = " ".join(f"f0[{c}] = {2 - (c == 0)};" for c in range(dim))
    return library.stokes(dim, source, **walls(exact={"velocity": velocity, "pressure": "u[0] = x[0] - 0.5;"}))


PHYSICS = {
    "navier_stokes": navier_stokes,
    "navier_stokes_selfp": navier_stokes,
    "variable_viscosity": variable_viscosity,
    "stokes": stokes,
    "stokes_selfp": stokes,
}


def solved(case: str, dim: int, faces: int) -> tuple[float, int, float, float]:
    """Iterations of a linear solve, those of the last solve of the pressure in it, errors of velocity and pressure."""
    physics = PHYSICS[case](dim)
    mesh = fe.Mesh.box(dim * (faces,))
    with petsc_options(**{**SCHUR, **OPTIONS[case]}, ts_type="beuler"):
        problem = fe.Problem(mesh, physics, degree=2)
        if case.startswith("navier_stokes"):
            ts, u = problem.create_ts(), problem.interpolate("exact")
            ts.setTimeStep(TIME / STEPS)
            ts.setMaxTime(TIME)
            ts.solve(u)
            time, ksp, outer = TIME, ts.getSNES().getKSP(), ts.getKSPIterations() / ts.getSNESIterations()
        else:
            ksp, u, time = problem.snes.getKSP(), None, 0.0
        if case in ("stokes", "variable_viscosity"):
            of_mass = "f0[0] = -u[0];" if case == "stokes" else "f0[0] = -u[0]/PetscExpReal(PetscLogReal(1e3)*x[0]);"
            mass = fe.Problem(mesh, fe.Physics({"p": 1}, of_mass, name="mass"), degree=1, pmat="aij")
            kind = getattr(PETSc.PC, "FieldSplitSchurPreType", None) or PETSc.PC.SchurPreType  # of petsc4py 3.18
            ksp.getPC().setFieldSplitSchurPreType(kind.USER, mass.matrix())
        if u is None:
            u = problem.solve()
            outer = problem.linear_iterations
        inner = ksp.getPC().getFieldSplitSubKSP()[-1].getIterationNumber()
    return outer, inner, *(problem.errors(u, time, field)["L2"] for field in TAYLOR_HOOD)


def main() -> None:
    case, dim, *faces = sys.argv[1], *map(int, sys.argv[2:])
    PETSc.Sys.Print(json.dumps([solved(case, dim, n) for n in faces]))


if __name__ == "__main__":
    guarded(main)

"""Under mpiexec: coupled problems by fieldsplit; iterations, residuals and errors, as JSON."""

import json

from petsc4py import PETSc
from petsc_options import petsc_options

import petsc_hdg as fe
from petsc_hdg.physics import library
from petsc_hdg.run import guarded

DIRECT = {"ksp_type": "preonly", "pc_type": "redundant"}  # on any number of ranks
SPLIT = {"pc_type": "fieldsplit", "ksp_rtol": "1e-12", "ksp_type": "fgmres"}
INNER = {f"fieldsplit_{name}_{option}": value for name in ("heat", "salt") for option, value in DIRECT.items()}
SCHUR = {
    **SPLIT,
    "ksp_rtol": "1e-9",
    "pc_fieldsplit_type": "schur",
    "pc_fieldsplit_schur_fact_type": "upper",
    "fieldsplit_velocity_ksp_type": "preonly",
    "fieldsplit_velocity_pc_type": "gamg",
    "fieldsplit_pressure_ksp_type": "preonly",
}
PRESSURES = {
    "selfp": {"pc_fieldsplit_schur_precondition": "selfp", "fieldsplit_pressure_pc_type": "jacobi"},
    "mass": {
        "pc_fieldsplit_schur_precondition": "user",
        "fieldsplit_pressure_pc_type": "jacobi",
        "fieldsplit_velocity_pc_type": "redundant",
    },
    "saddle point": {"pc_fieldsplit_detect_saddle_point": "1", "pc_fieldsplit_schur_precondition": "selfp"},
}


def coupled() -> fe.Physics:
    """Two diffusing fields, of one and two components, that exchange."""
    flux = "for (d = 0; d < dim; ++d) f1[d] = u_x[{0} + d];"
    return fe.Physics(
        {"heat": 1, "salt": 2},
        f0={"heat": "f0[0] = u[0] - 0.5*u[1] - 1;", "salt": "f0[0] = u[1] - 0.5*u[0]; f0[1] = u[2] + 0.2*u[0] - x[0];"},
        f1={"heat": flux.format(0), "salt": "for (d = 0; d < 2*dim; ++d) f1[d] = 2*u_x[dim + d];"},
        boundary=[fe.Dirichlet("boundary", 0.0, field="heat"), fe.Dirichlet("left", [0.0, 1.0], field="salt")],
        name="coupled",
    )


def of_scheme(backend: str) -> dict:
    """Iterations and relative residual of a problem solved by splits of its fields."""
    found = {}
    for name, options in {
        "additive": {**SPLIT, **INNER, "pc_fieldsplit_type": "additive"},
        "grouped": {**SPLIT, "pc_fieldsplit_0_fields": "1", "pc_fieldsplit_1_fields": "0", **INNER},
    }.items():
        with petsc_options(**options):
            problem = fe.Problem(fe.Mesh.box((5, 5)), coupled(), backend=backend, degree=2)
            u = problem.solve()
        residuals = [u.duplicate(), u.duplicate()]
        for state, residual in zip((problem.create_vec(), u), residuals, strict=True):
            problem.callbacks.residual(None, state, residual)
        found[name] = [problem.linear_iterations, residuals[1].norm() / residuals[0].norm()]
    return found


FLOW = {"velocity": "u[0] = x[1]*(1 - x[1]); u[1] = 0;", "pressure": "u[0] = 2 - 2*x[0];"}


def channel(name: str, faces: int) -> list:
    """Iterations of Taylor-Hood elements for Stokes flow in a channel, and the error of its quadratic solution."""
    inflow = "g[0] = x[1]*(1 - x[1]); g[1] = 0;"
    walls = [fe.Dirichlet(side, inflow, field="velocity") for side in ("left", "bottom", "top")]
    walls += [fe.Neumann("right", "g[0] = 0; g[1] = 1 - 2*x[1];", field="velocity")]
    physics = library.stokes(2, boundary=walls, exact=FLOW)
    mesh, options = fe.Mesh.box((faces, faces)), {**SCHUR, **PRESSURES[name]}
    with petsc_options(**options):
        problem = fe.Problem(mesh, physics, degree=2)
        if name == "mass":
            mass = fe.Problem(mesh, fe.Physics({"p": 1}, "f0[0] = -u[0];", name="mass"), degree=1, pmat="aij")
            kind = getattr(PETSc.PC, "FieldSplitSchurPreType", None) or PETSc.PC.SchurPreType  # of petsc4py 3.18
            problem.snes.getKSP().getPC().setFieldSplitSchurPreType(kind.USER, mass.matrix())
        u = problem.solve()
    return [problem.linear_iterations, problem.errors(u)["L2"]]


def main() -> None:
    found = {backend: of_scheme(backend) for backend in ("cg_gpu", "hdg_gpu", "sipg_gpu", "poly_gpu")}
    found |= {name: [channel(name, faces) for faces in (6, 12)] for name in PRESSURES}
    PETSc.Sys.Print(json.dumps(found))


if __name__ == "__main__":
    guarded(main)

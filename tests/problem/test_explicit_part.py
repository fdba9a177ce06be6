"""Problems with an explicit part by ARKIMEX: orders in time of each scheme, a viscous gas, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import sympy
from mpi4py import MPI
from petsc4py import PETSc
from petsc_options import petsc_options

import petsc_hdg as fe
from petsc_hdg.physics import Symbols, library
from petsc_hdg.physics.library import gas

VISCOSITY = 0.5
WAVE = "1 + 0.5*sin(2*x[0] + x[1] - 3*t)"
DIFFUSED = "for (PetscInt d = 0; d < dim; ++d) f1[d] = {}*u_x[d];"


def diffusion(extra: str = "") -> fe.Physics:
    """Diffusion with the source that Burgers' equation of WAVE has; `extra` is added to f0."""
    (x, y), t = Symbols(2, {"u": 1}).x, sympy.Symbol("t")
    u = 1 + sympy.sin(2 * x + y - 3 * t) / 2
    source = sympy.diff(u, t) + u * (sympy.diff(u, x) + sympy.diff(u, y))
    source -= VISCOSITY * (sympy.diff(u, x, 2) + sympy.diff(u, y, 2))
    f0 = f"f0[0] = u_t[0] - ({sympy.ccode(source)}){extra};"
    sides = fe.Dirichlet("boundary", "exact")
    return fe.Physics(
        {"u": 1}, f0, DIFFUSED.format(VISCOSITY), boundary=sides, exact=f"u[0] = {WAVE};", name="diffused"
    )


def carried(backend: str) -> fe.Physics:
    """The convection of Burgers' equation."""
    if backend == "hdg_gpu":
        return library.burgers("f0[0] = u_t[0];", boundary=library.outer_state("boundary", WAVE))
    f0, sides = "f0[0] = u_t[0] + u[0]*(u_x[0] + u_x[1]);", fe.Dirichlet("boundary", WAVE)
    return fe.Physics({"u": 1}, f0, DIFFUSED.format(1e-30), boundary=sides, name="carried")


def problems(backend: str, comm=PETSc.COMM_SELF, **options) -> fe.Problem:
    """Diffusion with an explicit part."""
    mesh = fe.Mesh.box((3, 3), comm=comm)
    one, other = (
        fe.Problem(mesh, physics, backend=backend, degree=2, check_kernels=False, **options)
        for physics in (diffusion(), carried(backend))
    )
    one.explicit = other
    return one


def end_of(one: fe.Problem, steps: int, kind: str) -> tuple[np.ndarray, float]:
    """Values in the cells at t = 0.25, and their error."""
    with petsc_options(ts_type="arkimex", ts_arkimex_type=kind):
        u = one.solve_in_time(one.interpolate("exact"), 0.25, 0.25 / steps)
    assert one.time_steps == steps
    return one.cell_values(u)["u"], one.errors(u, 0.25)["L2"]


@pytest.mark.parametrize(
    "backend, kind, least",
    [
        ("hdg_gpu", "prssp2", 1.9),
        pytest.param("hdg_gpu", "ars443", 2.4, marks=pytest.mark.full),
        pytest.param("cg_gpu", "prssp2", 1.8, marks=pytest.mark.full),
        pytest.param("sipg_gpu", "prssp2", 1.6, marks=pytest.mark.full),
        pytest.param("poly_gpu", "prssp2", 1.8, marks=pytest.mark.full),
    ],
)
def test_orders(backend, kind, least):
    """Between runs of the same mesh; the error is that of the mesh."""
    one = problems(backend)
    found, errors = zip(*(end_of(one, steps, kind) for steps in (12, 24, 48)), strict=True)
    first, second = (np.abs(a - b).max() for a, b in zip(found, found[1:], strict=False))
    assert np.log2(first / second) > least and errors[-1] < 4e-3


def test_the_explicit_part_takes_no_part_in_the_matrix():
    """Linear diffusion is condensed once per step length, however nonlinear its explicit part is."""
    one = problems("hdg_gpu")
    end_of(one, 12, "ars443")
    assert one.physics.is_linear and not one.explicit.physics.is_linear
    assert one.operator.linearizations < 12 < one.explicit.operator.linearizations


def test_default_method():
    one = problems("hdg_gpu")
    ts = one.create_ts()
    assert (ts.getType(), ts.getARKIMEXType()) == ("arkimex", "ars443")
    ts.destroy()


STREAM = "0.3*exp(-8*((x[0] - 0.5)*(x[0] - 0.5) + (x[1] - 0.5)*(x[1] - 0.5)))"


@pytest.mark.full
def test_a_viscous_gas():
    """Euler's part explicit, viscosity implicit: as all implicit but for what the mesh does not resolve."""
    start = f"u[0] = 1; u[1] = 0.5; u[2] = {STREAM}; u[3] = 1/(0.4*1.4*0.25) + 0.125 + 0.5*u[2]*u[2];"
    far = gas.far_field("boundary", start.replace("u[", "w["))
    given, mesh = {"mach": 0.5, "reynolds": 20.0, "exact": start}, fe.Mesh.box((3, 3), comm=PETSc.COMM_SELF)
    numbers = {"backend": "hdg_gpu", "degree": 1, "check_kernels": False}
    whole = fe.Problem(mesh, library.compressible_navier_stokes(2, gas.RATE, boundary=far, **given), **numbers)
    loose = library.outflow("boundary")
    parts = library.compressible_navier_stokes(2, gas.RATE, boundary=loose, convection=False, **given)
    one = fe.Problem(mesh, parts, **numbers)
    one.explicit = fe.Problem(mesh, library.euler(2, gas.RATE, boundary=far), **numbers)
    found = []
    for steps in (6, 12):
        with petsc_options(ts_type="arkimex", ts_arkimex_type="ars443"):
            u = one.solve_in_time(one.interpolate("exact"), 0.1, 0.1 / steps)
        found.append(one.cell_values(u)["u"])
    expected = whole.cell_values(whole.solve_in_time(whole.interpolate("exact"), 0.1, 0.02))["u"]
    assert np.abs(found[1] - found[0]).max() < 4e-3  # of an energy of 7.6
    assert np.abs(found[1] - expected).max() < 0.04


BAD = {
    "another thing": (lambda one: 3, {}, "problem.explicit is 3; give another Problem on the same mesh, or None"),
    "another degree": (
        lambda one: one.explicit.with_options(degree=1),
        {},
        "give one of the same mesh, scheme, degree",
    ),
    "another method": (lambda one: one.explicit, {"ts_type": "bdf"}, "-ts_type bdf has no place for problem.explicit"),
    "another type": (
        lambda one: one.explicit,
        {"ts_arkimex_type": "3"},
        "-ts_type arkimex of type 3 has no place for problem.explicit; give arkimex with -ts_arkimex_type ars443",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_explicit_parts(name):
    make, options, said = BAD[name]
    one = problems("hdg_gpu")
    one.explicit = make(one)
    with petsc_options(**options), pytest.raises(fe.OptionError, match=said):
        one.solve_in_time(one.interpolate("exact"), 0.25, 0.1)


def test_methods_without_implicit_stages():
    one = problems("cg_gpu")
    with (
        petsc_options(ts_type="rk"),
        pytest.raises(fe.OptionError, match="-ts_type rk has no place for problem.explic"),
    ):
        one.solve_in_time(one.interpolate("exact"), 0.25, 0.1)


def test_an_explicit_part_without_rates():
    one = problems("hdg_gpu")
    steady = library.burgers(viscosity=0.1, boundary=library.outer_state("boundary", WAVE))
    one.explicit = fe.Problem(one.mesh, steady, backend="hdg_gpu", degree=2, check_kernels=False)
    with pytest.raises(fe.PhysicsError, match="'burgers' of problem.explicit has no u_t; write it into f0"):
        one.solve_in_time(one.interpolate("exact"), 0.25, 0.1)


def test_too_long_steps_are_told():
    """A rate that is not finite ends the run with a sentence."""
    one = problems("hdg_gpu")
    with pytest.raises(
        fe.SolveError, match="explicit part, physics 'burgers', has no trace at t = .* take a smaller dt"
    ):
        one.solve_in_time(one.interpolate("exact"), 1e4, 1e3)


@pytest.mark.full
def test_ranks(mpirun):
    assert "the same on all ranks" in mpirun(3, "tests/problem/test_explicit_part.py").stdout


def main() -> None:
    """Errors on all ranks, and on each alone: for mpiexec -n 3."""
    errors = [end_of(problems("hdg_gpu", comm), 12, "ars443")[1] for comm in (PETSc.COMM_WORLD, PETSc.COMM_SELF)]
    assert abs(errors[0] - errors[1]) < 1e-8 * errors[1], errors
    if MPI.COMM_WORLD.rank == 0:
        print("the same on all ranks", errors)


if __name__ == "__main__":
    main()

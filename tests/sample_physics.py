"""Physics shared by the tests, few and with fixed texts, so that few programs are compiled; each is read once."""

from __future__ import annotations

from functools import cache

from petsc_hdg.physics import Auxiliary, Dirichlet, Field, Neumann, Physics, Robin

SMOOTH = "u[0] = sin(x[0] + 0.5); for (d = 1; d < dim; ++d) u[0] *= cos(1.5*x[d] - 0.3);"
SLOPES = "for (d = 0; d < dim; ++d) {{ f1[d] = {}*u_x[d]*a[1] - n[d]*t; f1[dim + d] = 0.3*u_t[0]*u[1]*x[d]; }}"


@cache
def smooth_poisson() -> Physics:
    """Poisson's equation with the exact solution SMOOTH, essential on the whole boundary."""
    return Physics(
        {"u": 1},
        f0="""
            PetscReal e = sin(x[0] + 0.5);
            for (d = 1; d < dim; ++d) e *= cos(1.5*x[d] - 0.3);
            f0[0] = -(1 + 2.25*(dim - 1))*e;
        """,
        f1="for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
        boundary=[Dirichlet("boundary", "exact")],
        exact={"u": SMOOTH},
        name="smooth Poisson",
    )


@cache
def everything(pressure_offset: int = -1) -> Physics:
    """Every input of the contract at once: two fields of different degree, nonlinear, auxiliary fields constant in the
    cell and nodal, constants, time and its derivative, essential and natural conditions. Not meant to be solved."""
    return Physics(
        {"v": 2, "p": Field(1, degree_offset=pressure_offset)},
        f0={
            "v": """
                f0[0] = v_rate*u_t[0] + a[0]*sin(u[1])*u[2] + beta*x[0];
                f0[1] = v_rate*u_t[1]*u[0] + t*u_x[2*dim + 1] + a_x[1*dim + 1]*u[0]*u[0];
            """,
            "p": "f0[0] = u_x[0] + u_x[dim + 1] + 0.1*u_t[2] + u[2]*u[2]*a[2] + t*t;",
        },
        f1={
            "v": """
                PetscReal square = 1;
                for (d = 0; d < 2*dim; ++d) square += u_x[d]*u_x[d];
                for (d = 0; d < 2*dim; ++d) f1[d] = a[1]*u_x[d]/sqrt(square) + 0.1*u[2]*u_t[0]*(d + 1);
            """,
            "p": "for (d = 0; d < dim; ++d) f1[d] = beta*u_x[2*dim + d]*exp(0.3*u[0]) + x[d]*a_x[2*dim + d];",
        },
        auxiliary={"region": Auxiliary(1, "cell"), "heat": Auxiliary(2, "nodal")},
        constants={"v_rate": 1.3, "beta": 0.7},
        boundary=[
            Dirichlet("left", "g[0] = 0.3 + x[0]; g[1] = t*x[1];", field="v"),
            Neumann("top", "g[0] = n[1]*x[0] + t*a[1]; g[1] = n[0];", field="v"),
            Robin(
                "right",
                "f0[0] = u[2]*u[0]*a[0]*n[0] + 0.2*u_t[1]; f0[1] = u[1]*u_x[0]*x[1]*beta;",
                "v",
                f1=SLOPES.format("u[2]"),
            ),
            Robin("bottom", "f0[0] = u[2]*u[2] + u[0]*n[1];", field="p"),
            Robin(
                "bottom", field="p", f1="for (d = 0; d < dim; ++d) f1[d] = n[d]*(u[2] - beta) + u[0]*u_x[2*dim + d];"
            ),
        ],
        name="everything",
    )


@cache
def everything_on_one_field() -> Physics:
    """Like `everything` with one field, as the kernel variant `patch` takes it."""
    return Physics(
        {"v": 2},
        f0="""
            f0[0] = v_rate*u_t[0] + a[0]*sin(u[1])*u[0] + beta*x[0];
            f0[1] = v_rate*u_t[1]*u[0] + t*u_x[dim + 1] + a_x[1*dim + 1]*u[0]*u[0] + u[1]*a[2] + t*t;
        """,
        f1="""
            PetscReal square = 1;
            for (d = 0; d < 2*dim; ++d) square += u_x[d]*u_x[d];
            for (d = 0; d < 2*dim; ++d) f1[d] = a[1]*u_x[d]/sqrt(square) + 0.1*u[1]*u_t[0]*(d + 1) + a_x[2*dim];
        """,
        auxiliary={"region": Auxiliary(1, "cell"), "heat": Auxiliary(2, "nodal")},
        constants={"v_rate": 1.3, "beta": 0.7},
        boundary=[
            Dirichlet("left", "g[0] = 0.3 + x[0]; g[1] = t*x[1];"),
            Neumann("top", "g[0] = n[1]*x[0] + t*a[1]; g[1] = n[0];"),
            Robin(
                "right",
                "f0[0] = u[1]*u[0]*a[0]*n[0] + 0.2*u_t[1]; f0[1] = u[1]*u_x[0]*x[1]*beta;",
                f1=SLOPES.format("u[1]"),
            ),
        ],
        name="everything on one field",
    )


@cache
def one_field() -> Physics:
    """A field with a rate, an auxiliary field and its gradient, a constant, every kind of boundary condition."""
    return Physics(
        {"u": 1},
        f0="f0[0] = a_x[1]*u[0] + 0.3*u_t[0]*u[0] + u_x[1] - beta;",
        f1="for (d = 0; d < dim; ++d) f1[d] = (a[0] + u[0]*u_t[0])*u_x[d];",
        auxiliary={"k": Auxiliary(1)},
        constants={"beta": 0.7},
        boundary=[
            Dirichlet("left", "g[0] = x[1];"),
            Neumann("top", "g[0] = x[0];"),
            Robin("right", "f0[0] = u[0]*u[0];", f1="f1[0] = u[0]*u_x[1]; f1[1] = n[0]*u_t[0];"),
        ],
    )


def give_everything(problem) -> None:
    """Values of the auxiliary fields of `everything`."""
    problem.set_auxiliary("region", lambda x: 1.0 + x[..., 0] ** 2)
    problem.set_auxiliary("heat", lambda x: 1.0 + 0.3 * x**2 @ _heat_weights(x.shape[-1]))


def _heat_weights(dim: int):
    import numpy as np

    return np.array([[1.0, 0.5], [0.2, 1.0], [0.7, 0.3]])[:dim]


# For solvers: convection of chosen strength, diffusion 1 + u².
WIND = Physics(
    {"u": 1},
    "f0[0] = -1 + wind*(u_x[0] + 0.6*u_x[1]);",
    "for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
    constants={"wind": 0.0},
    boundary=[Dirichlet("boundary", 0.0)],
    name="wind",
)
NONLINEAR = Physics(
    {"u": 1},
    "f0[0] = -5;",
    "for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d];",
    boundary=[Dirichlet("boundary", 0.0)],
    name="nonlinear",
)

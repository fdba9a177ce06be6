"""Interior penalty on triangles and tetrahedra in one pass: both passes against plain numpy, and what they take."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from given_sipg import parts_error
from sample_meshes import DIM, bent, box_mesh
from sample_physics import everything, give_everything, one_field

import petsc_hdg as fe
from petsc_hdg.device import Arrays, Device, verdicts
from petsc_hdg.discretizations.oracle import State
from petsc_hdg.discretizations.sipg.affine import SimplexTables, affine_simplex_specs
from petsc_hdg.discretizations.sipg.oracle import PenaltyOracle
from petsc_hdg.discretizations.sipg.scheme import InteriorPenalty
from petsc_hdg.discretizations.sipg.simplex import CELLS, CPU_LANES, simplex_specs
from petsc_hdg.discretizations.transposition import DeviceLimits
from petsc_hdg.errors import OptionError
from petsc_hdg.operators.sipg.operator import SIPGOperator
from petsc_hdg.operators.sipg.passes import MOST_DEGREE, AffineSimplexPass
from petsc_hdg.options import Options
from petsc_hdg.problem.input_data import auxiliary_values

SHAPES = ("triangle", "tetrahedron")
DEGREES = range(1, 7)
T, SHIFT = 0.4, 1.7
GRIDS = {"triangle": (9, 7), "tetrahedron": (3, 4, 3)}
# Degrees of the physics that reads everything, and of one that is quickly compiled.
WHOLE, CURVED = {"triangle": (1, 3), "tetrahedron": (1, 2)}, {"triangle": (2, 5), "tetrahedron": (1, 3)}
CASES = [(cell, degree, degree in CURVED[cell]) for cell in SHAPES for degree in DEGREES]


def nonlinear() -> fe.Physics:
    """One field with a diffusivity that depends on it, and f0 on its gradient."""
    return fe.Physics(
        {"u": 1},
        f0="f0[0] = u[0]*u[0]*u_x[0] - x[1];",
        f1="for (d = 0; d < dim; ++d) f1[d] = (1 + u[0]*u[0])*u_x[d];",
        boundary=[fe.Dirichlet("left", "g[0] = x[1];"), fe.Robin("right", "f0[0] = u[0]*u[0];")],
    )


def laplace() -> fe.Physics:
    f1 = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
    return fe.Physics({"u": 1}, "f0[0] = -1;", f1, boundary=[fe.Dirichlet("boundary", "g[0] = x[0];")])


def region_wise(right: str = "f0[0] = 2.5*u[0] - 1;") -> fe.Physics:
    """Symmetric coefficients that are constant in a cell, a term of order zero, a rate, every kind of condition."""
    return fe.Physics(
        {"u": 1},
        f0="f0[0] = beta*u[0]*a[0] + 0.3*u_t[0] - 1;",
        f1="for (d = 0; d < dim; ++d) f1[d] = a[0]*u_x[d]; f1[0] += 0.2*u_x[1]; f1[1] += 0.2*u_x[0];",
        auxiliary={"region": fe.Auxiliary(1, "cell")},
        constants={"beta": 0.7},
        boundary=[fe.Dirichlet("left", "g[0] = x[1];"), fe.Neumann("top", "g[0] = x[0];"), fe.Robin("right", right)],
    )


class Uncompiled:
    """Discretization and operator as a Problem has them; kernels are compiled when they are first used."""

    def __init__(self, mesh, physics, degree: int, kernel: str, limits: DeviceLimits | None = None, **settings):
        options = Options(backend="sipg_gpu", degree=degree, sipg_kernel=kernel, **settings)
        device = Device.select("any")
        limits = limits or DeviceLimits.of(device)
        self.discretization = InteriorPenalty(mesh, physics, options, limits)
        self.operator = SIPGOperator(self.discretization, Arrays(device))
        if physics.num_auxiliary == 1:
            self.set_auxiliary(physics.auxiliary[0].name, lambda x: 1.0 + x[..., 0] ** 2)
        elif physics.auxiliary:
            give_everything(self)

    def set_auxiliary(self, name: str, value) -> None:
        self.operator.set_auxiliary(name, *auxiliary_values(self.discretization, name, value))


class Sample:
    """A problem linearized at random vectors, and the oracle there."""

    def __init__(self, problem: Uncompiled, num_cells: int):
        self.op, self.disc = problem.operator, problem.discretization
        self.count, random = self.op.dofmap.num_owned, np.random.default_rng(5)
        self.host = [random.uniform(0.2, 1.0, self.count) for _ in range(3)]
        self.u, self.u_t, self.du = (self.op.arrays.to_device(v) for v in self.host)
        self.op.linearize(self.u, T, self.u_t if self.disc.physics.uses_time_derivative else None, SHIFT)
        count = self.disc.mesh.num_cells
        self.cells = np.unique(np.linspace(0, count - 1, min(num_cells, count)).astype(int))

    @property
    def state(self) -> State:
        u, u_t, du = (v[self.disc.extended_dofs] for v in self.host)
        op = self.op
        return State(u, op.aux_rows, op.constants, op.penalties(), T, SHIFT, u_t, du)

    def error(self, got: np.ndarray, state: State) -> float:
        """Largest difference from the oracle in the sample's cells, of the largest value."""
        oracle = PenaltyOracle(self.disc)
        expected = np.array([oracle.rows(c, state) for c in self.cells])
        return np.abs(got[self.disc.dofmap.cell_dofs[self.cells]] - expected).max() / np.abs(expected).max()

    def computed(self, what: str) -> np.ndarray:
        out = self.op.arrays.to_device(np.full(self.count, np.nan))
        if what == "action":
            self.op.action(self.du, out)
        else:
            self.op.residual(self.u, out, T, self.u_t if self.disc.physics.uses_time_derivative else None)
        return self.op.arrays.to_host(out, self.count)


def test_the_table_is_complete():
    assert {(cell, degree) for cell, degree, _ in CASES} == {(c, d) for c in SHAPES for d in DEGREES}
    assert all(set(rows[c]) <= set(DEGREES) for rows in (WHOLE, CURVED) for c in SHAPES)


@pytest.mark.parametrize(("cell", "degree", "curved"), CASES)
def test_any_physics(cell, degree, curved):
    mesh = box_mesh(cell, seed=4)
    mesh = bent(mesh) if curved else mesh
    physics = everything(0 if degree == 1 else -1) if degree in WHOLE[cell] else nonlinear()
    sample = Sample(Uncompiled(mesh, physics, degree, "fused", sipg_theta=1 - degree % 3), 2 if degree > 3 else 5)
    assert sample.op.product == "fused" and sample.disc.mesh.geometry.is_affine != curved
    assert sample.error(sample.computed("action"), sample.state) < 1e-12
    assert sample.error(sample.computed("residual"), replace(sample.state, du=None)) < 1e-12


GPU = DeviceLimits(49152, 256, True)


@pytest.mark.parametrize(("cell", "degree", "table"), [("triangle", 2, "__constant"), ("tetrahedron", 3, "__global")])
def test_work_groups_of_gpus(cell, degree, table):
    """Several work-items a cell; tables in global memory where they are large."""
    mesh = box_mesh(cell, seed=4)
    problem = Uncompiled(bent(mesh) if cell == "triangle" else mesh, nonlinear(), degree, "fused", GPU)
    spec = problem.discretization.fused_specs()["sipg_action"]
    assert spec.macros["THREADS"] > 1 and spec.macros["TABLE"] == table and spec.local_size <= 256
    agrees(Sample(problem, 5))


def agrees(sample: Sample) -> None:
    assert sample.error(sample.computed("action"), sample.state) < 1e-12
    assert sample.error(sample.computed("residual"), replace(sample.state, du=None)) < 1e-12


@pytest.mark.parametrize(("cell", "degree", "physics"), [("triangle", 2, one_field), ("tetrahedron", 1, region_wise)])
def test_one_work_item_of_a_gpu_for_a_cell(cell, degree, physics):
    problem = Uncompiled(box_mesh(cell, seed=4), physics(), degree, "fused", GPU, sipg_theta=2 - degree)
    assert problem.discretization.fused_specs()["sipg_action"].macros["CELLS"] == CELLS
    agrees(Sample(problem, 5))


@pytest.mark.parametrize(
    ("cell", "physics", "kernel", "lanes"),
    [
        ("triangle", laplace, "fused", CPU_LANES),
        ("triangle", laplace, "auto", 1),  # products are those of another pass
        ("triangle", region_wise, "auto", CPU_LANES),  # residuals in time are as many as products
        ("triangle", nonlinear, "auto", 1),
        ("tetrahedron", laplace, "fused", 1),
    ],
)
def test_cells_that_a_cpu_does_at_once(cell, physics, kernel, lanes):
    mesh = triangles() if cell == "triangle" else box_mesh(cell, seed=4)
    problem = Uncompiled(mesh, physics(), 1, kernel)
    assert not problem.discretization.limits.is_gpu
    spec = problem.operator.fused.kernels["sipg_residual"].spec
    assert spec.macros["LANES"] == lanes
    assert ("role_action.clh" in spec.sources) == (problem.operator.product == "fused" or lanes > 1)
    agrees(Sample(problem, 5))


AFFINE = [(cell, degree) for cell in SHAPES for degree in range(1, MOST_DEGREE[cell] + 1)]


@pytest.mark.parametrize(("cell", "degree"), AFFINE)
def test_constant_coefficients(cell, degree):
    sample = Sample(Uncompiled(box_mesh(cell, seed=4), region_wise(), degree, "affine", sipg_theta=1 - degree % 3), 12)
    assert sample.op.product == "affine" and not sample.op.fast.is_automatic and sample.op.fast.classes == 0
    assert sample.error(sample.computed("action"), sample.state) < 1e-13
    assert parts_error(sample.op, sample.host[2]) < 1e-14


@pytest.mark.parametrize("cell", SHAPES)
@pytest.mark.parametrize("penalty", ["shahbazi", "paper"])
@pytest.mark.full
def test_congruent_cells_share_their_data(cell, penalty):
    mesh = fe.Mesh.box(GRIDS[cell])
    sample = Sample(Uncompiled(mesh, laplace(), 2, "affine", sipg_penalty=penalty), mesh.num_cells)
    assert 0 < sample.op.fast.classes <= mesh.num_cells / 8
    assert sample.op.fast.is_automatic == (penalty != "paper")
    assert sample.error(sample.computed("action"), sample.state) < 1e-13


def test_data_follow_constants_and_shift():
    problem = Uncompiled(box_mesh("triangle", seed=4), region_wise(), 2, "affine")
    sample = Sample(problem, 6)
    before = sample.computed("action")
    sample.op.set_constants([2.1])
    sample.op.linearize(sample.u, T, sample.u_t, SHIFT)
    after = sample.computed("action")
    assert np.abs(after - before).max() > 1e-3 and sample.error(after, sample.state) < 1e-13
    sample.op.linearize(sample.u, T, sample.u_t, 0.0)
    assert sample.error(sample.computed("action"), replace(sample.state, shift=0.0)) < 1e-13


@pytest.mark.parametrize("congruent", [True, False])
def test_the_variant_that_the_mesh_takes_is_compared(congruent, fresh_cache):
    mesh = fe.Mesh.box(GRIDS["triangle"]) if congruent else box_mesh("triangle", seed=4)
    problem = fe.Problem(mesh, laplace(), backend="sipg_gpu", degree=1)
    problem.callbacks  # noqa: B018
    fast = problem.operator.fast
    assert bool(fast.classes) == congruent
    assert verdicts.verdict(fast.kernels["sipg_affine_simplex"])["ok"]


def test_cells_may_become_congruent():
    problem = Uncompiled(fe.Mesh.box(GRIDS["triangle"]), region_wise("f0[0] = 1;"), 1, "affine")
    sample = Sample(problem, 20)
    assert sample.op.fast.classes == 0 and sample.error(sample.computed("action"), sample.state) < 1e-13
    problem.set_auxiliary("region", lambda x: 1.5 + 0.0 * x[..., 0])
    sample.op.linearize(sample.u, T, sample.u_t, SHIFT)
    assert sample.op.fast.classes > 0 and sample.error(sample.computed("action"), sample.state) < 1e-13


@cache
def triangles():
    return box_mesh("triangle", seed=4)


DIFFUSION = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
MATERIAL = {"material": fe.Auxiliary(1, "cell")}
REFUSED = {
    "convection": ({"u": 1}, "f0[0] = u_x[0];", DIFFUSION, {}),
    "convection in f1": ({"u": 1}, "f0[0] = 1;", DIFFUSION + "f1[0] += b*u[0];", {"constants": {"b": 0.0}}),
    "not symmetric": ({"u": 1}, "f0[0] = 1;", DIFFUSION + "f1[0] += 0.1*u_x[1];", {}),
    "varying": ({"u": 1}, "f0[0] = 1;", "for (d = 0; d < dim; ++d) f1[d] = (1 + x[0])*u_x[d];", {}),
    "nonlinear": ({"u": 1}, "f0[0] = u[0]*u[0];", DIFFUSION, {}),
    "two components": ({"u": 2}, "f0[0] = 1;", "for (d = 0; d < 2*dim; ++d) f1[d] = u_x[d];", {}),
    "varying Robin": ({"u": 1}, "f0[0] = 1;", DIFFUSION, {"boundary": [fe.Robin("top", "f0[0] = x[0]*u[0];")]}),
    "f1 of Robin": ({"u": 1}, "f0[0] = 1;", DIFFUSION, {"boundary": [fe.Robin("top", f1="f1[0] = n[0]*u[0];")]}),
    "wind of a material": ({"u": 1}, "f0[0] = a[0] == 2 ? u_x[0] : 0;", DIFFUSION, {"auxiliary": MATERIAL}),
    "turned in a material": ({"u": 1}, "-1", ["u_x[0]", "u_x[1] + (a[0] == 2 ? u_x[0] : 0)"], {"auxiliary": MATERIAL}),
    "oblique Robin": ({"u": 1}, "f0[0] = 1;", DIFFUSION, {"boundary": [fe.Robin("top", "f0[0] = u_x[0];")]}),
}


@pytest.mark.parametrize("case", REFUSED)
def test_other_physics_take_the_general_pass(case):
    fields, f0, f1, more = REFUSED[case]
    problem = Uncompiled(triangles(), fe.Physics(fields, f0, f1, **more), 1, "auto")
    assert problem.operator.product == "fused"
    assert not AffineSimplexPass.matches(problem.discretization)


def test_a_reaction_that_random_data_miss():
    """A text that reads u has a term of order zero, whatever it is at a sample."""
    physics = fe.Physics({"u": 1}, "fmax(a[0] - 1.5, 0.0)*u[0]", "u_x[d]", auxiliary=MATERIAL)
    problem = Uncompiled(triangles(), physics, 1, "auto")
    sample = Sample(problem, 5)
    assert problem.operator.product == "affine" and sample.error(sample.computed("action"), sample.state) < 1e-13


def test_a_program_of_one_work_item_without_barriers(monkeypatch):
    """PoCL's compiler aborts at barriers in loops over two auxiliary fields."""
    monkeypatch.delenv("PETSC_HDG_BUILD_OPTIONS", raising=False)  # as users compile
    physics = fe.Physics(
        {"u": 1}, "-q", "k*u_x[d]", auxiliary={"k": 1, "q": 1}, boundary=[fe.Dirichlet("boundary", 0.0)]
    )
    problem = fe.Problem(fe.Mesh.box((2, 2)), physics, backend="sipg_gpu", degree=2)
    problem.set_auxiliary("k", 2.0)
    problem.set_auxiliary("q", lambda x: x[..., 0])
    u = problem.solve()
    assert problem.integral("q*u", u) == pytest.approx(
        problem.integral("k*(u_x[0]*u_x[0] + u_x[1]*u_x[1])", u), rel=0.2
    )


def test_few_points_take_the_general_pass():
    problem = Uncompiled(triangles(), laplace(), 2, "auto", quadrature_degree=2)
    assert problem.operator.product == "fused"
    assert Uncompiled(triangles(), laplace(), 2, "auto", quadrature_degree=4).operator.product == "affine"
    mesh = box_mesh("tetrahedron", seed=4)
    assert Uncompiled(mesh, laplace(), MOST_DEGREE["tetrahedron"] + 1, "auto").operator.product == "fused"


def test_no_room_in_local_memory():
    disc = Uncompiled(box_mesh("tetrahedron", seed=4), nonlinear(), 6, "auto").discretization
    disc.limits = DeviceLimits(4096, 1024, True)
    with pytest.raises(OptionError, match="bytes of local memory for a tetrahedron.*lower -fe_degree"):
        simplex_specs(disc)


@pytest.mark.parametrize("degree", [5, 6])
def test_work_groups_fit_local_memory(degree):
    disc = Uncompiled(triangles(), laplace(), degree, "split").discretization
    sizes = []
    for most in (262144, 49152, 24576):
        disc.limits = DeviceLimits(most, 1024, True)
        spec = affine_simplex_specs(disc, False, False, True)["sipg_affine_simplex"]
        assert 0 < spec.local_bytes <= most
        sizes.append(spec.local_size)
    assert sizes[0] == 128 and sizes == sorted(sizes, reverse=True) and sizes[-1] < 128


@pytest.mark.parametrize(("cell", "degree"), AFFINE)
def test_gradients_of_polynomials_are_exact(cell, degree):
    tables, dim = SimplexTables(cell, degree), DIM[cell]
    slope = np.arange(1.0, dim + 1)
    corners = np.concatenate([np.zeros((1, dim)), np.eye(dim)])
    values = (1 + tables.element.nodes @ slope) ** degree
    found = tables.gradient @ values
    at = degree * (1 + tables.gradient_element.nodes @ slope) ** (degree - 1)
    expected = at[:, None] * ((corners[None] - corners[tables.gauge][:, None]) @ slope)
    assert np.abs(found - expected).max() < 1e-12 * np.abs(expected).max()
    if degree > 1:  # along edges and faces
        assert (tables.gradient == 0).mean() > 0.3

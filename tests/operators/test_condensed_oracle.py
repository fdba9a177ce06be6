"""Kernels of condensation against plain numpy: every shape and kind of physics, straight and curved cells."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
from petsc4py import PETSc
from sample_condensed import by_name
from sample_meshes import DIM, SHAPES, box_mesh

from petsc_hdg.device import Arrays, Device
from petsc_hdg.discretizations import scheme
from petsc_hdg.discretizations.condensed.oracle import CondensedOracle
from petsc_hdg.discretizations.transposition import DeviceLimits
from petsc_hdg.mesh import Mesh
from petsc_hdg.operators import create_operator
from petsc_hdg.operators.condensed.check import Sample, given_stabilization
from petsc_hdg.operators.vectors import TailedVector
from petsc_hdg.options import Options
from petsc_hdg.physics import library

MESHES = Path(__file__).parents[1] / "meshes"
CURVED = {"triangle": "disk_tri", "quadrilateral": "disk_quad", "tetrahedron": "ball_tet", "hexahedron": "ball_hex"}
T = 0.4
LINEAR = ("poisson", "tensor", "convection", "elasticity", "five", "matrix")


@dataclass(frozen=True)
class Case:
    """physics, cell, degree; mesh: box, or curved cells; other options."""

    physics: str
    cell: str
    degree: int
    curved: bool = False
    precision: str = "double"
    backend: str = "hdg_gpu"
    tau: str = "auto"
    flux: str = "auto"

    def __str__(self) -> str:
        parts = (self.physics, self.cell, str(self.degree), "curved" * self.curved, self.tau, self.precision, self.flux)
        return "-".join(part for part in (self.backend[:3], *parts) if part not in ("auto", "double", ""))


CASES = [
    Case("poisson", "triangle", 0),
    Case("poisson", "hexahedron", 1),
    Case("tensor", "triangle", 3),
    Case("tensor", "tetrahedron", 1),
    Case("convection", "quadrilateral", 2),
    Case("convection", "tetrahedron", 0, tau="1 + a[0] + fabs(n[0])*beta"),
    Case("elasticity", "quadrilateral", 1, tau="2.5"),
    Case("elasticity", "tetrahedron", 1),
    Case("five", "triangle", 1),
    Case("minimal surface", "triangle", 2),
    Case("minimal surface", "hexahedron", 0),
    Case("oblique", "quadrilateral", 1),
    Case("nonlinear", "tetrahedron", 2),
    Case("burgers", "quadrilateral", 3),
    Case("minimal surface", "triangle", 1, curved=True),
    Case("minimal surface", "hexahedron", 1, curved=True),
    Case("poisson", "triangle", 3, backend="cg_gpu"),
    Case("oblique", "quadrilateral", 2, backend="cg_gpu"),
    Case("tensor", "tetrahedron", 4, backend="cg_gpu"),
    Case("nonlinear", "triangle", 1, precision="single"),
    Case("law", "triangle", 2),
    Case("law", "hexahedron", 1),
    Case("minimal surface", "quadrilateral", 2, curved=True, tau="1 + u[0]*u[0]"),
    Case("speeds", "triangle", 1),
    Case("burgers", "triangle", 2, tau="1 + fabs(u[0]*n[0])", flux="projected"),
    Case("matrix", "triangle", 1),
    Case("nonlinear", "quadrilateral", 1, flux="pointwise"),
    Case("convection", "tetrahedron", 1, flux="pointwise"),
    Case("elasticity", "triangle", 2, flux="pointwise"),
]


class State:
    """An operator with random interiors, trace and auxiliary values; what it computes and what numpy computes."""

    def __init__(self, case: Case):
        options = Options(
            degree=case.degree,
            backend=case.backend,
            cg_condense=case.backend == "cg_gpu",
            hdg_tau=case.tau,
            hdg_flux=case.flux,
            precision=case.precision,
        )
        chosen = scheme(options)
        physics = chosen.prepared(by_name(case.physics, DIM[case.cell]), options, DIM[case.cell])
        mesh = (
            Mesh.from_file(MESHES / f"{CURVED[case.cell]}.msh", comm=PETSc.COMM_SELF)
            if case.curved
            else box_mesh(case.cell)
        )
        assert mesh.cell == case.cell and mesh.geometry.degree == 1 + case.curved
        device = Device.select("any", mesh.comm)
        self.disc = chosen(mesh, physics, options, DeviceLimits.of(device))
        self.op = create_operator(self.disc, Arrays(device, case.precision))
        random, dofmap = np.random.default_rng(5), self.disc.dofmap
        self.values = random.uniform(0.2, 1.0, dofmap.num_owned + dofmap.num_tail)
        self.interior = random.uniform(0.2, 1.0, (max(1, self.disc.num_eliminated), self.disc.stride))
        self.op.aux_rows[:] = random.uniform(0.5, 1.5, self.op.aux_rows.shape)
        if self.op.aux_rows.size:
            self.op.arrays.upload(self.op._aux, self.op.aux_rows.astype(self.op.arrays.real), "auxiliary")
        tau = given_stabilization(self.op)
        self.oracle = CondensedOracle(self.disc, tau=tau)

    def trace(self) -> TailedVector:
        vector, split = TailedVector(self.op), self.disc.dofmap.num_owned
        vector.owned, vector.tail = (self.op.arrays.to_device(np.append(v, 0)) for v in np.split(self.values, [split]))
        return vector

    def cells(self) -> list[int]:
        """A cell with a natural condition, if there is one, and the last cell."""
        return sorted({*self.disc.natural_facets[0, :1].tolist(), self.disc.mesh.num_cells - 1})

    def arguments(self, cell: int, interior=None) -> tuple:
        """What the oracle takes of a cell."""
        u = (self.interior if interior is None else interior)[: self.disc.num_eliminated, cell]
        trace = self.values[self.disc.dofmap.compact[self.disc.dofmap.cell_dofs[cell]]]
        return cell, u, trace, self.op.aux_rows[:, cell], self.op.constants, T

    def condensed(self):
        """K [cell, row, column], U [cell, row, column], condensed residual [row, cell], local solution [row, cell]."""
        disc, local, arrays = self.disc, self.op.local, self.op.arrays
        n, m, found = disc.num_eliminated, disc.num_trace_dofs, {}
        batch = -(-disc.mesh.num_cells // 32) * 32
        recovery = arrays.zeros(max(1, n * m * batch))

        def take(schur, first, count, stride):
            assert (first, count, stride) == (0, disc.mesh.num_cells, batch)
            found["K"] = arrays.to_host(schur, (m, stride, m))

        state = self.trace(), arrays.to_device(self.interior)
        local.condense(*state, T, take, recovery)
        assert local.condensation_failure(*state) == ""
        u = arrays.to_host(recovery, (m, batch, n)) if n else np.zeros((m, batch, 0))
        residual = arrays.to_host(local.residual, (m, disc.stride))
        solution = arrays.to_host(local.solution, (max(1, n), disc.stride))
        return found["K"].transpose(1, 2, 0), u.transpose(1, 2, 0), residual, solution[:n]

    def solved(self):
        """Interior [row, cell] of the local problems, residual [row, cell] of the trace."""
        disc, arrays = self.disc, self.op.arrays
        trace, interior = self.trace(), arrays.to_device(self.interior)
        self.op.local.solve(trace, interior, T)
        assert self.op.local.solve_failure(trace, interior) == ""
        shape = (max(1, disc.num_eliminated), disc.stride)
        residual = arrays.to_host(self.op.local.residual, (disc.num_trace_dofs, disc.stride))
        return arrays.to_host(interior, shape), residual


def relative(got: np.ndarray, expected: np.ndarray) -> float:
    if not expected.size:
        return 0.0
    assert np.abs(expected).max() > 1e-3
    return float(np.abs(got - expected).max() / np.abs(expected).max())


def test_the_table_is_complete():
    hdg = [c for c in CASES if c.backend == "hdg_gpu"]
    assert {c.cell for c in hdg} == set(SHAPES) and {c.degree for c in hdg} == {0, 1, 2, 3}
    assert {(c.cell, c.curved) for c in hdg} >= {("triangle", True), ("hexahedron", True)}
    assert {c.physics for c in CASES} == {
        *LINEAR,
        "minimal surface",
        "nonlinear",
        "oblique",
        "burgers",
        "law",
        "speeds",
    }


@pytest.mark.parametrize("case", CASES, ids=str)
def test_kernels_agree_with_numpy(case, record_property):
    state = State(case)
    assert state.op.is_linear == (case.physics in LINEAR)
    tolerance = 1e-11 if case.precision == "double" else 300 * np.finfo(np.float32).eps
    K, U, residual, solution = state.condensed()
    differences = {}
    for cell in state.cells():
        k, u, r = condensed_cell(state.oracle, *state.arguments(cell))
        e, v = state.oracle.matrix(*state.arguments(cell)), state.oracle.residual(*state.arguments(cell))
        n = state.disc.num_eliminated
        step = state.arguments(cell)[1] - np.linalg.solve(e[:n, :n], v[:n])
        pairs = {"K": (K[cell], k), "U": (U[cell], u), "r": (residual[:, cell], r), "u": (solution[:, cell], step)}
        differences |= {f"{name} {cell}": relative(*pair) for name, pair in pairs.items()}
    record_property("differences", differences)
    assert max(differences.values()) < tolerance, differences
    if case.precision == "single":
        assert max(differences.values()) > 1e-10  # it is single precision


@pytest.mark.parametrize("case", [c for c in CASES if c.physics not in LINEAR], ids=str)
def test_local_problems_are_solved(case):
    """The interior's rows of the element vector vanish, the trace's are the residual."""
    state = State(case)
    interior, residual = state.solved()
    tolerance = 1e-11 if case.precision == "double" else 300 * np.finfo(np.float32).eps
    n = state.disc.num_eliminated
    for cell in state.cells():
        vector = state.oracle.residual(*state.arguments(cell, interior))
        scale = np.abs(state.oracle.residual(*state.arguments(cell))).max()
        assert scale > 1e-3
        assert np.abs(vector[:n]).max(initial=0.0) < tolerance * scale
        assert np.abs(residual[:, cell] - vector[n:]).max() < tolerance * scale


@pytest.mark.parametrize("cell, degree", [("triangle", 2), ("quadrilateral", 1), ("tetrahedron", 1), ("hexahedron", 1)])
def test_the_oracle_differentiates(cell, degree):
    """The matrix against differences of the vector, K against those of the condensed residual; here is no kernel."""
    state = State(Case("nonlinear", cell, degree))
    oracle, (number, u, trace, *data) = state.oracle, state.arguments(state.cells()[0])
    n, h = state.disc.num_eliminated, 1e-5
    direction = np.random.default_rng(3).uniform(-1, 1, n + len(trace))

    def vector(step):
        return oracle.residual(number, *np.split(np.concatenate([u, trace]) + step * direction, [n]), *data)

    slope = (vector(h) - vector(-h)) / (2 * h)
    assert relative(oracle.matrix(number, u, trace, *data) @ direction, slope) < 1e-8
    solved = solved_cell(oracle, number, trace, u, *data)

    def condensed(step):
        moved = trace + step * direction[n:]
        return oracle.residual(number, solved_cell(oracle, number, moved, solved, *data), moved, *data)[n:]

    slope = (condensed(h) - condensed(-h)) / (2 * h)
    assert relative(condensed_cell(oracle, number, solved, trace, *data)[0] @ direction[n:], slope) < 1e-8


def condensed_cell(oracle, *arguments):
    """K [M, M], U [N, M] and the condensed residual [M] at a state; N interior, M trace degrees of freedom.

    K = E_tt - E_ti E_ii⁻¹ E_it,  U = -E_ii⁻¹ E_it,  r = R_t - E_ti E_ii⁻¹ R_i (King et al. 2014, eq. 15).
    """
    n, matrix, vector = oracle.discretization.num_eliminated, oracle.matrix(*arguments), oracle.residual(*arguments)
    eliminated = -np.linalg.solve(matrix[:n, :n], np.column_stack([matrix[:n, n:], vector[:n]]))
    reduced = np.column_stack([matrix[n:, n:], vector[n:]]) + matrix[n:, :n] @ eliminated
    return reduced[:, :-1], eliminated[:, :-1], reduced[:, -1]


def solved_cell(oracle, cell: int, trace, guess, aux, constants, t=0.0) -> np.ndarray:
    """u [N] of the local problem R_i(u, û) = 0 by Newton's iteration."""
    n, u, norms = oracle.discretization.num_eliminated, np.array(guess, dtype=float), []
    for _ in range(26):
        vector = oracle.residual(cell, u, trace, aux, constants, t)
        norms.append(np.linalg.norm(vector[:n]))
        if norms[-1] <= 1e-13 * max(norms[0], np.linalg.norm(vector)):
            return u
        u = u - np.linalg.solve(oracle.matrix(cell, u, trace, aux, constants, t)[:n, :n], vector[:n])
    raise AssertionError(norms)


@pytest.mark.parametrize("physics, flux", [("law", "auto"), ("speeds", "projected"), ("matrix", "auto")])
def test_the_oracle_differentiates_facets(physics, flux):
    """The matrix against differences of the vector, on a cell with a boundary flux where the physics has one."""
    state = State(Case(physics, "triangle", 2, flux=flux if physics == "law" else "auto"))
    number, u, trace, *data = state.arguments(state.cells()[0])
    direction, h = np.random.default_rng(3).uniform(-1, 1, len(u) + len(trace)), 1e-5

    def vector(step):
        return state.oracle.residual(number, *np.split(np.concatenate([u, trace]) + step * direction, [len(u)]), *data)

    slope = (vector(h) - vector(-h)) / (2 * h)
    assert relative(state.oracle.matrix(number, u, trace, *data) @ direction, slope) < 1e-8


@pytest.mark.parametrize("dim", [2, 3])
def test_first_uses_are_checked_at_states_of_the_physics(dim):
    """A gas of negative pressure is NaN by kernels and by numpy, which would compare as equal."""
    mesh = Mesh.box((2,) * dim, simplex=False, comm=PETSc.COMM_SELF)
    options, physics, device = Options(backend="hdg_gpu", degree=1), library.euler(dim), Device.select("any", mesh.comm)
    disc = scheme(options)(mesh, physics, options, DeviceLimits.of(device))
    sample = Sample(create_operator(disc, Arrays(device, "double")))
    for cell in sample.cells:
        state = sample.state_of(cell).reshape(-1, dim + 2)
        assert (state[:, -1] > 0.5 * (state[:, 1:-1] ** 2).sum(axis=1) / state[:, 0]).all()
    assert all(np.isfinite(matrix).all() and np.isfinite(vector).all() for matrix, vector in sample.systems)

"""Device kernels against plain numpy: every variant, shape and degree, with everything a physics can have."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from petsc4py import PETSc
from sample_meshes import SHAPES, box_mesh
from sample_physics import everything, everything_on_one_field, give_everything

from petsc_hdg.discretizations import oracle
from petsc_hdg.discretizations.cg.scheme import ContinuousGalerkin
from petsc_hdg.discretizations.oracle import Oracle
from petsc_hdg.options import VARIANTS, Options
from petsc_hdg.problem import Problem

DEGREES = range(1, 5)
HIGHEST = ContinuousGalerkin.degrees[1]
KERNELS = [v for v in VARIANTS if v != "auto"]
FIRST_ORDER_ONLY = ("patch",)
CELLS = {kernel: SHAPES for kernel in KERNELS} | {"tensor": ("quadrilateral", "hexahedron")}
CASES = [(k, c, d) for k in KERNELS for c in CELLS[k] for d in DEGREES if d == 1 or k not in FIRST_ORDER_ONLY]
HIGH = [("cell", "tetrahedron", 6), ("cell", "triangle", HIGHEST), ("transpose", "triangle", HIGHEST)]
T, SHIFT = 0.4, 1.7


def test_the_table_is_complete():
    for kernel in KERNELS:
        rows = {(c, d) for k, c, d in CASES if k == kernel}
        assert rows == {(c, d) for c in CELLS[kernel] for d in (DEGREES if kernel not in FIRST_ORDER_ONLY else [1])}


class State:
    """A problem with random u, u_t, du, and the oracle's sums over all cells and facets."""

    def __init__(self, cell: str, degree: int, kernel: str, precision: str = "double", physics=None, mesh=None):
        physics = physics or physics_for(kernel, degree)
        options = Options(degree=degree, kernel=kernel, check_kernels=False, precision=precision, pmat="none")
        self.problem = Problem(mesh or box_mesh(cell, seed=4), physics, options)
        if physics.auxiliary:
            give_everything(self.problem)
        self.disc, self.operator = self.problem.discretization, self.problem.operator
        random = np.random.default_rng(5)
        self.vectors = {name: self.problem.create_vec() for name in ("u", "u_t", "du")}
        for vector in self.vectors.values():
            vector.setArray(random.uniform(0.2, 1.0, vector.getLocalSize()))

    def full(self, name: str) -> np.ndarray:
        """Values [cell, dof]: essential ones are g for u, its rate for u_t (g is linear in t), 0 for du."""
        dofmap = self.disc.dofmap
        values = np.zeros(dofmap.num_owned + dofmap.num_tail)
        values[: dofmap.num_owned] = self.vectors[name].getArray()
        if name != "du" and dofmap.num_constrained:
            g = self.disc.physics.interpreter(self.disc.dim).pw_dirichlet
            for row, (condition, component, x) in enumerate(zip(*self.disc.essential_points(), strict=True)):
                at = [g(condition, None, t, x) for t in (T, T + 0.5, T - 0.5)]
                value = at[0] if name == "u" else at[1] - at[2]
                values[dofmap.num_owned + row] = value[component]
        return values[dofmap.compact[dofmap.cell_dofs]]

    def summed(self, of_cell, of_facet) -> np.ndarray:
        """Element vectors of all cells and facets added up into owned values."""
        dofmap = self.disc.dofmap
        numbers = dofmap.compact[dofmap.cell_dofs]
        out = np.zeros(dofmap.num_owned + dofmap.num_tail)
        for c in range(self.disc.mesh.num_cells):
            np.add.at(out, numbers[c], of_cell(c))
        for c, facet, condition in self.disc.natural_facets.T:
            np.add.at(out, numbers[c], of_facet(c, facet, condition))
        return out[: dofmap.num_owned]

    def expected(self) -> dict[str, np.ndarray]:
        """Residual and action by the oracle."""
        o, (u, u_t, du) = Oracle(self.disc), (self.full(name) for name in ("u", "u_t", "du"))
        state = oracle.State(u, self.operator.aux_rows, self.operator.constants, t=T, shift=SHIFT, u_t=u_t)
        given = {"residual": state, "action": replace(state, du=du)}
        return {w: self.summed(partial(o.volume, state=s), partial(o.facet, state=s)) for w, s in given.items()}

    def computed(self) -> dict[str, np.ndarray]:
        """Residual and action through PETSc's TS callbacks."""
        calls, v = self.problem.callbacks, self.vectors
        f, y = self.problem.create_vec(), self.problem.create_vec()
        calls.ifunction(None, T, v["u"], v["u_t"], f)
        calls.ijacobian(None, T, v["u"], v["u_t"], SHIFT, calls.jacobian, calls.jacobian)
        calls.jacobian.mult(v["du"], y)
        return {"residual": f.getArray().copy(), "action": y.getArray().copy()}

    def computed_diagonal(self) -> np.ndarray:
        return self.problem.callbacks.jacobian.getDiagonal().getArray().copy()


def relative(got: np.ndarray, expected: np.ndarray) -> float:
    assert expected.size and np.abs(expected).max() > 1e-3
    return float(np.abs(got - expected).max() / np.abs(expected).max())


_EXPECTED: dict = {}


def expected_of(state: State, cell: str, degree: int) -> dict[str, np.ndarray]:
    """The oracle does not depend on the kernel variant."""
    key = (state.disc.physics.name, cell, degree)
    if key not in _EXPECTED:
        _EXPECTED[key] = state.expected()
    return _EXPECTED[key]


def physics_for(kernel: str, degree: int):
    return everything_on_one_field() if kernel in FIRST_ORDER_ONLY else everything(-1 if degree > 1 else 0)


_FACES = {1: None, 2: None, 3: (2, 2, 1)}


def oracle_mesh(cell: str, degree: int):
    """Few cells where the interpreter is slow."""
    dim = 2 if cell in ("triangle", "quadrilateral") else 3
    faces = _FACES.get(degree, (1, 1, 1))
    if dim == 3 and faces is None:
        faces = (2, 2, 1)
    return box_mesh(cell, faces[:dim] if faces else None, seed=4, comm=PETSc.COMM_SELF)


@pytest.mark.parametrize("kernel, cell, degree", CASES + HIGH)
def test_kernels_agree_with_numpy(kernel, cell, degree, record_property):
    state = State(cell, degree, kernel, mesh=oracle_mesh(cell, degree))
    assert state.disc.variant == kernel and state.disc.num_facets > 0 and state.disc.dofmap.num_constrained > 0
    got, expected = state.computed(), expected_of(state, cell, degree)
    differences = {name: relative(got[name], expected[name]) for name in expected}
    record_property("differences", differences)
    assert max(differences.values()) < 1e-12, differences


@pytest.mark.full("tensor", "transpose")
@pytest.mark.parametrize(
    "kernel, cell", list(zip(KERNELS, ("triangle", "hexahedron", "quadrilateral", "tetrahedron"), strict=True))
)
def test_single_precision(kernel, cell):
    state = State(cell, 1, kernel, "single", mesh=oracle_mesh(cell, 1))
    got, expected = state.computed(), expected_of(state, cell, 1)
    for name in expected:
        difference = relative(got[name], expected[name])
        assert 1e-12 < difference < 100 * np.finfo(np.float32).eps, (name, difference)

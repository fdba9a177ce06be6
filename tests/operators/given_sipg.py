"""Operators of interior penalty at a given random state, in one pass and with volume and fluxes apart.

python given_sipg.py compares both on the ranks of mpiexec.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
from petsc4py import PETSc

from petsc_hdg.device import Arrays, Device
from petsc_hdg.discretizations.oracle import State
from petsc_hdg.discretizations.sipg.scheme import InteriorPenalty
from petsc_hdg.discretizations.transposition import DeviceLimits
from petsc_hdg.operators.sipg.operator import SIPGOperator
from petsc_hdg.options import Options

T, SHIFT = 0.4, 1.7
_DEVICES: list = []


def device(comm=None) -> Device:
    if not _DEVICES:
        _DEVICES.append(Device.select("any", comm))
    return _DEVICES[0]


def made(mesh, physics, degree: int, limits=None, precision: str = "double", **settings) -> SIPGOperator:
    """An operator with random auxiliary fields; limits: of the device for which launch shapes are chosen."""
    options = Options(backend="sipg_gpu", degree=degree, check_kernels=False, precision=precision, **settings)
    chosen = device(mesh.comm)
    limits = limits or DeviceLimits.of(chosen)
    operator = SIPGOperator(InteriorPenalty(mesh, physics, options, limits), Arrays(chosen, precision))
    random = np.random.default_rng(9)
    auxiliary = operator.discretization.auxiliary
    for field in auxiliary.fields:
        rows = 1 if field.space == "cell" else auxiliary.element.num_basis
        operator.set_auxiliary(field.name, random.uniform(0.5, 1.5, (mesh.num_cells, rows, field.components)))
    return operator


def parts_error(operator, values: np.ndarray) -> float:
    """How far the parts of x·y that a product sums are from x·y [owned values `values` on one rank], of |x| |y|."""
    arrays, count = operator.arrays, len(values)
    fast, x, y = operator.fast, arrays.to_device(values), arrays.zeros(count)
    fast.parts = arrays.to_device(np.full(fast.num_parts, np.nan))
    operator.action(x, y)
    parts, fast.parts = arrays.to_host(fast.parts, fast.num_parts), None
    product = arrays.to_host(y, count)
    return abs(parts.sum() - values @ product) / np.linalg.norm(values) / np.linalg.norm(product)


class GivenState:
    """Random u, u_t, du, penalties found there, and what each way of computing gives."""

    def __init__(self, mesh, physics, degree: int, limits=None, **settings):
        self.one = made(mesh, physics, degree, limits, sipg_kernel="fused", **settings)
        self.two = made(mesh, physics, degree, limits, sipg_kernel="split", **settings)
        self.disc = self.one.discretization
        random = np.random.default_rng(5 + mesh.comm.rank)
        count = self.disc.dofmap.num_owned
        self.values = [random.uniform(0.2, 1.0, max(1, count)) for _ in range(3)]

    def fused(self, what: str) -> np.ndarray:
        """Residual or action [owned] in one pass. Collective."""
        return self._result(self.one, what)

    def difference(self, what: str) -> float:
        """Largest difference of both ways over the largest entry. Collective."""
        one, two = (self._result(operator, what) for operator in (self.one, self.two))
        comm = self.disc.mesh.comm
        largest, apart = (max(comm.allgather(float(np.abs(a).max(initial=0.0)))) for a in (two, one - two))
        assert largest > 0.1
        return apart / largest

    def of_oracle(self, what: str) -> State:
        """The state as PenaltyOracle takes it; on one rank."""
        u, u_t, du = (values[self.disc.extended_dofs] for values in self.values)
        self._linearized(self.one)
        data = self.one.aux_rows, self.one.constants, self.one.penalties()
        return State(u, *data, T, SHIFT, u_t, du if what == "action" else None)

    def _linearized(self, operator):
        """Buffers of the random vectors, the operator linearized at the first two: both find the same penalties."""
        buffers = [operator.arrays.to_device(v.astype(operator.arrays.real), "state") for v in self.values]
        operator.linearize(buffers[0], T, buffers[1], SHIFT)
        return buffers

    def _result(self, operator, what: str) -> np.ndarray:
        u, u_t, du = self._linearized(operator)
        count = self.disc.dofmap.num_owned
        out = operator.arrays.zeros(max(1, count))
        if what == "residual":
            operator.residual(u, out, T, u_t)
        else:
            operator.action(du, out)
        return operator.arrays.to_host(out, count, name="result").astype(float)


def main() -> None:
    sys.path.insert(0, str(Path(__file__).parents[1]))
    from sample_meshes import box_mesh
    from sample_physics import everything

    cells = 0
    for cell, faces, degree in (("quadrilateral", (9, 8), 2), ("hexahedron", (3, 4, 4), 1)):
        mesh = box_mesh(cell, faces, comm=PETSc.COMM_WORLD, partition_seed=2)
        state = GivenState(mesh, everything(pressure_offset=0), degree)
        assert mesh.comm.size == 1 or state.disc.neighbours.num_ghosts > 0
        for what in ("residual", "action"):
            assert state.difference(what) < 1e-12, (cell, what)
        cells += mesh.comm.allreduce(mesh.num_cells)
    PETSc.Sys.Print(f"{cells} cells agree", comm=PETSc.COMM_WORLD)


if __name__ == "__main__":
    main()

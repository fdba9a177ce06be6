"""A condensed operator that was given its state: random values inside the cells and on their facets."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np

from petsc_hdg.device import Arrays, Device
from petsc_hdg.operators.condensed.local_stage import LocalStage
from petsc_hdg.operators.condensed.operator import Stabilization


class GivenState:
    """What Recovery asks of an operator, with `interior` [dof, stride] and trace `values` [compact number]."""

    def __init__(self, disc, seed: int = 1):
        random, dofmap = np.random.default_rng(seed), disc.dofmap
        self.discretization = disc
        self.arrays = Arrays(Device.select("any", disc.mesh.comm), disc.options.precision)
        self.interior = random.uniform(0.2, 1.0, (disc.num_eliminated, disc.stride))
        self.values = random.uniform(0.2, 1.0, dofmap.num_owned + dofmap.num_tail)
        self.aux_rows = random.uniform(0.5, 1.0, (max(1, disc.auxiliary.num_rows), disc.stride))
        self.constants = np.array(list(disc.physics.constants.values()) or [0.0])
        given = (self.constants, disc.mesh.geometry.nodes, disc.cell_nodes(), disc.cell_dofs(), self.aux_rows)
        self.stabilization = Stabilization(self) if disc.stabilization_follows else None
        buffers = [self.arrays.to_device(array) for array in given]
        self._constants, self._nodes, self._cell_nodes, self._dofs, self._aux = buffers
        self._conditions = self.arrays.to_device(disc.facet_conditions())
        self.device, self.dofmap, self.is_linear = self.arrays.device, dofmap, disc.physics.is_linear
        self.local = LocalStage(self)

    def local_state(self, x, t):
        return self.arrays.to_device(self.interior)

    def trace(self, x, t):
        parts = np.split(self.values, [self.discretization.dofmap.num_owned])
        owned, tail = (self.arrays.to_device(np.append(part, 0.0)) for part in parts)
        return SimpleNamespace(owned=owned, tail=tail)

    def of_cell(self, cell: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Interior [dof], trace [dof] and auxiliary rows of a cell."""
        dofmap = self.discretization.dofmap
        trace = self.values[dofmap.compact[dofmap.cell_dofs[cell]]]
        return self.interior[:, cell], trace, self.aux_rows[:, cell]

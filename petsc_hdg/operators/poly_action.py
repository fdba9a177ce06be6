"""Products by the matrix of polytopic DG without it, polytope by polytope."""

from __future__ import annotations

from functools import cached_property

from ..device import Kernel
from ..device.halo import Halo
from .vectors import TailedVector


class PolytopicAction:
    """The kernels `poly_action` of a PolytopicOperator, one a degree; making one is collective."""

    def __init__(self, operator):
        self.operator, self.arrays, self.dofmap = operator, operator.arrays, operator.dofmap
        disc, dofmap = operator.discretization, operator.dofmap
        self.halo = Halo(disc.mesh.comm, dofmap.num_owned, dofmap.ghost_rank, dofmap.ghost_index, operator.arrays)
        self.direction = TailedVector(self)

    @cached_property
    def launches(self) -> list:
        """Kernel, number of items and their rows [item, 5] for each degree."""
        operator, disc = self.operator, self.operator.discretization
        found = []
        for items in disc.blocks.everything():
            facets = float((items.rows[:, 4] - items.rows[:, 3]).mean())
            kernel = Kernel(disc.action_spec(items.degree, facets), operator.device)
            found.append((kernel, len(items.rows), self.arrays.to_device(items.rows, "polytopes")))
        return found

    @cached_property
    def _faces(self):
        return self.arrays.to_device(self.operator.discretization.blocks.faces, "polytopes")

    def all_kernels(self) -> dict[str, Kernel]:
        """Every kernel compiled so far, by name and degree."""
        compiled = self.__dict__.get("launches", ())
        return {f"poly_action_{kernel.spec.macros['DEGREE']}": kernel for kernel, *_ in compiled}

    def run(self, du, out) -> None:
        """out = J du at the state of the operator's `linearize`. Collective."""
        operator, components = self.operator, self.operator.discretization.physics.num_components
        du = self.direction.use(du)
        vectors = (self.dofmap.num_owned, du.owned, du.tail, out)
        for kernel, count, rows in self.launches:
            macros = kernel.spec.macros
            groups = -(-count // (macros["GROUP"] // macros["LANES"])) * components
            lists = (operator.boxes, count, rows, operator.cells, self._faces, operator.of_cell, operator.first)
            kernel(groups * macros["GROUP"], *operator.fine._facet_arguments(kernel), *lists, *vectors)

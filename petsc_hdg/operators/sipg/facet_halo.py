"""Exchange of what facets between ranks read of the cells behind them, not of whole cells."""

from __future__ import annotations

import numpy as np

from ...codegen import KernelSpec
from ...device import Kernel
from ...device.halo import Halo
from ...discretizations.sipg.facet_data import FacetData
from ...discretizations.sipg.interleaved import Interleaved


class FacetHalo(Halo):
    """Ghosts of an InteriorPenalty discretization: a cell behind one facet comes as its stand-in there (FacetData),
    zero at other nodes; one behind several facets comes whole. Nothing goes back to owners. Collective to make.
    """

    sends_points = False

    def __init__(self, disc, data: FacetData, arrays):
        self._disc, self._data = disc, data
        rows, cells, faces = disc.row_of_dof.size, disc.mesh.num_cells, disc.num_facets_of_cell
        self._sizes = (cells * rows, cells, rows, disc.num_nodes, rows // disc.num_nodes, faces, data.sent)
        owner, index, place = self._wanted()
        virtual = cells * faces * data.sent * (rows // disc.num_nodes)
        super().__init__(disc.mesh.comm, cells * rows + virtual, owner, index, arrays, ghost_place=place)

    def _wanted(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Owner, number there and place in the tail of each value, by place. Collective."""
        near, faces = self._disc.neighbours, self._disc.num_facets_of_cell
        counts = np.array(near.plan.comm.allgather(near.num_cells))
        behind = near.neighbour - near.num_cells
        pairs = np.unique(np.stack([behind, near.facet], axis=2)[behind >= 0], axis=0).reshape(-1, 2)
        alone = np.bincount(pairs[:, 0], minlength=near.num_ghosts) == 1
        facet = np.zeros(near.num_ghosts, np.int64)
        facet[pairs[:, 0]] = pairs[:, 1]
        _, _, rows, nodes, components, _, sent = self._sizes
        layout, ghosts = Interleaved(rows), np.arange(near.num_ghosts)
        owned = counts[near.ghost_rank].astype(np.int64)
        whole, single = np.flatnonzero(~alone)[:, None], np.flatnonzero(alone)
        each = np.arange(rows)
        here = near.ghost_cell[single].astype(np.int64) * faces + facet[single]
        numbers = owned[single, None] * rows + here[:, None] * (components * sent) + np.arange(components * sent)
        kept = np.arange(components)[:, None] * nodes + self._data.nodes[facet[single], None]
        kept = kept.reshape(len(single), components * sent)
        ghost = np.concatenate([np.broadcast_to(whole, (len(whole), rows)).ravel(), np.repeat(single, kept.shape[1])])
        index = np.concatenate(
            [layout.index(owned[whole], near.ghost_cell[whole].astype(np.int64), each).ravel(), numbers.ravel()]
        )
        place = np.concatenate(
            [
                layout.index(len(ghosts), whole, each).ravel(),
                layout.index(len(ghosts), single[:, None], kept).ravel(),
            ]
        )
        order = np.argsort(place, kind="stable")
        return near.ghost_rank[ghost[order]], index[order], place[order]

    def _pack_kernel(self) -> Kernel:
        spec = KernelSpec("halo_pack_facets", ("halo_facets.cl",), precision=self.arrays.precision, local_size=64)
        lists = (self._data.start, self._data.node, self._data.weight)
        self._lists = [self.arrays.to_device(values, "halo tables") for values in lists]
        return Kernel(spec, self.arrays.device)

    def _pack(self, side: str, source, packed, count: int):
        return self._kernels["halo_pack"](count, source, self._tables[side], packed, count, *self._sizes, *self._lists)

"""Kernel specs of the local stage of cells that share their solvers; data for the device layer."""

from __future__ import annotations

from ...codegen import KernelSpec
from .specs import CONDENSE_POINT
from .tile_shape import TileShape, tile_shape

_POINTS = ("geometry.clh", "geometry_nodes.clh", "point.clh", *CONDENSE_POINT)


def class_shape(disc) -> TileShape:
    """Launch shape of `condense_element` and `condense_shared` of a CondensedDiscretization."""
    whole = disc.num_functions * disc.components
    return tile_shape(whole, whole, disc.components, disc._point_block(), disc.real_bytes, disc.limits, "condense")


def class_specs(disc) -> dict[str, KernelSpec]:
    """Specs of condense_element.cl and condense_classes.cl, by name."""
    shape = class_shape(disc)
    macros = disc.sum_macros(shape)
    sources = (*_POINTS, "condense_tile.clh", "condense_sum.clh", "condense_element.cl")
    found = {
        name: disc.spec(name, sources, macros, dict(disc._tables), shape.threads * shape.cells)
        for name in ("condense_element", "condense_shared")
    }
    sizes = {"NE": disc.num_eliminated, "NM": disc.num_trace_dofs, "NDOF": disc.num_trace_dofs}
    for name in ("condense_recover_shared", "condense_spread"):
        sources = ("gather_tvector.clh", "condense_classes.cl")
        found[name] = KernelSpec(name, sources, sizes, {}, "", disc.options.precision, 64)
    return found

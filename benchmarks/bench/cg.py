"""Rows of the scheme cg_gpu: element-vector form (Knepley, Rupp and Terrel 2016) and whole residuals."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import chain

import numpy as np

from petsc_hdg.codegen import signature
from petsc_hdg.commands.bench import median_seconds
from petsc_hdg.device import Arrays, Kernel
from petsc_hdg.discretizations.cg.scheme import ContinuousGalerkin
from petsc_hdg.discretizations.transposition import DeviceLimits
from petsc_hdg.operators.cg.operator import CGOperator
from petsc_hdg.options import Options
from petsc_hdg.physics import Physics

from .group import Group, row_name
from .peak import kernel_file
from .row import row
from .tiled import TiledCG, shaken_box

# (cell, degree, quadrature degree): the rule integrates the stiffness of these elements exactly on affine cells.
CASES = [
    ("triangle", 1, 0),
    ("triangle", 2, 2),
    ("tetrahedron", 1, 0),
    ("tetrahedron", 2, 2),
    ("quadrilateral", 1, 2),
    ("quadrilateral", 2, 4),
    ("quadrilateral", 4, 8),
    ("hexahedron", 1, 2),
    ("hexahedron", 2, 4),
    ("hexahedron", 3, 6),
    ("hexahedron", 4, 8),
]
SIMPLICES = ("triangle", "tetrahedron")
SMALL_TILES = {"triangle": (32, 32), "quadrilateral": (64, 64), "tetrahedron": (8, 8, 8), "hexahedron": (24, 24, 24)}
FEW = 2  # degree above which cells have so many unknowns that tiles are smaller and one thread does not hold them


def laplace() -> Physics:
    """-∇·∇u, the physics of the paper's Poisson rows."""
    return Physics({"u": 1}, f1="for (d = 0; d < dim; ++d) f1[d] = u_x[d];", name="laplace")


def groups(device, given, copy):
    """Yield groups of bench rows, one for each mesh."""
    total = given.cells or (16e6 if device.is_gpu else 2e5)
    for cell, degree, rule in CASES:
        share = total / {"triangle": 1, "tetrahedron": 1, "quadrilateral": 2, "hexahedron": 4}[cell]
        share /= {1: 1, 2: 4}.get(degree, degree ** (2 if cell == "quadrilateral" else 3))
        titles = {row_name(f"cg {name}", cell, degree): f"cg {name}" for name in _measurements(cell, degree)}
        yield Group(tuple(titles), partial(_prepare, device, given, copy, (cell, degree, rule), share, titles))


def _prepare(device, given, copy, case: tuple, share: float, titles: dict, names) -> dict:
    """Measurements on one mesh."""
    tile = _tile(*case, given, share, DeviceLimits.of(device))
    disc, measurements = TiledCG(tile, max(1, round(share / tile.mesh.num_cells))), _measurements(*case[:2])
    return {
        name: partial(measurements[titles[name].removeprefix("cg ")], titles[name], disc, device, given.repeat, copy)
        for name in names
    }


def _tile(cell: str, degree: int, rule: int, given, share: float, limits) -> ContinuousGalerkin:
    options = Options(degree=degree, precision=given.fe_precision, quadrature_degree=rule)
    faces = None if share > 3e5 else SMALL_TILES[cell]
    if degree > FEW:
        faces = tuple(n // 3 for n in SMALL_TILES[cell])
    return ContinuousGalerkin(shaken_box(cell, faces), laplace(), options, limits)


def _measurements(cell: str, degree: int) -> dict:
    """Measurements that fit cells of a degree: name → function. Simplices have constant Jacobians."""
    found = {}
    low, simplex = degree <= FEW, cell in SIMPLICES
    for variant in ("cell", "transpose") if low else ("transpose",):
        if simplex:
            found[f"element {variant}"] = _with_variant(variant, element_row)
        found[f"whole {variant}"] = _with_variant(variant, whole_row)
    if not simplex:
        found["whole tensor"] = _with_variant("tensor", whole_row)
        for variant in ("cell", "tensor") if low else ("tensor",):
            found[f"diagonal {variant}"] = _with_variant(variant, diagonal_row)
    if degree == 1:
        found["whole patch"] = _with_variant("patch", whole_row)
    return found


def _with_variant(variant: str, measure):
    def run(title, disc, *others):
        disc.__dict__.pop("variant", None)
        disc.__dict__["variant"] = variant  # the cached property's own place
        return measure(title, disc, *others)

    return run


def element_row(title, disc, device, repeat, copy) -> dict:
    """The paper's form: element vectors in and out, geometry of affine cells stored.

    bytes_compulsory: cells · reals · (dim² + 1 geometry + dofs in + dofs out + auxiliary values).
    """
    arrays = Arrays(device, disc.options.precision)
    spec = disc.volume_specs()["cg_residual"]
    files = {"geometry.clh": ("geometry.clh", kernel_file("geometry_stored.clh"))}
    files |= {"gather_tvector.clh": (kernel_file("gather_evector.clh"),)}
    sources = tuple(chain.from_iterable(files.get(file, (file,)) for file in spec.sources))
    arguments = (*spec.arguments, *signature("const real *stored_geometry [DIM * DIM + 1, stride]"))
    kernel = Kernel(replace(spec, sources=sources, arguments=arguments), device)
    random = np.random.default_rng(3)
    u = arrays.to_device(random.uniform(-1, 1, disc.num_dofs * disc.stride))
    tables, cells, nothing = kernel.spec.table_buffer, disc.mesh.num_cells, arrays.zeros(1)
    arguments = {
        "num_cells": cells,
        "stride": disc.stride,
        "n_owned": 0,
        "t": 0.0,
        "shift": 0.0,
        "constants_": nothing,
        "dofs": None,
        "nodes": arrays.to_device(disc.mesh.geometry.nodes),
        "cell_nodes": arrays.to_device(disc.cell_nodes()),
        "stored_geometry": arrays.to_device(_stored_geometry(disc)),
        "aux": arrays.to_device(np.ones(1 + disc.auxiliary.num_rows * disc.stride)),
        "tables": arrays.to_device(tables) if tables.size else None,
        "out": arrays.empty(disc.num_dofs * disc.stride),
    } | {f"{vector}_{part}": u for vector in ("u", "ut", "du") for part in ("owned", "tail")}
    seconds = median_seconds(device, lambda: kernel.launch(cells, arguments), repeat)
    nbytes = cells * disc.real_bytes * (disc.dim**2 + 1 + 2 * disc.num_dofs + disc.auxiliary.num_rows)
    return row(
        kernel=title, discretization=disc, device=device, cells=cells, dofs=cells * disc.num_dofs,
        dof_kind="element", seconds=seconds, nbytes=nbytes, flops=cells * disc.flops_per_cell, copy=copy,
    )  # fmt: skip


def whole_row(title, disc, device, repeat, copy) -> dict:
    """PETSc's vector in, PETSc's vector out, geometry from vertices.

    bytes_compulsory: unknowns · 2 reals + nodes · dim reals + cells · 4 (dofs, and nodes where they are not the dofs).
    """
    op, u, out = _on_vectors(disc, device)
    seconds = median_seconds(device, lambda: op.residual(u, out), repeat)
    return _whole(title, disc, device, seconds, 2, disc.flops_per_cell, copy)


def diagonal_row(title, disc, device, repeat, copy) -> dict:
    """The Jacobian's diagonal into PETSc's vector; bytes_compulsory as of a whole residual, but no vector is read."""
    op, u, out = _on_vectors(disc, device)
    op.linearize(u)
    seconds = median_seconds(device, lambda: op.diagonal(out), repeat)
    return _whole(title, disc, device, seconds, 1, disc.flops_per_diagonal, copy)


def _on_vectors(disc, device):
    """The operator, a vector of random numbers and one of zeros."""
    arrays = Arrays(device, disc.options.precision)
    op = CGOperator(disc, arrays)
    count = disc.dofmap.num_owned
    return op, arrays.to_device(np.random.default_rng(3).uniform(-1, 1, count)), arrays.zeros(count)


def _whole(title, disc, device, seconds: float, vectors: int, flops: int, copy) -> dict:
    """Row of what reads and writes so many vectors, with flops of a cell."""
    count, cells, nodes = disc.dofmap.num_owned, disc.mesh.num_cells, len(disc.mesh.geometry.nodes)
    indices = disc.num_dofs + (
        0 if disc.is_first_order and disc.physics.num_components == 1 else disc.geometry_element.num_basis
    )
    nbytes = disc.real_bytes * (vectors * count + disc.dim * nodes) + 4 * cells * indices
    return row(
        kernel=title, discretization=disc, device=device, cells=cells, dofs=count, dof_kind="unique", seconds=seconds,
        nbytes=nbytes, flops=cells * flops, copy=copy,
    )  # fmt: skip


def _stored_geometry(disc) -> np.ndarray:
    """Inverse Jacobian and |det| [dim² + 1, stride] of affine cells, which are copies of those of a tile."""
    g = disc.tile.mesh.geometry
    corners = g.nodes[g.cell_nodes]
    jacobian = np.moveaxis(corners[:, 1:] - corners[:, :1], 1, 2)  # [cell, physical, reference]
    inverse = np.linalg.inv(jacobian)
    out = np.zeros((disc.dim**2 + 1, disc.stride))
    cells = disc.mesh.num_cells
    out[:-1, :cells] = np.tile(inverse.reshape(len(corners), -1).T, disc.copies)
    out[-1, :cells] = np.tile(np.abs(np.linalg.det(jacobian)), disc.copies)
    return out

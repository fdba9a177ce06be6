"""Table 2, figures 4 and 5 and the performance model of Knepley, Rupp and Terrel 2016 (knepley_2016.json).

    python benchmarks/papers/knepley.py
    python benchmarks/papers/knepley.py -fe_device gpu -scale gpu -results benchmarks/results/papers_h100

Element vectors of the residual of first-order simplices in the paper's form: coefficients of cells and stored geometry
in, element vectors out, one quadrature point. Rows by their table:

figure4   -∇·κ∇u, κ constant, a number per cell (P0) or nodal (P1), in 2D and 3D, by thread transposition and by one
          thread per cell, in single and double precision
figure5   linear elasticity, the same
sweep     table 2: blocks per batch and batches per chunk (-fe_num_blocks, -fe_num_batches)

Rates are in flops of the paper's model (`Sizes.flops`).
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from functools import cache, partial
from math import lcm

from paper_tables import NONE, RESULTS, Results, Table, pick, printed, run

PAPER = printed("knepley_2016")
CELLS = {"small": 5e4, "full": 2e5, "gpu": 6e6}
CELL = {2: "triangle", 3: "tetrahedron"}
PRECISIONS = ("single", "double")
KERNELS = {"transpose": "thread transposition", "cell": "one thread per cell"}
COEFFICIENTS = ("1", "P0", "P1")
SWEEP = {"small": ((16, 24, 32), (4, 16))} | dict.fromkeys(("full", "gpu"), ((16, 20, 24, 28, 32, 36), (4, 8, 12, 16)))


# The model, equations 3 to 9 ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Sizes:
    """Sizes of an element, from which the paper's equations 3 to 9 predict the rate of the integration.

    dim, basis (scalar functions, N_b), components, points (N_q);  real: bytes of a number;  auxiliary: values per cell.
    has_values: whether f0 and the functions' values take part (eq. 3 and 4), or only gradients (eq. 5).
    The formulas are not legible in our copy of the paper. Memory follows its text; flops are those that PETSc logs for
    the paper's benchmark, SNES ex12.
    """

    dim: int
    basis: int
    components: int = 1
    points: int = 1
    real: int = 4
    auxiliary: int = 0
    has_values: bool = True

    @property
    def block_cells(self) -> int:
        """Cells of a block: lcm of functions and points over the points of a cell."""
        return lcm(self.basis * self.components, self.points) // self.points

    @property
    def reals_per_cell(self) -> int:
        """Numbers of a cell in shared memory, eq. 4 and 5: geometry, coefficients, values at the points."""
        values = self.points * self.components * (self.dim + self.has_values)
        return self.dim**2 + 1 + self.basis * self.components + self.auxiliary + values

    def shared_bytes(self, blocks: int) -> int:
        """Shared memory of a work-group, eq. 3: that of the cells of a batch, and the tabulation."""
        table = self.basis * self.points * (self.dim + self.has_values)
        return self.real * (blocks * self.block_cells * self.reals_per_cell + table)

    @property
    def traffic(self) -> int:
        """Bytes of a cell through global memory, eq. 6 without the tabulation: geometry, coefficients, element "
        "vector."""
        return self.real * (self.dim**2 + 1 + 2 * self.basis * self.components + self.auxiliary)

    @property
    def flops(self) -> int:
        """Flops of a cell, eq. 7: gradients at the points, weights and f1, and the products with the test functions."""
        gradient = 2 * self.dim * (self.dim + 1)
        at_points = self.basis * self.components * gradient + self.components * (2 + 2 * self.dim)
        return self.points * at_points + self.basis * self.components * (2 + gradient) * self.points

    @property
    def balance(self) -> float:
        """Flops per byte, eq. 8 and 9."""
        return self.flops / self.traffic

    def gflops(self, bandwidth: float, peak: float = float("inf")) -> float:
        """The predicted rate for GB/s of memory and GF/s of arithmetic."""
        return min(self.balance * bandwidth, peak)


def sizes(physics: str, dim: int, precision: str, coefficient: str = "1") -> Sizes:
    """Those of a row."""
    auxiliary = {"1": 0, "P0": 1, "P1": dim + 1}[coefficient]
    components = dim if physics == "elasticity" else 1
    return Sizes(dim, dim + 1, components, 1, {"single": 4, "double": 8}[precision], auxiliary)


# Measuring -----------------------------------------------------------------------------------------------------------


def physics_of(name: str, coefficient: str):
    """Laplace's operator with a coefficient, or linear elasticity with the paper's f1, the symmetric gradient."""
    import petsc_hdg as fe

    if name == "elasticity":
        f1 = """
            for (PetscInt c = 0; c < dim; ++c)
              for (PetscInt d = 0; d < dim; ++d) f1[c*dim + d] = 0.5*(u_x[c*dim + d] + u_x[d*dim + c]);
        """
        return lambda dim: fe.Physics({"u": dim}, f1=f1, name="elasticity")
    if coefficient == "1":
        return lambda dim: fe.Physics({"u": 1}, f1="for (d = 0; d < dim; ++d) f1[d] = u_x[d];", name="laplace")
    space = {"P0": "cell", "P1": "nodal"}[coefficient]
    f1, auxiliary = "for (d = 0; d < dim; ++d) f1[d] = kappa*u_x[d];", {"kappa": fe.Auxiliary(1, space=space)}
    return lambda dim: fe.Physics({"u": 1}, f1=f1, auxiliary=auxiliary, name=f"laplace {coefficient}")


def groups(device, given, copy):
    """Groups of rows, each with one discretization."""
    from bench.group import Group

    def group(name: str, **case):
        full = {"physics": "laplace", "coefficient": "1", "kernel": "transpose", "blocks": 0, "batches": 1} | case
        return Group((name,), lambda names: {name: partial(measure, device, given, copy, **full)})

    for dim in CELL:
        for precision in PRECISIONS:
            for kernel in KERNELS:
                case = {"dim": dim, "precision": precision, "kernel": kernel}
                both = given.scale != "small" or kernel == "transpose"
                for coefficient in COEFFICIENTS if both else COEFFICIENTS[:1]:
                    name = f"figure4 {dim}D {precision} {kernel} κ {coefficient}"
                    yield group(name, table="figure4", coefficient=coefficient, **case)
                yield group(f"figure5 {dim}D {precision} {kernel}", table="figure5", physics="elasticity", **case)
    blocks, batches = SWEEP[given.scale]
    for precision in PRECISIONS:
        for b in blocks:
            for n in batches:
                case = {"table": "sweep", "dim": 2, "precision": precision, "blocks": b, "batches": n}
                yield group(f"sweep {precision} blocks {b} batches {n}", **case)


def measure(device, given, copy, *, table, physics, dim, precision, kernel, coefficient, blocks, batches) -> dict:
    """One row."""
    from bench.cg import element_row
    from bench.tiled import TiledCG

    from petsc_hdg.discretizations.cg.scheme import ContinuousGalerkin
    from petsc_hdg.discretizations.transposition import DeviceLimits
    from petsc_hdg.options import Options

    options = Options(precision=precision, quadrature_degree=0, num_blocks=blocks, num_batches=batches)
    mesh = mesh_of(dim, given.scale)
    tile = ContinuousGalerkin(mesh, physics_of(physics, coefficient)(dim), options, DeviceLimits.of(device))
    disc = TiledCG(tile, max(1, round(CELLS[given.scale] / mesh.num_cells)))
    disc.__dict__["variant"] = kernel  # the cached property's own place
    found = element_row(table, disc, device, given.repeat, copy)
    model, cells = sizes(physics, dim, precision, coefficient), disc.mesh.num_cells
    row = {"table": table, "physics": physics, "dim": dim, "precision": precision, "kernel": kernel}
    row |= {"coefficient": coefficient, "blocks": blocks, "batches": batches, "cells": cells}
    row |= {"seconds": found["seconds_median"], "gflops": cells * model.flops / found["seconds_median"] / 1e9}
    row |= {"fraction_of_copy": found["fraction_of_copy"], "copy_GBs": copy / 1e9}
    return row | {"model_gflops": model.gflops(copy / 1e9)}


@cache
def mesh_of(dim: int, scale: str):
    """The tile of which meshes are copies."""
    from bench.cg import SMALL_TILES
    from bench.tiled import shaken_box

    return shaken_box(CELL[dim], None if scale == "gpu" else SMALL_TILES[CELL[dim]])


# Tables --------------------------------------------------------------------------------------------------------------


def tables(results: Results | None = None) -> list[Table]:
    """The paper's tables and ours."""
    results = results or KnepleyResults("knepley")
    return [sweep_table(results), *figure_tables(results), model_table()]


class KnepleyResults(Results):
    """Rows of an H100 of Poisson in double precision are also those of `bench cg`."""

    @property
    def by_device(self):
        rows = json.loads((RESULTS / "cg_h100.json").read_text(encoding="utf-8"))
        found = [earlier for row in rows if (earlier := earlier_row(row))]
        return {"H100": self.h100 + found, "PoCL": self.pocl}


def earlier_row(row: dict) -> dict:
    """A row of `bench cg` as one of figure 4, {} if it is of another kernel or element."""
    dim, kernel = {v: k for k, v in CELL.items()}.get(row["cell"]), row["kernel"].removeprefix("cg element ")
    if dim is None or row["degree"] != 1 or kernel not in KERNELS:
        return {}
    model = sizes("laplace", dim, row["precision"])
    found = {"table": "figure4", "dim": dim, "precision": row["precision"], "coefficient": "1", "kernel": kernel}
    found |= {"gflops": row["cells"] * model.flops / row["seconds_median"] / 1e9}
    found |= {"model_gflops": model.gflops(row["copy_GBs_same_run"])}
    return found | {"fraction_of_copy": row["fraction_of_copy"]}


def sweep_table(results: Results) -> Table:
    scope = {"precision": "", "blocks": "per batch", "batches": "per chunk", "paper": "one GPU of table 1, not named"}
    for head in results.by_device:
        scope |= {head: "the same kernel", f"model, {head}": "eq. 9 and the copy of the run", f"of copy, {head}": ""}
    rows = []
    for precision in PRECISIONS:
        for line in PAPER["table2_blocks_batches_2d_poisson_gflops"]:
            for batches, value in zip(line["batches"], line[precision], strict=True):
                row = [precision, line["blocks"], batches, value]
                for found in results.by_device.values():
                    keys = {"precision": precision, "blocks": line["blocks"], "batches": batches}
                    row += rates(pick(found, table="sweep", **keys))
                rows.append(row)
    note = (
        "Scope: the same form of the integration, with remainder cells masked on the device where the paper leaves "
        "them to the host. The model predicts one rate for all sizes; the spread is what it leaves out."
    )
    return Table("Table 2: blocks per batch and batches per chunk, 2D Poisson, GF/s", scope, rows, note, keys=3)


def rates(row: dict) -> list:
    """Rate, the model's, and the fraction of copy."""
    return [row.get(key, NONE) for key in ("gflops", "model_gflops", "fraction_of_copy")]


def figure_tables(results: Results) -> list[Table]:
    """Figures 4 and 5 as tables."""
    scope = {"dim": "", "precision": "", "κ": "", "kernel": "", "paper": "GTX 580, best of the figure"}
    for head in results.by_device:
        scope |= {head: "", f"model, {head}": "eq. 9 and the copy of the run", f"of copy, {head}": "compulsory bytes"}
    found = []
    cases = [
        ("figure4", "laplace", "Figure 4: Poisson, GF/s", COEFFICIENTS),
        ("figure5", "elasticity", "Figure 5: elasticity, GF/s", ("1",)),
    ]
    for table, physics, title, coefficients in cases:
        rows = []
        for dim in CELL:
            for precision in PRECISIONS:
                value = pick(PAPER["abstract_gtx580_gflops"], physics=physics, dim=dim)[precision]
                for coefficient in coefficients:
                    for kernel, text in KERNELS.items():
                        keys = {"dim": dim, "precision": precision, "coefficient": coefficient, "kernel": kernel}
                        row = [f"{dim}D", precision, coefficient, text, value]
                        for ours in results.by_device.values():
                            row += rates(pick(ours, table=table, **keys))
                        rows.append(row)
        found.append(Table(title, scope, rows, NOTES[table], keys=4))
    return found


NOTES = {
    "figure4": (
        "Scope: the figure has curves of five GPUs; the table has those of its text, for a variable coefficient on a "
        "GTX 580. PETSc's kernel takes coefficients of degree 0 only; P1 is here too."
    ),
    "figure5": "Scope: the same f1 and cells. The paper's numbers are those of its abstract, for a GTX 580.",
}


def model_table() -> Table:
    scope = {
        "physics": "",
        "dim": "",
        "flops per cell": "eq. 7",
        "bytes per cell": "eq. 6, single precision",
        "balance": "eq. 8, flops per byte",
        "reals of shared memory": "per cell, eq. 4",
        "GTX 580 at 162 GB/s": "GF/s predicted",
        "paper, measured": "GF/s",
    }
    rows = []
    for line in PAPER["abstract_gtx580_gflops"]:
        model = sizes(line["physics"], line["dim"], "single")
        rows.append(
            [
                line["physics"],
                f"{line['dim']}D",
                model.flops,
                model.traffic,
                model.balance,
                model.reals_per_cell,
                model.gflops(162),
                line["single"],
            ]
        )
    note = (
        "Scope: the formulas are not legible in our copy of the paper. Memory follows its text, and flops are those "
        "PETSc logs for its benchmark. 162 GB/s, 84 % of the peak, is what makes the model give the 310 GF/s that the "
        "paper names as the bound of 2D Poisson. The paper says that vectors halve the balance; by these counts they "
        "raise it, so its count of elasticity is another one."
    )
    return Table("Equations 3 to 9: the model", scope, rows, note)


if __name__ == "__main__":
    import petsc4py

    petsc4py.init(sys.argv[:1])
    sys.exit(run("knepley", __doc__, groups))

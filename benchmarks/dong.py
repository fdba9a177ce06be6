"""Assembly on one background mesh as three meshes of polytopes: section 4.1 of Dong, Georgoulis and Kappas (2021).

    python benchmarks/dong.py -fe_device gpu -json benchmarks/results/dong_h100.json
    python benchmarks/dong.py -fe_device cpu -scale 0.02 -degrees 1,2 -json benchmarks/results/dong_pocl.json

The domain has an oscillating upper side, drawn by 503 596 triangles (here 504 008 of a mapped grid: the paper's mesh is
not at hand); 8 337 and 125 981 agglomerates of them, and each triangle for itself. -scale takes a part of them. The
matrix is that of convection-diffusion in space, where the paper has one space-time slab. For each approach: the element
kernel, the facet kernel, of it what facets on the boundary take by themselves (the paper's inflow kernel), the index
sets (with PETSc's preallocation), and the total: indices, kernels, and the values in PETSc's AIJ matrix. The
numbers of the paper's tables (one P100) did not survive in our copy of its text, so none stand beside.
"""

from __future__ import annotations

import argparse
import gc
import sys
from pathlib import Path

from bench.peak import arithmetic_peak
from bench.poly import PARTS, Measures, operator_on, poly_row
from bench.record import Record, add_options
from mpi4py import MPI

from petsc_hdg.commands.bench import copy_bandwidth
from petsc_hdg.device import Device
from petsc_hdg.mesh import Mesh, agglomerate
from petsc_hdg.physics import Dirichlet, Physics

sys.path.insert(0, str(Path(__file__).parents[1] / "examples" / "meshes"))
from oscillating import oscillating

TRIANGLES, WAVES = 503_596, 64
ROWS = (*PARTS[:2], "boundary kernel", *PARTS[2:])
POLYTOPES = (8_337, 125_981, 503_596)  # of meshes 1, 2, 3


def convection_diffusion() -> Physics:
    """-∇·((1 + x₀ x₁) ∇u) + (2 - x₁², 2 - x₀)·∇u = 1."""
    return Physics(
        {"u": 1},
        f0="f0[0] = (2 - x[1]*x[1])*u_x[0] + (2 - x[0])*u_x[1] - 1;",
        f1="for (d = 0; d < dim; ++d) f1[d] = (1 + x[0]*x[1])*u_x[d];",
        boundary=[Dirichlet("boundary", "g[0] = 0;")],
        name="convection-diffusion",
    )


class Meshes:
    """The three meshes by their number, made when asked for."""

    def __init__(self, scale: float):
        self.scale = scale
        waves = max(2, round(WAVES * scale**0.5))
        self.base = Mesh.from_cells(*oscillating(round(TRIANGLES * scale), waves), comm=MPI.COMM_SELF)

    def of(self, number: int) -> Mesh:
        """Mesh 1, 2 or 3: agglomerates, or the triangles themselves."""
        self.base.polytopes = None
        if number == 3:
            return self.base
        return agglomerate(self.base, max(1, round(POLYTOPES[number - 1] * self.scale)))


def measure(mesh: Mesh, number: int, device, limits, given, degree: int, approach: str) -> list[dict]:
    """Rows of one mesh and approach, each with the number of its mesh and its index time as a share of the total."""
    copy, peak, precision = limits
    op = operator_on(mesh, convection_diffusion(), device, precision, degree, approach)
    measures = Measures(op, given.repeat)
    factor = op.discretization.mesh.num_cells / op.discretization.polytopes.count
    rows = [
        poly_row(f"dong {title}, approach {approach}", title, op, measures.of(title), copy, peak, factor)
        for title in ROWS
    ]
    share = measures.of("indices") / measures.of("total")
    del op, measures
    gc.collect()
    return [row | {"mesh": number, "share_of_indices": share} for row in rows]


def table(rows: list[dict]) -> str:
    """Rows of one mesh, precision and degree: a line a part, a column an approach."""
    approaches = list(dict.fromkeys(row["approach"] for row in rows))
    lines = [" " * 18 + "".join(f"{'approach ' + a:>34}" for a in approaches)]
    for title in ROWS:
        line = f"  {title:<16}"
        for row in (r for r in rows if f" {title}," in r["kernel"]):
            ms, per_million = 1e3 * row["seconds_median"], 1e9 * row["seconds_median"] / row["dofs"]
            of_peak = f"{row['fraction_of_peak']:6.3f}" if "kernel" in title else 6 * " "
            line += f"{ms:>10.2f} ms {per_million:>8.1f} {of_peak}     "
        lines.append(line)
    shares = [next(r["share_of_indices"] for r in rows if r["approach"] == a) for a in approaches]
    said = ", ".join(f"{share:.2f} (approach {a})" for a, share in zip(approaches, shares, strict=True))
    return "\n".join([*lines, f"  indices as a share of the total: {said}"])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-fe_device", default="any", help="gpu, cpu, any, an index, or part of a name")
    parser.add_argument("-scale", type=float, default=1.0, help="part of the cells and polytopes")
    parser.add_argument("-meshes", default="1,2,3", help="of the paper")
    parser.add_argument("-degrees", default="1,2,3", help="of the polynomials")
    parser.add_argument("-approaches", default="1,2", help="of 1, 2, atomic")
    parser.add_argument("-precisions", default="double,single", help="of double, single")
    parser.add_argument("-repeat", type=int, default=5, help="measurements a part; the median is given")
    add_options(parser)
    given = parser.parse_args()
    device = Device.select(given.fe_device)
    record = Record.of(given, device=device.name, arguments=f"-scale {given.scale:g}")
    copy = copy_bandwidth(device)
    print(f"{device.view()}\n  copy of a buffer: {copy / 1e9:.1f} GB/s, read and written bytes counted", flush=True)
    print("  columns: ms, ms per million unknowns, fraction of the arithmetic peak; the paper's are not in our copy")
    meshes, approaches = Meshes(given.scale), given.approaches.split(",")
    for precision in given.precisions.split(","):
        peak = arithmetic_peak(device, precision)
        print(f"{precision} precision, peak {peak / 1e9:.0f} GF/s measured", flush=True)
        for number in map(int, given.meshes.split(",")):
            mesh = None
            for degree in map(int, given.degrees.split(",")):
                limits, found = (copy, peak, precision), []
                for approach in approaches:
                    names = [f"dong {t}, approach {approach}, mesh {number}, p {degree}, {precision}" for t in ROWS]
                    if record.due(names):
                        if record.is_over:
                            sys.exit(record.end(1))
                        mesh = mesh or meshes.of(number)
                        rows = measure(mesh, number, device, limits, given, degree, approach)
                        for name, row in zip(names, rows, strict=True):
                            record.keep(name, row)
                    found += [record.rows[name] for name in names]
                sizes = "{polytopes} polytopes of {cells} triangles, {dofs} unknowns".format(**found[0])
                print(f"mesh {number}, p = {degree}: {sizes}")
                print(table(found), flush=True)


if __name__ == "__main__":
    main()

"""Assembly on meshes of polytopes: section 4.1 of Dong, Georgoulis and Kappas 2021 (dong_2021.json).

    python benchmarks/papers/dong.py
    python benchmarks/papers/dong.py -fe_device gpu -scale gpu -results benchmarks/results/papers_h100

The domain has an oscillating upper side, drawn by 503 596 triangles (here 504 008 of a mapped grid: the paper's mesh is
not at hand); 8 337 and 125 981 agglomerates of them, and each triangle for itself; small: a hundredth of them. The
matrix is that of convection-diffusion in space, where the paper has one space-time slab. Rows (table assembly), for
each approach: the element kernel, the facet kernel, of it what facets on the boundary take by themselves (the paper's
inflow kernel), the index sets (with PETSc's preallocation), and the total: indices, kernels, and the values in PETSc's
AIJ matrix. Rows (table space_time): errors of eq. 9 on slabs of prisms for the heat equation, in two meshes of
polytopes.
"""

from __future__ import annotations

import gc
import sys
from functools import partial
from pathlib import Path

import numpy as np
from paper_tables import NONE, Results, Table, ms, pick, printed, run

PAPER = printed("dong_2021")
TRIANGLES, WAVES = 503_596, 64
PARTS = ("element kernel", "facet kernel", "boundary kernel", "indices", "fill", "total")
POLYTOPES = (8_337, 125_981, 503_596)  # of meshes 1, 2, 3
SCALE = {"small": 0.01, "full": 0.1, "gpu": 1.0}
CASES = {"small": ((1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3), (3, 1), (3, 2), (3, 3))}  # mesh, degree
CASES |= dict.fromkeys(("full", "gpu"), ((1, 3), (2, 3), (3, 1), (3, 2), (3, 3), (1, 1), (1, 2), (2, 1), (2, 2)))
MOST_TRIPLETS = {2: 3, 3: 2}  # degree from which approach 1 has more triplets of a mesh than the host sorts in a minute

# dim, degree, polytopes along a side of the coarser mesh: P_p and P_pq with q = p
SLABS = {"small": ((2, 1, 4),), "full": ((2, 1, 8), (2, 2, 2), (2, 3, 2), (3, 1, 4), (3, 2, 2)), "gpu": ()}
TIME_SPACES = {"tensor": "P_p(x) ⊗ P_q(t)", "total": "P_p(x, t)"}


def convection_diffusion():
    """-∇·((1 + x₀ x₁) ∇u) + (2 - x₁², 2 - x₀)·∇u = 1."""
    from petsc_hdg.physics import Dirichlet, Physics

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
        self.scale, self._made = scale, {}

    def of(self, number: int):
        """Mesh 1, 2 or 3: agglomerates, or the triangles themselves."""
        from mpi4py import MPI

        from petsc_hdg.mesh import Mesh, agglomerate

        if 3 not in self._made:
            sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "meshes"))
            from oscillating import oscillating

            waves = max(2, round(WAVES * self.scale**0.5))
            self._made[3] = Mesh.from_cells(*oscillating(round(TRIANGLES * self.scale), waves), comm=MPI.COMM_SELF)
        if number not in self._made:
            self._made[number] = agglomerate(self._made[3], max(1, round(POLYTOPES[number - 1] * self.scale)))
        return self._made[number]


def groups(device, given, copy, scale: float | None = None):
    """Groups of rows, one for each mesh, degree, approach and precision; approach 1, which takes longer, last."""
    from functools import cache

    from bench.group import Group
    from bench.peak import arithmetic_peak

    peak, meshes = cache(lambda precision: arithmetic_peak(device, precision)), Meshes(scale or SCALE[given.scale])
    for approach in ("2", "1"):
        for number, degree in CASES[given.scale]:
            for precision in ("double",) if given.scale == "small" else ("double", "single"):
                if approach == "2" or degree < MOST_TRIPLETS.get(number, 4):
                    names = names_of(f"approach {approach}, mesh {number}, p {degree}, {precision}")
                    case = (meshes, number, degree, approach, precision)
                    yield Group(tuple(names), partial(prepare, device, given.repeat, copy, peak, case))
    for case in SLABS[given.scale]:
        for space in TIME_SPACES:
            name = "space_time dim {}, p {}, n {}, {}".format(*case, space)
            measured = partial(space_time_row, *case, space)
            yield Group((name,), lambda names, name=name, measured=measured: {name: measured})


def prepare(device, repeat: int, copy: float, peak, case: tuple, names) -> dict:
    """Measurements of one mesh and approach."""
    from bench.poly import Measures, operator_on, poly_row

    meshes, number, degree, approach, precision = case
    op = operator_on(meshes.of(number), convection_diffusion(), device, precision, degree, approach)
    measures = Measures(op, repeat)
    factor = op.discretization.mesh.num_cells / op.discretization.polytopes.count

    def measured(part: str) -> dict:
        row = poly_row(part, part, op, measures.of(part), copy, peak(precision), factor)
        share = measures.of("indices") / measures.of("total")
        gc.collect()
        more = {"mesh": number, "share_of_indices": share, "interior_faces": interior_faces(op.discretization)}
        return {"table": "assembly"} | row | more

    return {name: partial(measured, name.removeprefix("assembly ").split(",")[0]) for name in names}


def interior_faces(disc) -> int:
    """Facets of base cells between two polytopes."""
    sides = disc.mesh.topology.facet_cells
    inside = sides[(sides >= 0).all(axis=1)]
    return int((disc.polytopes.of_cell[inside[:, 0]] != disc.polytopes.of_cell[inside[:, 1]]).sum())


def names_of(case: str) -> list[str]:
    """Names of the rows of a case."""
    return [f"assembly {part}, {case}" for part in PARTS]


def space_time_row(dim: int, degree: int, n: int, space: str) -> dict:
    """Errors and orders of the heat equation, u = (1 + sin 3t) ∏ sin πx, on n^dim and (2n)^dim cubes of simplices."""
    from petsc4py import PETSc

    import petsc_hdg as fe
    from petsc_hdg.problem import SpaceTime

    physics, errors, unknowns = heat(dim), [], []
    for side in (n, 2 * n):
        mesh = fe.Mesh.box((2 * side,) * dim, comm=PETSc.COMM_SELF)
        powers = side ** np.arange(dim)
        mesh = fe.agglomerate(mesh, groups=lambda x, side=side, powers=powers: np.floor(x * side).astype(int) @ powers)
        problem = fe.Problem(mesh, physics, backend="poly_gpu", degree=degree)
        space_time = SpaceTime(problem, degree, space)
        norms = space_time.norms()
        space_time.march(problem.interpolate(lambda x: np.prod(np.sin(np.pi * x), axis=-1)), 0.0, 1.0, 2 * side, norms)
        errors.append({name: float(norms.values[name]) for name in ("L2(L2)", "L2(H1)")})
        unknowns.append(space_time.num_unknowns)
    row = {"table": "space_time", "dim": dim, "p": degree, "n": 2 * n, "space": space, "unknowns": unknowns[1]}
    orders = {name: float(np.log2(errors[0][name] / errors[1][name])) for name in errors[0]}
    return row | {"errors": errors[1], "orders": orders}


def heat(dim: int):
    """The heat equation on the unit square or cube."""
    import sympy

    import petsc_hdg as fe
    from petsc_hdg.physics import Symbols, manufactured

    s = Symbols(dim, {"u": 1})
    exact = (1 + sympy.sin(3 * s.t)) * sympy.prod([sympy.sin(sympy.pi * x) for x in s.x])
    source = manufactured(s.x, exact, lambda u, grad: grad) - sympy.diff(exact, s.t)
    wall = [fe.Dirichlet("boundary", 0.0)]
    return fe.Physics({"u": 1}, s.rate("u") + source, s.grad("u"), boundary=wall, exact=exact, name="heat")


# Tables --------------------------------------------------------------------------------------------------------------


def tables(results: Results | None = None) -> list[Table]:
    """The paper's tables and ours."""
    results = results or DongResults()
    return [
        *(approach_table(results, approach) for approach in ("1", "2")),
        register_table(),
        mesh_table(results),
        three_meshes_table(results),
        intensity_table(results),
        space_time_table(results),
        gpus_table(),
    ]


class DongResults(Results):
    """Rows of an H100 are in two files, one for each precision."""

    def __init__(self, **where):
        super().__init__("dong", {"assembly": "dong_h100"}, **where)

    @property
    def by_device(self):
        rows = {"H100": self.h100, "PoCL": self.pocl}
        if not any(r.get("precision") == "single" for r in rows["H100"]):
            rows["H100"] = rows["H100"] + Results("dong", {"assembly": "dong_single_h100"}, self.folder).h100
        return rows


def part_of(rows: list[dict], part: str, **keys) -> dict:
    """A row of a part, by its name as this script or an earlier one writes it."""
    named = [r for r in rows if r.get("kernel") in (part, f"dong {part}, approach {keys['approach']}")]
    return pick(named, **keys)


def per_million(row: dict):
    """Milliseconds per million unknowns."""
    return 1e9 * row["seconds_median"] / row["dofs"] if row else NONE


def approach_table(results: Results, approach: str) -> Table:
    """Tables 1 and 2."""
    scope = {"precision": "", "part": "", **{f"p {p}, {d}": "" for d in results.by_device for p in (1, 2, 3)}}
    rows = []
    for precision in ("single", "double"):
        for part in PARTS:
            row = [precision, part]
            for found in results.by_device.values():
                for p in (1, 2, 3):
                    row.append(
                        per_million(part_of(found, part, mesh=1, approach=approach, degree=p, precision=precision))
                    )
            rows.append(row)
    note = (
        "Scope: mesh 1 of section 4.1, agglomerates of about 60 triangles; the paper's has about 3 per polytope and "
        "one space-time slab. The paper's numbers are not legible in our copy and are left out."
    )
    return Table(
        f"Table {approach}: assembly by approach {approach}, ms per million unknowns", scope, rows, note, keys=2
    )


def register_table() -> Table:
    scope = {"kernel": "", "approach 1, paper": "registers per thread, CUDA", "approach 2, paper": "the same"}
    rows = [[line["kernel"], line["approach1"], line["approach2"]] for line in PAPER["table3_registers"]]
    note = (
        "Scope: OpenCL does not report registers; arithmetic intensity and fraction of the peak (figures 5 and 8 "
        "below) say how well the device is used."
    )
    return Table("Table 3: registers", scope, rows, note)


def mesh_table(results: Results) -> Table:
    scope = {
        "": "",
        "mesh 1, paper": "",
        "mesh 1": "H100 rows",
        "mesh 2, paper": "",
        "mesh 2": "H100 rows",
        "mesh 3, paper": "",
        "mesh 3": "H100 rows",
    }
    rows = []
    for key, title, ours in (
        ("elements", "polytopes", "polytopes"),
        ("triangles", "triangles", "cells"),
        ("interior_faces", "interior faces", "interior_faces"),
    ):
        row = [title]
        for number in (1, 2, 3):
            found = pick(results.by_device["H100"], mesh=number)
            row += [PAPER["table4_meshes"][number - 1][key], found.get(ours, NONE)]
        rows.append(row)
    note = (
        "Scope: the same numbers of polytopes over a mapped grid of 504 008 triangles, because the paper's mesh is "
        "not at hand."
    )
    return Table("Table 4: meshes", scope, rows, note)


def three_meshes_table(results: Results) -> Table:
    scope = {"mesh": "", "p": "", "unknowns": "H100 rows"}
    heads = {
        "element kernel": "elements",
        "facet kernel": "faces",
        "boundary kernel": "boundary",
        "indices": "indices",
        "total": "total",
    }
    scope |= {f"{text}, {d}": "ms" for d in results.by_device for text in heads.values()}
    rows = []
    for number in (1, 2, 3):
        for p in (1, 2, 3):
            keys = {"mesh": number, "degree": p, "approach": "2", "precision": "double"}
            row = [number, p, pick(results.by_device["H100"], **keys).get("dofs", NONE)]
            for found in results.by_device.values():
                row += [ms(part_of(found, part, **keys).get("seconds_median")) for part in heads]
            rows.append(row)
    note = (
        "Scope: approach 2, double precision, the three meshes on one GPU. PoCL rows are of a part of the cells: ms "
        "per million unknowns compare. The paper's kernels integrate over prisms in space and time, ours over "
        "triangles; its times are not legible in our copy."
    )
    return Table("Table 5: assembly on the three meshes, ms", scope, rows, note, keys=2)


def intensity_table(results: Results) -> Table:
    scope = {"approach": "", "kernel": "", "mesh": "", "p": ""}
    for d in results.by_device:
        scope |= {
            f"flops per byte, {d}": "compulsory bytes",
            f"of peak, {d}": "fused multiply-adds",
            f"of copy, {d}": "",
        }
    rows = []
    for approach in ("1", "2"):
        for part in ("element kernel", "facet kernel"):
            for number in (1, 2, 3):
                for p in (1, 2, 3):
                    row = [approach, part, number, p]
                    keys = {"mesh": number, "degree": p, "approach": approach, "precision": "double"}
                    for found in results.by_device.values():
                        one = part_of(found, part, **keys)
                        row += (
                            [one["flops"] / one["bytes_compulsory"], one["fraction_of_peak"], one["fraction_of_copy"]]
                            if one
                            else [NONE] * 3
                        )
                    rows.append(row)
    note = (
        "Scope: the figures are curves of profiled intensity on a P100; ours counts compulsory bytes. The paper reads "
        "35 to 40 % of the peak for elements and 12 to 16 % for faces from its figure 10. Approach 1 has no rows of "
        "mesh 2 at p = 3 and of mesh 3 from p = 2 on, whose triplets a host does not sort in a minute."
    )
    return Table(
        "Figures 4, 5, 7, 8 and 10: intensity and fraction of the peak, double precision", scope, rows, note, keys=4
    )


def space_time_table(results: Results) -> Table:
    scope = {"dimension": "space and time", "p = q": "", "space": "", "unknowns": "of a slab"}
    scope |= {"L2(L2)": "finer mesh", "order": "", "L2(H1)": "finer mesh", "order of L2(H1)": ""}
    rows = []
    found = [r for r in results.pocl if r["table"] == "space_time"]
    for r in sorted(found, key=lambda r: (r["dim"], r["p"], r["space"])):
        row = [f"{r['dim']} + 1", r["p"], TIME_SPACES[r["space"]], r["unknowns"]]
        for norm in ("L2(L2)", "L2(H1)"):
            row += [r["errors"][norm], f"{r['orders'][norm]:.2f}"]
        rows.append(row)
    note = (
        "Scope: the paper prints times of such slabs and refers to its reference 10 for their errors. Slabs are "
        "solved here, with both spaces; their matrices come from those of the scheme in space, not from kernels of "
        "prisms. Not here: degrees above 6 in space, which polytopes do not take, and above 3 in time, and fewer "
        "tetrahedra for a polyhedron (`fe.fewer_cells` is for the plane); all its tetrahedra are integrated over."
    )
    return Table("Section 2.3: space-time slabs of prisms, heat equation", scope, rows, note)


def gpus_table() -> Table:
    note = (
        "Scope: 1 to 16 GPUs in 3D; the times are not legible in our copy, and assembly by several GPUs was not "
        "measured. Assembly needs no exchange between ranks but the ghosts' boxes. Products on 2 and 4 GPUs are in "
        "[many ranks](parallel.md#scaling)."
    )
    return Table("Table 6: assembly on several GPUs", {"GPUs": ""}, [], note)


if __name__ == "__main__":
    import petsc4py

    petsc4py.init(sys.argv[:1])
    sys.exit(run("dong", __doc__, groups))

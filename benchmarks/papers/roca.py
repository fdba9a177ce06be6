"""Tables 1 to 3 and figures 2 to 4 of Roca, Nguyen and Peraire 2011 (roca_2011.json).

    python benchmarks/papers/roca.py
    python benchmarks/papers/roca.py -fe_device gpu -scale gpu -results benchmarks/results/papers_h200

Matrices are those of the steady compressible Navier-Stokes equations at Re 100 and Mach 0.5, linearized at a stream
with waves of 2 %; in single precision those of an implicit step of 0.001, since local problems of steady flow are
singular to its digits. Rows by their table:

product   triangles with 11 783 facets (the paper: 11 780), four components, p = 1 … 5. Unknowns, nonzeros and bytes
          (with the vectors x and y) in CSR and in dense block format; the time of one product, of the paper's two steps
          (spread of x, contraction) and of a peer's products in CSR and BSR; Gflop/s, GB/s and fraction of a copy's
          bandwidth in the same run. On a GPU then the same of random blocks that take 8 GB.
figure    triangles with four components and tetrahedra with five, all degrees of the scheme, single and double
          precision, dense blocks of some sizes.

The peer is cuSPARSE on an NVIDIA GPU, with random values in the same places, and scipy on a CPU. Our product gathers x
and takes no memory for it; the paper stores the spread vector.
"""

from __future__ import annotations

import sys
from functools import partial
from types import SimpleNamespace

import numpy as np
from paper_tables import NONE, Results, Table, ms, pick, printed, run

PAPER = printed("roca_2011")
MB = 2**20
DEGREES = range(1, 6)
REPEATS = {"small": 3, "full": 7, "gpu": 7}
# Figures: number of components and highest degree by dimension, MB of double precision by scale (half of it in single).
COMPONENTS, HIGHEST = {2: 4, 3: 5}, {2: 9, 3: 5}
SIZES = {"small": (10,), "full": (10, 500), "gpu": (10, 500)}
REALS = {"double": 8, "single": 4}
SHIFT = {"double": 0.0, "single": 1e3}  # of u_t
STEPS = """
// X [slot, unknown, facet] = the unknowns of each facet's neighbours, x [facet, unknown].
__kernel void roca_spread(int count, int facets, int block, int stride, __global const int *restrict adjacent,
                          __global const real *restrict x, __global real *restrict X)
{
  const int t = get_global_id(0), f = t % facets, k = t / facets;
  if (t < count) X[t] = x[adjacent[(k / block) * stride + f] * block + k % block];
}

// y [row] = sum over k of A [k, row] X [k, facet of the row].
__kernel void roca_contract(int rows, int width, int facets, int block, int stride, __global const real *restrict A,
                            __global const real *restrict X, __global real *restrict y)
{
  const int t = get_global_id(0);
  if (t >= rows) return;
  real sum = 0;
  for (int k = 0; k < width; ++k) sum += A[(size_t)k * stride + t] * X[(size_t)k * facets + t / block];
  y[t] = sum;
}
"""


def storage(layout) -> dict:
    """Nonzeros and bytes with two vectors: CSR of 8 + 4 bytes an entry and 4 a row, dense blocks with neighbours."""
    blocks, square = layout.num_blocks, layout.block**2
    rows, padded = layout.num_facets * layout.block, layout.num_slots * layout.num_facets
    csr, dense = blocks * square, padded * square
    found = {"unknowns": rows, "csr_nnz": csr, "dbf_nnz": dense}
    return found | {"csr_bytes": 12 * csr + 4 * (rows + 1) + 16 * rows, "dbf_bytes": 8 * dense + 4 * padded + 16 * rows}


class Flow:
    """The trace matrix of a linearized flow in dense block format.

    faces: of a box of triangles or tetrahedra along each axis.
    """

    def __init__(self, device, faces: tuple[int, ...], degree: int, precision: str = "double"):
        import petsc_hdg as fe
        from petsc_hdg.operators.vectors import TailedVector
        from petsc_hdg.physics import library
        from petsc_hdg.physics.library import gas

        dim, stream = len(faces), [1.0, 0.5, 0.3, 0.2][: 1 + len(faces)] + [7.3]
        state = " ".join(f"w[{c}] = {value};" for c, value in enumerate(stream))
        physics = library.compressible_navier_stokes(dim, gas.RATE, mach=0.5, boundary=gas.far_field("boundary", state))
        problem = fe.Problem(
            fe.Mesh.box(faces), physics, backend="hdg_gpu", degree=degree, precision=precision, device=device.name,
            hdg_trace_mat="dbf", pmat="none", check_kernels=False,
        )  # fmt: skip
        op, self.device, self.arrays = problem.operator, problem.device, problem.arrays
        op.compile(True)
        waves = problem.interpolate(lambda x: np.array(stream) * (1 + 0.02 * np.sin(5 * x.sum(axis=-1)))[..., None])
        state, real = waves.array_r.astype(self.arrays.real), self.arrays.real
        op.linearize(self.arrays.to_device(state), 0.0, self.arrays.zeros(op.state_size), SHIFT[precision])
        self.format, self.layout, self.physics = op.format, op.format.layout, physics
        random = np.random.default_rng(3)
        self.values = random.uniform(-1, 1, op.dofmap.num_owned).astype(real)  # of x [facet, unknown]
        self.x, self.y, self.ghost = TailedVector(op), self.arrays.zeros(len(self.values)), self.arrays.zeros(1)
        self.x.owned = self.arrays.to_device(self.values)
        assert self.layout.is_blocked  # the far field leaves no unknown out

    def seconds(self, launch, repeat: int) -> float:
        """Median seconds of a launch."""
        from petsc_hdg.commands.bench import median_seconds

        return median_seconds(self.device, launch, repeat)

    def product(self) -> None:
        """y = A x."""
        self.format.mult(self.x, self.y, self.ghost)

    def result(self) -> np.ndarray:
        """y on the host."""
        return self.arrays.to_host(self.y, len(self.values)).copy()

    def steps(self) -> dict:
        """Launches of the paper's two steps of a product, by the name of the row's entry."""
        from petsc_hdg.codegen import KernelSpec
        from petsc_hdg.device import Kernel

        layout, f, precision = self.layout, self.format, self.arrays.precision
        spread, contract = (
            Kernel(KernelSpec(name, (), physics=STEPS, local_size=64, precision=precision), self.device)
            for name in ("roca_spread", "roca_contract")
        )
        facets, width, rows = layout.num_facets, layout.num_slots * layout.block, f.num_rows
        X, sizes = self.arrays.empty(width * facets), (facets, layout.block)
        given = (f._adjacent, self.x.owned, X)
        return {
            "spread_seconds": lambda: spread(width * facets, width * facets, *sizes, f.facet_stride, *given),
            "contract_seconds": lambda: contract(rows, rows, width, *sizes, f.row_stride, f.A, X, self.y),
        }

    def block_rows(self):
        """The matrix on the host: scipy's BSR."""
        from bench.cusparse import bsr_pattern
        from scipy.sparse import bsr_matrix

        layout, m = self.layout, self.layout.block
        A = self.arrays.to_host(self.format.A, self.format.matrix_reals).reshape(-1, self.format.row_stride)
        A = A[:, : layout.num_facets * m].reshape(layout.num_slots, m, layout.num_facets, m).transpose(2, 0, 3, 1)
        neighbours = np.where(layout.neighbours < 0, layout.num_facets, layout.neighbours).T  # [facet, slot]
        order = np.argsort(neighbours, axis=1, kind="stable")
        kept = np.take_along_axis(neighbours, order, 1) < layout.num_facets
        start, columns = bsr_pattern(layout)
        blocks = np.take_along_axis(A, order[:, :, None, None], 1)[kept]
        return bsr_matrix((np.ascontiguousarray(blocks), columns, start), shape=2 * (layout.num_facets * m,))

    def peers(self, repeat: int) -> dict[str, float]:
        """Seconds of a product in CSR and BSR by cuSPARSE, by scipy on a CPU."""
        from bench.cusparse import csr_seconds

        if self.device.is_gpu:
            return csr_seconds(self.layout, self.arrays, repeat)
        blocks = self.block_rows()
        both = {"scipy csr": blocks.tocsr(), "scipy bsr": blocks}
        return {name: self.seconds(lambda matrix=matrix: matrix @ self.values, repeat) for name, matrix in both.items()}


def groups(device, given, copy):
    """Groups of rows: the paper's mesh, then on a GPU the large one; figures."""
    from bench.group import Group

    def alone(name, measured):
        return Group((name,), lambda names: {name: measured})

    repeat = REPEATS[given.scale]
    for p in DEGREES:
        yield alone(f"product p {p}", partial(measure, device, repeat, copy, p))
    for p in DEGREES if given.scale == "gpu" else ():
        yield alone(f"product p {p}, 8 GB", partial(measure_large, device, repeat, copy, p))
    for dim, highest in HIGHEST.items():
        for p in (1, 2) if given.scale == "small" else range(1, highest + 1):
            for precision in REALS:
                for size in SIZES[given.scale]:
                    name = f"figure {dim}D {precision} p {p}, {size} MB"
                    yield alone(name, partial(figure, device, repeat, copy, dim, p, precision, size))


def measure(device, repeat: int, copy: float, degree: int, faces: tuple[int, ...] | None = None) -> dict:
    """A row of the paper's mesh, or of a box of triangles."""
    from bench import trace

    flow = Flow(device, faces or trace.ROCA_FACES, degree)
    row = {"table": "product", "p": degree, "large": False, **storage(flow.layout)}
    row["seconds"] = flow.seconds(flow.product, repeat)
    ours, steps = flow.result(), flow.steps()
    for name, launch in steps.items():
        row[name] = flow.seconds(launch, repeat)
    row["difference"] = max(_difference(flow.result(), ours), _difference(flow.block_rows() @ flow.values, ours))
    return row | _rates(row, flow.format.flops, copy) | {"peer": flow.peers(repeat)}


def _difference(y: np.ndarray, expected: np.ndarray) -> float:
    """Of two products, over the largest entry."""
    return float(np.abs(y - expected).max() / np.abs(expected).max())


def _rates(row: dict, flops: int, copy: float) -> dict:
    """Gflop/s, GB/s and fraction of a copy of a row with seconds and bytes."""
    found = {"gflops": flops / row["seconds"] / 1e9, "GBs": row["dbf_bytes"] / row["seconds"] / 1e9}
    return found | {"fraction_of_copy": 1e9 * found["GBs"] / copy, "copy_GBs": copy / 1e9}


def measure_large(device, repeat: int, copy: float, degree: int, cells: float | None = None) -> dict:
    """A row of random blocks."""
    from bench import trace

    given = SimpleNamespace(fe_precision="double", cells=cells)
    disc = trace._made(device, given, "triangle", degree, trace.ROCA_COMPONENTS, roca=False)
    found = trace.MEASUREMENTS["dbf"]("dbf", disc, device, repeat, copy)
    row = {"table": "product", "p": degree, "large": True, **storage(disc.layout), "seconds": found["seconds_median"]}
    return row | _rates(row, found["flops"], copy) | {"peer": found["peer"]}


def figure(device, repeat: int, copy: float, dim: int, degree: int, precision: str, size: float) -> dict:
    """A row of figures 2 to 4: dense blocks of about so many MB in double precision."""
    block = COMPONENTS[dim] * (degree + 1 if dim == 2 else (degree + 1) * (degree + 2) // 2)
    slots, facets_per_box = (5, 3) if dim == 2 else (7, 12)  # the latter without those of the boundary
    boxes = size * MB / (8 * slots * block**2 * facets_per_box)
    flow = Flow(device, dim * (max(1, round(boxes ** (1 / dim))),), degree, precision)
    layout, real = flow.layout, REALS[precision]
    row = {"table": "figure", "dim": dim, "p": degree, "components": layout.components, "precision": precision}
    row |= {"size": size, "facets": layout.num_facets, "seconds": flow.seconds(flow.product, repeat)}
    rows = layout.num_facets * layout.block
    row["dbf_bytes"] = real * (layout.num_dense + 2 * rows) + 4 * layout.num_slots * layout.num_facets
    return row | _rates(row, flow.format.flops, copy) | {"peer": flow.peers(repeat)}


def tables(results: Results | None = None) -> list[Table]:
    """The paper's tables and ours."""
    results = results or Results("roca", {"product": "roca_h100"})
    return [
        size_table(results),
        spread_table(results),
        product_table(results),
        range_table(results),
        degree_table(results),
    ]


def size_table(results: Results) -> Table:
    scope = {"p": "", "n, paper": "11 780 facets", "n": "11 783 facets"}
    for kind in ("CSR", "DBF"):
        scope |= {
            f"nonzeros {kind}, paper": "",
            f"nonzeros {kind}": "",
            f"MB {kind}, paper": "2²⁰ bytes, matrix and vectors",
            f"MB {kind}": "the same",
        }
    rows = []
    for line in PAPER["table1"]:
        ours = pick(results.pocl or results.h100, p=line["p"], large=False)
        row = [line["p"], line["n"], ours.get("unknowns", NONE)]
        for kind in ("csr", "dbf"):
            size = ours[f"{kind}_bytes"] / MB if ours else NONE
            row += [line[f"{kind}_nnz"], ours.get(f"{kind}_nnz", NONE), line[f"{kind}_MB"], size]
        rows.append(row)
    note = (
        "Scope: the same facets, components and degrees, three facets more. Our dense format does not store the spread "
        "vector, and reads an index for each block instead."
    )
    return Table("Table 1: sizes", scope, rows, note)


def spread_table(results: Results) -> Table:
    scope = {"p": "", "spread x, paper": "GTX 285, ms", "sum of blocks, paper": "GTX 285, ms"}
    for head in results.by_device:
        scope |= {f"spread x, {head}": "ms", f"sum of blocks, {head}": "ms", f"our product, {head}": "ms"}
    rows = []
    for line in PAPER["table2_ms"]:
        row = [line["p"], line["convert"], line["contract"]]
        for found in results.by_device.values():
            ours = next((r for r in found if r.get("p") == line["p"] and "spread_seconds" in r), {})
            row += [ms(ours.get(name)) for name in ("spread_seconds", "contract_seconds", "seconds")]
        rows.append(row)
    note = (
        "Scope: the paper's two kernels, as it describes them, on the flow's matrix of table 3; our product gathers x "
        "while it sums, in one kernel."
    )
    return Table("Table 2: the two steps of a product", scope, rows, note)


def product_table(results: Results) -> Table:
    scope = {"p": "", "mesh": "", "Matlab, paper": "host", "cuSPARSE, paper": "2011, GTX 285", "DBF, paper": "GTX 285"}
    for head in results.by_device:
        scope |= _columns(head)
    rows = []
    for large in (False, True):
        for line in PAPER["table3_ms"]:
            row = [line["p"], "8 GB, random" if large else "the paper's"]
            row += [NONE] * 3 if large else [line["matlab"], line["cusparse"], line["dbf"]]
            for found in results.by_device.values():
                row += _values(pick(found, p=line["p"], large=large))
            rows.append(row)
    note = (
        "Scope: the paper's matrices are those of a steady compressible flow, as ours are on the H200 and by PoCL; "
        "those of the H100 and of 8 GB are random, the latter on GPUs alone: all formats need 28 GB. CSR and BSR are "
        "cuSPARSE's, on a CPU scipy's with one thread. The paper has 20 to 25 GF/s and 60 of 160 GB/s. The GTX 285 is "
        "gone; of copy compares devices."
    )
    return Table("Table 3: one product, ms", scope, rows, note, keys=2)


def _columns(head: str) -> dict[str, str]:
    """Columns of a device, with the scope of each."""
    peers = {f"CSR, {head}": "the peer's", f"BSR, {head}": "the peer's"}
    return peers | {f"DBF, {head}": "", f"GF/s, {head}": "", f"of copy, {head}": ""}


def _values(row: dict) -> list:
    """Entries of `_columns`."""
    peers = {name.split()[-1]: seconds for name, seconds in row.get("peer", {}).items()}
    found = [ms(peers.get(kind)) for kind in ("csr", "bsr")] + [ms(row.get("seconds"))]
    return [*found, row.get("gflops", NONE), row.get("fraction_of_copy", NONE)]


def _figures(rows: list[dict], **keys) -> list[dict]:
    """Rows of figures with these values."""
    return [r for r in rows if r.get("table") == "figure" and all(r[k] == v for k, v in keys.items())]


def _range(values: list[float], digits: int = 0) -> str:
    """The least and the largest of them."""
    return f"{min(values):.{digits}f} to {max(values):.{digits}f}" if values else NONE


def range_table(results: Results) -> Table:
    scope = {"dim": "", "precision": "", "MB": "of the matrix"}
    scope |= {f"GF/s, {head}": "figure 2" for head in results.by_device}
    scope |= {f"% of a copy, {head}": "figure 3, of GB/s" for head in results.by_device}
    scope |= {"time by PoCL over that on the H200": "figure 4"}
    rows = []
    for dim in HIGHEST:
        for precision, real in REALS.items():
            for size in SIZES["gpu"]:
                keys = {"dim": dim, "precision": precision, "size": size}
                found = [_figures(rows, **keys) for rows in results.by_device.values()]
                row = [f"{dim}D", precision, size * real // 8]
                row += [_range([r["gflops"] for r in rows], int(rows is found[-1])) for rows in found]
                row += [_range([100 * r["fraction_of_copy"] for r in rows]) for rows in found]
                slow, fast = (
                    {r["p"]: r["seconds"] for r in _figures(rows, **keys)} for rows in (results.pocl, results.h200)
                )
                rows.append([*row, _range([slow[p] / fast[p] for p in slow if p in fast])])
    note = (
        f"Scope: least and largest over p = 1 to {HIGHEST[2]} in the plane and {HIGHEST[3]} in space, the highest of "
        "the scheme, on a CPU by PoCL over the degrees of the next table. The paper has p = 1 to 10; for large "
        f"problems it prints {PAPER['figures']}. Elimination without pivots finds 40 cells of p = 7 and 500 MB in "
        "double precision singular, so that this matrix is left out. Above 100 % of a copy are matrices in a cache, "
        "and rows of PoCL for which the shared CPU was freer than for the copy before them."
    )
    return Table("Figures 2 to 4: dense blocks, least and most", scope, rows, note, keys=3)


def degree_table(results: Results) -> Table:
    scope = {"dim": "", "precision": "", "p": "", "MB": "of the matrix, about"}
    for head in results.by_device:
        scope |= _columns(head)
    rows = []
    for dim, highest in HIGHEST.items():
        for precision, real in REALS.items():
            for size in (SIZES["small"][0], SIZES["gpu"][-1]):
                for p in range(1, highest + 1):
                    row = [f"{dim}D", precision, p, size * real // 8]
                    for found in results.by_device.values():
                        row += _values(pick(found, table="figure", dim=dim, precision=precision, p=p, size=size))
                    rows.append(row)
    note = "Scope: the products behind the figures, ms; four components in the plane and five in space."
    return Table("Figures 2 to 4: by degree", scope, rows, note, keys=4)


if __name__ == "__main__":
    import petsc4py

    petsc4py.init(sys.argv[:1])
    sys.exit(run("roca", __doc__, groups))

"""Polytopic DG: Legendre polynomials on the bounding boxes of agglomerated cells, in physical coordinates."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from petsc4py import PETSc

from ...codegen import KernelSpec, Launch, signature
from ...codegen.preamble import CONSTANT_BYTES
from ...errors import MeshError, OptionError, collectively
from ...mesh.order import cells_of, extents
from ...mesh.polytopal.agglomerate import agglomerate
from ...mesh.polytopal.fewer_cells import fewer_cells
from ...mesh.polytopes import Polytopes
from ...reference import ReferenceElement, is_tensor
from ..base import Discretization, cell_fastest, check_one_degree
from ..dofmap import DofMap
from ..forwarded import forwarded
from ..primal import POINTWISE
from ..sipg.arguments import AROUND
from ..sipg.interleaved import unconstrained_dofmap
from ..sipg.scheme import InteriorPenalty, check_sipg, degrees_of
from ..symmetry import read_by_text
from .legendre import exponents, num_basis
from .matrix import Blocks
from .outline import Measures
from .penalty import penalty_numbers

_ITEMS = signature("""
    const real *boxes; const int *sizes; int num_items; const int *items [item, 5]; const int *turns
    int add: whether to add to what stands there; real *out: values of the matrix
""")
VOLUME = POINTWISE + _ITEMS + signature("const int *cells: base cells of all polytopes")
FACETS = AROUND + _ITEMS + signature("const int *interfaces [interface, 5]; const int *facets")
FACETS_BY_STEPS = FACETS + signature("const int4 *steps [step]; const int *step_first [interface + 1]")
ACTION = AROUND + signature("""
    const real *boxes; int num_items; const int *items [item, 5]; const int *cells; const int *facets
    const int *of_cell; const int *begin; int n_unknowns: owned ones of the polytopes
    const real *direction; const real *direction_tail; real *out
""")
TRANSFERS = ("poly_expand", "poly_restrict")
MOST_UNROLLED = 64  # functions whose degrees are numbers in the program
GPU_GROUP, CPU_GROUP = 64, 1  # work-items of a work-group
POINTS_OF_LANE = {"nodes": 2, "action": 12}  # at least, where more work-items share a polytope
CHUNK = 16  # functions whose sums are added up at once
HIGHEST = 6  # degree of a polytope


class CutPenalty(InteriorPenalty):
    """Interior penalty on the base cells, without terms on facets inside a polytope. Making one is collective.

    cut [cell, F]: whether a facet is inside a polytope. Functions have one value there, so that natural conditions are
    those of a facet on the boundary of the cell that sees them.
    parent: the PolytopicDG whose penalties it takes.
    finer: InteriorPenalty of the same mesh and physics, with terms on these facets at least; its neighbours are taken,
    and its numbering where that is of the same degree.
    """

    def __init__(self, mesh, physics, options, limits, parent, finer=None):
        super().__init__(mesh, physics, options, limits, finer and finer.neighbours)
        if finer is not None and finer.options.degree == options.degree:
            self._numbering = finer._numbering
        self.parent = parent
        if finer is None:
            self.element_of_cell = parent.polytopes.of_cell[: mesh.num_cells]
        else:  # on coarse levels a step between elements of the finest one costs no iterations
            self.element_of_cell = finer.element_of_cell
        near = self.neighbours.neighbour
        inside, of_cell = (near >= 0) & (near < mesh.num_cells), parent.polytopes.of_cell
        self.cut = inside & (of_cell[np.where(inside, near, 0)] == of_cell[:, None])
        wall, kinds = self.neighbours.wall, self.neighbours.kinds
        seen = (wall > 0) & (kinds[wall - 1, -1] > 0) if len(kinds) else False
        near = np.where(self.cut, np.where(seen, -1 - wall, -1), near).astype(np.int32)
        self.neighbours = replace(self.neighbours, neighbour=near, wall=np.where(self.cut, 0, wall))

    @property
    def side_numbers(self) -> np.ndarray:
        """Factors of the normal diffusivity on each side of a facet [F, extended cell], see penalty.py."""
        return self.parent.penalty_numbers

    @property
    def sees_least(self) -> bool:
        """As InteriorPenalty: the trace inequality is that of polytopes, on any cells."""
        return self.has_steps

    def least_of_elements(self, values: np.ndarray) -> np.ndarray:
        """The least of values [component, base cell] over each base cell's element [component, extended base cell].
        Collective."""
        found = np.full((self.element_of_cell.max(initial=-1) + 1, len(values)), np.inf)
        np.minimum.at(found, self.element_of_cell, values.T)
        return self.neighbours.extended(found[self.element_of_cell]).T

    def penalty_factor(self, cell: str, degree: int) -> float:
        """One: with trace constants as `side_numbers` that is twice what coercivity needs."""
        return self.options.poly_penalty_scale

    @property
    def penalty_formula(self) -> str:
        words = "κ max C_K, C_K the constant of ∫_∂K v² ≤ C_K ∫_K v² (twice what coercivity needs)"
        return f"{self.options.poly_penalty_scale:g} · {words}, twice that on the boundary"


class PolytopicDG(Discretization):
    """Numbering, boxes and (from PolytopicSpecs) kernel specs of the scheme `poly_gpu`. Making one is collective.

    The space is a subspace of the broken polynomials on the base cells, so that the scheme is interior penalty there
    (`fine`), without the facets inside polytopes, on functions of this space (Dong, Georgoulis and Kappas 2021, eq. 3).

    polytopes: of the mesh.   degrees: [polytope].   fine: CutPenalty on the base cells.
    finer: a PolytopicDG or InteriorPenalty of the same mesh and physics, each of whose polytopes (or cells) lies in one
    of these, or None: what both have in common is taken from it.
    Extended polytopes are owned ones, then ghosts. Unknowns of a polytope stand component by component.
    """

    name = "poly_gpu"
    is_polytopic = True
    degrees_accepted = (0, HIGHEST)

    def __init__(self, mesh, physics, options, limits=None, finer=None):
        self.polytopes = mesh.polytopes or Polytopes.of_cells(mesh)
        given = self.polytopes.degrees
        self.degrees = np.full(self.polytopes.count, options.degree) if given is None else np.asarray(given)
        self.largest = mesh.comm.allreduce(int(self.degrees.max(initial=0)), max)
        with collectively(mesh.comm):
            super().__init__(mesh, physics, options)
            self._check_mesh()
        self.limits = limits
        self.finer = finer if finer is not None and finer.is_polytopic else None
        self.fine = CutPenalty(mesh, physics, self._fine_options(), limits, self, getattr(finer, "fine", finer))
        self.measures: Measures = self.finer.measures if self.finer else Measures(mesh)
        self.numbering: Numbering = find_numbering(self)

    @classmethod
    def on_mesh(cls, mesh, options):
        """The mesh, agglomerated if `-poly_agglomerates` asks for it and it is not yet. Collective.

        With `-poly_subdivision coarse` agglomerates are divided anew into fewer triangles.
        """
        cls.require_shapes(mesh)
        count = options.poly_agglomerates
        if mesh.polytopes is None and count:
            mesh = agglomerate(mesh, count)
        if mesh.polytopes is not None and options.poly_subdivision == "coarse":
            mesh = fewer_cells(mesh)
        return super().on_mesh(mesh, options)

    def _check_degree(self) -> None:
        check_one_degree(self.physics, "poly_gpu")
        if self.mesh.geometry.periods.any():
            raise MeshError("The mesh is periodic, and polytopes are not; give a bounded one, or another -fe_backend.")
        low, high = self.degrees_accepted
        wrong = self.degrees[(self.degrees < low) | (self.degrees > high)]
        if len(wrong):
            raise OptionError(f"a polytope has the degree {wrong[0]}; poly_gpu takes {low} to {high}")
        most = degrees_of(self.mesh.cell)[1]
        if self.fine_degree > most:
            raise OptionError(
                f"-{self.options.prefix}poly_space tensor of degree {self.largest} has polynomials of degree "
                f"{self.fine_degree} on each {self.mesh.cell}, {most} is the most; give a lower -fe_degree or "
                "-poly_space total"
            )
        check_sipg(self.physics, self.mesh.dim)

    def _check_mesh(self) -> None:
        if self.mesh.geometry.degree > 1:
            raise OptionError(
                f"the mesh has curved cells (of degree {self.mesh.geometry.degree}), and polytopes of poly_gpu are "
                "made of straight ones; add -dm_plex_gmsh_highorder 0, or give -fe_backend sipg_gpu"
            )

    @property
    def space(self) -> str:
        """`total` or `tensor`."""
        return self.options.poly_space

    @property
    def fine_degree(self) -> int:
        """Degree on base cells that holds the functions of the space."""
        return max(1, self.largest * (self.dim if self.space == "tensor" else 1))

    def _fine_options(self):
        # Polynomials of physical coordinates are integrated by Gauss rules: Gauss-Lobatto nodes would not be exact.
        exact = 2 * self.fine_degree + (1 if is_tensor(self.mesh.cell) else 0)
        chosen = self.options.quadrature_degree
        degree = chosen if chosen >= 0 else exact
        return replace(
            self.options, backend="sipg_gpu", degree=self.fine_degree, quadrature_degree=degree, sipg_penalty="shahbazi"
        )

    # Basis ---------------------------------------------------------------------------------------------------------

    @cached_property
    def exponents(self) -> np.ndarray:
        """Degrees [basis, dim] of the functions of the largest degree; a lower degree has the first of them."""
        return exponents(self.dim, self.largest, self.space)

    def num_basis(self, degrees) -> np.ndarray:
        """Functions of polytopes of given degrees."""
        table = np.array([num_basis(self.dim, p, self.space) for p in range(HIGHEST + 1)])
        return table[degrees]

    def box_coordinates(self, polytope, x: np.ndarray) -> np.ndarray:
        """Coordinates in (-1, 1)^d [item, …, dim] of places x [item, …, dim] in extended polytopes [item]."""
        lower, upper = self.numbering.lower[polytope], self.numbering.upper[polytope]
        shape = (len(x), *(1,) * (x.ndim - 2), self.dim)
        return (2 * x - (lower + upper).reshape(shape)) / (upper - lower).reshape(shape)

    def _create_section(self, dm):
        return create_section(self)

    # As other schemes ----------------------------------------------------------------------------------------------

    variant = "polytope"
    dofmap, block_size = forwarded("numbering", 2)
    spaces, auxiliary, quadrature, quadrature_degree = forwarded("fine", 4)

    def matrix_numbers(self) -> tuple[np.ndarray, np.ndarray]:
        """PETSc row and column of each value of the matrix, see matrix.py."""
        return self.blocks.numbers()

    def matrix_rows(self) -> tuple[np.ndarray, np.ndarray] | None:
        return self.blocks.csr()

    @cached_property
    def blocks(self) -> Blocks:
        """Interfaces, and where the blocks of the matrix stand."""
        return Blocks(self)

    @cached_property
    def penalty_numbers(self) -> np.ndarray:
        return penalty_numbers(self)

    @property
    def cell_costs(self) -> np.ndarray:
        """As in Discretization: the square of the number of a polytope's functions, for each of its base cells."""
        return self.num_basis(self.degrees)[self.polytopes.of_cell].astype(float) ** 2

    # Kernel specs ------------------------------------------------------------------------------------------------

    def basis_macros(self) -> dict[str, int]:
        """Sizes that poly_basis.clh needs."""
        return {"DIM": self.dim, "NC": self.physics.num_components, "DEGREE": self.largest, "NP": len(self.exponents)}

    def basis_tables(self) -> dict[str, np.ndarray]:
        """Tables that poly_basis.clh needs."""
        k = np.arange(self.largest + 1)
        return {"EXPONENTS": self.exponents, "NORMS": np.sqrt(2.0 * k + 1)}

    def box_rows(self) -> np.ndarray:
        """Centre and two over the width of each extended polytope's box [extended, 2, dim]."""
        lower, upper = self.numbering.lower, self.numbering.upper
        return np.stack([(lower + upper) / 2, 2 / (upper - lower)], axis=1)

    def polytope_rows(self) -> np.ndarray:
        """Polytope [stride] of each extended base cell."""
        return cell_fastest(self.numbering.polytope_of[:, None], self.fine.stride)

    def unroll(self, rows: int) -> str:
        """Pragma of loops over so many functions. Loops stay loops on CPUs: registers gain nothing there, and programs
        take twice as long to compile."""
        if not self.fine.limits.is_gpu:
            return '_Pragma("nounroll")'
        return '_Pragma("unroll")' if rows <= MOST_UNROLLED else ""

    def sum_macros(self, rows: int, points: float, of: str) -> dict[str, int | str]:
        """Sizes that poly_sum.clh needs for so many functions, and points (`of` a POINTS_OF_LANE) of a polytope on
        average."""
        group, lanes = (GPU_GROUP, (8, 16, 32)) if self.fine.limits.is_gpu else (CPU_GROUP, (CPU_GROUP,))
        fitting = [n for n in lanes if n == lanes[0] or POINTS_OF_LANE[of] * n <= points]
        sizes = {"ROWS": rows, "LANES": fitting[-1], "GROUP": group, "CHUNK": min(rows, CHUNK)}
        return {**sizes, "UNROLL": self.unroll(rows)}

    def transfer_specs(self) -> dict[str, KernelSpec]:
        """Specs of `poly_expand` and `poly_restrict`."""
        fine = self.fine
        nodes = fine.element.nodes[fine.tensor_order]
        table = ReferenceElement(self.mesh.cell, 1).tabulate(nodes, 0)[0]
        macros = {**self.basis_macros(), "NB": fine.num_nodes, "NNODES": table.shape[1]}
        macros |= self.sum_macros(len(self.exponents), fine.num_nodes * self.cells_of_polytope, "nodes")
        tables = {**self.basis_tables(), "NODE_GEO": table}
        sources = ("poly_basis.clh", "poly_sum.clh", "poly_transfer.cl")
        local = self._sum_bytes(macros)
        return {
            n: KernelSpec(n, sources, macros, tables, "", self.options.precision, macros["GROUP"], local)
            for n in TRANSFERS
        }

    def action_spec(self, degree: int, facets: float) -> KernelSpec:
        """Spec of `poly_action` for polytopes none of whose neighbours, nor themselves, have a higher degree; facets:
        of a polytope on average."""
        fine, rows = self.fine, num_basis(self.dim, degree, self.space)
        tested = {test for test, _ in read_by_text(self.physics)}
        points = fine.quadrature.num_points * self.cells_of_polytope + facets * fine.facet_rules[0][0].num_points
        files = "sipg_facet poly_facet_sides poly_basis poly_nested poly_volume_state poly_sum".split()
        at = np.full((degree + 1,) * self.dim, -1, np.int32)
        at[tuple(self.exponents[:rows].T)] = np.arange(rows)
        constants = self.basis_tables() | {"FUNCTION_AT": at}
        macros = {
            **fine._macros(),
            **fine.flux_macros,
            **self.basis_macros(),
            **self.sum_macros(rows, points, "action"),
            "DEGREE": degree,
            "NQ": fine.quadrature.num_points,
            "TEST_VALUE": int("f0" in tested),
            "TEST_GRADIENT": int("f1" in tested),
        }
        group, teams = macros["GROUP"], macros["GROUP"] // macros["LANES"]
        local = self._sum_bytes(macros) + fine.real_bytes * teams * macros["NC"] * rows
        sources = fine._flux_sources(*(f"{name}.clh" for name in files), "poly_action.cl")
        tables = {**fine._plain_tables, **fine._cell_tables(fine.quadrature)}
        how = {"arguments": ACTION, "launch": Launch(teams, group * macros["NC"])}
        how |= {"most": 0 if fine.limits.is_gpu else CONSTANT_BYTES, "constants": constants}
        return fine.kernel_spec("poly_action", sources, macros, tables, group, local, **how)

    @property
    def cells_of_polytope(self) -> float:
        """Base cells of a polytope on average."""
        return self.mesh.num_cells / max(1, self.polytopes.count)

    def _sum_bytes(self, macros) -> int:
        """Local memory of the sums of poly_sum.clh."""
        return self.fine.real_bytes * macros["CHUNK"] * (macros["GROUP"] + 1)


@dataclass(frozen=True)
class Numbering:
    """Extended polytopes (owned, then ghosts) and where their unknowns stand.

    polytope_of  [extended base cell] extended polytope
    degrees      [extended polytope];  sizes [extended polytope] basis functions
    lower, upper [extended polytope, dim] bounding boxes
    first        [extended polytope + 1] compact number of the first unknown: owned ones, then ghosts
    dofmap       DofMap;  block_size unknowns of every polytope, or 1
    """

    polytope_of: np.ndarray
    degrees: np.ndarray
    sizes: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    first: np.ndarray
    dofmap: DofMap
    block_size: int

    @property
    def num_extended(self) -> int:
        return len(self.degrees)


def find_numbering(disc) -> Numbering:
    """The numbering of a PolytopicDG. Collective."""
    polytopes, near, components = disc.polytopes, disc.fine.neighbours, disc.physics.num_components
    of_cell, count = polytopes.of_cell, polytopes.count
    theirs = near.extended(of_cell[:, None])[near.num_cells :, 0]
    pairs = np.stack([near.ghost_rank, theirs], axis=1).reshape(-1, 2)
    ghosts, cell, which = np.unique(pairs, axis=0, return_index=True, return_inverse=True)

    lower, upper = _boxes(disc)
    starts = np.concatenate([[0], np.cumsum(disc.num_basis(disc.degrees) * components)])
    known = np.column_stack([lower, upper, disc.degrees, starts[:-1]]).astype(float)
    known = np.concatenate([known, near.extended(known[of_cell])[near.num_cells :][cell]])
    dim, degrees = disc.dim, known[:, -2].astype(np.int32)
    sizes = disc.num_basis(degrees).astype(np.int32)
    first = np.concatenate([[0], np.cumsum(sizes * components)])
    return Numbering(
        polytope_of=np.concatenate([of_cell, count + which.ravel()]).astype(np.int32),
        degrees=degrees,
        sizes=sizes,
        lower=known[:, :dim],
        upper=known[:, dim : 2 * dim],
        first=first.astype(np.int32),
        dofmap=_dofmap(disc, first, count, ghosts[:, 0], known[count:, -1].astype(np.int64)),
        block_size=_block_size(disc.mesh.comm, sizes[:count] * components),
    )


def _boxes(disc) -> tuple[np.ndarray, np.ndarray]:
    """Lower and upper corners [polytope, dim] of the bounding boxes, those around finer polytopes where there are."""
    if disc.finer is None:
        return disc.polytopes.boxes(disc.mesh)
    within = cells_of(disc.finer.polytopes.parents(disc.polytopes), disc.polytopes.count)
    finer, count = disc.finer.numbering, disc.finer.polytopes.count
    return extents(np.stack([finer.lower[:count], finer.upper[:count]], axis=1), *within)


def _dofmap(disc, first, count: int, ghost_rank, ghost_first) -> DofMap:
    owned, sizes = int(first[count]), np.diff(first)[count:]
    rank = np.repeat(ghost_rank, sizes)
    index = np.repeat(ghost_first - (first[count:-1] - owned), sizes) + np.arange(first[-1] - owned)
    none = np.zeros((0, 0), np.int32)  # unknowns belong to no base cell
    return unconstrained_dofmap(disc.mesh.comm, owned, rank, index, none, 0)


def create_section(disc) -> PETSc.Section:
    """A section with a polytope's unknowns in the first of its cells, on all ranks that hold that cell. Collective."""
    sizes = np.diff(disc.numbering.first)[: disc.polytopes.count]
    start, cells = disc.polytopes.cells
    begin, end = disc.mesh.dm.getChart()
    sizes_of = np.zeros(end - begin, np.int32)
    sizes_of[disc.mesh.topology.cells[cells[start[:-1]]] - begin] = sizes
    sizes_of = disc.mesh.exchange.sum(sizes_of)
    points = np.flatnonzero(sizes_of)
    section = PETSc.Section().create(disc.mesh.dm.comm)
    section.setChart(begin, end)
    for point, size in zip((points + begin).tolist(), sizes_of[points].tolist(), strict=True):
        section.setDof(point, size)
    section.setUp()
    return section


def _block_size(comm, sizes: np.ndarray) -> int:
    found = set().union(*comm.allgather(set(np.unique(sizes).tolist())))
    return int(found.pop()) if len(found) == 1 else 1

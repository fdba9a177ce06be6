"""Base of all schemes: a mesh, a physics, options."""

from __future__ import annotations

from functools import cached_property

import numpy as np
from petsc4py import PETSc

from ..codegen import KernelSpec
from ..codegen.preamble import CONSTANT_BYTES, REAL_BYTES, place_tables
from ..errors import MeshError, OptionError, PhysicsError
from ..mesh.quality import check_conforming
from ..options import Options
from ..petsc.c_library import set_section
from ..petsc.lifetimes import Alive
from ..physics.dependence import Dependence
from ..reference import CELLS, ReferenceElement, cell_quadrature, facet_count, facet_quadrature, inside, tabulate
from ..threads import CHUNK, in_threads
from ..value_checks import plural
from .streamlines import upwinded
from .symmetry import check_stable

STEP_INWARDS = {"double": 2.0**-26, "single": 2.0**-12}  # in reference coordinates, of points where a step of x counts
PAD = 32  # cells are padded to this multiple, so that rows of cell-fastest arrays are aligned


def padded(count: int) -> int:
    """Row length of an array whose fastest axis has `count` items."""
    return max(PAD, -(-count // PAD) * PAD)


def cell_fastest(array: np.ndarray, stride: int) -> np.ndarray:
    """[item, …] → [prod(…), stride] with the item fastest, padding repeated from zero."""
    flat = array.reshape(len(array), int(np.prod(array.shape[1:])))
    out = np.zeros((flat.shape[1], stride), dtype=array.dtype)

    def fill(begin: int) -> None:
        out[:, begin : min(begin + CHUNK, len(flat))] = flat[begin : begin + CHUNK].T

    in_threads(fill, range(0, len(flat), CHUNK))
    return out


class Discretization:
    """A physics on a mesh by one scheme; subclasses give the numbering, the tables and the kernel specs, and
    cell_costs [num_cells], multiplications of a product in each owned cell, for one component, which balance ranks.

    Attributes: mesh, physics, options, dim, stride (padded number of cells), dofmap
    """

    name = "base"
    degrees = (0, 40)
    element_kernels: tuple[str, ...] = ("auto",)  # of -fe_kernel, those that the scheme has
    is_polytopic = False  # whether functions are polynomials on the boxes of polytopes
    is_condensed = False  # whether the unknowns are those of facets, and cells are eliminated
    has_jumps = False  # whether cells are discontinuous beside a trace
    has_penalties = False  # whether facets are penalized
    follows_symmetry = True  # whether the default Krylov method depends on the symmetry of the matrix
    essential_auxiliary_components = 0  # of auxiliary fields that strong conditions read
    shapes: tuple[str, ...] = CELLS  # of the cells that it takes
    mixes = False  # whether it takes cells of several shapes in a mesh
    in_time = False  # whether cells keep their interior between steps
    stabilizes_by_expression = False  # whether facets are stabilized by what the user wrote

    def __init__(self, mesh, physics, options: Options):
        self.mesh = mesh
        self.physics = physics
        self.options = options
        self.dim = mesh.dim
        self.stride = padded(mesh.num_cells)
        self._check_degree()
        check_kernel(self)

    @classmethod
    def on(cls, mesh, physics, options, limits) -> Discretization:
        """The discretization of a mesh that `on_mesh` gives."""
        return cls(mesh, physics, options, limits)

    @property
    def parts(self) -> tuple:
        """Discretizations of the cells of each shape, which share the numbering; itself where there is one."""
        return (self,)

    @property
    def spaces_of_parts(self) -> list[tuple]:
        """Pairs of a part and one of its spaces."""
        return [(part, space) for part in self.parts for space in part.spaces]

    def __repr__(self) -> str:
        cells = plural(self.mesh.num_cells_all, f"{self.mesh.cell} cell")
        return f"<{type(self).__name__}: {self.name} of degree {self.options.degree} on {cells}>"

    @cached_property
    def _clone(self) -> PETSc.DMPlex:
        return self.mesh.dm.clone()

    @cached_property
    def petsc_comm(self) -> PETSc.Comm:
        """PETSc's communicator of the ranks."""
        return self._clone.comm

    @Alive("The DM of the problem (problem.dm)")
    def dm(self) -> PETSc.DMPlex:
        """A clone of the mesh's DM with a section of the unknowns, which takes PETSc as long as the numbering takes us:
        nothing here asks for it. Collective. Raises MeshError where there is none."""
        if not self.has_section:
            raise MeshError(
                f"The DM of a problem with {self.mesh.cell} cells was asked for, and PETSc's sections take cells whose "
                "facets have one shape; work with the vectors and index sets of the problem."
            )
        set_section(self._clone, self._create_section(self._clone))
        return self._clone

    @property
    def has_section(self) -> bool:
        """True if PETSc's sections, which take points by their dimension, can tell the unknowns."""
        return len(self.mesh.kinds) == self.dim + 1

    @property
    def title(self) -> str:
        """The scheme as options choose it."""
        return self.name

    @cached_property
    def dependence(self) -> Dependence:
        """Dependence of matrices: of derivatives, and of the stabilization where the user wrote one."""
        return self.physics.dependence(self.dim, self.stabilizes_by_expression)

    @property
    def reads_time(self) -> bool:
        """True if matrices depend on t beside the states."""
        return self.dependence.on_time

    @cached_property
    def is_steady(self) -> bool:
        """True if matrices are the same for all states and times."""
        return self.physics.is_linear and not self.reads_time

    @classmethod
    def on_mesh(cls, mesh, options):
        """The mesh as the scheme takes it. Collective. Raises MeshError for shapes of cells that the scheme does not
        take, and for hanging nodes, which look like boundary."""
        cls.require_shapes(mesh)
        check_conforming(mesh)
        return mesh

    @classmethod
    def require_shapes(cls, mesh) -> None:
        """Raise MeshError, on all ranks, for shapes of cells that the scheme does not take."""
        names = [part.cell for part in mesh.parts]
        if not set(names) <= set(cls.shapes) or (len(names) > 1 and not cls.mixes):
            scheme, remedy = cls.name, "-fe_backend cg_gpu, which takes any"
            if scheme == "cg_gpu":
                scheme, remedy = "cg_gpu with -cg_condense", "cg_gpu without it, which takes any"
            raise MeshError(
                f"The mesh has cells of shape {', '.join(names)}; {scheme} takes meshes of one shape, "
                f"{', '.join(cls.shapes)}; give {remedy}, or such a mesh."
            )

    @classmethod
    def prepared(cls, physics, options, dim: int):
        """The physics as the scheme takes it, with what options add to it. Raises PhysicsError."""
        check_stable(physics, dim, cls.name)
        if physics.boundary_fluxes:
            label = physics.boundary_fluxes[0].label
            raise PhysicsError(
                f"physics '{physics.name}' has a boundary flux on '{label}', which {cls.name} has no trace for; "
                "give -fe_backend hdg_gpu, or a Dirichlet, Neumann or Robin condition"
            )
        if physics.stabilizes_by_state:
            physics = physics.with_stabilization(None)
        upwinds = cls.name == "cg_gpu" and options.cg_stabilization == "supg"
        return upwinded(physics, options, dim) if upwinds else physics

    def places_of_rows(self) -> list[tuple]:
        """Places in element vectors that add to values of a vector: (rows of the places or None for `cell_dofs`, number
        of places, places in a line of them, used ones in each line, first place) of each part."""
        return [(None, self.matrix_layout[0] * self.stride, self.stride, self.mesh.num_cells, 0)]

    @property
    def block_size(self) -> int:
        """Unknowns that stand together in PETSc's vector, wherever one of them stands."""
        return 1

    def _check_degree(self) -> None:
        """Raise OptionError for fields of a degree that the scheme does not have."""
        low, high = self.degrees
        for f in self.physics.fields:
            degree = self.options.degree + f.degree_offset
            if not low <= degree <= high:
                raise OptionError(
                    f"-{self.options.prefix}fe_degree {self.options.degree} gives field '{f.name}' the degree "
                    f"{degree}; {self.name} takes {low} to {high}"
                )

    def matrix_rows(self) -> tuple[np.ndarray, np.ndarray] | None:
        """Starts and PETSc columns of this rank's rows if the matrices' values come row by row, else None."""
        return None

    @cached_property
    def geometry_element(self) -> ReferenceElement:
        return ReferenceElement(self.mesh.cell, self.mesh.geometry.degree)

    @cached_property
    def has_steps(self) -> bool:
        """True if physics may jump with x, so that each side of a facet has to see a point in its own cell."""
        return self.physics.instance(self.dim).has_steps

    def seen(self, points: np.ndarray, cell: str = "") -> np.ndarray:
        """Reference points [point, dim] where the physics of a cell is evaluated, in place of given ones; cell: shape,
        where there are several."""
        cell, distance = cell or self.mesh.cell, STEP_INWARDS[self.options.precision]
        return inside(cell, points, distance) if self.has_steps else points

    def seen_geometry(self, points: np.ndarray, cell: str = "") -> np.ndarray:
        """Values [point, node] of the geometry's functions where a cell sees reference points [point, dim]."""
        return tabulate(self.geometry_element, self.seen(points, cell), cell).values

    @cached_property
    def quadrature(self):
        return cell_quadrature(self.mesh.cell, self.quadrature_degree)

    @cached_property
    def facet_rules(self):
        """Rules on each facet, and outward normals [F, dim] of the reference cell."""
        return facet_quadrature(self.mesh.cell, self.quadrature_degree)

    @cached_property
    def facet_cells(self) -> list[str]:
        """Shape of the cell [F] that each facet of a reference cell belongs to, of several shapes in turn."""
        return [cell for cell in self.mesh.cell.split(" and ") for _ in range(facet_count(cell))]

    @property
    def num_facets_of_cell(self) -> int:
        return len(self.facet_cells)

    @property
    def real_bytes(self) -> int:
        """Bytes of a `real`."""
        return REAL_BYTES[self.options.precision]

    @cached_property
    def physics_text(self) -> str:
        """Text of the physics for the device."""
        return self.physics.device_source(self.dim)

    def kernel_spec(
        self, name, sources, macros, tables, *sizes: int, most: int = CONSTANT_BYTES, constants=None, **how
    ) -> KernelSpec:
        """Spec of a kernel of the physics whose tables become one buffer where they take more than `most` bytes.

        sizes: local_size and local_bytes.   constants: tables that stay.   how: other fields of the spec.
        """
        tables, places, buffer = place_tables(tables, self.real_bytes, most)
        text, precision, tables = self.physics_text, self.options.precision, {**tables, **(constants or {})}
        macros = {**macros, **places}
        return KernelSpec(name, sources, macros, tables, text, precision, *sizes, table_buffer=buffer, **how)

    def assemble_spec(self, name: str = "assemble") -> KernelSpec:
        """Spec of `assemble`, `assemble_rows` or `assemble_step`, which sum element vectors."""
        return KernelSpec(name, ("assemble.cl",), precision=self.options.precision, local_size=64)

    def nodes(self) -> np.ndarray:
        """Coordinates [node, dim] of the geometry nodes."""
        return self.mesh.geometry.nodes

    def cell_nodes(self) -> np.ndarray:
        """Geometry nodes [node, stride] of each cell."""
        return cell_fastest(self.mesh.geometry.cell_nodes[: self.mesh.num_cells].astype(np.int32), self.stride)


def check_kernel(disc) -> None:
    """Raises OptionError where the scheme has no element kernel of the chosen name."""
    options, kernels = disc.options, disc.element_kernels
    if options.kernel not in kernels:
        taken = " or ".join(filter(None, (", ".join(kernels[:-1]), kernels[-1])))
        raise OptionError(
            f"-{options.prefix}fe_kernel {options.kernel} has no effect on {disc.title}, which takes {taken}; "
            "leave it out"
        )


def check_one_degree(physics, scheme: str) -> None:
    """Raise PhysicsError for a physics whose fields differ in degree, which `scheme` does not discretize."""
    offsets = [f"{f.degree_offset} of '{f.name}'" for f in physics.fields if f.degree_offset]
    if offsets:
        raise PhysicsError(
            f"physics '{physics.name}' has degree_offset {', '.join(offsets)}, and all fields of {scheme} have the "
            "degree of -fe_degree; leave degree_offset out or give -fe_backend cg_gpu or sipg_gpu"
        )

"""Ways to a mesh: options, refinement, the user's DMPlex, arrays, and files that meshio reads."""

import itertools

import meshio
import numpy as np
import pytest
from petsc4py import PETSc
from sample_meshes import data_set
from shuffled_boxes import MESHES, shuffled_box
from test_geometry import volume
from test_topology import check_against_closures

from petsc_hdg.errors import MeshError
from petsc_hdg.mesh import Mesh, create

NUM_CELLS = {(2, 1): 12, (2, 0): 6, (3, 1): 144, (3, 0): 24}


@pytest.fixture
def options():
    """Sets PETSc options for one test: options({name: value})."""
    database, names = PETSc.Options(), []

    def put(values):
        for name, value in values.items():
            database[name] = value
            names.append(name)

    yield put
    for name in names:
        database.delValue(name)


@pytest.mark.parametrize(("dim", "simplex"), NUM_CELLS)
def test_box_from_options(options, dim, simplex):
    faces = "2,3" if dim == 2 else "2,3,4"
    corner = ",".join(["-1", "0.5", "2"][:dim])
    options({"a_dm_plex_dim": dim, "a_dm_plex_simplex": simplex, "a_dm_plex_box_faces": faces})
    options({"a_dm_plex_box_lower": corner, "a_dm_plex_box_upper": ",".join("345"[:dim])})
    mesh = Mesh.from_options(prefix="a_")
    assert mesh.num_cells == NUM_CELLS[dim, simplex]
    assert (mesh.dim, mesh.shape.is_simplex, mesh.dm.getOptionsPrefix()) == (dim, bool(simplex), "a_")
    assert volume(mesh) == pytest.approx(4 * 3.5 * (3 if dim == 3 else 1), rel=1e-14)


def test_defaults_are_petscs():
    mesh = Mesh.from_options()
    assert (mesh.cell, mesh.num_cells) == ("triangle", 8)


@pytest.mark.parametrize(("dim", "simplex"), NUM_CELLS)
def test_refinement_keeps_names(options, dim, simplex):
    options({"dm_refine": 1})
    mesh = Mesh.box((2, 3, 4)[:dim], bool(simplex))
    assert mesh.num_cells == NUM_CELLS[dim, simplex] * 2**dim
    check_against_closures(mesh)
    per_side = {(2, 1): 6, (2, 0): 6, (3, 1): 96, (3, 0): 48}[dim, simplex]
    cells, _ = mesh.boundary_facets("left")
    assert len(cells) == per_side
    assert mesh.closure_mask("left").sum() == closure_size(dim, simplex)


def closure_size(dim: int, simplex: int) -> int:
    """Vertices, edges and faces of one side, six edges or 6 × 8 squares."""
    if dim == 2:
        return 7 + 6
    return 7 * 9 + (6 * 9 + 7 * 8 + 48 * simplex) + 48 * (1 + simplex)


def test_refined_gmsh_mesh(options):
    options({"dm_refine": 2, "dm_plex_filename": str(MESHES / "regions.msh")})
    coarse, mesh = 44, Mesh.from_options()
    assert mesh.num_cells == coarse * 16
    assert len(mesh.boundary_facets("inlet")[0]) == 16 and mesh.cell_mask("west").sum() > 16
    assert mesh.cell_mask("west").sum() + mesh.cell_mask("east").sum() == mesh.num_cells


def test_straight_cells_of_a_curved_file(options):
    options({"dm_plex_gmsh_highorder": 0, "dm_refine": 1})
    mesh = Mesh.from_file(MESHES / "disk_tri.msh")
    assert (mesh.geometry.degree, mesh.num_cells) == (1, 46 * 4)


def test_other_shapes_of_petsc(options):
    options({"dm_plex_shape": "doublet", "dm_plex_cell": "triangle"})
    mesh = Mesh.from_options()
    assert (mesh.cell, mesh.num_cells, mesh.boundaries) == ("triangle", 2, ("boundary",))


# What DMPlexCreateFromOptions_Internal of PETSc 3.26 and the box that it makes read for a box, and for a file.
OF_PETSC = {
    "box": "filename file_contents boundary_filename name cell reference_cell_domain shape dim simplex interpolate "
    "orient adj_cone adj_closure print_adj box_faces box_lower box_upper box_bd label_ cohesive_label_ "
    "separate_marker box_crisscross",
    "file": "filename name interpolate orient adj_cone adj_closure print_adj label_ cohesive_label_",
}


@pytest.mark.parametrize("kind", OF_PETSC)
def test_every_option_of_petscs_is_served_or_refused(kind):
    known = {*create.SERVED, *create.BY_PETSC, *create.REFUSED[kind]}
    assert not {f"dm_plex_{name}" for name in OF_PETSC[kind].split()} - known


HARMLESS = {"dm_plex_box_bd": "None,NONE", "dm_plex_adj_closure": "1", "dm_plex_separate_marker": "false"}


def test_options_that_say_what_holds(options):
    options({**HARMLESS, "dm_plex_shape": "Box", "dm_plex_name": "mine", "dm_plex_orient": 1})
    mesh = Mesh.from_options()
    assert mesh.num_cells == 8 and "left" in mesh.boundaries and mesh.dm.getName() == "mine"


def test_a_reference_cell_by_petsc(options):
    options({"dm_plex_reference_cell_domain": 1, "dm_plex_cell": "quadrilateral"})
    mesh = Mesh.from_options()
    assert (mesh.cell, mesh.num_cells, volume(mesh)) == ("quadrilateral", 1, pytest.approx(4))


def test_uninterpolated_plex_stays_as_it_is():
    cells, points = shuffled_box("triangle", 3)
    dm = PETSc.DMPlex().createFromCellList(2, cells.astype(PETSc.IntType), points, interpolate=False)
    mesh = Mesh(dm)
    assert dm.getDepth() == 1 and mesh.dm.getDepth() == 2
    check_against_closures(mesh)
    assert volume(mesh) == pytest.approx(1, rel=1e-14)


def test_unused_points_are_left_out():
    mesh = Mesh.from_cells([[0, 1, 3]], [[0.0, 0], [1, 0], [5, 5], [0, 1]], boundaries={"low": [[1, 0]]})
    assert mesh.num_vertices == 3 and volume(mesh) == pytest.approx(0.5)
    assert mesh.geometry.nodes[mesh.closure_mask("low")[slice(*mesh.topology.stratum[0])]].tolist() == [[0, 0], [1, 0]]


def named_meshio(cell: str) -> meshio.Mesh:
    """A square or cube of two cells' width with tags on cells and on the facets at x = 0."""
    cells, points = shuffled_box(cell, 4)
    kind, facet, order = {
        "triangle": ("triangle", "line", [0, 1, 2]),
        "quadrilateral": ("quad", "line", [0, 1, 3, 2]),
        "tetrahedron": ("tetra", "triangle", [0, 1, 2, 3]),
        "hexahedron": ("hexahedron", "quad", [0, 1, 3, 2, 4, 5, 7, 6]),
    }[cell]
    mesh = Mesh.from_cells(cells, points, cell=cell)
    found, local = mesh.boundary_facets("boundary")
    around = mesh.shape.entities[mesh.dim - 1][:, [0, 1, 3, 2] if facet == "quad" else slice(None)]
    vertices = np.take_along_axis(mesh.topology.cell_vertices[found], around[local], axis=1)
    vertices = vertices[(mesh.geometry.nodes[vertices][:, :, 0] == 0).all(axis=1)]
    tags = [np.where(points[cells].mean(axis=1)[:, 0] < 0.5, 3, 4), np.full(len(vertices), 9)]
    blocks = [(kind, cells[:, order]), (facet, vertices)]
    deep = np.c_[points, np.zeros(len(points))] if mesh.dim == 2 else points
    return meshio.Mesh(deep, blocks, cell_data={"medit:ref": tags})


@pytest.mark.parametrize("suffix", [".vtu", ".mesh", ".vtk"])
@pytest.mark.parametrize("cell", ["triangle", "quadrilateral", "tetrahedron", "hexahedron"])
def test_meshio_files(tmp_path, cell, suffix):
    path = tmp_path / f"box{suffix}"
    made = named_meshio(cell)
    made.write(path)
    mesh = Mesh.from_file(path)
    assert mesh.cell == cell and volume(mesh) == pytest.approx(1, rel=1e-13)
    cells, local = mesh.boundary_facets("9")
    assert len(cells) == len(made.cells[1].data)
    centres = mesh.geometry.nodes[mesh.geometry.cell_nodes].mean(axis=1)
    assert (mesh.cell_mask("3") == (centres[:, 0] < 0.5)).all()


def in_memory(made, package: str):
    """A meshio.Mesh as such, as the stand-in for PyVista, or as its own grid of PyVista."""
    if package == "meshio":
        return made
    kinds = {"triangle": 5, "quad": 9, "tetra": 10, "hexahedron": 12, "line": 3}
    cells = {kinds[block.type]: block.data for block in made.cells}
    types = np.repeat(list(cells), [len(of) for of in cells.values()])
    tags = {"tag": np.concatenate(made.cell_data["medit:ref"]), "vtkOriginalCellIds": np.arange(len(types))}
    if package == "stand-in":
        return data_set(types, cells, made.points, **tags)
    grid = pytest.importorskip("pyvista").UnstructuredGrid(cells, made.points)
    grid.cell_data.update(tags)
    return grid


@pytest.mark.parametrize("package", ["meshio", "stand-in", "pyvista"])
@pytest.mark.parametrize("cell", ["triangle", "quadrilateral", "tetrahedron", "hexahedron"])
def test_meshes_in_memory(cell, package):
    made = named_meshio(cell)
    mesh = (Mesh.from_meshio if package == "meshio" else Mesh.from_pyvista)(in_memory(made, package))
    facets, region = ("9", "3") if package == "meshio" else ("tag=9", "tag=3")
    assert mesh.cell == cell and volume(mesh) == pytest.approx(1, rel=1e-13)
    assert len(mesh.boundary_facets(facets)[0]) == len(made.cells[1].data)
    centres = mesh.geometry.nodes[mesh.geometry.cell_nodes].mean(axis=1)
    assert (mesh.cell_mask(region) == (centres[:, 0] < 0.5)).all() and len(mesh.cell_regions) == 2


def test_pixels_and_voxels():
    """VTK's cells of images count their vertices as basix does."""
    points = np.array(list(itertools.product((0, 1), (0, 2), (0, 3))), float)[:, ::-1]
    mesh = Mesh.from_pyvista(data_set([11], {11: np.arange(8)[None]}, points))
    assert mesh.cell == "hexahedron" and volume(mesh) == pytest.approx(6)
    mesh = Mesh.from_pyvista(data_set([8], {8: np.arange(4)[None]}, points[:4]))
    assert mesh.cell == "quadrilateral" and volume(mesh) == pytest.approx(6)


def test_grids_of_pyvista_that_are_refused():
    points = np.zeros((6, 2))
    with pytest.raises(MeshError, match="A mesh of PyVista has cells of VTK's type 22; straight triangle, quad"):
        Mesh.from_pyvista(data_set([22], {22: np.arange(6)[None]}, points))
    lifted = data_set([5, 5], {5: [[0, 1, 2], [1, 2, 3]]}, [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 1.0]])
    with pytest.raises(MeshError, match="A mesh of PyVista has cells of dimension 2 in a space of dimension 3"):
        Mesh.from_pyvista(lifted)


def test_abaqus_sets(tmp_path):
    made = named_meshio("triangle")
    made.cell_sets = {"WEST": [np.flatnonzero(made.cell_data["medit:ref"][0] == 3), None]}
    path = tmp_path / "box.inp"
    lines = ["*NODE", *[f"{i + 1}, {x}, {y}, {z}" for i, (x, y, z) in enumerate(made.points)], "*ELEMENT, TYPE=CPS3"]
    lines += [", ".join(map(str, [i + 1, *(row + 1)])) for i, row in enumerate(made.cells[0].data)]
    lines += ["*ELSET, ELSET=WEST", ", ".join(str(i + 1) for i in made.cell_sets["WEST"][0])]
    path.write_text("\n".join(lines) + "\n")
    mesh = Mesh.from_file(path)
    assert mesh.cell_regions == ("WEST",) and mesh.cell_mask("WEST").sum() == len(made.cell_sets["WEST"][0])

"""Names of boundaries and regions, from files, boxes and the user's own labels."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest
from petsc4py import PETSc
from sample_meshes import SHAPES
from shuffled_boxes import MESHES

import petsc_hdg as fe
from petsc_hdg.errors import MeshError
from petsc_hdg.mesh import Mesh

SIDES = {"left": (0, 0), "right": (0, 1), "bottom": (1, 0), "top": (1, 1), "front": (2, 0), "back": (2, 1)}


def facet_points(mesh: Mesh, label: str) -> np.ndarray:
    """Vertices of a boundary's facets [facet, vertex, dim]."""
    cells, local = mesh.boundary_facets(label)
    vertices = np.take_along_axis(mesh.topology.cell_vertices[cells], mesh.shape.entities[mesh.dim - 1][local], axis=1)
    return mesh.geometry.nodes[vertices]


@pytest.mark.parametrize("simplex", [True, False])
@pytest.mark.parametrize("faces", [(4, 3), (2, 3, 4)])
def test_sides_of_boxes(faces, simplex):
    lower, upper = [-1.0, 0.5, 2.0][: len(faces)], [1.5, 0.75, 4.0][: len(faces)]
    mesh = Mesh.box(faces, simplex, lower, upper)
    assert set(mesh.boundaries) == {*list(SIDES)[: 2 * mesh.dim], "boundary"}
    total = 0
    for name in list(SIDES)[: 2 * mesh.dim]:
        axis, end = SIDES[name]
        points = facet_points(mesh, name)
        assert (points[:, :, axis] == (lower, upper)[end][axis]).all()
        per_square = 2 if simplex and mesh.dim == 3 else 1
        assert len(points) == per_square * np.prod(faces) // faces[axis]
        total += len(points)
    assert len(facet_points(mesh, "boundary")) == total


@pytest.mark.parametrize("file", ["regions.msh", "regions_v2.msh", "regions_bin.msh"])
def test_gmsh_names(file):
    mesh = Mesh.from_file(MESHES / file)
    sides = () if "v2" in file else ("sides",)
    assert mesh.boundaries == tuple(sorted(("7", "boundary", "inlet", "wall", *sides)))
    assert mesh.cell_regions == ("east", "west")
    assert (facet_points(mesh, "inlet")[:, :, 0] == 0).all()
    assert (facet_points(mesh, "7")[:, :, 0] == 1).all()
    assert np.isin(facet_points(mesh, "wall")[:, :, 1], (0, 1)).all()
    sizes = {name: len(mesh.boundary_facets(name)[0]) for name in mesh.boundaries}
    assert (sizes["inlet"], sizes["7"], sizes["wall"], sizes["boundary"]) == (4, 4, 8, 16)
    if sides:
        assert sizes["sides"] == 8
    centres = mesh.geometry.nodes[mesh.geometry.cell_nodes].mean(axis=1)
    assert (mesh.cell_mask("west") == (centres[:, 0] < 0.5)).all()
    assert (mesh.cell_mask("east") == (centres[:, 0] > 0.5)).all()


def test_numbers_of_sets_are_names():
    mesh = Mesh.from_file(MESHES / "regions.msh")
    for number, name in (("Face Sets:3", "inlet"), ("Face Sets:7", "7"), ("inlet:3", "inlet")):
        assert [a.tolist() for a in mesh.boundary_facets(number)] == [a.tolist() for a in mesh.boundary_facets(name)]
    assert (mesh.cell_mask("Cell Sets:3") == mesh.cell_mask("west")).all()


def test_unknown_names_list_the_known_ones():
    mesh = Mesh.from_file(MESHES / "regions.msh")
    with pytest.raises(MeshError, match="no boundary called 'outlet'; known here: '7', 'boundary', 'inlet', 'sides'"):
        mesh.boundary_facets("outlet")
    with pytest.raises(MeshError, match=r"^A boundary is given by its name, not by \['inlet', '7'\]: take them one"):
        mesh.boundary_facets(["inlet", "7"])
    with pytest.raises(MeshError, match="^A cell region is given by its name, not by 3: take them one"):
        mesh.cell_mask(3)
    with pytest.raises(MeshError, match=r"no boundary called 'west' \('west' is a cell region\)"):
        mesh.closure_mask("west")
    with pytest.raises(
        MeshError, match=r"no cell region called 'wall' \('wall' is a boundary\); known here: 'east', 'west'"
    ):
        mesh.cell_mask("wall")


def test_users_own_label():
    dm = PETSc.DMPlex().createBoxMesh([3, 2], simplex=False, interpolate=True, comm=PETSc.COMM_SELF)
    dm.createLabel("mine")
    dm.markBoundaryFaces("mine", 4)
    mesh = Mesh(dm)
    assert "mine" in mesh.boundaries
    for name in ("mine", "mine:4", "boundary"):
        assert len(mesh.boundary_facets(name)[0]) == 10
    with pytest.raises(MeshError, match="'mine:5'"):
        mesh.boundary_facets("mine:5")


def test_closure_mask_is_the_closure():
    mesh = Mesh.box((2, 2, 2), simplex=True)
    wanted = np.zeros(mesh.dm.getChart()[1], bool)
    start = mesh.topology.stratum[2][0]
    cells, local = mesh.boundary_facets("top")
    for facet in mesh.topology.entity[2][cells, local]:
        wanted[mesh.dm.getTransitiveClosure(int(facet) + start)[0]] = True
    mask = mesh.closure_mask("top")
    assert (mask == wanted).all() and mask.sum() == 9 + 16 + 8


def test_interior_facets_of_a_label_are_in_its_closure_only():
    mesh = Mesh.from_cells(
        [[0, 1, 2], [1, 2, 3]], [[0.0, 0], [1, 0], [0, 1], [1, 1]], boundaries={"cut": [[2, 1]], "low": [[0, 1]]}
    )
    assert len(mesh.boundary_facets("low")[0]) == 1
    with pytest.raises(MeshError, match="'cut' holds facets inside the mesh"):
        mesh.boundary_facets("cut")
    assert mesh.closure_mask("cut").sum() == 3


def marked(count: int, name: str = "boundary") -> Mesh:
    """A box of 3 × 2 squares from PETSc, `count` of whose 10 exterior facets have a name."""
    dm = PETSc.DMPlex().createBoxMesh([3, 2], simplex=False, interpolate=True, comm=PETSc.COMM_SELF)
    dm.createLabel("all")
    dm.markBoundaryFaces("all", 1)
    dm.createLabel(name)
    start, end = dm.getDepthStratum(1)
    facets = [point for point in dm.getStratumIS("all", 1).getIndices() if start <= point < end]
    assert len(facets) == 10
    for facet in facets[:count]:
        dm.setLabelValue(name, facet, 1)
    dm.removeLabel("all")
    return Mesh(dm)


def test_a_label_of_the_name_boundary_is_that_label():
    """It is told once that it leaves something out."""
    mesh = marked(4)
    with pytest.warns(UserWarning, match="'boundary' is a label of the mesh, which leaves out 6 of 10 exterior facets"):
        assert len(mesh.boundary_facets("boundary")[0]) == 4
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(mesh.boundary_facets("boundary")[0]) == 4
        for whole in (marked(10), marked(4, "wall"), Mesh.box((3, 2), simplex=False)):
            assert len(whole.boundary_facets("boundary")[0]) == 10 and not whole.left_out


def test_parts_are_named_by_their_places(mpirun):
    """As a box names them, on 1 and 3 ranks; conditions take the names."""
    script = Path(__file__).with_name("run_naming.py")
    for ranks in (1, 3):
        found = json.loads(mpirun(ranks, script).stdout)
        assert {cell: of["facets"] for cell, of in found.items()} == dict(zip(SHAPES, (3, 3, 4, 4), strict=True))
        for of in found.values():
            assert of["as the box"] == [True] * 3 and of["all"] and of["half"] and abs(of["flux"] - 1) < 1e-8
            assert of["curved"]  # to a box of twice the length, with the same names


def test_a_name_is_given_once():
    mesh = Mesh.box((2, 2))
    mesh.name_region("left", lambda x: x[..., 0] < 0.5)  # of cells, beside a boundary's
    assert mesh.cell_regions == ("left",) and "left" in mesh.boundaries
    with pytest.raises(MeshError, match="The mesh has a part called 'left' already; give another name"):
        mesh.name_boundary("left", lambda x: x[..., 0] < 0.5)


def test_views_tell_what_the_label_leaves_out():
    flux = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
    physics = fe.Physics({"u": 1}, "f0[0] = -1;", flux, boundary=[fe.Dirichlet("boundary", 0.0)])
    for mesh, told in ((marked(4), 1), (marked(10), 0)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            problem = fe.Problem(mesh, physics, check_kernels=False)
        assert problem.view().count("'boundary' is a label of the mesh, which leaves out 6 of 10") == told

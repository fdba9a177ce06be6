"""cg_gpu on meshes of cells of several shapes, prisms and pyramids: numbering, orders, patch tests, files, ranks."""

from __future__ import annotations

import json
import sys
import xml.etree.ElementTree as ET
from pathlib import Path
from types import SimpleNamespace

import meshio
import numpy as np
import pytest
import run_mixed
import vtu_reader
from mixed_meshes import plane, solid
from mpi4py.MPI import COMM_SELF as COMM
from petsc4py import PETSc
from sample_physics import everything, give_everything, smooth_poisson

import petsc_hdg as fe
from petsc_hdg.device import VecAccess
from petsc_hdg.discretizations import ContinuousGalerkin
from petsc_hdg.discretizations.dofmap import dof_nodes
from petsc_hdg.discretizations.oracle import Oracle, State
from petsc_hdg.discretizations.transposition import DeviceLimits
from petsc_hdg.errors import MeshError, OptionError
from petsc_hdg.operators import JacobianContext
from petsc_hdg.options import Options
from petsc_hdg.output import Picture
from petsc_hdg.output import plane as plane_of
from petsc_hdg.output.facets import FacetSet
from petsc_hdg.output.surface import collect_surface
from petsc_hdg.problem.results import derived_fields, results
from petsc_hdg.reference import ReferenceElement

MESHES = Path(__file__).parents[1] / "meshes"
SOLIDS = {"all": ("most", "hexahedron", "prism"), "prism": ("prism",), "pyramid": ("pyramid",)}
LINEAR = fe.Physics(
    {"u": 1},
    f1="for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
    boundary=[
        fe.Neumann("top", "g[0] = -n[1];"),
        fe.Robin("right", "f0[0] = u[0] - (3 - x[1] + (dim > 2 ? 0.5*x[dim - 1] : 0)) - 2*n[0];"),
        fe.Dirichlet("boundary", "exact"),
    ],
    exact={"u": "u[0] = 1 + 2*x[0] - x[1] + (dim > 2 ? 0.5*x[dim - 1] : 0);"},
    name="linear",
)


def mesh_of(given: dict, **settings) -> fe.Mesh:
    return fe.Mesh.from_cells(**given, comm=PETSc.COMM_SELF, **settings)


def of_solid(name: str, n: int = 3) -> fe.Mesh:
    return mesh_of(solid(n, SOLIDS[name]))


def test_parts_and_names():
    mesh = mesh_of(plane(4))
    assert mesh.cell == "triangle and quadrilateral"
    assert [(part.cell, part.num_cells, part.cells) for part in mesh.parts] == [
        ("triangle", 16, slice(0, 16)),
        ("quadrilateral", 8, slice(16, 24)),
    ]
    assert np.array_equal(np.flatnonzero(mesh.cell_mask("of quadrilateral")), np.arange(16, 24))
    assert mesh.exterior.sum() == 16 and (mesh.facet_counts + mesh.exterior == 2).all()
    cells, local = mesh.boundary_facets("boundary")
    assert len(cells) == 16 and (local[cells < 16] < 3).all()
    mesh.name_boundary("corner", lambda x: x[..., 0] + x[..., 1] < 0.3)
    mesh.name_region("low", lambda x: x[..., 1] < 0.5)
    assert "corner" in mesh.boundaries and mesh.cell_mask("low").sum() == 12
    shapes = [part.cell for part in of_solid("all").parts]
    assert shapes == ["tetrahedron", "hexahedron", "prism", "pyramid"]


@pytest.mark.parametrize(
    "name, degree", [("plane", 5), *((name, degree) for name in ("plane", *SOLIDS) for degree in (1, 2, 3))]
)
def test_unknowns_are_at_the_same_place_in_all_cells(name, degree):
    mesh = mesh_of(plane(4)) if name == "plane" else of_solid(name)
    disc = ContinuousGalerkin.on(mesh, everything(-1 if degree > 1 else 0), Options(degree=degree), None)
    places = np.full((len(disc.dofmap.compact), mesh.dim), np.nan)
    fields = np.full(len(places), -1)
    for part, space in disc.spaces_of_parts:
        numbers = part.dofmap.cell_numbers[:, space.first_dof : space.first_dof + space.num_dofs]
        nodes = np.repeat(dof_nodes(part.mesh, space), space.components, axis=1)
        components = space.first_component + np.arange(space.num_dofs) % space.components
        known = fields[numbers] >= 0
        assert np.abs(places[numbers] - nodes)[known].max(initial=0.0) < 1e-12
        places[numbers], fields[numbers] = nodes, components
        assert (np.abs(places[numbers] - nodes) < 1e-12).all() and (fields[numbers] == components).all()
    assert (fields >= 0).all()
    assert len(np.unique(np.round(np.column_stack([fields, places]), 9), axis=0)) == len(places)


@pytest.mark.parametrize("name", ("plane", "all"))
def test_residuals_are_those_of_numpy(name):
    mesh = mesh_of(plane(4)) if name == "plane" else of_solid(name)
    problem = fe.Problem(mesh, everything(), degree=2, check_kernels=False, pmat="none")
    give_everything(problem)
    disc, operator = problem.discretization, problem.operator
    u, rate = (run_mixed.state(problem, shift) for shift in (0.0, 1.0))
    f = problem.create_vec()
    problem.callbacks.ifunction(None, 0.3, u, rate, f)
    with problem.reading(u) as x:
        values = operator.values(x, 0.3)
    rates, free = np.zeros_like(values), disc.dofmap.num_owned
    rates[:free] = rate.getArray()
    rates[free:][disc.essential_points()[1] == 1] = np.array([x[1] for x in disc.essential_points()[2]])[
        disc.essential_points()[1] == 1
    ]
    expected = np.zeros(len(values))
    for part, own in zip(disc.parts, operator.parts, strict=True):
        numbers, oracle = part.dofmap.cell_numbers, Oracle(part)
        given = State(values[numbers], own.aux_rows, operator.constants, t=0.3, u_t=rates[numbers])
        for cell in range(part.mesh.num_cells):
            np.add.at(expected, numbers[cell], oracle.volume(cell, given))
        for cell, *facet in part.natural_facets.T:
            np.add.at(expected, numbers[cell], oracle.facet(cell, *facet, given))
    assert len(disc.natural_facets[0]) == sum(len(part.natural_facets[0]) for part in disc.parts) > 0
    np.testing.assert_allclose(f.getArray(), expected[:free], atol=1e-12 * np.abs(expected).max())


@pytest.mark.parametrize("name", ("plane", "all"))
def test_matrix_is_that_of_products(name):
    mesh = mesh_of(plane(4)) if name == "plane" else of_solid(name)
    problem = fe.Problem(mesh, everything(), degree=2, check_kernels=False, pmat="aij")
    give_everything(problem)
    u, rate, du = (run_mixed.state(problem, shift) for shift in (0.0, 1.0, 2.0))
    calls = problem.callbacks
    calls.ijacobian(None, 0.3, u, rate, 1.5, calls.jacobian, calls.assembled.mat)
    y, z = problem.create_vec(), problem.create_vec()
    for product in ("mult", "multTranspose"):
        for mat, out in ((calls.jacobian, y), (calls.assembled.mat, z)):
            getattr(mat, product)(du, out)
        assert (y - z).norm() < 1e-12 * y.norm()
    copy = problem.operator.in_precision("single")
    copy.compile()
    copy.follow()
    narrow = JacobianContext(copy, VecAccess(copy.arrays)).as_mat((y.getSizes()), y.comm, "seq")
    calls.jacobian.mult(du, y)
    narrow.mult(du, z)
    assert 0 < (y - z).norm() < 1e-5 * y.norm()
    calls.jacobian.getDiagonal(y)
    assert (y - calls.assembled.mat.getDiagonal()).norm() < 1e-12 * y.norm()


@pytest.mark.parametrize(("degree", "variant"), [(2, "cell and tensor"), (4, "transpose and tensor")])
def test_kernels_meant_for_gpus_give_the_same(degree, variant):
    mesh = mesh_of(plane(4))
    problem = fe.Problem(mesh, everything(0), degree=degree, check_kernels=False, pmat="none")
    give_everything(problem)
    disc = ContinuousGalerkin.on(mesh, everything(0), problem.options, DeviceLimits(is_gpu=True))
    assert disc.variant == variant and [part.cell_by_cell for part in disc.parts] == [False, True]
    run_mixed.assert_same(problem, disc)


@pytest.mark.parametrize("degree", (1, 2, 3))
@pytest.mark.parametrize("name", ("plane", *SOLIDS))
def test_linear_functions_are_exact(name, degree):
    mesh = mesh_of(plane(4)) if name == "plane" else of_solid(name)
    problem = fe.Problem(mesh, LINEAR, degree=degree)
    u = problem.interpolate("exact")
    f = problem.create_vec()
    problem.callbacks.residual(None, u, f)
    assert f.norm() < 2e-12 and max(problem.errors(u).values()) < 2e-12
    assert problem.integral("1", u) == pytest.approx(1.0, rel=1e-13)
    places = np.random.default_rng(1).random((50, mesh.dim))
    expected = 1 + places @ [2.0, -1.0, 0.5][: mesh.dim]
    np.testing.assert_allclose(problem.at(u, places)["u"][:, 0], expected, atol=1e-12)
    assert problem.flux("left", u)[0] == pytest.approx(-2.0, rel=1e-12)
    assert problem.integral("u_x[1]*n[1]", u, over="bottom") == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize("name, degree", [("plane", 1), ("plane", 2), ("plane", 3), ("all", 1), ("all", 2), ("all", 3)])
def test_orders(name, degree):
    sizes = (4, 8) if name == "plane" else (3, 6)
    errors = []
    for n in sizes:
        problem = fe.Problem(mesh_of(plane(n) if name == "plane" else solid(n)), smooth_poisson(), degree=degree)
        errors.append(problem.errors(problem.solve()))
    order = {norm: np.log2(errors[0][norm] / errors[1][norm]) for norm in ("L2", "H1")}
    assert order["L2"] > degree + 0.8 and order["H1"] > degree - 0.2, order
    assert errors[1]["L2"] < {1: 1e-2, 2: 2e-4, 3: 1e-5}[degree]


def test_nonlinear_physics_with_data_by_region():
    """-∇·(k (1 + u²) ∇u) = 0 with u = x and k = 2 in cells of one shape, 2 in the others."""
    physics = fe.Physics(
        {"u": 1},
        f0="f0[0] = 2*a[0]*x[0];",
        f1="for (d = 0; d < dim; ++d) f1[d] = a[0]*(1 + u[0]*u[0])*u_x[d];",
        auxiliary={"k": 1},
        boundary=[fe.Dirichlet("boundary", "exact")],
        exact={"u": "u[0] = x[0];"},
    )
    problem = fe.Problem(mesh_of(plane(4)), physics, degree=2)
    with pytest.raises(fe.PhysicsError, match="no value in 8 cells"):
        problem.set_auxiliary("k", {"of triangle": 2.0})
    problem.set_auxiliary("k", {"of triangle": 2.0, "of quadrilateral": 2.0})
    u = problem.solve()
    assert max(problem.errors(u).values()) < 1e-6
    problem.set_auxiliary("k", np.full(24, 3.0))
    assert problem.integral("a[0]", u, label="of quadrilateral") == pytest.approx(
        3 * problem.integral("1", u, label="of quadrilateral")
    )


def test_gmsh_file_of_triangles_and_quadrilaterals():
    mesh = fe.Mesh.from_file(MESHES / "mixed.msh", comm=PETSc.COMM_SELF)
    assert mesh.cell == "triangle and quadrilateral"
    problem = fe.Problem(mesh, smooth_poisson(), degree=3)
    assert problem.errors(problem.solve())["L2"] < 2e-3


def test_gmsh_file_of_all_shapes(tmp_path):
    given, order = solid(3), {"hexahedron": [0, 1, 3, 2, 4, 5, 7, 6], "pyramid": [0, 1, 3, 2, 4]}
    names = {"tetrahedron": "tetra", "prism": "wedge"}
    left = [("quad" if of.shape[1] == 4 else "triangle", of) for of in given["boundaries"]["left"] if len(of)]
    left = [(kind, of[:, [0, 1, 3, 2]] if kind == "quad" else of) for kind, of in left]
    solids = [(names.get(k, k), of[:, order.get(k, slice(None))]) for k, of in given["cells"].items()]
    tags = [[np.full(len(of), tag) for _, of in blocks] for blocks, tag in ((left, 7), (solids, 8))]
    data = {name: tags[0] + tags[1] for name in ("gmsh:physical", "gmsh:geometrical")}
    path, groups = tmp_path / "all.msh", {"left": np.array([7, 2]), "body": np.array([8, 3])}
    meshio.Mesh(given["points"], left + solids, cell_data=data, field_data=groups).write(path, "gmsh22", binary=False)
    mesh = fe.Mesh.from_file(path, comm=PETSc.COMM_SELF)
    assert sorted(part.cell for part in mesh.parts) == ["hexahedron", "prism", "pyramid", "tetrahedron"]
    assert mesh.cell_mask("body").all() and len(mesh.boundary_facets("left")[0]) == sum(len(of) for _, of in left)
    errors = [problem.errors(problem.solve()) for problem in (_poisson(mesh), _poisson(mesh_of(given)))]
    assert errors[0] == pytest.approx(errors[1], rel=1e-6) and errors[0]["L2"] < 4e-2


def _poisson(mesh: fe.Mesh) -> fe.Problem:
    return fe.Problem(mesh, smooth_poisson(), degree=1)


def test_files_hold_cells_of_all_shapes(tmp_path):
    for given, degree, types in ((plane(4), 3, {69: 16, 70: 8}), (solid(3), 2, None)):
        mesh = mesh_of(given)
        problem = fe.Problem(mesh, smooth_poisson(), degree=degree)
        u = problem.interpolate("exact")
        problem.write(tmp_path / "u.vtu", u, fields={"twice": "2*u[0]"})
        (piece,) = ET.parse(tmp_path / "u.vtu").getroot().iter("Piece")
        arrays = {of.attrib["Name"]: vtu_reader._array(of) for part in piece for of in part}
        count = dict(zip(*np.unique(arrays["types"], return_counts=True), strict=True))
        kinds = {"tetrahedron": 10, "hexahedron": 12, "prism": 13, "pyramid": 14}
        assert count == (types or {kinds[part.cell]: part.num_cells for part in mesh.parts})
        assert arrays["offsets"][-1] == len(arrays["Points"]) == len(arrays["connectivity"])
        x = arrays["Points"][:, : mesh.dim]
        exact = np.sin(x[:, 0] + 0.5) * np.cos(1.5 * x[:, 1:] - 0.3).prod(axis=1)
        np.testing.assert_allclose(arrays["u"].ravel(), exact, atol=5e-3 if degree == 3 else 1e-12)
        np.testing.assert_allclose(arrays["twice"].ravel(), 2 * arrays["u"].ravel(), rtol=1e-14)


@pytest.mark.quick
def test_ranks_agree(mpirun):
    alone = run_mixed.main()
    found = json.loads(mpirun(3, Path(run_mixed.__file__), 7).stdout.splitlines()[-1])
    for name, expected in alone.items():
        for what, value in expected.items():
            tolerance = 1e-13 if what in ("F", "J", "Jt") else 1e-7  # of what is assembled, and of a solution
            assert found[name][what] == pytest.approx(value, rel=tolerance), (name, what)


REFUSED = {
    "hdg": (dict(backend="hdg_gpu"), MeshError, "triangle, quadrilateral; hdg_gpu takes meshes of one shape"),
    "poly": (dict(backend="poly_gpu", poly_agglomerates=3), MeshError, "poly_gpu takes meshes of one shape"),
    "condensed": (dict(cg_condense=True, degree=2), MeshError, "cg_gpu with -cg_condense takes meshes of one shape"),
    "patch": (dict(kernel="patch"), OptionError, "patch takes one field of degree 1 on straight cells of one shape"),
    "tensor": (dict(kernel="tensor"), OptionError, "tensor sums along lines of quadrilaterals and hexahedra"),
}


@pytest.mark.parametrize("row", REFUSED)
def test_schemes_that_take_one_shape_say_so(row):
    options, kind, text = REFUSED[row]
    with pytest.raises(kind, match=text):
        fe.Problem(mesh_of(plane(4)), smooth_poisson(), **{"degree": 1} | options).view()


def test_prisms_and_pyramids_have_three_degrees():
    with pytest.raises(OptionError, match="degree 4; cg_gpu takes 1 to 3"):
        fe.Problem(of_solid("prism", 1), smooth_poisson(), degree=4)


def linear_on(name: str, degree: int) -> tuple[fe.Problem, PETSc.Vec]:
    problem = fe.Problem(mesh_of(plane(4)) if name == "plane" else of_solid(name), LINEAR, degree=degree)
    return problem, problem.interpolate("exact")


def exact(x: np.ndarray) -> np.ndarray:
    return 1 + x @ [2.0, -1.0, 0.5][: x.shape[-1]]


@pytest.mark.parametrize("name, degree", [("plane", 3), ("all", 2), ("prism", 1), ("pyramid", 3)])
def test_fields_have_values_in_each_part(name, degree):
    problem, u = linear_on(name, degree)
    mesh, field = problem.mesh, problem.field("u[0]", u)
    slope = problem.field("grad_u", u, components="y", name="slope")
    assert len(field.parts) == len(slope.parts) == len(mesh.parts)
    means = np.concatenate(
        [mesh.geometry.nodes[part.geometry.cell_nodes[: part.num_cells]].mean(1) for part in mesh.parts]
    )
    simplex = ("triangle", "tetrahedron")
    straight = np.concatenate([np.full(part.num_cells, part.cell in simplex) for part in mesh.parts])
    np.testing.assert_allclose(field.means()[straight, 0], exact(means[straight]), atol=1e-12)
    nodal = problem.cell_values(u)["u"]
    for part, of, steep, values in zip(
        mesh.parts, field.parts, slope.parts, nodal if len(mesh.parts) > 1 else [nodal], strict=True
    ):
        assert of.element.cell == part.cell and len(of.values()) == part.num_cells
        np.testing.assert_allclose(of.values()[..., 0], exact(of.coordinates()), atol=1e-12)
        np.testing.assert_allclose(values, of.values(), atol=1e-13)
        np.testing.assert_allclose(steep.values(), -1.0, atol=1e-6)  # at the apex of pyramids, too
    low, high = field.extremes()
    assert (low[0], high[0]) == pytest.approx((0.0, 3.0 + 0.5 * (mesh.dim - 2)), abs=1e-12)
    assert field.at([[0.3] * mesh.dim]) == pytest.approx(np.array([[exact(np.full(mesh.dim, 0.3))]]), abs=1e-12)
    assert field.along([0.1] * mesh.dim, [0.9] * mesh.dim, 5)[1][:, 0] == pytest.approx(
        exact(np.linspace(0.1, 0.9, 5)[:, None] * np.ones(mesh.dim)), abs=1e-12
    )
    through = problem.field("u_x[0]*n[0] + u_x[1]*n[1]", u, over="boundary")
    cells, _ = mesh.boundary_facets("boundary")
    assert through.on_boundary and through.means().shape == (len(cells), 1)
    assert set(np.round(through.means()[:, 0], 9)) <= {-2.0, 2.0, 1.0, -1.0, 0.0}
    for of in through.parts:
        np.testing.assert_allclose(of.values(), of.means()[:, None] + 0 * of.values(), atol=1e-9)
    if len(mesh.parts) > 1:
        with pytest.raises(OptionError, match=r"take them of its parts"):
            field.values()


@pytest.mark.parametrize("name, degree", [("plane", 1), ("plane", 2), ("all", 1), ("all", 2), ("pyramid", 3)])
def test_arrays_of_all_shapes(name, degree, tmp_path, monkeypatch):
    problem, u = linear_on(name, degree)
    mesh, found = problem.mesh, problem.to_numpy(u)
    assert found.cell == mesh.cell and [len(of) for of in found.blocks.values()] == [p.num_cells for p in mesh.parts]
    assert len(found.points) == len(np.unique(found.points.round(9), axis=0))  # cells share nodes
    np.testing.assert_allclose(found.point_data["u"][:, 0], exact(found.points), atol=1e-12)
    if len(mesh.parts) > 1:
        with pytest.raises(OptionError, match="take grid.blocks"):
            found.cells  # noqa: B018
    jumping = problem.to_numpy(u, fields={"slope": "u_x[1]"})
    assert len(jumping.points) == sum(of.size for of in jumping.blocks.values())
    np.testing.assert_allclose(jumping.point_data["slope"], -1.0, atol=1e-6)
    names = {"triangle": "triangle", "quadrilateral": "quad", "tetrahedron": "tetra", "prism": "wedge"}
    written = problem.to_meshio(u)
    degree = 1 if mesh.dim == 3 else degree
    assert [block.type.rstrip("69") for block in written.cells] == [names.get(p.cell, p.cell) for p in mesh.parts]
    np.testing.assert_allclose(written.point_data["u"], exact(written.points), atol=1e-12)
    problem.write(tmp_path / "u.xdmf", u)
    root = ET.parse(tmp_path / "u.xdmf").getroot()
    (topology,) = root.iter("Topology")
    assert topology.attrib["NumberOfElements"] == str(mesh.num_cells)
    if degree == 1:
        with meshio.xdmf.TimeSeriesReader(tmp_path / "u.xdmf") as reader:
            points, cells = reader.read_points_cells()
            data = reader.read_data(0)[1]["u"]
        np.testing.assert_allclose(data.ravel(), exact(points[:, : mesh.dim]), atol=1e-12)
        for block, other in zip(cells, written.cells, strict=True):
            assert block.type == other.type and np.array_equal(block.data, other.data)
    else:
        (item,) = topology
        assert topology.attrib["TopologyType"] == "Mixed" and item.attrib["Dimensions"] == str(16 * 7 + 8 * 10)
    made = SimpleNamespace(point_data={}, cell_data={})

    def take(cells, kinds, points):
        made.sizes, made.kinds, made.cells = cells, kinds, points
        return made

    monkeypatch.setitem(sys.modules, "pyvista", SimpleNamespace(UnstructuredGrid=take))
    problem.to_pyvista(u)
    assert len(made.kinds) == mesh.num_cells and len(set(made.kinds)) == len(mesh.parts)
    assert len(made.sizes) == sum(block.data.size + len(block.data) for block in written.cells)


@pytest.mark.parametrize("name, degree", [("plane", 3), ("all", 2), ("prism", 1), ("pyramid", 3)])
def test_pictures_show_the_same_fields_and_facets(name, degree):
    problem, u = linear_on(name, degree)
    mesh, states = problem.mesh, derived_fields.State.of_parts(problem, u)
    cell, tables = results._drawn_shape(states)
    element, values = ReferenceElement(cell, degree), results._drawn(states, tables, "u")
    points = results._joined(tables, [each.coordinates for each in states])
    np.testing.assert_allclose(values[..., 0], exact(points), atol=1e-12)
    np.testing.assert_allclose(results._drawn(states, tables, problem.cell_values(u)["u"]), values, atol=1e-12)
    with pytest.raises(OptionError, match="give a list of arrays|shape .3, 2, 1."):
        results._drawn(states, tables, np.zeros((3, 2, 1)))
    given, tags = (element, points, values), np.arange(mesh.num_cells) % 2
    if mesh.dim == 2:
        cells, local = mesh.boundary_facets("left")
        scene = plane_of.collect_plane(
            COMM, *given, tags, {"left": FacetSet(cells, local)}, None, Picture(mesh_lines=True)
        )
        assert scene.boundaries["left"].points[..., 0] == pytest.approx(0.0, abs=1e-12)
        assert lengths(scene.outline) == pytest.approx(4.0) and len(scene.edges.points) == mesh.num_facets
        corners = scene.points[scene.triangles]
        first, second = corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]
        assert np.abs(first[:, 0] * second[:, 1] - first[:, 1] * second[:, 0]).sum() / 2 == pytest.approx(1.0)
        np.testing.assert_allclose(scene.values, exact(scene.points), atol=1e-12)
    else:
        scene = collect_surface(COMM, *given, tags, {}, None, Picture(cut=False))
        assert len(scene.points) == mesh.exterior.sum()
        corners = scene.points[:, scene.pieces]
        normals = np.cross(corners[:, :, 1] - corners[:, :, 0], corners[:, :, 2] - corners[:, :, 0])
        assert np.linalg.norm(normals, axis=2).sum() / 2 == pytest.approx(6.0)
    figure = problem.plot(None, u, values=tags, displacement=None, cell_regions=tags, mesh_lines=True, dpi=40)
    assert figure.axes and problem.plot(None, u, dpi=40).axes, "of the first field"


def lengths(curves) -> float:
    return float(np.linalg.norm(np.diff(curves.points, axis=1), axis=2).sum())


@pytest.mark.parametrize("name", ("plane", "all", "pyramid"))
def test_checkpoints_do_not_depend_on_the_order_of_cells(name, tmp_path):
    problem, u = linear_on(name, 3)
    problem.checkpoint(tmp_path / "state.h5", u, t=2.0)
    given = plane(4) if name == "plane" else solid(3, SOLIDS[name])
    turned = {shape: of[::-1] for shape, of in list(given["cells"].items())[::-1]}
    order = np.random.default_rng(2).permutation(len(given["points"]))
    place = np.argsort(order)
    names = {"boundaries": {k: [place[of] for of in each] for k, each in given["boundaries"].items()}}
    other = mesh_of({"cells": {k: place[of] for k, of in turned.items()}, "points": given["points"][order], **names})
    again = fe.Problem(other, LINEAR, degree=3)
    found = again.restart(tmp_path / "state.h5")
    assert found.t == 2.0 and (found.u - again.interpolate("exact")).norm() < 1e-12


def test_the_dm_of_several_shapes_says_so(tmp_path):
    problem = fe.Problem(mesh_of(plane(4)), smooth_poisson(), degree=1)
    u = problem.interpolate("exact")
    with pytest.raises(MeshError, match="PETSc's sections take cells whose facets have one shape"):
        problem.dm  # noqa: B018
    u.view(PETSc.Viewer().createASCII(str(tmp_path / "u.txt"), comm=PETSc.COMM_SELF))
    assert len((tmp_path / "u.txt").read_text().splitlines()) > problem.num_unknowns


def test_bad_lists():
    square = [[0, 0], [1, 0], [0, 1], [1, 1]]
    rows = (
        ({"triangle": [[0, 1, 2]], "prism": [[0, 1, 2, 3, 4, 5]]}, {}, "give cells of one dimension"),
        ({"wedge": [[0, 1, 2]]}, {}, "accepted are triangle"),
        ({"triangle": [[0, 1, 9]]}, {}, "The cells name points 0 to 9"),
        ({"triangle": [[0, 1, 2]]}, {"boundaries": {"a": [[0, 1, 2]]}}, r"give an array \[facet, 2\]"),
        ({"triangle": [[0, 1, 2]]}, {"boundaries": {"a": [[1, 3]]}}, "names point 3, which no cell has"),
        ({"quadrilateral": [[0, 1, 2, 3]]}, {"boundaries": {"a": [[0, 3]]}}, "which no cell has"),
        ({"triangle": [[0, 1, 2]]}, {"regions": {"a": [1]}}, "there are 1, counted from 0"),
    )
    for cells, more, text in rows:
        with pytest.raises(MeshError, match=text):
            fe.Mesh.from_cells(cells, square, comm=PETSc.COMM_SELF, **more)


def test_rebalancing_keeps_the_cells():
    mesh = mesh_of(plane(4))
    moved = fe.rebalance(mesh, np.ones(mesh.num_cells))
    assert moved.cell == mesh.cell and moved.num_cells == mesh.num_cells

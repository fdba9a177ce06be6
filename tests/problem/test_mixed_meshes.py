"""cg_gpu on meshes of cells of several shapes, prisms and pyramids: numbering, orders, patch tests, files, ranks."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import meshio
import numpy as np
import pytest
import run_mixed
import vtu_reader
from mixed_meshes import plane, solid
from petsc4py import PETSc
from sample_physics import everything, give_everything, smooth_poisson

import petsc_hdg as fe
from petsc_hdg.device import VecAccess
from petsc_hdg.discretizations import ContinuousGalerkin
from petsc_hdg.discretizations.dofmap import dof_nodes
from petsc_hdg.discretizations.oracle import Oracle, State
from petsc_hdg.discretizations.transposition import DeviceLimits
from petsc_hdg.errors import MeshError, OptionError
from petsc_hdg.operators import JacobianContext, create_operator
from petsc_hdg.options import Options

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
    other, arrays, count = create_operator(disc, problem.arrays), problem.arrays, disc.dofmap.num_owned
    for name, values in problem.operator.auxiliary_onto(disc):
        other.set_auxiliary(name, *values)
    u, rate, du = (arrays.to_device(run_mixed.state(problem, shift).getArray(), "x") for shift in (0.0, 1.0, 2.0))
    found = []
    for operator in (problem.operator, other):
        out = [arrays.empty(count) for _ in range(4)]
        operator.residual(u, out[0], 0.3, rate)
        operator.linearize(u, 0.3, rate, 1.5)
        operator.action(du, out[1])
        operator.transposed(du, out[2])
        operator.diagonal(out[3])
        found.append([arrays.to_host(each, count) for each in out])
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(theirs, mine, atol=1e-13 * np.abs(mine).max())


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
    """PETSc's reader gives up tetrahedra beside prisms."""
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
    "sipg": (dict(backend="sipg_gpu"), MeshError, "sipg_gpu takes meshes of one shape"),
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


def test_results_that_take_one_shape_say_so(tmp_path):
    problem = fe.Problem(mesh_of(plane(4)), smooth_poisson(), degree=1)
    u = problem.interpolate("exact")
    calls = {
        "problem.plot": lambda: problem.plot(None, u),
        "problem.to_numpy": lambda: problem.to_numpy(u),
        "problem.cell_values": lambda: problem.cell_values(u),
        "problem.field": lambda: problem.field("u", u),
    }
    for name, call in calls.items():
        with pytest.raises(OptionError, match=f"{name} takes a mesh of one shape"):
            call()
    with pytest.raises(MeshError, match="they take meshes of one shape"):
        problem.checkpoint(tmp_path / "state.h5", u)
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
        ({"triangle": [[0, 1, 2]]}, {"boundaries": {"a": [[0, 1, 2]]}}, r"give an array \[facet, 2\] in the plane"),
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

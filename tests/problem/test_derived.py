"""Fields that follow from a solution: known stresses, an oracle by integrals, what is written and drawn, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from petsc4py import PETSc
from run_derived import BACKENDS, MISES_STRESS, SLOPES, STRESS, TRACTION, stretched
from sample_meshes import bent, box_mesh
from sample_quadratic import exact, quadratic
from sample_time import HEAT, problem_in_time, start
from vtu_reader import read_vtu

from petsc_hdg.errors import MeshError, OptionError, PhysicsError
from petsc_hdg.options import Options
from petsc_hdg.physics import Auxiliary, Dirichlet, Physics
from petsc_hdg.problem import Problem
from petsc_hdg.problem.results import derived_fields
from petsc_hdg.problem.results.point_functions import integral_kernel
from petsc_hdg.reference import ReferenceElement, symmetric_quadrature, tabulate

SCRIPT = Path(__file__).with_name("run_derived.py")


def problem_of(physics, cell: str = "triangle", curved: bool = False, **options) -> Problem:
    mesh = box_mesh(cell, comm=PETSc.COMM_SELF)
    return Problem(bent(mesh) if curved else mesh, physics, Options(**{"degree": 2, "check_kernels": False} | options))


def test_stresses_on_one_and_three_ranks(mpirun, tmp_path):
    for ranks in (1, 3):
        found = json.loads(mpirun(ranks, SCRIPT, tmp_path).stdout)
        assert found.keys() == set(BACKENDS)
        for backend, of in found.items():
            assert len(of["counts"]) == ranks and min(of["counts"]) > 0 and of["facets"] == 3
            assert max(of["mises"], of["stress"], of["gradient"]) < 1e-5, (backend, of)
            assert of["force"] == pytest.approx(STRESS[:, 0], abs=1e-5)
            assert of["extremes"] == [pytest.approx([0.0]), pytest.approx([11.0])]
            assert of["line"] == [pytest.approx(SLOPES @ [s, s], abs=1e-5) for s in (0, 0.5, 1)]
            assert len(of["refused"]) == 4 * ranks and sorted(of["few"]) == {1: [2], 3: [0, 1, 1]}[ranks]
            assert read_vtu(tmp_path / f"{backend}.vtu")["point_data"]["mises"] == pytest.approx(MISES_STRESS, abs=1e-5)
            assert imread(tmp_path / f"{backend}.png").size > 1000


@pytest.mark.parametrize("cell", ["quadrilateral", "tetrahedron"])
def test_fluxes_of_a_quadratic_function_are_exact(cell):
    problem = problem_of(quadratic(), cell)
    u, dim = problem.interpolate(exact), problem.mesh.dim
    x = np.random.default_rng(2).uniform(0.1, 0.9, (40, dim))
    slopes = np.stack([2 * x[:, 0] + x[:, 1], x[:, 0] - 1, np.ones(40)], axis=1)[:, :dim]
    assert problem.field("f1", u).at(x) == pytest.approx(slopes, abs=1e-12)
    length = "obj[0] = 0; for (d = 0; d < dim; ++d) obj[0] += u_x[d]*u_x[d]; obj[0] = sqrt(obj[0])*t;"
    assert problem.field(length, u, 2.0).at(x)[:, 0] == pytest.approx(2 * np.linalg.norm(slopes, axis=1), abs=1e-12)
    top = problem.field("obj[0] = n[1]; obj[1] = u_x[0]*n[0] + u_x[1]*n[1];", u, over="top")
    places = top.coordinates()
    assert places[..., 1] == pytest.approx(1.0) and top.values()[..., 0] == pytest.approx(1.0)
    assert top.values()[..., 1] == pytest.approx(places[..., 0] - 1, abs=1e-12)
    assert top.means()[:, 1] == pytest.approx(places[..., 0].mean(axis=1) - 1, abs=0.02)


OF_DATA = "k*u_x[1]*a[0]*x[0] + a[1]*u[0] + a_x[3]*sqrt(1 + u_x[0]*u_x[0])"
BY_NAME = "k*u_x[1]*near*x[0] + wave*u[0] + wave_x[1]*sqrt(1 + u_x[0]*u_x[0])"


def with_data() -> Physics:
    return Physics(
        {"u": 1},
        f0="f0[0] = u[0] - a[0];",
        f1="for (d = 0; d < dim; ++d) f1[d] = k*a[0]*u_x[d];",
        auxiliary={"near": 1, "wave": Auxiliary(1, "nodal")},
        constants={"k": 2.0},
        boundary=[Dirichlet("boundary", "g[0] = x[0]*x[1];")],
        name="with data",
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_sums_over_cells_are_the_integral(backend, monkeypatch):
    """Weighted values and means sum up to what the kernels of integrals find, with all kinds of data, in curved cells
    too: but of hdg_gpu, whose gradient is given there by its values at nodes, and poly_gpu, which has none."""
    monkeypatch.setattr(derived_fields, "CHUNK", 10)
    curved = backend in ("cg_gpu", "sipg_gpu")
    problem = problem_of(with_data(), curved=curved, backend=backend)
    mesh, u = problem.mesh, problem.create_vec()
    with pytest.raises(PhysicsError, match="auxiliary field 'near' has no values yet"):
        problem.field("a[0]", u)
    problem.set_auxiliary("near", np.linspace(1, 2, mesh.num_cells))
    problem.set_auxiliary("wave", lambda x: x[..., 0] * x[..., 1])
    u = problem.interpolate(lambda x: np.sin(3 * x[..., 0]) + x[..., 1] ** 2)
    field, expected = problem.field(BY_NAME, u), problem.integral(OF_DATA, u)
    rule = symmetric_quadrature(mesh.cell, problem.discretization.quadrature_degree + 4)
    table = tabulate(ReferenceElement(mesh.cell, mesh.geometry.degree), rule.points).gradients
    nodes = mesh.geometry.nodes[mesh.geometry.cell_nodes]
    weights = rule.weights * np.abs(np.linalg.det(np.einsum("qnr,cnd->cqdr", table, nodes)))
    assert mesh.geometry.degree == 1 + curved and abs(expected) > 0.1
    assert (weights * field.values(rule.points)[..., 0]).sum() == pytest.approx(expected, rel=1e-12)
    assert (weights.sum(axis=1) * field.means()[:, 0]).sum() == pytest.approx(expected, rel=1e-12)
    before = field.values()
    problem.set_constants(k=5.0), problem.set_auxiliary("near", 3.0), u.set(0.0)
    assert np.array_equal(field.values(), before)


@pytest.mark.parametrize("cell", ["triangle", "hexahedron"])
def test_means_over_curved_facets_are_those_of_integrals(cell):
    """In each facet, of the normal too."""
    problem, text = problem_of(quadratic(), cell, curved=True), "n[0]*u[0] + u_x[1]*n[1] + x[0]*u_x[0]"
    u = problem.interpolate(lambda x: np.sin(2 * x[..., 0]) + x[..., 1] ** 2)
    kernel = integral_kernel(problem, f"obj[0] = 1; obj[1] = {text};", "boundary")
    with problem.access.read(u) as buffer:
        size, whole = problem.operator.boundary_integrals(kernel, "boundary", buffer, 0.0)
    field = problem.field(text, u, over="boundary")
    assert problem.mesh.geometry.degree == 2 and size.min() > 0 and len(size) == 14 + 10 * (cell == "hexahedron")
    assert field.means()[:, 0] == pytest.approx(whole / size, rel=1e-11)
    outwards = problem.field("obj[0] = n[0]; obj[1] = n[1];", u, over="boundary").values()
    assert np.abs(outwards).max() <= 1 + 1e-12


def test_own_and_recovered_fields_by_name(tmp_path):
    problem = problem_of(quadratic(), backend="hdg_gpu", degree=1)
    u = problem.solve()
    values = problem.cell_values(u)
    for name in ("u", "grad_u", "u_star"):
        field = problem.field(name, u)
        assert field.values(ReferenceElement("triangle", field.element.degree).nodes).shape[2] == field.components
        element = {"u": 1, "grad_u": 1, "u_star": 2}[name]
        assert field.values(ReferenceElement("triangle", element).nodes) == pytest.approx(values[name])
    x = [[0.2, 0.7], [0.5, 0.5]]
    assert problem.field("u_star", u).at(x) == pytest.approx(problem.at(u, x)["u_star"], abs=1e-14)
    problem.write(tmp_path / "u.vtu", u, fields=[problem.field("u[0]*u[0]", u, name="square")])
    data = read_vtu(tmp_path / "u.vtu")["point_data"]
    assert data["square"] == pytest.approx(data["u"] ** 2, abs=1e-14)
    finer = problem.with_options(degree=3)  # whose files have other nodes
    finer.write(tmp_path / "finer.vtu", finer.interpolate(exact), fields=[problem.field("u", u, name="coarse")])
    data = read_vtu(tmp_path / "finer.vtu")
    assert data["point_data"]["coarse"].shape == (problem.mesh.num_cells * 15, 1)


def test_fields_of_a_cell_in_time():
    """hdg_gpu in time, whose cells hold u_t beside the user's data."""
    data = {"a": Auxiliary(1, "nodal")}
    physics = Physics({"u": 2}, "f0[0] = u_t[0]; f0[1] = u_t[1];", "f1[0] = u_x[0]; f1[3] = u_x[3];", auxiliary=data)
    problem = problem_of(physics, backend="hdg_gpu", degree=1)
    problem.set_auxiliary("a", lambda x: 1 + x[..., 0])
    u = problem.interpolate(lambda x: np.stack([x[..., 0], 2 + x[..., 1]], -1))
    nodes = problem.discretization.cell_element.nodes
    found, x = (problem.field(text, u).sample(nodes)[..., 0] for text in ("a[0] + 10*u[1]", "x[0]"))
    np.testing.assert_allclose(found, 1 + x + 10 * problem.cell_values(u)["u"][..., 1], atol=1e-12)


def test_outputs_are_in_every_file_of_a_run(tmp_path):
    problem = problem_in_time(HEAT, check_kernels=False, backend="sipg_gpu", output=str(tmp_path / "run.pvd"))
    outputs = {"slope": "hypot(u_x[0], u_x[1])", "flux": "f1", "doubled": "2*u[0] + 0*t"}
    problem.outputs = outputs
    u = problem.solve_in_time(start(problem), 0.2, 0.1)
    for number in range(3):
        data = read_vtu(tmp_path / f"run_0000{number}.vtu")["point_data"]
        assert set(data) == {"u", *outputs} == {"u", *problem.outputs}
        assert data["doubled"] == pytest.approx(2 * data["u"], abs=1e-13)
    assert problem.with_options(degree=1).outputs == outputs
    problem.write(tmp_path / "one.vtu", u, fields={"twice": "2*u[0]"})
    assert set(read_vtu(tmp_path / "one.vtu")["point_data"]) == {"u", "twice"}


def test_components_by_number_and_by_name(tmp_path):
    problem = problem_of(stretched(), degree=1)
    u = problem.interpolate("exact")
    slopes, x = problem.field("grad_u", u), [[0.2, 0.7], [0.5, 0.5]]
    for chosen, number in {"xx": 0, "xy": 1, "yx": 2, 3: 3, np.int64(1): 1}.items():
        part = problem.field("grad_u", u, components=chosen)
        assert part.components == 1 and part.at(x)[:, 0] == pytest.approx(slopes.at(x)[:, number], abs=1e-14)
    both = problem.field("f1", u, components=["yy", 1])
    assert both.components == 2 and both.means() == pytest.approx(np.tile(STRESS[1, ::-1], (len(both.means()), 1)))
    lift = problem.field("u", u, components="y")
    force = problem.field(TRACTION, u, over="right", components=1)
    assert force.means() == pytest.approx(STRESS[1, 0]) and lift.name == "u[y]"
    problem.write(tmp_path / "u.vtu", u, fields=[lift, problem.field("u", u, components=(1, 0), name="turned")])
    data = read_vtu(tmp_path / "u.vtu")["point_data"]
    assert data["u[y]"][:, 0] == pytest.approx(data["turned"][:, 0]) and np.abs(data["u[y]"]).max() > 1


def test_streamline_upwinding_is_no_part_of_the_flux():
    physics = Physics({"u": 1}, "f0[0] = 9*u_x[0];", "for (d = 0; d < dim; ++d) f1[d] = 0.01*u_x[d];", name="wind")
    problem = problem_of(physics, cg_stabilization="supg")
    flux = problem.field("f1", problem.interpolate(lambda x: x[..., 0] - 2 * x[..., 1]))
    assert flux.means() == pytest.approx(np.tile([0.01, -0.02], (problem.mesh.num_cells, 1)), abs=1e-12)


def test_pictures_show_texts_fields_and_arrays(tmp_path):
    problem = problem_of(quadratic())
    u, drawn = problem.interpolate(exact), []
    slopes = problem.field("hypot(u_x[0], u_x[1])", u)
    for number, values in enumerate(("hypot(u_x[0], u_x[1])", slopes, slopes.values())):
        problem.plot(tmp_path / f"{number}.png", u, values=values, dpi=40)
        drawn.append((tmp_path / f"{number}.png").read_bytes())
    problem.plot(tmp_path / "u.png", u, dpi=40)
    assert len(set(drawn)) == 1 and drawn[0] != (tmp_path / "u.png").read_bytes()


TWO = "Fields to write are given as .*; give a dict of names to texts or fields"
WRONG = {
    "'u_t' cannot be used here: integrands and derived fields are of u": lambda p, u: p.field("u_t[0]", u),
    "physics 'stretched', field 'w': unknown name 'v'": lambda p, u: p.field("v[0]", u, name="w"),
    "'n' cannot be used here": lambda p, u: p.field("n[0]", u),
    r"The name of a field is given as 3; give a text": lambda p, u: p.field("u[0]", u, name=3),
    "The boundary of a field is given as 7; give a text": lambda p, u: p.field("u[0]", u, over=7),
    "as the side 'west' sees it was asked for, of no boundary": lambda p, u: p.field("u[0]", u, side="west"),
    "components of 'u' are given as 2; give numbers from 0 to 1, or names among x, y": lambda p, u: p.field(
        "u", u, components=2
    ),
    "components of 'f1' .* 'z'.* among xx, xy, yx, yy": lambda p, u: p.field("f1", u, components="z"),
    "components of 'one' are given as 'x'; give 0": lambda p, u: p.field("u[0]", u, name="one", components="x"),
    r"components of 'u' are given as \[\]": lambda p, u: p.field("u", u, components=[]),
    r"components of 'u' are given as \[True\]": lambda p, u: p.field("u", u, components=[True]),
    r"components of 'u' are given as \[\[0\]\]": lambda p, u: p.field("u", u, components=[[0]]),
    "components of 'u' are given as 0.5": lambda p, u: p.field("u", u, components=0.5),
    "nowhere": lambda p, u: p.field("u[0]", u, over="nowhere"),
    "The time t is given as 'now'": lambda p, u: p.field("u[0]", u, "now"),
    "The field 'u' is on a boundary; give one without over=": lambda p, u: p.field("u", u, over="top").at([[0.5, 1]]),
    "The field 'o' is on a boundary": lambda p, u: p.write("a.vtu", u, fields=[p.field("u", u, over="top", name="o")]),
    "array of shape .2,.; give one row of 2 coordinates of the reference tri": lambda p, u: p.field("u", u).values(
        [0, 1]
    ),
    "give 2 coordinates of each end": lambda p, u: p.field("u", u).along(0, 1),
    "The number of points along a line is given as 1": lambda p, u: p.field("u", u).along([0, 0], [1, 1], 1),
    "Two fields are called 'u'; give the derived one another": lambda p, u: p.write("a.vtu", u, fields={"u": "u[0]"}),
    TWO: lambda p, u: p.write("a.vtu", u, fields=["u[0]"]),
    f"{TWO}.*": lambda p, u: p.write("a.vtu", u, fields=3),
    "give a dict of names to texts, which hold for any": lambda p, u: setattr(p, "outputs", {"u2": p.field("u", u)}),
    "outside of the mesh": lambda p, u: p.field("u", u).along([0, 0], [2, 2]),
    "give one of the fields u, or values": lambda p, u: p.plot("a.png", u, field="mises"),
}


@pytest.fixture(scope="module")
def strained():
    problem = problem_of(stretched(), degree=1)
    return problem, problem.create_vec()


@pytest.mark.parametrize("message", WRONG)
def test_refusals(strained, message):
    with pytest.raises((OptionError, PhysicsError, MeshError), match=message):
        WRONG[message](*strained)


def test_a_field_of_another_mesh_is_refused(strained):
    problem, u = strained
    other = problem_of(stretched(), degree=1)
    with pytest.raises(OptionError, match="The field 'u' is of another mesh"):
        problem.plot("a.png", u, values=other.field("u", other.create_vec()))


@pytest.mark.parametrize(
    "given, message", [("f1_u", "reads u_t"), ("f1_v", "there is none"), ("f1", "of several .*; give f1_u or f1_v")]
)
def test_a_flux_that_one_state_does_not_give(given, message):
    physics = Physics({"u": 1, "v": 1}, {"v": "f0[0] = u[1];"}, {"u": "for (d = 0; d < dim; ++d) f1[d] = u_t[0];"})
    problem = problem_of(physics, degree=1)
    with pytest.raises(PhysicsError, match=message):
        problem.field(given, problem.create_vec())

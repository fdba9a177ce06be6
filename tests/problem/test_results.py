"""What a Problem gives after a solve: fluxes, fields and errors, files of cells and of the trace; on 1 and 3 ranks."""

from __future__ import annotations

import inspect
import json
import re
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread
from petsc4py import PETSc
from sample_condensed import cell_balance
from sample_meshes import DIM, SHAPES, box_mesh
from sample_quadratic import FLUXES, exact, quadratic
from vtu_reader import read_vtu

from petsc_hdg.errors import MeshError, OptionError, PhysicsError
from petsc_hdg.mesh.polytopal.agglomerate import agglomerate
from petsc_hdg.options import BACKENDS, Options
from petsc_hdg.output import Picture
from petsc_hdg.physics import Dirichlet, Neumann, Physics, Robin
from petsc_hdg.problem import Problem, memory_traffic

SCRIPT = Path(__file__).with_name("run_results.py")
RANKS = (1, 3)


def solved(physics, cell: str = "triangle", **options):
    """A problem on a small distorted mesh, and its solution to round-off."""
    mesh = box_mesh(cell, comm=PETSc.COMM_SELF)
    problem = Problem(mesh, physics, Options(check_kernels=False, **options))
    problem.snes.setTolerances(rtol=1e-14, atol=1e-14)
    problem.snes.getKSP().setTolerances(rtol=1e-13)
    return problem, problem.solve()


@pytest.mark.parametrize("backend", ["cg_gpu", "hdg_gpu"])
@pytest.mark.parametrize("cell", SHAPES)
def test_fluxes_of_a_quadratic_solution(cell, backend):
    problem, u = solved(quadratic(), cell, degree=2, backend=backend)
    sides = [label for label in FLUXES if label in (*problem.mesh.boundaries, "boundary")]
    assert len(sides) == 2 * DIM[cell] + 1
    for label in sides:
        assert problem.flux(label, u).shape == (1,) and abs(problem.flux(label, u)[0] - FLUXES[label]) < 1e-9
    with pytest.raises(MeshError, match="nowhere"):
        problem.flux("nowhere", u)


@pytest.mark.parametrize("degree", [0, 1, 2])
def test_a_given_flux_is_the_flux(degree):
    """Through a Neumann boundary the numerical flux is the given one, whatever the degree; all fluxes balance."""
    problem, u = solved(quadratic(neumann=True), degree=degree, backend="hdg_gpu")
    assert abs(problem.flux("top", u)[0] - FLUXES["top"]) < 1e-10
    assert abs(problem.flux("boundary", u)[0] - 2.0) < 1e-10


def nonlinear() -> Physics:
    """Two coupled components: diffusion that grows with the solution, reaction, a Robin condition."""
    return Physics(
        {"v": 2},
        f0="f0[0] = u[0]*u[1] - 1; f0[1] = u[1] - x[0];",
        f1="""
            PetscReal k = 1 + u[0]*u[0];
            for (d = 0; d < dim; ++d) { f1[d] = k*u_x[d]; f1[dim + d] = u_x[dim + d] + 0.1*u_x[d]; }
        """,
        boundary=[
            Robin("right", "f0[0] = u[0] - 0.3; f0[1] = 2*u[1]*u[1];"),
            Dirichlet("boundary", "g[0] = x[1]; g[1] = 0.5;"),
        ],
        name="nonlinear",
    )


@pytest.mark.parametrize("cell", ["triangle", pytest.param("hexahedron", marks=pytest.mark.full)])
def test_cells_conserve_nonlinear_physics(cell):
    problem, u = solved(nonlinear(), cell, degree=2, backend="hdg_gpu")
    with problem.access.read(u) as buffer:
        gap, scale = cell_balance(problem.operator, buffer)
        through, source = problem.operator.recovery.fluxes(buffer)
    assert scale > 0.01 and gap < 1e-11 * scale
    whole = problem.flux("boundary", u)
    assert np.abs(through.sum(axis=(0, 1)) - source.sum(axis=0)).max() < 1e-11
    assert np.abs(whole - source.sum(axis=0)).max() < 1e-9  # the fluxes of two cells cancel at their facet


def test_errors_and_report_have_u_star(tmp_path):
    report = tmp_path / "r.json"
    problem, u = solved(quadratic(), degree=1, backend="hdg_gpu", report=str(report))
    errors = problem.errors(u)
    assert list(errors) == ["L2", "H1", "star"] and errors["star"] < 0.2 * errors["L2"]
    assert "star" in problem.summary(u=u) and json.loads(report.read_text())["errors"] == errors
    assert "hdg_gpu" in problem.view()


def test_fields_of_cells():
    problem, u = solved(nonlinear(), degree=2, backend="hdg_gpu")
    values, cells = problem.cell_values(u), problem.mesh.num_cells
    shapes = {name: found.shape for name, found in values.items()}
    assert shapes == {"v": (cells, 6, 2), "grad_v": (cells, 6, 4), "v_star": (cells, 10, 2)}


@pytest.mark.full("poly_gpu", "sipg_gpu")
@pytest.mark.parametrize("backend", BACKENDS)
def test_one_is_singular_in_all_that_is_printed(backend):
    """One polytope of two cells, one field, one rank, one iteration; reprs say what things are, in a line."""
    mesh = agglomerate(box_mesh("triangle", (1, 1), amplitude=0.0, comm=PETSc.COMM_SELF), 1)
    physics = quadratic()
    problem = Problem(mesh, physics, Options(degree=1, backend=backend, check_kernels=False, device="any"))
    u = problem.solve()
    said = "\n".join([problem.view(), problem.summary(u=u), *memory_traffic.lines(problem)])
    assert "1 rank" in said and not re.findall(r"\b1 (?!this)[A-Za-z]+s\b", said), said
    things = (mesh, physics, problem, problem.discretization)
    words = ("<Mesh: 2 triangle cells on 1 rank; bound", f"<Physics '{physics.name}': u (1 component); ")
    words += (f"<Problem '{physics.name}' by <", f"{backend} of degree 1 on 2 triangle cells>")
    for thing, expected in zip(things, words, strict=True):
        assert expected in repr(thing) and "\n" not in repr(thing), repr(thing)
    assert f"{problem.num_unknowns} unknown" in repr(problem) and mesh.num_cells_all == 2


def test_pictures_of_any_field_and_of_other_values(tmp_path):
    problem, u = solved(quadratic(), degree=1, backend="hdg_gpu")
    fields, drawn = problem.cell_values(u), {}
    wishes = {
        "first": {},
        "star": {"field": "u_star"},
        "values": {"values": fields["u_star"]},
        "cells": {"values": np.arange(problem.mesh.num_cells)},
        "bent": {"displacement": fields["grad_u"], "scale": 0.1, "label": "u"},
    }
    for name, wish in wishes.items():
        problem.plot(tmp_path / f"{name}.png", u, dpi=40, **wish)
        drawn[name] = imread(tmp_path / f"{name}.png")
    assert np.allclose(drawn["values"], drawn.pop("star"), atol=2 / 255)
    assert len({image.tobytes() for image in drawn.values()}) == 4
    for wish in ({"field": "v"}, {"field": "u", "values": fields["u"]}):
        with pytest.raises(OptionError, match="give one of the fields u, grad_u, u_star, or values"):
            problem.plot(tmp_path / "a.png", u, **wish)


def test_settings_of_pictures_are_a_signature():
    """Every setting of the writer is a keyword argument of Problem.plot, and described."""
    given = set(inspect.signature(Problem.plot).parameters)
    assert given >= {*Picture.__dataclass_fields__, "cell_regions", "boundaries", "displacement", "values", "field"}
    assert all(name in Problem.plot.__doc__ for name in given - {"self", "u", "t", "path"})


def two_fields(rate: str = "", **others) -> Physics:
    return Physics(
        {"v": 2, "w": 1},
        {"v": f"f0[0] = {rate}u[0]; f0[1] = {rate}u[1];", "w": f"f0[0] = {rate}u[2];"},
        {"v": "for (d = 0; d < 2*dim; ++d) f1[d] = u_x[d];", "w": "for (d = 0; d < dim; ++d) f1[d] = u_x[2*dim + d];"},
        exact={"v": "u[0] = x[0] + t; u[1] = -2*x[1];", "w": "u[0] = x[0] - x[1];"},
        name="two fields",
        **others,
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_fields_are_interpolated_by_their_names(backend):
    """Under every scheme, also where all fields share one space; those without a name in the dict are zero."""
    box = box_mesh("triangle", comm=PETSc.COMM_SELF)
    problem = Problem(box, two_fields("u_t[0] + "), Options(degree=1, backend=backend, check_kernels=False))
    for given, v, w in (({"w": 2.0}, (0, 0), 2), ({"v": (1.0, 3.0)}, (1, 3), 0), ((1.0, 3.0), (1, 3), 0)):
        found = problem.cell_values(problem.interpolate(given))
        np.testing.assert_allclose(found["v"], np.broadcast_to(v, found["v"].shape), atol=1e-13)
        np.testing.assert_allclose(found["w"], w, atol=1e-13)
    linear = problem.interpolate("exact", t=0.5)
    assert max(problem.errors(linear, t=0.5).values()) < 1e-10
    u = problem.interpolate({"v": "exact", "w": 0.0}, t=0.5)
    errors = [problem.errors(u, t=0.5, field=field)["L2"] for field in ("v", "w", None)]
    np.testing.assert_allclose(errors, [0.0, 6**-0.5, 6**-0.5], atol=1e-12)
    with pytest.raises(PhysicsError, match="no exact solution of 'p'; fields that have one: v, w"):
        problem.errors(u, field="p")
    with pytest.raises(PhysicsError, match="'p'"):
        problem.interpolate({"p": "exact"})


def test_texts_are_interpolated():
    constants, left = {"k": 3.0, "h": {"left": 1.0}}, Neumann("left", "h", "w")
    physics = two_fields(auxiliary={"a": 2}, constants=constants, boundary=left)
    problem = Problem(box_mesh("triangle", comm=PETSc.COMM_SELF), physics, Options(degree=1, check_kernels=False))
    problem.set_auxiliary("a", ["k*x[0]", "1"])
    problem.set_constants(k=4.0)
    u = problem.interpolate({"v": ["k*x[0]", 2.0], "w": "t - x[1]"}, t=0.5)
    found = problem.integral(["u[0]", "u[1]", "w", "a[0] + a[1]"], u)
    np.testing.assert_allclose(found, [2.0, 2.0, 0.0, 2.5], atol=1e-12)
    with pytest.raises(PhysicsError, match="values of 'w' are read as those of an exact solution: .*unknown name 'y'"):
        problem.interpolate({"w": "y"})
    with pytest.raises(PhysicsError, match="values of 'a' .* list of 1 entries; give 2, or one expression for all"):
        problem.set_auxiliary("a", ["x[0]"])


def test_traces_of_fields_are_interpolated_by_their_names():
    box = box_mesh("triangle", comm=PETSc.COMM_SELF)
    problem = Problem(box, two_fields(), Options(degree=1, backend="hdg_gpu", check_kernels=False))
    with problem.reading(problem.interpolate({"w": lambda x: x[..., 0], "v": (1.0, 3.0)})) as owned:
        v, w = problem.operator.trace_fields(owned, 0.0)[2]
    np.testing.assert_allclose(v.values, np.broadcast_to((1.0, 3.0), v.values.shape), rtol=1e-13)
    np.testing.assert_allclose((w.values.min(), w.values.max()), (0.0, 1.0), atol=1e-13)


def test_constants_are_written_at_the_vertices(tmp_path):
    problem, u = solved(quadratic(), degree=0, backend="hdg_gpu")
    problem.write(tmp_path / "a.vtu", u), problem.write_trace(tmp_path / "b.vtu", u)
    found, values = read_vtu(tmp_path / "a.vtu"), problem.cell_values(u)
    written = found["point_data"]["u"][found["cells"]][..., 0]
    assert values["u"].shape[1:] == (1, 1) and written.shape == (problem.mesh.num_cells, 3)
    assert np.abs(written - values["u"][:, 0]).max() < 1e-14 and np.ptp(values["u"]) > 0.1
    assert set(found["point_data"]) == {"u", "grad_u", "u_star"}
    assert np.ptp(read_vtu(tmp_path / "b.vtu")["point_data"]["u_trace"][:, 0]) > 0.1


def test_degree_ten_is_written_whole(tmp_path):
    """u* of degree 9 has degree 10, VTK's highest."""
    mesh = box_mesh("triangle", (1, 1), comm=PETSc.COMM_SELF)
    problem = Problem(mesh, quadratic(), Options(degree=9, backend="hdg_gpu", check_kernels=False))
    problem.write(tmp_path / "a.vtu", problem.solve())
    found = read_vtu(tmp_path / "a.vtu")
    assert found["cells"].shape == (2, 66)
    assert np.abs(found["point_data"]["u_star"][:, 0] - exact(found["points"][:, :2])).max() < 1e-7


def test_continuous_schemes_have_no_trace(tmp_path):
    problem, u = solved(quadratic(), degree=2, backend="cg_gpu")
    with pytest.raises(OptionError, match="no trace of its own"):
        problem.write_trace(tmp_path / "a.vtu", u)
    problem, u = solved(quadratic(), degree=2, backend="cg_gpu", cg_condense=True)
    assert list(problem.errors(u)) == ["L2", "H1"] and set(problem.cell_values(u)) == {"u"}
    with pytest.raises(OptionError, match="leave -cg_condense out"):
        problem.flux("left", u)


@pytest.fixture(scope="module")
def runs(mpirun, tmp_path_factory):
    """ranks → (folder, numbers)."""
    found = {}
    for ranks in RANKS:
        folder = tmp_path_factory.mktemp(f"ranks{ranks}")
        found[ranks] = folder, json.loads(mpirun(ranks, SCRIPT, folder, timeout=200).stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("cell", SHAPES)
def test_ranks_give_the_same_numbers(runs, cell):
    one, many = (runs[ranks][1][cell] for ranks in RANKS)
    assert max(one["balance"], many["balance"]) < 1e-12
    assert one["facets"] == many["facets"]
    for name in ("L2", "H1", "star"):
        assert abs(one[name] - many[name]) < 1e-11
    for label, value in one["fluxes"].items():
        assert abs(value[0] - many["fluxes"][label][0]) < 1e-10
    assert abs(one["fluxes"]["boundary"][0] - FLUXES["boundary"]) < 1e-10


def sorted_cells(path, name: str) -> np.ndarray:
    """Nodes [cell, node, place and value], nodes and cells ordered by place and value."""
    read = read_vtu(path)
    nodes = np.concatenate((read["points"], read["point_data"][name]), axis=1)[read["cells"]]
    order = np.lexsort(np.round(nodes[..., :3].mean(axis=1), 9).T)
    return np.array([cell[np.lexsort(np.round(cell[:, :3], 9).T)] for cell in nodes[order]])


@pytest.mark.parametrize("cell", SHAPES)
def test_ranks_write_the_same_files(runs, cell):
    for file, name in ((cell, "u"), (cell, "grad_u"), (cell, "u_star"), (f"{cell}_trace", "u_trace")):
        one, many = (sorted_cells(runs[ranks][0] / f"{file}.vtu", name) for ranks in RANKS)
        assert one.shape == many.shape and np.abs(one - many).max() < 1e-10, name


@pytest.mark.parametrize("ranks", RANKS)
@pytest.mark.parametrize("cell", SHAPES)
def test_the_trace_has_each_facet_once(runs, cell, ranks):
    """û of degree 1 is near the solution, and is it at second order, which a wrong orientation would spoil."""
    folder, numbers = runs[ranks]
    found = read_vtu(folder / f"{cell}_trace.vtu")
    assert len(found["cells"]) == numbers[cell]["facets"]
    centres = np.round(found["points"][found["cells"]].mean(axis=1), 9)
    assert len(np.unique(centres, axis=0)) == len(centres)
    x = found["points"] if DIM[cell] == 3 else found["points"][:, :2]
    difference = np.abs(found["point_data"]["u_trace"][:, 0] - exact(x))
    assert difference.max() < 0.25 and difference.mean() < 0.06


def test_fields_stay_discontinuous(runs):
    """Where cells meet, u has more than one value, u* nearly one."""
    found = read_vtu(runs[1][0] / "triangle.vtu")
    places, where = np.unique(np.round(found["points"], 9), axis=0, return_inverse=True)
    assert len(places) < 0.6 * len(found["points"])

    def largest_jump(name):
        values = found["point_data"][name][:, 0]
        high, low = np.full(len(places), -np.inf), np.full(len(places), np.inf)
        np.maximum.at(high, where.ravel(), values), np.minimum.at(low, where.ravel(), values)
        return (high - low).max()

    assert 1e-3 < largest_jump("u") < 0.3 and largest_jump("u_star") < 0.5 * largest_jump("u")

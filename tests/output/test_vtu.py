"""VTU files read back, and what is refused."""

import meshio
import numpy as np
import pytest
from mpi4py import MPI
from vtu_reader import read_vtu

from petsc_hdg.errors import OptionError
from petsc_hdg.output import vtu, write_vtu
from petsc_hdg.output.lagrange import LAGRANGE_TYPE, LINEAR_TYPE, vtk_nodes
from petsc_hdg.reference import CELLS, ReferenceElement

COMM = MPI.COMM_SELF


def curved(x, degree):
    """A smooth map [..., dim] of polynomials of the degree, orientation kept."""
    return x + 0.1 * x[..., ::-1] ** degree


def field(x, degree):
    """A polynomial of the degree."""
    return (0.3 + x[..., 0] + 2 * x[..., -1]) ** degree


def example(cell, degree):
    """Two cells: a curved one, and one of negative orientation beside it. Returns points, values [cell, node]."""
    x = ReferenceElement(cell, degree).nodes
    turned = x[:, [1, 0, 2][: x.shape[1]]]
    return np.stack((curved(x, degree), turned - 5)), np.stack((field(x, degree), field(x, degree)))


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 6, 10])
@pytest.mark.parametrize("cell", CELLS)
def test_nodes_and_values(tmp_path, cell, degree):
    points, values = example(cell, degree)
    write_vtu(tmp_path / "a.vtu", COMM, cell, degree, points, {"u": values, "v": points}, {"part": [3, 4]})
    found = read_vtu(tmp_path / "a.vtu")
    x, dim = vtk_nodes(cell, degree), points.shape[2]
    turned = x[:, [1, 0, 2][:dim]]
    assert np.array_equal(found["types"], [(LINEAR_TYPE if degree == 1 else LAGRANGE_TYPE)[cell]] * 2)
    tolerance = max(500, len(x)) * np.finfo(float).eps  # sums of len(x) products, in any order
    shown = found["points"][found["cells"]]
    assert shown.shape == (2, len(x), 3) and not shown[..., dim:].any()
    assert np.abs(shown[0, :, :dim] - curved(x, degree)).max() < tolerance
    assert np.abs(shown[1, :, :dim] - (x - 5)).max() < 10 * tolerance  # turned over: positive
    u = found["point_data"]["u"][found["cells"]][..., 0]
    expected = np.stack((field(x, degree), field(turned, degree)))
    assert np.abs(u - expected).max() < tolerance * np.abs(expected).max()
    assert np.array_equal(found["point_data"]["v"], found["points"])  # padded to three components like the points
    assert np.array_equal(found["cell_data"]["part"], [[3], [4]])


@pytest.mark.parametrize("degree", [1, 2, 5, 10])
@pytest.mark.parametrize("cell", ["interval", "triangle", "quadrilateral"])
def test_facets(tmp_path, cell, degree):
    """Two facets that share their nodes' places keep their own values."""
    x = ReferenceElement(cell, degree).nodes
    bent = np.column_stack((x, 0.3 * x[:, 0] ** degree))
    points, values = np.stack((bent, bent)), np.stack((field(x, degree), -field(x, degree)))
    write_vtu(tmp_path / "a.vtu", COMM, cell, degree, points, {"u": values, "x": points}, facets=True)
    found = read_vtu(tmp_path / "a.vtu")
    assert np.array_equal(found["types"], [(LINEAR_TYPE if degree == 1 else LAGRANGE_TYPE)[cell]] * 2)
    at, shown, dim = vtk_nodes(cell, degree), found["points"][found["cells"]], x.shape[1] + 1
    tolerance = 500 * np.finfo(float).eps
    assert np.abs(shown[..., :dim] - np.column_stack((at, 0.3 * at[:, 0] ** degree))).max() < tolerance
    u = found["point_data"]["u"][found["cells"]][..., 0]
    assert np.abs(u - np.stack((field(at, degree), -field(at, degree)))).max() < tolerance * np.abs(u).max()
    assert np.array_equal(found["point_data"]["x"], found["points"])


def test_degree_above_vtks_is_sampled(tmp_path):
    points, values = example("quadrilateral", 12)
    write_vtu(tmp_path / "a.vtu", COMM, "quadrilateral", 12, points, {"u": values})
    assert read_vtu(tmp_path / "a.vtu")["cells"].shape == (2, 11 * 11)


def test_meshio_reads_it(tmp_path):
    points, values = example("hexahedron", 1)
    write_vtu(tmp_path / "a.vtu", COMM, "hexahedron", 1, points, {'a < "b"': values}, {"k": [1.5, 2.5]})
    mesh, own = meshio.read(tmp_path / "a.vtu"), read_vtu(tmp_path / "a.vtu")
    assert np.array_equal(mesh.points, own["points"])
    assert mesh.cells[0].type == "hexahedron" and np.array_equal(mesh.cells[0].data, own["cells"])
    assert list(mesh.point_data) == ['a < "b"']


def test_large_arrays_take_several_blocks(tmp_path):
    count = 30_000
    points = np.tile(ReferenceElement("triangle", 1).nodes, (count, 1, 1)) + np.arange(count)[:, None, None]
    write_vtu(tmp_path / "a.vtu", COMM, "triangle", 1, points, {"u": points[..., 0]})
    found = read_vtu(tmp_path / "a.vtu")
    assert found["points"].nbytes > 2**21
    assert np.array_equal(found["point_data"]["u"][:, 0], points[..., 0].ravel())


def test_no_cells(tmp_path):
    write_vtu(tmp_path / "a.vtu", COMM, "triangle", 2, np.empty((0, 6, 2)), {"u": np.empty((0, 6))})
    assert len(list((tmp_path / "a.vtu").read_bytes().split(b"<Piece"))) == 2


GOOD = dict(cell="triangle", degree=1, points=np.zeros((2, 3, 2)), fields={"u": np.zeros((2, 3))}, cell_data={})
BAD = {
    "shape": (dict(cell="octahedron"), "accepted shapes are triangle"),
    "degree": (dict(degree=0), "degree 0"),
    "points": (dict(points=np.zeros((2, 3, 3))), "[cell, node, 2]"),
    "interval": (dict(cell="interval"), "accepted shapes are triangle"),
    "solid facets": (dict(cell="hexahedron", facets=True), "accepted shapes are interval"),
    "facets": (dict(facets=True), "triangle facets take [cell, node, 3]"),
    "nodes": (dict(points=np.zeros((2, 6, 2))), "takes [cell, 3]"),
    "cells": (dict(fields={"u": np.zeros((3, 3))}), "takes [2, 3]"),
    "text": (dict(fields={"u": [["a"] * 3] * 2}), "'u' cannot be read"),
    "fields": (dict(fields=[1]), "a mapping from names"),
    "cell data": (dict(cell_data={"k": np.zeros(3)}), "'k' has shape [3]; it takes [2]"),
}


@pytest.mark.parametrize("case", BAD)
def test_refused(tmp_path, case):
    changes, message = BAD[case]
    with pytest.raises(OptionError) as error:
        write_vtu(tmp_path / "a.vtu", COMM, **{**GOOD, **changes})
    assert message in str(error.value)
    assert not list(tmp_path.iterdir())


def test_refused_paths(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OptionError, match="file is no folder"):
        write_vtu(tmp_path / "file" / "a.vtu", COMM, **GOOD)
    with pytest.raises(OptionError, match="it is a folder"):
        write_vtu(tmp_path, COMM, **GOOD)


def test_failure_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.vtu"
    path.write_text("old")

    monkeypatch.setattr(vtu, "TAIL", None)  # not bytes: writing the end of an array fails
    with pytest.raises(TypeError):
        write_vtu(path, COMM, **GOOD)
    assert path.read_text() == "old" and list(tmp_path.iterdir()) == [path]

"""The same files on 1 and 3 ranks, some of them without cells, and errors that all ranks agree on."""

from pathlib import Path

import meshio
import numpy as np
import pytest
from vtu_reader import read_vtu

RANKS = (1, 3)
SCRIPT = Path(__file__).with_name("run_output.py")
# facets of the meshes of samples.py: on the surface of the box, and between its halves
FACETS = {"triangle": (14, 3), "quadrilateral": (14, 3), "tetrahedron": (80, 8), "hexahedron": (40, 4), "one": (4, 0)}
MESHIO = [name for name in FACETS if name != "hexahedron"]  # it knows no files of the version of quadratic hexahedra


@pytest.fixture(scope="module")
def written(mpirun, tmp_path_factory):
    """ranks → (folder, lines printed)."""
    found = {}
    for ranks in RANKS:
        folder = tmp_path_factory.mktemp(f"ranks{ranks}")
        found[ranks] = folder, mpirun(ranks, SCRIPT, folder, timeout=120).stdout.splitlines()
    return found


def content(path):
    """All values by cell, cells in the order of their centres."""
    read = read_vtu(path)
    nodes = np.concatenate((read["points"], read["point_data"]["u"], read["point_data"]["x"]), axis=1)[read["cells"]]
    order = np.lexsort(np.round(nodes[..., :3].mean(axis=1), 9).T)
    each = [cell[np.lexsort(np.round(cell[:, :3], 9).T)] for cell in nodes[order]]
    return np.array(each), read["cell_data"]["half"][order]


@pytest.mark.parametrize("name", FACETS)
def test_same_content(written, name):
    one, many = (content(written[ranks][0] / f"{name}.vtu") for ranks in RANKS)
    assert one[0].shape == many[0].shape and np.abs(one[0] - many[0]).max() < 1e-14
    assert np.array_equal(one[1], many[1])


@pytest.mark.parametrize("name", MESHIO)
def test_other_readers_see_all_cells(written, name):
    """meshio reads one piece: what it has is the whole mesh, whatever the number of ranks."""
    read = [meshio.read(written[ranks][0] / f"{name}.vtu") for ranks in RANKS]
    for mesh, ranks in zip(read, RANKS, strict=True):
        own = read_vtu(written[ranks][0] / f"{name}.vtu")
        assert np.array_equal(mesh.points, own["points"]) and np.array_equal(mesh.cells[0].data, own["cells"])
        assert np.array_equal(mesh.point_data["u"], own["point_data"]["u"])
    assert len(read[0].cells[0]) == len(read[1].cells[0]) > 0


@pytest.mark.parametrize("ranks", RANKS)
def test_facets(written, ranks):
    lines = [line.split() for line in written[ranks][1] if line.startswith("facets")]
    assert {cell: (int(outer), int(between)) for _, cell, outer, between in lines} == FACETS


@pytest.mark.parametrize("ranks", RANKS)
def test_errors_agree(written, ranks):
    folder, lines = written[ranks]
    errors = [line for line in lines if not line.startswith("facets")]
    expected = ("is no folder", "'u' has shape", "is no folder", "'mud'", "not finite", "lacks backend", "same names")
    assert len(errors) == len(expected) - (ranks == 1)
    for line, part in zip(errors, expected, strict=False):
        assert line.startswith("refused") and part in line
    files = {"report.json", *(f"{cell}.{kind}" for cell in FACETS for kind in ("vtu", "png"))}
    assert {path.name for path in folder.iterdir()} == files

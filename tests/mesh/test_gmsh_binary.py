"""Gmsh files: binary ones, remarks before the head, names of groups, tags of nodes, elements without inner nodes."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import numpy as np
import pytest

from petsc_hdg.errors import MeshError
from petsc_hdg.mesh import Mesh

TEXT = Path(__file__).resolve().parents[1] / "meshes" / "regions_v2.msh"


def binary() -> bytes:
    """The text file of two regions as binary MSH 2.2, one block an element."""
    before, rest = TEXT.read_bytes().split(b"$Nodes\n")
    nodes, elements = rest.split(b"$EndNodes\n$Elements\n")
    rows = [line.split() for line in nodes.split(b"\n")[1:] if line]
    points = b"".join(struct.pack("<i3d", int(row[0]), *map(float, row[1:])) for row in rows)
    lists = [[int(word) for word in line.split()] for line in elements.split(b"$End")[0].split(b"\n")[1:] if line]
    blocks = b"".join(struct.pack(f"<{len(e) + 1}i", e[1], 1, e[2], e[0], *e[3:]) for e in lists)
    head = before.replace(b"2.2 0 8\n", b"2.2 1 8\n" + struct.pack("<i", 1) + b"\n")
    middle = b"$Nodes\n%d\n%s\n$EndNodes\n$Elements\n%d\n" % (len(rows), points, len(lists))
    return head + middle + blocks + b"\n$EndElements\n"


def test_a_binary_file_is_read(tmp_path):
    (tmp_path / "binary.msh").write_bytes(binary())
    found, expected = Mesh.from_file(tmp_path / "binary.msh"), Mesh.from_file(TEXT)
    assert found.num_cells == expected.num_cells and found.labels == expected.labels


@pytest.mark.parametrize("mark", (b"", b"\xef\xbb\xbf"), ids=("plain", "byte order mark"))
def test_remarks_before_the_head(tmp_path, mark):
    (tmp_path / "remarks.msh").write_bytes(mark + b"$Comments\n$MeshFormat is below\n$EndComments\n" + binary())
    found, expected = Mesh.from_file(tmp_path / "remarks.msh"), Mesh.from_file(TEXT)
    assert found.num_cells == expected.num_cells and found.labels == expected.labels
    (tmp_path / "cut.msh").write_bytes((tmp_path / "remarks.msh").read_bytes()[:-200])
    with pytest.raises(MeshError, match=f"Mesh file {tmp_path / 'cut.msh'} has a damaged section"):
        Mesh.from_file(tmp_path / "cut.msh")


def test_flipped_bits_are_refused_or_harmless(tmp_path):
    content, chance, path = binary(), random.Random(1), tmp_path / "flipped.msh"
    start, refused = content.index(b"$Nodes"), 0
    for _ in range(60):
        place = chance.randrange(start, len(content))
        flipped = content[:place] + bytes([content[place] ^ 1 << chance.randrange(8)]) + content[place + 1 :]
        path.write_bytes(flipped)
        try:
            Mesh.from_file(path)
        except MeshError:
            refused += 1
    assert refused > 10


@pytest.mark.parametrize("name", ("celltype", "depth", "Cell Sets", "Face Sets"))
def test_names_of_petsc_are_refused(tmp_path, name):
    content = TEXT.read_bytes()
    first = content.split(b'"')[1]
    (tmp_path / "named.msh").write_bytes(content.replace(b'"' + first + b'"', f'"{name}"'.encode()))
    with pytest.raises(MeshError, match=f"a physical group called '{name}'"):
        Mesh.from_file(tmp_path / "named.msh")


@pytest.mark.parametrize("tag", (1_600_000_000, 2**31))
def test_tags_may_be_any(tmp_path, tag):
    content = TEXT.read_bytes()
    moved = content.replace(b"$Nodes\n31\n", b"$Nodes\n32\n%d 2 2 0\n" % tag)
    assert moved != content
    (tmp_path / "wide.msh").write_bytes(moved)
    found, expected = Mesh.from_file(tmp_path / "wide.msh"), Mesh.from_file(TEXT)
    assert found.num_vertices == expected.num_vertices and found.labels == expected.labels


def test_hexahedra_of_twenty_nodes(tmp_path):
    """Nodes inside of faces and of the cell follow from those of the edges: of an affine cell they are the means."""
    edges = [(0, 1), (0, 3), (0, 4), (1, 2), (1, 5), (2, 3), (2, 6), (3, 7), (4, 5), (4, 7), (5, 6), (6, 7)]
    corners = np.array([(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0), (0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)], float)
    x = np.concatenate([corners, [corners[list(edge)].mean(axis=0) for edge in edges]]) @ np.diag([1, 2, 3]) + 0.5
    rows = "".join(f"{k} {a!r} {b!r} {c!r}\n" for k, (a, b, c) in enumerate(x.tolist(), 1))
    cell = " ".join(map(str, range(1, 21)))
    text = f"$MeshFormat\n2.2 0 8\n$EndMeshFormat\n$Nodes\n20\n{rows}$EndNodes\n$Elements\n1\n1 17 2 1 1 {cell}\n"
    (tmp_path / "cell.msh").write_text(text + "$EndElements\n")
    nodes = Mesh.from_file(tmp_path / "cell.msh").geometry.nodes
    grid = np.stack(np.meshgrid([0.5, 1, 1.5], [0.5, 1.5, 2.5], [0.5, 2, 3.5], indexing="ij"), axis=-1).reshape(-1, 3)
    np.testing.assert_allclose(nodes[np.lexsort(nodes.T)], grid[np.lexsort(grid.T)], atol=1e-14)

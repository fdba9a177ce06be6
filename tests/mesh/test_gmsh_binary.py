"""Binary files of MSH 2.2 are counted through before PETSc reads them; remarks before the head are left out."""

from __future__ import annotations

import random
import struct
from pathlib import Path

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


def test_a_wide_range_of_tags_is_refused(tmp_path):
    content = TEXT.read_bytes()
    moved = content.replace(b"$Nodes\n31\n", b"$Nodes\n32\n1600000000 2 2 0\n")
    assert moved != content
    (tmp_path / "wide.msh").write_bytes(moved)
    with pytest.raises(MeshError, match="32 nodes have tags from 1 to 1600000000, which is too wide a range"):
        Mesh.from_file(tmp_path / "wide.msh")

"""States as XDMF: arrays of a mesh and its values in an HDF5 file, and the text that describes them."""

from __future__ import annotations

import hashlib
import re
from html import escape
from pathlib import Path

import numpy as np

from .atomic import atomic_path
from .checkpoint_file import Quiet, h5py_package
from .grid import Grid

TYPES = {
    "triangle": ("Triangle", 4),
    "quad": ("Quadrilateral", 5),
    "tetra": ("Tetrahedron", 6),
    "pyramid": ("Pyramid", 7),
    "wedge": ("Wedge", 8),
    "hexahedron": ("Hexahedron", 9),
    "quad9": ("Quadrilateral_9", 35),
    "triangle6": ("Triangle_6", 36),
    "tetra10": ("Tetrahedron_10", 38),
    "hexahedron27": ("Hexahedron_27", 50),
}  # name and number, by meshio's names
ATTRIBUTES = {1: "Scalar", 3: "Vector", 9: "Tensor"}  # by the number of components


def write_arrays(path: Path, grid: Grid, before: str = "") -> str:
    """Write the arrays of a grid of degree 1 or 2 (sampled from higher ones) to an HDF5 file and return the elements of
    XDMF's Grid that describe them, for a file beside it. Raises OptionError, and no partial file is left.

    before: the elements of a file beside it, whose arrays of the mesh serve where they are the same.
    """
    mesh = grid.to_meshio()
    kind, cells, name = TYPES[mesh.cells[0].type][0], mesh.cells[0].data, escape(path.name)
    if len(mesh.cells) > 1:  # the number of its shape before the nodes of each cell
        kind, cells = "Mixed", [np.insert(each.data, 0, TYPES[each.type][1], axis=1).ravel() for each in mesh.cells]
        cells = np.concatenate(cells)
    count = sum(len(each.data) for each in mesh.cells)
    parts = [("Topology", f'TopologyType="{kind}" NumberOfElements="{count}"', cells)]
    parts += [("Geometry", f'GeometryType="{"XYZ"[: mesh.points.shape[1]]}"', mesh.points)]
    digest = hashlib.sha256(repr([head for _, head, _ in parts]).encode())
    for _, _, values in parts:
        digest.update(np.ascontiguousarray(values).data)
    known = re.findall(r'Name="mesh" Value="(\w+)"', before)
    texts = [f'<Information Name="mesh" Value="{digest.hexdigest()}"/>\n']
    if known == [digest.hexdigest()]:
        texts += [re.search(rf"<{tag} .*?</{tag}>\n", before, re.DOTALL)[0] for tag, *_ in parts]
        parts = []
    for where, data in (
        ("Node", mesh.point_data),
        ("Cell", {key: np.concatenate(values) for key, values in mesh.cell_data.items()}),
    ):
        for key, values in data.items():
            kind = ATTRIBUTES.get(values.size // len(values), "Matrix")
            parts.append(("Attribute", f'Name="{escape(key)}" AttributeType="{kind}" Center="{where}"', values))
    h5py = h5py_package()
    with atomic_path(path) as part, open(part, "r+b") as disk:
        quiet = Quiet(disk)
        with h5py.File(quiet, "w") as file:
            for number, (tag, head, values) in enumerate(parts):
                file.create_dataset(f"data{number}", data=values, track_times=False)
                kind = "Int" if np.issubdtype(values.dtype, np.integer) else "Float"
                shape = f'DataType="{kind}" Precision="8" Dimensions="{" ".join(map(str, values.shape))}" Format="HDF"'
                texts.append(f"<{tag} {head}><DataItem {shape}>{name}:/data{number}</DataItem></{tag}>\n")
        quiet.check()
    return "".join(texts)

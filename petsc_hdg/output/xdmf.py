"""States as XDMF: arrays of a mesh and its values in an HDF5 file, and the text that describes them."""

from __future__ import annotations

from html import escape
from pathlib import Path

import numpy as np

from .atomic import atomic_path
from .checkpoint_file import Quiet, h5py_package
from .grid import Grid

TYPES = {
    "triangle": "Triangle",
    "quad": "Quadrilateral",
    "tetra": "Tetrahedron",
    "hexahedron": "Hexahedron",
    "triangle6": "Triangle_6",
    "quad9": "Quadrilateral_9",
    "tetra10": "Tetrahedron_10",
    "hexahedron27": "Hexahedron_27",
}  # by meshio's names
ATTRIBUTES = {1: "Scalar", 3: "Vector", 9: "Tensor"}  # by the number of components


def write_arrays(path: Path, grid: Grid) -> str:
    """Write the arrays of a grid of degree 1 or 2 (sampled from higher ones) to an HDF5 file and return the elements of
    XDMF's Grid that describe them, for a file beside it. Raises OptionError, and no partial file is left."""
    mesh = grid.to_meshio()
    (block,), name = mesh.cells, escape(path.name)
    parts = [("Topology", f'TopologyType="{TYPES[block.type]}" NumberOfElements="{len(block.data)}"', block.data)]
    parts += [("Geometry", f'GeometryType="{"XYZ"[: mesh.points.shape[1]]}"', mesh.points)]
    for where, data in (
        ("Node", mesh.point_data),
        ("Cell", {key: values for key, (values,) in mesh.cell_data.items()}),
    ):
        for key, values in data.items():
            kind = ATTRIBUTES.get(values.size // len(values), "Matrix")
            parts.append(("Attribute", f'Name="{escape(key)}" AttributeType="{kind}" Center="{where}"', values))
    texts, h5py = [], h5py_package()
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

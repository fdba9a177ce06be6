"""Writes vtk_order.json: the order of nodes in VTK's Lagrange cells, by VTK's own classes (needs `pip install vtk`)."""

import json
from itertools import product
from pathlib import Path

import vtk

DEGREES = range(1, 11)
CLASSES = {
    "interval": vtk.vtkLagrangeCurve,
    "triangle": vtk.vtkLagrangeTriangle,
    "quadrilateral": vtk.vtkLagrangeQuadrilateral,
    "tetrahedron": vtk.vtkLagrangeTetra,
    "hexahedron": vtk.vtkLagrangeHexahedron,
}


def sized(cell: str, dim: int, count: int):
    made = CLASSES[cell]()
    made.GetPointIds().SetNumberOfIds(count)
    made.GetPoints().SetNumberOfPoints(count)
    if hasattr(made, "SetUniformOrderFromNumPoints"):
        made.SetUniformOrderFromNumPoints(count)
    made.Initialize()
    if cell == "interval":
        made.GetOrder()  # counts the points, which PointIndexFromIJK does not
    return made


def order(cell: str, n: int) -> str:
    """Lattice places of the nodes, one after another, as digits (a stands for 10)."""
    dim = {"interval": 1, "triangle": 2, "quadrilateral": 2}.get(cell, 3)
    simplex = cell in ("triangle", "tetrahedron")
    places = [p for p in product(range(n + 1), repeat=dim) if not simplex or sum(p) <= n]
    made = sized(cell, dim, len(places))
    found = {}
    for k, place in enumerate(places):
        if simplex:
            barycentric = [0] * (dim + 1)
            made.ToBarycentricIndex(k, barycentric)
            found[k] = barycentric[:dim]
        else:
            found[made.PointIndexFromIJK(*place, *[0] * (3 - dim))] = place
    return " ".join("".join("0123456789a"[i] for i in found[k]) for k in range(len(places)))


table = {f"{cell} {n}": order(cell, n) for cell in CLASSES for n in DEGREES}
Path(__file__).with_name("vtk_order.json").write_text(json.dumps(table, indent=1) + "\n")

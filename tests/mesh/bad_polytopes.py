"""Agglomerates and polygons that must be refused: name → (what to call, pattern of the message), as in bad_inputs."""

import numpy as np

from petsc_hdg.mesh import Mesh, agglomerate, coarsen


def on_box(comm, *arguments, **more):
    """Agglomerates of eight triangles."""
    return agglomerate(Mesh.box((2, 2), comm=comm), *arguments, **more)


def short(comm):
    """One number too few on the last rank alone."""
    mesh = Mesh.box((4, 4), comm=comm)
    return agglomerate(mesh, groups=np.zeros(mesh.num_cells - (comm.rank == comm.size - 1), int))


def failing(x):
    raise ValueError("no such place")


ONE = r"Cells are agglomerated by one of count, groups and label; "
BAD = {
    "no way to agglomerate": (lambda c, f: on_box(c), ONE + "none was given"),
    "two ways to agglomerate": (lambda c, f: on_box(c, 2, label="x"), ONE + "count and label were given"),
    "no polytopes": (lambda c, f: on_box(c, 0), "0 polytopes were asked for; .* takes a whole number 1 … 8"),
    "too many polytopes": (lambda c, f: on_box(c, 9), "9 polytopes were asked for; .* takes a whole number 1 … 8"),
    "half a polytope": (lambda c, f: on_box(c, 1.5), "1.5 polytopes were asked for"),
    "groups too short": (lambda c, f: short(c), r"Groups of shape \(\d+,\) were given; rank \d owns \d+ cells"),
    "groups of reals": (lambda c, f: on_box(c, groups=lambda x: x[:, 0]), "Groups were given as float64; give a whole"),
    "groups of the wrong shape": (lambda c, f: on_box(c, groups=lambda x: x > 0), r"Groups of shape \(\d+, 2\)"),
    "groups that fail": (lambda c, f: on_box(c, groups=failing), "The function of groups failed: ValueError: no such"),
    "unknown label": (lambda c, f: on_box(c, label="iron"), "no cell region called 'iron'; known here: none"),
    "degrees too short": (
        lambda c, f: on_box(c, 4, degrees=[1, 2, 3]),
        r"Degrees of shape \(3,\) were given; for 4 agglomerates give \(4,\), or one number",
    ),
    "degree too high": (lambda c, f: on_box(c, 2, degrees=[1, 7]), "A degree of 7 was given .* whole numbers 0 … 6"),
    "negative degree": (lambda c, f: on_box(c, 2, degrees=-1), "A degree of -1 was given"),
    "real degree": (lambda c, f: on_box(c, 2, degrees=1.5), "A degree of 1.5 was given"),
    "cost of nothing": (lambda c, f: on_box(c, 2, cost=lambda x: 0 * x[:, 0]), "The cost of some cells is not a pos"),
    "too many coarser polytopes": (
        lambda c, f: coarsen(on_box(c, 4), 5),
        "5 polytopes were asked for; a mesh of 4 polytopes takes a whole number 1 … 4",
    ),
}

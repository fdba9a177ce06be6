"""PETSc's options that say how a mesh is made: those that are served here, left to PETSc, or refused by name.

They are read by DMPlexCreateFromOptions_Internal of PETSc 3.18 to 3.26 and by the readers of files that it calls.
Options of meshes that exist (-dm_refine, -dm_distribute, -dm_plex_scale, -dm_plex_check_…) are PETSc's own at any rate.
"""

from __future__ import annotations

from petsc4py import PETSc

from ..errors import MeshError
from ..options import given_text, given_truth, is_given
from .plex_points import PlexPoints

BOX = ("dm_plex_dim", "dm_plex_simplex", "dm_plex_box_faces", "dm_plex_box_lower", "dm_plex_box_upper")
SERVED = ("dm_plex_filename", "dm_plex_shape", "dm_plex_name", "dm_plex_orient", "dm_plex_interpolate", *BOX)
# Each makes a mesh that is neither a box nor that of a file.
BY_PETSC = ("dm_plex_reference_cell_domain", "dm_plex_boundary_filename", "dm_plex_file_contents")
# What a box or a file does not obey: the value that changes nothing ("": none), and what to do.
_OF_BOTH = {
    "dm_plex_adj_cone": ("false", "the overlap has the cells that the scheme needs: leave it out"),
    "dm_plex_adj_closure": ("true", "the overlap has the cells that the scheme needs: leave it out"),
    "dm_plex_print_adj": ("0", "leave it out"),
    "dm_plex_label_": ("", "name boundaries and regions by fe.Mesh.from_cells"),
    "dm_plex_cohesive_label_": ("", "cohesive cells are not accepted: leave it out"),
}
_OF_BOXES = {
    "dm_plex_box_bd": ("none", "boxes are bounded: give none for each direction"),
    "dm_plex_cell": ("", "-dm_plex_simplex chooses the cells of boxes"),
    "dm_plex_separate_marker": ("false", "sides are named left, right, bottom, top, front, back"),
    "dm_plex_box_crisscross": ("false", "-dm_plex_simplex splits squares along one diagonal: leave it out"),
}
_WHOLE = "meshio reads the whole file: leave it out"
_OF_FORMATS = {
    "dm_plex_name": ("", _WHOLE),
    "dm_plex_create_from_hdf5_xdmf": ("", _WHOLE),
    "dm_plex_hdf5_": ("", _WHOLE),
    "dm_plex_cgns_parallel": ("", _WHOLE),
    "dm_plex_geom_": ("", "meshes of CAD models are read from the files of their mesh generators"),
}
REFUSED = {"box": {**_OF_BOTH, **_OF_BOXES}, "Gmsh file": _OF_BOTH, "file": {**_OF_BOTH, **_OF_FORMATS}}


def left_to_petsc(prefix: str) -> bool:
    """True if the options ask for a mesh that PETSc makes: neither a file nor a box."""
    if is_given(prefix, "dm_plex_filename"):
        return False
    shape = given_text(prefix, "dm_plex_shape", "box").lower()
    return shape != "box" or any(_is_wanted(prefix, name) for name in BY_PETSC)


def _is_wanted(prefix: str, name: str) -> bool:
    return is_given(prefix, name) and (name != BY_PETSC[0] or given_truth(prefix, name, False))


def refuse(prefix: str) -> None:
    """Raise MeshError for a given option that the box or file of the options would not obey."""
    name = given_text(prefix, "dm_plex_filename", "")
    kind = "Gmsh file" if name.lower().endswith(".msh") else "file" if is_given(prefix, "dm_plex_filename") else "box"
    for given, text in PETSc.Options().getAll().items():
        for known, (harmless, remedy) in REFUSED[kind].items():
            if given == prefix + known or (known.endswith("_") and given.startswith(prefix + known)):
                if not _says_nothing(prefix, given[len(prefix) :], text or "", harmless):
                    said = f"-{given} {text or ''}".strip()
                    raise MeshError(f"{said} is not accepted where the mesh is a {kind}; {remedy}.")


def _says_nothing(prefix: str, name: str, text: str, harmless: str) -> bool:
    """True if a value is the harmless one, in each of the directions that it is given for."""
    if harmless in ("true", "false"):
        return given_truth(prefix, name, False) == (harmless == "true")
    return bool(harmless) and all(part.lower() == harmless for part in text.split(","))


def followed(made, prefix: str, comm):
    """The DM or PlexPoints of a box or file with -dm_plex_orient and -dm_plex_name applied, as PETSc does to its own.
    Collective."""
    orients, named = given_truth(prefix, "dm_plex_orient", False), is_given(prefix, "dm_plex_name")
    if isinstance(made, PlexPoints) and (orients or named):
        made = made.plex(comm)
    if named:
        made.setName(given_text(prefix, "dm_plex_name", ""))
    if orients:
        made.orient()
    return made

"""Checks of a mesh when it is made."""

from __future__ import annotations


def check(mesh) -> None:
    """Raise MeshError, on all ranks, for cells that no scheme can use."""

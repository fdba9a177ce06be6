"""What stands in the place of a DMPlex that its mesh has freed."""

from __future__ import annotations

from ..errors import MeshError


class Gone:
    """Raises MeshError for whatever is asked of it, where PETSc would read freed memory."""

    def __getattr__(self, name: str):
        raise MeshError("The mesh was destroyed, and work on it goes on; call mesh.destroy() when nothing needs it.")

    def destroy(self) -> None:
        """It is, already."""

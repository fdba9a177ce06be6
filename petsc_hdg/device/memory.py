"""What buffers take of a device's memory, counted from their making to their end."""

from __future__ import annotations

from functools import lru_cache

from petsc_hdg.device.platforms import opencl


class Memory:
    """held: bytes of the buffers there are.   most: the largest that was (high water). Both without PETSc's vectors."""

    def __init__(self):
        self.held = self.most = 0

    def buffer(self, context, flags, nbytes: int):
        """A pyopencl.Buffer of so many bytes, counted while it lives. Raises pyopencl.Error."""
        buffer = _counted()(context, flags, nbytes)
        buffer.memory, buffer.counted = self, nbytes
        self.held += nbytes
        self.most = max(self.most, self.held)
        return buffer


@lru_cache(maxsize=1)
def _counted() -> type:
    class Counted(opencl().Buffer):
        """A Buffer that says when it goes; pyopencl's own takes neither attributes nor weak references."""

        memory, counted = None, 0

        def __del__(self):
            if self.memory is not None:
                self.memory.held -= self.counted

    return Counted

"""Per OpenCL device, what all problems of a process share: context, programs, count of memory."""

from __future__ import annotations

from petsc_hdg.device.memory import Taken
from petsc_hdg.device.platforms import REMEDY, describe, opencl
from petsc_hdg.errors import DeviceError

_OPENED: dict[tuple, Opened] = {}


class Opened:
    """A device and a context of it. `Opened.of(cl_device, context)` is the same one each time.

    context     pyopencl.Context
    programs    digest → (pyopencl.Program, Entry): compiled or loaded once, see build.py
    physics     texts of physics that compiled in one of them
    waits       whether kernels may wait for their first use before they are compiled
    registered  (block, rank) → Registered: windows that the driver knows, see node.py
    taken       Taken: bytes of all buffers of this process there
    waits_for_groups  whether work-groups of a kernel can wait for each other, None before it is tried
    """

    waits = True

    def __init__(self, context):
        self.context = context
        self.programs: dict = {}
        self.physics = {""}  # programs without any come from files of the package
        self.registered: dict = {}
        self.taken = Taken()
        self.waits_for_groups: bool | None = None

    @classmethod
    def of(cls, cl_device, context=None) -> Opened:
        """Return the one of a device, or of a given context on it. Raises DeviceError if the driver refuses."""
        key = cl_device, context
        if key not in _OPENED:
            _OPENED[key] = cls(context or _made(cl_device))
        return _OPENED[key]


def _made(cl_device):
    cl = opencl()
    try:
        return cl.Context([cl_device])
    except cl.Error as error:
        raise DeviceError(
            f"{describe(cl_device)} cannot be used ({error}); choose another with -fe_device, or {REMEDY}"
        ) from error

"""NVIDIA's GPUs of a machine by the management library that comes with the driver, and their order for a process."""

from __future__ import annotations

import ctypes
import os

VARIABLE = "CUDA_VISIBLE_DEVICES"  # the driver reads it when a process first asks for devices
_LOCAL_RANKS = (  # what launchers tell a process of its place among those of a node
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "MV2_COMM_WORLD_LOCAL_RANK",
    "PALS_LOCAL_RANKID",
    "SLURM_LOCALID",
)
_WRITE = 1  # NVML_P2P_CAPS_INDEX_WRITE


def own_gpu_first() -> None:
    """Have the driver list the GPU of a rank first, since PETSc's ViennaCL vectors take the first one.

    Without effect once devices have been listed, which MPI may do as it starts.
    """
    rank = next((os.environ[name] for name in _LOCAL_RANKS if os.environ.get(name, "").isdigit()), "0")
    if rank == "0":
        return
    given = os.environ.get(VARIABLE)
    numbers = list(map(str, range(_count()))) if given is None else given.split(",")
    first = int(rank) % max(1, len(numbers))
    if len(numbers) > 1 and numbers == sorted(numbers):  # else ranks have orders of their own
        os.environ[VARIABLE] = ",".join(numbers[first:] + numbers[:first])


def _library():
    """The library, None where there is none."""
    try:
        library = ctypes.CDLL("libnvidia-ml.so.1")
    except OSError:
        return None
    return None if library.nvmlInit_v2() else library


def _count() -> int:
    library, count = _library(), ctypes.c_uint()
    return 0 if library is None or library.nvmlDeviceGetCount_v2(ctypes.byref(count)) else count.value


def reaches(place: str, others: set[str]) -> bool:
    """True if the GPU at a place on the bus (0000:17:00) can write the memory of those at others."""
    library, status, handles = _library(), ctypes.c_int(), {}
    for each in {place, *others}:
        handles[each] = ctypes.c_void_p()
        name = f"{each}.0".encode()
        if library is None or library.nvmlDeviceGetHandleByPciBusId_v2(name, ctypes.byref(handles[each])):
            return False
    pairs = ((handles[place], handles[other]) for other in others)
    return all(
        library.nvmlDeviceGetP2PStatus(*pair, _WRITE, ctypes.byref(status)) == 0 and status.value == 0 for pair in pairs
    )

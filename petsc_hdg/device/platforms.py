"""The OpenCL platforms and devices of this machine, and the choice of one by option and node-local rank."""

from __future__ import annotations

import os

from petsc_hdg.errors import DeviceError

try:
    import pyopencl as cl
except ImportError as _error:
    cl = None
    _import_error = _error

REMEDY = "install an OpenCL driver, for CPUs 'apt-get install pocl-opencl-icd' or 'conda install -c conda-forge pocl'"


_process: int | None = None  # the first one that asked for OpenCL, whose threads a fork does not have


def opencl():
    """The pyopencl module; raises DeviceError if it cannot be imported, and in a fork of a process that has used it."""
    global _process
    if cl is None:
        raise DeviceError(f"pyopencl cannot be imported ({_import_error}): 'pip install pyopencl', and {REMEDY}")
    _process = _process or os.getpid()
    if os.getpid() != _process:
        raise DeviceError(
            "this process was forked from one that uses OpenCL, whose drivers do not work in a fork; use "
            "multiprocessing.get_context('spawn'), or fork before the first problem is made"
        )
    return cl


def all_devices() -> list:
    """All OpenCL devices, platform by platform, those of a platform by their places on the bus; [] if there is none."""
    opencl()
    try:
        platforms = cl.get_platforms()
    except cl.Error:
        return []
    devices = []
    for platform in platforms:
        try:
            found = platform.get_devices()
            on_bus = all(identity(device).startswith("PCI") for device in found)
            devices.extend(sorted(found, key=identity) if on_bus else found)
        except cl.Error:
            continue
    return devices


def is_first(device) -> bool:
    """True if a driver lists a device before its others, as ViennaCL takes it."""
    return identity(device.platform.get_devices()[0]) == identity(device)


def describe(device) -> str:
    """Name of a device and its platform."""
    return f"{device.name.strip()} ({device.platform.name.strip()})"


def listing(devices: list) -> str:
    """The devices in one line, numbered as `-fe_device <index>` takes them."""
    return "; ".join(f"{i}: {describe(device)}" for i, device in enumerate(devices)) or "none"


def is_gpu(device) -> bool:
    """True if the device says it is a GPU."""
    return bool(device.type & cl.device_type.GPU)


def identity(device) -> str:
    """What tells a device from others of its name on a node: its place on the bus, or its number on its platform."""
    for name, parts in (
        ("pci_bus_info_khr", ("pci_domain", "pci_bus", "pci_device")),
        (None, ("pci_domain_id_nv", "pci_bus_id_nv", "pci_slot_id_nv")),
    ):
        try:
            holder = device if name is None else getattr(device, name)
            domain, bus, slot = (int(getattr(holder, part)) for part in parts)
        except (cl.Error, AttributeError, TypeError):
            continue
        return f"PCI {domain:04x}:{bus:02x}:{slot:02x}"
    try:
        return f"device {device.platform.get_devices().index(device)} of {device.platform.name.strip()}"
    except (cl.Error, ValueError):
        return f"a device of {device.platform.name.strip()}"


def ptx_target(device) -> int:
    """Compute capability (90 for 9.0) of a device whose OpenCL C takes NVIDIA's inline PTX, else 0."""
    if not is_gpu(device) or "nvidia" not in device.platform.name.lower():
        return 0
    try:
        return 10 * int(device.compute_capability_major_nv) + int(device.compute_capability_minor_nv)
    except (cl.Error, AttributeError):
        return 0


def kind(device) -> str:
    """GPU, CPU or other."""
    return "GPU" if is_gpu(device) else "CPU" if device.type & cl.device_type.CPU else "other"


def matching(choice: str, devices: list) -> list:
    """Devices that `choice` (gpu, cpu, any, an index or a part of a name) allows; any prefers GPUs.

    For gpu, cpu and any they are those of one platform, so that ranks do not mix drivers.
    """
    choice = str(choice).strip()
    if choice.lstrip("-").isdigit():
        return [devices[int(choice)]] if 0 <= int(choice) < len(devices) else []
    gpus = [device for device in devices if is_gpu(device)]
    others = [device for device in devices if not is_gpu(device)]
    cpus = [device for device in others if device.type & cl.device_type.CPU]
    named = {"gpu": gpus, "cpu": cpus, "any": gpus or cpus or others}
    if choice.lower() in named:
        found = named[choice.lower()]
        return [device for device in found if device.platform == found[0].platform]
    return [device for device in devices if choice and choice.lower() in describe(device).lower()]


def choose(choice: str, local_rank: int):
    """The device for a rank of a node; raises DeviceError listing the devices."""
    devices = all_devices()
    if not devices:
        raise DeviceError(f"no OpenCL device was found: {REMEDY}")
    found = matching(choice, devices)
    if not found:
        raise DeviceError(
            f"no OpenCL device matches '{choice}'; it may be gpu, cpu, any, an index or a part of a name of: "
            f"{listing(devices)}"
        )
    return found[local_rank % len(found)]


def is_gpu_chosen(choice: str) -> bool:
    """True if `choice` names a GPU that is there."""
    try:
        return is_gpu(choose(choice, 0))
    except DeviceError:
        return False

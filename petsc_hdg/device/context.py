"""An OpenCL device with its context and queue, and what all problems of a process share of it."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import asdict, dataclass

from petsc_hdg.device.memory import Memory, Taken
from petsc_hdg.device.platforms import REMEDY, choose, describe, identity, is_gpu, opencl, ptx_target
from petsc_hdg.errors import DeviceError, collectively
from petsc_hdg.value_checks import shown

GROUPS = 4  # work-groups of a persistent kernel per compute unit, at most

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
    compilers   Compilers that build programs beside this process, None before there are many
    """

    waits = True

    def __init__(self, context):
        self.context = context
        self.programs: dict = {}
        self.physics = {""}  # programs without any come from files of the package
        self.registered: dict = {}
        self.taken = Taken()
        self.waits_for_groups: bool | None = None
        self.compilers = None

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


class Device:
    """One OpenCL device as a problem uses it: an in-order queue, choices and counts of its own, on the context and
    programs that all problems of the process share.

    opened           Opened: what the process has once of the device, such as its context and programs
    context, queue   pyopencl objects
    programs         digest → program, as build.py keeps them
    name, driver     text
    is_gpu, has_fp64 bool
    ptx              compute capability (90 for 9.0) where kernels may hold NVIDIA's inline PTX, else 0
    memory_bytes     memory of the device
    local_bytes      local memory a work-group can have
    largest_buffer   bytes that one buffer can have
    constant_bytes   constant memory a program can have
    max_work_group   work-items a work-group can have
    from_petsc       whether context and queue are those of PETSc's ViennaCL vectors
    memory           Memory: what our buffers take of it, and may take
    halo             how exchanges between ranks of a node go: auto, windows or messages
    exchanges        Exchanges: how many there were, and how long the host waited
    compute_units    number
    persistent_groups  work-groups of kernels that wait for each other, a power of two; 0 where that is not to be
    has_solvers      whether Krylov methods that nobody names run here, as they do on GPUs
    two_queues       whether kernels that wait for ghosts run beside those that do not, as they do on GPUs
    """

    def __init__(self, cl_device, context=None, queue=None, note: str = ""):
        cl = opencl()
        self.cl_device = cl_device
        self.from_petsc = queue is not None
        self.opened = Opened.of(cl_device, context)
        self.context, self.programs = self.opened.context, self.opened.programs
        self.queue = queue or cl.CommandQueue(self.context, cl_device)
        self.note = note
        self.name = cl_device.name.strip()
        self.platform = f"{cl_device.platform.name.strip()} {cl_device.platform.version.strip()}"
        self.driver = cl_device.driver_version.strip()
        self.is_gpu = self.two_queues = self.has_solvers = is_gpu(cl_device)
        self.ptx, self.compute_units = ptx_target(cl_device), int(cl_device.max_compute_units)
        self.persistent_groups = GROUPS << (self.compute_units.bit_length() - 1) if self.ptx >= 70 else 0
        self.has_fp64 = "cl_khr_fp64" in cl_device.extensions.split()
        self.memory_bytes = int(cl_device.global_mem_size)
        self.local_bytes = int(cl_device.local_mem_size)
        self.largest_buffer = int(cl_device.max_mem_alloc_size)
        self.constant_bytes = int(cl_device.max_constant_buffer_size)
        self.max_work_group = int(cl_device.max_work_group_size)
        self.memory = Memory(self.name, self.memory_bytes, self.opened.taken)
        self.recording: list | None = None  # of launches, see kernel.py
        self.gathered: list | None = None  # Kernels whose programs are built together, see build.py
        self.halo, self.exchanges = "auto", Exchanges()
        self._copy_queue = None
        self._profile = False
        self._events: list = []
        self._seconds: dict[str, list] = {}

    @classmethod
    def select(cls, choice: str = "any", comm=None) -> Device:
        """Device by `choice` (gpu, cpu, any, an index, a part of a name) and this rank's place on its node.

        comm is a communicator of mpi4py or petsc4py, on which this is collective. Raises DeviceError on all ranks.
        """
        if not isinstance(choice, str):
            raise DeviceError(f"a device was asked for by {shown(choice)}; give gpu, cpu, any, an index or a name")
        comm = comm.tompi4py() if hasattr(comm, "tompi4py") else comm
        if comm is not None and not hasattr(comm, "Split_type"):
            raise DeviceError(f"a device was asked for on {shown(comm)}; give a communicator of mpi4py or petsc4py")
        if comm is None or comm.size == 1:
            return cls(choose(choice, 0))
        from petsc_hdg.device.node import node_communicator

        node = node_communicator(comm)
        with collectively(comm):
            device = cls(choose(choice, node.rank))
        shared = node.allgather(identity(device.cl_device)).count(identity(device.cl_device))
        node.Free()
        device.memory.room //= shared
        device.note = f"shared by {shared} ranks of this node" if shared > 1 else ""
        return device

    @classmethod
    def from_vec(cls, vec) -> Device:
        """Device, context and queue of a ViennaCL vector, whose buffers our kernels can then use without copies."""
        cl = opencl()
        if not hasattr(vec, "getType") or not vec.handle:
            raise DeviceError(f"a device was asked for by {shown(vec)}; give a PETSc Vec of type viennacl")
        if not is_viennacl(vec):
            raise DeviceError(
                f"a vector of type '{vec.getType()}' has no OpenCL context: use '-dm_vec_type viennacl' with a PETSc "
                "configured with OpenCL and ViennaCL (scripts/build_petsc.sh builds one)"
            )
        context = cl.Context.from_int_ptr(vec.getCLContextHandle(), False)
        queue = cl.CommandQueue.from_int_ptr(vec.getCLQueueHandle(), False)
        return cls(queue.device, context, queue, note="context of PETSc's ViennaCL vectors")

    def require(self, spec) -> None:
        """Raise DeviceError if the kernel of `spec` cannot run here."""
        if spec.precision == "double" and not self.has_fp64:
            raise DeviceError(
                f"kernel '{spec.name}' cannot run on {self.name}: it needs double precision, which the device lacks; "
                "use -fe_precision single or another -fe_device"
            )
        self.require_room(spec, spec.local_bytes, self.max_work_group)
        self.require_at_most(spec, "bytes of constant memory", spec.constant_bytes, self.constant_bytes)

    def require_room(self, spec, local_bytes: int, most_items: int) -> None:
        """Raise DeviceError if the work-groups of a kernel, which take so much memory, are larger than can be."""
        self.require_at_most(spec, "bytes of local memory", local_bytes, self.local_bytes)
        self.require_at_most(spec, "work-items in a work-group", spec.local_size, most_items)

    def require_at_most(self, spec, what: str, needed: int, limit: int) -> None:
        """Raise DeviceError if a kernel needs more of something than there is for it."""
        if needed > limit:
            raise DeviceError(
                f"kernel '{spec.name}' cannot run on {self.name}: it needs {needed} {what}, the limit is {limit}; "
                "lower -fe_num_blocks or -fe_degree"
            )

    @property
    def profile(self) -> bool:
        """True if seconds are collected for each kernel; setting it waits, and may replace the queue."""
        return self._profile

    @profile.setter
    def profile(self, wanted: bool) -> None:
        cl = opencl()
        self.queue.finish()
        if wanted and not self.from_petsc:
            self.queue = cl.CommandQueue(
                self.context, self.cl_device, properties=cl.command_queue_properties.PROFILING_ENABLE
            )
        self._profile = bool(wanted)

    def add_event(self, name: str, event) -> None:
        """Remember a launch of kernel `name`; its seconds are read when asked for."""
        self._events.append((name, event))
        if len(self._events) > 4096:
            self._read_events()

    def add_seconds(self, name: str, seconds: float) -> None:
        """Count one launch of kernel `name` that took `seconds`."""
        entry = self._seconds.setdefault(name, [0, 0.0])
        entry[0] += 1
        entry[1] += seconds

    def seconds(self) -> dict[str, tuple[int, float]]:
        """Launches and seconds on the device for each kernel, while `profile` was on."""
        self._read_events()
        return {name: (calls, total) for name, (calls, total) in self._seconds.items()}

    def _read_events(self) -> None:
        if self._events:
            self.queue.finish()
        for name, event in self._events:
            self.add_seconds(name, 1e-9 * (event.profile.end - event.profile.start))
        self._events.clear()

    @property
    def copy_queue(self):
        """A second in-order queue, for copies that run beside the kernels of the first one."""
        if self._copy_queue is None:
            self._copy_queue = opencl().CommandQueue(self.context, self.cl_device)
        return self._copy_queue

    def copies_done(self) -> None:
        """Wait for the copies of the second queue."""
        if self._copy_queue is not None:
            self._copy_queue.finish()

    def wait_for_copies(self, copied) -> None:
        """What is launched from now on comes after the event `copied` of the second queue. The host does not wait."""
        self.copy_queue.flush()
        if self.queue is not self.copy_queue:
            opencl().enqueue_barrier(self.queue, wait_for=[copied])

    def beside(self):
        """Context manager: launches inside run beside those before, and are done before those after.

        It must not touch what the kernels before write. Without `two_queues` it is launched as everything is.
        """
        before: list = []  # the queue that what comes after waits on, None where there is one alone

        def begin() -> None:
            before.append(self.queue if self.two_queues and not self._profile else None)
            if before[-1] is not None:
                self.queue = self.copy_queue

        def end() -> None:
            first = before.pop()
            if first is None:
                return
            done, self.queue = self.marker(), first
            self.copy_queue.flush()
            opencl().enqueue_barrier(first, wait_for=[done])

        return enclosed(self, begin, end)

    def marker(self):
        """An event that is done once everything launched so far is."""
        return opencl().enqueue_marker(self.queue)

    def finish(self) -> None:
        """Wait until everything launched is done."""
        self.queue.finish()

    def view(self) -> str:
        """Two lines that say what the device is."""
        note = f", {self.note}" if self.note else ""
        precision = "FP64" if self.has_fp64 else "no FP64"
        return (
            f"device: {self.name} ({self.cl_device.platform.name.strip()}, driver {self.driver}){note}\n"
            f"  {'GPU' if self.is_gpu else 'CPU'}, {precision}, local memory {self.local_bytes // 1024} KiB, "
            f"work-groups up to {self.max_work_group}"
        )


def aside(device: Device, call) -> None:
    """Run call() now, and at each repetition of a sequence that is being recorded: what is more than launches."""
    if device.recording is None:
        call()
        return
    calls, device.recording = device.recording, None  # its launches belong to no sequence
    try:
        call()
    finally:
        device.recording = calls
    calls.append(call)


@contextmanager
def enclosed(device: Device, begin, end):
    """Context manager: begin() before, and end() after what is launched inside, at each repetition too."""
    aside(device, begin)
    try:
        yield
    finally:
        aside(device, end)


def is_viennacl(vec) -> bool:
    """True if a PETSc Vec keeps its values in an OpenCL buffer."""
    return "viennacl" in (vec.getType() or "")


@dataclass
class Exchanges:
    """count: exchanges.   waited: seconds in which the host waited for copies and neighbours, kernels maybe running.
    peers, windows, messages: bytes that this rank has sent into the memory of other devices, through shared memory of
    the hosts and by messages.
    """

    count: int = 0
    waited: float = 0.0
    peers: int = 0
    windows: int = 0
    messages: int = 0

    def add_peers(self, nbytes: int) -> None:
        """Count an exchange through the memory of other devices."""
        self.count += 1
        self.peers += nbytes

    def since(self, before: Exchanges) -> Exchanges:
        """Return the exchanges since an earlier count."""
        earlier = asdict(before)
        return Exchanges(**{name: value - earlier[name] for name, value in asdict(self).items()})

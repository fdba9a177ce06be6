"""A kernel of a spec on a device, bound once and launched many times; sequences of launches that are repeated."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from petsc_hdg.codegen import KernelSpec
from petsc_hdg.codegen.preamble import REAL_TYPE
from petsc_hdg.device.build import built_program, built_together, compiles_at_launch, first_launch
from petsc_hdg.device.context import Device
from petsc_hdg.device.platforms import opencl
from petsc_hdg.errors import DeviceError

MOST = 32  # sequences that are kept: as many as the basis of a restarted method has vectors


class Kernel:
    """`kernel(global_size, *arguments)` launches without waiting.

    global_size is the number of work-items that have something to do; it is rounded up to whole work-groups, and with
    0 nothing is launched. With first=n the work-items before n, a multiple of the work-group, are left out: kernels see
    get_global_id(0) from n on (get_group_id(0) from 0).

    waits: whether it may fail at its first use, as it may not be needed.

    Arguments are buffers, None (no buffer), ints (int in C), floats (real), numpy scalars of the type the kernel
    declares, or pyopencl.LocalMemory.
    """

    waits = False

    def __init__(self, spec: KernelSpec, device: Device):
        device.require(spec)
        self.spec = spec
        self.device = device
        self._real = REAL_TYPE[spec.precision]
        self._enqueue = opencl().enqueue_nd_range_kernel
        self._set_number = getattr(opencl().Kernel, "_set_arg_buf", None)
        self._local = (spec.local_size,)
        self._set, self._parts = False, {}
        self.lasting: dict | None = None  # arguments by name that stay, for those who launch it to keep
        self._is_first = compiles_at_launch(device)
        if device.gathered is not None:
            device.gathered.append(self)
        elif not (self._is_first and device.opened.waits and spec.physics in device.opened.physics):
            self._compile()
            device.opened.physics.add(spec.physics)

    def __getattr__(self, name: str):
        """An attribute that compiling sets. A kernel without physics, or whose physics has compiled before, is compiled
        at its first use, on devices that make machine code at the first launch in any case; so are those that are
        built together."""
        if name not in ("program", "entry", "handle", "num_args", "_free", "_names", "_arguments"):
            raise AttributeError(f"a kernel has no '{name}'")
        self._compile()
        return vars(self)[name]

    def _compile(self) -> None:
        spec = self.spec
        self.program, self.entry = built_program(self.device, spec)
        self._free = self.entry.free_kernels.setdefault(spec.name, [])
        try:
            self.handle = self._handle()
        except opencl().Error as error:
            raise DeviceError(f"the program of {', '.join(spec.sources)} has no kernel '{spec.name}'") from error
        self.num_args = self.handle.num_args
        self._names = [argument.name for argument in spec.arguments]
        if self._names and len(self._names) != self.num_args:
            raise DeviceError(
                f"kernel '{spec.name}' takes {self.num_args} arguments, its spec names {len(self._names)}: write its "
                "prototype as `(ARGUMENTS)`"
            )
        info, of_group = opencl().kernel_work_group_info, self.handle.get_work_group_info
        found = (of_group(kind, self.device.cl_device) for kind in (info.LOCAL_MEM_SIZE, info.WORK_GROUP_SIZE))
        self.device.require_room(spec, *found)
        self._arguments: tuple = (None,) * self.num_args

    def compile_without_optimizations(self) -> None:
        """Compile the kernel again without the compiler's optimizations. It runs slower then."""
        self.spec, self._set, self._parts = replace(self.spec, is_optimized=False), False, {}
        self._compile()

    def __call__(self, global_size: int, *arguments, first: int = 0):
        """Launch; returns the pyopencl event, or None where there is nothing to do."""
        if global_size <= first:
            return None
        if self.device.recording is not None:
            return self._twin()._record(self._range(first, global_size), arguments)
        self._set_arguments(arguments)
        return self._launch(*self._range(first, global_size))

    def _record(self, where: tuple, arguments: tuple):
        """Launch, and again where the sequence that is being recorded is repeated, by one call of pyopencl."""
        self._set_arguments(arguments)
        groups, offset = where
        if self.device.profile:
            again = partial(self._launch, *where)
        else:
            again = partial(self._enqueue, self.device.queue, self.handle, groups, self._local, offset)
        again.kernel = self  # kept, or its handle would be used by another
        again.items, again.arguments = groups[0], arguments
        self.device.recording.append(again)
        return self._launch(*where)

    def launch(self, count: int, given: Mapping, first: int = 0):
        """Launch over `count` cells with arguments by their names; what `given` has beside them is for other kernels.

        With first=n the cells before n, a multiple of those of a work-group, are left out. Raises DeviceError for an
        argument that is missing.
        """
        launch = self.spec.launch
        try:
            arguments = tuple(map(given.__getitem__, self._names))
        except KeyError as error:
            raise DeviceError(f"the launch of kernel '{self.spec.name}' does not give its argument {error}") from error
        if launch.row:
            count = given[launch.row] if count else 0
        return self(launch.work_items(count), *arguments, first=launch.work_items(first))

    def bound(self, global_size: int, *arguments, first: int = 0):
        """The same launch as a function of nothing, for arguments that stay: on the host it costs half of a call.

        The kernel may have other arguments only after the function is not needed any more.
        """
        if global_size <= first:
            return _nothing
        self._set_arguments(arguments)
        found = partial(self._launch, *self._range(first, global_size))
        found.kernel = self
        return found

    def _range(self, first: int, last: int) -> tuple:
        """Work-items of whole work-groups from `first` on, and the offset, None for 0."""
        local = self._local[0]
        if first % local:
            raise DeviceError(f"kernel '{self.spec.name}' cannot begin at work-item {first}: groups have {local}")
        return (-(-int(last - first) // local) * local,), (int(first),) if first else None

    def _launch(self, groups: tuple, offset: tuple | None):
        if self._is_first:
            self._is_first = False
            self.device.finish()  # what waits for other ranks does so before other processes wait for this launch
            return first_launch(self.entry, self.spec.name, lambda: self._launch(groups, offset))
        if self.device.profile:
            return self._timed(groups, offset)
        return self._enqueue(self.device.queue, self.handle, groups, self._local, offset)

    def of_part(self, part: int | None) -> Kernel:
        """The same kernel with arguments of its own for each part of a launch, so that they stay when all parts are
        launched again; itself for None."""
        if part is None:
            return self
        if part not in self._parts:
            self._parts[part] = self._twin()
        return self._parts[part]

    def _twin(self) -> Kernel:
        """The same kernel with arguments of its own."""
        handle, other = self._handle(), Kernel.__new__(Kernel)
        other.__dict__.update(self.__dict__, handle=handle, _set=False, _parts={})
        return other

    def _handle(self):
        """OpenCL's kernel, one that is no longer used if there is: making one takes a fifth of a millisecond."""
        return self._free.pop() if self._free else opencl().Kernel(self.program, self.spec.name)

    def __del__(self):
        if "handle" in vars(self):
            self._free.append(self.handle)

    def _set_arguments(self, arguments: tuple) -> None:
        """Hand changed arguments to OpenCL; the tuple kept here keeps their buffers alive until the next launch."""
        if len(arguments) != self.num_args:
            raise DeviceError(f"kernel '{self.spec.name}' takes {self.num_args} arguments, {len(arguments)} were given")
        if self._set and arguments == self._arguments:  # told so in 0.1 us, one by one in 4
            return
        before, known, self._set = self._arguments, self._set, False
        if known:  # what stays need not be handed over again
            for i, (new, old) in enumerate(zip(arguments, before, strict=True)):
                if new is not old and not _same(new, old):
                    self._set_argument(i, new)
        else:
            for i, argument in enumerate(arguments):
                self._set_argument(i, argument)
        self._arguments, self._set = arguments, True

    def _set_argument(self, i: int, argument) -> None:
        """Hand over one argument; pyopencl's own way for numbers takes 8 µs to find out what they are."""
        if isinstance(argument, int):
            argument = np.int32(argument)
        elif isinstance(argument, float):
            argument = self._real(argument)
        elif not isinstance(argument, np.generic):
            self.handle.set_arg(i, argument)
            return
        if self._set_number is not None:
            self._set_number(self.handle, i, argument)
        else:
            self.handle.set_arg(i, argument)

    def _timed(self, groups: tuple, offset: tuple | None):
        queue = self.device.queue
        if not self.device.from_petsc:
            event = self._enqueue(queue, self.handle, groups, self._local, offset)
            self.device.add_event(self.spec.name, event)
            return event
        queue.finish()
        start = time.perf_counter()
        event = self._enqueue(queue, self.handle, groups, self._local, offset)
        queue.finish()
        self.device.add_seconds(self.spec.name, time.perf_counter() - start)
        return event


def kernels_of(specs: Mapping[str, KernelSpec], device: Device) -> dict[str, Kernel]:
    """Kernels by the names of their specs, whose programs a GPU compiles side by side."""
    with built_together(device):
        return {name: Kernel(spec, device) for name, spec in specs.items()}


def _nothing() -> None:
    """A launch of no work-items."""


def _same(a, b) -> bool:
    """True if an argument need not be handed over again although it is another object: an equal number of its type."""
    return type(a) is type(b) and isinstance(a, (int, float)) and a == b


class Recorded:
    """`run(function, *buffers)`: the launches of function(*buffers), which must be the same each time.

    What a function does is remembered for each choice of buffers and queue: launches of Kernels by themselves, anything
    else only where it is wrapped in `aside`. `merged(calls, device)` returns the calls to repeat in their place.
    """

    def __init__(self, device: Device, merged=None):
        self.device, self._merged = device, merged or (lambda calls, device: calls)
        self._kept: dict = {}

    def run(self, function, *buffers) -> None:
        """Launch what function(*buffers) launches; a repeated call replays its launches."""
        key = (self.device.queue, self.device.profile, *map(id, buffers))
        if self.device.recording is not None:  # inside of another sequence, which remembers the launches
            function(*buffers)
        elif key in self._kept:
            for call in self._kept[key][1]:
                call()
        elif len(self._kept) < MOST:
            self._record(key, function, buffers)
        else:
            function(*buffers)

    def _record(self, key, function, buffers) -> None:
        self.device.recording = calls = []
        try:
            function(*buffers)
        finally:
            self.device.recording = None
        # The buffers are kept, or others might get their ids.
        self._kept[key] = buffers, self._merged(calls, self.device)

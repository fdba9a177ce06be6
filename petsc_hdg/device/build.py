"""Programs compiled once per digest of device, driver, options and text, kept on disk and in the process."""

from __future__ import annotations

import hashlib
import os
import re
import time
import warnings
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass

from petsc_hdg import log
from petsc_hdg.codegen.library import kernel_text
from petsc_hdg.device.cache import Entry, warn
from petsc_hdg.device.compilers import Compilers, can_share
from petsc_hdg.device.platforms import opencl
from petsc_hdg.errors import DeviceError, PetscHdgError, PhysicsError
from petsc_hdg.threads import thread_pool, threads_of_rank

MOST_TOGETHER = 8  # programs that are compiled at a time
FEW = 4  # programs from which on other processes help
POCL = "Portable Computing Language"
WITHOUT_HEADER = "-D_OPENCL_H_"  # PoCL's compiler finds its header of built-in functions read already
# LLVM puts a local array that all calls of a function share into the function, and PoCL places the local arrays
# of kernels alone: a function that stays a call reads another array, or LLVM crashes.
LAID_IN = "-Dinline=__attribute__((always_inline))inline"
# clang: "file:line:column: error: text", PoCL: "error: file:line:column: text", NVIDIA: "<kernel>:line:…" as clang
_MESSAGE = re.compile(
    r"^\s*(?:error: )?<?(?P<file>[^<>\n]*?)>?:(?P<line>\d+):(?P<column>\d+): (?:(?:fatal )?error: )?(?P<text>.*)$",
    re.MULTILINE,
)
_DIRECTIVE = re.compile(r'#line (\d+)(?: "(.*)")?')
_USER = "physics: "


def build_options(spec) -> list[str]:
    """Compiler options: the language, nothing that trades accuracy for speed, no warnings, of which NVIDIA's compiler
    prints the number alone, and those of the user in `$PETSC_HDG_BUILD_OPTIONS`."""
    some = ["-cl-single-precision-constant"] if spec.precision == "single" else []
    some += [] if spec.is_optimized else ["-cl-opt-disable"]
    return ["-cl-std=CL1.2", "-w", *some, *os.environ.get("PETSC_HDG_BUILD_OPTIONS", "").split()]


def program_digest(device, spec) -> str:
    """Digest of everything that a binary depends on."""
    cl_device = device.cl_device
    parts = (device.platform, device.name, str(cl_device.version), device.driver, *build_options(spec))
    return hashlib.sha256("\n".join((*parts, spec.digest)).encode()).hexdigest()[:40]


def built_program(device, spec):
    """(pyopencl.Program, Entry) for `spec`: from the process, else from disk, else compiled.

    Processes that want the same program take turns: the first compiles, the others load what it wrote.
    """
    with _quiet():
        program, entry = _program(device, spec)
    if entry.distrusted:
        warn(entry.distrusted)
    return program, entry


@contextmanager
def built_together(device):
    """Context manager: programs of kernels that are made inside are built at its end, on a GPU several at a time, but
    for those that are launched before. Raises what making the kernels would. Not collective."""
    if not device.is_gpu or device.gathered is not None:
        yield
        return
    kernels = device.gathered = []
    try:
        yield
    finally:
        device.gathered = None
    build_programs(device, [kernel.spec for kernel in kernels])
    for kernel in kernels:
        if not kernel.waits:
            kernel.handle  # noqa: B018


def build_programs(device, specs) -> None:
    """Compile the programs of several specs that a GPU does not have yet, several at a time. One that does not compile
    is left out, to fail where it is asked for."""
    missing = {program_digest(device, spec): spec for spec in specs} if device.is_gpu else {}
    missing = {digest: spec for digest, spec in missing.items() if digest not in device.programs}
    if not missing:
        return
    count, compilers = sum(not Entry(digest).has_binary for digest in missing), device.opened.compilers
    if compilers is None or not compilers.are_alive:
        starts = count >= FEW and can_share(device)
        compilers = device.opened.compilers = Compilers(device, threads_of_rank(MOST_TOGETHER) - 1) if starts else None
    specs = list(missing.values())
    if count > 1:  # the longest first
        specs.sort(key=lambda spec: -len(spec.program_source()))
    with _quiet(), thread_pool(threads_of_rank(MOST_TOGETHER)) as threads:
        found = [threads.submit(_program, device, spec, compilers) for spec in specs]
    for made in found:
        if made.exception() is not None and not isinstance(made.exception(), PetscHdgError):
            raise made.exception()


def _program(device, spec, compilers: Compilers | None = None):
    digest = program_digest(device, spec)
    if digest not in device.programs:
        entry = Entry(digest)
        begin, how = time.perf_counter(), "loaded"
        program = _loaded(device, spec, entry)
        if program is None:
            with entry.locked():
                program, how = _loaded(device, spec, entry), "loaded after another process"
                if program is None:
                    with compilers.turn(spec, build_options(spec)) if compilers else nullcontext():
                        program, how = _compiled(device, spec, entry), "compiled"
        log.debug("program %s: %s in %.3g s", spec.name, how, time.perf_counter() - begin)
        device.programs[digest] = (program, entry)
    return device.programs[digest]


def compiles_at_launch(device) -> bool:
    """True if the driver makes machine code where a kernel is launched, for the shape of that launch, and keeps it on
    disk by itself. PoCL does: asked for a binary it compiles all kernels once more, for any shape, which takes three
    quarters of the time, and launches none of them."""
    return device.platform.startswith(POCL) and os.environ.get("POCL_KERNEL_CACHE", "1") != "0"


def first_launch(entry: Entry, kernel: str, launch):
    """The event of a launch that has the driver make machine code: one process makes it, the others load it."""
    made = f"{kernel}.launched"
    if entry.path(made).exists():
        return launch()
    with entry.locked():
        if not entry.path(made).exists():
            event = launch()
            event.wait()
            entry.write(made, b"")
            return event
    return launch()


@contextmanager
def _quiet():
    """Warnings of compilers and of pyopencl are left out, no others; for all threads, so that only one opens this."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", opencl().CompilerWarning)
        warnings.filterwarnings("ignore", "Pre-build attribute access")
        yield


def _loaded(device, spec, entry: Entry):
    kept = entry.read_binary()
    if kept is None:
        return None
    entry.runs(kept)
    cl = opencl()
    try:
        if not compiles_at_launch(device):
            made = cl.Program(device.context, [device.cl_device], [kept])
            return made.build(devices=[device.cl_device], cache_dir=False)
        source = spec.program_source()
        return _built(device, spec, source) if kept == source.encode() else None
    except (cl.Error, _NotBuilt):
        return None


def _compiled(device, spec, entry: Entry):
    cl = opencl()
    source = spec.program_source()
    entry.write("program.cl", source.encode())
    try:
        program = _built(device, spec, source)
    except _NotBuilt as error:
        raise _build_error(device, spec, entry, source, str(error)) from error.__cause__
    binaries = [source.encode()] if compiles_at_launch(device) else program.get_info(cl.program_info.BINARIES)
    if binaries and binaries[0]:
        entry.write_binary(bytes(binaries[0]))
        entry.runs(bytes(binaries[0]))
    return program


def _built(device, spec, source: str):
    """The program of a source; PoCL's with our short declarations of built-in functions, if it takes them."""
    options = build_options(spec)
    if device.platform.startswith(POCL):
        options += [] if "-cl-opt-disable" in options else [LAID_IN]
        try:
            return _build(device, kernel_text("builtins.clh") + source, [*options, WITHOUT_HEADER])
        except _NotBuilt:
            pass  # a mistake in the text, a function that is not declared there, or another PoCL
    return _build(device, source, options)


class _NotBuilt(Exception):
    """The compiler's log of a program that it refuses."""


def _build(device, source: str, options: list[str]):
    cl = opencl()
    program = cl.Program(device.context, source)
    _ = program.int_ptr  # creates the program now: pyopencl's own cache of binaries is then left out
    try:
        return program.build(options, devices=[device.cl_device], cache_dir=False)
    except cl.Error as error:
        raise _NotBuilt(program.get_build_info(device.cl_device, cl.program_build_info.LOG) or str(error)) from error


def _build_error(device, spec, entry: Entry, source: str, log: str) -> DeviceError | PhysicsError:
    kept = f" (log: {entry.path('build.log')})" if entry.write("build.log", log.encode()) else ""
    found = errors(log, source)
    for message in found:
        if message.is_users:
            return PhysicsError(f"{message}{kept}")
    first = found[0] if found else log.strip()[:300]
    return DeviceError(f"kernel '{spec.name}' does not compile on {device.name}: {first}{kept}")


@dataclass(frozen=True)
class Message:
    """An error of the compiler: where, what, and the line it is about."""

    file: str
    line: int
    column: int
    text: str
    quoted: str

    @property
    def is_users(self) -> bool:
        """True if the text is the user's physics."""
        return self.file.startswith(_USER)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}: {self.text}\n    {self.quoted}"


def located_lines(source: str) -> list[tuple[str, int, str]]:
    """(file, line, text) of each line of a program, by its #line directives."""
    located, name, number = [], "program", 1
    for text in source.splitlines():
        directive = _DIRECTIVE.match(text)
        located.append((name, number, text))
        number += 1
        if directive:
            number = int(directive[1])
            name = directive[2] if directive[2] is not None else name
    return located


def errors(log: str, source: str) -> list[Message]:
    """The errors in a build log, in their order.

    A compiler that leaves out the #line directives (NVIDIA's) counts the lines of the whole program.
    """
    located = located_lines(source)
    names = {name for name, _, _ in located}
    by_place = {(name, number): text for name, number, text in located if not _DIRECTIVE.match(text)}
    messages = []
    for match in _MESSAGE.finditer(log):
        if "error: " not in match[0]:
            continue
        name, number = match["file"], int(match["line"])
        if name not in names and number <= len(located):
            name, number, _ = located[number - 1]
        quoted = by_place.get((name, number), "").strip()
        messages.append(Message(name, number, int(match["column"]), match["text"], quoted))
    return messages

"""`python -m petsc_hdg COMMAND`, also installed as `petsc-hdg`."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, suppress
from importlib import import_module

from petsc_hdg.errors import InstallError
from petsc_hdg.run import guarded

COMMANDS = {
    "doctor": "say what works on this machine, and how to get what is missing",
    "check": "compare the solution on 1 ... n ranks, and on all devices",
    "bench": "time products of each scheme beside a copy on the same device",
    "precompile": "compile kernels now, so that the first solve starts at once",
}


def usage() -> str:
    """The commands, one a line."""
    lines = [f"  {name:<12}{text}" for name, text in COMMANDS.items()]
    return "\n".join(["usage: python -m petsc_hdg COMMAND [OPTIONS], where COMMAND is one of", *lines])


def main(arguments: list[str] | None = None) -> int:
    """Run a command; its exit code is 0 if all went well, 2 for a wrong call, else 1."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments or arguments[0] in ("-h", "--help", "help"):
        print(usage())
        return 0 if arguments else 2
    name, rest = arguments[0], arguments[1:]
    if name not in COMMANDS:
        print(f"petsc_hdg: '{name}' is no command\n{usage()}", file=sys.stderr)
        return 2
    if name == "doctor":
        return _doctor(rest)
    try:
        start_petsc(rest)
        command = import_module(f"petsc_hdg.commands.{name}").main
    except Exception as error:  # a broken package raises what it likes
        print(f"error: {InstallError.of(error)}", file=sys.stderr)
        return 1
    return guarded(lambda: command(rest))


def _doctor(arguments: list[str]) -> int:
    """The doctor, who also looks where PETSc, or whatever else, is missing or broken."""
    from petsc_hdg.commands import doctor

    with suppress(Exception), redirect_stderr(io.StringIO()):
        start_petsc(arguments)
    return doctor.main(arguments)


def start_petsc(arguments: list[str]) -> None:
    """Start PETSc with the options of this call."""
    import petsc4py

    petsc4py.init(["petsc_hdg", *arguments, "-options_left", "0"])  # a command has options of its own


if __name__ == "__main__":
    sys.exit(main())

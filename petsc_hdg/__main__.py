"""`python -m petsc_hdg COMMAND`, also installed as `petsc-hdg`."""

from __future__ import annotations

import sys
from importlib import import_module

from petsc_hdg.run import guarded

COMMANDS = {
    "doctor": "say what works on this machine, and how to get what is missing",
    "check": "compare the solution on 1 ... n ranks, and on all devices",
    "bench": "measure kernels against a copy on the same device",
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
    _give_options_to_petsc(rest)
    command = import_module(f"petsc_hdg.commands.{name}").main
    if name == "doctor":  # runs where MPI or PETSc are missing
        return command(rest)
    return guarded(lambda: command(rest))


def _give_options_to_petsc(arguments: list[str]) -> None:
    """Start PETSc with the options of this call; the doctor must also run where PETSc is missing."""
    try:
        import petsc4py
    except ImportError:
        return
    petsc4py.init(["petsc_hdg", *arguments, "-options_left", "0"])  # a command has options of its own


if __name__ == "__main__":
    sys.exit(main())

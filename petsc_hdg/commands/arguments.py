"""Arguments of a command beside options of PETSc and of the package."""

from __future__ import annotations

import argparse
import re

from ..errors import OptionError

PETSC_WORDS = ("citations", "help", "info", "malloc", "version")  # its options without a part before "_"


def own_arguments(parser: argparse.ArgumentParser, arguments: list[str]) -> tuple[argparse.Namespace, list[str]]:
    """What is the command's own, as values, and the rest.

    Options of PETSc and ours have a "_" in their names; one without is an option that the command does not have:
    OptionError.
    """
    given, others = parser.parse_known_args(arguments)
    for argument in others:
        word = re.fullmatch("--?([A-Za-z]+)", argument)
        if word and word[1] not in PETSC_WORDS:
            known = [a.option_strings[0] for a in parser._actions if a.option_strings and a.help != argparse.SUPPRESS]
            raise OptionError(f"{argument} is not an option of {parser.prog}; known are {', '.join(known)}")
    return given, others

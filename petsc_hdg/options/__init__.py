"""The options of petsc_hdg as data, and PETSc's own where they are followed: what reads PETSc's database."""

from .database import (
    any_given,
    defaults_in_database,
    given_numbers,
    given_text,
    given_truth,
    is_given,
    is_number,
    option_name,
    parse,
)
from .options import (
    ASSEMBLED,
    ATTACHED,
    MATRIX_FREE_PCS,
    VARIANTS,
    Options,
    chosen_pmat,
    loses_levels,
    of_one_degree,
    takes_differences,
)

__all__ = [
    "ASSEMBLED",
    "ATTACHED",
    "MATRIX_FREE_PCS",
    "VARIANTS",
    "Options",
    "any_given",
    "chosen_pmat",
    "defaults_in_database",
    "given_numbers",
    "given_text",
    "given_truth",
    "is_given",
    "is_number",
    "loses_levels",
    "of_one_degree",
    "option_name",
    "parse",
    "takes_differences",
]

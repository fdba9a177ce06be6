"""The table of operations on shell matrices (mat_operations.py) on several ranks."""

from mat_operations import check
from petsc4py import PETSc

for case in ("cg assembled", "hdg dbf assembled", "hdg element", "sipg", "poly", "slab"):
    check(case, PETSc.COMM_WORLD)
PETSc.Sys.Print("matrix operations agree")

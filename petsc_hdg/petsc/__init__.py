"""Calls that petsc4py lacks: PETSc's C library, matrices by rows, views, time steppers, lives of objects."""

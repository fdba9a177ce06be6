"""What petsc4py lacks: calls of PETSc's C library, matrices by rows, views, time steppers, lives of objects."""

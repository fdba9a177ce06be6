"""Problems in time by PETSc's TS, and explicit steps."""

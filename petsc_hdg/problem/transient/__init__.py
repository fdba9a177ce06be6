"""Problems in time: PETSc's TS, space-time slabs, explicit steps."""

"""Under mpiexec: numbers of continuous unknowns against those of PETSc's global section."""

from mpi4py import MPI
from test_dofmap import numbers_of_petsc, two_fields

import petsc_hdg as fe
from petsc_hdg.discretizations import scheme
from petsc_hdg.options import Options
from petsc_hdg.run import guarded

COMM = MPI.COMM_WORLD


def main() -> None:
    for faces, simplex, overlap in (((5, 4), True, 0), ((5, 4), False, 1), ((2, 2, 3), True, 1), ((2, 3, 2), False, 0)):
        mesh = fe.Mesh.box(faces, simplex, partition_seed=3, overlap=overlap)
        for backend, degree in (("cg_gpu", 1), ("cg_gpu", 3), ("hdg_gpu", 2)):
            options = Options(backend=backend, degree=degree)
            physics = two_fields(0 if backend == "hdg_gpu" else 1)
            disc = scheme(options)(mesh, physics, options)
            numbers_of_petsc(disc, disc.dofmap)
            assert COMM.allreduce(disc.dofmap.num_ghosts) and COMM.allreduce(disc.dofmap.num_constrained)


if __name__ == "__main__":
    guarded(main)  # a rank that fails ends the others

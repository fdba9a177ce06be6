"""Finite elements on OpenCL devices for people who use PETSc: write the physics once, choose the scheme by an option.

    import petsc_hdg as fe

    mesh = fe.Mesh.from_options()                                  # -dm_plex_filename wing.msh
    physics = fe.Physics({"u": 1}, f0="f0[0] = -1;", f1="for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
                         boundary=[fe.Dirichlet("boundary", "g[0] = 0;")])
    problem = fe.Problem(mesh, physics)                            # -fe_backend cg_gpu -fe_degree 2
    u = problem.solve()                                            # -ksp_type cg -pc_type gamg
    problem.plot("u.png", u)

Call `petsc4py.init(sys.argv)` before, as in any petsc4py program.
"""

from importlib import import_module

from .errors import InstallError, PetscHdgError
from .run import watch_pipe, watch_uncaught

__version__ = "0.1.0"  # read from here by pyproject.toml

# Looked up at first use, so that `import petsc_hdg` neither starts MPI nor PETSc.
_PUBLIC = {
    "AMG": "krylov",
    "Auxiliary": "physics",
    "BiCGStab": "krylov",
    "BoundaryFlux": "physics",
    "CFile": "physics",
    "CG": "krylov",
    "CellBlockJacobi": "operators.cell_jacobi",
    "Chebyshev": "krylov",
    "ChebyshevPC": "krylov",
    "CheckpointError": "errors",
    "Device": "device",
    "DeviceError": "errors",
    "Dirichlet": "physics",
    "FGMRES": "krylov",
    "FacetBlockJacobi": "operators.trace.matrix",
    "Field": "physics",
    "GMRES": "krylov",
    "InstallError": "errors",
    "Mesh": "mesh",
    "MeshError": "errors",
    "Neumann": "physics",
    "OptionError": "errors",
    "Options": "options",
    "PetscHdgError": "errors",
    "Physics": "physics",
    "PhysicsError": "errors",
    "Problem": "problem",
    "Robin": "physics",
    "SolveError": "errors",
    "SpaceTime": "problem",
    "agglomerate": "mesh",
    "coarsen": "mesh",
    "fewer_cells": "mesh",
    "main": "run",
    "polygons": "mesh",
    "polygons_from_file": "mesh",
    "polyhedra": "mesh",
    "rebalance": "mesh",
}

__all__ = sorted(_PUBLIC)


def __getattr__(name: str):
    if name not in _PUBLIC:
        raise AttributeError(f"module 'petsc_hdg' has no attribute '{name}'")
    watch_uncaught()  # around a hook that a script has set meanwhile
    watch_pipe()
    try:
        return getattr(import_module(f"petsc_hdg.{_PUBLIC[name]}"), name)
    except PetscHdgError:
        raise
    except Exception as error:  # a broken package raises what it likes
        raise InstallError.of(error) from error


def __dir__():
    return __all__


watch_uncaught()

"""Finite elements on OpenCL devices for people who use PETSc: write the physics once, choose the scheme by an option.

    import petsc_hdg as fe

    mesh = fe.Mesh.from_options()                                  # -dm_plex_filename wing.msh
    physics = fe.Physics({"u": 1}, f0="f0[0] = -1;", f1="for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
                         boundary=[fe.Dirichlet("boundary", "g[0] = 0;")])
    problem = fe.Problem(mesh, physics)                            # -fe_backend cg_gpu -fe_degree 2
    u = problem.solve()                                            # -ksp_type cg -pc_type gamg
    problem.plot("u.png", u)

Call `petsc4py.init(sys.argv)` before the first problem, as in any petsc4py program. On several GPUs import this package
before that call, so that the vectors of each rank live on its GPU.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .errors import InstallError, PetscHdgError
from .nvml import own_gpu_first
from .run import watch_pipe, watch_uncaught

own_gpu_first()

__version__ = "0.1.0"  # read from here by pyproject.toml

# Looked up at first use, so that `import petsc_hdg` neither starts MPI nor PETSc.
_OF_MODULES = {
    "device": "Device",
    "errors": "CheckpointError DeviceError InstallError MeshError OptionError PetscHdgError PhysicsError SolveError",
    "krylov": "AMG BiCGStab CG Chebyshev ChebyshevPC FGMRES GMRES",
    "mesh": "Mesh agglomerate coarsen fewer_cells polygons polygons_from_file polyhedra rebalance",
    "operators.block_jacobi": "CellBlockJacobi",
    "operators.trace.matrix": "FacetBlockJacobi",
    "options": "Options",
    "physics": "Auxiliary BoundaryFlux CFile Dirichlet Field Neumann Physics Robin",
    "problem": "Problem ShockSensor SpaceTime",
    "run": "main",
}
_PUBLIC = {name: module for module, names in _OF_MODULES.items() for name in names.split()}

if TYPE_CHECKING:  # what type checkers see of _PUBLIC
    from .device import Device as Device
    from .errors import CheckpointError as CheckpointError
    from .errors import DeviceError as DeviceError
    from .errors import InstallError as InstallError
    from .errors import MeshError as MeshError
    from .errors import OptionError as OptionError
    from .errors import PetscHdgError as PetscHdgError
    from .errors import PhysicsError as PhysicsError
    from .errors import SolveError as SolveError
    from .krylov import AMG as AMG
    from .krylov import CG as CG
    from .krylov import FGMRES as FGMRES
    from .krylov import GMRES as GMRES
    from .krylov import BiCGStab as BiCGStab
    from .krylov import Chebyshev as Chebyshev
    from .krylov import ChebyshevPC as ChebyshevPC
    from .mesh import Mesh as Mesh
    from .mesh import agglomerate as agglomerate
    from .mesh import coarsen as coarsen
    from .mesh import fewer_cells as fewer_cells
    from .mesh import polygons as polygons
    from .mesh import polygons_from_file as polygons_from_file
    from .mesh import polyhedra as polyhedra
    from .mesh import rebalance as rebalance
    from .operators.block_jacobi import CellBlockJacobi as CellBlockJacobi
    from .operators.trace.matrix import FacetBlockJacobi as FacetBlockJacobi
    from .options import Options as Options
    from .physics import Auxiliary as Auxiliary
    from .physics import BoundaryFlux as BoundaryFlux
    from .physics import CFile as CFile
    from .physics import Dirichlet as Dirichlet
    from .physics import Field as Field
    from .physics import Neumann as Neumann
    from .physics import Physics as Physics
    from .physics import Robin as Robin
    from .problem import Problem as Problem
    from .problem import ShockSensor as ShockSensor
    from .problem import SpaceTime as SpaceTime
    from .run import main as main

__all__ = sorted(_PUBLIC)


def __getattr__(name: str) -> Any:
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


def __dir__() -> list[str]:
    return __all__


watch_uncaught()

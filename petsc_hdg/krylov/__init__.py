"""Krylov methods on the device, as contexts of PETSc's KSP: -ksp_type python -ksp_python_type petsc_hdg.CG."""

from . import multigrid  # puts itself among the preconditioners
from .amg import AMG
from .bicgstab import BiCGStab
from .cg import CG
from .chebyshev import Chebyshev, ChebyshevPC
from .gmres import FGMRES, GMRES

"""OpenCL C programs as data: sizes, tables, the user's physics and kernel files laid end to end (`KernelSpec`)."""

from petsc_hdg.codegen.library import kernel_folder, kernel_text
from petsc_hdg.codegen.signature import Argument, signature
from petsc_hdg.codegen.spec import KernelSpec, Launch, in_roles

__all__ = ["Argument", "KernelSpec", "Launch", "in_roles", "kernel_folder", "kernel_text", "signature"]

"""OpenCL devices, programs, kernels and arrays: the only package that imports pyopencl."""

from petsc_hdg.device.all_gather import AllGather, gathered
from petsc_hdg.device.arrays import Arrays
from petsc_hdg.device.build import built_together
from petsc_hdg.device.context import Device, aside, enclosed
from petsc_hdg.device.halo import Halo
from petsc_hdg.device.halo_plan import HaloPlan
from petsc_hdg.device.kernel import Kernel, Recorded, kernels_of
from petsc_hdg.device.node import Node
from petsc_hdg.device.vecs import VecAccess

"""Residual and product of a condensed system whose kernels take the shapes of a GPU, or not."""

from __future__ import annotations

import numpy as np

import petsc_hdg as fe
from petsc_hdg.device import Arrays, Device
from petsc_hdg.discretizations import HybridizedDG
from petsc_hdg.discretizations.transposition import DeviceLimits
from petsc_hdg.operators import create_operator


def residual_and_product(mesh, physics, degree: int, is_gpu: bool, **attributes):
    """[residual, product] at the same vectors, and the shape of `condense`; attributes: of the discretization."""
    options = fe.Options(backend="hdg_gpu", degree=degree, pmat="none")
    discretization = HybridizedDG(mesh, physics, options, DeviceLimits(48 * 1024, 1024, is_gpu))
    for name, value in attributes.items():
        setattr(discretization, name, value)
    arrays = Arrays(Device.select("any"))
    operator = create_operator(discretization, arrays)
    operator.compile()
    count = discretization.dofmap.num_owned
    x, residual, product = arrays.to_device(np.linspace(0.1, 1, count)), arrays.zeros(count), arrays.zeros(count)
    operator.residual(x, residual)
    operator.linearize(x)
    operator.action(x, product)
    return [arrays.to_host(b, count) for b in (residual, product)], discretization.shape_of("condense")

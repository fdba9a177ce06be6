"""Vectors of a condensed system whose kernels take the shapes of a GPU, or not."""

from __future__ import annotations

import numpy as np

import petsc_hdg as fe
from petsc_hdg.device import Arrays, Device
from petsc_hdg.discretizations import HybridizedDG
from petsc_hdg.discretizations.transposition import DeviceLimits
from petsc_hdg.operators import CondensedInTime, create_operator


def compiled(mesh, physics, degree: int, is_gpu: bool, options=(), **attributes):
    """Operator of a condensed system; attributes: of the discretization."""
    options = fe.Options(backend="hdg_gpu", degree=degree, pmat="none", **dict(options))
    physics = HybridizedDG.prepared(physics, options, mesh.dim)
    discretization = HybridizedDG(mesh, physics, options, DeviceLimits(48 * 1024, 1024, is_gpu))
    for name, value in attributes.items():
        setattr(discretization, name, value)
    operator = create_operator(discretization, Arrays(Device.select("any")))
    operator.compile()
    return operator


def residual_and_product(mesh, physics, degree: int, is_gpu: bool, **attributes):
    """[residual, product] at the same vectors, and the shape of `condense`; attributes: as in `compiled`."""
    operator = compiled(mesh, physics, degree, is_gpu, **attributes)
    arrays, count = operator.arrays, operator.dofmap.num_owned
    x, residual, product = arrays.to_device(np.linspace(0.1, 1, count)), arrays.zeros(count), arrays.zeros(count)
    operator.residual(x, residual)
    operator.linearize(x)
    operator.action(x, product)
    return [arrays.to_host(b, count) for b in (residual, product)], operator.discretization.shape_of("condense")


def residual_and_step(physics, degree: int, is_gpu: bool, state=None, **attributes):
    """Residual, condensed right-hand side, product of the trace, recovered interior; the same of the matrix' products,
    and of its transpose; the launch shape.   state [component]: values near which the state is.
    """
    options = {"hdg_share": False, "hdg_keep": state is None}
    operator = compiled(fe.Mesh.box((3, 2)), physics, degree, is_gpu, options=options, **attributes)
    assert isinstance(operator, CondensedInTime)
    disc, arrays = operator.discretization, operator.arrays
    count, size = disc.dofmap.num_owned, operator.state_size
    given = np.linspace(0.1, 1, size) if state is None else np.resize(state, size) * (1 + 0.1 * np.sin(np.arange(size)))
    x, rate = (arrays.to_device(values) for values in (given, np.cos(np.arange(size))))
    residual, state = arrays.zeros(size), arrays.zeros(size)
    right_side, product = arrays.zeros(count), arrays.zeros(count)
    operator.residual(x, residual, 0.5, rate)
    operator.linearize(x, 0.5, rate, 3.0)
    operator.eliminate(right_side)
    operator.action(x, product)
    operator.recover_step(right_side, state)
    found = [(residual, size), (right_side, count), (product, count)]
    found = [*(arrays.to_host(buffer, n) for buffer, n in found), arrays.to_host(state, size)[count:]]
    for transposed in (False, True):
        operator.products.compile(transposed)
        operator.linearize(x, 0.5, rate, 3.0)
        operator.products.multiply(rate, state, transposed)
        operator.products.eliminate(rate, right_side, transposed)
        found += [arrays.to_host(state, size), arrays.to_host(right_side, count)]
        operator.products.recover(rate, right_side, state, transposed)
        found.append(arrays.to_host(state, size))
    return found, disc.shape_of("condense")

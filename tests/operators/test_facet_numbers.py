"""Numbers of facets that follow a state, beside numpy: sums by component, least values, which of two states stay."""

from types import SimpleNamespace

import numpy as np
import pytest
from mpi4py import MPI

from petsc_hdg.device import Arrays, Device
from petsc_hdg.operators.facet_numbers import GROWTH, FacetNumbers

CELLS, STRIDE, FACETS, COMPONENTS = 37, 64, 3, 2


class Given(FacetNumbers):
    """Numbers that come from a list of arrays, one an update."""

    def update(self, coming):
        self.write(coming.pop(0))
        self.is_known = True


@pytest.mark.parametrize("first", [True, False], ids=["components first", "components last"])
@pytest.mark.parametrize("precision", ["double", "single"])
def test_numbers_of_two_states(first, precision):
    arrays = Arrays(Device.select("any"), precision)
    mesh = SimpleNamespace(num_cells=CELLS, comm=MPI.COMM_SELF)
    operator = SimpleNamespace(discretization=SimpleNamespace(mesh=mesh, stride=STRIDE), arrays=arrays)
    shape = (COMPONENTS, FACETS, STRIDE) if first else (FACETS, STRIDE, COMPONENTS)
    numbers, rng = Given(operator, shape, first), np.random.default_rng(3)
    draw = [rng.standard_normal(shape).astype(arrays.real) for _ in range(2)]

    def of_cells(values):
        """[component, facet, cell]"""
        return np.abs(values if first else np.moveaxis(values, -1, 0))[:, :, :CELLS].astype(float)

    numbers.write(draw[1])
    before = arrays.to_device(draw[0])
    old, new = of_cells(draw[0]), of_cells(draw[1])
    count = np.full(COMPONENTS, FACETS * CELLS)
    wanted = old.sum(axis=(1, 2)), new.sum(axis=(1, 2)), (new > GROWTH * old).sum(axis=(1, 2)), count
    assert numbers.compared(before) == pytest.approx(np.array(wanted), rel=1e-5)

    numbers.raise_to(np.array([0.5, -0.25]))
    least = np.array([0.5, -0.25]).reshape((-1, 1, 1) if first else (-1,))
    assert np.array_equal(numbers.values(), np.maximum(draw[1], least))

    for larger in (False, True):
        numbers.keeps_larger, numbers.is_known = larger, False
        less, more, far = 1.2 * draw[0], np.where(draw[0] > 1, 2, 0.9) * draw[0], 0.05 * draw[0]
        coming = [values.astype(arrays.real) for values in (draw[0], less, more, far)]
        given = list(coming)
        assert not numbers.serve(coming)
        assert numbers.serve(coming) and np.array_equal(numbers.values(), given[0])
        assert not numbers.serve(coming)
        kept = np.where(np.abs(given[2]) > np.abs(given[0]), given[2], given[0]) if larger else given[2]
        assert np.array_equal(numbers.values(), kept)
        assert not numbers.serve(coming) and np.array_equal(numbers.values(), given[3])

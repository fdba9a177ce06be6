"""Arguments of kernels: parsed from lines, written as a prototype, launches counted by cells."""

import pytest

from petsc_hdg.codegen import Argument, KernelSpec, Launch, signature
from petsc_hdg.codegen.signature import prototype
from petsc_hdg.discretizations.primal import CELLS
from petsc_hdg.errors import DeviceError

LINES = """
    int count: how many
    const real *restrict u [count, DIM]: values
    local real2 *held; real t
"""


def test_lines_give_names_types_shapes_and_roles():
    assert signature(LINES) == (
        Argument("count", "int ", "", "how many"),
        Argument("u", "const real *restrict ", "[count, DIM]", "values"),
        Argument("held", "local real2 *"),
        Argument("t", "real "),
    )


def test_the_prototype_is_opencl_c():
    expected = "int count, __global const real *restrict u, __local real2 *held, real t"
    assert prototype(signature(LINES)) == expected
    spec = KernelSpec("selftest_add", ("selftest.cl",), {"GROUP": 64, "SHIFT": 0}, arguments=signature(LINES))
    assert f"#define ARGUMENTS {expected}\n" in spec.program_source()


def test_programs_of_other_arguments_are_others():
    given = dict(name="selftest_add", sources=("selftest.cl",), macros={"GROUP": 64, "SHIFT": 0})
    digests = {KernelSpec(**given, arguments=a).digest for a in ((), signature("int a"), signature("int b"))}
    assert len(digests) == 3
    assert len({KernelSpec(**given, launch=launch).digest for launch in (Launch(), Launch(8, 64))}) == 1


@pytest.mark.parametrize("line", ["int", "real *", "int a b", "const real *u[3]"])
def test_other_lines_are_refused(line):
    with pytest.raises(DeviceError, match="is no argument of a kernel"):
        signature(line)


def test_names_are_distinct():
    with pytest.raises(DeviceError, match="two arguments of the name u_owned"):
        prototype(CELLS + signature("real *u_owned"))


@pytest.mark.parametrize(("launch", "items"), [(Launch(), 65), (Launch(64, 32), 64), (Launch(4, 7), 119)])
def test_work_items_of_a_launch(launch, items):
    assert launch.work_items(65) == items and launch.work_items(0) == 0

"""The text as OpenCL C 1.2 on a device: it compiles without warnings and gives the interpreter's values."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from agreement import assert_close, jacobian, random_state, residual
from test_builtin_functions import DIFFERENTIABLE, all_in_one
from test_language import BODIES, physics_of

from petsc_hdg.device import build
from petsc_hdg.physics import library

cl = pytest.importorskip("pyopencl")
_KERNELS = Path(__file__).resolve().parents[2] / "kernels_cl"
_KERNEL = """
__kernel void evaluate(__global const real *in, __global real *out)
{
    real u[C], u_t[C], u_x[C * D], du[C], du_t[C], du_x[C * D], a[A + 1], a_x[A * D + 1], x[D], constants[K + 1];
    real f0[C], f1[C * D];
    int at = 0;
    for (int i = 0; i < C; ++i) u[i] = in[at++];
    for (int i = 0; i < C; ++i) u_t[i] = in[at++];
    for (int i = 0; i < C * D; ++i) u_x[i] = in[at++];
    for (int i = 0; i < C; ++i) du[i] = in[at++];
    for (int i = 0; i < C; ++i) du_t[i] = in[at++];
    for (int i = 0; i < C * D; ++i) du_x[i] = in[at++];
    for (int i = 0; i < A; ++i) a[i] = in[at++];
    for (int i = 0; i < A * D; ++i) a_x[i] = in[at++];
    for (int i = 0; i < D; ++i) x[i] = in[at++];
    for (int i = 0; i < K; ++i) constants[i] = in[at++];
    at = 0;
    pw_residual(u, u_t, u_x, a, a_x, (real)0.3, x, constants, f0, f1);
    for (int i = 0; i < C; ++i) out[at++] = f0[i];
    for (int i = 0; i < C * D; ++i) out[at++] = f1[i];
    pw_jacobian(u, u_t, u_x, du, du_t, du_x, a, a_x, (real)0.3, 0, x, constants, f0, f1);
    for (int i = 0; i < C; ++i) out[at++] = f0[i];
    for (int i = 0; i < C * D; ++i) out[at++] = f1[i];
}
"""


@pytest.fixture(scope="module")
def queue():
    """A queue on the first device with double precision."""
    devices = [
        device for platform in cl.get_platforms() for device in platform.get_devices() if device.double_fp_config
    ]
    if not devices:
        pytest.skip("no OpenCL device with double precision")
    return cl.CommandQueue(cl.Context(devices[:1]))


def evaluate(queue, physics, dim: int, state: dict, declared: bool = False) -> np.ndarray:
    """f0, f1, df0, df1 on the device.   declared: whether our file declares built-in functions, PoCL's header none."""
    sizes = {"C": physics.num_components, "D": dim, "A": physics.num_auxiliary, "K": len(physics.constants)}
    macros = "".join(f"#define {name} {value}\n" for name, value in sizes.items())
    texts = [(_KERNELS / name).read_text() for name in ("common.clh", "petsc.clh")]
    source = "#define REAL_BYTES 8\n" + "".join(texts) + physics.device_source(dim) + macros + _KERNEL
    if declared:
        source = (_KERNELS / "builtins.clh").read_text() + source
    options = ["-cl-std=CL1.2", "-Werror", *([build.WITHOUT_HEADER] if declared else [])]
    kernel = cl.Program(queue.context, source).build(options=options).evaluate
    names = ("u", "u_t", "u_x", "du", "du_t", "du_x", "a", "a_x", "x")
    values = np.concatenate([*(np.ravel(state[name]) for name in names), physics.constant_values, [0.0]])
    out = np.full(2 * physics.num_components * (1 + dim), np.nan)
    flags = cl.mem_flags
    given = cl.Buffer(queue.context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=values)
    result = cl.Buffer(queue.context, flags.WRITE_ONLY, out.nbytes)
    kernel(queue, (1,), (1,), given, result)
    cl.enqueue_copy(queue, out, result)
    return out


def expected(physics, dim: int, state: dict) -> np.ndarray:
    """The same by the interpreter."""
    interpreter = physics.interpreter(dim)
    return np.concatenate([residual(interpreter, state), jacobian(interpreter, state)])


def test_every_builtin_function(queue):
    physics, values = all_in_one()
    state = random_state(physics, 1)
    state["u"] = np.array(values + [0.0] * (physics.num_components - len(values)))
    state["du"] = np.abs(state["du"]) + 0.5
    actual, wanted = evaluate(queue, physics, 1, state), expected(physics, 1, state)
    for half in (0, actual.size // 2):
        for number, (name, _) in enumerate(DIFFERENTIABLE):
            assert actual[half + number] == pytest.approx(wanted[half + number], rel=1e-12, abs=1e-13), name
    if queue.context.devices[0].platform.name.startswith(build.POCL):
        np.testing.assert_array_equal(evaluate(queue, physics, 1, state, declared=True), actual)


@pytest.mark.parametrize(
    "name", ["helper in place", "2D array", "names of OpenCL", "switch block", "helper value", "real condition"]
)
def test_constructs(queue, name):
    assert name in BODIES
    physics = physics_of(name)
    state = random_state(physics, 2)
    assert_close(evaluate(queue, physics, 2, state), expected(physics, 2, state))


def test_hyperelasticity(queue):
    physics = library.neo_hookean(3)
    state = random_state(physics, 3)
    assert_close(evaluate(queue, physics, 3, state), expected(physics, 3, state))

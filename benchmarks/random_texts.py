"""Random C texts by gcc, interpreter and device text: `python benchmarks/random_texts.py [-count 2000] [-seed 0]`.

Each batch is one physics of 40 texts: one gcc call for the texts, one for the device text and derivatives; `-device`
also compiles the device text for the OpenCL device, one program a batch. Prints the texts that differ.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests" / "physics"))
from compiled_physics import CompiledPhysics  # noqa: E402
from random_texts import UNKNOWNS, Texts, compiled_texts  # noqa: E402

from petsc_hdg.physics import Physics  # noqa: E402

BATCH = 40
_KERNEL = """
__kernel void all_texts(__global const real *u, __global const real *du, __global real *f0)
{{
    real v[{n}], dv[{n}], zero[{m}] = {{0}}, x[2] = {{u[{n}], u[{n} + 1]}}, g0[{n}], g1[{m}];
    for (int i = 0; i < {n}; ++i) v[i] = u[i], dv[i] = du[i];
    pw_residual(v, zero, zero, zero, zero, 0, x, zero, g0, g1);
    for (int i = 0; i < {n}; ++i) f0[i] = g0[i];
    pw_jacobian(v, zero, zero, dv, zero, zero, zero, zero, 0, 0, x, zero, g0, g1);
    for (int i = 0; i < {n}; ++i) f0[{n} + i] = g0[i];
}}
"""


def on_device(physics: Physics, u: np.ndarray, du: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Values and derivatives of all texts by OpenCL."""
    import pyopencl as cl

    context = cl.create_some_context(interactive=False)
    queue, flags = cl.CommandQueue(context), cl.mem_flags
    text = "#define REAL_BYTES 8\ntypedef double real;\n" + (ROOT / "kernels_cl" / "petsc.clh").read_text()
    text += physics.device_source(2) + _KERNEL.format(n=len(u), m=2 * len(u))
    program = cl.Program(context, text).build(["-cl-std=CL1.2"])
    given = [np.concatenate([u, x]), du]
    given = [cl.Buffer(context, flags.READ_ONLY | flags.COPY_HOST_PTR, hostbuf=array) for array in given]
    found = np.empty(2 * len(u))
    buffer = cl.Buffer(context, flags.WRITE_ONLY, found.nbytes)
    program.all_texts(queue, (1,), None, *given, buffer)
    cl.enqueue_copy(queue, found, buffer)
    return found[: len(u)], found[len(u) :]


def batch(texts: list[str], seed: int, folder: Path, device: bool) -> tuple[set[int], int]:
    """Numbers of the texts that differ, and how many derivatives were compared with differences."""
    fields = {f"v{number}": 1 for number in range(len(texts))}
    physics = Physics(fields, dict(zip(fields, texts, strict=True)))
    run, random = compiled_texts(texts, folder), np.random.default_rng(seed)
    u, du, x = random.uniform(-2, 2, len(texts)), np.zeros(len(texts)), random.uniform(-1, 1, 2)
    du[:UNKNOWNS] = random.uniform(-1, 1, UNKNOWNS)
    zero, flux = 0 * u, np.zeros((len(texts), 2))

    def values(state) -> np.ndarray:
        return np.array([run(number, state, x) for number in range(len(texts))])

    found = []
    for functions in (physics.interpreter(2), CompiledPhysics(physics, 2, folder, flags=("-w",))):
        value = functions.pw_residual(u, zero, flux, None, None, 0.0, x)[0]
        found.append((value, functions.pw_jacobian(u, zero, flux, du, zero, flux, None, None, 0.0, 0.0, x)[0]))
    if device:
        found.append(on_device(physics, u, du, x))
    expected, rate = values(u), found[0][1]
    wide, narrow = ((values(u + h * du) - values(u - h * du)) / (2 * h) for h in (2e-5, 1e-5))
    smooth = np.abs(wide - narrow) < 1e-5 * (1 + np.abs(narrow))
    wrong = smooth & (np.abs(rate - narrow) > 1e-5 * (1 + np.abs(narrow)))
    for value, derivative in found:
        wrong |= ~np.isclose(value, expected, 1e-11, 1e-11) | ~np.isclose(derivative, rate, 1e-9, 1e-9)
    return set(np.flatnonzero(wrong).tolist()), int(smooth.sum())


def main() -> int:
    """Run all batches; 1 if a text differs."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], prefix_chars="-")
    parser.add_argument("-count", type=int, default=2000)
    parser.add_argument("-seed", type=int, default=0)
    parser.add_argument("-device", action="store_true")
    parser.add_argument("-json", help="file for the totals and the texts that differ")
    given = parser.parse_args()
    different, compared = [], 0
    for start in range(0, given.count, BATCH):
        made = Texts(given.seed + start)
        texts = [made.text() for _ in range(BATCH)]
        with tempfile.TemporaryDirectory() as folder:
            wrong, smooth = batch(texts, given.seed + start, Path(folder), given.device)
        for number in sorted(wrong):
            print(f"--- batch seed {given.seed + start}, text {number}\n{texts[number]}", flush=True)
        different += [{"seed": given.seed + start, "text": texts[number]} for number in sorted(wrong)]
        compared += smooth
    print(f"{given.count} texts, {compared} derivatives compared with differences: {len(different)} differ")
    if given.json:
        found = {"texts": given.count, "derivatives": compared, "different": different}
        Path(given.json).write_text(json.dumps(found, indent=1) + "\n")
    return int(bool(different))


if __name__ == "__main__":
    sys.exit(main())

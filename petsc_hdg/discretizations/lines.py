"""Sums along lines of tensor cells: basis functions on a line, and what kernels of several cells at once begin with."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np

from ..codegen import KernelSpec, kernel_text

CPU_BYTES = 64  # a vector register of AVX-512
UNROLL = '_Pragma("unroll")'


_LOOP = re.compile(r"\bfor \(([^;]*;[^;]*;[^;)]*)\)")
_NAME = re.compile(r"[A-Za-z_]\w*")


def cpu_lanes(disc) -> int:
    """Cells that a CPU does at once: those of a vector register, or one where indices in the physics are not those of
    loops, since compilers would keep one array for all cells."""
    text = disc.physics_text
    used = {name for index in re.findall(r"\[([^][]*)\]", text) for name in _NAME.findall(index)}
    loops = {name for header in _LOOP.findall(text) for name in _NAME.findall(header)}
    others = re.sub(r"\bint \w+ = \d+;", "", _LOOP.sub("", text))
    known = loops - set(re.findall(r"\b(\w+) ?(?:[-+*/%]?=[^=]|\+\+|--)", others))
    return CPU_BYTES // disc.real_bytes if used <= known and not re.search(r"\[[^]]*\[", text) else 1


def as_vectors(spec: KernelSpec) -> KernelSpec:
    """The spec for CPUs, whose compilers run a loop over cells as vectors; its sources hold lines.clh."""
    return replace(spec, physics=kernel_text("lanes.clh") + spec.physics)


def tensor_order(nodes: np.ndarray) -> np.ndarray:
    """Places [node] in nodes [node, axis] of a grid, the first axis fastest."""
    return np.lexsort(np.round(nodes, 12).T)


def lagrange(nodes: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Lagrange basis of `nodes` [k] at points [i] on a line: values and derivatives [i, k]."""
    values, slopes = np.ones((2, len(points), len(nodes)))
    for k, node in enumerate(nodes):
        others = np.delete(nodes, k)
        factors = (points[:, None] - others) / (node - others)
        values[:, k] = factors.prod(axis=1)
        rest = [np.delete(factors, m, axis=1).prod(axis=1) / (node - other) for m, other in enumerate(others)]
        slopes[:, k] = np.sum(rest, axis=0)
    return values, slopes

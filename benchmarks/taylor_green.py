"""Dissipation of the Taylor-Green vortex by a Fourier method, beside which examples/taylor_green_hdg.py is compared.

    python benchmarks/taylor_green.py [-reynolds 100] [-points 48] [-end 10] [-dt 0.02]

The incompressible Navier-Stokes equations in a box of period 2π: pseudo-spectral, rotational form, the 2/3 rule, the
classical Runge-Kutta method with exact viscosity. Energy and dissipation per volume at each half unit of time. It needs
numpy alone, and takes cupy where there is one.
"""

from __future__ import annotations

import argparse

try:
    import cupy as xp
except ImportError:
    import numpy as xp


def main() -> None:
    """Print a row for each half unit of time."""
    parser = argparse.ArgumentParser(description=__doc__)
    for name, value in (("reynolds", 100.0), ("points", 48), ("end", 10.0), ("dt", 0.02)):
        parser.add_argument(f"-{name}", type=type(value), default=value)
    given = parser.parse_args()
    n, dt = given.points, given.dt
    wave = xp.fft.fftfreq(n, 1 / n)
    k = xp.stack(xp.meshgrid(wave, wave, wave[: n // 2 + 1], indexing="ij"))
    k[2, ..., -1] = n // 2
    square = (k**2).sum(axis=0)
    inside = (abs(k) < n / 3).all(axis=0)
    inverse = 1 / xp.where(square > 0, square, 1)
    weight = xp.where((k[2] == 0) | (k[2] == n // 2), 1.0, 2.0) / float(n) ** 6  # of both signs of the last number

    def space(v):
        return xp.fft.irfftn(v, s=(n, n, n), axes=(1, 2, 3))

    def rate(v):
        curl = xp.fft.irfftn(1j * xp.cross(k, v, axis=0), s=(n, n, n), axes=(1, 2, 3))
        turned = xp.fft.rfftn(xp.cross(space(v), curl, axis=0), axes=(1, 2, 3)) * inside
        return turned - k * ((k * turned).sum(axis=0) * inverse)

    x = 2 * xp.pi * xp.arange(n) / n
    x, y, z = xp.meshgrid(x, x, x, indexing="ij")
    start = [xp.sin(x) * xp.cos(y) * xp.cos(z), -xp.cos(x) * xp.sin(y) * xp.cos(z), 0 * x]
    v, half = xp.fft.rfftn(xp.stack(start), axes=(1, 2, 3)), xp.exp(-square * dt / (2 * given.reynolds))
    every = max(1, round(0.5 / dt))
    for step in range(round(given.end / dt) + 1):
        if step % every == 0:
            energy = float((weight * (abs(v) ** 2).sum(axis=0)).sum()) / 2
            lost = float((weight * square * (abs(v) ** 2).sum(axis=0)).sum()) / given.reynolds
            print(f"t {step * dt:5.2f}   energy {energy:.5f}   dissipated {lost:.5f}", flush=True)
        a = rate(v)
        b = rate(half * (v + dt / 2 * a))
        c = rate(half * v + dt / 2 * b)
        d = rate(half**2 * v + dt * half * c)
        v = half**2 * v + dt / 6 * (half**2 * a + 2 * half * (b + c) + d)


if __name__ == "__main__":
    main()

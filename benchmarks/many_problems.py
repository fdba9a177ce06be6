"""Memory of a process that makes one problem after another: python benchmarks/many_problems.py [-count 200]

Each scheme has a process of its own, and gives up each of its problems, of 8 by 8 squares and second degree, for the
next one. Resident memory at the end, over that after 20 problems, is to be below 1.1; else the exit status is 1.
"""

import argparse
import subprocess
import sys

import petsc4py

petsc4py.init(sys.argv[:1])

SCHEMES, FIRST, MOST = ("cg_gpu", "hdg_gpu", "sipg_gpu", "poly_gpu"), 20, 1.1


def resident() -> int:
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096


def grown(scheme: str, count: int) -> tuple[int, int]:
    """Resident bytes after FIRST problems, and after all."""
    import petsc_hdg as fe
    from petsc_hdg.physics import library

    mesh, physics = fe.Mesh.box((8, 8)), library.poisson(boundary=[fe.Dirichlet("boundary", 0.0)])
    found = []
    for made in range(1, count + 1):
        problem = fe.Problem(mesh, physics, fe.Options(backend=scheme, degree=2))
        problem.solve()
        if made in (FIRST, count):
            found.append(resident())
    return found[0], found[-1]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("-count", type=int, default=200)
    parser.add_argument("-scheme", choices=SCHEMES)
    given = parser.parse_args()
    if given.scheme:
        first, last = grown(given.scheme, given.count)
        print(f"{given.scheme:<9} {first / 1e6:.0f} MB after {FIRST}, {last / 1e6:.0f} MB after {given.count} problems")
        return int(last > MOST * first)
    call = [sys.executable, __file__, "-count", str(given.count), "-scheme"]
    return max(subprocess.run([*call, scheme], check=False).returncode for scheme in SCHEMES)


if __name__ == "__main__":
    sys.exit(main())

"""A PC of PETSc's multigrid beside its mirror on the device: how far their applications differ."""

from __future__ import annotations

import sys
from unittest import mock

import petsc4py

petsc4py.init(sys.argv if __name__ == "__main__" else None)

from petsc4py import PETSc  # noqa: E402

from petsc_hdg.krylov.matrices import arrays_of  # noqa: E402
from petsc_hdg.krylov.multigrid import MirroredMultigrid  # noqa: E402
from petsc_hdg.krylov.vectors import Vectors  # noqa: E402


def difference(pc: PETSc.PC, precision: str = "double") -> tuple[float, MirroredMultigrid]:
    """Relative difference of M⁻¹ x for a vector x of no structure, the second time; and the mirror. Collective."""
    matrix = pc.getOperators()[0]
    x, expected = matrix.createVecs()
    found = x.duplicate()
    first, last = x.getOwnershipRange()
    x.setArray([((37 * i) % 101) / 101 - 0.4 for i in range(first, last)])
    pc.apply(x, expected)
    vectors = Vectors(arrays_of(pc, x), x.getLocalSize(), pc.comm.tompi4py(), precision)
    with mock.patch.object(MirroredMultigrid, "join"):  # by which small levels on GPUs are no longer PETSc's
        mirror = MirroredMultigrid(pc, vectors)
    for _ in range(2):  # nothing is left of the first
        with vectors.access.read(x) as given, vectors.access.write(found) as out:
            mirror.apply(given, out)
    found.axpy(-1.0, expected)
    return found.norm() / expected.norm(), mirror


def main() -> None:
    """Solve a problem of the options and print the difference: for several ranks."""
    import petsc_hdg as fe

    physics = fe.Physics(
        {"u": 1},
        f0="f0[0] = -1;",
        f1="for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
        boundary=[fe.Dirichlet("boundary", "g[0] = 0;")],
    )
    problem = fe.Problem(fe.Mesh.from_options(), physics)
    problem.solve()
    found = difference(problem.snes.getKSP().getPC())[0]
    if problem.comm.rank == 0:
        print(found)


if __name__ == "__main__":
    main()

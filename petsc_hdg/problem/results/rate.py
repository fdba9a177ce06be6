"""The rate of change of a state, as the semi-discrete equations have it."""

from __future__ import annotations

from petsc4py import PETSc

from ...errors import warn_user

RESTART, MOST = 100, 1000  # of GMRES for the mass matrix, whose condition is that of the sizes of cells
ACCURACY = {"double": 1e-10, "single": 1e-5}
LEFT = {"double": 1e-6, "single": 1e-3}  # part of the residual at rest that a rate may leave


class _Mass:
    """v ↦ F(t, u, v) - F(t, u, 0), from residuals alone, so that the linearization of a run stays."""

    def __init__(self, problem, u: PETSc.Vec, t: float):
        self._problem, self._given = problem, (u, t)
        self.at_rest = problem.create_vec()
        self.residual(problem.create_vec(), self.at_rest)

    def residual(self, v: PETSc.Vec, out: PETSc.Vec) -> None:
        """out = F(t, u, v). Collective."""
        access, (u, t) = self._problem.access, self._given
        with access.read_state(u, v) as (state, rate), access.write(out) as found:
            self._problem.operator.residual(state, found, t, rate)

    def mult(self, _, v: PETSc.Vec, out: PETSc.Vec) -> None:
        """PETSc's MatMult."""
        self.residual(v, out)
        out.axpy(-1.0, self.at_rest)


def rate_of(problem, u: PETSc.Vec, t: float) -> PETSc.Vec | None:
    """u_t of a state, from F(t, u, u_t) = 0 where F is affine in u_t; None, with a warning, where it is not found.
    Collective."""
    mass, rate, left = _Mass(problem, u, t), problem.create_vec(), problem.create_vec()
    ksp, size = PETSc.KSP().create(problem.petsc_comm), mass.at_rest.norm()
    ksp.setOperators(PETSc.Mat().createPython((u.getSizes(), u.getSizes()), mass, comm=problem.petsc_comm))
    ksp.setType("gmres")
    ksp.setGMRESRestart(RESTART)
    ksp.getPC().setType("none")
    ksp.setTolerances(rtol=ACCURACY[problem.options.precision], max_it=MOST)
    ksp.solve(mass.at_rest, rate)
    rate.scale(-1.0)
    mass.residual(rate, left)
    if left.norm() <= LEFT[problem.options.precision] * size:
        return rate
    warn_user(f"the flux is ∫ f1·n alone, since u_t at t = {t:g} is not found from F(t, u, u_t) = 0")
    return None

"""Under mpiexec: `run_sides.py` prints what problems with conditions from one side of facets inside find, as JSON."""

import json

import numpy as np
from petsc4py import PETSc

import petsc_hdg as fe
from petsc_hdg.run import guarded

SCHEMES = {
    "cg_gpu": {},
    "hdg_gpu": {},
    "sipg_gpu": {},
    "poly_gpu": {},
    "polytopes": {"backend": "poly_gpu"},
    "condensed": {"backend": "cg_gpu", "cg_condense": True},
}
FLUXES = ("cg_gpu", "hdg_gpu", "sipg_gpu", "poly_gpu")
FLUX = "for (d = 0; d < dim; ++d) f1[d] = a[0]*u_x[d];"
# Of u = x + y² the flux in x is 1 on the left and 3 on the right of the middle; each side alone gives the jump.
JUMP = {"low": 2.0, "high": -2.0 / 3}  # in parts of that side's flux: a constant, so that both share programs
CURVED = "f0[0] = n[0]*(u_x[0] + a[0]);", "f1[1] = u_x[1];"
LAW = "f0[0] = a[0]*n[0]*u[0]*u_x[0];", "f1[0] = u[0]*u[0];"
STEP = 1e-4  # of differences
REFUSED = {("middle", "all"): "both cells", ("middle", "corner"): "no cell of some", ("left", "high"): "no cell of the"}


def halves(comm=PETSc.COMM_SELF) -> fe.Mesh:
    """The unit square of 4 × 4 × 2 triangles; the line x = ½ is "middle", with regions "low" and "high" beside it."""
    points = np.stack(np.meshgrid(*[np.linspace(0, 1, 5)] * 2, indexing="ij"), axis=-1).reshape(-1, 2)
    number = np.arange(25).reshape(5, 5)
    a, b, c, d = number[:-1, :-1], number[1:, :-1], number[:-1, 1:], number[1:, 1:]
    cells = np.concatenate([np.stack(each, axis=-1).reshape(-1, 3) for each in ((a, b, d), (a, c, d))])
    x, y = points[cells].mean(axis=1).T
    regions = {"low": x < 0.5, "high": x > 0.5, "corner": (x < 0.5) & (y < 0.5), "all": x < 2}
    regions = {name: np.flatnonzero(mask) for name, mask in regions.items()}
    lines = {name: np.stack([number[i, :-1], number[i, 1:]], axis=1) for name, i in (("middle", 2), ("left", 0))}
    if comm.getRank():
        cells, points = cells[:0], points[:0]
        lines, regions = ({name: v[:0] for name, v in each.items()} for each in (lines, regions))
    return fe.Mesh.from_cells(cells, points, lines, regions, cell="triangle", comm=comm, partition_seed=2)


def problem_of(scheme: str, comm, degree: int, boundary, f0="f0[0] = 2*a[0];", **given) -> fe.Problem:
    given |= {"exact": "u[0] = x[0] + x[1]*x[1];", "name": "sides"}
    physics = fe.Physics({"u": 1}, f0, FLUX, boundary=boundary, auxiliary={"k": 1}, **given)
    mesh = halves(comm)
    if scheme == "polytopes":  # two through which the middle goes, and one on each side of it
        mesh = fe.agglomerate(mesh, groups=lambda x: np.where(x[:, 1] < 0.5, x[:, 1] < 0.25, 2 + (x[:, 0] < 0.5)))
    problem = fe.Problem(mesh, physics, degree=degree, **{"backend": scheme, **SCHEMES.get(scheme, {})})
    problem.set_auxiliary("k", {"low": 1.0, "high": 3.0})
    return problem


def transmission(scheme: str, side: str, comm=PETSc.COMM_SELF) -> tuple[float, list[float]]:
    """Error of the solution of a transmission problem, which spaces of degree 2 hold; fluxes through the middle out of
    the low and the high part, and by the gradients there."""
    inside = fe.Robin("middle", "f0[0] = jump*a[0]*u_x[0]*n[0];", side=side)
    boundary = [fe.Dirichlet("boundary", "exact"), inside]
    problem, sides = problem_of(scheme, comm, 2, boundary, constants={"jump": JUMP[side]}), tuple(JUMP)
    u, fluxes = problem.solve(), []
    if scheme in FLUXES:
        fluxes = [float(problem.flux("middle", u, side=s)[0]) for s in sides]
        fluxes += [problem.integral("a[0]*u_x[0]*n[0]", u, over="middle", side=s) for s in sides]
    return float(problem.errors(u)["L2"]), fluxes


def integral(side: str | None, comm=PETSc.COMM_SELF) -> float:
    """∫ n_x (u_x + k) v + u_y v_y on the middle, u = x² y and v = y, from a residual of cg_gpu."""
    values = []
    for boundary in ([fe.Robin("middle", CURVED[0], f1=CURVED[1], side=side)], []):
        problem = problem_of("cg_gpu", comm, 3, boundary)
        u, v = problem.interpolate(lambda x: x[..., 0] ** 2 * x[..., 1]), problem.interpolate(lambda x: x[..., 1])
        f = u.duplicate()
        problem.callbacks.residual(None, u, f)
        values.append(f.dot(v))
    return values[0] - values[1]


def balances(scheme: str, comm=PETSc.COMM_SELF) -> list[float]:
    """What each part's sources and the fluxes through all of its boundary leave of each other; sources beside it, and
    data where the middle meets the exterior."""
    walls = [fe.Dirichlet("boundary", "g[0] = sin(3*x[1]);"), fe.Robin("middle", "f0[0] = -1;")]
    problem = problem_of(scheme, comm, 2, walls, "f0[0] = x[0]*x[1];")
    u = problem.solve()
    through = [sum(float(problem.flux(label, u, side=side)[0]) for label in ("middle", "boundary")) for side in JUMP]
    return [flux - problem.integral("x[0]*x[1]", u, label=side) for flux, side in zip(through, JUMP, strict=True)]


def slope_gap(scheme: str, side: str, comm=PETSc.COMM_SELF) -> float:
    """The Jacobian's product beside a difference of residuals, in parts of its size."""
    condition = fe.Robin("middle", LAW[0], f1=LAW[1], side=side)
    problem = problem_of(scheme, comm, 2, [fe.Dirichlet("left", 0.0), condition])
    x, d = (problem.interpolate(lambda x, w=w: np.sin(w * x[..., 0] + x[..., 1])) for w in (3, 5))
    calls, product, f, g = problem.callbacks, x.duplicate(), x.duplicate(), x.duplicate()
    calls.residual(None, x + STEP * d, f)
    calls.residual(None, x - STEP * d, g)
    calls.linearize(None, x, calls.jacobian, calls.jacobian)
    calls.jacobian.mult(d, product)
    return float(((0.5 / STEP) * (f - g) - product).norm() / product.norm())


def refusals(comm=PETSc.COMM_SELF) -> int:
    """How many of REFUSED are refused on all ranks."""
    mesh, told = halves(comm), 0
    for (label, side), words in REFUSED.items():
        try:
            mesh.boundary_facets(label, inside=True, side=side)
        except fe.MeshError as said:
            told += words in str(said)
    return min(comm.tompi4py().allgather(told))


def found(comm=PETSc.COMM_SELF) -> dict:
    solved = {(scheme, side): transmission(scheme, side, comm) for scheme in SCHEMES for side in JUMP}
    return {
        "errors": [error for error, _ in solved.values()],
        "integrals": [integral("low", comm), integral("high", comm)],
        "gaps": [slope_gap(scheme, side, comm) for scheme in (*FLUXES, "polytopes") for side in JUMP],
        "fluxes": {f"{scheme} {side}": fluxes for (scheme, side), (_, fluxes) in solved.items() if fluxes},
        "balances": [balances(scheme, comm) for scheme in FLUXES],
        "refused": refusals(comm),
    }


if __name__ == "__main__":
    guarded(lambda: PETSc.Sys.Print(json.dumps(found(PETSc.COMM_WORLD))))  # a rank that fails ends the others

"""Under mpiexec: cells dealt to the ranks by cost; names, overlap and solutions stay."""

import numpy as np
from mpi4py import MPI
from petsc4py import PETSc
from shuffled_boxes import MESHES

import petsc_hdg as fe
from petsc_hdg.mesh.mesh_checks import cell_costs
from petsc_hdg.mesh.partition.distribute import overlap_of
from petsc_hdg.mesh.partition.rebalance import balance
from petsc_hdg.problem.results import results
from petsc_hdg.run import guarded

COMM = MPI.COMM_WORLD
PHYSICS = fe.Physics(
    {"u": 1},
    "f0[0] = -1;",
    "for (d = 0; d < dim; ++d) f1[d] = u_x[d];",
    boundary=[fe.Dirichlet("boundary", 0.0)],
    name="load",
)


def steep(x):
    """Costs of cells [cell] for centroids [cell, dim]: ten times as much on the right."""
    return 1 + 9.0 * (x[:, 0] > 0.7)


def loads(mesh, cost) -> float:
    return balance(COMM, cell_costs(mesh, cost))


def by_function() -> None:
    for more in ({}, {"overlap": 1}, {"partition_seed": 3}):
        mesh = fe.Mesh.box((12, 12), comm=COMM, **more)
        found = fe.rebalance(mesh, steep)
        assert COMM.allreduce(found.num_cells) == 288 and found.boundaries == mesh.boundaries
        assert overlap_of(found.dm, COMM) == overlap_of(mesh.dm, COMM), more
        assert loads(found, steep) < 1.1, (more, loads(found, steep))
        assert COMM.size == 1 or loads(fe.rebalance(found, np.ones(found.num_cells)), None) < 1.1, "and back"
        cells = [COMM.allreduce(len(m.boundary_facets("left")[0])) for m in (mesh, found)]
        assert cells == [12, 12]
    plain = loads(fe.Mesh.box((12, 12), comm=COMM), steep)
    assert COMM.size == 1 or plain > 1.3, "there is something to balance"


def by_region() -> None:
    mesh = fe.Mesh.from_file(MESHES / "regions.msh", comm=COMM)
    cost = {name: 1.0 + 4 * k for k, name in enumerate(mesh.cell_regions)}
    found = fe.rebalance(mesh, cost)
    sizes = [[COMM.allreduce(int(m.cell_mask(name).sum())) for name in cost] for m in (mesh, found)]
    assert sizes[0] == sizes[1] and found.cell_regions == mesh.cell_regions
    mine = np.zeros(found.num_cells)
    for name, value in cost.items():
        mine[found.cell_mask(name)] = value
    assert balance(COMM, mine) < 1.5, balance(COMM, mine)


def by_scheme() -> None:
    """hdg_gpu has fewer unknowns beside essential facets; solutions do not depend on where cells are."""
    mesh = fe.Mesh.box((12, 12), comm=COMM)
    for backend in ("hdg_gpu", "sipg_gpu"):
        before = fe.Problem(mesh, PHYSICS, backend=backend, degree=2)
        after = fe.Problem(fe.rebalance(mesh, before.cell_costs), PHYSICS, backend=backend, degree=2)
        numbers = results.balance_numbers(after)
        assert numbers["cost"] < 1.05 and numbers["cells"][1] >= 288 / COMM.size, (backend, numbers)
        assert (len(results.balance_lines(after)) > 0) == (COMM.size > 1)
        is_gpu, after.device.is_gpu = after.device.is_gpu, True
        assert any("fewer GPUs may" in line for line in results.balance_lines(after)) == (COMM.size > 1)
        after.device.is_gpu = is_gpu
        first, last = before.solve(), after.solve()
        assert abs(first.norm() - last.norm()) < 1e-7 * first.norm(), backend


def by_degree() -> None:
    """Polytopes of several degrees: what the plan calls balanced is so for the entries of the matrix."""

    def squares(x):
        return np.floor(x * 6).astype(int) @ [1, 6]

    def steep_degrees(x):
        return np.where(x[:, 0] > 0.66, 4, 1)

    mesh = fe.Mesh.box((12, 12), comm=COMM)
    shares = []
    for cost in (None, lambda x: 1 / np.where(x[:, 0] > 0.66, 15.0, 3.0) ** 2):  # the second one undoes the weights
        parts = fe.agglomerate(mesh, groups=squares, degrees=steep_degrees, cost=cost)
        problem = fe.Problem(parts, PHYSICS, backend="poly_gpu", pmat="aij")
        calls, u = problem.callbacks, problem.create_vec()
        calls.linearize(None, u, calls.jacobian, calls.preconditioning)
        entries = calls.assembled.mat.getInfo(PETSc.Mat.InfoType.LOCAL)["nz_used"]
        shares.append((results.balance_numbers(problem)["cost"], balance(COMM, np.array([entries]))))
    assert all(abs(entries / cost - 1) < 0.15 for cost, entries in shares), shares
    if COMM.size == 4:  # on three ranks the numbers of polytopes happen to be right
        assert shares[0][1] < 1.2 < 1.3 < shares[1][1], shares


def faults() -> None:
    def refused(call, words: str) -> None:
        try:
            call()
        except fe.MeshError as error:
            said = str(error)
        else:
            said = "nothing"
        assert all(words in other for other in COMM.allgather(said)), said

    mesh = fe.Mesh.box((4, 4), comm=COMM)
    refused(lambda: fe.rebalance(fe.agglomerate(mesh, 4), steep), "give `cost` to fe.agglomerate")
    refused(lambda: fe.rebalance(mesh, lambda x: 0 * x[:, 0]), "not a positive number")
    refused(lambda: fe.rebalance(mesh, {"nowhere": 2.0}), "nowhere")
    wrong = np.ones(mesh.num_cells + (COMM.rank == COMM.size - 1))
    refused(lambda: fe.rebalance(mesh, wrong), "Costs of shape")


def main() -> None:
    for part in (by_function, by_region, by_scheme, by_degree, faults):
        part()
    few = fe.rebalance(fe.Mesh.box((1, 1), comm=COMM), steep)  # ranks without cells
    assert COMM.allreduce(few.num_cells) == 2
    PETSc.Sys.Print(f"balanced on {COMM.size} ranks")


if __name__ == "__main__":
    guarded(main)  # a rank that fails ends the others

"""Matrices of polytopic DG agree with the matrix-free product, and so do those of the benchmark's other approach."""

from __future__ import annotations

import numpy as np
import pytest
from bench.poly import flops_of, kernel_bytes, run_part
from bench.triplets import TripletDG
from sample_meshes import DIM, SHAPES, box_mesh
from sample_physics import everything_on_one_field

import petsc_hdg as fe
from petsc_hdg.device import Arrays, Device
from petsc_hdg.discretizations.poly import matrix_specs, team_shape
from petsc_hdg.discretizations.poly.scheme import PolytopicDG
from petsc_hdg.discretizations.transposition import DeviceLimits
from petsc_hdg.mesh.polytopes import Polytopes
from petsc_hdg.operators import AssembledMatrix
from petsc_hdg.operators.poly.operator import PolytopicOperator
from petsc_hdg.options import Options

FACES = {"triangle": (7, 5), "quadrilateral": (6, 5), "tetrahedron": (3, 2, 2), "hexahedron": (4, 3, 3)}
CASES = {  # physics, degrees
    "triangle": ("convection", (3, 0)),
    "quadrilateral": ("everything", (2,)),
    "tetrahedron": ("coupled", (2, 1)),
    "hexahedron": ("diffusion", (1,)),
}
T, SHIFT = 0.4, 1.7
_DEVICES: list = []


def physics_of(name: str) -> fe.Physics:
    if name == "everything":
        return everything_on_one_field()
    if name == "diffusion":
        return fe.Physics(
            {"u": 1},
            f1="for (d = 0; d < dim; ++d) f1[d] = (a[0] + x[0])*u_x[d];",
            boundary=[fe.Dirichlet("left", "g[0] = 1;")],
            auxiliary={"conductivity": fe.Auxiliary(1, "cell")},
            name="diffusion",
        )
    if name in ("convection", "walls"):
        walls = [
            fe.Robin("wall", "f0[0] = u_x[0]*n[0] + x[1]*u[0];", f1="f1[1] = 0.2*u_x[0] - n[0]*u[0];", side="low"),
            fe.Robin("wall", "f0[0] = 0.3*u_x[1] + u_t[0];", side="high"),
        ]
        return fe.Physics(
            {"u": 1},
            f0="f0[0] = u_t[0] + x[1]*u[0]; for (d = 0; d < dim; ++d) f0[0] += (1 + d - x[0])*u_x[d];",
            f1="for (d = 0; d < dim; ++d) f1[d] = 0.5*u_x[d]; f1[0] += 0.3*u_x[1] - x[1]*u[0];",
            boundary=[
                fe.Dirichlet("left", "g[0] = 1;"),
                fe.Robin("right", "f0[0] = x[1]*u[0];", f1="f1[0] = 0.2*u_x[1] - n[0]*u[0];"),
                *(walls if name == "walls" else ()),
            ],
            name=name,
        )
    return fe.Physics(
        {"v": 2},
        f0="for (c = 0; c < 2; ++c) f0[c] = (c + 1)*u[1 - c] - x[0];",
        f1="for (c = 0; c < 2; ++c) for (d = 0; d < dim; ++d) f1[c*dim + d] = (1 + c)*u_x[c*dim + d] + 0.2*u_x[d];",
        boundary=[fe.Dirichlet("left", "g[0] = 1; g[1] = x[0];")],
        name="coupled",
    )


def agglomerated(mesh, count: int, degrees, seed: int = 3):
    """Random polytopes of a rank's cells, those nearest to random points, with some degrees."""
    random = np.random.default_rng(seed + mesh.comm.rank)
    x = mesh.geometry.nodes[mesh.geometry.cell_nodes[: mesh.num_cells]].mean(axis=1)
    centres = x[random.permutation(len(x))[:count]]
    near = np.argmin(((x[:, None] - centres) ** 2).sum(axis=2), axis=1)
    _, of_cell = np.unique(near, return_inverse=True)
    number = int(of_cell.max(initial=-1)) + 1
    mesh.polytopes = Polytopes(of_cell.astype(np.int32), number, random.permutation(np.resize(degrees, number)))
    return mesh


def created(mesh, physics, degree: int, limits=None, precision: str = "double", scheme=PolytopicDG, **more):
    """A PolytopicOperator with random auxiliary fields; limits: of the device that launch shapes are for."""
    if not _DEVICES:
        _DEVICES.append(Device.select("any", mesh.comm))
    chosen = _DEVICES[0]
    settings = {
        "backend": "poly_gpu",
        "check_kernels": False,
        "precision": precision,
        **more,
    }
    limits = limits or DeviceLimits.of(chosen)
    disc = scheme(mesh, physics, Options(degree=degree, **settings), limits)
    operator = PolytopicOperator(disc, Arrays(chosen, precision))
    random = np.random.default_rng(9)
    for field in disc.auxiliary.fields:
        rows = 1 if field.space == "cell" else disc.auxiliary.element.num_basis
        operator.set_auxiliary(field.name, random.uniform(0.5, 1.5, (mesh.num_cells, rows, field.components)))
    return operator


def linearized(operator):
    """Random directions du [2, owned], where the operator is linearized at a random state."""
    disc, arrays = operator.discretization, operator.arrays
    random = np.random.default_rng(5 + disc.mesh.comm.rank)
    values = random.uniform(0.2, 1.0, (4, max(1, disc.dofmap.num_owned)))
    uses_rate = disc.physics.uses_time_derivative
    u, u_t = (arrays.to_device(v) for v in values[:2])
    operator.linearize(u, T, u_t if uses_rate else None, SHIFT)
    return values[2:]


def product(operator, du: np.ndarray) -> np.ndarray:
    """J du without a matrix, on the polytopes."""
    arrays, count = operator.arrays, operator.discretization.dofmap.num_owned
    out = arrays.zeros(max(1, count))
    operator.products.run(arrays.to_device(du), out)
    return arrays.to_host(out, count).astype(float)


def summed(operator, du: np.ndarray) -> np.ndarray:
    """J du by the values and numbers of the matrix."""
    comm, disc = operator.discretization.mesh.comm, operator.discretization
    rows, columns = operator.assembly.blocks_of.numbers()
    values = operator.assembly.values().astype(float)
    count = disc.dofmap.num_owned
    everything = np.concatenate(comm.allgather(du[:count]))
    first = comm.scan(count) - count
    assert len(values) == len(rows) == len(columns)
    return np.bincount(rows - first, values * everything[columns], count)


def apart(one: np.ndarray, two: np.ndarray, comm) -> float:
    """Largest difference over the largest entry. Collective."""
    largest = max(comm.allgather(float(np.abs(two).max(initial=0))))
    assert largest > 0.1
    return max(comm.allgather(float(np.abs(one - two).max(initial=0)))) / largest


def differences(mesh, physics, degree: int, **more) -> float:
    operator = created(mesh, physics, degree, **more)
    comm = mesh.comm
    return max([apart(summed(operator, du), product(operator, du), comm) for du in linearized(operator)])


@pytest.mark.parametrize("cell", SHAPES)
def test_matrices_give_the_product(cell):
    name, degrees = CASES[cell]
    mesh = agglomerated(box_mesh(cell, FACES[cell]), 9, degrees)
    assert mesh.dim == DIM[cell] and mesh.polytopes.count > 5
    for scheme in (PolytopicDG, TripletDG):
        assert differences(mesh, physics_of(name), max(degrees), scheme=scheme) < 1e-12, scheme


def test_conditions_between_cells_and_inside_polytopes():
    """The wall is the boundary of some polytopes and goes through others."""
    mesh = agglomerated(box_mesh("quadrilateral", FACES["quadrilateral"], wall=True), 9, (2, 1))
    operator = created(mesh, physics_of("walls"), 2)
    near, (cells, facets) = operator.discretization.fine.neighbours, mesh.boundary_facets("wall", True, "low")
    assert {-1, 1} == set(np.sign(near.neighbour[cells, facets]))
    assert differences(mesh, physics_of("walls"), 2) < 1e-12


def test_a_gradient_that_conditions_alone_read():
    mesh = agglomerated(box_mesh("triangle", FACES["triangle"]), 9, (2,))
    oblique = fe.Robin("right", "f0[0] = 0.3*u_x[0] + u[0];")
    physics = fe.Physics({"u": 1}, "f0[0] = u[0] - x[0];", boundary=[oblique])
    assert differences(mesh, physics, 2) < 1e-12


def test_matrices_in_single_precision_give_the_product():
    mesh = agglomerated(box_mesh("triangle", FACES["triangle"]), 9, (2,))
    assert 1e-12 < differences(mesh, physics_of("diffusion"), 2, precision="single") < 1e-4


@pytest.mark.parametrize(
    ("cell", "degrees", "name"),
    [("triangle", (3, 0), "convection"), ("quadrilateral", (2,), "everything"), ("quadrilateral", (2,), "walls")],
)
def test_products_are_those_on_the_base_cells(cell, degrees, name):
    mesh = agglomerated(box_mesh(cell, FACES[cell], wall=name == "walls"), 9, degrees)
    operator = created(mesh, physics_of(name), max(degrees))
    du = linearized(operator)[0]
    arrays, fine = operator.arrays, operator.fine
    on_cells, out = arrays.zeros(fine.dofmap.num_owned), arrays.zeros(operator.dofmap.num_owned)
    fine.action(operator.expand(arrays.to_device(du)), on_cells)
    operator.restrict(on_cells, out)
    expected = arrays.to_host(out, operator.dofmap.num_owned).astype(float)
    assert apart(product(operator, du), expected, mesh.comm) < 1e-12


def test_launch_shapes_of_gpus_and_panels_of_large_blocks(monkeypatch):
    monkeypatch.setattr(team_shape, "MOST_PANEL", 2)
    mesh = agglomerated(box_mesh("triangle", (6, 5)), 4, (1,))
    operator = created(mesh, physics_of("diffusion"), 1, limits=DeviceLimits(48 << 10, 256, True))
    du = linearized(operator)[0]
    assert apart(summed(operator, du), product(operator, du), mesh.comm) < 1e-12
    specs = [kernel.spec for kernel in operator.assembly.all_kernels().values()]
    assert len(specs) == 2
    for spec in specs:
        assert spec.macros["ROWS"] == 3 and spec.macros["PANELS"] == 2 and spec.macros["SPLIT"] > 1
        assert spec.macros["UNROLL"] == '_Pragma("unroll")' and spec.macros["TABLE"] == "__global"


@pytest.mark.full("triangle-5")
@pytest.mark.parametrize(
    ("cell", "degree", "name", "reals"),
    [("triangle", 5, "convection", (80, 20)), ("tetrahedron", 2, "everything", (20,))],
)
def test_products_of_warps_are_those_of_work_items(cell, degree, name, reals, monkeypatch):
    mesh = agglomerated(box_mesh(cell, FACES[cell]), 5, (degree, 1))
    operator = created(mesh, physics_of(name), degree)
    linearized(operator)
    plain = operator.assembly.values()
    monkeypatch.setattr(matrix_specs, "EMULATED", True)
    monkeypatch.setattr(team_shape, "LEAST_ROWS", {"volume": 1, "facets": 1})
    for most in reals:
        monkeypatch.setattr(team_shape, "MOST_REALS", {"volume": most, "facets": most})
        operator = created(mesh, physics_of(name), degree, limits=DeviceLimits(48 << 10, 256, True))
        linearized(operator)
        found = operator.assembly.values()
        specs = [kernel.spec for kernel in operator.assembly.all_kernels().values()]
        assert any((spec.macros.get("WARPS", 0) > 1) == (most == 20) for spec in specs if "BLOCKS" in spec.macros)
        assert np.abs(found - plain).max() < 1e-13 * np.abs(plain).max()


def test_rows_are_those_of_a_csr_matrix_and_diagonal_blocks_theirs():
    mesh = agglomerated(box_mesh("triangle", FACES["triangle"]), 9, (3, 0))
    operator = created(mesh, physics_of("convection"), 3)
    linearized(operator)
    (start, columns), values = operator.assembly.blocks_of.csr(), operator.assembly.values()
    count = operator.discretization.dofmap.num_owned
    matrix = np.zeros((count, count))
    for row in range(count):
        mine = columns[start[row] : start[row + 1]]
        assert (np.diff(mine) > 0).all()
        matrix[row, mine] = values[start[row] : start[row + 1]]
    assert start[-1] == len(values) == operator.assembly.blocks_of.matrix().size
    out = operator.arrays.zeros(count)
    operator.diagonal(out)
    np.testing.assert_array_equal(operator.arrays.to_host(out, count), np.diagonal(matrix))
    starts = operator.assembly.blocks_of.diagonal_starts
    flat = operator.arrays.to_host(operator.assembly.blocks(), starts[-1])
    first = operator.discretization.numbering.first
    for k in range(mesh.polytopes.count):
        block = flat[starts[k] : starts[k + 1]]
        np.testing.assert_array_equal(matrix[first[k] : first[k + 1], first[k] : first[k + 1]].ravel(), block)


def test_flops_of_one_cell_each():
    operator = created(box_mesh("triangle", (2, 2), amplitude=0.0), physics_of("diffusion"), 1)
    cells, points = 8, operator.discretization.quadrature.num_points
    sides = 16 + 2  # of 8 facets between cells, and on the side with a condition
    on_facet = operator.discretization.fine.facet_rules[0][0].num_points
    assert operator.assembly.flops("volume") == cells * points * 2 * 2 * 9
    assert operator.assembly.flops("facets") == on_facet * 2 * 2 * (sides * 9 + 16 * 9)
    assert flops_of(operator, "boundary") == on_facet * 2 * 2 * 2 * 9
    assert kernel_bytes(operator, "volume") == 8 * (cells * 9) + 4 * 4 * cells + 8 * 2 * 9


def test_the_boundary_alone_adds_to_blocks_of_polytopes_there():
    operator = created(agglomerated(box_mesh("triangle", FACES["triangle"]), 9, (2,)), physics_of("diffusion"), 2)
    linearized(operator)
    assembly, blocks = operator.assembly, operator.assembly.blocks_of
    before = assembly.values()
    run_part(operator, "boundary")
    work = assembly._work("matrix")
    change = operator.arrays.to_host(work.out, work.layout.size) - before
    rows, columns = blocks.numbers()
    polytope = np.repeat(np.arange(blocks.count), blocks.unknowns[: blocks.count])
    touched = np.unique(polytope[rows[change != 0]])
    assert np.array_equal(touched, np.unique(blocks.own[blocks.other < 0]))
    assert (polytope[rows] == polytope[columns])[change != 0].all()


def assembled_apart(mesh) -> float:
    """Difference of products by AIJ, filled twice, from products without a matrix. Collective."""
    operator = created(mesh, physics_of("diffusion"), 2)
    count, comm = operator.discretization.dofmap.num_owned, mesh.comm
    du = linearized(operator)[0]
    assembled = AssembledMatrix(operator, (count, comm.allreduce(count)), comm, "standard")
    assembled.update()
    assembled.update()
    x, y = assembled.mat.createVecs()
    x.array = du[:count]
    assembled.mat.mult(x, y)
    assert assembled.mat.getType().endswith("aij") and assembled.mat.getBlockSize() == 6
    return apart(y.array, product(operator, du), comm)


def test_aij_gives_the_product():
    assert assembled_apart(agglomerated(box_mesh("triangle", FACES["triangle"]), 9, (2,))) < 1e-12


def test_ranks_give_their_rows(mpirun):
    code = """
import sys
sys.path[:0] = ["tests", "tests/operators", "benchmarks"]
from petsc4py import PETSc
from test_poly_matrices import FACES, agglomerated, assembled_apart, box_mesh, differences, physics_of
squares = (("quadrilateral", name, (2,)) for name in ("everything", "walls"))
for cell, name, degrees in (("triangle", "convection", (3, 0)), *squares):
    settings = {"comm": PETSc.COMM_WORLD, "partition_seed": 2, "wall": name == "walls"}
    mesh = agglomerated(box_mesh(cell, FACES[cell], **settings), 4, degrees)
    assert differences(mesh, physics_of(name), max(degrees)) < 1e-12, cell
mesh = agglomerated(box_mesh("triangle", FACES["triangle"], comm=PETSc.COMM_WORLD, partition_seed=2), 4, (2,))
assert assembled_apart(mesh) < 1e-12
"""
    mpirun(3, "-c", code)

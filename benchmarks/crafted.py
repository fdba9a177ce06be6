"""Crafted inputs: valid ones with one or two odd things that bytes and words changed at random do not hit."""

from __future__ import annotations

import itertools
import json
import random
import struct
from pathlib import Path

# Meshes ----------------------------------------------------------------------------------------------------------

CORNERS = {"quad": (0, 1, 3, 2), "hex": (0, 1, 3, 2, 4, 5, 7, 6)}  # x first
TYPES = {("simplex", 1): 1, ("simplex", 2): 2, ("simplex", 3): 4, ("cube", 1): 1, ("cube", 2): 3, ("cube", 3): 5}
NAMES = ("wall", "celltype", "depth", "Cell Sets", "Face Sets", "marker", "", "ä b", "2", "x" * 200, "a\\n")
TAGS = ("in turn", "backwards", "sparse", "wide", "from 0", "below 0", "above 2³¹", "twice")
HEADS = (
    b"\xef\xbb\xbf",
    b"$Comments\nby hand\n$EndComments\n",
    b"\n",
    b"\xef\xbb\xbf$Comments\n$Nodes\n$EndComments\n",
)


def mesh(rng: random.Random) -> bytes:
    """A Gmsh file of a few cells: MSH 4.1 or 2.2 as text, or 2.2 in binary."""
    kind, dim = rng.choice(("simplex", "cube")), rng.choice((2, 2, 3))
    points, cells = _box(kind, dim, rng.choice(((1, 1, 1), (2, 1, 1), (3, 2, 1))))
    cells = cells[: rng.choice((1, 2, 1000, 1000))]
    size = len(cells[0])
    facets = [cells[0][: size // 2 if kind == "cube" else dim]]
    tags, groups, name = list(range(1, len(points) + 1)), [1, 2], rng.choice(("wall",) * 9 + NAMES)
    odd = rng.sample(
        ("tags", "unused", "doubled", "twice", "turned", "collapsed", "scale", "group", "none", "flat"),
        rng.choice((0, 1, 1, 2)),
    )
    if "unused" in odd or "doubled" in odd:
        points += [list(rng.choice(points)) for _ in range(rng.choice((1, 5)))]
        tags = list(range(1, len(points) + 1))
    if "doubled" in odd:
        cells[-1][rng.randrange(size)] = len(points) - 1
    if "twice" in odd:
        cells.append(rng.choice((list, lambda cell: cell[::-1]))(rng.choice(cells)))
    if "turned" in odd:
        rng.choice(cells).reverse()
    if "collapsed" in odd:
        cell = rng.choice(cells)
        cell[0] = cell[rng.randrange(1, size)]
    if "scale" in odd:
        factor, shift = rng.choice(((1e-9, 0), (1e9, 0), (1, 1e5), (1e-160, 0), (1e160, 0), (0, 0), (1e400, 0)))
        points = [[factor * x + shift for x in point] for point in points]
    if "flat" in odd:  # all nodes in one plane, or one node far away
        points = [[*point[: dim - 1], 0.5 * point[0], *point[dim:]] for point in points]
    if "group" in odd:
        groups = rng.choice(([0, 0], [1, 1], [-1, 2], [2147483647, 2], [1, 0]))
    if "none" in odd:
        cells, facets = rng.choice(((cells, []), ([], facets), ([], [])))
    if "tags" in odd:
        tags = _tags(rng.choice(TAGS), len(points), rng)
    blocks = [(TYPES["simplex" if kind == "simplex" else "cube", dim - 1], groups[1], facets)]
    blocks.append((TYPES[kind, dim], groups[0], cells))
    write = rng.choice((_msh4, lambda *given: _msh2(*given, binary=False), lambda *given: _msh2(*given, binary=True)))
    head = rng.choice((b"",) * 6 + HEADS)
    return head + write(dim, points, tags, blocks, {(dim - 1, groups[1]): name, (dim, groups[0]): "inside"})


def _box(kind: str, dim: int, counts) -> tuple[list, list]:
    """Points of a box of unit squares or cubes, and its cells: these, or the simplices along their paths of edges."""
    sides = [count + 1 for count in counts[:dim]]
    places = list(itertools.product(*map(range, sides)))
    number = {place: k for k, place in enumerate(places)}
    points = [[float(x) for x in place] + [0.0] * (3 - dim) for place in places]

    def at(place, corner) -> int:
        return number[tuple(x + y for x, y in zip(place, corner, strict=True))]

    cells = []
    for place in itertools.product(*map(range, counts[:dim])):
        if kind == "cube":
            corners = [corner[::-1] for corner in itertools.product((0, 1), repeat=dim)]
            cells.append([at(place, corners[k]) for k in CORNERS["quad" if dim == 2 else "hex"]])
            continue
        for path in itertools.permutations(range(dim)):  # every second one is turned over
            steps = [[int(d in path[:k]) for d in range(dim)] for k in range(dim + 1)]
            cells.append([at(place, step) for step in steps])
    return points, cells


def _tags(how: str, count: int, rng) -> list[int]:
    first = {"from 0": 0, "below 0": -2, "above 2³¹": 2**31 - 2}.get(how, 1)
    tags = list(range(first, first + count))
    if how in ("sparse", "wide"):
        return rng.sample(range(1, 10**6 if how == "sparse" else 1_600_000_000), count)
    return tags[::-1] if how == "backwards" else [tags[0], *tags[:-1]] if how == "twice" else tags


def _names(names: dict) -> bytes:
    lines = "".join(f'{dim} {tag} "{name}"\n' for (dim, tag), name in names.items())
    return f"$PhysicalNames\n{len(names)}\n{lines}$EndPhysicalNames\n".encode()


def _msh2(dim, points, tags, blocks, names, binary) -> bytes:
    elements = [(kind, group, [tags[k] for k in nodes]) for kind, group, rows in blocks for nodes in rows]
    if binary:
        head = b"2.2 1 8\n" + struct.pack("<i", 1) + b"\n"
        whole = [tag & 0xFFFFFFFF for tag in tags]
        nodes = b"".join(struct.pack("<I3d", tag, *x) for tag, x in zip(whole, points, strict=True)) + b"\n"
        rows = (
            struct.pack("<6i", kind, 1, 2, k + 1, group, group)
            + struct.pack(f"<{len(e)}I", *(n & 0xFFFFFFFF for n in e))
            for k, (kind, group, e) in enumerate(elements)
        )
        listed = b"".join(rows) + b"\n"
    else:
        head = b"2.2 0 8\n"
        nodes = "".join(f"{tag} {x!r} {y!r} {z!r}\n" for tag, (x, y, z) in zip(tags, points, strict=True)).encode()
        rows = (
            f"{k + 1} {kind} 2 {group} {group} {' '.join(map(str, e))}\n" for k, (kind, group, e) in enumerate(elements)
        )
        listed = "".join(rows).encode()
    return (
        b"$MeshFormat\n" + head + b"$EndMeshFormat\n" + _names(names)
        + b"$Nodes\n%d\n" % len(points) + nodes + b"$EndNodes\n"
        + b"$Elements\n%d\n" % len(elements) + listed + b"$EndElements\n"
    )  # fmt: skip


def _msh4(dim, points, tags, blocks, names) -> bytes:
    counts = [0, 0, 0, 0]
    counts[dim - 1] = counts[dim] = 1
    entities = "".join(f"1 0 0 0 1 1 1 1 {group} 0\n" for _, group, _ in blocks)
    nodes = "\n".join(map(str, tags)) + "\n" + "".join(f"{x!r} {y!r} {z!r}\n" for x, y, z in points)
    lines, total = "", 0
    for k, (kind, _, rows) in enumerate(blocks):
        lines += f"{dim - 1 + k} 1 {kind} {len(rows)}\n"
        for nodes_of in rows:
            total += 1
            lines += f"{total} {' '.join(str(tags[n]) for n in nodes_of)}\n"
    text = f"$Entities\n{' '.join(map(str, counts))}\n{entities}$EndEntities\n"
    text += f"$Nodes\n1 {len(points)} {min(tags)} {max(tags)}\n{dim} 1 0 {len(points)}\n{nodes}$EndNodes\n"
    text += f"$Elements\n{len(blocks)} {total} 1 {total}\n{lines}$EndElements\n"
    return b"$MeshFormat\n4.1 0 8\n$EndMeshFormat\n" + _names(names) + text.encode()


# Physics ---------------------------------------------------------------------------------------------------------

COUNTS = (20, 150, 300, 1000, 5000)
NUMBERS = """010 -017 0x1F 0x1p-2 1e400 1e-400 1u 12L 0.1f 0.1L 'a' 1. .5e1 09 0b11 4294967296 2147483647 -2147483648
1'000 1e 0x 1e308*10 1.0e+5 0/1.0 NAN INFINITY""".split()
KINDS = ("unsigned", "float", "short", "char", "long", "size_t", "bool", "long double", "int", "PetscInt", "double")
DEEP = {
    "sum": lambda n, rng: "f0[0] = " + rng.choice("+-").join(f"{k}*u[0]*x[{k % 2}]" for k in range(n)),
    "product": lambda n, rng: "f0[0] = u[0]" + "*(1.0 + 1e-5*x[0])" * n,
    "parentheses": lambda n, rng: "f0[0] = " + "(" * n + "u[0]" + ")" * n,
    "signs": lambda n, rng: "f0[0] = " + f"{rng.choice('-+!')} " * n + "u[0]",
    "nested sums": lambda n, rng: "f0[0] = " + "(u[0] + " * n + "x[0]" + ")" * n,
    "nested calls": lambda n, rng: "f0[0] = " + "sin(" * n + "u[0]" + ")" * n,
    "choices": lambda n, rng: "f0[0] = " + "x[0] > 0.5 ? u[0] : " * n + "1.0",
    "branches": lambda n, rng: "if (x[0] > 0) " * n + "f0[0] = u[0]",
    "else": lambda n, rng: "".join(f"if (x[0] > {k + 1}) f0[0] = {k}; else " for k in range(n)) + "f0[0] = u[0]",
    "blocks": lambda n, rng: "{" * n + "f0[0] = u[0];" + "}" * n,
    "statements": lambda n, rng: "PetscReal s = 0;\n" + "s += u[0]*x[0];\n" * n + "f0[0] = s",
    "names": lambda n, rng: "".join(f"PetscReal v{k} = {k}*u[0];\n" for k in range(n)) + f"f0[0] = v{n - 1}",
    "macros": lambda n, rng: "#define a0 (u[0] + 2)\n" + "".join(
        f"#define a{k + 1} {'(a{0} + a{0})' if n < 1000 and n % 100 else 'a{0}'}\n".format(k) for k in range(n % 97)
    ) + f"f0[0] = a{n % 97}",
    "comments": lambda n, rng: "f0[0] = u[0] " + "/* */ + 0 // x\n" * n,
    "loops": lambda n, rng: f"PetscReal s = 0; for (PetscInt i = 0; i < {n}; ++i) s += i*u[0]; f0[0] = s",
}  # fmt: skip
# Texts without one value by C: refused, or any number, and an end of the run that is neither the process's nor never.
UNDEFINED = r"""f0[0] = u[(int)(1e9*x[0])];
f0[(int)(1e9*x[0])] = u[0];
f0[0] = u[-1] + x[2];
f0[0] = x[7];
PetscReal c[3] = {1}; f0[0] = c[(PetscInt)(9*x[0])];
PetscReal c[1000000000]; f0[0] = c[5];
while (1) f0[0] += u[0];
for (;;) ;
do { f0[0] += 1; } while (u[0] < 9);
while (x[0] > 0) { }
PetscReal v = u[0]; while (v < 2) v *= 1.0;
for (PetscInt i = 0; i < 3; ++i) i = 0;
a: goto a;
for (PetscInt i = 0; i < 200000; ++i) f0[0] += 1e-9;
for (d = 0; d >= 0; ++d) f0[0] += d;
f0[0] = 1/0;
f0[0] = 7 % (PetscInt)0;
PetscInt k = x[0] > 0; f0[0] = 3/(k - 1) + 3 % (k - 1);
PetscInt k = x[0] > 0; f0[0] = u[0] + (3 % (k - 1) > 0 ? 1.0 : 2.0);
f0[0] = 1 << 40;
f0[0] = u[0] + (1 >> -1);
PetscInt k = 33; f0[0] = 1 << k;
f0[0] = -1 << 3;
f0[0] = 2147483647 + 1;
PetscInt k = 65536; f0[0] = k*k;
f0[0] = (PetscInt)(1e300*x[0]);
f0[0] = (PetscInt)(x[0]/0.0);
PetscReal v; f0[0] = v;
f0[0] = (-2147483647 - 1)/(0 - 1);
f0[0] = abs(-2147483647 - 1);
PetscInt i = 0; f0[i++] = i++ + u[0];
#include "/etc/passwd"
#pragma omp parallel
exit(1);
system("true");
abort(); f0[0] = u[0];
*(int *)0 = 1;
f0[0] = *(u + 1000000);
f0 = 0; f0[0] = 1;
printf("%s");
__asm__("hlt");
f0[0] = sqrt(-u[0]);
f0[0] = log(u[0] - 9);
f0[0] = u[0] - 1e400;
f0[0] = exp(1000*(1 + x[0]));
f0[0] = u[0]/0.0;
f0[0] = pow(-1.5, u[0]);
f0[0] = u[0]; return; f0[0] = 1/0;""".split("\n")
ODD = ("f0[0] = u[0]\\\n;", "f0[0] = u[0];\r\n", "f0[0] = u[0];\0", "", "f0[0] = u[0]; // ??/\n;", ";" * 3000)
ODD += ("#if 0\nf0[0] = 1;\n#else\nf0[0] = u[0];\n#endif", "#define f0 u\nf0[0] = 1;", "#define a f0\na[0] = u[0];")
ODD += (
    f"PetscReal {'v' * 5000} = 2; f0[0] = {'v' * 5000};",
    *r"""f0[0] = u[0]; /* no end
f0[0] = \u0075[0];
f0[0] = ü;
PetscReal sin = 2; f0[0] = sin;
PetscReal u = 1; f0[0] = u;
PetscInt for_ = 2, *p = &for_; f0[0] = *p;
f0[0] = (1, u[0]);
f0[0] = -7/2 + -7 % 3;
f0[0] = 1 << 4 >> 1 & 6 | 9 ^ 3;
f0[0] = u[0] > 0 > 0 == 0;
f0[0] = sizeof(PetscReal);
f0[0] = 3/2*u[0];""".split("\n"),
)


def physics(rng: random.Random) -> tuple[str, bool]:
    """The text of f0, and whether it has one value by C."""
    pick = rng.randrange(5)
    if pick < 2:
        name = rng.choice(tuple(DEEP))
        return DEEP[name](rng.choice(COUNTS), rng) + ";", True
    if pick == 2:
        a, b, kind = rng.choice(NUMBERS), rng.choice((*NUMBERS, "2", "x[0]")), rng.choice(KINDS)
        sign = rng.choice("+-*")
        texts = (f"f0[0] = {a} {sign} {b} + u[0];", f"{kind} v = {rng.choice(('1', '0.1', a))};\nf0[0] = v {sign} 2;")
        text = rng.choice((*texts, f"f0[0] = ({kind}){rng.choice((a, '-1', 'u[0]'))}*1.0;"))
        return text, not any(large in text for large in ("214", "1e3", "1e4", "NAN", "INF"))  # sums that overflow
    return (rng.choice(UNDEFINED), False) if pick == 3 else (rng.choice(ODD), True)


# Options ---------------------------------------------------------------------------------------------------------

VALUES = {
    "fe_degree": (1, 1, 2, 3),
    "fe_quadrature_degree": (-1, 6, 9),
    "fe_num_blocks": (0, 1, 3),
    "fe_num_batches": (1, 2),
}
VALUES |= {"hdg_tau": ("auto", 1, 5.5, "1 + fabs(n[0])"), "hdg_tile_cells": (0, 1, 5), "hdg_local_max_it": (25, 2)}
VALUES |= {"sipg_penalty_scale": (1, 2, 10), "sipg_theta": (1, 0, -1), "poly_agglomerates": (0, 2, 5)}
VALUES |= {"poly_penalty_scale": (1, 4), "fe_output_interval": (1, 3), "fe_checkpoint_interval": (1, 7)}
SOLVERS = {
    "dm_refine": (0, 1),
    "dm_vec_type": ("standard",),
    "snes_type": ("newtonls", "ksponly", "newtontr"),
}
SOLVERS |= {
    "snes_max_it": (1, 20),
    "ksp_gmres_restart": (5, 50),
    "ksp_norm_type": ("preconditioned", "unpreconditioned"),
}
KSPS = ("cg", "gmres", "fgmres", "bcgs", "minres", "richardson", "petsc_hdg.CG", "petsc_hdg.GMRES", "petsc_hdg.FGMRES")
KSPS += ("petsc_hdg.BiCGStab", "petsc_hdg.Chebyshev", "preonly")
PCS = ("lu", "jacobi", "gamg", "none", "mg", "sor", "ilu", "bjacobi", "cholesky", "icc", "ksp", "petsc_hdg.ChebyshevPC")
BLOCKS = {"hdg_gpu": ("petsc_hdg.FacetBlockJacobi",), "sipg_gpu": ("petsc_hdg.CellBlockJacobi",)}
FILES = {"fe_report": "report.json", "fe_checkpoint": "kept.h5", "fe_output": "output.pvd", "fe_kernel_view": "kernels"}


def options(backend: str, ours: dict, rng: random.Random, folder: Path) -> list[str]:
    """A box, a scheme, a solver and some choices of the scheme's own, each with a value that goes with its name.

    ours: default and choices of each option of the package, by its name.
    """
    dim = rng.choice((2, 2, 3))
    faces = rng.choice(((1, 1, 1), (2, 1, 2), (3, 2, 2)))[:dim]
    given = {"fe_backend": backend, "dm_plex_dim": dim, "dm_plex_box_faces": ",".join(map(str, faces))}
    given |= {"dm_plex_simplex": rng.choice((0, 1)), "fe_degree": rng.choice(VALUES["fe_degree"])}
    mine = [name for name in ours if name.startswith(("fe_", backend.removesuffix("gpu"))) and name not in FILES]
    for name in rng.sample(mine, rng.choice((1, 2, 3, 5))):
        default, choices = ours[name]
        pool = VALUES.get(name) or choices or (("true", "false") if isinstance(default, bool) else ())
        given |= {name: rng.choice(pool)} if pool and name != "fe_backend" else {}
    for name in rng.sample(tuple(SOLVERS), rng.choice((0, 0, 1, 2))):
        given[name] = rng.choice(SOLVERS[name])
    for what, pool in (("ksp", KSPS), ("pc", PCS + BLOCKS.get(backend, ()))):
        chosen = rng.choice((None, *pool)) if given.get("ksp_type") != "preonly" else rng.choice(("lu", "cholesky"))
        if chosen:
            python = chosen.startswith("petsc_hdg.")
            given |= {f"{what}_type": "python" if python else chosen}
            given |= {f"{what}_python_type": chosen} if python else {}
    for name in rng.sample(tuple(FILES), rng.choice((0, 0, 1, 2))):
        given[name] = folder / FILES[name]
    return [word for name, value in given.items() for word in (f"-{name}", str(value))]


# Checkpoints -----------------------------------------------------------------------------------------------------


def checkpoint(path: Path, rng: random.Random) -> None:
    """Change what a checkpoint holds, and give it the head of its new bytes."""
    import h5py

    from petsc_hdg.output import checkpoint_file

    with h5py.File(path, "r+") as file:
        if rng.random() < 0.5:
            about = json.loads(file.attrs["about"])
            for _ in range(rng.choice((1, 1, 2))):
                about = _other(about, rng)
            _about(file, json.dumps(about).encode() if rng.random() < 0.9 else about, rng)
        else:
            array = file["u"]
            file.copy("u", "kept")
            del file["u"]
            _arrays(file, array.shape, rng, h5py)
    with open(path, "r+b") as file:
        size, digest = checkpoint_file._measured(file)
        file.seek(0)
        file.write(f"{checkpoint_file.MAGIC}\n{size}\n{digest}\n".encode().ljust(checkpoint_file.BLOCK, b"\0"))


def _about(file, value, rng) -> None:
    del file.attrs["about"]
    if rng.random() < 0.9:
        try:
            file.attrs["about"] = value
        except (TypeError, ValueError):
            file.attrs["about"] = rng.choice((3, [1.5, 2.5], "[" * 60_000, b"\xff\xfe", ""))


def _other(value, rng):
    """A JSON value in which one part is another one, or none."""
    if isinstance(value, (dict, list)) and value and rng.random() < 0.85:
        key = rng.choice(list(value) if isinstance(value, dict) else range(len(value)))
        if rng.random() < 0.25:
            value.pop(key)
        else:
            value[key] = _other(value[key], rng)
        return value
    odd = (
        None,
        True,
        -1,
        0,
        1.5,
        10**30,
        10**400,
        float("nan"),
        float("inf"),
        "",
        "u",
        "../u",
        [],
        {},
        [[1]],
        [None] * 9,
    )
    return rng.choice(odd)


def _arrays(file, shape, rng, h5py) -> None:
    """Something else in the place of the array `u`."""
    import numpy as np

    def virtual():
        layout = h5py.VirtualLayout(shape, "<f8")
        layout[:] = h5py.VirtualSource(rng.choice((".", "/etc/passwd", "other.h5")), "kept", shape)
        file.create_virtual_dataset("u", layout)

    def of(kind, wanted=shape, **more):
        return lambda: file.create_dataset("u", wanted, kind, **more)

    def link(target):
        return lambda: file.__setitem__("u", target)

    wanted = rng.choice((shape, (), (0,), (*shape, 1), (shape[0] + 1,), (10**12,), (2**40, 2**20)))
    rng.choice(
        (
            lambda: None,
            lambda: file.create_group("u"),
            virtual,
            link(file["/"]),
            link(np.dtype("<f8")),
            *map(link, (h5py.SoftLink("/kept"), h5py.SoftLink("/u"), h5py.SoftLink("../../kept"))),
            *map(link, (h5py.ExternalLink("/etc/passwd", "/u"), h5py.ExternalLink("other.h5", "/u"))),
            of("<f8", external=[("/etc/passwd", 0, 8 * shape[0])]),
            *(of("<f8", wanted, chunks=tuple(min(100, n) for n in wanted)) for _ in range(2) if wanted and min(wanted)),
            of("<f8", rng.choice((shape, (*shape, 1), (0,), (shape[0] + 1,)))),
            of("<f8", compression="gzip"),
            *map(of, ("<i8", ">f8", "<f4", "S5", "<c16", h5py.string_dtype(), h5py.ref_dtype, [("x", "<f8")], bool)),
            lambda: file.create_dataset("u", data=h5py.Empty("<f8")),
            lambda: file.create_dataset("u", data=np.full(shape, rng.choice((np.nan, np.inf, 1e100)))),
            lambda: file.create_dataset("u", data=list(range(shape[0]))),
        )
    )()

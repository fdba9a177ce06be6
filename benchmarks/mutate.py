"""Mutated inputs, each in a process of its own: `python benchmarks/mutate.py [-count 200] [-seed 0] [-kinds mesh,…]`.

Accepted are a right answer (`right`), one clear sentence with exit status 1 (`refused`), and a warning that the
solution is off where options ask for it (`told`). All else is a defect: the interpreter dies (`crash`), the time ends
(`hang`), an exception that is no sentence (`trace`), or a wrong number (`wrong`). Two seeds of five make a crafted
input (crafted.py), the others change a valid one at random. `-case KIND:SEED` runs one again and shows what it says;
`-json FILE` keeps all.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor, as_completed
from functools import lru_cache
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import crafted  # noqa: E402
import mutations  # noqa: E402

from petsc_hdg.commands.alone import ONE_THREAD, alone  # noqa: E402

HERE = Path(__file__).parent
PROGRAM = HERE / "mutated.py"
LIMIT = 120.0  # seconds of a case: the first solve of a scheme compiles its kernels
MESHES = ("disk_tri.msh", "disk_quad.msh", "ball_tet.msh", "regions.msh", "regions_v2.msh", "regions_bin.msh")
MESHES += ("disk_quad8.msh", "box.vtu", "box.vtk", "box.inp", "box.mesh", "box3.vtu")
TOLERANCE = {"mesh": 1e-7, "polygons": 1e-7, "physics": 1e-9, "options": 2e-2, "checkpoint": 0.0}
CRAFTED = {**TOLERANCE, "options": 1e-6, "checkpoint": 1e300}  # a digest is no signature: a state may be any numbers
DEFECTS = ("crash", "hang", "trace", "wrong")


def original(name: str) -> bytes:
    """Content of a mesh file; boxes are written by meshio."""
    if not name.startswith("box"):
        return (mutations.MESHES / name).read_bytes()
    import meshio
    import numpy as np

    x = np.linspace(0.0, 1.0, 4)
    points = np.array([[a, b, 0.0] for b in x for a in x])
    squares = [[4 * j + i, 4 * j + i + 1, 4 * j + i + 5, 4 * j + i + 4] for j in range(3) for i in range(3)]
    blocks = [("triangle", [s[:3] for s in squares] + [[s[0], s[2], s[3]] for s in squares])]
    if name.startswith("box3"):
        points = np.array([[a, b, c] for c in (0.0, 1.0) for b in (0.0, 1.0) for a in (0.0, 0.7)])
        blocks = [("hexahedron", [[0, 1, 3, 2, 4, 5, 7, 6]])]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        binary = {} if path.suffix in (".inp", ".mesh") else {"binary": False}
        meshio.Mesh(points, blocks).write(path, **binary)
        return path.read_bytes()


def polygons() -> bytes:
    """A VTU file of triangles and squares as polygons."""
    import meshio

    points = [[0, 0, 0], [1, 0, 0], [2, 0, 0], [0, 1, 0], [1, 1, 0], [2, 1, 0], [0.5, 2, 0], [1.7, 1.9, 0]]
    blocks = [("quad", [[0, 1, 4, 3]]), ("triangle", [[1, 2, 5], [1, 5, 4]]), ("polygon", [[3, 4, 5, 7, 6]])]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "polygons.vtu"
        meshio.Mesh([[float(x) for x in p] for p in points], blocks).write(path, binary=False)
        return path.read_bytes()


@lru_cache(maxsize=1)
def checkpoint() -> bytes:
    """A checkpoint of a small problem."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(PROGRAM), "write", folder]
        subprocess.run(command, check=True, env=environment(), stdout=subprocess.DEVNULL)
        return Path(folder, "input.h5").read_bytes()


def prepare(kind: str, seed: int, folder: Path) -> list[str]:
    """Write the input of a case to a folder; the options of the program."""
    rng = random.Random(f"{kind} {seed}")
    if is_crafted(kind, seed):
        return craft(kind, rng, folder)
    if kind == "mesh":
        name = MESHES[seed % len(MESHES)]
        path = (folder / "input").with_suffix(Path(name).suffix)
        path.write_bytes(mutations.mutated_bytes(original(name), rng, text="bin" not in name))
    elif kind == "polygons":
        (folder / "input.vtu").write_bytes(mutations.mutated_bytes(polygons(), rng))
    elif kind == "physics":
        f0, f1 = mutations.mutated_physics(rng)
        (folder / "input.json").write_text(json.dumps({"f0": f0, "f1": f1, "defined": True}))
    elif kind == "checkpoint":
        content = checkpoint()
        if seed % 2:  # the first lines say what follows
            content = mutations.mutated_bytes(content[:100], rng) + content[100:]
        else:
            content = mutations.mutated_bytes(content, rng, text=False)
        (folder / "input.h5").write_bytes(content)
    elif kind == "options":
        return mutations.mutated_options(rng)
    return []


def is_crafted(kind: str, seed: int) -> bool:
    return kind in CRAFTED and kind != "polygons" and seed % 5 in (1, 3)


def craft(kind: str, rng: random.Random, folder: Path) -> list[str]:
    """Write a crafted input to a folder; the options of the program."""
    if kind == "mesh":
        content = crafted.mesh(rng)
        flipped = rng.random() < 0.3
        text = b" 1 8\n" not in content[:80]
        (folder / "input.msh").write_bytes(mutations.mutated_bytes(content, rng, text) if flipped else content)
    elif kind == "physics":
        f0, defined = crafted.physics(rng)
        f1 = mutations.TEXTS[0][1]
        (folder / "input.json").write_text(json.dumps({"f0": f0, "f1": f1, "defined": defined}))
    elif kind == "checkpoint":
        (folder / "input.h5").write_bytes(checkpoint())
        crafted.checkpoint(folder / "input.h5", rng)
    else:
        return crafted.options(rng.choice(mutations.BACKENDS), mutations.our_options(), rng, folder)
    return []


def run(kind: str, seed: int, limit: float = LIMIT) -> dict:
    """A case: what was done, how it ended, what it said."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        options = prepare(kind, seed, folder)
        command = [sys.executable, str(PROGRAM), kind, name, *options]
        start = time.monotonic()
        try:
            done = subprocess.run(
                command, capture_output=True, timeout=limit, check=False, env=environment(), stdin=subprocess.DEVNULL
            )
            status, out, err = (
                done.returncode,
                done.stdout.decode(errors="replace"),
                done.stderr.decode(errors="replace"),
            )
        except subprocess.TimeoutExpired as late:
            status, out, err = None, "", (late.stderr or b"").decode(errors="replace")
    row = {"kind": kind, "seed": seed, "status": status, "seconds": round(time.monotonic() - start, 1)}
    row |= {"options": options} if options else {}
    answer = next((json.loads(line[7:]) for line in out.splitlines() if line.startswith("ANSWER ")), None)
    said = [line for line in err.splitlines() if line.startswith("error: ")]
    tolerance = (CRAFTED if is_crafted(kind, seed) else TOLERANCE)[kind]
    if kind == "options" and "single" in options:
        tolerance = TOLERANCE[kind]
    row["outcome"] = outcome(kind, status, answer, said, err, tolerance)
    return row | {"answer": answer, "said": said[0] if said else err[-1500:] if row["outcome"] != "right" else ""}


def environment() -> dict:
    return {**alone(os.environ), **ONE_THREAD}


def outcome(kind: str, status: int | None, answer, said: list[str], err: str, tolerance=None) -> str:
    """right, refused, told (wrong, and a warning says so), or a defect. The tolerance is the kind's by default."""
    if status is None:
        return "hang"
    if status not in (0, 1):
        return "crash"
    if status == 1:
        return "refused" if len(said) == 1 and "Traceback" not in err else "trace"
    if answer is None:
        return "crash"
    exact = answer.get("degree", 1) > 0
    if not exact or answer["error"] <= (tolerance or TOLERANCE[kind]):
        return "right"
    return "told" if "the solution is off by" in err else "wrong"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-count", type=int, default=200, help="cases in all")
    parser.add_argument("-seed", type=int, default=0, help="first seed")
    parser.add_argument("-kinds", default="mesh,physics,options,polygons,checkpoint")
    parser.add_argument("-jobs", type=int, default=1, help="cases at once")
    parser.add_argument("-seconds", type=float, default=1e9, help="no case begins after so many seconds")
    parser.add_argument("-json", help="file that keeps the rows")
    parser.add_argument("-case", help="KIND:SEED, shown in full")
    given = parser.parse_args()
    if given.case:
        kind, seed = given.case.split(":")
        print(json.dumps(run(kind, int(seed)), indent=1))
        return 0
    kinds = given.kinds.split(",")
    rows = []
    for row in cases(given, kinds):
        rows.append(row)
        if row["outcome"] in DEFECTS:
            print(f"{row['kind']}:{row['seed']} {row['outcome']}: {row['said'][-300:] or row['answer']}", flush=True)
        if given.json:
            keep(Path(given.json), rows)
    for kind in kinds:
        counts = Counter(row["outcome"] for row in rows if row["kind"] == kind)
        print(f"{kind:<12}" + ", ".join(f"{count} {name}" for name, count in sorted(counts.items())))
    return int(any(row["outcome"] in DEFECTS for row in rows))


def cases(given, kinds: list[str]):
    """Rows of the cases, as they end."""
    begin = time.monotonic()

    def one(number: int) -> dict | None:
        if time.monotonic() - begin > given.seconds:
            return None
        return run(kinds[number % len(kinds)], given.seed + number // len(kinds))

    if "checkpoint" in kinds:
        checkpoint()  # once, before several cases ask for it
    with ThreadPoolExecutor(given.jobs) as pool:
        for done in as_completed([pool.submit(one, number) for number in range(given.count)]):
            if done.result():
                yield done.result()


def keep(path: Path, rows: list[dict]) -> None:
    counts = Counter(f"{row['kind']} {row['outcome']}" for row in rows)
    path.write_text(json.dumps({"counts": dict(sorted(counts.items())), "rows": rows}, indent=1))


if __name__ == "__main__":
    sys.exit(main())

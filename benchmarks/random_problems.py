"""Random problems with known solutions by default options: python benchmarks/random_problems.py [-count 300] [-jobs 2]

A seed gives a mesh (squares, triangles, cubes, tetrahedra, several shapes; stretched, with moved vertices, curved,
periodic), at times another option, a physics: one or two coupled fields or a vector, tensors, jumps, wind, reactions,
nonlinear fluxes and sources, terms of one material alone, each of a random size, coefficients as text, constants or
auxiliary fields, Dirichlet conditions on some sides and Neumann or Robin conditions on the others, steady or in time.
Some are solved with other constants or auxiliary fields before: terms that are zero there, and no tensor.
The source is that of a smooth solution. An answer is wrong if its L2 error is more than WRONG times that of the
interpolant by continuous elements of the degree and more than NOTHING of the solution's size, if another solve gives
another answer, or if fluxes through the boundary do not balance the sources of a steady physics, and no warning came.
-first is the first seed; a problem is run alone by `-first SEED -count 1`; -ranks 2 solves each by two ranks;
-gpu_forms takes kernels and solvers of GPUs on any device. The exit status is 1 if an answer is wrong or a run crashes.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

LIMIT, WRONG, NOTHING = 300, 50, 1e-2  # seconds; factor of the interpolant's error; error over the solution's size
AGAIN, BALANCE = 1e-4, 5e-2  # differences of two solves; of fluxes and sources, over their sizes: rules differ
TIMES = 0.1, 0.05  # end and step of a run in time, whose solution is linear in t
OPTIONS = {
    None: [{"pmat": "aij"}, {"quadrature_degree": 9}, {"products": "kernels"}, {"pmat_precision": "single"}],
    "cg_gpu": [{"kernel": "cell"}, {"kernel": "transpose"}, {"cg_condense": True}],
    "hdg_gpu": [{"hdg_enrich": False}, {"hdg_flux": "pointwise"}, {"hdg_trace_mat": "aij"}],
    "sipg_gpu": [{"sipg_theta": 0}, {"sipg_theta": -1}, {"sipg_kernel": "split"}],
    "poly_gpu": [{"poly_space": "tensor"}],
}
SCHEMES = ("cg_gpu", "hdg_gpu", "sipg_gpu", "poly_gpu")
CELLS = {1: 24, 2: 14, 3: 10, 4: 8}  # degree -> about how many cells along a side of the plane; a third of it in space
TERMS = ("scale", "wind", "decay", "cubic", "coupling", "tensor")  # constants: a size, and what terms are multiplied by
SIDES = ("left", "right", "bottom", "top", "back", "front")


def some(rng, **parts: float) -> str:
    """A name, by its probability."""
    return str(rng.choice(list(parts), p=np.array(list(parts.values())) / sum(parts.values())))


def size(rng, least: float, most: float) -> float:
    """A number between bounds, of two digits, by its logarithm."""
    return float(f"{np.exp(rng.uniform(np.log(least), np.log(most))):.1e}")


class Case:
    """The problem of a seed; `text` says what it is."""

    def __init__(self, seed: int):
        self.rng = rng = np.random.default_rng(seed)
        self.scheme, self.dim = str(rng.choice(SCHEMES)), int(rng.choice([2, 2, 3]))
        self.degree = int(rng.choice([1, 2, 3, 4] if self.dim == 2 else [1, 2]))
        self.is_simplex, self.said = bool(rng.random() < 0.5), []
        self.stretch = size(rng, 1, 30) if rng.random() < 0.25 else 1.0
        self.moved = 0.2 * rng.random() if rng.random() < 0.4 else 0.0
        self.kind = some(rng, scalar=5, pair=2, vector=2)
        self.fields = {"u": 1, "v": 1} if self.kind == "pair" else {"u": self.dim if self.kind == "vector" else 1}
        more = np.random.default_rng([seed, 1])
        self.bend = float(more.choice([0, 0, 0.05, 0.1])) * (self.stretch == 1 and self.scheme != "poly_gpu")
        self.in_time, self.given = bool(more.random() < 0.2), some(more, text=3, constants=1, auxiliary=1)
        own = OPTIONS[None] + OPTIONS[self.scheme]
        self.options = own[more.integers(len(own))] if more.random() < 0.4 else {}
        if self.in_time and "cg_condense" in self.options:
            self.options = {}
        there = np.random.default_rng([seed, 3])
        self.there = str(there.choice(["reaction", "wind", "turned"])) if there.random() < 0.3 else ""
        given = ({"given": 1, "each": 2} if self.given == "auxiliary" else {}) | ({"material": 1} if self.there else {})
        self.s = Symbols(self.dim, self.fields, given, TERMS)
        changes = np.random.default_rng([seed, 4]).random() < 0.6
        self.is_changed = bool(changes) and (self.given != "text" or bool(self.there))
        last = np.random.default_rng([seed, 2])
        straight = self.stretch == 1 and not self.bend and self.scheme != "poly_gpu"
        self.period = int(last.integers(self.dim)) if straight and last.random() < 0.25 else None
        self.mixed = bool(self.scheme == "cg_gpu" and straight and self.period is None and last.random() < 0.3)
        self.mixed &= not self.options.get("cg_condense")
        self.x = list(self.s.x)  # what solution and coefficients are functions of
        if self.period is not None:
            self.x[self.period] = sp.sin(2 * sp.pi * self.x[self.period]) / 5
        self.sides = [side for side in range(2 * self.dim) if side // 2 != self.period]
        self.made = self._physics()

    @property
    def text(self) -> str:
        shape = ("tri" if self.is_simplex else "quad") if self.dim == 2 else "tet" if self.is_simplex else "hex"
        mesh = f"{shape} stretch {self.stretch:g} moved {self.moved:.2f}"
        mesh += f" bent {self.bend:g}" * (self.bend > 0) + " of several shapes" * self.mixed
        mesh += "" if self.period is None else f" periodic {'xyz'[self.period]}"
        how = f"{'in time, ' * self.in_time}by {self.given} {'changed ' * self.is_changed}{self.options or ''}"
        return f"{self.scheme} {self.degree}, {mesh}, {self.kind}, {how}: {', '.join(self.said)}"

    def say(self, name: str, chance: float, least: float, most: float, none: float = 0.0) -> float:
        """A size with a chance, else `none`."""
        if self.rng.random() >= chance:
            return none
        value = size(self.rng, least, most)
        self.said.append(f"{name} {value:g}")
        return value

    def mesh(self):
        """A box; its inner vertices are moved."""
        rng, n = np.random.default_rng(7), CELLS[self.degree]
        counts = [max(2, int(rng.integers(n // 2, n + 1)) // (1 if self.dim == 2 else 3)) for _ in range(self.dim)]
        counts[0] += counts[0] % 2  # facets where a coefficient may step
        upper = np.array([1.0, 1.0 / self.stretch, 1.0][: self.dim])
        if self.mixed:
            return fe.Mesh.from_cells(**(plane if self.dim == 2 else solid)(max(2, counts[0] // 2)))
        if self.period is not None:
            counts = [max(count, 4) for count in counts]
            return fe.Mesh.box(tuple(counts), simplex=self.is_simplex, periodic="xyz"[self.period])
        mesh = fe.Mesh.box(tuple(counts), simplex=self.is_simplex, upper=upper)
        if self.moved and self.law != "step":
            at = mesh.dm.getCoordinatesLocal()
            x = at.array.reshape(-1, self.dim)
            bump = np.sin(np.pi * x / upper).prod(axis=1, keepdims=True) ** 2
            wave = np.sin(40 * x[:, ::-1] / upper + np.arange(self.dim))
            at.array = (x + self.moved * bump * wave * upper / np.array(counts)).ravel()
            mesh.dm.setCoordinatesLocal(at)
            mesh = fe.Mesh(mesh.dm)
        return bent(mesh, self.bend) if self.bend and self.law != "step" else mesh

    # The physics ---------------------------------------------------------------------------------------------

    def _solution(self):
        """A smooth function of size 1."""
        x, rng = self.x, self.rng
        waves = [round(size(rng, 0.5, 5) * (self.stretch if d == 1 else 1), 2) for d in range(self.dim)]
        phases = [round(rng.uniform(0, 3), 2) for _ in waves]
        parts = [sp.sin(w * c + phase) for w, c, phase in zip(waves, x, phases, strict=True)]
        if self.law == "step":  # no flux where the coefficient steps
            parts[0] = sp.cos(waves[0] * (x[0] - sp.Rational(1, 2)))
        return sp.prod(parts) * (1 + self.s.t if self.in_time else 1)

    def _tensor(self):
        """Symmetric, positive, its eigenvalues up to a factor of 100 apart, turned."""
        rng = self.rng
        q, _ = np.linalg.qr(rng.normal(size=(self.dim, self.dim)))
        ratio = self.say("tensor 1:", 0.4, 1, 100, 1.0)
        k = q @ np.diag(np.linspace(1, 1 / ratio, self.dim)) @ q.T
        return sp.Matrix(np.round((k + k.T) / 2, 6).tolist())

    def _physics(self):
        """(exact, flux of (u, ∇u), reaction of (u, ∇u)), of Matrices [component], [component, dim]."""
        rng, x, dim = self.rng, self.x, self.dim
        count = 2 if self.kind == "pair" else dim if self.kind == "vector" else 1
        law = some(rng, linear=4, varying=2, step=1, quadratic=2, slope=1, elastic=2 if self.kind == "vector" else 0)
        if law == "step" and (self.mixed or self.period is not None):  # cells there do not end where it steps
            law = "varying"
        self.law = law
        self.said.append(law)
        exact = sp.Matrix([self._solution() for _ in range(count)])
        scale = self.say("κ", 0.4, 1e-3, 1e3, 1.0)
        kappa = sp.eye(dim) if law == "step" else self._tensor()
        step = self.say("to", 1, 1e-4, 1e4) if law == "step" else 1
        bulk = self.say("λ", 1, 0.5, 100) if law == "elastic" else 0
        wind = self.say("wind", 0.4, 0.1, 300)
        where = some(rng, f0=1, f1=1) if wind else ""
        b = sp.Matrix([sp.cos(x[1]) + 0.5, sp.Rational(1, 2), sp.sin(x[0])][:dim]) * wind * scale
        self.said += [f"in {where}"] if wind else []
        decay = scale * self.say("decay", 0.3, 0.1, 1e4)
        cubic = scale * self.say("cubic", 0.2, 0.1, 10)
        coupled = scale * self.say("coupling", 0.5 if count > 1 else 0, 0.1, 1)

        self.scale, self.nodal = scale, 1 + x[0] / 2 + x[1] / 4

        def times(term):
            return self.s.constant(term) if self.given == "constants" else 1

        def flux(u, g, exact=False):
            size = scale
            if not exact and self.given != "text":
                size = self.s.constant("scale") if self.given == "constants" else self.s.given("given")
            elif self.given == "auxiliary":
                size = scale * self.nodal
            if law == "elastic":
                return size * (g + g.T + bulk * g.trace() * sp.eye(dim))
            factor = {
                "varying": 1 + x[0] + sp.sin(3 * x[1]) / 2,
                "quadratic": 1 + u.dot(u) / 2,
                "step": sp.Piecewise((step, x[0] > sp.Rational(1, 2)), (1, True)),
                "slope": 1 + sum(entry**2 for entry in g) / 4,
            }
            turned = kappa if exact else sp.eye(dim) + times("tensor") * (kappa - sp.eye(dim))
            found = size * factor.get(law, 1) * g * turned
            return found - ((1 if exact else times("wind")) * u * b.T if where == "f1" else 0 * u * b.T)

        def reaction(u, g, exact=False):
            names = ("decay", "cubic", "wind", "coupling")
            decays, cubes, winds, couples = (1 if exact else times(name) for name in names)
            found = decays * decay * u + cubes * cubic * u.applyfunc(lambda entry: entry**3)
            if where == "f0":
                found += winds * g * b
            if coupled:
                found += couples * coupled * sp.Matrix([u[(c + 1) % count] * (-1) ** c for c in range(count)])
            return found

        return exact, flux, reaction

    def physics(self):
        """The Physics; its conditions are those of the solution."""
        (exact, flux, reaction), s, x, rng = self.made, self.s, self.s.x, self.rng
        values = [s.value(name) for name in self.fields]
        slopes = [s.grad(name) for name in self.fields]
        if self.kind == "vector":
            u, g = values[0], slopes[0]
        else:
            u, g = sp.Matrix(values), sp.Matrix([slope.T for slope in slopes])
        exact_slope = exact.jacobian(x)
        strong = flux(exact, exact_slope, exact=True)
        source = sp.Matrix([sum(sp.diff(row[d], x[d]) for d in range(self.dim)) for row in strong.tolist()])
        self.f0 = source - reaction(exact, exact_slope, exact=True), reaction(u, g)
        f1 = flux(u, g)
        if self.there:
            added, turned = self._of_material(u - exact, g - exact_slope)
            self.f0, f1 = (self.f0[0], self.f0[1] + added), f1 + turned
        each = s.given("each") if self.given == "auxiliary" else (1, 1)
        f0 = each[0] * self.f0[0] + each[1] * self.f0[1]
        if self.in_time:
            rates = [s.rate(name) for name in self.fields]
            f0 += (rates[0] if self.kind == "vector" else sp.Matrix(rates)) - exact.diff(s.t)
        normal_flux = strong * s.n
        sides = [SIDES[side] for side in self.sides]
        kinds = ["Dirichlet", *rng.choice(["Dirichlet", "Dirichlet", "Neumann", "Robin"], len(sides) - 1)]
        self.said.append("".join(kind[0] for kind in kinds))
        texts, boundary = ({}, {}, {}), []
        for number, name in enumerate(self.fields):

            def of(entries, number=number):
                """The part of this field."""
                part = entries if self.kind == "vector" else entries[number, :]
                return part[0] if part.shape == (1, 1) else part

            for text, entries in zip(texts, (f0, f1, exact), strict=True):
                text[name] = of(entries)
            for side, kind in zip(sides, kinds, strict=True):
                if kind == "Dirichlet":
                    boundary.append(fe.Dirichlet(side, of(exact), field=name))
                elif kind == "Neumann":
                    boundary.append(fe.Neumann(side, of(normal_flux), field=name))
                else:
                    boundary.append(fe.Robin(side, of(2 * (u - exact) - normal_flux), field=name))
        f0, f1, exact = texts
        more = {"constants": self.constants()} if self.given == "constants" else {}
        if self.given == "auxiliary":
            more = {"auxiliary": {"given": fe.Auxiliary(1, space="nodal"), "each": fe.Auxiliary(2, space="cell")}}
        if self.there:
            more["auxiliary"] = more.get("auxiliary", {}) | {"material": fe.Auxiliary(1, space="cell")}
        return fe.Physics(self.fields, f0, f1, exact=exact, boundary=boundary, name="random", **more)

    def _of_material(self, u, g):
        """What one material adds to f0 and to f1; it vanishes with u and g."""
        size, kinds = 3 * self.scale, {name: float(self.there == name) for name in ("reaction", "wind", "turned")}
        self.said.append(f"{self.there} of a material")
        wind, turn = sp.zeros(self.dim, 1), sp.zeros(self.dim, self.dim)
        wind[0], turn[0, 1], turn[1, 0] = 5, 1, -1

        is_there = sp.Eq(self.s.given("material"), 2)

        def there(part):
            return part.applyfunc(lambda entry: sp.Piecewise((size * entry, is_there), (0, True)) if entry else entry)

        return there(kinds["reaction"] * u + kinds["wind"] * g * wind), there(kinds["turned"] * g * turn)

    def constants(self, before: bool = False) -> dict:
        """The values of TERMS, or those of a solve before."""
        if before:
            return dict.fromkeys(TERMS, 0.0) | {"scale": 3 * self.scale}
        return dict.fromkeys(TERMS, 1.0) | {"scale": self.scale}

    def problem(self, mesh, physics, scheme: str, **options):
        """The Problem, with its auxiliary fields."""
        problem = fe.Problem(mesh, physics, backend=scheme, degree=self.degree, **options)
        self.give(problem)
        return problem

    def give(self, problem) -> None:
        """Set the auxiliary fields."""
        if self.given == "auxiliary":
            nodal = sp.lambdify([*self.s.x], self.scale * self.nodal)
            problem.set_auxiliary("given", lambda x: nodal(*np.moveaxis(x, -1, 0)))
            problem.set_auxiliary("each", [1.0, 1.0])
        if self.there:
            problem.set_auxiliary("material", lambda x: np.where(np.sin(7 * x[..., 0] + 5 * x[..., 1]) > 0, 2.0, 1.0))

    def solve_with_others(self, problem) -> None:
        """Solve with other constants and auxiliary fields; the answer, or that there is none, does not matter."""
        if self.given == "constants":
            problem.set_constants(**self.constants(before=True))
        if self.given == "auxiliary":
            problem.set_auxiliary("given", 3.0)
            problem.set_auxiliary("each", [0.5, 0.0])
        if self.there:
            problem.set_auxiliary("material", 1.0)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                self.solve(problem)
            except Exception as error:
                if not our_error(error):
                    raise
        if self.given == "constants":
            problem.set_constants(**self.constants())
        self.give(problem)

    def solve(self, problem):
        """The solution, at the end of TIMES if it is in time."""
        return problem.solve_in_time(problem.interpolate("exact"), *TIMES) if self.in_time else problem.solve()

    def _unbalanced(self, problem, u) -> float:
        """Fluxes through the boundary and sources of a steady state: their sum over the size of each part."""
        lines = []
        for c, parts in enumerate(zip(*self.f0, strict=True)):
            given, taken = (f"({sp.ccode(sp.sympify(part))})" for part in parts)
            lines.append(f"obj[{2 * c}] = {given} + {taken}; obj[{2 * c + 1}] = fabs({given}) + fabs({taken});")
        inside = np.atleast_1d(problem.integral(" ".join(lines), u))
        sizes = inside[1::2] + sum(abs(problem.flux(side, u)) for side in (SIDES[k] for k in self.sides))
        return float(np.abs((problem.flux("boundary", u) - inside[::2]) / (sizes + 1e-300)).max())

    def solved(self) -> dict:
        """The row of this problem."""
        mesh, physics = self.mesh(), self.physics()
        best = self.problem(mesh, physics, "cg_gpu")
        end = TIMES[0] * self.in_time
        least = best.errors(best.interpolate("exact", end), end)["L2"]
        length = best.errors(0 * best.interpolate("exact"), end)["L2"]
        problem = self.problem(mesh, physics, self.scheme, **self.options)
        if self.is_changed:
            self.solve_with_others(problem)
        u = self.solve(problem)
        counts = {"unknowns": problem.num_unknowns, "newton": problem.newton_iterations}
        counts |= {"linear": problem.linear_iterations, "direct": problem.direct or ""}
        found = {**counts, "error": problem.errors(u, end)["L2"] / length, "least": least / length}
        if not self.in_time:
            other = problem.solve()
            found["again"] = (other - u).norm(PETSc.NormType.NORM_INFINITY) / u.norm(PETSc.NormType.NORM_INFINITY)
            found["balance"] = 0.0 if problem.options.cg_condense else self._unbalanced(problem, u)
        return found


def work(seeds: list[int]) -> None:
    """Print a line of JSON for each seed."""
    for seed in seeds:
        start, text, case = time.perf_counter(), "", Case(seed)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            warnings.simplefilter("ignore", DeprecationWarning)  # of libraries
            try:
                found = case.solved()
                is_near = found["error"] < max(WRONG * found["least"], NOTHING)
                same = max(AGAIN, found["error"])  # penalties and stabilization follow the states of a first solve
                is_near &= found.get("again", 0) < same and found.get("balance", 0) < BALANCE
                found["end"] = "solved" if is_near else "warned" if told else "wrong"
            except Exception as error:  # a row, too
                ours = our_error(error)
                found = {"end": "refused" if ours else "crash"}
                text = str(ours) if ours else f"{type(error).__name__}: {error}"
        text = text or (str(told[-1].message) if told else "")
        seconds = round(time.perf_counter() - start, 1)
        row = {"seed": seed, "what": case.text, **found, "text": text, "seconds": seconds}
        if PETSc.COMM_WORLD.rank == 0:
            print(json.dumps(row), flush=True)


def take_gpu_forms() -> None:
    """Let discretizations and solvers take the device for a GPU."""
    limits, made = DeviceLimits.of, Device.__init__

    def init(device, *args, **kwargs):
        made(device, *args, **kwargs)
        device.has_solvers = True

    DeviceLimits.of = lambda device: replace(limits(device), local_bytes=49152, max_work_group=1024, is_gpu=True)
    Device.__init__ = init


def run(seeds: list[int], ranks: int = 1, work: str = "-work") -> list[dict]:
    """Rows, by processes of their own: a new one after each that dies or takes too long."""
    found, one = [], {"POCL_MAX_PTHREAD_COUNT": "1", "OMP_NUM_THREADS": "1", "PETSC_OPTIONS": ""}
    while len(found) < len(seeds):
        call = [sys.executable, __file__, work, *map(str, seeds[len(found) :])]
        call = call if ranks == 1 else ["mpiexec", "-n", str(ranks), *call]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL, "text": True}
        with subprocess.Popen(call, env={**os.environ, **one}, **pipes) as process:
            while True:
                patience = threading.Timer(LIMIT, process.kill)
                patience.start()
                line = process.stdout.readline()
                patience.cancel()
                if not line:
                    break
                if line.startswith("{"):
                    found.append(json.loads(line))
                    show(found[-1])
        if process.returncode or not found:
            status = f"exit status {process.returncode} (-9: after {LIMIT} s)"
            found.append({"seed": seeds[len(found)], "end": "crash", "text": status})
            show(found[-1])
    return found


def show(row: dict) -> None:
    counts = f"{row.get('newton', 0)} {row.get('linear', 0)} {row.get('error', 0):.1e} {row.get('least', 0):.1e}"
    counts += f" {row.get('again', 0):.1e} {row.get('balance', 0):.1e}"
    print(f"{row['seed']} {row['end']}: {row.get('what', '')}: {counts} {row['text'][:200]}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-count", type=int, default=300)
    parser.add_argument("-first", type=int, default=0)
    parser.add_argument("-jobs", type=int, default=1)
    parser.add_argument("-ranks", type=int, default=1, help="of each job, by mpiexec")
    parser.add_argument("-gpu_forms", action="store_const", const="-work_gpu_forms", default="-work", dest="work")
    parser.add_argument("-json", type=Path)
    given, start = parser.parse_args(), time.time()
    seeds = range(given.first, given.first + given.count)
    with ThreadPoolExecutor(given.jobs) as pool:
        parts = [list(seeds[j :: given.jobs]) for j in range(given.jobs)]
        rows = [row for part in pool.map(lambda part: run(part, given.ranks, given.work), parts) for row in part]
    if given.json:
        given.json.write_text("[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n")
    ends = [row["end"] for row in rows]
    names = ("solved", "warned", "refused", "wrong", "crash")
    print(f"{len(rows)} problems in {time.time() - start:.0f} s:", *(f"{ends.count(end)} {end}" for end in names))
    return int("wrong" in ends or "crash" in ends)


if __name__ == "__main__":
    is_worker = sys.argv[1:2] in (["-work"], ["-work_gpu_forms"])
    if is_worker:
        import petsc4py

        petsc4py.init(sys.argv[:1])
    import numpy as np
    import sympy as sp
    from petsc4py import PETSc

    sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
    from mixed_meshes import plane, solid
    from sample_meshes import bent

    import petsc_hdg as fe
    from petsc_hdg.device import Device
    from petsc_hdg.discretizations.transposition import DeviceLimits
    from petsc_hdg.errors import our_error
    from petsc_hdg.physics import Symbols

    if is_worker:
        if sys.argv[1] == "-work_gpu_forms":
            take_gpu_forms()
        work([int(seed) for seed in sys.argv[2:]])
    else:
        sys.exit(main())

"""The program that mutate.py gives mutated inputs to: `python benchmarks/mutated.py KIND FOLDER [options]`.

It does with them what a user does and prints, as JSON, how far its answer is from the right one: a linear function is
reproduced on any mesh by any scheme; functions of the physics are compared with the same text compiled by gcc.
"""

from __future__ import annotations

import ctypes
import json
import resource
import subprocess
import sys
from pathlib import Path

import petsc4py

ROOT = Path(__file__).resolve().parents[1]
resource.setrlimit(resource.RLIMIT_AS, (12 << 30, 12 << 30))  # an input that asks for all memory gets a MemoryError
sys.path.insert(0, str(ROOT))
petsc4py.init(["mutated.py", *sys.argv[3:], "-options_left", "0"])

import numpy as np  # noqa: E402

import petsc_hdg as fe  # noqa: E402

FLUX = "for (d = 0; d < dim; ++d) f1[d] = u_x[d];"
LINEAR = "u[0] = 0.0; for (d = 0; d < dim; ++d) u[0] += (d + 1)*x[d];"
DIRECT = {"ksp_type": "preonly", "pc_type": "lu"}


def linear(mesh, **settings) -> dict:
    """Error of the solution of Laplace's equation that is a linear function, relative to it."""
    physics = fe.Physics({"u": 1}, "f0[0] = 0.0;", FLUX, boundary=[fe.Dirichlet("boundary", "exact")], exact=LINEAR)
    problem = fe.Problem(mesh, physics, **settings)
    u = problem.solve()
    nodes = mesh.geometry.nodes
    volume = float(np.prod(np.ptp(nodes, axis=0)))
    scale = np.sqrt(volume) * max(float(np.abs(nodes).max()), 1e-300)
    return {"error": float(problem.errors(u)["L2"]) / scale, "cells": mesh.num_cells, "degree": problem.options.degree}


def direct_solver() -> None:
    from petsc4py import PETSc

    for name, value in DIRECT.items():
        if not PETSc.Options().hasName(name):
            PETSc.Options()[name] = value


def of_mesh(folder: Path) -> dict:
    """A mesh file, read, and solved on."""
    direct_solver()
    mesh = fe.Mesh.from_file(next(folder.glob("input.*")))
    return linear(mesh, degree=max(1, mesh.geometry.degree)) | {"names": len(mesh.boundaries + mesh.cell_regions)}


def of_polygons(folder: Path) -> dict:
    """A file of polygons, read, and solved on."""
    direct_solver()
    return linear(fe.polygons_from_file(next(folder.glob("input.*"))), backend="poly_gpu", degree=1)


def of_options(folder: Path) -> dict:
    """A box and solvers by options."""
    return linear(fe.Mesh.from_options())


def of_physics(folder: Path) -> dict:
    """Functions of the physics: by the interpreter, on the device (compared with it), and by gcc; then in a solve."""
    f0, f1, defined = (json.loads((folder / "input.json").read_text())[name] for name in ("f0", "f1", "defined"))
    physics = fe.Physics({"u": 1}, f0, f1, constants={"kappa": 0.75}, boundary=[fe.Dirichlet("boundary", 0.0)])
    interpreter, found = physics.interpreter(2), []
    problem = fe.Problem(fe.Mesh.box((2, 2)), physics)
    problem.callbacks  # noqa: B018  compares the kernels with numpy
    compiled = compiled_by_gcc(folder, f0, f1) if defined else None
    if compiled is None:
        return {"error": not_finite(problem), "gcc": "refuses" if defined else "is not asked"}
    rng = np.random.default_rng(0)
    for _ in range(20):
        u, u_t, u_x, x = (rng.uniform(0.1, 1.4, shape) for shape in (1, 1, (1, 2), 2))
        mine = interpreter.pw_residual(u, u_t, u_x, np.zeros(0), np.zeros((0, 2)), 0.3, x)
        theirs = compiled(u, u_t, u_x, x)
        found.append(difference(np.concatenate([part.ravel() for part in mine]), theirs))
    return {"error": max(*found, not_finite(problem)), "gcc": "agrees" if max(found) < 1e-10 else "differs"}


def not_finite(problem) -> float:
    """1 if a solve by LU comes to an end with numbers that are not finite; it may be refused."""
    direct_solver()
    try:
        return float(not np.isfinite(problem.solve().norm()))
    except fe.PetscHdgError:
        return 0.0


def box_problem():
    """A small problem with a state [Vec] to keep in a checkpoint."""
    physics = fe.Physics(
        {"u": 1}, "f0[0] = -kappa;", FLUX, constants={"kappa": 0.75}, boundary=[fe.Dirichlet("left", 0.0)]
    )
    problem = fe.Problem(fe.Mesh.box((4, 4)), physics, degree=2)
    return problem, problem.interpolate(lambda x: x[..., 0] * (1.0 + x[..., 1] ** 2))


def write_checkpoint(folder: Path) -> dict:
    """The checkpoint that is mutated."""
    problem, u = box_problem()
    problem.checkpoint(folder / "input.h5", u, 0.25, 7, load=3.5)
    return {"error": 0.0}


def of_checkpoint(folder: Path) -> dict:
    """A checkpoint, read: the state is the one that was written."""
    problem, u = box_problem()
    found = problem.restart(folder / "input.h5")
    u.axpy(-1.0, found.u)
    wrong = u.norm() + abs(found.t - 0.25) + abs(found.step - 7) + abs(found.numbers.get("load", 0.0) - 3.5)
    return {"error": float(wrong) + abs(problem.physics.constants["kappa"] - 0.75)}


def difference(a: np.ndarray, b: np.ndarray) -> float:
    """Largest relative difference; NaN and infinity are values like others."""
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(all="ignore"):
        return float(np.where(same, 0.0, np.nan_to_num(np.abs(a - b) / (1 + np.abs(b)), nan=9.0, posinf=9.0)).max())


C_TEXT = """
#include <math.h>
#include <stdlib.h>
typedef double PetscReal; typedef double PetscScalar; typedef int PetscInt;
#define PetscSqr(a) ((a)*(a))
#define PETSC_PI M_PI
#define ARGUMENTS const int dim, const double *u, const double *u_t, const double *u_x, const double *x, const double t
static const double constants[1] = {0.75};
static const double kappa = 0.75;
void f0(ARGUMENTS, double *f0) { PetscInt d = 0; (void)d;
#line 1 "f0"
%s
}
void f1(ARGUMENTS, double *f1) { PetscInt d = 0; (void)d;
#line 1 "f1"
%s
}
"""


def compiled_by_gcc(folder: Path, f0: str, f1: str):
    """f0 and f1 [3] of the same texts as a function of u, u_t, u_x, x; None if gcc refuses them."""
    source, library = folder / "physics.c", folder / "physics.so"
    source.write_text(C_TEXT % (f0, f1))
    command = ["gcc", "-std=c99", "-O0", "-fPIC", "-shared", "-ffp-contract=off", source, "-o", library, "-lm"]
    try:
        if subprocess.run(command, capture_output=True, check=False, timeout=60).returncode:
            return None
    except subprocess.TimeoutExpired:
        return None
    functions = ctypes.CDLL(str(library))

    def evaluate(u, u_t, u_x, x) -> np.ndarray:
        given = [np.ascontiguousarray(part, float).ctypes.data_as(ctypes.c_void_p) for part in (u, u_t, u_x, x)]
        out = np.zeros(3)
        for function, part in ((functions.f0, out[:1]), (functions.f1, out[1:])):
            target = part.ctypes.data_as(ctypes.c_void_p)
            function(ctypes.c_int(2), *given, ctypes.c_double(0.3), target)
        return out

    return evaluate


KINDS = {"mesh": of_mesh, "polygons": of_polygons, "options": of_options, "physics": of_physics}
KINDS |= {"checkpoint": of_checkpoint, "write": write_checkpoint}


@fe.main
def main():
    print("ANSWER " + json.dumps(KINDS[sys.argv[1]](Path(sys.argv[2]))))

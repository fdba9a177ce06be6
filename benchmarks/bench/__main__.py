"""`python benchmarks/bench [SCHEME]`: times of kernels, solves and ranks; see __init__.py."""

import sys
from pathlib import Path

from petsc_hdg.__main__ import start_petsc
from petsc_hdg.run import guarded

sys.path[0] = str(Path(__file__).resolve().parents[1])
start_petsc(sys.argv[1:])

from bench import main  # noqa: E402  PETSc starts before it is imported

sys.exit(guarded(lambda: main(sys.argv[1:])))

#!/usr/bin/env bash
# Build the sdist and the wheel into dist/, and use the wheel as a stranger does: check_dist.sh [PYTHON [SYSTEM_PYTHON]].
# The wheel is built from the unpacked sdist, so that both are complete if it is. pip's plain command installs it into an empty
# environment, which sees the distribution's petsc4py and mpi4py; there, in another folder, a small problem is solved.
# PYTHON builds (setuptools 77 or later), SYSTEM_PYTHON is the distribution's.
set -euo pipefail
cd "$(dirname "$0")/.."

python=$(command -v "${1:-.venv/bin/python}")
system=${2:-/usr/bin/python3}
root=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH

rm -rf dist
"$python" -c "from setuptools import build_meta; build_meta.build_sdist('dist')" >"$work/log" 2>&1 || { cat "$work/log"; exit 1; }
tar -xf dist/*.tar.gz -C "$work"
"$python" -m pip wheel -q --no-deps --no-build-isolation -w dist "$work"/petsc_hdg-*/
wheel=$(ls "$root"/dist/*.whl)

"$python" - "$wheel" <<'EOF'
import subprocess, sys, zipfile
shipped = set(zipfile.ZipFile(sys.argv[1]).namelist())
tracked = subprocess.run(["git", "ls-files", "petsc_hdg", "kernels_cl"], check=True, capture_output=True, text=True).stdout.split()
missing = [name for name in tracked if name.replace("kernels_cl/", "petsc_hdg/kernels_cl/") not in shipped]
missing += [f"*/{name}" for name in ("licenses/LICENSE", "entry_points.txt") if not any(s.endswith(name) for s in shipped)]
sys.exit(f"{sys.argv[1]} lacks {', '.join(missing)}" if missing else 0)
EOF

numpy=$("$system" -c "import numpy; print(numpy.__version__)")
scripts/setup_venv.sh "$system" "$work/venv" distribution "$wheel"
cd "$work"
"$work/venv/bin/python" - "$numpy" "$work/venv" <<'EOF'
import sys
import numpy, petsc_hdg
from petsc4py import PETSc
assert petsc_hdg.__file__.startswith(sys.argv[2]), f"{petsc_hdg.__file__} is not the wheel's"
assert numpy.__version__ == sys.argv[1], f"pip has replaced numpy {sys.argv[1]} by {numpy.__version__}"
EOF
"$work/venv/bin/petsc-hdg" check -only "cg_gpu, triangles"
echo "dist: $(cd "$root/dist" && ls | tr '\n' ' ')"

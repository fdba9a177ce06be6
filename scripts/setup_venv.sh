#!/usr/bin/env bash
# Make a virtual environment with this package and its test tools: setup_venv.sh PYTHON FOLDER distribution|current,
# with other extras (EXTRAS=docs in the environment),
# or with a wheel of it alone, by pip's plain command: setup_venv.sh PYTHON FOLDER distribution|current WHEEL.
# distribution: sees the system's petsc4py and mpi4py, which need numpy 1. current: these come by PYTHONPATH.
# Once its packages are there, it needs no network.
set -euo pipefail

python=$1
folder=$2
lane=$3
cd "$(dirname "$0")/.."

options=()
constraints=()
if [ "$lane" = distribution ]; then
  options=(--system-site-packages)
  constraints=(-c scripts/constraints-distribution.txt)
fi
echo "setting up $folder"
"$python" -m venv "${options[@]}" "$folder"
pip=("$folder/bin/python" -m pip install -qq --disable-pip-version-check --root-user-action=ignore)
if [ $# -gt 3 ]; then
  "${pip[@]}" "$4"
else
  "${pip[@]}" "setuptools>=77"
  "${pip[@]}" --no-build-isolation "${constraints[@]}" -e ".[${EXTRAS:-plot,test}]"
fi

if [ "$lane" = distribution ] && ! "$folder/bin/python" -c "import petsc4py" 2>/dev/null; then
  # Without its development packages the distribution sets no link to its PETSc: name the folder itself.
  found=$(ls -d /usr/lib/petscdir/petsc*/*-real/lib/python3/dist-packages 2>/dev/null | sort -V | tail -1)
  site=$("$folder/bin/python" -c "import sysconfig; print(sysconfig.get_path('purelib'))")
  [ -z "$found" ] || echo "$found" > "$site/distribution_petsc.pth"
  "$folder/bin/python" -c "import petsc4py, mpi4py" || {
    echo "petsc4py or mpi4py cannot be imported by $python: install python3-petsc4py and python3-mpi4py." >&2
    exit 1
  }
fi

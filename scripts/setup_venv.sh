#!/usr/bin/env bash
# Make a virtual environment with this package and its test tools: setup_venv.sh PYTHON FOLDER distribution|current.
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
pip=("$folder/bin/python" -m pip install -q --disable-pip-version-check --root-user-action=ignore)
"${pip[@]}" "setuptools>=64" wheel
"${pip[@]}" --no-build-isolation "${constraints[@]}" -e ".[plot,test]"

#!/usr/bin/env bash
# Install the system packages the project needs (Debian 12, Ubuntu 24.04): install_system.sh [run|build].
# run:   PETSc, petsc4py, mpi4py, MPI and the PoCL OpenCL driver of the distribution; gcc, with which the tests compile
#        physics as plain C.
# build: what scripts/build_petsc.sh needs on top.
set -euo pipefail

run_packages="python3 python3-venv python3-petsc4py python3-mpi4py openmpi-bin pocl-opencl-icd ocl-icd-libopencl1 gcc libc6-dev"
build_packages="build-essential python3-dev libopenmpi-dev libopenblas-dev libptscotch-dev
  ocl-icd-opencl-dev opencl-headers libviennacl-dev"

packages=$run_packages
[ "${1:-run}" = build ] && packages="$run_packages $build_packages"

missing=""
for package in $packages; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q "ok installed" || missing="$missing $package"
done
[ -z "$missing" ] && exit 0

if ! command -v apt-get >/dev/null; then
  echo "This system has no apt: install PETSc with petsc4py, mpi4py, MPI and an OpenCL driver (PoCL), for example with 'conda env create -f conda-env.yml && conda activate petsc_hdg', then call make with PYTHON=python." >&2
  exit 1
fi
sudo=""
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "Installing$missing needs root: run 'apt-get install$missing' as root, then call make again." >&2
    exit 1
  fi
  sudo=sudo
fi
echo "installing:$missing"
export DEBIAN_FRONTEND=noninteractive
$sudo apt-get update -q >/dev/null
$sudo apt-get install -q -y --no-install-recommends $missing >/dev/null

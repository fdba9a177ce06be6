#!/usr/bin/env bash
# Build a current PETSc and petsc4py with OpenCL, ViennaCL and PTSCOTCH from the PyPI source archive: build_petsc.sh PREFIX.
# The result is PREFIX/lib (libpetsc) and PREFIX/site (petsc4py, mpi4py), used by `PYTHONPATH=PREFIX/site`.
# About 15 minutes on two cores; an existing build of the same version is kept.
set -euo pipefail

version=${PETSC_VERSION:-3.26.1}
prefix=${1:?usage: build_petsc.sh PREFIX}
here=$(cd "$(dirname "$0")" && pwd)
stamp=$prefix/.built-$version
[ -f "$stamp" ] && { echo "PETSc $version is already in $prefix"; exit 0; }

"$here/install_system.sh" build
mkdir -p "$prefix"
prefix=$(cd "$prefix" && pwd)
exec 9> "$prefix/.lock"
flock 9 # a second build of the same prefix waits, and then finds it done
[ -f "$stamp" ] && exit 0
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
jobs=$(nproc)

/usr/bin/python3 -m venv "$work/venv"
python=$work/venv/bin/python
$python -m pip install -q --disable-pip-version-check setuptools wheel cython numpy
$python -m pip download -q --no-deps --no-binary :all: --no-build-isolation -d "$work" "petsc==$version"
tar -xf "$work"/petsc-*.tar.gz -C "$work"
source=$(echo "$work"/petsc-*/)

cd "$source"
unset PETSC_DIR PETSC_ARCH
echo "configuring PETSc $version"
/usr/bin/python3 ./configure --prefix="$prefix" PETSC_ARCH=arch-opencl \
  --with-debugging=0 --with-fc=0 --with-shared-libraries=1 --with-x=0 --with-ssl=0 --with-cxx-dialect=17 \
  --with-opencl=1 --with-viennacl=1 --with-viennacl-dir=/usr \
  --with-ptscotch=1 --with-ptscotch-include=/usr/include/scotch \
  --with-ptscotch-lib=[libptesmumps.so,libptscotch.so,libptscotcherr.so,libscotch.so] \
  COPTFLAGS=-O2 CXXOPTFLAGS=-O2 > "$prefix/configure.out" 2>&1 || { tail -50 "$prefix/configure.out"; exit 1; }
echo "compiling PETSc $version"
make -j"$jobs" PETSC_DIR="$PWD" PETSC_ARCH=arch-opencl all > "$prefix/make.out" 2>&1 || { tail -50 "$prefix/make.out"; exit 1; }
make PETSC_DIR="$PWD" PETSC_ARCH=arch-opencl install > "$prefix/install.out" 2>&1

echo "compiling petsc4py"
export PETSC_DIR=$prefix PETSC_ARCH=""
export PETSC4PY_BUILD_PYSABI=cp311
# One file of 700 000 lines, whose functions only pass calls on: -O2 takes minutes more than -O1.
CFLAGS="-O1 -g0" $python -m pip install -q --no-build-isolation --no-deps --target "$prefix/site" ./src/binding/petsc4py \
  > "$prefix/petsc4py.out" 2>&1 \
  || { tail -50 "$prefix/petsc4py.out"; exit 1; }
$python -m pip install -q --no-deps --target "$prefix/site" mpi4py >> "$prefix/petsc4py.out" 2>&1 \
  || { tail -50 "$prefix/petsc4py.out"; exit 1; }
touch "$stamp"
echo "PETSc $version is in $prefix; use PYTHONPATH=$prefix/site"

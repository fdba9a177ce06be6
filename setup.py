"""Package petsc_hdg; its kernel files lie in kernels_cl and are shipped as package data."""

import sys

from setuptools import find_packages, setup

PACKAGES = find_packages(include=["petsc_hdg", "petsc_hdg.*"])
if "editable_wheel" in sys.argv:
    # Packages in one plain folder are found by a path (.pth). By the import hook that setuptools takes otherwise, a
    # script beside a clone called petsc_hdg would import that folder as an empty namespace.
    LAYOUT = {"packages": PACKAGES, "package_dir": {"": "."}}
else:
    LAYOUT = {
        "packages": [*PACKAGES, "petsc_hdg.kernels_cl"],
        "package_dir": {"petsc_hdg.kernels_cl": "kernels_cl"},
        "package_data": {"petsc_hdg.kernels_cl": ["**/*.cl", "**/*.clh"]},
    }

setup(
    name="petsc_hdg",
    version="0.1.0",
    description="CG and hybridizable DG finite elements on OpenCL devices for PETSc, from pointwise functions",
    python_requires=">=3.10",
    **LAYOUT,
    # petsc4py and mpi4py are left out: pip would build its own PETSc and MPI, where the user's are wanted.
    install_requires=[
        "numpy>=1.24",
        "pyopencl>=2022.3",
        "fenics-basix>=0.7",
        "h5py>=3.8",
        "pycparser>=2.21",
        "sympy",
        "meshio",
        "pymetis>=2025.2",
    ],
    extras_require={
        "plot": ["matplotlib"],
        "test": ["pytest", "pytest-xdist", "scikit-fem", "scipy", "matplotlib", "ruff"],
    },
    entry_points={"console_scripts": ["petsc-hdg = petsc_hdg.__main__:main"]},
)

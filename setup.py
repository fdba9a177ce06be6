"""Packages of the distribution, and kernels_cl, whose files are package data; the rest is in pyproject.toml."""

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
        "package_data": {"petsc_hdg": ["py.typed"], "petsc_hdg.kernels_cl": ["**/*.cl", "**/*.clh"]},
    }

setup(**LAYOUT)

"""Surfaces drawn by PyVista, where it is installed: its depth buffer hides what is behind."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import asdict
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path

import numpy as np

from .painter import Seen

_PATIENCE = 120.0  # seconds


def rendered(
    seen: Seen, lower: np.ndarray, upper: np.ndarray, pixels: tuple[int, int], dpi: float
) -> np.ndarray | None:
    """An image [row, column, RGBA] of `pixels` (width, height) between corners [2], dpi of them an inch; None where
    PyVista is not installed or draws nothing."""
    try:
        if find_spec("pyvista") is None:
            return None
        given, script = BytesIO(), Path(__file__).with_name("render_script.py").read_text(encoding="utf-8")
        np.savez(given, lower=lower, upper=upper, pixels=pixels, dpi=dpi, **asdict(seen))
        command = [sys.executable, "-c", script]  # not by its path, whose folder would be searched for packages
        done = subprocess.run(command, input=given.getvalue(), capture_output=True, timeout=_PATIENCE, check=True)
        image = np.load(BytesIO(done.stdout))
        return image if image.shape == (pixels[1], pixels[0], 4) else None
    except (OSError, ValueError, EOFError, subprocess.SubprocessError):
        return None

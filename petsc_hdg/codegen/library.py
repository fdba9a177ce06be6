"""The kernel files shipped with the package: where they are, their text, and the names each of them needs."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib import resources
from pathlib import Path

from petsc_hdg.errors import DeviceError

_NEEDS = re.compile(r"^//\s*needs:(.*)$", re.MULTILINE)


@lru_cache(maxsize=1)
def kernel_folder() -> Path:
    """Folder of `.cl` and `.clh` files, and of subfolders: inside an installed package, beside it in a checkout."""
    package = Path(str(resources.files("petsc_hdg")))
    for folder in (package / "kernels_cl", package.parent / "kernels_cl"):
        if (folder / "common.clh").is_file():
            return folder
    raise DeviceError(f"the kernel files are missing beside {package}: install the package again with pip")


@cache
def kernel_text(name: str) -> str:
    """Text of the kernel file `name`, or of one elsewhere by its path."""
    path = _paths(kernel_folder()).get(name, Path(name))
    if not path.is_file():
        known = ", ".join(kernel_names())
        raise DeviceError(f"no kernel file '{name}' in {kernel_folder()}; it has {known}")
    return path.read_text(encoding="utf-8")


def kernel_names() -> list[str]:
    """Names of all kernel files, sorted."""
    return sorted(_paths(kernel_folder()))


@cache
def _paths(folder: Path) -> dict[str, Path]:
    """Kernel files by name, which is theirs alone, in whatever subfolder they lie."""
    return {path.name: path for path in folder.rglob("*") if path.suffix in (".cl", ".clh")}


def needed_names(text: str) -> list[str] | None:
    """Names on the `// needs:` lines of a kernel file (`none` for no names), or None where there is no such line."""
    lines = _NEEDS.findall(text)
    if not lines:
        return None
    return [name for line in lines for name in line.replace(",", " ").split() if name != "none"]

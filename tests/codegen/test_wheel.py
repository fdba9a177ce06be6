"""The package as pip builds it ships its kernel files and finds them; a folder of its name is not taken for it."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import petsc_hdg
from petsc_hdg.codegen.library import kernel_names

ROOT = Path(__file__).resolve().parents[2]
PRINT = (
    "import petsc_hdg\n"
    "from petsc_hdg.codegen.library import kernel_folder, kernel_names\n"
    "print(petsc_hdg.__file__, kernel_folder(), *kernel_names(), sep='\\n')\n"
)


def test_wheel_ships_kernels(tmp_path):
    source, site = tmp_path / "source", tmp_path / "site"
    source.mkdir()
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for name in ("petsc_hdg", "kernels_cl"):
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    pip = [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation", "-w", str(tmp_path), "."]
    subprocess.run(pip, cwd=source, check=True, capture_output=True, timeout=120)
    (wheel,) = tmp_path.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(site)
    assert (site / "petsc_hdg" / "py.typed").is_file()
    (licence,) = site.glob(f"petsc_hdg-{petsc_hdg.__version__}.dist-info/licenses/LICENSE")
    assert licence.read_text().startswith("BSD 2-Clause")
    env = {**os.environ, "PYTHONPATH": f"{site}:{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(
        [sys.executable, "-c", PRINT], cwd=tmp_path, env=env, capture_output=True, text=True, check=True
    )
    package, folder, *names = done.stdout.splitlines()
    assert Path(package).is_relative_to(site) and Path(folder) == site / "petsc_hdg" / "kernels_cl"
    assert names == kernel_names() and "common.clh" in names


def test_script_beside_a_clone(tmp_path):
    """A folder called petsc_hdg beside the script, as a clone is, hides nothing."""
    (tmp_path / "petsc_hdg").mkdir()
    script = tmp_path / "script.py"
    script.write_text(PRINT, encoding="utf-8")
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr

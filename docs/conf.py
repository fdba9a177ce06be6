"""Settings of the documentation's site: MyST pages of this folder, and the API from docstrings (`make docs`)."""

import re
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import petsc_hdg

project = "petsc_hdg"
author = copyright = "petsc_hdg developers"
release = version = petsc_hdg.__version__

extensions = ["myst_parser", "sphinx.ext.autodoc"]
exclude_patterns = ["_build"]
myst_heading_anchors = 4
highlight_language = "none"  # of indented blocks: commands and formulas

autodoc_member_order = "bysource"
autodoc_typehints = "none"  # docstrings give types with shapes and units

html_theme = "furo"
html_title = "petsc_hdg"
html_show_copyright = False
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # names of other packages


def from_plain_text(app, what, name, obj, options, lines):
    """Docstrings are plain text: paragraphs stay paragraphs, tables and code, whose columns count, become blocks."""
    found = []
    for paragraph in "\n".join(lines).strip().split("\n\n"):
        if re.search(r"^ |\S  +\S", paragraph, re.MULTILINE):
            found += ["::", "", *(f"   {line}" for line in paragraph.splitlines()), ""]
        else:
            parts = re.split(r"`([^`]+)`", paragraph)
            plain = [re.sub(r"([*_|\\`])", r"\\\1", part) for part in parts[::2]]
            code = [f" ``{part}`` " for part in parts[1::2]] + [""]
            text = "".join(a + b for a, b in zip(plain, code, strict=True))
            found += [*re.sub(r"(?m)^ | (?= )| $", "", text).splitlines(), ""]
    lines[:] = found


def setup(app):
    app.connect("autodoc-process-docstring", from_plain_text)

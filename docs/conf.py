"""Settings of the documentation's site: MyST pages of this folder, and the API from docstrings (`make docs`)."""

import re
import sys
from pathlib import Path

import jupytext

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
html_static_path = ["_static"]
html_css_files = ["site.css"]  # narrow screens
html_show_copyright = False
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]  # names of other packages


def plain(text: str) -> str:
    """Text with `code`, as reStructuredText that marks the code and nothing else."""
    parts = re.split(r"`([^`]+)`", text)
    parts[::2] = [re.sub(r"([*_|\\`])", r"\\\1", part) for part in parts[::2]]
    parts[1::2] = [f"\\ ``{part}``\\ " for part in parts[1::2]]
    return "".join(parts)


def arguments(lines: list[str]) -> list[tuple[str, str]] | None:
    """(name, meaning) of the rows of a table in two columns, None for lines that are none."""
    first = re.match(r"\S+(?:,? \S+)*  +(?=\S)", lines[0])
    found = []
    for line in lines if first else []:
        name, meaning = line[: first.end()], line[first.end() :]
        if not name.strip() and found:
            found[-1] = (found[-1][0], f"{found[-1][1]} {meaning.strip()}")
            continue
        if not name.endswith(" "):  # a name that is longer than its column
            name, _, meaning = line.partition(" ")
        if line.startswith(" ") or len(name) < first.end() - 1:
            return None
        found.append((name.strip(), meaning))
    return found or None


def from_plain_text(app, what, name, obj, options, lines):
    """Docstrings are plain text: paragraphs and tables of arguments become such, code and formulas blocks."""
    found = []
    for paragraph in "\n".join(lines).strip().split("\n\n"):
        rows = paragraph.splitlines()
        if table := arguments(rows):
            for title, meaning in table:
                found += [f"``{title}``", f"   {plain(meaning)}"]
        elif re.search(r"^ |\S  +\S", paragraph, re.MULTILINE):
            found += ["::", "", *(f"   {line}" for line in rows)]
        else:
            found += plain(paragraph).splitlines()
        found.append("")
    lines[:] = found


def has_notebook(docname: str) -> bool:
    """True for the tutorials that a notebook runs, which starts no ranks."""
    return docname.startswith("tutorials/") and not docname.endswith("/ranks")


def link_to_notebook(app, docname, source):
    """End a tutorial with a link to its notebook."""
    if has_notebook(docname):
        name = docname.split("/")[-1]
        source[0] += f'\n```{{raw}} html\n<p><a href="{name}.ipynb" download>This page as a notebook</a></p>\n```\n'


def write_notebooks(app, exception):
    """Write the notebook of each tutorial beside its page; its links lead to pages and pictures of the site."""
    if exception is not None or app.builder.format != "html":
        return
    for docname in filter(has_notebook, app.env.found_docs):
        text = Path(app.env.doc2path(docname)).read_text(encoding="utf-8")
        book = jupytext.reads(text, fmt="md")
        assert sum(cell.cell_type == "code" for cell in book.cells) == text.count("```python"), docname
        for cell in book.cells:
            if cell.cell_type == "markdown":
                cell.source = re.sub(r"\]\(([\w./]+)\.md(?=[)#])", r"](\1.html", cell.source)
                cell.source = re.sub(r"\]\((\w+\.png)\)", r"](../_images/\1)", cell.source)
        book.metadata["kernelspec"] = {"name": "python3", "display_name": "Python 3", "language": "python"}
        jupytext.write(book, Path(app.outdir, f"{docname}.ipynb"), fmt="ipynb")


def setup(app):
    app.connect("autodoc-process-docstring", from_plain_text)
    app.connect("source-read", link_to_notebook)
    app.connect("build-finished", write_notebooks)

"""Write docs/papers.md: the tables of the papers with ours beside them.

    python benchmarks/papers_page.py

Each script of benchmarks/papers has the tables of its paper; their figures are those of benchmarks/papers/*.json
(printed) and of benchmarks/results (measured). tests/test_papers_page.py compares the page with the files.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "papers.md"
sys.path.insert(0, str(ROOT / "benchmarks" / "papers"))

# Script → title and source of its section
PAPERS = {
    "king": "King, Yakovlev, Fu, Kirby and Sherwin 2014: hybridizable DG as batches",
    "roca": "Roca, Nguyen and Peraire 2011: dense block format",
    "dong": "Dong, Georgoulis and Kappas 2021: polytopic DG",
    "gorlani": "Gorlani 2015: interior penalty",
    "knepley": "Knepley, Rupp and Terrel 2016: thread transposition",
}
HEAD = """# Papers

The tables of the papers behind the schemes, ours beside them. The line under the headings says what each column's
figures are of; the text under a table, what is the same and what is not. This page is written by
`python benchmarks/papers_page.py`.

    make papers                                   rows on a CPU by PoCL, three minutes of processor time
    python benchmarks/papers/all.py -scale full   all rows that a CPU can have
    python benchmarks/papers/all.py -fe_device gpu -scale gpu -budget 180 -results benchmarks/results/papers_h100

Times of PoCL are of a shared machine: read them as orders of magnitude. [Method](method.md) defines copy and peak.
"""


def page() -> str:
    """The text of docs/papers.md."""
    parts = [HEAD]
    for paper, title in PAPERS.items():
        script = import_module(paper)
        parts.append(f"## {title}\n")
        parts.append(f"`benchmarks/papers/{paper}.py`. Source: {script.PAPER['source']}.\n")
        parts += [table.markdown() for table in script.tables()]
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

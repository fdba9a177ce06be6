"""Output of a run: a VTU file, a PNG picture, a JSON report."""

from .grid import (
    Grid,
)
from .plot import Picture, plot
from .report import Report, format_report, write_report
from .vtu import (
    Collection,
    write_vtu,
)

__all__ = ["Collection", "Grid", "Picture", "Report", "format_report", "plot", "write_report", "write_vtu"]

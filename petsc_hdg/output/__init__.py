"""Output of a run: a VTU file, a PNG picture, a JSON report."""

from .collection import FORMATS, Collection
from .grid import Grid
from .plot import Picture, plot
from .report import Report, format_report, write_report
from .vtu import write_vtu
from .xdmf import write_arrays

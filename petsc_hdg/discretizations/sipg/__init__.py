"""Interior penalty: neighbours, numbering, tables and kernel specs."""

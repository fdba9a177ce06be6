"""Continuous Galerkin: numbering, tables and kernel specs."""

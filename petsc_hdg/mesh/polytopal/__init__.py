"""Polytopes made: agglomerates of cells, and polygons and polyhedra divided into simplices."""

"""Schemes that eliminate the interior of each cell: hybridizable DG and condensed CG."""

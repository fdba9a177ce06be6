"""Cells dealt to ranks, and graphs cut into parts."""

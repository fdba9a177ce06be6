"""Checked functions as trees, and what is made of them: derivatives, specializations, C text."""

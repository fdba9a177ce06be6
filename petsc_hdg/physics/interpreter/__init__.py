"""Checked functions run on numpy arrays: the oracle of the kernels, and a first check."""

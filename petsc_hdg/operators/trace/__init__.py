"""The trace matrix on a device in each of its formats."""

"""Polytopic DG: polytopes, their functions, penalties, blocks and kernel specs."""

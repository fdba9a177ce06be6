"""Checks of solutions: warnings and errors for answers that should not be trusted."""

"""Linear solvers and preconditioners of a problem: defaults, fallbacks, resets."""

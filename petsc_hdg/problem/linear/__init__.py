"""Linear solvers and preconditioners of a problem: defaults, fallbacks, null spaces, resets."""

"""Newton's method: first guesses, monitors, Newton on trace and interior together."""

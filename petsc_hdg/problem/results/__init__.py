"""Results of a problem: norms, values, derived fields, files, pictures."""

"""The operator of condensed schemes: local problems, states, recovery."""

"""Subcommands of `python -m petsc_hdg`: one module each, with `main(arguments) -> exit code`."""

"""Pictures of solutions."""


def plot(path, comm, cell, degree, points, values, **options) -> None:
    """Placeholder until the renderer stands."""

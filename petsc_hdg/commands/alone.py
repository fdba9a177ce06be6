"""The environment of a process that is to be a run of its own."""

from __future__ import annotations

FROM_MPI = ("PMIX_", "PMI_", "OMPI_COMM_", "OMPI_MCA_ess", "OMPI_MCA_orte", "OMPI_MCA_pmix", "HYDI_", "MPI_LOCAL")


def alone(environment) -> dict[str, str]:
    """An environment without what mpiexec tells its ranks, or MPI itself a process that it did not start."""
    return {name: value for name, value in environment.items() if not name.startswith(FROM_MPI)}

"""The environment of a process that is to be a run of its own, and of an mpiexec that starts one."""

from __future__ import annotations

import os

FROM_MPI = ("PMIX_", "PMI_", "OMPI_COMM_", "OMPI_MCA_ess", "OMPI_MCA_orte", "OMPI_MCA_pmix", "HYDI_", "MPI_LOCAL")
CROWDED = {  # ranks may outnumber cores, as cores do not matter to what is compared: OpenMPI 4, OpenMPI 5
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "OMPI_MCA_hwloc_base_binding_policy": "none",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
ONE_THREAD = {"POCL_MAX_PTHREAD_COUNT": "1", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}  # a rank


def alone(environment) -> dict[str, str]:
    """An environment without what mpiexec tells its ranks, or MPI itself a process that it did not start."""
    return {name: value for name, value in environment.items() if not name.startswith(FROM_MPI)}


def for_mpiexec(**more: str) -> dict[str, str]:
    """The environment of an mpiexec that this process starts: on few cores too, and by root if that is who we are.

    What the user has set stands above that, and `more` above all.
    """
    return {**CROWDED, **(AS_ROOT if os.geteuid() == 0 else {}), **alone(os.environ), **more}

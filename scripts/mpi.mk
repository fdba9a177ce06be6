# Environment of MPI runs on one machine: more ranks than cores are fine, ranks are not bound to cores,
# and every rank's OpenCL CPU driver and BLAS use one thread.
export OMPI_MCA_rmaps_base_oversubscribe := 1
export OMPI_MCA_hwloc_base_binding_policy := none
export OMPI_MCA_btl_vader_single_copy_mechanism := none
export POCL_MAX_PTHREAD_COUNT := 1
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
ifeq ($(shell id -u),0)
export OMPI_ALLOW_RUN_AS_ROOT := 1
export OMPI_ALLOW_RUN_AS_ROOT_CONFIRM := 1
endif

"""The operator of continuous Galerkin on a device."""

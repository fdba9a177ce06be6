"""The operator of interior penalty on a device."""

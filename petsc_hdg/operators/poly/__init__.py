"""The operator of polytopic DG on a device, its matrices and coarse levels."""

"""Kernels for every CPU of the platform; the build puts them here."""

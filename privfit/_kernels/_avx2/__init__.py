"""Kernels for CPUs with AVX2 and FMA; the build puts them here."""

"""Benchmarks of privfit against the obvious alternatives."""

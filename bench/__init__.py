"""Benchmarks of privfit against the obvious alternatives."""

import warnings

# Records of benchmarks are public or made up; by the text, since peers' workers have no privfit.
warnings.filterwarnings("ignore", message="random_state is set, which voids privacy")
warnings.filterwarnings("ignore", message="score is exact and not private")

"""Benchmarks of privfit against the obvious alternatives."""

import os
import warnings
from pathlib import Path

# Records of benchmarks are public or made up; by the text, since peers' workers have no privfit.
warnings.filterwarnings("ignore", message="random_state is set, which voids privacy")
warnings.filterwarnings("ignore", message="score is exact and not private")
# Beside the clone, where the tests look for real data, too.
os.environ.setdefault("PRIVFIT_DATA", str(Path(__file__).resolve().parents[2] / "shared" / "data"))

"""Benchmarks for asv: one version of privfit against another, and how time scales.

`asv run --python=same --quick` runs each once, `asv compare A B` compares two commits. Where
privfit is not installed, the sources of this clone are timed.
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[2]))  # after site-packages

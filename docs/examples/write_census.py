"""Write made-up census records to a CSV file: python docs/examples/write_census.py census.csv."""

from __future__ import annotations

import csv
import sys

from privfit.datasets import make_census

census = make_census(20_000)
with open(sys.argv[1], "w", newline="", encoding="utf-8") as file:
    rows = csv.writer(file)
    rows.writerow([*census.table, "income"])
    rows.writerows(zip(*census.table.values(), census.labels, strict=True))

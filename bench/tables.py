"""Real tables, and generated ones with their shapes; the same numbers on every machine.

Values of the generated ones lie on the record grid, so that packing loses nothing and both sides
score the same records.
"""

from functools import lru_cache

import numpy as np

import privfit
from privfit import datasets

GRID = 2**12  # steps of the default grid in [0, 1]

# Fourteen columns of a census with 104 levels in all, and how steeply their frequencies fall.
LEVELS = {
    "age": (10, 0.3), "workclass": (9, 1.6), "weight": (5, 1.0), "education": (16, 1.2),
    "years": (8, 0.8), "marital": (7, 1.2), "occupation": (15, 0.5), "relation": (6, 1.0),
    "race": (5, 3.0), "sex": (2, 1.0), "gain": (5, 3.5), "loss": (5, 4.0), "hours": (5, 1.5),
    "country": (6, 3.5),
}  # fmt: skip
MUSHROOM = (6, 4, 10, 2, 9, 2, 2, 2, 12, 2, 5, 4, 4, 9, 9, 1, 4, 3, 5, 9, 6, 7)  # 117 levels


def real(name: str) -> datasets.Dataset:
    """A public data set with the ranges that papers declare; "adult, no bins" drops all bins."""
    name, _, form = name.partition(", ")
    found = datasets.load(name, ranges="observed")
    return found.with_bins(0) if form == "no bins" else found


def _codes(rng, n, size, steepness):
    """n levels; level r is taken with a frequency proportional to (r + 1)^-steepness."""
    share = np.arange(1.0, size + 1) ** -steepness
    return rng.choice(size, n, p=share / share.sum())


def _one_hot(codes, sizes):
    """Codes (n, groups) as an array (n, sum of sizes) of zeros and ones."""
    starts = np.cumsum(sizes) - sizes
    X = np.zeros((len(codes), int(np.sum(sizes))))
    np.put_along_axis(X, codes + starts, 1.0, axis=1)
    return X


@lru_cache(maxsize=1)
def one_hot(n=48_842):
    """X (n, 104) of zeros and ones with 14 ones in a row, and labels."""
    rng = np.random.default_rng(1)
    X = _one_hot(_levels(rng, n), np.array([size for size, _ in LEVELS.values()]))
    return X, _labels(rng, X)


def _levels(rng, n):
    return np.column_stack([_codes(rng, n, size, steep) for size, steep in LEVELS.values()])


def coded(n=48_842):
    """The records of `one_hot` by column, and their schema."""
    codes = _levels(np.random.default_rng(1), n)
    sizes = {name: size for name, (size, _) in LEVELS.items()}
    schema = {name: privfit.Categorical(range(size)) for name, size in sizes.items()}
    return dict(zip(LEVELS, codes.T, strict=True)), privfit.Schema(schema)


@lru_cache(maxsize=1)
def dense(n, d, seed=2):
    """X (n, d) uniform in [-1, 1], and labels."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-GRID, GRID, (n, d), dtype=np.int16, endpoint=True) / GRID
    return X, _labels(rng, X)


def _labels(rng, X):
    w = rng.normal(size=X.shape[1])
    z = X @ w
    return (z - np.median(z) + rng.normal(0, z.std(), len(z)) > 0).astype(np.int64)


def census(n=48_842):
    """Records by column, labels and schema: 8 categorical and 6 numeric columns, as in the demo."""
    rng = np.random.default_rng(3)
    sizes = {"workclass": 9, "education": 16, "marital": 7, "occupation": 15, "relation": 6,
             "race": 5, "sex": 2, "country": 38}  # fmt: skip
    ranges = {"age": (17, 90), "years": (1, 16), "gain": (0, 99_999), "loss": (0, 4_356),
              "hours": (1, 99), "weight": (10_000, 1_500_000)}  # fmt: skip
    records = {name: _codes(rng, n, size, 1.2) for name, size in sizes.items()}
    records |= {name: rng.integers(low, high + 1, n) for name, (low, high) in ranges.items()}
    schema = privfit.Schema(
        {name: privfit.Categorical(range(size)) for name, size in sizes.items()}
        | {name: privfit.Numeric(low, high) for name, (low, high) in ranges.items()}
    )
    labels = (records["years"] + rng.normal(0, 4, n) > 10).astype(np.int64)
    return records, labels, schema


@lru_cache(maxsize=1)
def blobs(n, d, k, seed=4):
    """X (n, d) in [0, 1]: k round clusters of unequal sizes."""
    rng = np.random.default_rng(seed)
    middles = rng.uniform(0.1, 0.9, (k, d))
    X = middles[_codes(rng, n, k, 0.5)] + rng.normal(0, 0.08, (n, d))
    return np.trunc(np.clip(X, 0, 1) * GRID) / GRID


def places(n=8_124, f=2_031, d=22, one_hot_groups=False):
    """Records (n, d) and public facilities (f, d), in [0, 1] or one-hot like the mushrooms."""
    rng = np.random.default_rng(5)
    if one_hot_groups:
        sizes = np.array(MUSHROOM)
        codes = np.column_stack([_codes(rng, n + f, size, 1.0) for size in sizes])
        table = _one_hot(codes, sizes)
    else:
        table = rng.integers(0, GRID, (n + f, d), endpoint=True) / GRID
    return table[:n], table[n:]

"""Made-up records: census-like, panels of people, clusters and texts.

The same seed gives the same records on every machine and with every version of numpy: all draws are
integers, made of the raw 64-bit words of PCG64, whose stream numpy keeps. What looks normal is a
sum of twelve uniform numbers: its deviation is 1, and no value is beyond 6.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from privfit.base.errors import DeclarationError
from privfit.base.typing import Floats, Integers
from privfit.base.validation import is_finite
from privfit.datasets.dataset import Dataset, check_count
from privfit.domains import Categorical, Numeric, Schema

__all__ = ["make_census", "make_clusters", "make_panel", "make_texts"]

ONE = 1 << 16  # steps of a deviation, or of [0, 1]
NOTE = "Made-up records: they describe nobody."


class _Draws:
    """Integers from the raw words of a seeded generator."""

    def __init__(self, seed: int) -> None:
        self._words = np.random.PCG64(check_count(seed, "seed", least=0))

    def below(self, size: int, n: int) -> Integers:
        """n whole numbers, uniform in 0, ..., size - 1; size is at most 2^31."""
        return (((self._words.random_raw(n) >> 32) * np.uint64(size)) >> 32).astype(np.int64)

    def weighted(self, weights: Sequence[int], n: int) -> Integers:
        """n positions, each taken in proportion to its whole weight."""
        ends = np.cumsum(np.array(weights, dtype=np.int64))
        return np.searchsorted(ends, self.below(int(ends[-1]), n), side="right")

    def zipf(self, size: int, n: int) -> Integers:
        """n positions, the i-th taken in proportion to 1 / (i + 1)."""
        return self.weighted([1_000_000 // (i + 1) for i in range(size)], n)

    def bell(self, n: int) -> Integers:
        """n near-normal numbers in units of a deviation over `ONE`: 16-bit parts of three words."""
        total = np.full(n, 6 - 6 * ONE, dtype=np.int64)  # parts have the mean (ONE - 1) / 2
        for _ in range(3):
            words = self._words.random_raw(n)
            for shift in (0, 16, 32, 48):
                total += ((words >> shift) & 0xFFFF).astype(np.int64)
        return total


# ------------------------------------------------------------------------------------------ census

LEVELS = {"workclass": 9, "education": 16, "marital": 7, "occupation": 15, "relation": 6, "race": 5,
          "sex": 2, "country": 38}  # fmt: skip
RANGES = {"age": (17, 90), "years": (1, 16), "hours": (1, 99)}
GAINS = (1, 2, 5, 10, 20, 50, 90)  # times up to a thousand dollars, the more the rarer
RICH = -300  # a quarter of the records are above it


def make_census(n: int = 48_842, seed: int = 0) -> Dataset:
    """Make up records with the shape of a census table.

    Parameters
    ----------
    n : int, default=48842
        Number of records.
    seed : int, default=0
        The same seed gives the same records on every machine. Records of another seed follow the
        same rule, so they can test a model.

    Returns
    -------
    Dataset
        Eight columns of categories and four of numbers; the target is 1 for about a quarter of the
        records, and 0 for the others. ``made_up`` is True.

    See Also
    --------
    privfit.datasets.load_adult : Records of a real census.

    Examples
    --------
    >>> from privfit.datasets import make_census
    >>> census = make_census(1000, seed=0)
    >>> census
    Dataset('census', 1000 records, made up, Schema(<12 columns, 108 encoded>))
    """
    draws, n = _Draws(seed), check_count(n, "n")
    people = {name: draws.zipf(size, n) for name, size in LEVELS.items()}
    for name, (low, high) in RANGES.items():
        people[name] = low + draws.below(high - low + 1, n)
    sums = np.array(GAINS)[draws.zipf(len(GAINS), n)] * (1 + draws.below(1000, n))
    people["gain"] = np.where(draws.below(10, n) == 0, sums, 0)
    return Dataset(
        name="census", table=people, schema=census_schema(), target=_is_rich(people, draws),
        classes=(0, 1), title="Made-up census", description=NOTE, made_up=True,
    )  # fmt: skip


def census_schema() -> Schema:
    """The schema of `make_census`."""
    return Schema(
        {name: Categorical(range(size)) for name, size in LEVELS.items()}
        | {name: Numeric(low, high) for name, (low, high) in RANGES.items()}
        | {"gain": Numeric(0, 100_000, bins=[1, 1_000, 2_000, 5_000, 10_000, 20_000])}
    )


def _is_rich(people: Mapping[str, Integers], draws: _Draws) -> Integers:
    """Labels of a linear rule in thousandths, with noise like that of a logistic model.

    The rule is the same for all seeds, so that records of another seed can test a model.
    """
    z = 600 * (people["years"] - 13) + 40 * (people["age"] - 40) + 30 * (people["hours"] - 50)
    z += 3000 * (people["gain"] > 5_000) + 2000 * (people["marital"] == 0)
    for name in ("occupation", "relation", "workclass"):
        z += 100 * ((7 * people[name]) % 31 - 15)
    noise = 1700 * draws.bell(len(z)) >> 16
    return (z + noise > RICH).astype(np.int64)


# ------------------------------------------------------------------------------------------- panel

VISITS = 50  # in a year at most


def make_panel(n_people: int = 5_000, max_rows: int = 5, seed: int = 0) -> Dataset:
    """Make up a panel: people with one record a year, some of them with several.

    Parameters
    ----------
    n_people : int, default=5000
        Number of people.
    max_rows : int, default=5
        Largest number of records of a person; all numbers from 1 are equally likely.
    seed : int, default=0
        The same seed gives the same records on every machine.

    Returns
    -------
    Dataset
        Four columns of numbers and three of categories, person by person and year by year.
        ``units`` has the number of the person, and the target the visits to a doctor in a year,
        from 0 to 50. ``made_up`` is True.

    See Also
    --------
    privfit.datasets.load_health_panel : Records of a real panel.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit.datasets import make_panel
    >>> panel = make_panel(100, max_rows=3, seed=0)
    >>> len(np.unique(panel.units)), int(np.bincount(panel.units).max())
    (100, 3)
    """
    n_people, max_rows = check_count(n_people, "n_people"), check_count(max_rows, "max_rows")
    draws = _Draws(seed)
    rows = 1 + draws.below(max_rows, n_people)
    age, female = 25 + draws.below(40, n_people), draws.below(2, n_people)
    years, frailty = 7 + draws.zipf(12, n_people), draws.bell(n_people)
    person = np.repeat(np.arange(n_people), rows)
    first = np.cumsum(rows) - rows
    year = np.arange(len(person)) - first[person]
    n = len(person)
    ill = (draws.bell(n) + frailty[person] > ONE).astype(np.int64)
    income = 1_000 + 200 * years[person] + (500 * draws.bell(n) >> 16)
    table = {
        "year": year, "age": age[person] + year, "female": female[person], "years": years[person],
        "income": np.clip(income, 0, 10_000), "married": draws.below(2, n), "ill": ill,
    }  # fmt: skip
    tens = 10 * female[person] + 30 * ill + (table["age"] - 25) // 2
    visits = (tens + (10 * (draws.bell(n) + frailty[person]) >> 16)) // 10
    schema = Schema({
        "year": Numeric(0, max(max_rows - 1, 1)), "age": Numeric(25, 64 + max_rows),
        "female": Categorical([0, 1]), "years": Numeric(7, 18), "income": Numeric(0, 10_000),
        "married": Categorical([0, 1]), "ill": Categorical([0, 1]),
    })  # fmt: skip
    return Dataset(
        name="panel", table=table, schema=schema, units=person,
        target=np.clip(visits, 0, VISITS).astype(np.float64), target_range=(0, VISITS),
        title="Made-up panel", description=NOTE, made_up=True,
    )  # fmt: skip


# ---------------------------------------------------------------------------------------- clusters

MIDDLES = 0.8  # centers are uniform in [-0.8, 0.8]
SIZES = ("equal", "1/j")


def make_clusters(
    n: int = 10_000,
    d: int = 2,
    k: int = 5,
    *,
    sizes: str = "equal",
    spread: float = 0.15,
    seed: int = 0,
) -> Dataset:
    """Make up points of round clusters in [-1, 1]^d.

    Parameters
    ----------
    n : int, default=10000
        Number of points.
    d : int, default=2
        Number of columns.
    k : int, default=5
        Number of clusters.
    sizes : {"equal", "1/j"}, default="equal"
        Whether all clusters are equally likely for a point, or the j-th in proportion to 1/j.
    spread : float, default=0.15
        Deviation of a cluster in each column. Points are clipped to the box.
    seed : int, default=0
        The same seed gives the same points on every machine.

    Returns
    -------
    Dataset
        Columns ``x1``, ..., ``xd``; the target is the cluster, from 0 to k - 1, and
        ``facts["centers"]`` has the centers, uniform in [-0.8, 0.8]^d. ``made_up`` is True.

    See Also
    --------
    privfit.datasets.load_s1 : A public table of clusters.
    privfit.KMeans : Private k-means clustering.

    Examples
    --------
    >>> from privfit.datasets import make_clusters
    >>> points = make_clusters(1000, 3, 4, seed=0)
    >>> points.to_array().shape, points.facts["centers"].shape
    ((1000, 3), (4, 3))
    """
    n, d, k = check_count(n, "n"), check_count(d, "d"), check_count(k, "k")
    if sizes not in SIZES:
        raise DeclarationError(f"sizes ({sizes!r}) must be one of {SIZES}; pass one of them")
    if not is_finite(spread) or spread < 0:
        raise DeclarationError(
            f"spread ({spread!r}) must be a number of at least 0; pass spread=0.15"
        )
    draws = _Draws(seed)
    centers = _uniform(draws, k * d).reshape(k, d)
    cluster = draws.below(k, n) if sizes == "equal" else draws.zipf(k, n)
    table = {
        f"x{j + 1}": np.clip(centers[cluster, j] + spread * (draws.bell(n) / ONE), -1, 1)
        for j in range(d)
    }
    return Dataset(
        name="clusters", table=table, schema=Schema({name: Numeric(-1, 1) for name in table}),
        target=cluster, classes=tuple(range(k)), facts={"centers": centers},
        title="Made-up clusters", description=NOTE, made_up=True,
    )  # fmt: skip


def _uniform(draws: _Draws, n: int) -> Floats:
    """n numbers in [-MIDDLES, MIDDLES], in steps of 2^-30 of the range."""
    return MIDDLES * (draws.below(1 << 31, n) / float(1 << 30) - 1)


# ------------------------------------------------------------------------------------------- texts

BEGINS = ("ba", "do", "fi", "gu", "ke", "lo", "mi", "nu", "pa", "re", "so", "tu", "va", "wi", "ze")
ENDS = ("can", "der", "fel", "gon", "him", "ket", "lan", "mor", "nis", "pol", "rak", "sen", "tal")
WORDS = tuple(a + b for b in ENDS for a in BEGINS)


def make_texts(n: int = 5_000, seed: int = 0) -> Dataset:
    """Make up short messages of invented words, an eighth of which are spam.

    Parameters
    ----------
    n : int, default=5000
        Number of messages.
    seed : int, default=0
        The same seed gives the same messages on every machine.

    Returns
    -------
    Dataset
        One column ``text``; the target is ``"spam"`` or ``"ham"``. Spam prefers other words of the
        same 195. ``made_up`` is True.

    See Also
    --------
    privfit.datasets.load_sms_spam : Real text messages.
    privfit.HashWords : Texts as columns of words.

    Examples
    --------
    >>> from privfit.datasets import make_texts
    >>> make_texts(3, seed=0).table["text"].shape
    (3,)
    """
    n = check_count(n, "n")
    draws = _Draws(seed)
    is_spam, lengths = draws.below(8, n) == 0, 4 + draws.below(12, n)
    owner = np.repeat(np.arange(n), lengths)
    word = draws.zipf(len(WORDS), len(owner))
    odd = is_spam[owner] & (draws.below(4, len(owner)) > 0)
    word = np.where(odd, len(WORDS) - 1 - word, word)  # the rare words of other messages
    said = np.array(WORDS, dtype=object)[word]
    texts = np.empty(n, dtype=object)
    texts[:] = [" ".join(part) for part in np.split(said, np.cumsum(lengths)[:-1])]
    target = np.empty(n, dtype=object)
    target[:] = ["spam" if spam else "ham" for spam in is_spam.tolist()]
    columns: dict[str, Any] = {"text": texts}
    return Dataset(
        name="texts", table=columns, target=target, classes=("ham", "spam"),
        title="Made-up messages", description=NOTE, made_up=True,
    )  # fmt: skip

"""A schema bought from a budget, to be shared by many fits."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

from privfit.domains.columns import Column
from privfit.domains.schema import Schema, as_schema
from privfit.privacy.ledger import Ledger
from privfit.privacy.neighbours import Adjacency
from privfit.privacy.purchases import Purchase
from privfit.records.blanks import BlankRows
from privfit.records.sums import Sums
from privfit.runs.blanks import BlankPlan
from privfit.runs.payment import Terms

__all__ = ["bought", "learn_schema"]


def learn_schema(
    X: Any,
    epsilon: float,
    delta: float = 0.0,
    *,
    columns: Schema | Mapping[str, str | Column],
    levels: int | None = None,
    adjacency: Adjacency = "replace",
    n_public: int | None = None,
    ledger: Ledger | None = None,
    n_threads: int | None = None,
    random_state: Any = None,
) -> Schema:
    """Buy a schema: cuts of numbers and names of categories, from private records.

    Parameters
    ----------
    X : DataFrame, Arrow table, dict of columns, array, list of records, Stream or Dask collection
        Private records. No cell of a blank column is refused.
    epsilon : float
        The budget of the schema.
    delta : float, default=0.0
        The delta of (epsilon, delta)-differential privacy. Names need delta > 0.
    columns : Schema, or dict of str to {'number', 'category', 'boolean'}, Numeric or Categorical
        What is known of the columns. A 'number' is cut at quantiles; of a 'category' the names of
        frequent values are bought, and of a 'boolean' nothing. ``Numeric(low, high, bins="auto")``
        is cut within a declared range, of ``Numeric()`` the range is bought, and of
        ``Categorical()`` the buckets of hashed values. Columns without blanks stay as they are.
    levels : int or None, default=None
        Levels of recursive medians: one makes 3 bins, two 9, three up to 25. By default as many as
        the budget carries, at most three.
    adjacency : {'replace', 'add_remove'}, default='replace'
        The neighbour relation of the guarantee.
    n_public : int or None, default=None
        A public, possibly approximate number of records, by which `levels` is chosen under
        'add_remove'.
    ledger : Ledger or None, default=None
        The ledger to charge, before anything is drawn; by default a new one.
    n_threads : int or None, default=None
        Number of threads for streams; by default as many as there are cores.
    random_state : None, int or numpy.random.Generator, default=None
        None draws from the operating system. A seed voids privacy: it is for tests.

    Returns
    -------
    Schema
        A schema without blanks, which is public. Its attribute `release` has the cost, which
        `to_toml` and model files keep as `bought`.

    See Also
    --------
    Schema.blank : A schema of nothing but blanks.
    Schema.to_toml : Writes a schema to a file.

    Notes
    -----
    Released: cuts, ranges, buckets and names. Cost: the whole budget, of which each blank column
    gets an equal share. docs/blanks.md has the proofs.

    References
    ----------
    A. Smith, "Privacy-preserving statistical estimation with optimal convergence rates", STOC 2011,
    for private quantiles; D. Desfontaines, J. Voss, B. Gipson, C. Mandayam, "Differentially private
    partition selection", PETS 2022, for names.

    Examples
    --------
    >>> import numpy as np
    >>> from privfit import learn_schema
    >>> rng, n = np.random.default_rng(0), 10_000
    >>> people = {"age": rng.integers(18, 90, n), "job": rng.choice(["clerk", "nurse"], n)}
    >>> schema = learn_schema(people, 1.0, 1e-6, columns={"age": "number", "job": "category"})
    >>> schema.columns["job"].values
    ('clerk', 'nurse')
    >>> schema.release.epsilon
    1.0
    """
    schema = as_schema(columns)
    terms = Terms("learn_schema", epsilon, delta, adjacency, n_public, ledger, random_state)
    return bought(schema, BlankRows.sums(X, schema, n_threads), terms, levels)


def bought(schema: Schema, sums: Sums[BlankRows], terms: Terms, levels: int | None) -> Schema:
    """The schema with its blanks bought from packed records: plan, charge, draw, close."""
    plan = BlankPlan.of(schema, terms.budget, terms.neighbours, terms.size(sums), levels)
    paid = terms.charge(sums)
    paid.plan(*plan.events)
    found = plan.buy(schema, sums, paid.release)
    declared = found.to_dict()["columns"]
    released = {name: declared[name] for name in schema.blanks}
    release = paid.close(found, plan.settings, {"columns": released})
    digest = hashlib.sha256(release.to_json().encode()).hexdigest()[:16]
    price = release.epsilon, release.delta, release.adjacency
    marked = found.marked(Purchase(*price, tuple(released), digest).to_mark())
    object.__setattr__(marked, "release", release)
    return marked

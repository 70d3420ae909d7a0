"""Texts of edges: as few digits as tell them apart, in order."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from privfit import Categorical, Numeric, Schema
from privfit.domains.edges import edge_texts, range_texts
from privfit.domains.scales import CUTS

FINITE = st.floats(-1e300, 1e300, allow_nan=False)


@given(st.lists(FINITE, min_size=2, max_size=30, unique=True))
def test_texts_of_edges_differ_and_are_near_and_in_order(numbers):
    edges = sorted(numbers)
    texts = edge_texts(edges)
    read = [float(text) for text in texts]
    assert len({*texts}) == len(edges)
    assert all(low < high for low, high in pairwise(read))
    for i, (edge, shown) in enumerate(zip(edges, read, strict=True)):
        gap = min(abs(edge - other) for j, other in enumerate(edges) if j != i)
        assert shown == edge or abs(shown - edge) < gap / 8


@pytest.mark.parametrize(("edges", "texts"), [
    ([17, 90], ["17", "90"]),
    ([20, 25, 30], ["20", "25", "30"]),
    ([4000, 4999.7, 7000], ["4000", "5000", "7000"]),
    ([0, 0.1 + 0.2, 1], ["0", "0.3", "1"]),
    ([1e-7, 1e-6, 0.5], ["1e-7", "1e-6", "0.5"]),
    ([1.5e6, 2.5e6, 1e12], ["1.5e6", "2.5e6", "1e12"]),
    ([-12.5, -10.5, 3.25], ["-12.5", "-10.5", "3.25"]),
    ([41.3], ["41.3"]),
    ([-math.inf, 5, math.inf], ["", "5", ""]),
    ([0.1, np.nextafter(0.1, 1)], ["0.1", "0.10000000000000002"]),
])  # fmt: skip
def test_digits_are_as_few_as_tell_edges_apart(edges, texts):
    assert edge_texts(edges) == texts


def test_ranges_say_where_they_end():
    assert range_texts([-math.inf, math.inf]) == ["any number"]
    assert range_texts([-math.inf, 1, 5000, math.inf]) == ["below 1", "1 to 5000", "5000 or more"]
    assert range_texts([17, 50, 90]) == ["17 to 50", "50 to 90"]


def test_levels_are_named_by_their_edges():
    schema = Schema({
        "age": Numeric(17, 90, bins=[25, 30]), "gain": Numeric(bins=[1], missing=True),
        "pay": Numeric(scale="log", fill=0), "job": Categorical(["a"], other=True),
        "x": Numeric(0, 1),
    })  # fmt: skip
    names = {name: part.full_names for name, part in schema.parts.items()}
    assert names["age"] == ("age 17 to 25", "age 25 to 30", "age 30 to 90")
    assert names["gain"] == ("gain below 1", "gain 1 or more", "gain=<missing>")
    assert names["job"] == ("job=a", "job=<other>")
    assert names["x"] == ("x",)
    assert len({*names["pay"]}) == len(CUTS) + 1
    assert max(map(len, names["pay"])) <= 25

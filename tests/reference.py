"""The specification: every kernel and formula once more, short, slow and obviously right.

Integers are Python integers, rationals are fractions, logarithms come from mpmath. Nothing here
imports privfit: a domain is read through the attributes that its user declared.

A record is a list of integers, in units of 2^(e_j - a) for column j; a candidate is a list of
integers, in units of 2^(-e_j - b), the intercept last. A margin is an integer in units of 2^-(a+b).
"""

from __future__ import annotations

import itertools
import math
import re
import struct
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath
import numpy as np

Record = list[int]

mpmath.mp.prec = 120


def power_of_two(e: int) -> Fraction:
    return Fraction(2) ** int(e)


def round_half_up(value: Fraction) -> int:
    return math.floor(value + Fraction(1, 2))


def round_half_even(value: Fraction) -> int:
    return round(value)


def own_units(value: float, low: float, high: float, unit: float) -> int:
    """A score of one's own in whole units above `low`; NaN counts as `low`. Floats are float64."""
    if math.isnan(value):
        return 0
    return round((min(max(value, low), high) - low) / unit)


# ------------------------------------------------------------------------------------ single cells

MISSING, NOTHING = "missing", "matches nothing"  # what is no canonical value


def float32(number: float) -> Fraction | float:
    """The nearest float32, ties to even; infinite beyond its range."""
    try:
        return Fraction(struct.unpack("<f", struct.pack("<f", number))[0])
    except OverflowError:
        return math.copysign(math.inf, number)


def plain_cell(cell: Any) -> Any:
    """A cell of numpy as Python has it; bytes as text."""
    if cell is np.ma.masked or (isinstance(cell, np.datetime64) and np.isnat(cell)):
        return None
    if isinstance(cell, np.datetime64):
        return str(cell.astype("M8[us]"))
    if isinstance(cell, np.generic) or (isinstance(cell, np.ndarray) and cell.ndim == 0):
        cell = cell.item()
    return cell.decode("utf-8", "replace") if isinstance(cell, bytes | bytearray) else cell


def canonical_value(cell: Any) -> Any:
    """A cell as ("number", a fraction) or ("text", a text), or what is neither."""
    cell = plain_cell(cell)
    if isinstance(cell, str):
        return _canonical_text(cell)
    if cell is None or str(cell) in ("nan", "NaN", "NaT", "<NA>"):
        return MISSING
    if isinstance(cell, date):
        return _canonical_text(cell.isoformat())
    if isinstance(cell, int | float | Fraction | Decimal):
        return _canonical_number(cell)
    return NOTHING


def _canonical_number(number: Any) -> Any:
    """Whole numbers below 2^53 are themselves, fractions those of float32."""
    if abs(number) >= 2**53 or abs(float(number)) >= 2**53:
        return NOTHING
    nearest = Fraction(float(number))
    return "number", nearest if nearest.denominator == 1 else float32(float(nearest))


def _canonical_text(text: str) -> Any:
    if re.fullmatch(r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?", text):
        number = float(text)  # correctly rounded
        return NOTHING if math.isinf(number) else _canonical_number(number)
    if text.lower() in ("true", "false"):
        return "number", Fraction(text.lower() == "true")
    if re.fullmatch(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(\+00:00)?", text, re.ASCII):
        (clock, zone, _), day = text[11:].partition("+00:00"), text[:10]
        clock += ":00" if clock.count(":") == 1 else ""
        clock = clock.rstrip("0").rstrip(".") if "." in clock else clock
        return "text", day if clock + zone == "00:00:00" else f"{day}T{clock}{zone}"
    return "text", unicodedata.normalize("NFC", text)


def number_of(cell: Any, missing: Sequence[str] = ()) -> Fraction | float | None:
    """The float32 of a cell in a numeric column; None if it is missing or no number."""
    cell = plain_cell(cell)
    value = canonical_value(cell)
    tokens = [canonical_value(token) for token in missing]
    number: Any = None
    if isinstance(cell, str) and value in tokens:
        return None
    if isinstance(cell, str):
        form = r"[ \t]*([+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?)[ \t]*"
        endless = r"[ \t]*([+-]?)inf(inity)?[ \t]*"
        if re.fullmatch(form, text := cell):
            number = float(text.strip(" \t"))
        elif found := re.fullmatch(endless, text, re.IGNORECASE | re.ASCII):
            number = -math.inf if found[1] == "-" else math.inf
        elif text.strip(" \t").lower() in ("true", "false"):
            number = float(text.strip(" \t").lower() == "true")
    elif value != MISSING and isinstance(cell, int | float | Fraction | Decimal):
        number = float(cell) if abs(cell) < 2**1023 else math.inf if cell > 0 else -math.inf
    if number is None or canonical_value(number) in tokens:
        return None
    return number if math.isinf(number) else float32(number)


def schema_cell(cell: Any, column: Any, missing: Sequence[str] = ("",)) -> int | Fraction:
    """The level of a cell, or its share of the range."""
    if hasattr(column, "values"):
        levels = [canonical_value(level) for level in column.values]
        value = canonical_value(cell)
        return levels.index(value) if value in levels else len(levels)
    low, high = (Fraction(float32(bound)) for bound in (column.low, column.high))
    number = number_of(cell, missing)
    number = float32(column.fill) if number is None else number
    if number in (math.inf, -math.inf):
        return Fraction(number > 0)
    return min(max((Fraction(number) - low) / (high - low), Fraction(0)), Fraction(1))


# ---------------------------------------------------------------------------- domains and the grid


def exponent(bound: Any) -> int:
    """The least e with 2^e >= abs(bound); 0 for a column that is always 0."""
    bound = abs(Fraction(bound))
    if bound == 0:
        return 0
    e = bound.numerator.bit_length() - bound.denominator.bit_length() - 1
    while power_of_two(e) < bound:
        e += 1
    return e


def declared_bounds(domain: Any) -> list[tuple[Fraction, Fraction]]:
    """(low, high) of each encoded column, as declared."""
    d, kind = domain.n_features, type(domain).__name__
    if kind == "Schema":
        return [(Fraction(0), Fraction(1))] * d
    if kind == "Box":
        low, high = (np.broadcast_to(bound, (d,)) for bound in (domain.lower, domain.upper))
        return [(Fraction(float(a)), Fraction(float(b))) for a, b in zip(low, high, strict=True)]
    return [(-Fraction(domain.radius), Fraction(domain.radius))] * d


def exponents(domain: Any, uniform: bool = False) -> list[int]:
    """The power of two that covers each column; `uniform`: that of the widest, for all."""
    each = [exponent(max(abs(low), abs(high))) for low, high in declared_bounds(domain)]
    return [max(each)] * len(each) if uniform else each


def record_units(domain: Any, uniform: bool = False) -> list[Fraction]:
    return [power_of_two(e - domain.grid.a) for e in exponents(domain, uniform)]


def weight_units(domain: Any) -> list[Fraction]:
    return [power_of_two(-e - domain.grid.b) for e in [*exponents(domain), 0]]


def box_record(x: Sequence[float], domain: Any, uniform: bool = False) -> Record:
    """Clip each column to the whole units inside its bounds, rounding towards zero."""
    result = []
    for v, (low, high), unit in zip(
        x, declared_bounds(domain), record_units(domain, uniform), strict=True
    ):
        whole = math.trunc(Fraction(float(v)) / unit)
        result.append(min(max(whole, math.ceil(low / unit)), math.floor(high / unit)))
    return result


def length_up(record: Iterable[int], power: int) -> int:
    """The l1 or l2 norm, rounded up."""
    if power == 1:
        return sum(abs(v) for v in record)
    square = sum(v * v for v in record)
    root = math.isqrt(square)
    return root + (root * root < square)


def ball_record(x: Sequence[float], domain: Any, uniform: bool = False) -> Record:
    """Round towards zero; if that is outside, scale 22 leading bits of each column to fit."""
    power = 1 if type(domain).__name__ == "L1Ball" else 2
    unit = record_units(domain)[0]
    radius = math.floor(Fraction(domain.radius) / unit)
    exact = [Fraction(float(v)) for v in x]
    whole = [math.trunc(v / unit) for v in exact]
    if length_up(whole, power) <= radius:
        return whole
    top = math.frexp(max(abs(float(v)) for v in x))[1]
    lead = [math.floor(abs(v) * power_of_two(22 - top)) for v in exact]
    length = length_up(lead, power)
    return [
        (-1 if v < 0 else 1) * (part * radius // length)
        for v, part in zip(exact, lead, strict=True)
    ]


def schema_record(x: Sequence[Any], domain: Any, uniform: bool = False) -> Record:
    """One value for each declared column; [0, 1] in units of 2^-a, or one level of a group."""
    one = 1 << domain.grid.a
    result: Record = []
    for cell, column in zip(x, domain.columns.values(), strict=True):
        place = schema_cell(cell, column, domain.missing)
        if hasattr(column, "values"):
            result += [one * (j == place) for j in range(len(column.values) + column.other)]
        elif column.bins:
            cuts = column.bins if isinstance(column.bins, tuple) else ()
            hot = sum(schema_cell(cut, column) <= place for cut in cuts)
            hot = hot if cuts else min(math.floor(place * column.bins), column.bins - 1)
            width = len(cuts) + 1 if cuts else column.bins
            result += [one * (j == hot) for j in range(width)]
        else:
            result.append(math.floor(place * one))
    return result


def taken(code: int, entries: Sequence[int], odd: int) -> int:
    """The entry of a code; `odd` for codes that are none, and for entries below zero."""
    entry = entries[code] if 0 <= code < len(entries) else -1
    return odd if entry < 0 else entry


def code_number(
    x: float, cuts: Sequence[float], low: float, high: float, one: int, odd: int
) -> int:
    """The bin of a number in float32, or its share of the range in steps; `odd` for NaN."""
    number = float(np.float32(x))
    if math.isnan(number):
        return odd
    if len(cuts):
        return sum(float(cut) <= number for cut in cuts)
    return math.trunc((min(max(number, low), high) - low) / (high - low) * one)


def records(X: Iterable[Sequence[Any]], domain: Any, uniform: bool = False) -> list[Record]:
    """The records as the kernels must see them."""
    quantise = {"Box": box_record, "Schema": schema_record}.get(type(domain).__name__, ball_record)
    return [quantise(list(x), domain, uniform) for x in X]


def candidates(P: Iterable[Sequence[float]], domain: Any) -> list[Record]:
    """Candidates of a linear model in whole units; they must be on the grid."""
    units = weight_units(domain)
    whole = [[Fraction(float(v)) / unit for v, unit in zip(w, units, strict=True)] for w in P]
    assert all(v.denominator == 1 for w in whole for v in w)
    return [[int(v) for v in w] for w in whole]


def whole_candidates(
    P: Iterable[Sequence[float]], units: Sequence[float], largest: Sequence[float]
) -> tuple[list[list[Fraction]], Fraction] | str:
    """Candidates in units, and the largest sum of sizes times sizes; or what is wrong with them."""
    rows = [list(map(float, row)) for row in P]
    if not all(map(math.isfinite, itertools.chain(*rows))):
        return "not finite"
    whole = [[Fraction(x) / Fraction(u) for x, u in zip(row, units, strict=True)] for row in rows]
    if any(x.denominator > 1 for x in itertools.chain(*whole)):
        return "off grid"
    sizes = ((abs(Fraction(x)) * Fraction(s) for x, s in zip(row, largest, strict=True))
             for row in rows)  # fmt: skip
    return whole, max(map(sum, sizes))


def snapped(x: float, unit: float | None, low: float, high: float) -> float:
    """A number rounded to its grid, half to even, and clipped to an interval."""
    if unit is not None and math.isfinite(x):
        x = math.copysign(round_half_even(Fraction(x) / Fraction(unit)) * unit, x)
    return low if x < low else high if x > high else x


Point = Sequence[float]


def squared_distance(p: Point, c: Point) -> float:
    """-2 <p, c> column by column, then both squares, in floats; at least 0."""
    products, squares = 0.0, [0.0, 0.0]
    for x, y in zip(p, c, strict=True):
        products += x * (-2 * y)
        squares = [squares[0] + x * x, squares[1] + y * y]
    return max(products + squares[0] + squares[1], 0.0)


def pairwise(x: Sequence[float]) -> float:
    """A sum of floats as numpy adds them up."""
    n = len(x)
    if n > 128:
        half = n // 2 - n // 2 % 8
        return pairwise(x[:half]) + pairwise(x[half:])
    total, whole = 0.0, n - n % 8
    if whole:
        s = list(x[:8])
        for i in range(8, whole, 8):
            s = [a + b for a, b in zip(s, x[i : i + 8], strict=True)]
        total = ((s[0] + s[1]) + (s[2] + s[3])) + ((s[4] + s[5]) + (s[6] + s[7]))
    for a in x[whole:]:
        total += a
    return total


def lloyd_step(
    points: Sequence[Point], weights: Sequence[float], centers: Sequence[Point]
) -> tuple[list[int], float, list[list[float]]]:
    """The nearest centre of each point, the first of several; their cost; where centres move."""
    nearest, cost = [], 0.0
    for p, w in zip(points, weights, strict=True):
        distances = [squared_distance(p, c) for c in centers]
        nearest.append(distances.index(min(distances)))
        cost += w * min(distances)
    moved = [list(c) for c in centers]
    for j, c in enumerate(moved):
        mine = [i for i, a in enumerate(nearest) if a == j]
        if math.fsum(weights[i] for i in mine) > 0:
            total = weights[mine[0]] + pairwise([weights[i] for i in mine[1:]])
            for e in range(len(c)):
                x = [weights[i] * points[i][e] for i in mine]
                c[e] = (x[0] + pairwise(x[1:])) / total
    return nearest, cost, moved


def curve_step(
    full: Sequence[float],
    nodes: Sequence[int],
    p: Sequence[float],
    chords: Sequence[Sequence[float]],
    ratio: float,
    margin: float,
    least: float,
    size: int,
) -> list[float]:
    """A step of a privacy curve, number by number: the largest of all nodes and chords."""
    found, width = [], nodes[-1]
    for j in range(size):
        down = [full[j + width - node] for node in nodes]
        up = [full[j + 2 * width - node] for node in nodes]
        f = [(d - u) * share + u for d, u, share in zip(down, up, p, strict=True)]
        z = [d - u * ratio for d, u in zip(down, up, strict=True)]
        values = list(f)
        for i, (slope, low, high) in enumerate(zip(*chords, strict=True)):
            bend = (z[i + 1] - z[i]) + least
            u = min(max((f[i + 1] - f[i]) / bend * slope + low, 0.0), high)
            values.append(u * u * bend + f[i])
        found.append(max(values) + margin * full[j])
    return found


def corners(domain: Any, uniform: bool = False) -> list[Record]:
    """Extreme records of a domain, in record units: box corners, l1 vertices, all one-hot rows."""
    kind, d = type(domain).__name__, domain.n_features
    units = record_units(domain, uniform)
    if kind == "Box":
        ends = [(math.ceil(low / u), math.floor(high / u))
                for (low, high), u in zip(declared_bounds(domain), units, strict=True)]  # fmt: skip
        return [list(corner) for corner in itertools.product(*ends)]
    if kind == "Schema":
        one = 1 << domain.grid.a
        choices = []
        for column in domain.columns.values():
            width = getattr(column, "bins", None)
            width = len(column.values) + column.other if width is None else width
            hot = [[one * (j == i) for j in range(width)] for i in range(width)]
            choices.append(hot if width else [[0], [one]])
        return [list(itertools.chain(*choice)) for choice in itertools.product(*choices)]
    radius = math.floor(Fraction(domain.radius) / units[0])
    return [[s * radius * (i == j) for i in range(d)] for j in range(d) for s in (1, -1)]


def every_record(domain: Any) -> list[Record]:
    """All records of a small domain, in record units."""
    kind = type(domain).__name__
    if kind == "Schema":
        one = 1 << domain.grid.a
        choices: list[list[Record]] = []
        for column in domain.columns.values():
            if hasattr(column, "values") or column.bins:
                width = (
                    len(column.values) + column.other if hasattr(column, "values") else column.bins
                )
                choices.append([[one * (j == i) for j in range(width)] for i in range(width)])
            else:
                choices.append([[v] for v in range(one + 1)])
        return [list(itertools.chain(*choice)) for choice in itertools.product(*choices)]
    grid = itertools.product(*(range(low, high + 1) for low, high in whole_bounds(domain)))
    if kind == "Box":
        return [list(x) for x in grid]
    radius = math.floor(Fraction(domain.radius) / record_units(domain)[0])
    return [list(x) for x in grid if length_up(x, 1 if kind == "L1Ball" else 2) <= radius]


def support_norm(domain: Any, v: Sequence[float]) -> mpmath.mpf:
    """sup of abs(<x~, v>) over records: at a corner, or along v for the l2 ball."""
    v = [Fraction(float(part)) for part in v]
    units = record_units(domain)
    if type(domain).__name__ == "L2Ball":
        radius = math.floor(Fraction(domain.radius) / units[0]) * units[0]
        square = sum(part * part for part in v[:-1])
        return as_mp(radius) * mpmath.sqrt(as_mp(square)) + as_mp(abs(v[-1]))
    return as_mp(
        max(
            abs(sum(x * u * part for x, u, part in zip(corner, units, v[:-1], strict=True)) + v[-1])
            for corner in corners(domain)
        )
    )


def as_mp(value: Any) -> mpmath.mpf:
    value = Fraction(value)
    return mpmath.mpf(value.numerator) / value.denominator


# ------------------------------------------------------------------------------------ linear models


def margin(x: Record, w: Record, a: int) -> int:
    """<x, w> + intercept, exactly, in units of 2^-(a+b)."""
    return sum(xj * wj for xj, wj in zip(x, w[:-1], strict=True)) + (w[-1] << a)


def true_loss(z: int, label: int, loss: str, grid: Any, C: float = 1.0) -> mpmath.mpf:
    """The loss of a record whose margin is z units, in score units, without any rounding."""
    if loss == "zero_one":
        return mpmath.mpf(int((z > 0) != bool(label)))
    m = (z if label else -z) * power_of_two(-grid.a - grid.b)
    if loss == "hinge":
        return as_mp(max(1 - m, Fraction(0)) * Fraction(C) * 2**grid.c)
    return mpmath.log1p(mpmath.exp(as_mp(-m))) * 2**grid.c


def hinge_integer(z: int, label: int, grid: Any, C: float = 1.0) -> int:
    """The hinge loss is rational, so its integer is known: rounded half up."""
    m = (z if label else -z) * power_of_two(-grid.a - grid.b)
    return round_half_up(max(1 - m, Fraction(0)) * Fraction(C) * 2**grid.c)


def zero_one_integer(z: int, label: int) -> int:
    """Predict 1 iff z > 0."""
    return int((z > 0) != bool(label))


def true_residual(z: int, label: int, cap: int, grid: Any, one: int) -> mpmath.mpf:
    """min(sigma(-m), cap) in units of 1/one; cap in the same units."""
    m = (z if label else -z) * power_of_two(-grid.a - grid.b)
    return min(one / (1 + mpmath.exp(as_mp(m))), mpmath.mpf(cap))


def hinge_residual(z: int, label: int, cap: int, grid: Any, one: int) -> Fraction:
    """clip(1 - m, 0, cap) in units of 1/one; cap in the same units."""
    m = (z if label else -z) * power_of_two(-grid.a - grid.b)
    return min(max((1 - m) * one, Fraction(0)), Fraction(cap))


def gradient(rows: list[Record], labels: Sequence[int], residuals: Sequence[int], a: int) -> Record:
    """sum of y x~ r, the intercept last."""
    total = [0] * (len(rows[0]) + 1)
    for x, label, r in zip(rows, labels, residuals, strict=True):
        for j, v in enumerate([*x, 1 << a]):
            total[j] += v * r if label else -v * r
    return total


def margin_cell(x: Sequence[Fraction], w: Sequence[float], fine: int, reach: int) -> int:
    """The cell, 2^-fine wide, of a record's score <x, w> + intercept; the intercept last."""
    z = sum(xj * Fraction(wj) for xj, wj in zip(x, w[:-1], strict=True)) + Fraction(w[-1])
    return min(max(round_half_up(z * 2**fine), -reach), reach)


def calibration_row(
    cell: int, label: int, slope: float, intercept: float, weight: float, fine: int
) -> list[mpmath.mpf]:
    """What a record adds to the sums of a calibration, before it is truncated."""
    z = mpmath.mpf(cell) / (1 << fine)
    v = slope * z + intercept
    p = 1 / (1 + mpmath.exp(-v))
    r = label - p
    h = abs(r) * (1 - abs(r))
    turned = min(max((z + 2) / 4, mpmath.mpf(0)), mpmath.mpf(1))
    length = mpmath.sqrt((1 - turned) ** 2 + turned**2)
    row = [part * u / length for part in (r, 2 * h, 2 * h * v) for u in (1 - turned, turned)]
    return [weight * number * 2**16 for number in row]


def whole_bounds(domain: Any) -> list[tuple[int, int]]:
    """(low, high) of each column, over all records, in whole units."""
    if type(domain).__name__ == "Schema":
        return [(0, 1 << domain.grid.a)] * domain.n_features
    units = record_units(domain)
    return [(math.ceil(low / u), math.floor(high / u))
            for (low, high), u in zip(declared_bounds(domain), units, strict=True)]  # fmt: skip


def centred_scales(domain: Any) -> list[Fraction]:
    """2^k of each column: the least power of two that covers its width; a constant's own."""
    units, own = record_units(domain), exponents(domain)
    widths = [(high - low) * u for (low, high), u in zip(whole_bounds(domain), units, strict=True)]
    return [power_of_two(exponent(width) if width else e)
            for width, e in zip(widths, own, strict=True)]  # fmt: skip


def centred_record(x: Record, domain: Any) -> list[Fraction]:
    """((x - middle) / 2^k, 1/2): every column in [-1/2, 1/2], the intercept last."""
    columns = zip(x, whole_bounds(domain), record_units(domain), centred_scales(domain),
                  strict=True)  # fmt: skip
    return [(v - Fraction(low + high, 2)) * unit / scale
            for v, (low, high), unit, scale in columns] + [Fraction(1, 2)]  # fmt: skip


def centred_gradient(
    rows: list[Record], labels: Sequence[int], residuals: Sequence[int], domain: Any
) -> list[Fraction]:
    """sum of y x' r over the centred records, the intercept last."""
    total = [Fraction(0)] * (len(rows[0]) + 1)
    for x, label, r in zip(rows, labels, residuals, strict=True):
        for j, v in enumerate(centred_record(x, domain)):
            total[j] += v * r if label else -v * r
    return total


def centred_weights(u: Sequence[float], domain: Any) -> list[Fraction]:
    """The linear model with the margins of the centred weights u, before it is put on the grid."""
    centred = zip(u[:-1], centred_scales(domain), strict=True)
    w = [Fraction(float(v)) / scale for v, scale in centred]
    middles = [Fraction(low + high, 2) * unit
               for (low, high), unit in zip(whole_bounds(domain), record_units(domain),
                                            strict=True)]  # fmt: skip
    shift = sum(wj * middle for wj, middle in zip(w, middles, strict=True))
    return [*w, Fraction(float(u[-1])) / 2 - shift]


# ------------------------------------------------------------------------------------ smooth losses
#
# Of width 0 the logistic loss, else the hinge rounded by a parabola within the width of 1. The
# first three are for real margins and arrays of them. The others are in float64, one operation
# after the other as the kernels do them, and must agree bit for bit.


def tabled_loss(m: float, knots: list[float], cells: int, steepest: float) -> tuple[float, float]:
    """Minus the slope, and the curvature relative to the steepest: lines between knots, one a cell.

    Of floats that are rounded one operation after the other, as the kernel has it.
    """
    half = (len(knots) - 1) // 2
    place = m * cells
    if place < -half:
        return knots[0], 0.0
    if place >= half:
        return knots[-1], 0.0
    cell = math.floor(place)
    left, right = knots[cell + half], knots[cell + half + 1]
    return left - (place - cell) * (left - right), (left - right) * (cells / steepest)


def loss_values(width: float, m: Any) -> Any:
    if not width:
        return np.logaddexp(0, -m)
    return np.where(m < 1 - width, 1 - m, np.maximum(1 + width - m, 0) ** 2 / (4 * width))


def loss_slopes(width: float, m: Any) -> Any:
    """Minus the slope."""
    return np.clip((1 + width - m) / (2 * width), 0, 1) if width else 1 / (1 + np.exp(m))


def loss_curvatures(width: float, s: Any) -> Any:
    """Where minus the slope is s."""
    return np.where((s > 0) & (s < 1), 1 / (2 * width), 0.0) if width else s * (1 - s)


def exp_minus(t: float) -> float:
    """exp(-t), t = k ln 2 - f: the terms f^i / i! up to i = 13, in the kernel's own order."""
    k = float(round(t * 1.4426950408889634))
    f = k * 0.6931471805582987 - t + k * 1.6465949582897082e-12
    c = [1.0 / math.factorial(i) for i in range(14)]
    f2 = f * f
    f4 = f2 * f2
    u = (1.0 + f) + f2 * (c[2] + f * c[3])
    u += f4 * ((c[4] + f * c[5]) + f2 * (c[6] + f * c[7]))
    u += f4 * f4 * ((c[8] + f * c[9]) + f2 * (c[10] + f * c[11]) + f4 * (c[12] + f * c[13]))
    return math.ldexp(u, -int(k))


def smooth_loss(m: float, width: float) -> tuple[float, float]:
    """Minus the slope at a signed margin, and the curvature relative to the largest."""
    if width:
        inside = ((1.0 + width) - m) * (1.0 / (2.0 * width))
        return min(max(inside, 0.0), 1.0), float(0 < inside < 1)
    u = exp_minus(min(abs(m), 64.0))
    part = 1.0 / (1.0 + u)
    return part if m < 0 else u * part, 4.0 * u * part * part


def feature_record(parts: Sequence[tuple[Sequence[Sequence[float]], int]]) -> list[float]:
    """A coded record: of each column the row of its level, then 1/2; its length is not scaled."""
    return [value for rows, level in parts for value in rows[level]] + [0.5]


def clipped_numbers(x: Record, numbers: Sequence[int], limit: float) -> Record:
    """A record whose numbers add up to at most the limit: scaled down together, rounded down."""
    total = sum(x[j] for j in numbers)
    if total <= limit:
        return x
    return [v * int(limit) // total if j in numbers else v for j, v in enumerate(x)]


def smooth_margin(x: Record, limbs: Sequence[Record], bits: Sequence[int]) -> float:
    """The sum of exact integers times 2^-bits, the finest first, each rounded once.

    Those of single terms may not fit in 64 bits; sums wrap.
    """
    margin = 0.0
    for w, shift in zip(reversed(limbs), reversed(bits), strict=True):
        exact = sum(xj * wj for xj, wj in zip(x, w[:-1], strict=True)) + w[-1]
        exact = (exact + 2**63) % 2**64 - 2**63
        margin += math.ldexp(float(exact), -shift)
    return margin


def pulled(x: Record, residual: float, a: int, bits: int) -> Record:
    """The whole numbers next to 2^bits residual x_j, the intercept last."""
    scaled = math.ldexp(residual, bits - a)
    return [round(v) for v in (*(scaled * xj for xj in x), math.ldexp(residual, bits))]


def pulled_finely(x: Record, residual: float, a: int, bits: int) -> tuple[Record, Record]:
    """The residual in two whole numbers, of units 2^(a - bits) and that squared, times x_j."""
    scaled = math.ldexp(residual, bits - a)
    first = round(scaled)
    second = round(math.ldexp(scaled - first, bits - a))
    return [first * v for v in (*x, 1 << a)], [second * v for v in (*x, 1 << a)]


def second_moments(rows: list[Record], a: int) -> list[Record]:
    """sum of x~ x~', the intercept last."""
    full = [[*x, 1 << a] for x in rows]
    d = len(full[0])
    return [[sum(x[i] * x[j] for x in full) for j in range(d)] for i in range(d)]


# --------------------------------------------------------------------------------------- features


def features_of(levels: Sequence[int], tables: Sequence[Sequence[Record]], one: int) -> Record:
    """phi of one record: the rows of its levels one after the other, then the constant."""
    return [*itertools.chain(*(table[i] for table, i in zip(tables, levels, strict=True))), one]


def full_row(phi: Record) -> dict[tuple[int, int], int]:
    """What one record adds to the triangle of sum phi phi'."""
    return {(i, j): phi[i] * phi[j] for i in range(len(phi)) for j in range(i, len(phi))}


def block_row(
    levels: Sequence[int], tables: Sequence[Sequence[Record]], one: int
) -> dict[tuple[int, int, int], int]:
    """What one record adds to block moments: T T' and ONE T of each column, and ONE^2."""
    added = {(-1, -1, -1): one * one}
    for c, (table, level) in enumerate(zip(tables, levels, strict=True)):
        row = table[level]
        for i in range(len(row)):
            added[c, i, -1] = one * row[i]
            for j in range(i, len(row)):
                added[c, i, j] = row[i] * row[j]
    return added


# ---------------------------------------------------------------------------------------- centres


def distance(x: Record, c: Record, power: int) -> int:
    return sum(abs(xj - cj) ** power for xj, cj in zip(x, c, strict=True))


def centers_cost(rows: list[Record], centers: list[Record], power: int) -> int:
    return sum(min(distance(x, c, power) for c in centers) for x in rows)


def lloyd(
    rows: list[Record], centers: list[Record], power: int
) -> tuple[list[int], list[list[int]]]:
    """Counts and sums of the records nearest to each centre; ties go to the lowest index."""
    counts, sums = [0] * len(centers), [[0] * len(rows[0]) for _ in centers]
    for x in rows:
        distances = [distance(x, c, power) for c in centers]
        nearest = distances.index(min(distances))
        counts[nearest] += 1
        sums[nearest] = [s + v for s, v in zip(sums[nearest], x, strict=True)]
    return counts, sums


def clipped(v: Record, radius: int, norm: int) -> Record:
    """v shrunk to an l1 or l2 norm of at most `radius`: by 32 bits of the factor, towards zero."""
    if norm == 1 and sum(abs(x) for x in v) <= radius:
        return v
    if norm == 2 and sum(x * x for x in v) <= radius * radius:
        return v
    factor = (radius << 32) // length_up(v, norm)
    return [(-1 if x < 0 else 1) * ((abs(x) * factor) >> 32) for x in v]


def residual_sums(
    rows: list[Record], centers: list[Record], radius: int, norm: int, power: int = 2
) -> tuple[list[int], list[list[int]]]:
    """Counts, and sums of the clipped differences of records to their nearest centre."""
    counts, sums = [0] * len(centers), [[0] * len(rows[0]) for _ in centers]
    for x in rows:
        distances = [distance(x, c, power) for c in centers]
        j = distances.index(min(distances))
        counts[j] += 1
        v = clipped([a - b for a, b in zip(x, centers[j], strict=True)], radius, norm)
        sums[j] = [s + a for s, a in zip(sums[j], v, strict=True)]
    return counts, sums


def clipped_products(
    rows: list[Record], point: Record, shift: int, radius: int, norm: int
) -> list[Record]:
    """sum of v v', v the clipped differences to a point in units of 2^shift."""
    d = len(point)
    total = [[0] * d for _ in range(d)]
    for x in rows:
        away = [a - b for a, b in zip(x, point, strict=True)]
        v = clipped([(-1 if a < 0 else 1) * (abs(a) >> shift) for a in away], radius, norm)
        total = [[total[i][j] + v[i] * v[j] for j in range(d)] for i in range(d)]
    return total


def clipped_deviations(rows: list[Record], point: Record, radius: int, norm: int) -> Record:
    """sum of abs(v), v the clipped differences to a point."""
    total = [0] * len(point)
    for x in rows:
        v = clipped([a - b for a, b in zip(x, point, strict=True)], radius, norm)
        total = [s + abs(a) for s, a in zip(total, v, strict=True)]
    return total


def ruled(x: int, origin: int, reach: int, bits: int) -> int:
    """Where a number is on a scale that is coarse beyond its reach."""
    away = abs(x - origin)
    place = away if away <= reach else reach + (away - reach) // 2**bits
    return -place if x < origin else place


def framed_place(
    x: Record, origin: Record, frame: list[Record], reach: Record, bits: int
) -> list[int]:
    """The whole numbers of a record in the box about the origin of a frame."""
    away = [a - b for a, b in zip(x, origin, strict=True)]
    places = [sum(a * b for a, b in zip(axis, away, strict=True)) // 2**bits for axis in frame]
    return [min(max(p, -r), r) for p, r in zip(places, reach, strict=True)]


def norm_counts(
    rows: list[Record], centers: list[Record], radii: Sequence[int], norm: int, power: int = 2
) -> list[int]:
    """How many records each radius is the least to hold about their nearest centre; then others."""
    counts = [0] * (len(radii) + 1)
    for x in rows:
        distances = [distance(x, c, power) for c in centers]
        c = centers[distances.index(min(distances))]
        length = sum(abs(a - b) ** norm for a, b in zip(x, c, strict=True))
        counts[sum(r**norm < length for r in radii)] += 1
    return counts


def cost_steps(
    rows: list[Record], sets: list[list[Record]], most: int, shift: int, power: int = 2
) -> list[int]:
    """The last set's clipped cost, then what each set costs more than the next, record by record.

    The numbers of a record are shrunk until their absolute values add up to at most `most`.
    """
    total = [0] * len(sets)
    for x in rows:
        costs = [min(min(distance(x, c, power) for c in one) >> shift, most) for one in sets]
        steps = [costs[-1], *(costs[i] - costs[i + 1] for i in range(len(sets) - 1))]
        length = max(sum(map(abs, steps)), most)
        for i, step in enumerate(steps):
            total[i] += (1 if step > 0 else -1) * (abs(step) * most // length)
    return total


def short_radius(
    radii: Sequence[int], counts: Sequence[float], share: float
) -> tuple[float, float]:
    """The least radius that holds a share of the norms, or the last; 1 / E min(1, r / norm)."""
    counts = [max(count, 0.0) for count in counts]
    total = sum(counts)
    if total == 0:
        return radii[-1], 1.0
    held = [sum(counts[: j + 1]) / total for j in range(len(radii))]
    radius = next((r for r, part in zip(radii, held, strict=True) if part >= share), radii[-1])
    between = [math.sqrt(a * b) for a, b in itertools.pairwise(radii)]
    norms = [0.8 * radii[0], *between, 1.2 * radii[-1]]
    weight = sum(c * min(1.0, radius / m) for c, m in zip(counts, norms, strict=True)) / total
    return radius, 1 / weight


def weiszfeld_step(rows: np.ndarray, center: np.ndarray) -> np.ndarray:
    """The mean of records, each weighted by one over its distance from the centre."""
    weights = [1 / math.dist(x, center) for x in rows]
    return np.asarray(sum(w * x for w, x in zip(weights, rows, strict=True)) / sum(weights))


# -------------------------------------------------------------------------------------------- cells


def cell(x: Record, axes: Sequence[int], low: Record, high: Record) -> str:
    """The bits of a record's cell when [low, high] is halved along these columns in turn."""
    ends, bits = [[a, b + 1] for a, b in zip(low, high, strict=True)], ""
    for axis in axes:
        cut = sum(ends[axis]) // 2
        upper = x[axis] >= cut
        ends[axis][not upper] = cut
        bits += "01"[upper]
    return bits


def trees(depth: int, root: str = "") -> list[frozenset[str]]:
    """The leaves of every tree of at most so many halvings below a root."""
    if depth == 0:
        return [frozenset([root])]
    halves = (trees(depth - 1, root + bit) for bit in "01")
    return [frozenset([root]), *(a | b for a, b in itertools.product(*halves))]


@cache
def halving(u: int, rate: mpmath.mpf) -> mpmath.mpf:
    """P(u + Z > 0), Z two-sided geometric: 1 less the tail beyond, or the tail itself."""
    q = mpmath.exp(-rate)
    return 1 - q**u / (1 + q) if u >= 1 else q ** (1 - u) / (1 + q)


@cache
def log_halving(u: int, rate: mpmath.mpf, halved: bool) -> mpmath.mpf:
    """ln P that a cell of biased count u is halved, or is not."""
    return mpmath.log(halving(u, rate) if halved else 1 - halving(u, rate))


def tree_log_probability(
    leaves: frozenset[str], cells: Sequence[str], rate: Any, decay: int, roots: int, depth: int
) -> mpmath.mpf:
    """ln P of a tree, given the deepest cells of all records."""
    inner = {leaf[:i] for leaf in leaves for i in range(roots, len(leaf))}
    total = mpmath.mpf(0)
    for node in inner | leaves:
        if len(node) < depth:
            count = sum(c.startswith(node) for c in cells)
            biased = max(-decay, count - (len(node) - roots) * decay)
            total += log_halving(biased, rate, node in inner)
    return total


def path_cost(rate: mpmath.mpf, decay: int, depth: int, most: int) -> mpmath.mpf:
    """The largest ln P(path | one more record) - ln P(path) of cells that are halved, over counts
    that fall along a path of this depth from at most `most`, and over where the path ends."""

    def gain(count: int, level: int) -> mpmath.mpf:
        here, more = (max(c - level * decay, -decay) for c in (count, count + 1))
        return log_halving(more, rate, True) - log_halving(here, rate, True)

    best = [mpmath.mpf(0)] * (most + 1)  # of what follows below, for counts up to this one
    for level in reversed(range(depth)):
        worth = (gain(count, level) + best[count] for count in range(most + 1))
        best = list(itertools.accumulate(worth, max))
    return best[most]


def stop_cost(rate: mpmath.mpf, most: int) -> mpmath.mpf:
    """The largest ln P(not halved) - ln P(not halved | one more record), over biased counts."""
    logs = [log_halving(biased, rate, False) for biased in range(-most, most + 2)]
    return max(p - q for p, q in itertools.pairwise(logs))


# ------------------------------------------------------------------------------------- facilities


def clipped_distance(x: Record, place: Record, low: int, high: int, shift: int) -> int:
    """The l1 distance clipped to [low, high], less low, rounded half up to units of 2^shift."""
    clipped = min(max(distance(x, place, 1), low), high) - low
    return round_half_up(Fraction(clipped, 1 << shift))


def clipped_root(x: Record, place: Record, low: int, high: int, shift: int) -> int:
    """The same for the l2 distance, in integers: floor(r + 1/2) needs floor(2 r) alone."""
    square = min(max(distance(x, place, 2), low**2), high**2)
    halves = math.isqrt(4 * square) - 2 * low  # floor(2 (r - low))
    return (halves + (1 << shift)) >> (shift + 1)


def facility_cost(table: list[list[int]], members: Iterable[int]) -> int:
    """`table` has the clipped distances (records, facilities)."""
    return sum(min(row[i] for i in members) for row in table)


def coverage(table: list[list[int]], members: Iterable[int], radius: int) -> list[int]:
    """Of the records that no member has within the radius, how many each facility has within."""
    alone = [row for row in table if all(row[i] > radius for i in members)]
    return [sum(row[f] <= radius for row in alone) for f in range(len(table[0]))]


def weighted_cost(distances: Any, weights: Any, members: Sequence[int]) -> float:
    return float(sum(w * min(row[i] for i in members)
                     for row, w in zip(distances, weights, strict=True)))  # fmt: skip


# ------------------------------------------------------------------------------------------ ranges


def realised_range(q: Any, adjacency: str) -> Any:
    """The range of candidates when the records are those of q, where q[t, w] is the score that
    record t adds to candidate w (THEORY, theorem 2)."""
    q = np.asarray(q)
    if adjacency == "add_remove":
        return (q.max(axis=1) - q.min(axis=1)).max()
    difference = q[:, :, None] - q[:, None, :]
    return (difference.max(axis=0) - difference.min(axis=0)).max()


# The table of THEORY section 1: what `range` must return, but for rounding up.


def logistic_gap(B: mpmath.mpf, D: mpmath.mpf) -> mpmath.mpf:
    """phi(B, D) = ln((1 + e^B) / (1 + e^(B - D)))."""
    return mpmath.log1p(mpmath.exp(B)) - mpmath.log1p(mpmath.exp(B - D))


def linear_range(domain: Any, P: np.ndarray, loss: str, adjacency: str, C: float = 1.0) -> Any:
    """In units of the loss, over ordered pairs of candidates."""
    B = [support_norm(domain, w) for w in P]
    swing = [min(2 * b, 1 + b) for b in B]
    bounds = []
    for i, j in itertools.permutations(range(len(P)), 2):
        D = support_norm(domain, P[i] - P[j])
        if loss == "logistic":
            there, back = logistic_gap(B[j], D), logistic_gap(B[i], D)
            bounds.append(there if adjacency == "add_remove" else min(there + back, B[i] + B[j]))
        elif adjacency == "add_remove":
            bounds.append(C * min(D, 1 + B[j]))
        else:
            bounds.append(C * min(2 * D, swing[i] + swing[j]))
    return max(bounds)


def box_centers_range(
    sets: list[list[Record]], low: Record, high: Record, power: int, adjacency: str
) -> int:
    """The k-means row (power 2) and the k-median row (power 1, unclipped), on integers."""

    def gap(c: Record, other: Record) -> int:
        """sup over the box of dist(t, c) - dist(t, other)."""
        if power == 1:
            return distance(c, other, 1)
        return sum(
            (lo + hi) * (v - u) + (hi - lo) * abs(v - u) + u * u - v * v
            for u, v, lo, hi in zip(c, other, low, high, strict=True)
        )

    def rho(C: list[Record], other: list[Record]) -> int:
        return max(0, *(min(gap(c, v) for c in C) for v in other))

    def cover(C: list[Record]) -> int:
        return min(
            sum(max(v - lo, hi - v) ** power for v, lo, hi in zip(c, low, high, strict=True))
            for c in C
        )

    bounds = []
    for C, other in itertools.permutations(sets, 2):
        if adjacency == "add_remove":
            bounds.append(min(rho(C, other), cover(C)))
        else:
            bounds.append(min(rho(C, other) + rho(other, C), cover(C) + cover(other)))
    return max(bounds)


# ---------------------------------------------------------------------------------------- searches
#
# Each generator walks as a search must. It yields the candidates of one selection and is sent the
# number of the selected one, or the numbers. A space's operators draw from the same coins as the
# search's own, so that both see the same proposals; they are tested by themselves.


def neighbours_in_box(
    w: Sequence[float], low: float, high: float, unit: float | None, share: float
) -> list[list[float]]:
    """w with one coordinate up, or down, by a share of the width, in the box and on the grid."""
    found = []
    for sign in (1, -1):
        for j in range(len(w)):
            step = sign * share * (high - low)
            if unit is None:
                moved = min(max(w[j] + step, low), high)
            else:
                whole = w[j] / unit + round(step / unit)
                moved = min(max(whole, math.ceil(low / unit)), math.floor(high / unit)) * unit
            found.append([*w[:j], moved, *w[j + 1 :]])
    return found


def neighbours_of_set(w: Sequence[int], n: int) -> list[list[int]]:
    """w with one member swapped for an index outside."""
    return [[*w[:i], new, *w[i + 1 :]] for i in range(len(w)) for new in range(n) if new not in w]


def neighbours_of_bits(w: Sequence[bool]) -> list[list[bool]]:
    """w with one bit flipped."""
    return [[*w[:i], not w[i], *w[i + 1 :]] for i in range(len(w))]


def neighbours_of_order(w: Sequence[int]) -> list[list[int]]:
    """w with two things swapped."""
    found = []
    for i in range(len(w)):
        for j in range(i + 1, len(w)):
            moved = list(w)
            moved[i], moved[j] = w[j], w[i]
            found.append(moved)
    return found


def neighbours_of_integers(w: Sequence[int], low: int, high: int, share: float) -> list[list[int]]:
    """w with one number up, or down, by a share of the width, at least 1, within the bounds."""
    step = max(1, round(share * (high - low)))
    return [[*w[:j], min(max(w[j] + sign * step, low), high), *w[j + 1 :]]
            for sign in (1, -1) for j in range(len(w))]  # fmt: skip


def in_order_of(kept: Sequence[Any], other: Sequence[int]) -> list[int]:
    """The things that are kept, in their places; None are filled in the order of the other."""
    left = iter([thing for thing in other if thing not in kept])
    return [next(left) if thing is None else thing for thing in kept]


def shares(first: float, decay: float, r: int) -> list[float]:
    return [first * decay**t for t in range(r)]


def local_walk(start: Any, neighbours_at: Any, steps: Sequence[float]) -> Any:
    """All neighbours of where the walk stands; it goes to the selected one."""
    w = start
    for step in steps:
        candidates = neighbours_at(w, step)
        w = candidates[(yield candidates)]


def eem_walk(start: Any, space: Any, m: int, steps: Sequence[float], coins: Any) -> Any:
    """m mutants of the survivor; one survives."""
    w = start
    for step in steps:
        where, what = space.some_moves(w, m, step, coins)
        candidates = [space.moved(w, where[i : i + 1], what[i : i + 1])[0] for i in range(m)]
        w = candidates[(yield np.array(candidates))]


def privgene_walk(
    starts: Any, space: Any, survivors: int, steps: Sequence[float], coins: Any, both: bool = False
) -> Any:
    """Algorithm 1: select m', cross and mutate them to m, and so on; at last select one.

    `both` children of m / 2 pairs, as published, or one child of each of m pairs.
    """
    P = starts
    for step in steps:
        chosen = yield P
        pairs = -(-len(P) // 2) if both else len(P)
        A, B = ([P[chosen[i]] for i in row] for row in
                coins.integers(survivors, size=(2, pairs)))  # fmt: skip
        children = space.splice(np.array(A), np.array(B), coins)
        if both:
            children = np.array(with_siblings(A, B, children, space, coins)[: len(P)])
        P = space.nudge(children, step, coins)
    yield P


def with_siblings(A: Any, B: Any, children: Any, space: Any, coins: Any) -> list[Any]:
    """Each child, and after it its sibling, which has the other parent's genes.

    Of sets, whose genes have no places, it is another draw from the union of both. Of permutations,
    the other parent's things where the child has the first one's, then the first one's order.
    """
    if hasattr(space, "k"):
        others = list(space.mix(np.array(A), np.array(B), coins))
    else:
        others = [sibling(*each, space) for each in zip(A, B, children, strict=True)]
    return [one for pair in zip(children, others, strict=True) for one in pair]


def sibling(a: Any, b: Any, child: Any, space: Any) -> Any:
    """The other child of one pair."""
    if hasattr(space, "spaces"):
        ends = np.cumsum([one.size for one in space.spaces])[:-1]
        parts = zip(*(np.split(row, ends) for row in (a, b, child)), space.spaces, strict=True)
        return np.concatenate([sibling(*part) for part in parts])
    if hasattr(space, "swap"):
        kept = [y if z == x else None for x, y, z in zip(a, b, child, strict=True)]
        return np.array(in_order_of(kept, list(a)))
    flat = zip(np.ravel(a), np.ravel(b), np.ravel(child), strict=True)
    genes = [y if z == x else x for x, y, z in flat]
    return np.array(genes, dtype=child.dtype).reshape(child.shape)


def dpsga_walk(
    starts: Any, space: Any, survivors: int, r: int, crossover: float, step: float, rate: float,
    coins: Any, both: bool = False,
) -> Any:  # fmt: skip
    """Peel N_s parents, keep them first, fill up to N_p with their children; at last select one.

    `both` children of half as many pairs, as published, or one child of each pair.
    """
    P = starts
    for _ in range(r):
        chosen = yield P
        parents = [P[i] for i in chosen]
        wanted = len(P) - survivors
        first, second = coins.integers(survivors, size=(2, -(-wanted // 2) if both else wanted))
        crossed = coins.random(len(first)) < crossover
        A, B = (np.array([parents[i] for i in which]) for which in (first, second))
        mixed = space.mix(A[crossed], B[crossed], coins)
        if both:
            pairs = with_siblings(A[crossed], B[crossed], mixed, space, coins)
            crosses = iter(zip(pairs[::2], pairs[1::2], strict=True))
        else:
            crosses = iter((child,) for child in mixed)
        children = []
        for is_crossed, a, b in zip(crossed, A, B, strict=True):
            children += next(crosses) if is_crossed else ((a, b) if both else (a,))
        P = np.array([*parents, *space.jitter(np.array(children[:wanted]), step, rate, coins)])
    yield P


# ------------------------------------------------------------------------------------ predictions


def confusion(y_true: Iterable[Any], y_pred: Iterable[Any], classes: Sequence[Any]) -> list[Record]:
    """How many records of each declared class are predicted to be of each."""
    declared = [canonical_value(one) for one in classes]
    table = [[0 for _ in classes] for _ in classes]
    for label, predicted in zip(y_true, y_pred, strict=True):
        row, column = (declared.index(canonical_value(one)) for one in (label, predicted))
        table[row][column] += 1
    return table


# ---------------------------------------------------------------- the chain over synthetic records

CROWD = 64  # proposals drawn together


def xoshiro(s: list[int]) -> int:
    """The next word of xoshiro256++, which changes its four words of state."""
    mask = 2**64 - 1

    def left(x: int, bits: int) -> int:
        return (x << bits | x >> (64 - bits)) & mask

    word = (left((s[0] + s[3]) & mask, 23) + s[0]) & mask
    shifted = s[1] << 17 & mask
    s[2] ^= s[0]
    s[3] ^= s[1]
    s[1] ^= s[2]
    s[0] ^= s[3]
    s[2] ^= shifted
    s[3] = left(s[3], 45)
    return word


class Chain:
    """Metropolis-Hastings over synthetic records (Lee and Kifer), one step at a time.

    centers (sets, k, d) are whole numbers; the first n_assign sets assign. slots are components
    s k + c. released (n_assign k, d + 1) are noisy sums and counts, weight (d + 1,) their 1 / scale
    or 1 / (2 scale^2). streams are eight states of xoshiro.
    """

    def __init__(
        self, centers: Any, n_assign: int, slots: list[int], spread: list[float], precision: float,
        bounds: Any, norm: int, limit: float, points: list[Record], released: Any,
        weight: list[float], quadratic: bool, streams: list[list[int]],
    ) -> None:  # fmt: skip
        self.centers, self.n_assign, self.slots = centers, n_assign, slots
        self.spread, self.precision, self.bounds = spread, precision, bounds
        self.norm, self.limit, self.weight, self.quadratic = norm, limit, weight, quadratic
        self.streams = streams
        self.points = [list(x) for x in points]
        self.ids = [self.nearest(x)[:n_assign] for x in self.points]
        self.log_q = [self.log_density(x) for x in self.points]
        self.rows = [list(row) for row in released]
        for x, ids in zip(self.points, self.ids, strict=True):
            for i in ids:
                self.rows[i] = [r - v for r, v in zip(self.rows[i], [*x, 1], strict=True)]
        self.value = -sum(map(self.misfit, self.rows))
        self.best_value, self.best, self.accepted = self.value, self.copy(), 0

    def copy(self) -> list[Record]:
        return [list(x) for x in self.points]

    def misfit(self, row: list[float]) -> float:
        return sum(
            w * (v * v if self.quadratic else abs(v)) for w, v in zip(self.weight, row, strict=True)
        )

    def nearest(self, x: Record) -> list[int]:
        """The component s k + c of each set that is nearest; ties go to the lowest index."""
        result = []
        for s, centers in enumerate(self.centers):
            gaps = [distance(x, c, 2) for c in centers]
            result.append(s * len(centers) + gaps.index(min(gaps)))
        return result

    def log_density(self, x: Record) -> float:
        """ln of the sum over sets of the nearest component's share times exp(-precision gap)."""
        k, terms = len(self.centers[0]), []
        for i in self.nearest(x):
            share = self.shares()[i]
            gap = self.precision * distance(x, self.centers[i // k][i % k], 2)
            terms.append(math.log(share) - gap if share else -math.inf)
        top = max(terms)
        return top + math.log(sum(math.exp(term - top) for term in terms))

    def shares(self) -> list[float]:
        if not hasattr(self, "_shares"):
            m = len(self.centers) * len(self.centers[0])
            self._shares = [0.0] * m
            for i in self.slots:
                self._shares[i] += 1 / len(self.slots)
        return self._shares

    def block(self) -> list[tuple[int, Record, int, float]]:
        """CROWD proposals: the point to replace, what by, its component, and ln u."""
        k, d = len(self.centers[0]), len(self.spread)
        words = [xoshiro(self.streams[i % 8]) for i in range(CROWD * (2 + (d + 1) // 2))]
        result = []
        for i in range(CROWD):
            choice, uniform, *rest = words[i::CROWD]
            component = self.slots[choice >> (65 - len(self.slots).bit_length())]
            noise = []
            for word in rest:
                radius = math.sqrt(-2 * math.log(((word >> 32) + 0.5) / 2**32))
                angle = 2 * math.pi * (word & 0xFFFFFFFF) / 2**32
                noise += [radius * math.cos(angle), radius * math.sin(angle)]
            center = self.centers[component // k][component % k]
            x = [round(c + s * z) for c, s, z in zip(center, self.spread, noise[:d], strict=True)]
            index = (choice & 0xFFFFFFFF) * len(self.points) >> 32
            result.append((index, x, component, math.log(((uniform >> 12) + 0.5) / 2**52)))
        return result

    def inside(self, x: Record) -> bool:
        low, high = self.bounds
        if not all(a <= v <= b for v, a, b in zip(x, low, high, strict=True)):
            return False
        return self.norm == 0 or sum(abs(v) ** self.norm for v in x) <= self.limit

    def walk(self, steps: int, beta: float, tilt: float) -> None:
        while steps > 0:
            for proposal in self.block()[:steps]:
                self.step(*proposal, beta, tilt)
            steps -= CROWD

    def step(
        self, j: int, x: Record, component: int, log_u: float, beta: float, tilt: float
    ) -> None:
        """Replace point j by x, if it is inside, of the component's own cell, and accepted."""
        if not self.inside(x) or component not in self.nearest(x):
            return
        ids, log_q = self.nearest(x)[: self.n_assign], self.log_density(x)
        changed = {i: list(self.rows[i]) for i in {*ids, *self.ids[j]}}
        before = sum(map(self.misfit, changed.values()))
        for i in self.ids[j]:
            changed[i] = [r + v for r, v in zip(changed[i], [*self.points[j], 1], strict=True)]
        for i in ids:
            changed[i] = [r - v for r, v in zip(changed[i], [*x, 1], strict=True)]
        gain = before - sum(map(self.misfit, changed.values()))
        if not log_u < beta * gain + tilt * (self.log_q[j] - log_q):
            return
        for i, row in changed.items():
            self.rows[i] = row
        self.points[j], self.ids[j], self.log_q[j] = x, ids, log_q
        self.accepted += 1
        self.value += gain
        if self.value > self.best_value:
            self.best_value, self.best = self.value, self.copy()


# --------------------------------------------------------------------------------------------- CSV


def part_row(part: Any, x: Any) -> int:
    """Which row of a part of a trace a record counts in; -1 for none."""
    if part.what == "cells":
        for i, (low, high) in enumerate(zip(part.low, part.high, strict=True)):
            if all(a <= value < b for a, value, b in zip(low, x, high, strict=True)):
                return i
        return -1
    apart = [sum((a - b) ** 2 for a, b in zip(x, c, strict=True)) for c in part.centers]
    nearest = apart.index(min(apart))
    if part.what == "sums":
        return nearest
    length = norm_of([a - b for a, b in zip(x, part.centers[nearest], strict=True)], part.norm)
    return sum(length > radius for radius in part.radii)


def part_vector(part: Any, x: Any, row: int, origin: Any) -> list[float]:
    """What a record adds to the sums of its row: its residual, shrunk to the radius."""
    if part.radius == 0:
        return [a - b for a, b in zip(x, origin, strict=True)]
    residual = [a - b for a, b in zip(x, part.centers[row], strict=True)]
    shrink = max(1.0, norm_of(residual, part.norm) / part.radius)
    return [value / shrink for value in residual]


def norm_of(vector: Sequence[float], norm: int) -> float:
    return sum(map(abs, vector)) if norm == 1 else math.sqrt(sum(v * v for v in vector))


def trace_likelihood(trace: Any, records: Any, each: float, unit: float) -> float:
    """The log likelihood of a trace, given records that stand for `each` records; up to a constant.

    What records add is a whole number of units.
    """
    total = 0.0
    for part in trace.parts:
        rows = [part_row(part, x) for x in records]
        scale = part.scale_counts if part.what == "sums" else part.scale
        if part.counts is not None:
            for i, released in enumerate(part.counts):
                total += log_noise(released - each * rows.count(i), scale, part.kind)
        if part.what == "sums":
            left = [list(each_sum) for each_sum in part.sums]
            for x, row in zip(records, rows, strict=True):
                for j, value in enumerate(part_vector(part, x, row, trace.origin)):
                    left[row][j] -= each * unit * round(value / unit)
            for misfit in itertools.chain(*left):
                total += log_noise(misfit, part.scale_sums, part.kind)
    return total


def log_noise(misfit: float, scale: float, kind: str) -> float:
    """The log density of noise, up to a constant."""
    return -abs(misfit) / scale if kind == "laplace" else -(misfit**2) / (2 * scale**2)


def pool_walk(
    likelihood: Any, chosen: list[int], steps: Iterable[tuple[int, int, float, float]]
) -> list[int]:
    """The chain on a pool: record j becomes point x if ln u < beta times the gain."""
    for j, x, log_u, beta in steps:
        moved = [*chosen[:j], x, *chosen[j + 1 :]]
        if moved != chosen and log_u < beta * (likelihood(moved) - likelihood(chosen)):
            chosen = moved
    return chosen


def csv_records(
    data: bytes, delimiter: bytes = b",", widest: int = 0, longest: int = 2**24
) -> list[list[str | None]]:
    """The fields of each record; None for one that does not end within the record's first bytes.

    `widest` is what a quoted field with line breaks may have, in bytes; 0 if none may have any.
    """
    if data and not data.endswith(b"\n"):
        data += b"\n"
    records, at = [], 0
    while at < len(data):
        begin, fields = at, []
        while True:
            field, at = csv_field(data, at, delimiter, widest)
            fields.append(field.decode("utf-8", "replace") if at - begin <= longest else None)
            at += 1
            if data[at - 1 : at] == b"\n":
                break
        records.append(fields)
    return records


def csv_field(data: bytes, at: int, delimiter: bytes, widest: int) -> tuple[bytes, int]:
    """The field that begins here, and where it ends: at a delimiter or at the end of a line."""
    if data[at : at + 1] != b'"':
        return csv_rest(data, at, delimiter)
    line = data.index(b"\n", at)
    found, i = b"", at + 1
    while i < (min(at + 1 + widest, len(data)) if widest else line):
        if data[i : i + 2] == b'""':
            found, i = found + b'"', i + 2
        elif data[i : i + 1] == b'"':
            rest, end = csv_rest(data, i + 1, delimiter)
            return found + rest, end
        else:
            found, i = found + data[i : i + 1], i + 1
    if widest:  # nothing closed it by then
        return csv_field(data, at, delimiter, 0)
    return found.removesuffix(b"\r"), line


def csv_rest(data: bytes, at: int, delimiter: bytes) -> tuple[bytes, int]:
    """What stands before the next delimiter or end of a line, and where that is."""
    line = data.index(b"\n", at)
    end = data.find(delimiter, at, line)
    if end < 0:
        return data[at:line].removesuffix(b"\r"), line
    return data[at:end], end


CSV_NUMBER = re.compile(
    r"[ \t]*[+-]?(([0-9]+(\.[0-9]*)?|\.[0-9]+)(e[+-]?[0-9]+)?|inf(inity)?)[ \t]*",
    re.ASCII | re.IGNORECASE,
)


def csv_number(text: str | None) -> float:
    """The number that a cell writes, true being 1 and false 0; NaN if it writes none."""
    if text is None:
        return math.nan
    word = text.strip(" \t").lower()
    if word in ("true", "false"):
        return float(word == "true")
    return float(text) if CSV_NUMBER.fullmatch(text) else math.nan


def neighbours(
    universe: Sequence[Any], n: int, adjacency: str
) -> Iterator[tuple[tuple[Any, ...], tuple[Any, ...]]]:
    """Ordered pairs of neighbouring multisets, of n records or of n - 1 and n."""
    data = list(itertools.combinations_with_replacement(universe, n))
    if adjacency == "add_remove":
        for D in data:
            for i in range(n):
                yield D, D[:i] + D[i + 1 :]
                yield D[:i] + D[i + 1 :], D
        return
    for D, i, new in itertools.product(data, range(n), universe):
        yield D, (*D[:i], new, *D[i + 1 :])


# ------------------------------------------------------------------------------------------- blanks


def number_place(x: float) -> int | None:
    """Where a number lies among all float32 in order, 0 at 0; None if it is missing."""
    if math.isnan(x):
        return None
    largest = (2 - 2.0**-23) * 2.0**127
    try:
        short = struct.unpack("<f", struct.pack("<f", x))[0]
    except OverflowError:
        short = math.copysign(math.inf, x)
    bits = struct.unpack("<i", struct.pack("<f", min(abs(short), largest)))[0]
    if bits < 2**16:
        return 0
    return -bits if short < 0 else bits


def number_key(x: float) -> int | None:
    """The upper half of a place: whole numbers from -32639 to 32639."""
    place = number_place(x)
    return None if place is None else int(place / 2**16)


def span_sizes() -> list[float]:
    """Where cells of half a decade end: a sixteenth of one above 10^-4, 10^-3.5, ..., 10^8.5."""
    return [float(f"{10 ** (k / 2 + 1 / 16):.4g}") for k in range(-8, 18)]


def span_cell(x: float) -> int | None:
    """The cell of a number: of 27 negative ones, one around 0, and 27 positive ones."""
    sizes = [1e-6, *span_sizes()]
    begins = [-size for size in reversed(sizes)] + sizes
    key = number_key(x)
    return None if key is None else sum(key >= (number_key(b) or 0) for b in begins)


def span_ends(noisy: Sequence[float], deviation: float) -> tuple[float, float] | None:
    """The ends of the cells that stand out, of what is between, and of all that stands beside."""
    strong = [i for i, count in enumerate(noisy) if count > 3.5 * deviation]
    inside = set(range(min(strong), max(strong) + 1)) if strong else set()
    for _ in noisy:
        inside |= {i for i, count in enumerate(noisy)
                   if count > 1.5 * deviation and {i - 1, i + 1} & inside}  # fmt: skip
    sizes = [0.0, *span_sizes(), 1e9]
    ends = [-size for size in reversed(sizes)] + sizes
    if not inside or inside == {27}:
        return None
    return ends[min(inside)], ends[max(inside) + 1]


def quantile_score(values: Sequence[int], c: int, a: int, b: int) -> int:
    """-abs((b - a) L - a R) of the values below and above c."""
    below, above = sum(v < c for v in values), sum(v > c for v in values)
    return -abs((b - a) * below - a * above)


def cut_places(numbers: Sequence[float], levels: int, choose: Any) -> set[int]:
    """Both sides of every cut, of recursive medians with three segments a level.

    A segment is its candidates, the function of a place that is compared with them, and its
    records. ``choose(scores)`` is the index of the candidate of a segment, None for no cut.
    """
    held = [place for place in map(number_place, numbers) if place is not None]
    cuts: set[int] = set()

    def key(place: int) -> int:
        return int(place / 2**16)

    def inside(c: int) -> list[int]:
        """The places of a key."""
        first = c * 2**16
        if c == 0:
            return [0]
        return list(range(first, first + 2**16) if c > 0 else range(first - 2**16 + 1, first + 1))

    segments = [(list(range(-32639, 32640)), True, held)]
    for _ in range(levels):
        found = []
        for candidates, coarse, here in segments:
            values = [key(place) for place in here] if coarse else here
            if len(candidates) == 1 and coarse:
                candidates, coarse, values = inside(candidates[0]), False, here
            if len(candidates) < 2:
                continue
            at = choose(candidates, values, coarse)
            if at is None:
                continue
            c = candidates[at]
            below = [p for p, v in zip(here, values, strict=True) if v < c]
            above = [p for p, v in zip(here, values, strict=True) if v > c]
            middle = [p for p, v in zip(here, values, strict=True) if v == c]
            cuts |= {inside(c)[0], (inside(c + 1) if c < 32639 else [2**32])[0]} if coarse else {
                c, c + 1
            }  # fmt: skip
            found += [(candidates[:at], coarse, below), (candidates[at + 1 :], coarse, above)]
            found += [(inside(c), False, middle)] if coarse else []
        segments = [one for one in found if one[0]]
    return cuts


def cut_ranks(
    numbers: Sequence[float], levels: int, choose: Any, is_short: Any
) -> dict[int, Fraction]:
    """The assumed rank of each place where a bin begins, of the segments of `cut_places`.

    A bin is (first place, place behind its last, mass). A cut of two sides leaves 9/20 of the mass
    below, 1/10 inside and 9/20 above; one of a single side leaves a half on either side.
    """
    held = [place for place in map(number_place, numbers) if place is not None]
    end = 0x7F7FFFFF + 1
    bins = [(1 - end, end, Fraction(1))]

    def inside(c: int) -> list[int]:
        first = c * 2**16
        if c == 0:
            return [0]
        return list(range(first, first + 2**16) if c > 0 else range(first - 2**16 + 1, first + 1))

    def divide(within: int, first: int, last: int) -> None:
        [(a, b, mass)] = [one for one in bins if one[0] <= within < one[1]]
        parts = [(a, first, mass * 9 / 20), (first, last, mass / 10), (last, b, mass * 9 / 20)]
        if first == last:
            parts = [(a, first, mass / 2), (first, b, mass / 2)] if a < first else [(a, b, mass)]
        bins.remove((a, b, mass))
        bins.extend(one for one in parts if one[0] < one[1])

    segments = [(list(range(-32639, 32640)), True, held)]
    for _ in range(levels):
        found = []
        for candidates, coarse, here in segments:
            if len(candidates) == 1 and coarse:
                candidates, coarse = inside(candidates[0]), False
            if len(candidates) < 2:
                continue
            values = [int(place / 2**16) for place in here] if coarse else here
            c = candidates[at := choose(candidates, values, coarse)]
            if coarse:
                behind = inside(c + 1)[0] if c < 32639 else end
                divide(inside(c)[0], inside(c)[0], behind)
                middle = [p for p, v in zip(here, values, strict=True) if v == c]
                found.append((inside(c), False, middle))
            else:
                divide(c, c, c + 1 if is_short(c) else c)
            below = [p for p, v in zip(here, values, strict=True) if v < c]
            above = [p for p, v in zip(here, values, strict=True) if v > c]
            found += [(candidates[:at], coarse, below), (candidates[at + 1 :], coarse, above)]
        segments = [one for one in found if one[0]]
    bins.sort()
    total = sum(mass for _, _, mass in bins)
    return {first: sum(m for a, _, m in bins if a < first) / total for first, _, _ in bins[1:]}


def name_chances(epsilon: float, delta: float, most: int) -> list[mpmath.mpf]:
    """pi(0), ..., pi(most): how likely a value with so many records is kept (Desfontaines 2022)."""
    grow, d = mpmath.exp(mpmath.mpf(epsilon)), mpmath.mpf(delta)
    found = [mpmath.mpf(0)]
    for _ in range(most):
        last = found[-1]
        found.append(min(grow * last + d, 1 - (1 - last - d) / grow, mpmath.mpf(1)))
    return found


def excess(p: mpmath.mpf, q: mpmath.mpf, epsilon: float) -> mpmath.mpf:
    """The least delta for which two coins, 1 with probability p and q, are (epsilon, delta)."""
    e = mpmath.exp(mpmath.mpf(epsilon))
    pairs = ((p, q), (q, p), (1 - p, 1 - q), (1 - q, 1 - p))
    return max(mpmath.mpf(0), *(one - e * other for one, other in pairs))


def descent_deviation(walk: Any, curvature: float) -> float:
    """The deviation of the mean of the last steps of a descent: unit noise of one step at a time.

    `walk` has the attributes of `privfit.linear.uncertainty.Walk`.
    """
    variance = 0.0
    for noisy in range(walk.steps):
        weight, velocity, path = 0.0, 0.0, []
        for t in range(walk.steps):
            velocity = walk.momentum * velocity - curvature * weight + (t == noisy)
            weight = walk.shrink * (weight + walk.step * velocity)
            path.append(weight)
        variance += (sum(path[walk.steps - walk.averaged :]) / walk.averaged) ** 2
    return walk.deviation * math.sqrt(variance)


def judged(models: Sequence[Any], rows: Any, labels: Sequence[Any], clip: float | None) -> Record:
    """The summed losses of fitted models: wrong predictions, or log losses in units of 2^-16.

    Each record is predicted in a table of its own.
    """
    total = [0] * len(models)
    for i, label in enumerate(labels):
        for j, model in enumerate(models):
            if clip is None:
                total[j] += int(model.predict(rows[i : i + 1])[0] != label)
                continue
            chance = model.predict_proba(rows[i : i + 1])[0][list(model.classes_).index(label)]
            loss = -mpmath.log(as_mp(float(chance))) if chance > 0 else mpmath.inf
            total[j] += int(mpmath.floor(2**16 * min(loss, as_mp(clip))))
    return total


def level_counts(
    rows: Sequence[Sequence[int]], labels: Sequence[int], groups: Sequence[slice]
) -> list[list[int]]:
    """The records of class 0 and of class 1 at each level, by the levels of each record."""
    counts = [[0] * groups[-1].stop for _ in range(2)]
    for levels, label in zip(rows, labels, strict=True):
        for group, level in zip(groups, levels, strict=True):
            counts[label][group.start + level] += 1
    return counts


def weights_of_evidence(
    counts: Sequence[Sequence[float]], variance: float, odds: float, size: int, ordered: int
) -> tuple[list[float], float]:
    """The weights of one column, and what they add to the variance of scores.

    Of its levels `ordered` are cells of a number in their order. By the joint normal law of weights
    and differences, without matrices that are put together.
    """
    p = 1 / (1 + math.exp(-odds))
    both = [a + b for a, b in zip(*counts, strict=True)]
    low, high = min(both) - size, max(both)  # the nearest totals: all fall by as much, to 0
    for _ in range(200):
        shift = (low + high) / 2
        more = sum(max(x - shift, 0.0) for x in both) > size
        low, high = (shift, high) if more else (low, shift)
    totals = [max(x - high, 0.0) for x in both]
    seen = [b - p * t for b, t in zip(counts[1], both, strict=True)]
    mean = sum(seen) / len(seen)
    places = range(len(both))

    def alike(i: int, j: int) -> float:
        return math.exp(-abs(i - j) / 4) if max(i, j) < ordered else float(i == j)

    slopes = [p * (1 - p) * t for t in totals]
    law = [[slopes[i] * 0.7 * alike(i, j) * slopes[j]
            + (i == j) * (variance * (p**2 + (1 - p) ** 2) + slopes[i]) for j in places]
           for i in places]  # fmt: skip
    solved = mpmath.lu_solve(mpmath.matrix(law), mpmath.matrix([x - mean for x in seen]))
    found = [sum(0.7 * alike(i, j) * slopes[j] * solved[j] for j in places) for i in places]
    middle = sum(t * w for t, w in zip(totals, found, strict=True)) / size
    weights = [float(0.6 * (w - middle)) for w in found]
    return weights, sum(float(t) * w**2 for t, w in zip(totals, weights, strict=True)) / size


def levelled_intercept(odds: float, variance: float) -> float:
    """The b at which sigma(b + z) has the mean sigma(odds), z normal with this variance."""
    spread = mpmath.sqrt(variance)

    def probability(b: Any) -> Any:
        return mpmath.quad(lambda x: mpmath.npdf(x) / (1 + mpmath.exp(-b - spread * x)),
                           [-8, -4, -2, 0, 2, 4, 8])  # fmt: skip

    share = 1 / (1 + mpmath.exp(-odds))
    return float(mpmath.findroot(lambda b: probability(b) - share, odds))

"""Fixed answers of every kernel, to compare builds: release and debug, baseline and AVX2.

Records are made by whole-number arithmetic, so that they are the same on every machine and with
every numpy. ``python portrait.py`` prints the answers; those kept in tests/portrait.json are of the
twin-tested release build and change only if the definition of a score does.
"""

from __future__ import annotations

import json

import numpy as np

from privfit import (
    Box,
    Categorical,
    CentersObjective,
    FacilityObjective,
    L2Ball,
    LinearObjective,
    Numeric,
    Schema,
)
from privfit.domains import Grid


def numbers(n: int, d: int, seed: int) -> np.ndarray:
    """(n, d) in [-1, 1), multiples of 2^-15, from a linear congruential generator."""
    state, out = seed, []
    for _ in range(n * d):
        state = (state * 6364136223846793005 + 1442695040888963407) % 2**64
        out.append((state >> 48) - 32768)
    return np.array(out, dtype=np.float64).reshape(n, d) / 32768


def linear_answers(X, y, loss, domain, layout, C=1.0) -> dict[str, list[int]]:
    objective = LinearObjective(X, y, loss, domain, C, n_threads=2, layout=layout)
    d = domain.width
    scale = np.append(np.ldexp(1.0, -domain.exponents), 1.0)
    raw = numbers(37, d + 1, 5)
    P = domain.snap(np.vstack([raw[:33], 300 * raw[33:35], 2e4 * raw[35:]]) * scale)
    coords = np.arange(2 * d + 2) // 2
    steps = domain.weight_units()[coords] * np.where(np.arange(2 * d + 2) % 2, 700, -300)
    found = {
        "scores": objective.scores(P).tolist(),
        "moves": objective.at(P[0]).scores(coords, steps).tolist(),
        "moments": objective.second_moments().ravel().tolist(),
    }
    if loss == "logistic":
        found["gradient"] = objective.gradient(P[0], 0.4).tolist()
        found["wide gradient"] = objective.gradient(P[-1], 0.4).tolist()
    return found


def linear_portrait() -> dict[str, dict[str, list[int]]]:
    n = 601
    X, y = numbers(n, 7, 1), (numbers(n, 1, 2)[:, 0] > 0.2).astype(int)
    X[numbers(n, 7, 3) > 0.1] = 0
    people = {"c": np.array(list("abcd"))[(4 * (numbers(n, 1, 4)[:, 0] + 1) / 2).astype(int)],
              "x": 50 + 50 * numbers(n, 1, 6)[:, 0]}  # fmt: skip
    schema = Schema({"c": Categorical("abc", other=True), "x": Numeric(10, 90)})
    found = {}
    for layout in ("dense", "sparse"):
        for loss in ("logistic", "hinge", "zero_one"):
            found[f"{loss} box {layout}"] = linear_answers(X, y, loss, Box(-1, 1, 7), layout)
        fine = L2Ball(1.5, 7, grid=Grid(a=14, b=12, c=14))
        found[f"logistic ball {layout}"] = linear_answers(X, y, "logistic", fine, layout)
        found[f"hinge schema {layout}"] = linear_answers(people, y, "hinge", schema, layout, C=0.3)
    return found


def centers_portrait() -> dict[str, dict[str, list[int]]]:
    found = {}
    for power in (2, 1):
        objective = CentersObjective(numbers(601, 5, 7), 6, Box(-1, 1), power=power, n_threads=2)
        P = objective.snap(numbers(60, 5, 8)).reshape(10, 6, 5)
        counts, sums = objective.lloyd(P[0])
        found[f"centres {power}"] = {
            "scores": objective.scores(P).tolist(),
            "far scores": objective.scores(40 * P).tolist(),
            "moves": objective.at(P[0]).scores(np.arange(10) % 6, P[:, 0]).tolist(),
            "counts": counts.tolist(),
            "sums": sums.ravel().tolist(),
            "far sums": objective.lloyd(40 * P[0])[1].ravel().tolist(),
        }
    return found


def facility_portrait() -> dict[str, dict[str, list[int]]]:
    found = {}
    onehot = np.eye(6)[(3 * (numbers(601, 3, 9) + 1)).astype(int)].reshape(601, 18)
    tables = {"real": (numbers(601, 3, 10), numbers(45, 3, 11)), "one-hot": (onehot, onehot[:45])}
    P = (22.5 * (numbers(40, 5, 12) + 1)).astype(int)
    for name, (X, places) in tables.items():
        for bits in (16, 8):
            objective = FacilityObjective(X, places, (0.25, 3.0), Box(-1, 1), 2, bits=bits)
            found[f"facilities {name} {bits}"] = {
                "scores": objective.scores(P).tolist(),
                "moves": objective.at(P[0]).scores(np.arange(40) % 5, P[:, 1]).tolist(),
            }
    return found


def portrait() -> dict[str, dict[str, list[int]]]:
    return linear_portrait() | centers_portrait() | facility_portrait()


if __name__ == "__main__":
    lines = [f"{json.dumps(name)}: {json.dumps(found)}" for name, found in portrait().items()]
    print("{\n" + ",\n".join(lines) + "\n}")

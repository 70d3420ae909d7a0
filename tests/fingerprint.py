"""Print digests of scores on fixed records: equal on every build, CPU, Python and thread count."""

import hashlib

import numpy as np

from privfit import Box, CentersObjective, FacilityObjective, L1Ball, L2Ball, LinearObjective


def digest(name: str, *values: np.ndarray) -> None:
    packed = b"".join(np.ascontiguousarray(value, dtype=np.int64).tobytes() for value in values)
    print(name, hashlib.sha256(packed).hexdigest()[:16])


def whole(rng: np.random.RandomState, low: int, high: int, shape: tuple[int, ...]) -> np.ndarray:
    """Whole numbers as float64; RandomState draws the same ones in every numpy."""
    return rng.randint(low, high, shape).astype(np.float64)


def main() -> None:
    rng = np.random.RandomState(7)
    n, d, m = 20_000, 21, 45
    X, y = whole(rng, -5000, 5001, (n, d)) / 4096, rng.randint(0, 2, n)
    X[rng.uniform(size=(n, d)) < 0.5] = 0
    P = whole(rng, -3000, 3001, (m, d + 1)) / 1024
    P[-3:] *= 64
    for domain in (Box(-1, 1), L1Ball(2.0), L2Ball(1.5)):
        for loss in ("logistic", "hinge", "zero_one"):
            for layout in ("dense", "sparse"):
                objective = LinearObjective(X, y, loss, domain, layout=layout)
                parent = objective.at(P[0])
                coords, steps = np.arange(m) % (d + 1), P[:, 3]
                digest(
                    f"{type(domain).__name__} {loss} {layout}",
                    objective.scores(P),
                    parent.scores(coords, steps),
                )
        digest("gradient", objective_gradient(X, y, domain, P[1]))
    for power in (1, 2):
        centers = CentersObjective(X, 7, Box(-1, 1), power)
        sets = whole(rng, -4096, 4097, (11, 7, d)) / 4096
        moves = centers.at(sets[0])
        digest(f"centers {power}", centers.scores(sets), *centers.lloyd(sets[1]))
        digest(f"center moves {power}", moves.scores(np.arange(7), sets[2]))
    for bits in (8, 16):
        places = FacilityObjective(X[:3000], X[:50], (1.0, 9.0), Box(-1, 1), bits=bits)
        digest(f"facility {bits}", places.scores(rng.randint(0, 50, (20, 4))))


def objective_gradient(X: np.ndarray, y: np.ndarray, domain, w: np.ndarray) -> np.ndarray:
    return LinearObjective(X, y, "logistic", domain).gradient(w, 0.5)


if __name__ == "__main__":
    main()

"""The searches in plain numpy: what somebody without the kernels would write, written well.

The same generations, candidates, steps and budgets as privfit's own; scores in floating point over
all records at once, and the exponential mechanism as the largest of scores with Gumbel noise. They
are not private: float noise leaves traces in the low bits.

Every search takes `S` (see `baselines`), on weights for records in [0, 1] with the intercept last,
and a `Plan`; it returns the model. `eps` is the budget of one selection. Neighbours differ by one
replaced record.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from bench.speed import baselines
from privfit import DPSGA, EEM, Gradient, Local


@dataclass(frozen=True)
class Plan:
    """What both sides share.

    steps   (generations,) the sizes of moves, in the units of a weight; empty for the DP simple GA
            and for gradient descent, which set their own
    eps     the budget of one selection, or the Gaussian parameter of one gradient
    """

    steps: np.ndarray
    eps: float
    bound: float
    generations: int
    population: int = 200
    survivors: int = 10
    average: float = 0.25
    seed: int = 1


def _select(scores, rate, rng):
    """The exponential mechanism: P(i) proportional to exp(rate score)."""
    return int(np.argmax(rate * scores + rng.gumbel(size=len(scores))))


def _answer(path, share):
    return np.mean(path[-max(1, round(share * len(path))) :], axis=0)


def all_moves(rng, d, m):
    """PrivLocal's proposals: up and down along every coordinate."""
    return np.repeat(np.arange(d), 2), np.tile((1.0, -1.0), d)


def some_moves(rng, d, m):
    """EEM's proposals: m mutations of one coordinate, up or down."""
    return rng.integers(d, size=m), rng.choice((-1.0, 1.0), size=m)


def from_scratch(loss):
    """Score moves as the candidates they lead to: one product of all records with all of them."""

    def losses(S, w, coords, steps):
        P = np.tile(w, (len(coords), 1))
        P[np.arange(len(coords)), coords] += steps
        return loss(S, P.astype(S.dtype))

    return losses


def from_parent(S, w, coords, steps):
    """Score moves from the parent's margins, touching only a column's non-zeros: S is CSC."""
    return baselines.Increment(S, w)(coords, steps)


def walk(S, plan, propose, losses):
    """PrivLocal and EEM, scored by the loss; the range of one-coordinate moves is 4 steps."""
    rng, d = np.random.default_rng(plan.seed), S.shape[1]
    w, path = np.zeros(d), []
    for step in plan.steps:
        coords, signs = propose(rng, d, plan.population)
        moves = np.clip(w[coords] + step * signs, -plan.bound, plan.bound) - w[coords]
        best = _select(-losses(S, w, coords, moves), plan.eps / (4 * step), rng)
        w = w.copy()
        w[coords[best]] += moves[best]
        path.append(w)
    return _answer(path, plan.average)


def walk_by_gradient(S, plan, cap=0.5):
    """PrivLocal by the clipped gradient, on weights u for records coded in [-1/2, 1/2].

    One product with S and one with its transpose a generation; the centring is done on vectors.
    """
    rng, d = np.random.default_rng(plan.seed), S.shape[1]
    u, w, path = np.zeros(d), np.zeros(d), []
    for step in plan.steps:
        g = baselines.gradient(S, w.astype(S.dtype), cap)
        slopes = np.append(g[:-1] - g[-1] / 2, g[-1] / 2)
        best = _select(np.concatenate([slopes, -slopes]), plan.eps / (2 * cap), rng)
        j, move = best % d, step if best < d else -step
        u[j] = np.clip(u[j] + move, -plan.bound, plan.bound)
        w = np.append(u[:-1], (u[-1] - u[:-1].sum()) / 2)
        path.append(w)
    return _answer(path, plan.average)


def dpsga(X1, plan, positive):
    """The DP simple GA, counting errors: X1 is the records with a column of ones."""
    rng, d = np.random.default_rng(plan.seed), X1.shape[1]
    m, k, rate = plan.population, plan.survivors, 1 / (d + 1)
    P = rng.uniform(-plan.bound, plan.bound, (m, d))
    P[: m // 20] = 0
    scores, path = -baselines.zero_one(X1, positive, P.astype(X1.dtype)), []
    for _ in range(plan.generations):
        chosen = baselines.top_k_gumbel(scores, k, plan.eps / 2)
        parents = P[chosen]
        path.append(parents.mean(axis=0))
        first, second = parents[rng.integers(k, size=(2, m - k))]
        crossed = (rng.random(m - k) < 0.5)[:, None] & (rng.random(first.shape) < 0.5)
        children = np.where(crossed, second, first)
        hit = rng.random(children.shape) < rate
        children = np.clip(
            children + hit * rng.normal(0, 0.05 * 2 * plan.bound, children.shape),
            -plan.bound,
            plan.bound,
        )
        errors = baselines.zero_one(X1, positive, children.astype(X1.dtype))
        P, scores = np.concatenate([parents, children]), np.concatenate([scores[chosen], -errors])
    path.append(P[_select(scores, plan.eps / 2, rng)])
    return _answer(path, plan.average)


def descend(S, plan, clip=0.4, share=0.1):
    """Whitened noisy gradient descent; `eps` is the Gaussian parameter of one gradient.

    Per-record clipping costs one product for all steps: a record's gradient is its residual times
    a fixed vector, so its length is the residual times a length that is known beforehand.
    """
    rng, (n, d) = np.random.default_rng(plan.seed), S.shape
    squares = 15.0  # of a record's length on Adult: 14 columns of at most 1, and the intercept
    mu = plan.eps * np.sqrt(plan.generations * share / (1 - share))
    noise = np.triu(rng.normal(0, np.sqrt(squares**2 + squares) / mu, (d, d)))
    M = _dense(S.T @ S).astype(np.float64) + noise + np.triu(noise, 1).T
    values, vectors = np.linalg.eigh(M)
    values = np.maximum(values, 0)
    raised = values + np.std(noise[np.triu_indices(d)]) * np.sqrt(d)
    R = ((vectors / np.sqrt(raised / n)) @ vectors.T).astype(S.dtype)
    lengths = np.concatenate([
        np.linalg.norm(_dense(S[i : i + 8192]) @ R, axis=1) for i in range(0, n, 8192)
    ])  # fmt: skip
    bound = clip / 2 * np.sqrt((values / raised).sum())
    caps, sigma = (bound / lengths).astype(S.dtype), 2 * bound / plan.eps
    pace = min(2.4 / clip, (n * bound / (sigma * np.sqrt(d))) ** 0.5)
    w, path = np.zeros(d), []
    for _ in range(plan.generations):
        g = R @ baselines.gradient(S, w.astype(S.dtype), caps) + rng.normal(0, sigma, d)
        w = w + 4 * pace / n * (R @ g)
        path.append(w)
    return _answer(path, 0.75)


def _dense(part):
    return part.toarray() if sp.issparse(part) else part


# ------------------------------------------------------------------------- what is raced with what


def coded(columns, y, schema, kind, signed):
    """The records as numpy wants them, from the same columns, by the same coding."""
    X = schema.encode(columns) * float(schema.record_units()[0])
    if kind in ("CSR", "CSC"):
        S = baselines.signed(X, y)
        return S if kind == "CSR" else sp.csc_array(S)
    wide = np.ones((X.shape[0], X.shape[1] + 1), dtype=kind)
    wide[:, :-1] = X.toarray()
    return np.multiply(wide, np.where(y > 0, -1, 1)[:, None], out=wide) if signed else wide


@dataclass(frozen=True)
class Search:
    """A search, and how numpy runs it: named variants, each a layout of the records and a loop.

    `hard` variants are what an expert gets from numpy; they carry no target.
    """

    name: str
    solver: object
    variants: dict[str, tuple[str, Callable]]
    hard: dict[str, tuple[str, Callable]]
    target: float | None = None
    goal: float | None = None


def _raced(loop, **hard):
    """A loop on dense records, and what an expert makes of it."""
    dense = {f"numpy dense {kind}": (kind, loop) for kind in ("float64", "float32")}
    return {"variants": dense, "hard": hard}


def _walks(propose):
    """A walk that is scored by the loss."""

    def by(losses):
        return lambda S, plan: walk(S, plan, propose, losses)

    hard = {
        "numpy in chunks": ("float64", by(from_scratch(baselines.logistic_tuned))),
        "numpy increments on CSC": ("CSC", by(from_parent)),
    }
    return _raced(by(from_scratch(baselines.logistic)), **hard)


SLOPES = _raced(walk_by_gradient, **{"scipy CSR": ("CSR", walk_by_gradient)})
FITS = [
    Search("Local by loss", Local(scoring="loss", generations=100), target=130, goal=200,
           **_walks(all_moves)),
    Search("Local by gradient", Local(generations=100), target=8, goal=15, **SLOPES),
    Search("Local by gradient, default", Local(), target=8, goal=15, **SLOPES),
    Search("EEM", EEM(generations=50), target=80, goal=150, **_walks(some_moves)),
    Search("DPSGA", DPSGA(generations=75), target=12, goal=20, **_raced(dpsga)),
    Search("Gradient", Gradient(steps=100), target=5, goal=10, 
           **_raced(descend, **{"scipy CSR": ("CSR", descend)})),
]  # fmt: skip

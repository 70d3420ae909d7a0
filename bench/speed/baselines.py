"""The obvious alternatives to the kernels, written well.

Plain functions of numpy, scipy, scikit-learn and (if installed) faiss. Each computes the same sums
as the kernel it is compared with, in floating point, and takes ready-made what can be prepared once
per data set: signed records, CSC columns, a parent's margins. BLAS, scikit-learn and faiss run on
as many threads as the benchmark allows; numpy's element-wise functions and scipy's cdist have one
thread by nature.

Linear baselines take `S`, the records with a column of ones, each row multiplied by minus the sign
of its label: then `S @ w` is minus the margin y z, and no pass over an n x m array goes to signs.
"""

import numpy as np
import scipy.sparse as sp
from scipy.spatial.distance import cdist

from bench.measure import quiet

# ---------------------------------------------------------------------------------- linear models


def signed(X, y):
    """-y (x, 1) for each record: (n, d + 1) float64, or CSR if X is."""
    sign = -np.where(np.asarray(y) > 0, 1.0, -1.0)
    if sp.issparse(X):
        wide = sp.hstack([X, np.ones((X.shape[0], 1))], format="csr")
        return sp.csr_array(sp.diags(sign) @ wide)
    S = np.empty((X.shape[0], X.shape[1] + 1))
    np.multiply(X, sign[:, None], out=S[:, :-1])
    S[:, -1] = sign
    return S


def logistic(S, P):
    """(m,) sums of ln(1 + exp(-y z)): one product, one logaddexp."""
    Z = S @ P.T
    return np.logaddexp(0, Z, out=Z).sum(axis=0)


def logistic_chunks(S, P, rows=4096):
    """The same in chunks of rows, so that n x m is never allocated."""
    total = np.zeros(len(P))
    Z = np.empty((rows, len(P)))
    for first in range(0, len(S), rows):
        part = S[first : first + rows]
        z = np.matmul(part, P.T, out=Z[: len(part)])
        total += np.logaddexp(0, z, out=z).sum(axis=0)
    return total


def logistic_tuned(S, P, rows=512):
    """Chunks that stay in cache, and max(z, 0) + log1p(exp(-abs z)), which beats logaddexp."""
    total = np.zeros(len(P))
    Z, tail = np.empty((2, rows, len(P)))
    for first in range(0, len(S), rows):
        part = S[first : first + rows]
        z, t = Z[: len(part)], tail[: len(part)]
        np.matmul(part, P.T, out=z)
        total += _softplus(z, t).sum(axis=0)
    return total


def _softplus(z, work):
    """ln(1 + exp(z)), in place of z."""
    np.abs(z, out=work)
    np.negative(work, out=work)
    np.exp(work, out=work)
    np.log1p(work, out=work)
    np.maximum(z, 0, out=z)
    return np.add(z, work, out=z)


def hinge(S, P):
    Z = S @ P.T
    Z += 1
    return np.maximum(Z, 0, out=Z).sum(axis=0)


def zero_one(X1, positive, P):
    """(m,) errors of the rule z > 0; X1 is the records with a column of ones."""
    return ((X1 @ P.T > 0) != positive[:, None]).sum(axis=0).astype(np.float64)


def gradient(S, w, cap):
    """(d + 1,) sums of y x_j min(sigma(-y z), cap): two passes over the records."""
    r = S @ w
    np.negative(r, out=r)
    np.exp(r, out=r)
    r += 1
    np.reciprocal(r, out=r)
    np.minimum(r, cap, out=r)
    return -(S.T @ r)


class Increment:
    """Offspring of one parent on CSC columns: only a column's non-zeros are touched.

    The parent's margins and losses are kept, offspring of one column share the gathered margins,
    and the loss is the fastest that numpy has.
    """

    def __init__(self, S, w):
        self.S = sp.csc_array(S)
        self.z = self.S @ w
        self.losses = np.logaddexp(0, self.z)
        self.total = self.losses.sum()

    def __call__(self, coords, steps):
        out = np.empty(len(coords))
        start, rows, values = self.S.indptr, self.S.indices, self.S.data
        for j in np.unique(coords):
            some = slice(start[j], start[j + 1])
            z, x = self.z[rows[some]], values[some]
            rest = self.total - self.losses[rows[some]].sum()
            moved, work = np.empty_like(z), np.empty_like(z)
            for i in np.flatnonzero(coords == j):
                np.multiply(x, steps[i], out=moved)
                moved += z
                out[i] = rest + _softplus(moved, work).sum()
        return out


# ---------------------------------------------------------------------------------------- centres


def kmeans_sklearn(X, P):
    """(m,) k-means costs of sets of centres (m, k, d), a call for each set."""
    from sklearn.metrics import pairwise_distances_argmin_min

    return np.array([pairwise_distances_argmin_min(X, C, metric="sqeuclidean")[1].sum() for C in P])


def kmeans_faiss(X32, P):
    """The same with a flat faiss index of the centres, in float32."""
    import faiss

    out = np.empty(len(P))
    for i, C in enumerate(P.astype(np.float32)):
        index = faiss.IndexFlatL2(X32.shape[1])
        index.add(C)
        out[i] = index.search(X32, 1)[0].sum(dtype=np.float64)
    return out


def kmedian_cdist(X, P):
    """(m,) l1 costs of sets of centres, a cdist for each set."""
    return np.array([cdist(X, C, "cityblock").min(axis=1).sum() for C in P])


def lloyd_kmeans(X, centers):
    """One iteration of scikit-learn's KMeans: it checks, centres X, assigns, averages, assigns."""
    from sklearn.cluster import KMeans

    with quiet():  # one iteration does not converge
        model = KMeans(len(centers), init=centers, n_init=1, max_iter=1, algorithm="lloyd", tol=0.0)
        return model.fit(X).cluster_centers_


def lloyd_argmin(X, centers):
    """scikit-learn's pairwise_distances_argmin, then sums by a sparse product: beats add.at."""
    from sklearn.metrics import pairwise_distances_argmin

    n, k = len(X), len(centers)
    labels = pairwise_distances_argmin(X, centers)
    member = sp.csr_array((np.ones(n), labels, np.arange(n + 1)), shape=(n, k))
    return np.column_stack([np.bincount(labels, minlength=k), member.T @ X])


# ------------------------------------------------------------------------------------- facilities


def clipped_distances(X, places, low, high):
    """(n, f) float64 l1 distances, clipped."""
    A = cdist(X, places, "cityblock")
    return np.clip(A, low, high, out=A)


def facility_scores(A, sets):
    """(m,) summed distances to the nearest facility of each set."""
    return np.array([A[:, c].min(axis=1).sum() for c in sets])


def facility_scores_rows(by_facility, sets):
    """The same on a (f, n) matrix of small integers, a row for each facility."""
    return np.array([by_facility[c].min(axis=0).sum(dtype=np.int64) for c in sets])


# --------------------------------------------------------------------------------------- selection
# The numpy ones are not private: float noise leaves traces in the low bits.


def top_k_gumbel(scores, k, rate):
    """The one-shot race with float Gumbel variables."""
    keys = scores * rate + np.random.default_rng().gumbel(size=scores.size)
    return np.argpartition(-keys, k)[:k]


def top_k_choice(scores, k, rate):
    """Peeling: k weighted draws, each without those already taken."""
    rng = np.random.default_rng()
    weights = np.exp((scores - scores.max()) * rate)
    chosen = []
    for _ in range(k):
        i = rng.choice(scores.size, p=weights / weights.sum())
        chosen.append(i)
        weights[i] = 0
    return np.array(chosen)


def laplace_opendp(n):
    """OpenDP's discrete Laplace on a vector of n zeros: exact, in Rust."""
    import opendp.prelude as dp

    dp.enable_features("contrib")
    space = dp.vector_domain(dp.atom_domain(T="i64")), dp.l1_distance(T="i64")
    mechanism = dp.m.make_laplace(*space, scale=1.0)
    zeros = [0] * n
    return lambda: np.array(mechanism(zeros))

"""diffprivlib and interpret, in an environment of their own: fits that are asked for in JSON.

This file runs under another interpreter, whose scikit-learn is old enough for diffprivlib. It
imports nothing of privfit. It answers each line of its input with a line of its output.
"""

import importlib.metadata
import json
import sys
import time
import warnings

import numpy as np


def logistic(job):
    from diffprivlib import models

    return models.LogisticRegression(
        epsilon=job["epsilon"], data_norm=job["norm"], C=job["C"], max_iter=1000,
        random_state=job["seed"],
    )  # fmt: skip


def bayes(job):
    from diffprivlib import models

    return models.GaussianNB(
        epsilon=job["epsilon"], bounds=(job["low"], job["high"]), random_state=job["seed"]
    )


def kmeans(job):
    from diffprivlib import models

    return models.KMeans(
        job["k"], epsilon=job["epsilon"], bounds=(job["low"], job["high"]), random_state=job["seed"]
    )


def boosting(job):
    from interpret.privacy import DPExplainableBoostingClassifier

    return DPExplainableBoostingClassifier(
        feature_types=job["kinds"], privacy_bounds={int(i): ends for i, ends in job["ranges"]},
        epsilon=job["epsilon"], delta=job["delta"], random_state=job["seed"], n_jobs=1,
        **job["settings"],
    )  # fmt: skip


def answer(job, tables):
    table = tables[job["table"]]
    models = {"logistic": logistic, "bayes": bayes, "kmeans": kmeans, "boosting": boosting}
    model = models[job["model"]](job)
    start = time.perf_counter()
    model.fit(*((table["X"],) if job["model"] == "kmeans" else (table["X"], table["y"])))
    seconds = time.perf_counter() - start
    if job["model"] == "kmeans":
        return {"seconds": seconds, "centers": model.cluster_centers_.tolist()}
    p = model.predict_proba(table["X_test"])[:, 1]
    value = float(np.mean((p > 0.5) == table["y_test"]))
    return {"seconds": seconds, "value": value, "probabilities": p.round(9).tolist()}


class Tables(dict):
    """The arrays of an .npz file by its path; the last one is kept."""

    def __missing__(self, path):
        self.clear()
        with np.load(path) as file:
            self[path] = {name: file[name] for name in file.files}
        return self[path]


def version(name):
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def main():
    warnings.simplefilter("ignore")  # of convergence, and of privacy leaks that the caller knows
    tables = Tables()
    names = ("diffprivlib", "interpret-core", "scikit-learn")
    print(json.dumps({name: version(name) for name in names}), flush=True)
    for line in sys.stdin:
        print(json.dumps(answer(json.loads(line), tables)), flush=True)


if __name__ == "__main__":
    main()

"""diffprivlib, in an environment of its own: fits that `contestants` asks for, a line of JSON each.

This file runs under another interpreter, whose scikit-learn is old enough for diffprivlib. It
imports nothing of privfit. It answers each line of its input with a line of its output.
"""

import json
import sys
import time
import warnings

import numpy as np


def logistic(models, job):
    return models.LogisticRegression(
        epsilon=job["epsilon"], data_norm=job["norm"], C=job["C"], max_iter=1000,
        random_state=job["seed"],
    )  # fmt: skip


def bayes(models, job):
    return models.GaussianNB(
        epsilon=job["epsilon"], bounds=(job["low"], job["high"]), random_state=job["seed"]
    )


def kmeans(models, job):
    return models.KMeans(
        job["k"], epsilon=job["epsilon"], bounds=(job["low"], job["high"]), random_state=job["seed"]
    )


def answer(models, job, tables):
    table = tables[job["table"]]
    model = {"logistic": logistic, "bayes": bayes, "kmeans": kmeans}[job["model"]](models, job)
    start = time.perf_counter()
    model.fit(*((table["X"],) if job["model"] == "kmeans" else (table["X"], table["y"])))
    seconds = time.perf_counter() - start
    if job["model"] == "kmeans":
        return {"seconds": seconds, "centers": model.cluster_centers_.tolist()}
    return {"seconds": seconds, "value": float(model.score(table["X_test"], table["y_test"]))}


class Tables(dict):
    """The arrays of an .npz file by its path; the last one is kept."""

    def __missing__(self, path):
        self.clear()
        with np.load(path) as file:
            self[path] = {name: file[name] for name in file.files}
        return self[path]


def main():
    import diffprivlib
    import sklearn
    from diffprivlib import models

    warnings.simplefilter("ignore")  # of convergence, and of privacy leaks that the caller knows
    tables = Tables()
    print(json.dumps({"diffprivlib": diffprivlib.__version__, "scikit-learn": sklearn.__version__}))
    sys.stdout.flush()
    for line in sys.stdin:
        print(json.dumps(answer(models, json.loads(line), tables)), flush=True)


if __name__ == "__main__":
    main()

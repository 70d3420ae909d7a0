"""Refusals in the words of the command line: options instead of parameters, files instead of calls.

Messages are written once, for Python. What a caller of a command can do about them differs: a
parameter is an option, settings of a solver cannot be passed, and a schema is a file. Here is all
of it, in the order in which it is applied.
"""

from __future__ import annotations

import re

__all__ = ["in_options"]

# Parameters whose options have other names than --the-same-with-dashes.
RENAMED = {"n_clusters": "clusters", "facilities": "places", "n_threads": "threads"}
PARAMETERS = ("C", "adjacency", "class_weight", "delta", "epsilon", "facilities", "ledger",
              "n_clusters", "n_public", "n_threads", "postprocess", "solver", "threshold",
              "title")  # fmt: skip
NAMES = "|".join(PARAMETERS)

SENTENCES: tuple[tuple[str, str], ...] = (
    # What only Python can pass.
    (r",? or (?:settings with \w+=|blocks=|[A-Z]\w+\(\w+=[^()]*\))(?=$|[;,])", ""),
    (r", settings such as [A-Z]\w+\([^()]*\), or an object that [^;]*", ""),
    (r", or integers on a coarser grid", ""),
    (r"pass fewer steps or a larger epsilon", "pass a larger --epsilon"),
    # A schema is a file.
    (r"domain \(a Schema with the blanks (.*?)\) must declare what its columns may hold; pass "
     r"learn_schema\(.*?\), which buys it, or declare it",
     r"the schema has the blanks \1, which this command does not buy; buy them by privfit schema "
     r"--epsilon, or declare them"),
    (r"Categorical\(\), whose values are hashed without names",
     '{kind = "category"}, whose values are hashed without names'),
    (r"Numeric range (\(.*?\)) must be finite and increasing; pass the documented "
     r"Numeric\(low, high\)", r"its range \1 must be finite and increasing; pass the documented "
     r"{low = ..., high = ...}"),
    (r"pass Grid\(a=12, b=10, c=12\)", "pass a = 12, b = 10, c = 12 in its table [grid]"),
    # A model is a choice.
    (r"pass solver='functional' to LogisticRegression", "pass --model logistic"),
    (r"or fit a LinearSVC", "or --model svm"),
    (r"pass fit_intercept=True, or another solver",
     "leave out --no-intercept, or pass another --solver"),
    (r"pass what privfit\.save wrote", "pass one that privfit fit, cluster or roc wrote"),
    (r"\(\{.*?\}\) must be 'balanced' or a dict of positive numbers by label; pass one of them",
     "must be 'balanced' or positive numbers by class; pass such as no=1,yes=10"),
    (r"number of facilities", "number of places"),
    (r"fewer clusters or more facilities", "fewer --clusters or more places"),
    # A ledger is a file.
    (r"pass adjacency='add_remove' to it, or charge it to a ledger of its own",
     "pass --adjacency add_remove, or another --ledger"),
    (r"ask for less, or start a larger ledger",
     "pass a smaller --epsilon, or create a larger budget file by privfit budget --create"),
    # Parameters are options.
    (rf"\b({NAMES})=(?:'([\w.]+)'|([\w.+-]+))", "--\\1 \\2\\3"),
    (r"must be None for solver", "must be left out for solver"),
    (rf"^({NAMES})(?= \()", r"--\1"),
    (rf"(?<=leave )({NAMES})(?= out)", r"--\1"),
    (r"\bn_public\b", "--n_public"),
    (r"^class_weight\b", "--class_weight"),
    (r"----", "--"),
)  # fmt: skip
PATTERNS = tuple((re.compile(pattern), words) for pattern, words in SENTENCES)
OPTION = re.compile(rf"--({NAMES})\b")
SOLVERS = re.compile(r"--solver \w+(?:(?:,|,? or) '\w+')+")  # a list, of which one is passed


def in_options(sentence: str) -> str:
    """A message about parameters as one about options.

    >>> from privfit.commands.wording import in_options
    >>> in_options("n_public must be given under adjacency='add_remove'; pass a public estimate")
    '--n-public must be given under --adjacency add_remove; pass a public estimate'
    """
    for pattern, words in PATTERNS:
        sentence = pattern.sub(words, sentence)
    sentence = SOLVERS.sub(lambda found: found[0].replace("'", ""), sentence)
    return OPTION.sub(lambda found: f"--{_option(found[1])}", sentence)


def _option(parameter: str) -> str:
    return RENAMED.get(parameter, parameter).replace("_", "-")

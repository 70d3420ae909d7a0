"""Searches for any objective: propose without data, score exactly, select privately."""

from privfit.searches.ask_tell import AskTell
from privfit.searches.dpsga import DPSGA
from privfit.searches.majority import Majority
from privfit.searches.operators import (
    Constant,
    Decay,
    Gaussian,
    Geometric,
    Insertion,
    InterceptStarts,
    MiddleStarts,
    OnePoint,
    RandomStarts,
    Redraw,
    Step,
    Swap,
    Uniform,
    Union,
)
from privfit.searches.privgene import EEM, Local, PrivGene
from privfit.searches.sample_aggregate import Gupt, aggregate
from privfit.searches.solvers import Found, search
from privfit.searches.subsample import Subsample

__all__ = [
    "DPSGA",
    "EEM",
    "AskTell",
    "Constant",
    "Decay",
    "Found",
    "Gaussian",
    "Geometric",
    "Gupt",
    "Insertion",
    "InterceptStarts",
    "Local",
    "Majority",
    "MiddleStarts",
    "OnePoint",
    "PrivGene",
    "RandomStarts",
    "Redraw",
    "Step",
    "Subsample",
    "Swap",
    "Uniform",
    "Union",
    "aggregate",
    "search",
]

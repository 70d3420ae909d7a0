"""Public data sets and made-up ones: schemas that ship, loaders of local files, generators.

``load_adult(folder)`` and its like read a public data set from a folder (docs/datasets.md lists the
files); `load_schema` has the declarations alone. `make_census`, `make_panel`, `make_clusters` and
`make_texts` make up records, the same ones for a seed on every machine. All return a `Dataset`.
Nothing is downloaded, and nothing is inferred from records.
"""

from privfit.datasets.dataset import Dataset
from privfit.datasets.declared import load_schema, names, schema_path
from privfit.datasets.loaders import (
    load,
    load_adult,
    load_bank_full,
    load_california_housing,
    load_credit_default,
    load_diamonds,
    load_flights,
    load_gowalla_pois,
    load_health_panel,
    load_image_house_rgb,
    load_lifesci,
    load_mushroom,
    load_s1,
    load_sms_spam,
    load_spambase,
    load_su2016_centroids,
    load_su2016_results,
)
from privfit.datasets.made import make_census, make_clusters, make_panel, make_texts

__all__ = [
    "Dataset",
    "load",
    "load_adult",
    "load_bank_full",
    "load_california_housing",
    "load_credit_default",
    "load_diamonds",
    "load_flights",
    "load_gowalla_pois",
    "load_health_panel",
    "load_image_house_rgb",
    "load_lifesci",
    "load_mushroom",
    "load_s1",
    "load_schema",
    "load_sms_spam",
    "load_spambase",
    "load_su2016_centroids",
    "load_su2016_results",
    "make_census",
    "make_clusters",
    "make_panel",
    "make_texts",
    "names",
    "schema_path",
]

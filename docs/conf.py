"""The documentation site: `make -C docs html`, with what `pip install ".[docs]"` installs.

Everything is built offline. Inventories of other projects are in `inventories/`; a page that is in
no toctree, a reference to nothing and an example that fails are errors.
"""

from __future__ import annotations

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # for _ext

import privfit  # noqa: E402

project = "privfit"
author = "the privfit developers"
version = release = privfit.__version__
html_title = f"privfit {version}"

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "_ext.linked_names",
    "_ext.outside_pages",
]
source_suffix = {".md": "markdown", ".rst": "restructuredtext"}
exclude_patterns = ["_build", "_templates", "examples", "gallery", "auto_examples/*.ipynb"]
templates_path = ["_templates"]
default_role = "literal"
nitpicky = True
nitpick_ignore_regex = [(r"py:.*", r"numpy\..*")]  # of numpy there is no inventory to ship

# ------------------------------------------------------------------------------------------- pages

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 4
myst_url_schemes = ("http", "https", "mailto")
suppress_warnings: list[str] = []

# -------------------------------------------------------------------------------------- references

autosummary_generate = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"  # the sections of numpydoc have the types
autodoc_default_options = {"exclude-members": ""}
numpydoc_show_class_members = False
numpydoc_xref_param_type = True
numpydoc_xref_ignore = "all"  # but the aliases
numpydoc_xref_aliases = {
    **{name: f"privfit.{name}" for name in privfit.__all__},
    "array-like": "numpy.ndarray",
    "array_like": "numpy.ndarray",
}
numpydoc_validation_checks: set[str] = set()  # tools/docstrings.py checks them

intersphinx_mapping = {
    name: (address, str(HERE / "inventories" / f"{name}.inv"))
    for name, address in {
        "python": "https://docs.python.org/3",
        "scipy": "https://docs.scipy.org/doc/scipy",
        "sklearn": "https://scikit-learn.org/stable",
    }.items()
    if (HERE / "inventories" / f"{name}.inv").exists()
}

# ---------------------------------------------------------------------------------------- examples

sphinx_gallery_conf = {
    "examples_dirs": "gallery",
    "gallery_dirs": "auto_examples",
    "filename_pattern": r"\.py$",
    "within_subsection_order": "FileNameSortKey",
    "abort_on_example_error": True,
    "image_scrapers": ("_ext.figures.scraper",),
    "reset_modules": (),
    "doc_module": ("privfit",),
    "reference_url": {"privfit": None},
    "backreferences_dir": "generated/backreferences",
    "show_memory": False,
    "show_signature": False,
    "write_computation_times": False,
    "capture_repr": ("__repr__",),
    "download_all_examples": False,
}

# ------------------------------------------------------------------------------------------- theme

html_theme = "pydata_sphinx_theme"
html_theme_options = {
    "logo": {"text": f"privfit {version}"},
    "header_dropdown_text": "More",
    "show_toc_level": 2,
    "navbar_persistent": ["search-button"],
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 9,
    "navigation_with_keys": False,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
}
html_sidebars = {page: [] for page in ("index", "install", "tutorial")}  # sections of one page
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
copyright = "the privfit developers, Apache-2.0"

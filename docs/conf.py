"""How the site is built: `make docs`, or `sphinx-build -W docs docs/_build/html`.

Nothing in the finished pages is loaded from elsewhere: formulas are MathML, written when the site
is built, and the theme brings its own fonts and scripts.
"""

import os
import sys
from pathlib import Path
from typing import Any

# Two threads of LightGBM or of a BLAS would make the bits of an example depend on the machine.
os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", MKL_NUM_THREADS="1")
sys.path.insert(0, str(Path(__file__).parent / "_ext"))

import fairmatch

project = "fairmatch"
author = "The fairmatch developers"
project_copyright = "The fairmatch developers, MIT licence"
version = release = fairmatch.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "mathml",
    "schemas",
]
exclude_patterns = ["_build", "**/GALLERY_HEADER.rst", "**sg_execution_times.rst"]
templates_path = ["_templates"]
suppress_warnings = ["config.cache"]  # the order of the gallery is a function

# Docstrings name things in single backticks; those that are not ours stay plain.
default_role = "py:obj"
autosummary_generate = True
autodoc_typehints = "none"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"

html_theme = "pydata_sphinx_theme"
html_title = f"fairmatch {release}"
html_context = {"default_mode": "auto"}
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_sidebars = {"index": [], "changelog": [], "contributing": [], "security": []}
html_theme_options = {
    "navigation_with_keys": False,
    "show_prev_next": False,
    "secondary_sidebar_items": ["page-toc"],
    "navbar_align": "left",
    "navbar_end": ["theme-switcher"],
    "header_links_before_dropdown": 7,
    "footer_start": ["copyright"],
    "footer_end": ["sphinx-version"],
}

# The order in which the gallery is read.
GALLERY = (
    "tutorial.py",
    "first_classifier.py",
    "trees_with_a_bound.py",
    "audit_of_scores.py",
    "explain_a_decision.py",
    "like_with_like.py",
    "several_groups.py",
    "several_classes.py",
    "estimated_groups.py",
    "equal_opportunity.py",
    "existing_model.py",
    "regression.py",
    "reading_a_coupling.py",
    "own_matcher.py",
    "texts.py",
    "own_study.py",
    "large_tables.py",
    "watch_the_gap.py",
    "mlflow_model.py",
)


def place_in_gallery(name: str) -> int:
    """Return the place of an example; one that is not listed comes last."""
    return GALLERY.index(name) if name in GALLERY else len(GALLERY)


sphinx_gallery_conf = {
    "examples_dirs": ["../examples"],
    "gallery_dirs": ["gallery"],
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"(demo|pictures|screenshots|shifting)\.py$",
    "within_subsection_order": place_in_gallery,
    "backreferences_dir": "reference/backreferences",
    "doc_module": ("fairmatch",),
    "reference_url": {"fairmatch": None},
    "abort_on_example_error": True,
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_memory": False,
    "show_signature": False,
    "min_reported_time": 60,
    "nested_sections": False,
}


def skip_what_is_inherited(
    app: Any, what: str, name: str, member: Any, skip: bool, options: Any
) -> bool | None:
    """Leave out of a class's page what scikit-learn defines and documents."""
    function = member.fget if isinstance(member, property) else member
    module = getattr(function, "__module__", None) or ""
    return True if what == "class" and not module.startswith("fairmatch") else None


def setup(app: Any) -> None:
    """Connect what the configuration defines."""
    app.connect("autodoc-skip-member", skip_what_is_inherited)

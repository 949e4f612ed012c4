"""Sphinx settings; `make docs` builds with warnings as errors."""

import sys
from pathlib import Path

import calibrant

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # for figure_scraper

project = "calibrant"
author = "The calibrant developers"
copyright = f"2026, {author}"
release = calibrant.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "myst_parser",
    "numpydoc",
    "sphinx_gallery.gen_gallery",
]
nitpicky = True

# Scripts of a gallery become pages in docs/generated, which git ignores.
GALLERIES = [
    folder
    for folder in ("gallery", "propositions")
    if (HERE / folder / "GALLERY_HEADER.rst").exists()
]
exclude_patterns = ["_build", "README.md", *GALLERIES]
sphinx_gallery_conf = {
    "examples_dirs": GALLERIES,
    "gallery_dirs": [f"generated/{folder}" for folder in GALLERIES],
    "within_subsection_order": "FileNameSortKey",
    "ignore_pattern": r"conftest\.py",
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 60,
    "write_computation_times": False,
    "abort_on_example_error": True,
    "capture_repr": ("_repr_html_",),
    "image_scrapers": ("figure_scraper", "matplotlib"),
}

myst_heading_anchors = 3
templates_path = ["templates"]
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say it in words
autodoc_mock_imports = ["torch", "torchmetrics"]  # the same pages with and without
numpydoc_show_class_members = False

html_theme = "pydata_sphinx_theme"
html_title = f"calibrant {release}"
html_static_path = ["static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "show_prev_next": True,
    "navbar_end": ["theme-switcher"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}

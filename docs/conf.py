"""Sphinx settings; `make docs` builds with warnings as errors."""

import sys
from pathlib import Path

import calibrant

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))  # for figure_scraper and mathml

project = "calibrant"
author = "The calibrant developers"
copyright = f"2026, {author}"
release = calibrant.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "mathml",
    "myst_parser",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
]
nitpicky = True
default_role = "autolink"  # `calibrant.evaluate` is a link; names of arguments are not
nitpick_ignore_regex = [("py:obj", r"(?!calibrant\.).*|calibrant\.plot")]

# Scripts of a gallery become pages in docs/generated, which git ignores.
GALLERIES = [
    folder
    for folder in ("gallery", "propositions", "cases")
    if (HERE / folder / "GALLERY_HEADER.rst").exists()
]
exclude_patterns = ["_build", "README.md", *GALLERIES]
sphinx_gallery_conf = {
    "examples_dirs": GALLERIES,
    "gallery_dirs": [f"generated/{folder}" for folder in GALLERIES],
    "within_subsection_order": "FileNameSortKey",
    "ignore_pattern": r"conftest\.py|record\.py",
    "download_all_examples": False,
    "show_signature": False,
    "min_reported_time": 60,
    "write_computation_times": False,
    "abort_on_example_error": True,
    "capture_repr": ("_repr_html_",),
    "image_scrapers": ("figure_scraper", "matplotlib"),
}

myst_enable_extensions = ["colon_fence", "dollarmath"]
myst_heading_anchors = 3
html_math_renderer = "mathml"
# What is copied is what one types: neither prompts nor answers.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_exclude = ".linenos, .gp, .go"
copybutton_selector = "div.highlight:not(.highlight-text *) pre"
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
# No sidebar where it would be empty.
html_sidebars = {
    page: []
    for page in ("index", "install", "tutorial", "not-for", "reliability", "changelog")
}
html_copy_source = False
html_theme_options = {
    "show_prev_next": True,
    "header_links_before_dropdown": 6,
    "show_toc_level": 2,
    "navbar_end": ["theme-switcher"],
    "navbar_persistent": ["search-button"],
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
}

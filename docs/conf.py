"""Sphinx settings; `make docs` builds with warnings as errors."""

import acumen

project = "acumen"
author = "The acumen developers"
copyright = f"2026, {author}"
release = acumen.__version__

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.mathjax",
    "myst_parser",
    "numpydoc",
]
exclude_patterns = ["_build"]
myst_enable_extensions = ["dollarmath"]
autosummary_generate = True
autodoc_typehints = "none"  # the docstrings say it in words
numpydoc_show_class_members = False
html_theme = "pydata_sphinx_theme"

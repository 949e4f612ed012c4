"""Shows figures in the gallery that pyplot does not know of, as those of calibrant.plot.

Sphinx-Gallery finds figures through pyplot. calibrant draws without it, so that no window
opens; here the value of a block's last expression is looked at instead.
"""

from typing import Any
from weakref import WeakSet

import numpy as np
from matplotlib.artist import Artist
from sphinx_gallery.scrapers import figure_rst

SHOWN: WeakSet[Any] = WeakSet()
"""Figures of earlier blocks: the last value stays until another one comes."""


def figure_of(value: Any) -> Any:
    """The figure behind Axes, an array of them, or what holds a figure; else None."""
    if isinstance(value, np.ndarray) and value.size:
        value = value.flat[0]
    figure = getattr(value, "figure", None)
    return figure if isinstance(figure, Artist) else None


def scrape(block: Any, block_vars: dict[str, Any], gallery_conf: dict[str, Any]) -> str:
    """Save the figure of the last expression, unless pyplot has it."""
    figure = figure_of(block_vars["example_globals"].get("___"))
    if figure is None or figure in SHOWN or figure.canvas.manager is not None:
        return ""
    SHOWN.add(figure)
    path = next(block_vars["image_path_iterator"])
    figure.savefig(path, dpi=160, bbox_inches="tight", pad_inches=0.1)
    return figure_rst([path], gallery_conf["src_dir"])


def _get_sg_image_scraper() -> Any:
    return scrape

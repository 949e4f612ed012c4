"""One picture of each figure, compared with a committed one.

Text is left out: how it is drawn depends on the version of the font library. So do edges
on that of matplotlib: pictures are compared under the one that drew them. After a change
that is meant, write them anew with CALIBRANT_BASELINE=write and look at them.
"""

import io
import os
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.image import imread
from matplotlib.text import Text
from plot_models import edge_cases, hundred_classes, ordinary, study

from calibrant import plot

BASELINE = Path(__file__).parent / "baseline"
DRAWN_BY = "3.11"
pytestmark = [
    pytest.mark.skipif(
        not mpl.__version__.startswith(f"{DRAWN_BY}."),
        reason=f"not matplotlib {DRAWN_BY}, which drew the pictures: `make test`",
    ),
    pytest.mark.xdist_group("figures"),
]
DPI = 60
TOLERANCE = 3.0
"""Root mean square of the difference, of 255. A line that is missing gives more."""

FIGURES = {
    "row": lambda: plot.calibration_sharpness(study()),
    "single": lambda: plot.calibration_sharpness(ordinary()),
    "bandwidth": lambda: plot.calibration_sharpness(ordinary(), bandwidth=0.05),
    "logit": lambda: plot.calibration_sharpness(ordinary(), scale="logit"),
    "log_loss": lambda: plot.calibration_sharpness(ordinary(), divergence="log"),
    "infinite": lambda: plot.calibration_sharpness(edge_cases()["infinite loss"]),
    "paper": lambda: plot.calibration_sharpness(ordinary(), style="paper"),
    "paper_row": lambda: plot.calibration_sharpness(study(), style="paper"),
    "reliability": lambda: plot.reliability(ordinary()),
    "reliability_mass": lambda: plot.reliability(ordinary(), strategy="mass"),
    "smooth_reliability": lambda: plot.smooth_reliability(ordinary()),
    "corp": lambda: plot.corp(ordinary()),
    "residual": lambda: plot.residual(ordinary()),
    "bandwidth_sweep": lambda: plot.bandwidth_sweep(study(), (0.01, 0.05, 0.25)),
    "score_map": lambda: plot.score_map(study()),
    "classwise_grid": lambda: plot.classwise_grid(hundred_classes(), most=10),
    "compare_methods": lambda: plot.compare_methods(study()),
    "risk_coverage": lambda: plot.risk_coverage(study()),
    "decision_curve": lambda: plot.decision_curve(study()[:2]),
    "murphy": lambda: plot.murphy(study()[:2]),
    "triptych": lambda: plot.triptych(study()[:2]),
    "cumulative_differences": lambda: plot.cumulative_differences(study()[:2]),
}


def picture(out):
    """The figure without its text, as a PNG."""
    while not isinstance(out, Axes):
        out = out[0]
    figure, file = out.get_figure(root=True), io.BytesIO()
    figure.draw_without_rendering()  # makes the labels of the ticks
    for text in figure.findobj(Text):
        text.set_visible(False)
    figure.savefig(file, format="png", dpi=DPI)
    return file.getvalue()


def pixels(png):
    """Red, green and blue from 0 to 255."""
    return 255 * imread(io.BytesIO(png))[..., :3]


def difference(one, other):
    """Root mean square over all pixels; of other sizes, pictures differ without end."""
    if one.shape != other.shape:
        return np.inf
    return float(np.sqrt(np.mean((one - other) ** 2)))


@pytest.mark.parametrize("name", FIGURES)
def test_figure_looks_as_it_did(name):
    png, path = picture(FIGURES[name]()), BASELINE / f"{name}.png"
    if os.environ.get("CALIBRANT_BASELINE") == "write":
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(png)
    assert difference(pixels(png), pixels(path.read_bytes())) < TOLERANCE


def test_every_picture_belongs_to_a_figure():
    assert {path.stem for path in BASELINE.iterdir()} == set(FIGURES)


@pytest.mark.parametrize("gid", ["band", "interval", "accuracy"])
def test_a_missing_part_is_noticed(gid):
    ax = plot.calibration_sharpness(ordinary())
    whole = pixels(picture(ax))
    for artist in ax.get_children():
        if artist.get_gid() == gid:
            artist.remove()
    assert difference(whole, pixels(picture(ax))) > TOLERANCE


@pytest.mark.parametrize("name", ["row", "single", "paper", "reliability"])
def test_figure_is_legible_in_grey(name):
    # The band, the line and the paper must differ by an eighth of the grey scale.
    grey = pixels(picture(FIGURES[name]())) @ [0.299, 0.587, 0.114]
    levels = np.histogram(grey, bins=16, range=(0, 255))[0]
    assert (levels > 0.0005 * grey.size).sum() >= 4

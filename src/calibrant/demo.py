"""The demo: an over-confident network on noisy scans of digits, recalibrated and judged."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import (
    as_path,
    check_flags,
    check_functions,
    check_number,
    missing,
)
from calibrant._base.text import number, printed_gap
from calibrant._base.write import target_of, write_npz
from calibrant._verbs.study import Study, study
from calibrant.recalibration._estimator import Progress
from calibrant.report._report import report as write_report

TRAIN_ROWS, NOISE = 250, 0.3
MOST_SEED = (1 << 32) - 1  # of scikit-learn
FILES = ("diagram.png", "methods.png", "predictions.npz", "report.html")


@dataclass(frozen=True, slots=True)
class DemoReport:
    """The study of the network, and the files that were written."""

    study: Study
    page: Path
    predictions: Path
    figures: tuple[Path, ...]

    def to_json(self) -> str:
        """The whole study."""
        return self.study.to_json()

    def text(self) -> str:
        """What to look at, and what to try next."""
        names = ("Uncalibrated", "Mean replacement", "Temperature")
        raw, mean, hot = models = [self.study[name] for name in names]
        ece = [number(100 * ev.metrics["ece"], 2) for ev in (raw, mean)]
        gap = [number(printed_gap(ev.decomposition, 2, 100), 2) for ev in models]
        temperature: Any = self.study.recalibrators["Temperature"]
        files = "\n".join(f"  {path}" for path in (*self.figures, self.predictions))
        return f"""Look at "{mean.name}": every confidence was replaced by the accuracy on other
examples. No prediction got better, yet ECE fell from {ece[0]} to {ece[1]}. The sharpness gap
tells: it grew from {gap[0]} to {gap[1]}. "{hot.name}" (T = {temperature.temperature_:.2f}) lowered
the calibration error and left the gap at {gap[2]}.

Files:
{files}
Try next:
  calibrant report {self.predictions} --divergence log
  calibrant study {self.predictions} --folds 5 --methods temperature,vector
Open the interactive report in a browser:
  {self.page}"""


def run(
    folder: Path, rng: int = 0, progress: Progress | None = None, *, force: bool = False
) -> DemoReport:
    """Train, recalibrate, evaluate, and write predictions and figures to ``folder``.

    Files that exist there are replaced only with `force`.
    """
    folder = as_path(folder, "folder")
    check_number(rng, "rng", 0, MOST_SEED, kind="a whole number")
    check_functions(progress=progress)
    check_flags(force=force)
    for name in FILES if folder.exists() else ():
        target_of(folder / name, force=force)
    logits, labels, half = _train(rng)
    scores = logits[:half], logits[half:]
    made = study(labels[:half], labels[half:], logits=scores, progress=progress)
    folder.mkdir(parents=True, exist_ok=True)
    *figures, path, page = (folder / name for name in FILES)
    write_npz(path, {"logits": logits[half:], "labels": labels[half:]}, force=force)
    write_report(made, page, title="A network that is too sure", force=force)
    for figure, draw in zip(figures, _drawings(), strict=True):
        np.ravel(draw(made))[0].figure.savefig(figure, dpi=200)
    return DemoReport(made, page, path, tuple(figures))


def _drawings() -> tuple[Any, Any]:
    """The two figures of the argument."""
    from calibrant import plot

    return plot.calibration_sharpness, plot.compare_methods


def _train(rng: int) -> tuple[NDArray[np.float64], NDArray[np.int_], int]:
    """Logits and labels of held-out digits, and where their first half ends."""
    try:
        from sklearn.datasets import load_digits
        from sklearn.neural_network import MLPClassifier
    except ImportError as error:
        raise missing(error, "the demo", "demo") from None
    images, digits = load_digits(return_X_y=True)
    draw = np.random.default_rng(rng)
    images = images / 16 + NOISE * draw.normal(size=images.shape)
    rows = draw.permutation(len(digits))
    train, rest = rows[:TRAIN_ROWS], rows[TRAIN_ROWS:]
    steps = {"learning_rate_init": 0.005, "tol": 0, "max_iter": 300}
    network = MLPClassifier((128,), alpha=0, random_state=rng, **steps)
    _fit_quietly(network, images[train], digits[train])
    return _logits(network, images[rest]), digits[rest], len(rest) // 2


def _fit_quietly(network: Any, images: NDArray[Any], digits: NDArray[Any]) -> None:
    """Train past convergence on purpose: that is what makes it over-confident."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        network.fit(images, digits)


def _logits(network: Any, images: NDArray[np.float64]) -> NDArray[np.float64]:
    layer = images
    for weights, bias in zip(
        network.coefs_[:-1], network.intercepts_[:-1], strict=True
    ):
        layer = np.maximum(layer @ weights + bias, 0)
    return layer @ network.coefs_[-1] + network.intercepts_[-1]

"""The demo: an over-confident network on noisy scans of digits, evaluated three ways."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acumen.evaluation import evaluate
from acumen.results import Evaluation
from acumen.words import number

TRAIN_ROWS, NOISE = 250, 0.3
HEADINGS = ("accuracy", "ece", "smooth_ece", "nll", "brier")


@dataclass(frozen=True, slots=True)
class DemoReport:
    """Evaluations of the network and of two ways to change its confidence."""

    evaluations: tuple[Evaluation, ...]
    predictions: Path

    def to_json(self) -> str:
        """All evaluations, by name."""
        return json.dumps({ev.name: ev.to_dict() for ev in self.evaluations})

    def text(self) -> str:
        """What was found, in words and one table."""
        network, mean, temperature = self.evaluations
        ece = [number(ev.metrics["ece"]) for ev in self.evaluations]
        gap = [number(ev.decomposition.sharpness_gap) for ev in self.evaluations]
        return f"""{network}

{_table(self.evaluations)}

Look at "{mean.name}": every confidence was replaced by the accuracy on
other rows. No prediction got better, yet ECE fell from {ece[0]} to {ece[1]}.
The sharpness gap tells: it grew from {gap[0]} to {gap[1]}.
"{temperature.name}" lowered the calibration error and left the gap at {gap[2]}.

The predictions are in {self.predictions}.
Try next, in Python:
  import numpy as np, acumen as ac
  d = np.load({str(self.predictions)!r})
  print(ac.evaluate(d["labels"], logits=d["logits"], divergence="log"))"""


def run(folder: Path, seed: int = 0) -> DemoReport:
    """Train, predict, evaluate and save the predictions to ``folder``."""
    logits, labels, half = _train(seed)
    temperature = _temperature(logits[:half], labels[:half])
    test, y = logits[half:], labels[half:]
    q = float((logits[:half].argmax(axis=1) == labels[:half]).mean())
    evaluations = (
        evaluate(y, logits=test, name="network"),
        evaluate(y, probs=_mean_replacement(test, q), name="mean replacement"),
        evaluate(y, logits=test / temperature, name=f"temperature {temperature:.2f}"),
    )
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "predictions.npz"
    np.savez(path, logits=test, labels=y)
    return DemoReport(evaluations, path)


def _train(seed: int) -> tuple[NDArray[np.float64], NDArray[np.int_], int]:
    """Logits and labels of held-out digits, and where their first half ends."""
    try:
        from sklearn.datasets import load_digits
        from sklearn.neural_network import MLPClassifier
    except ImportError as error:
        raise ImportError(
            "the demo trains a network with scikit-learn: pip install 'acumen[demo]'"
        ) from error
    images, digits = load_digits(return_X_y=True)
    rng = np.random.default_rng(seed)
    images = images / 16 + NOISE * rng.normal(size=images.shape)
    rows = rng.permutation(len(digits))
    train, rest = rows[:TRAIN_ROWS], rows[TRAIN_ROWS:]
    network = MLPClassifier(
        (128,),
        alpha=0,
        learning_rate_init=0.005,
        tol=0,
        max_iter=300,
        random_state=seed,
    )
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


def _temperature(logits: NDArray[np.float64], labels: NDArray[np.int_]) -> float:
    from scipy.optimize import minimize_scalar

    from acumen.metrics import nll

    found = minimize_scalar(
        lambda t: nll(labels, logits=logits / np.exp(t)), bounds=(-3, 3)
    )
    return float(np.exp(found.x))


def _mean_replacement(logits: NDArray[np.float64], q: float) -> NDArray[np.float64]:
    k = logits.shape[1]
    probs = np.full(logits.shape, (1 - q) / (k - 1))
    probs[np.arange(len(logits)), logits.argmax(axis=1)] = q
    return probs


def _table(evaluations: tuple[Evaluation, ...]) -> str:
    head = ["", *HEADINGS, "= d_cal", "+ gap"]
    rows = [head]
    for ev in evaluations:
        parts = ev.decomposition
        values = [*(ev.metrics[name] for name in HEADINGS), parts.calibration]
        rows.append([ev.name, *(number(x) for x in (*values, parts.sharpness_gap))])
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    return "\n".join(
        "  ".join(
            cell.ljust(width) if i == 0 else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in rows
    )

"""What human votes as soft labels say of real networks.

    python simulations/soft_labels.py

About fifty people named the object in each test image of CIFAR-10. Their shares pi are
soft labels. A vote drawn from them costs a forecast g on average

    d(vote, g) = d(pi, g) + d(vote, pi),

where the last term is the same for every model: no forecast of the image can be rid of
it. Writes `soft_labels.md`.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import click
import numpy as np
from numpy.typing import NDArray
from scipy.special import xlogy

import calibrant as cal

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("CALIBRANT_DATA", HERE.parent.parent / "shared" / "data"))
PREFIX = "cifar10_peterson_"
MODELS = {
    "ResNet-110": "resnet_basic_110",
    "DenseNet-BC-100": "densenet_bc_100_12",
    "WRN-28-10": "wrn_28_10",
    "Shake-Shake, cutout": "shake_shake_26_2x64d_ssi_cutout16",
    "WRN-28-10, tuned on votes": "wrn_28_10_humantuned_UNDERCONFIDENT",
}
DIVERGENCES = {"brier": "Brier score", "log": "Log loss"}

Load = Callable[[str], Mapping[str, Any]]
Matrix = NDArray[np.float64]


def shares(load: Load) -> Matrix:
    """Share of the votes for each class, image by image."""
    counts = load("cifar10h_human_counts")["counts"].astype(np.float64)
    return counts / counts.sum(axis=1, keepdims=True)


def irreducible(pi: Matrix, divergence: str) -> float:
    """Mean of d(vote, pi) over votes: what remains if the shares are known."""
    if divergence == "brier":
        return float((1 - (pi**2).sum(axis=1)).mean())
    return float(-xlogy(pi, pi).sum(axis=1).mean())


def evaluate(name: str, scores: Mapping[str, Any], y: Any) -> cal.Evaluation:
    """Both divergences of one model against labels or shares of votes."""
    return cal.evaluate(y, **scores, target="top-label", name=name)


def models(load: Load) -> Iterable[tuple[str, Mapping[str, Any], Any]]:
    """Name, scores and official labels of each model; the voters come last."""
    for name, file in MODELS.items():
        arrays = load(PREFIX + file)
        yield name, {"logits": arrays["logits"]}, arrays["labels"]
    yield "the voters", {"probs": shares(load)}, load("cifar10h_human_counts")["labels"]


def rows(load: Load, divergence: str) -> Iterable[list[str]]:
    """One row per model: official labels, a vote, the shares, and their terms."""
    pi = shares(load)
    rest = irreducible(pi, divergence)
    for name, scores, labels in models(load):
        hard = evaluate(name, scores, labels).decompositions[divergence]
        soft = evaluate(name, scores, pi).decompositions[divergence]
        numbers = [
            *(hard.total, hard.calibration, hard.sharpness_gap),
            *(soft.total + rest, soft.total, soft.calibration, soft.sharpness_gap),
        ]
        yield [name, *(f"{round(float(x), 4) + 0:.4f}" for x in numbers)]


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    whole = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in whole) + "\n"


PAGE = """\
# Human votes as soft labels

Written by

    python simulations/soft_labels.py

About fifty people named the object in each of the 10,000 test images of CIFAR-10
(CIFAR-10H). The official label is one answer; the shares π of their votes are soft
labels. The loss of a vote is the distance d(π, g) of the forecast to the shares, which a
model can bring down to 0, and an irreducible rest, d(vote, π) on average, which it
cannot. Total, d_CAL and gap against official labels stand to the left, those against the
shares to the right. A total against shares leaves the rest out, so it must not be
compared with one against labels.
"""

SECTION = """
## {title}

Irreducible: {rest:.4f}.

{table}"""

HEAD = (
    *("model", "label: total", "d_CAL", "gap"),
    *("a vote", "shares: total", "d_CAL", "gap"),
)

READING = """
The voters disagree so much that the rest is larger than the Brier score of most networks
against the official labels. Networks trained on official labels are far better
calibrated against these than against votes: they are surer than people are. The network
tuned on votes is the other way round: under-confident about official labels, and
calibrated about votes. Labels and votes may rank models differently, as they do
WRN-28-10 and Shake-Shake under the log loss. The voters themselves, as forecasts of the
official label, are under-confident, and infinitely wrong about the few images whose
label nobody chose.
"""


def page(load: Load) -> str:
    """The whole of `soft_labels.md`."""
    text = PAGE
    for divergence, title in DIVERGENCES.items():
        rest = irreducible(shares(load), divergence)
        shown = table(HEAD, rows(load, divergence))
        text += SECTION.format(title=title, rest=rest, table=shown)
    return text + READING


@click.command(help=__doc__.split("\n")[0])
@click.option(
    "--data",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    default=DATA,
    help="Folder of real model outputs [default: $CALIBRANT_DATA].",
)
@click.option("--output", default=HERE, type=click.Path(path_type=Path))
def main(data: Path, output: Path):
    load = cache(lambda name: np.load(data / f"{name}.npz", allow_pickle=False))
    (output / "soft_labels.md").write_text(page(load), encoding="utf-8")


if __name__ == "__main__":
    main()

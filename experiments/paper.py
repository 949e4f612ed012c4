"""The paper's own numbers, and what stands in here for each of its models."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import NamedTuple

from experiments.models import Outputs, read_inferred
from experiments.protocol import BASELINE, Experiment, experiment

METRICS = {
    "accuracy": "Accuracy",
    "ece": "ECE",
    "ace": "ACE",
    "smooth_ece": "SmoothECE",
    "nll": "NLL",
    "brier": "Brier",
}
"""Columns of the paper's tables."""

OF_CONFIDENCE = ("accuracy", "ece", "ace", "smooth_ece")
"""Columns that need no more than the confidence of the predicted class."""

_NUMBERS = Path(__file__).with_name("paper_tables.csv")


class PaperTable(NamedTuple):
    """A table of the paper: its model, and recorded ones that stand in for it.

    `stand_in` has probabilities of all classes; of `alike`, where there is one, only the
    confidence is recorded. Both come with what is the same as in the paper and what is
    not. `inferred` is the folder that `calibrant infer` is asked to write the model to.
    """

    number: int
    key: str
    model: str
    dataset: str
    inferred: str
    stand_in: str
    words: str
    alike: str = ""
    alike_words: str = ""

    @property
    def title(self) -> str:
        """What the paper's table is of."""
        return f"{self.model} on {self.dataset}"

    def experiment(self, outputs: Path | None = None) -> tuple[Experiment, str]:
        """The experiment with the paper's model, or with what stands in for it."""
        if outputs is not None and (outputs / self.inferred).is_dir():
            found = read_inferred(outputs, self.inferred, self.dataset)
            return Experiment(found), _words_for(found)
        return experiment(self.stand_in), self.words


def _words_for(outputs: Outputs) -> str:
    rows = len(outputs.y)
    return (
        f"The paper's model, {rows:,} rows from `calibrant infer`: the same up to the "
        "order of the rows, which decides who is in the calibration fifth."
    )


_LITE = "imagenet5k_efficientnet_lite0"
_LITE_WORDS = (
    "Same data set, but 5,000 of its 50,000 images (1,000 to calibrate on, one for each "
    "class, where the paper has ten), and another, smaller network. HB and IR are set "
    "up as in netcal, which gives classes without a calibration row probability 0: with "
    "one row for each class that costs them 30 points of accuracy."
)
_OTHER_NETWORK = (
    "Same data set and number of rows, another network, of which only the confidence "
    "was recorded."
)

TABLES = (
    PaperTable(
        1,
        "mrr",
        "ViT-B/16",
        "ImageNet",
        "vit_base_patch16_224.augreg2_in21k_ft_in1k",
        _LITE,
        _LITE_WORDS,
    ),
    PaperTable(
        2,
        "mrr2",
        "ResNet-50",
        "ImageNet",
        "resnet50.a1_in1k",
        _LITE,
        _LITE_WORDS,
        "timm_resnext50_32x4d",
        _OTHER_NETWORK,
    ),
    PaperTable(
        3,
        "mrr3",
        "EfficientNet-B3",
        "ImageNet",
        "efficientnet_b3.ra2_in1k",
        _LITE,
        _LITE_WORDS,
        "timm_efficientnet_b3a",
        "Same data set, number of rows and weights (timm's checkpoint of 2020), but "
        "images of 320 pixels where today's default, and so likely the paper, is 288: "
        "more accurate and more under-confident. Only the confidence was recorded.",
    ),
    PaperTable(
        4,
        "mrr4",
        "ConvNeXt-T",
        "ImageNet",
        "convnext_tiny.in12k_ft_in1k",
        _LITE,
        _LITE_WORDS,
        "timm_gluon_senet154",
        _OTHER_NETWORK,
    ),
    PaperTable(
        5,
        "cifar10",
        "ResNet-32",
        "CIFAR-10",
        "cifar10_resnet32",
        "cifar10_akamaster_resnet32",
        "Same data set, rows and architecture, trained by someone else: 0.8 points less "
        "accurate and more over-confident.",
    ),
    PaperTable(
        6,
        "cifar100",
        "ResNet-32",
        "CIFAR-100",
        "cifar100_resnet32",
        "cifar100_netcal_densenet_bc_100",
        "Same data set and number of rows, a larger network (DenseNet-BC-100).",
    ),
)


def numbers(key: str) -> dict[str, dict[str, float]]:
    """The paper's numbers (x100) of one table, by method and metric."""
    with _NUMBERS.open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["table"] == key]
    return {
        BASELINE if row["method"] == "baseline" else row["method"]: {
            metric: float(row[metric]) for metric in METRICS
        }
        for row in rows
    }

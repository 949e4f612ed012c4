"""Which models there are: recorded outputs, and those that `calibrant infer` wrote."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant import files

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("CALIBRANT_DATA", ROOT.parent / "shared" / "data"))

Kind = Literal["logits", "probs", "confidence"]
Arrays = Mapping[str, NDArray[Any]]


@dataclass(frozen=True, slots=True, eq=False)
class Outputs:
    """What one model said of the rows of one data set.

    `y` holds labels; for the kind ``"confidence"``, of which only the predicted class was
    recorded, whether the prediction was right.
    """

    name: str
    title: str
    dataset: str
    kind: Kind
    scores: NDArray[Any]
    y: NDArray[Any]


@dataclass(frozen=True, slots=True)
class Model:
    """A model whose outputs are in the data folder, and how to read them."""

    title: str
    dataset: str
    file: str
    read: Callable[[Arrays], tuple[Kind, Any, Any]]


# -- layouts of files ----------------------------------------------------------------


def _matrix(arrays: Arrays) -> tuple[Kind, Any, Any]:
    """Logits or probabilities of every class."""
    kind: Kind = "logits" if "logits" in arrays else "probs"
    return kind, _wide(arrays[kind]), arrays["labels"].astype(int)


def _wide(scores: NDArray[Any]) -> NDArray[Any]:
    """Numbers stored in half precision, in one to compute with."""
    return scores.astype(np.float32) if scores.dtype == np.float16 else scores


def _humans(arrays: Arrays) -> tuple[Kind, Any, Any]:
    """Votes of people, as shares."""
    counts = arrays["counts"].astype(float)
    return "probs", counts / counts.sum(axis=1, keepdims=True), arrays["labels"]


def _answers(key: str) -> Callable[[Arrays], tuple[Kind, Any, Any]]:
    """Probabilities of one language model among several in a file."""
    return lambda arrays: (
        "probs",
        arrays[f"{key}_probs"],
        arrays[f"{key}_labels"].astype(int),
    )


def _event(arrays: Arrays) -> tuple[Kind, Any, Any]:
    """A forecast of one event: two classes, as the paper's methods want them."""
    return _two_classes(arrays["prob"], arrays["outcome"])


def _flares(forecaster: str) -> Callable[[Arrays], tuple[Kind, Any, Any]]:
    def read(arrays: Arrays) -> tuple[Kind, Any, Any]:
        place = arrays["forecasters"].tolist().index(forecaster)
        return _two_classes(arrays["probs"][:, place], arrays["outcome"])

    return read


def _two_classes(prob: NDArray[Any], outcome: NDArray[Any]) -> tuple[Kind, Any, Any]:
    return "probs", np.column_stack([1 - prob, prob]), outcome.astype(int)


def _top_label(arrays: Arrays) -> tuple[Kind, Any, Any]:
    """Confidence of the predicted class only."""
    return "confidence", arrays["confidence"], arrays["pred"] == arrays["labels"]


def _one_of_many(name: str) -> Callable[[Arrays], tuple[Kind, Any, Any]]:
    def read(arrays: Arrays) -> tuple[Kind, Any, Any]:
        place = arrays["models"].tolist().index(name)
        hit = arrays["pred"][place] == arrays["labels"]
        return "confidence", arrays["confidence"][place], hit

    return read


def _stated(arrays: Arrays) -> tuple[Kind, Any, Any]:
    return "confidence", arrays["stated_confidence"], arrays["correct"].astype(bool)


# -- what is recorded ----------------------------------------------------------------

_CIFAR10 = {
    "akamaster_resnet20": "ResNet-20",
    "akamaster_resnet32": "ResNet-32",
    "netcal_lenet_5": "LeNet-5",
    "netcal_wideresnet_16_4": "WideResNet-16-4",
    "verified_vgg16": "VGG-16",
    "cleanlab_cv": "ResNet-50, cross-validated",
    "peterson_densenet_bc_100_12": "DenseNet-BC-100",
    "peterson_resnet_basic_110": "ResNet-110",
    "peterson_resnet_preact_bottleneck_164": "ResNet-164",
    "peterson_shake_shake_26_2x64d_ssi_cutout16": "Shake-Shake-26",
    "peterson_wrn_28_10": "WideResNet-28-10",
    "peterson_wrn_28_10_humantuned_UNDERCONFIDENT": "WideResNet-28-10, human-tuned",
    "widmann_resnet18": "ResNet-18 (Widmann)",
    "widmann_resnet34": "ResNet-34 (Widmann)",
    "widmann_resnet50": "ResNet-50 (Widmann)",
    "widmann_resnet_orig": "ResNet, original (Widmann)",
    "widmann_vgg16_bn": "VGG-16-BN (Widmann)",
    "widmann_vgg19_bn": "VGG-19-BN (Widmann)",
}
_IMAGENET_TOP_1 = (
    "timm_densenetblur121d",
    "timm_efficientnet_b1",
    "timm_efficientnet_b3a",
    "timm_ese_vovnet19b_dw",
    "timm_gluon_senet154",
    "timm_mixnet_m",
    "timm_mobilenetv3_large_100",
    "timm_resnet34",
    "timm_resnext50_32x4d",
    "timm_tf_inception_v3",
    "torchvision_densenet161",
    "torchvision_inception_v3",
    "torchvision_resnet101",
    "torchvision_resnext101_32x8d",
)
_SCIQ = {
    "gpt4o": "GPT-4o",
    "llama31_70b": "Llama 3.1 70B",
    "llama31_8b": "Llama 3.1 8B",
}


def _recorded() -> dict[str, Model]:
    lite, top_1 = "imagenet5k_efficientnet_lite0", "imagenet_val_top1_14models"
    found = {lite: Model("EfficientNet-Lite0", "ImageNet, 5,000 images", lite, _matrix)}
    for key, title in _CIFAR10.items():
        found[f"cifar10_{key}"] = Model(title, "CIFAR-10", f"cifar10_{key}", _matrix)
    people = "cifar10h_human_counts"
    found[people] = Model("people", "CIFAR-10", people, _humans)
    for file, title, dataset in (
        ("cifar100_netcal_densenet_bc_100", "DenseNet-BC-100", "CIFAR-100"),
        ("cifar100_netcal_lenet_5", "LeNet-5", "CIFAR-100"),
        ("mnist_cleanlab_cv", "convolutional net, cross-validated", "MNIST"),
        ("imdb_cleanlab_cv", "text model, cross-validated", "IMDB"),
    ):
        found[file] = Model(title, dataset, file, _matrix)
    for key, title in _SCIQ.items():
        for way in ("token", "stated"):
            found[f"sciq_{key}_{way}"] = Model(
                f"{title}, {way}",
                "SciQ",
                "llm_sciq_4class_probs",
                _answers(f"{key}_{way}"),
            )
    for file, title, dataset in (
        ("fivethirtyeight_games", "FiveThirtyEight", "games"),
        ("fivethirtyeight_governors", "FiveThirtyEight", "governors"),
        ("forecast_spf_recession", "professional forecasters", "recessions"),
        ("adult_random_forest", "random forest", "Adult"),
    ):
        found[file] = Model(title, dataset, file, _event)
    for who in ("NOAA", "DAFFS", "SIDC"):
        file = "forecast_solar_flares_C1"
        found[f"flares_{who}"] = Model(who, "solar flares", file, _flares(who))
    for name in _IMAGENET_TOP_1:
        title = name.replace("_", " ", 1)
        found[name] = Model(title, "ImageNet, top-1", top_1, _one_of_many(name))
    for file, title, dataset in (
        ("top1_nncal_resnet110_c10", "ResNet-110 (Kull)", "CIFAR-10, top-1"),
        ("top1_nncal_densenet40_c100", "DenseNet-40 (Kull)", "CIFAR-100, top-1"),
    ):
        found[file] = Model(title, dataset, file, _top_label)
    stated = "llm_stated_confidence"
    found[stated] = Model("11 language models", "stated confidence", stated, _stated)
    return found


RECORDED = _recorded()
"""Models of the data folder by name. Niamey's 92 rows are too few to split."""


def read(name: str) -> Outputs:
    """Outputs of a recorded model."""
    if not DATA.is_dir():
        raise FileNotFoundError(
            f"no folder of recorded outputs at {DATA}; set CALIBRANT_DATA to where it is."
        )
    model = RECORDED[name]
    with np.load(DATA / f"{model.file}.npz", allow_pickle=False) as file:
        kind, scores, y = model.read(file)
    return Outputs(name, model.title, model.dataset, kind, scores, y)


def read_inferred(folder: Path, name: str, dataset: str) -> Outputs:
    """Outputs that `calibrant infer` wrote into `folder`/`name`."""
    found = files.read(folder / name)
    return Outputs(name, name, dataset, found.kind, _wide(found.scores), found.y)

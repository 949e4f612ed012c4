"""The CIFAR residual networks of He et al. (2016), and where trained ones are.

Weights are those of github.com/chenyaofo/pytorch-cifar-models, which the paper uses. Its
own loader would run code from the network; here only tensors come from there, and their
digest is checked.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

import numpy as np

from acumen.vision.packages import downloading, needed

RELEASE = "https://github.com/chenyaofo/pytorch-cifar-models/releases/download/resnet"
DIGESTS = {
    "cifar10_resnet20": "4118986f",
    "cifar10_resnet32": "ef93fc4d",
    "cifar10_resnet44": "2a3cabcb",
    "cifar10_resnet56": "187c023a",
    "cifar100_resnet20": "23dac2f1",
    "cifar100_resnet32": "84213ce6",
    "cifar100_resnet44": "ffe32858",
    "cifar100_resnet56": "f2eff4c8",
}
"""Names of the networks, and how the SHA-256 digests of their weights begin."""

MEAN_STD = {
    10: ((0.4914, 0.4822, 0.4465), (0.2023, 0.1994, 0.2010)),
    100: ((0.5070, 0.4865, 0.4409), (0.2673, 0.2564, 0.2761)),
}
"""Of the pixels in training, by the number of classes."""

WIDTHS = (16, 32, 64)


def resnet(name: str) -> Any:
    """An untrained network by its name, such as ``cifar10_resnet32``."""
    classes, depth = map(int, re.findall(r"\d+", name))
    torch = needed("torch")
    block, nn = _block(), torch.nn
    layers: dict[str, Any] = {"conv1": _conv(3, WIDTHS[0]), "bn1": _norm(WIDTHS[0])}
    layers["relu"] = nn.ReLU()
    before = WIDTHS[0]
    for number, width in enumerate(WIDTHS, start=1):
        first = block(before, width, 1 if number == 1 else 2)
        rest = [block(width, width, 1) for _ in range((depth - 2) // 6 - 1)]
        layers[f"layer{number}"] = nn.Sequential(first, *rest)
        before = width
    layers["avgpool"], layers["flatten"] = nn.AdaptiveAvgPool2d(1), nn.Flatten()
    layers["fc"] = nn.Linear(before, classes)
    network = nn.Sequential()
    for key, layer in layers.items():
        network.add_module(key, layer)
    return network


@cache  # a class needs torch.nn.Module, which is loaded when first used
def _block() -> Any:
    torch = needed("torch")

    class Block(torch.nn.Module):  # type: ignore[misc, name-defined]
        """Two convolutions, and a way round them."""

        def __init__(self, before: int, width: int, stride: int) -> None:
            super().__init__()
            self.conv1, self.bn1 = _conv(before, width, stride), _norm(width)
            self.conv2, self.bn2 = _conv(width, width), _norm(width)
            self.downsample = torch.nn.Sequential()
            if before != width:
                narrow = torch.nn.Conv2d(before, width, 1, stride, bias=False)
                self.downsample = torch.nn.Sequential(narrow, _norm(width))

        def forward(self, x: Any) -> Any:
            inner = torch.relu(self.bn1(self.conv1(x)))
            return torch.relu(self.bn2(self.conv2(inner)) + self.downsample(x))

    return Block


def _conv(before: int, width: int, stride: int = 1) -> Any:
    return needed("torch").nn.Conv2d(before, width, 3, stride, padding=1, bias=False)


def _norm(width: int) -> Any:
    return needed("torch").nn.BatchNorm2d(width)


def download(name: str) -> Any:
    """Published weights, kept by PyTorch for the next time."""
    with downloading(
        f"the weights of {name}",
        f"fetch {RELEASE}/{name}-{DIGESTS[name]}.pt elsewhere and pass --checkpoint.",
    ):
        return needed("torch").hub.load_state_dict_from_url(
            f"{RELEASE}/{name}-{DIGESTS[name]}.pt",
            map_location="cpu",
            progress=False,
            check_hash=True,
            weights_only=True,
        )


def prepare(classes: int) -> Any:
    """From a picture of 32 x 32 to what the network was trained on."""
    torch = needed("torch")
    mean, std = (np.array(values, np.float32) for values in MEAN_STD[classes])

    def tensor(image: Any) -> Any:
        if image.size != (32, 32):
            raise ValueError(
                f"images must be 32 x 32 for a CIFAR network, got {image.size}."
            )
        scaled = (np.asarray(image, np.float32) / 255 - mean) / std
        return torch.from_numpy(np.ascontiguousarray(scaled.transpose(2, 0, 1)))

    return tensor

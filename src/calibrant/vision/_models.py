"""Networks ready to run: weights, the preparation of images, and a device."""

from __future__ import annotations

import difflib
import hashlib
import pickle
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.files._sources import FileError, quoted, reading
from calibrant.vision._images import downloading, needed

SUFFIXES = (".pt", ".pth", ".bin", ".safetensors")
HELD_IN = ("state_dict", "model_state_dict", "model")
PREFIXES = ("module.", "_orig_mod.")


def read_weights(path: Path) -> dict[str, Any]:
    """The tensors of a checkpoint by name; nothing else in it is ever built."""
    if path.suffix.lower() not in SUFFIXES:
        raise FileError(path, f"must end in {', '.join(SUFFIXES)} to be weights.")
    found = _tensors_only(path)
    holders = found if isinstance(found, Mapping) else {}
    held = (holders[key] for key in HELD_IN if isinstance(holders.get(key), Mapping))
    state = next(held, found)
    values = state.values() if isinstance(state, Mapping) else [None]
    if not all(isinstance(value, needed("torch").Tensor) for value in values):
        raise FileError(path, "must hold the tensors of model.state_dict() by name.")
    for prefix in PREFIXES:  # what data-parallel training and compilation put before
        if state and all(name.startswith(prefix) for name in state):
            state = {name.removeprefix(prefix): value for name, value in state.items()}
    return dict(state)


def _tensors_only(path: Path) -> Any:
    with reading(path):
        if path.suffix.lower() == ".safetensors":
            return needed("safetensors.torch").load_file(path)
        try:
            return needed("torch").load(path, map_location="cpu", weights_only=True)
        except pickle.UnpicklingError as error:
            raise FileError(
                path,
                "holds more than tensors, or is damaged; only tensors are read. Save them "
                "with torch.save(model.state_dict(), path), or as .safetensors.",
            ) from error


def put_weights(network: Any, state: Mapping[str, Any], path: Path) -> None:
    """Load the tensors into a network that has exactly these."""
    wanted = network.state_dict()
    if missing := [name for name in wanted if name not in state]:
        raise FileError(path, f"lacks weights of the model: {quoted(missing, 3)}.")
    if unknown := [name for name in state if name not in wanted]:
        raise FileError(path, f"has weights the model lacks: {quoted(unknown, 3)}.")
    for name, tensor in wanted.items():
        given, asked = tuple(state[name].shape), tuple(tensor.shape)
        if given != asked:
            problem = f"{name!r} has the shape {given}, but the model's is {asked}."
            raise FileError(path, problem)
    network.load_state_dict(state)


def weights_digest(network: Any) -> str:
    """SHA-256 of all weights, wherever they came from."""
    digest = hashlib.sha256()
    uint8 = needed("torch").uint8
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}\n".encode())
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        digest.update(flat.view(uint8).numpy().tobytes())
    return digest.hexdigest()


# Weights of the CIFAR residual networks of He et al. (2016) are those of
# github.com/chenyaofo/pytorch-cifar-models, which the paper uses. Its own loader would run
# code from the network; here only tensors come from there, and their digest is checked.

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
    block, nn = _block(), needed("torch").nn
    before = WIDTHS[0]
    layers = {"conv1": _conv(3, before), "bn1": _norm(before), "relu": nn.ReLU()}
    for number, width in enumerate(WIDTHS, start=1):
        first = block(before, width, 1 if number == 1 else 2)
        rest = [block(width, width, 1) for _ in range((depth - 2) // 6 - 1)]
        layers[f"layer{number}"] = nn.Sequential(first, *rest)
        before = width
    layers |= {"avgpool": nn.AdaptiveAvgPool2d(1), "flatten": nn.Flatten()}
    layers["fc"] = nn.Linear(before, classes)
    return nn.Sequential(OrderedDict(layers))


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
    url, hub = f"{RELEASE}/{name}-{DIGESTS[name]}.pt", needed("torch").hub
    how = {"map_location": "cpu", "progress": False, "check_hash": True}
    way_out = f"fetch {url} elsewhere and pass --checkpoint."
    with downloading(f"the weights of {name}", way_out):
        return hub.load_state_dict_from_url(url, **how, weights_only=True)


def prepare(classes: int) -> Any:
    """From a picture of 32 x 32 to what the network was trained on."""
    torch = needed("torch")
    mean, std = (np.array(values, np.float32) for values in MEAN_STD[classes])

    def tensor(image: Any) -> Any:
        if image.size != (32, 32):
            rule = "images must be 32 x 32 for a CIFAR network"
            raise ValueError(f"{rule}, got {image.size}.")
        scaled = (np.asarray(image, np.float32) / 255 - mean) / std
        return torch.from_numpy(np.ascontiguousarray(scaled.transpose(2, 0, 1)))

    return tensor


INPUTS = ("input_size", "interpolation", "mean", "std", "crop_pct", "crop_mode")


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """A network and how it wants its images.

    Attributes
    ----------
    name : str
        What the manifest calls it.
    network : torch.nn.Module
        From a batch of images to a batch of logits; it is run as it is given, so call
        ``eval()`` first.
    prepare : function
        From a PIL image in RGB to the tensor of one image.
    device : str
        Where the network is.
    facts : mapping
        What else tells its logits from those of others, for the manifest.
    """

    name: str
    network: Any
    prepare: Callable[[Any], Any]
    device: str = "cpu"
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def provenance(self) -> dict[str, str]:
        """Everything that decides the logits of an image."""
        return {
            "model": self.name,
            "weights_sha256": weights_digest(self.network),
            "device": self.device.split(":")[0],
            "torch": needed("torch").__version__,
            **self.facts,
        }


def load_model(
    name: str, *, checkpoint: str | Path | None = None, device: str = "auto"
) -> Model:
    """Load a network by name.

    Parameters
    ----------
    name : str
        Any name of timm's, such as ``"resnet50.a1_in1k"``, or a CIFAR network of the
        paper, such as ``"cifar10_resnet32"``.
    checkpoint : str or Path, optional
        Weights in a local file (``.pt``, ``.pth`` or ``.safetensors``); else published
        ones are downloaded. Only tensors are read.
    device : str
        ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ...; ``"auto"`` takes a GPU if there is one.
    """
    place = _device(device)
    path = None if checkpoint is None else Path(checkpoint)
    make = _cifar_model if name in DIGESTS else _timm_model
    network, prepare, facts = make(name, path)
    return Model(name, network.eval().to(place), prepare, place, facts)


def _device(name: str) -> str:
    torch = needed("torch")
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError) as error:
        reason = str(error).split("\n")[0].rstrip(".")
        raise ValueError(f"device {name!r} cannot be used: {reason}.") from error
    return name


def _cifar_model(name: str, path: Path | None) -> tuple[Any, Any, dict[str, str]]:
    network = resnet(name)
    state = download(name) if path is None else read_weights(path)
    put_weights(network, state, Path(name) if path is None else path)
    return network, prepare(network.fc.out_features), {}


def _timm_model(name: str, path: Path | None) -> tuple[Any, Any, dict[str, str]]:
    library = needed("timm")
    _check_name(library, name)
    if path is None:
        network = _pretrained(library, name)
    else:
        state = read_weights(path)
        network = library.create_model(name, num_classes=_outputs(library, name, state))
        put_weights(network, state, path)
    config = library.data.resolve_data_config({}, model=network)
    facts = {key: str(config[key]) for key in INPUTS if key in config}
    facts["timm"] = library.__version__
    return network, library.data.create_transform(**config), facts


def _check_name(library: Any, name: str) -> None:
    """Refuse a name that timm does not know, with the ones most like it."""
    architecture, _, tag = name.partition(".")
    if not library.is_model(architecture):
        near = difflib.get_close_matches(architecture, library.list_models(), 3)
        hint = f"; near it are {quoted(near)}" if near else ""
        raise ValueError(f"timm has no model named {architecture!r}{hint}.")
    trained = library.list_pretrained(architecture)
    if tag and name not in trained:
        known = [full.partition(".")[2] for full in trained]
        raise ValueError(f"{architecture} has no weights {tag!r}, but {quoted(known)}.")


def _pretrained(library: Any, name: str) -> Any:
    if not library.list_pretrained(name.partition(".")[0]):
        none = f"no trained weights of {name} are published"
        raise ValueError(f"{none}; pass your own (--checkpoint).")
    way_out = "check the network, or fetch them elsewhere and pass --checkpoint."
    with downloading(f"the weights of {name}", way_out):
        return library.create_model(name, pretrained=True)


def _outputs(library: Any, name: str, state: Mapping[str, Any]) -> int | None:
    """How many classes the last layer of a checkpoint has."""
    config = library.get_pretrained_cfg(name, allow_unregistered=True)
    layer = getattr(config, "classifier", None)
    for part in ("weight", "bias"):
        if isinstance(layer, str) and f"{layer}.{part}" in state:
            return int(state[f"{layer}.{part}"].shape[0])
    return None

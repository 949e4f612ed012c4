"""Networks ready to run: weights, the preparation of images, and a device."""

from __future__ import annotations

import difflib
import hashlib
import re
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from pickle import UnpicklingError  # which is all that is taken from there
from typing import Any, TypeAlias

import numpy as np

from calibrant._base.checks import as_path, check_text
from calibrant._base.write import digest_of
from calibrant.files._sources import FileError, quoted, reading
from calibrant.files._tensors import check_torch
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
    torch = needed("torch")
    plain = (isinstance(v, torch.Tensor) and v.layout == torch.strided for v in values)
    if not all(plain):  # what the indices of a sparse tensor point at is not checked
        raise FileError(path, "must hold the tensors of model.state_dict() by name.")
    for prefix in PREFIXES:  # what data-parallel training and compilation put before
        if state and all(name.startswith(prefix) for name in state):
            state = {name.removeprefix(prefix): value for name, value in state.items()}
    return dict(state)


def _tensors_only(path: Path) -> Any:
    with reading(path):
        if path.suffix.lower() == ".safetensors":
            return needed("safetensors.torch").load_file(path)
        torch = needed("torch")
        check_torch(path, torch)
        try:
            return torch.load(path, map_location="cpu", weights_only=True)
        except UnpicklingError as error:
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
# Its authors publish how digests begin (in names of files); public code has the whole ones.

RELEASE = "https://github.com/chenyaofo/pytorch-cifar-models/releases/download/resnet"

DIGESTS = {
    "cifar10_resnet20": "4118986f0df73003d572b0e397f0ac7b3f60af1f31aff3d2da164536e36f6ec8",
    "cifar10_resnet32": "ef93fc4d3ea83c08d75bfd6fc31af56047cfa241608c9ba3a1f6dc11cca20dd9",
    "cifar10_resnet44": "2a3cabcb",
    "cifar10_resnet56": "187c023aee0c9cf3093a682d9447a538cbaf5489f7ae78a7df4edf2246ce380b",
    "cifar100_resnet20": "23dac2f1bc53fd65b9fd0bd30a46f91ab39fa16505430cc7999662237598209d",
    "cifar100_resnet32": "84213ce69c556d1e3b983dc13d154a92d4132113592eae55215a656f62bfb896",
    "cifar100_resnet44": "ffe32858",
    "cifar100_resnet56": "f2eff4c8461ca1e0d39af83a65f7243bf7d29ec421efee3064bcee93a3caaa73",
}
"""Names of the networks, and the SHA-256 digests of their weights, or how they begin."""

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


def download(name: str) -> tuple[Path, str]:
    """The file of published weights and its address; kept where PyTorch keeps its own.

    Its digest is checked each time: a file that has another one is replaced, unopened.
    """
    digest, hub = DIGESTS[name], needed("torch").hub
    url = f"{RELEASE}/{name}-{digest[:8]}.pt"
    way_out = f"fetch {url} elsewhere and pass --checkpoint."
    if len(digest) < 64:
        only = f"of their SHA-256 digest only the beginning is known ({digest})"
        raise ValueError(f"the weights of {name} are not downloaded: {only}; {way_out}")
    kept = Path(hub.get_dir(), "checkpoints", url.rpartition("/")[2])
    if not (kept.is_file() and digest_of(kept) == digest):
        with downloading(f"the weights of {name}", way_out):
            kept.parent.mkdir(parents=True, exist_ok=True)
            kept.unlink(missing_ok=True)
            hub.download_url_to_file(url, str(kept), digest, progress=False)
    return kept, url


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
    source : mapping
        Where the weights came from, and the digest of their file, for the manifest.
    """

    name: str
    network: Any
    prepare: Callable[[Any], Any]
    device: str = "cpu"
    facts: Mapping[str, str] = field(default_factory=dict)
    source: Mapping[str, str] = field(default_factory=dict)

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
        Any name of timm's, such as ``"resnet50.a1_in1k"`` (``"NAME@REVISION"`` pins its
        weights), or a CIFAR network of the paper, such as ``"cifar10_resnet32"``.
    checkpoint : str or Path, optional
        Weights in a local file (``.pt``, ``.pth`` or ``.safetensors``); else published
        ones are downloaded. Only tensors are read.
    device : str
        ``"cpu"``, ``"cuda"``, ``"cuda:1"``, ...; ``"auto"`` takes a GPU if there is one.
    """
    check_text(name, "name")
    check_text(device, "device")
    path = None if checkpoint is None else as_path(checkpoint, "checkpoint")
    place = _device(device)
    name, _, revision = name.partition("@")
    if revision and (path or name in DIGESTS):
        raise ValueError(f"{name} has no revisions here; leave out @{revision}.")
    if name in DIGESTS:
        network, prepare, facts, source = _cifar_model(name, path)
    else:
        network, prepare, facts, source = _timm_model(name, path, revision)
    return Model(name, network.eval().to(place), prepare, place, facts, source)


def _device(name: str) -> str:
    torch = needed("torch")
    if name == "auto":
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(1, device=name)
    except (RuntimeError, AssertionError, ValueError) as error:
        reason = str(error).split("\n")[0].rstrip(".")
        raise ValueError(f"device {name!r} cannot be used: {reason}.") from error
    return name


Facts: TypeAlias = dict[str, str]


def _cifar_model(name: str, path: Path | None) -> tuple[Any, Any, Facts, Facts]:
    network = resnet(name)
    file, url = download(name) if path is None else (path, path.name)
    put_weights(network, read_weights(file), file)
    return network, prepare(network.fc.out_features), {}, _source(file, url)


def _source(file: Path, where: str) -> Facts:
    return {"weights_file": where, "weights_file_sha256": digest_of(file)}


def _timm_model(
    name: str, path: Path | None, revision: str
) -> tuple[Any, Any, Facts, Facts]:
    library = needed("timm")
    _check_name(library, name)
    if path is None:
        file, source = published(library, name, revision)
        here = {"file": str(file), "custom_load": False}
        with reading(file):
            network = library.create_model(
                name, pretrained=True, pretrained_cfg_overlay=here
            )
    else:
        state, source = read_weights(path), _source(path, path.name)
        network = library.create_model(name, num_classes=_outputs(library, name, state))
        put_weights(network, state, path)
    config = library.data.resolve_data_config({}, model=network)
    facts = {key: str(config[key]) for key in INPUTS if key in config}
    facts["timm"] = library.__version__
    return network, library.data.create_transform(**config), facts, source


def _check_name(library: Any, name: str) -> None:
    """Refuse a name that timm does not know, with the ones most like it."""
    architecture, _, tag = name.partition(".")
    if not library.is_model(architecture):
        near = difflib.get_close_matches(architecture, library.list_models(), 3)
        hint = f"; near it are {quoted(near)}" if near else ""
        raise ValueError(
            f"name must be that of a model; timm has no model named {architecture!r}{hint}."
        )
    trained = library.list_pretrained(architecture)
    if tag and name not in trained:
        known = [full.partition(".")[2] for full in trained]
        raise ValueError(f"{architecture} has no weights {tag!r}, but {quoted(known)}.")


PUBLISHED = "model.safetensors"


def published(library: Any, name: str, revision: str) -> tuple[Path, Facts]:
    """The file of weights of a name of timm's, and which commit of the hub it is of."""
    if not library.list_pretrained(name.partition(".")[0]):
        none = f"no trained weights of {name} are published"
        raise ValueError(f"{none}; pass your own (--checkpoint).")
    known, what = library.get_pretrained_cfg(name), f"the weights of {name}"
    if not known.hf_hub_id:
        rule = "are not on the Hugging Face hub, which tells their digest"
        way_out = f"fetch {known.url} elsewhere and pass --checkpoint."
        raise ValueError(f"{what} {rule}; {way_out}")
    fetch = needed("huggingface_hub").hf_hub_download
    way_out = "check the network, or fetch them elsewhere and pass --checkpoint."
    with downloading(what, way_out):
        file = Path(fetch(known.hf_hub_id, PUBLISHED, revision=revision or None))
    source = {
        "weights_repository": known.hf_hub_id,
        "weights_revision": file.parent.name,
    }
    return file, source | _source(_as_named(file, what), PUBLISHED)


def _as_named(file: Path, what: str) -> Path:
    """The file, if it has the digest by which the hub and its cache name its content."""
    content = file.resolve()
    named, found = content.name, digest_of(file)
    if re.fullmatch("[0-9a-f]{64}", named) and named != found:
        file.unlink()
        content.unlink(missing_ok=True)
        differ = f"have the SHA-256 digest {found}, not {named}"
        raise OSError(f"{what} {differ}, and were deleted; run the command again.")
    return file


def _outputs(library: Any, name: str, state: Mapping[str, Any]) -> int | None:
    """How many classes the last layer of a checkpoint has."""
    config = library.get_pretrained_cfg(name, allow_unregistered=True)
    layer = getattr(config, "classifier", None)
    for part in ("weight", "bias"):
        if isinstance(layer, str) and f"{layer}.{part}" in state:
            return int(state[f"{layer}.{part}"].shape[0])
    return None

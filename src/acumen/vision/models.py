"""Networks ready to run: weights, the preparation of images, and a device."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from acumen.files.errors import quoted
from acumen.vision import resnets
from acumen.vision.checkpoints import put_weights, read_weights, weights_digest
from acumen.vision.packages import downloading, needed, timm

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
    make = _cifar_model if name in resnets.DIGESTS else _timm_model
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
    network = resnets.resnet(name)
    state = resnets.download(name) if path is None else read_weights(path)
    put_weights(network, state, Path(name) if path is None else path)
    return network, resnets.prepare(network.fc.out_features), {}


def _timm_model(name: str, path: Path | None) -> tuple[Any, Any, dict[str, str]]:
    library = timm()
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
    if tag and name not in library.list_pretrained(architecture):
        known = [
            full.partition(".")[2] for full in library.list_pretrained(architecture)
        ]
        raise ValueError(f"{architecture} has no weights {tag!r}, but {quoted(known)}.")


def _pretrained(library: Any, name: str) -> Any:
    if not library.list_pretrained(name.partition(".")[0]):
        raise ValueError(
            f"no trained weights of {name} are published; pass your own (--checkpoint)."
        )
    with downloading(
        f"the weights of {name}",
        "check the network, or fetch them elsewhere and pass --checkpoint.",
    ):
        return library.create_model(name, pretrained=True)


def _outputs(library: Any, name: str, state: Mapping[str, Any]) -> int | None:
    """How many classes the last layer of a checkpoint has."""
    config = library.get_pretrained_cfg(name, allow_unregistered=True)
    layer = getattr(config, "classifier", None)
    for part in ("weight", "bias"):
        if isinstance(layer, str) and f"{layer}.{part}" in state:
            return int(state[f"{layer}.{part}"].shape[0])
    return None

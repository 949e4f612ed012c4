"""Weights in local files: tensors only, and every one of them in its place."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from acumen.files.errors import FileError, quoted, reading
from acumen.vision.packages import needed

SUFFIXES = (".pt", ".pth", ".bin", ".safetensors")
HELD_IN = ("state_dict", "model_state_dict", "model")
PREFIXES = ("module.", "_orig_mod.")


def read_weights(path: Path) -> dict[str, Any]:
    """The tensors of a checkpoint by name; nothing else in it is ever built."""
    if path.suffix.lower() not in SUFFIXES:
        raise FileError(path, f"must end in {', '.join(SUFFIXES)} to be weights.")
    with reading(path):
        if path.suffix.lower() == ".safetensors":
            found: Any = needed("safetensors.torch").load_file(path)
        else:
            found = _tensors_only(path)
    state = next((found[key] for key in HELD_IN if _is_dict(found, key)), found)
    tensor = needed("torch").Tensor
    if not isinstance(state, Mapping) or not all(
        isinstance(value, tensor) for value in state.values()
    ):
        raise FileError(path, "must hold the tensors of model.state_dict() by name.")
    return _without_prefixes(dict(state))


def _tensors_only(path: Path) -> Any:
    try:
        return needed("torch").load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        raise FileError(
            path,
            "holds more than tensors, or is damaged; only tensors are read. Save them "
            "with torch.save(model.state_dict(), path), or as .safetensors.",
        ) from error


def _is_dict(found: Any, key: str) -> bool:
    return isinstance(found, Mapping) and isinstance(found.get(key), Mapping)


def _without_prefixes(state: dict[str, Any]) -> dict[str, Any]:
    """Names without what data-parallel training and compilation put before them."""
    for prefix in PREFIXES:
        if state and all(name.startswith(prefix) for name in state):
            state = {name.removeprefix(prefix): value for name, value in state.items()}
    return state


def put_weights(network: Any, state: Mapping[str, Any], path: Path) -> None:
    """Load the tensors into a network that has exactly these."""
    wanted = network.state_dict()
    if missing := [name for name in wanted if name not in state]:
        raise FileError(path, f"lacks weights of the model: {quoted(missing, 3)}.")
    if unknown := [name for name in state if name not in wanted]:
        raise FileError(path, f"has weights the model lacks: {quoted(unknown, 3)}.")
    for name, tensor in wanted.items():
        if state[name].shape != tensor.shape:
            raise FileError(
                path,
                f"{name!r} has the shape {tuple(state[name].shape)}, but the model's "
                f"is {tuple(tensor.shape)}.",
            )
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

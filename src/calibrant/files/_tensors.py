"""Tensors: .safetensors and .pt by their own libraries, which build nothing else."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.files import _sources as sources
from calibrant.files._sources import Entry, FileError, Source

DTYPES = {"BOOL": "bool", "BF16": "bfloat16"} | {
    f"{letter}{bits}": f"{kind}{bits}"
    for letter, kind in (("F", "float"), ("I", "int"), ("U", "uint"))
    for bits in (8, 16, 32, 64)
    if (letter, bits) != ("F", 8)
}


def open_safetensors(path: Path) -> Source:
    """Read the header of named tensors, which are then mapped into memory."""
    with _safetensors(path) as file:
        entries = [_entry(path, name, file.get_slice(name)) for name in file.keys()]  # noqa: SIM118

    def pieces(name: str, rows: int) -> Iterator[NDArray[Any]]:
        (entry,) = (entry for entry in entries if entry.name == name)
        with _safetensors(path) as file:
            whole = _bfloat16(path, entry) if entry.dtype == "bfloat16" else None
            array = file.get_slice(name) if whole is None else whole
            for part in sources.ranges(entry.shape[0] or 0, rows):
                piece = array[part]  # any byte but 0 is true, and only 1 a valid bool
                yield piece.view(np.uint8) != 0 if piece.dtype == bool else piece

    return sources.source_of_arrays(path, "safetensors", entries, pieces)


@contextmanager
def _safetensors(path: Path) -> Iterator[Any]:
    way_out = "pip install 'calibrant[tensors]'; or save it as .npz"
    library = sources.optional(path, "safetensors", way_out)
    with sources.reading(path), library.safe_open(path, framework="np") as file:
        yield file


def _entry(path: Path, name: str, found: Any) -> Entry:
    stored = found.get_dtype()
    if stored not in DTYPES:
        shown = sources.shorten(name)
        raise FileError(path, f"{shown!r} has the type {stored!r}; use F32.")
    return Entry(name, DTYPES[stored], tuple(found.get_shape()))


def _bfloat16(path: Path, entry: Entry) -> NDArray[Any]:
    """A bfloat16, which NumPy lacks, is the upper half of a float32."""
    library = sources.optional(path, "safetensors", "pip install safetensors")
    found = dict(library.deserialize(path.read_bytes()))[entry.name]
    bits = np.frombuffer(found["data"], "<u2").astype(np.uint32)
    return (bits << 16).view(np.float32).reshape(found["shape"])


def open_pt(path: Path) -> Source:
    """Load tensors with PyTorch, which is told to build nothing but tensors."""
    way_out = "pip install torch; or save the tensors as .safetensors or .npz"
    torch = sources.optional(path, "torch", way_out)
    check_torch(path, torch)
    with sources.reading(path):
        loaded = torch.load(path, map_location="cpu", weights_only=True)
        if not isinstance(loaded, dict):
            raise FileError(
                path,
                f"holds a {type(loaded).__name__}, not a dict of named tensors: "
                "torch.save({'logits': ..., 'labels': ...}, path).",
            )
        arrays = {
            str(name): _to_numpy(torch, path, str(name), value)
            for name, value in loaded.items()
            if isinstance(value, torch.Tensor)
        }
    entries = (
        Entry(name, array.dtype.name, array.shape, sources.kind_of(array.dtype))
        for name, array in arrays.items()
    )

    def pieces(name: str, rows: int) -> Iterator[NDArray[Any]]:
        return (arrays[name][part] for part in sources.ranges(len(arrays[name]), rows))

    return sources.source_of_arrays(path, "pt", entries, pieces)


SAFE_TORCH = "2.10"
"""Before it a crafted file runs code in spite of `weights_only`: CVE-2026-24747."""


def check_torch(path: Path, torch: Any) -> None:
    """Refuse a file that a PyTorch as old as this one cannot open safely."""
    version = torch.torch_version.TorchVersion(torch.__version__)
    if version < SAFE_TORCH:
        raise FileError(
            path,
            f"is not opened by PyTorch {version}, in which a crafted file can run code; "
            f"install {SAFE_TORCH} or later (pip install 'torch>={SAFE_TORCH}'), or save "
            "the tensors as .safetensors or .npz.",
        )


def _to_numpy(torch: Any, path: Path, name: str, tensor: Any) -> NDArray[Any]:
    shown = repr(sources.shorten(name))
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_complex():
        raise FileError(path, f"{shown} is not a plain tensor of numbers.")
    # A view may claim a billion rows of a storage of one.
    if tensor.nbytes > tensor.untyped_storage().nbytes():
        raise FileError(path, f"{shown} is larger than what is stored.")
    tensor = tensor.detach()
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()

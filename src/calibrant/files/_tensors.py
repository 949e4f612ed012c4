"""Tensors: .safetensors and .pt, checked by their own libraries, which build nothing else."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._base.records import RecordError, read_json
from calibrant.files import _sources as sources
from calibrant.files._numpy import Stored, check_stored, source_of_stored
from calibrant.files._sources import Entry, FileError, Held, Place, Source

DTYPES = {"BOOL": "bool", "BF16": "<u2"} | {
    f"{letter.upper()}{8 * size}": f"<{letter}{size}"
    for letter in "fiu"
    for size in (1, 2, 4, 8)
    if (letter, size) != ("f", 1)
}


def open_safetensors(held: Held) -> Source:
    """Read the header of named tensors: their own library checks it, and their places.

    It maps files into memory, where bytes may change, and vanish, under the reader; so
    tensors are read from the file.
    """
    path = held.path
    way_out = "pip install 'calibrant[tensors]'; or save it as .npz"
    library = sources.optional(path, "safetensors", way_out)
    with sources.reading(path):
        with library.safe_open(path, framework="np"):
            held.check(by_path=True)
        start = 8 + int.from_bytes(Place(held).read(8), "little")
        header = _header(path, Place(held, 8).read(start - 8))
        header.pop("__metadata__", None)
        arrays = [_stored(held, start, name, said) for name, said in header.items()]
    return source_of_stored(path, "safetensors", arrays)


def _header(path: Path, text: bytes) -> dict[str, Any]:
    """What the header says; of a name that is there twice it would say only the last."""
    try:
        found: dict[str, Any] = read_json(text)
    except RecordError as error:
        raise FileError(path, f"{error.said}.") from None
    return found


def _stored(held: Held, start: int, name: str, said: dict[str, Any]) -> Stored:
    if said["dtype"] not in DTYPES:
        shown, stored = sources.shorten(name), said["dtype"]
        raise FileError(held.path, f"{shown!r} has the type {stored!r}; use F32.")
    dtype, (first, last) = np.dtype(DTYPES[said["dtype"]]), said["data_offsets"]
    opener = partial(Place, held, start + first)
    bits = said["dtype"] == "BF16"
    found = Stored(
        held.path,
        name,
        dtype,
        tuple(said["shape"]),
        fortran=False,
        start=0,
        open=opener,
        is_bfloat16=bits,
    )
    check_stored(found, last - first)
    return found


def open_pt(held: Held) -> Source:
    """Load tensors with PyTorch, which is told to build nothing but tensors."""
    path = held.path
    way_out = (
        "pip install 'calibrant[torch]'; or save the tensors as .safetensors or .npz"
    )
    torch = sources.optional(path, "torch", way_out)
    check_torch(path, torch)
    with sources.reading(path):
        if zipfile.is_zipfile(held):
            with zipfile.ZipFile(held) as archive:
                size = sum(member.file_size for member in archive.infolist())
            sources.check_expansion(path, "it", size, held.size)
        file = io.BufferedReader(Place(held))
        loaded = torch.load(file, map_location="cpu", weights_only=True)
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

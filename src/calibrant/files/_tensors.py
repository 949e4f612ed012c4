"""Tensors: .safetensors by its plain format, .pt by PyTorch with weights only."""

from __future__ import annotations

import importlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.files._numpy import Stored, check_stored, same_rows, source_of
from calibrant.files._sources import (
    Block,
    Entry,
    FileError,
    Request,
    Source,
    kind_of,
    reading,
    shorten,
)

DTYPES = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "BF16": "<u2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "|i1",
    "U64": "<u8",
    "U32": "<u4",
    "U16": "<u2",
    "U8": "|u1",
    "BOOL": "|b1",
}

LONGEST_HEADER = 100_000_000


def open_safetensors(path: Path) -> Source:
    """Read the header: eight bytes of length, then JSON, then the bytes of all arrays."""
    size = path.stat().st_size
    with reading(path), path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if size < 8 or length > min(size - 8, LONGEST_HEADER):
            raise FileError(path, "is not a safetensors file, or was cut short.")
        header = json.loads(file.read(length), object_pairs_hook=_without_twins)
        if not isinstance(header, dict):
            raise FileError(path, "has a header that is not a JSON object.")
        header.pop("__metadata__", None)
        start = 8 + length
        arrays = [_tensor(path, name, said, start) for name, said in header.items()]
    return source_of(path, "safetensors", arrays)


def _without_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(dict(pairs)) < len(pairs):
        raise ValueError("a name occurs twice in the header")
    return dict(pairs)


def _tensor(path: Path, name: str, said: Any, start: int) -> Stored:
    dtype, shape, (first, last) = said["dtype"], said["shape"], said["data_offsets"]
    if dtype not in DTYPES:
        raise FileError(path, f"{shorten(name)!r} has the type {dtype!r}; use F32.")
    if not all(type(x) is int and x >= 0 for x in (*shape, first, last)):
        raise FileError(path, f"{shorten(name)!r} has the impossible shape {shape}.")
    if start + last > path.stat().st_size:
        raise FileError(path, f"{shorten(name)!r} lies beyond the end of the file.")

    def opener() -> IO[bytes]:
        file = path.open("rb")
        file.seek(start + first)
        return file

    finish = _from_bfloat16 if dtype == "BF16" else None
    stored = Stored(
        path,
        name,
        np.dtype(DTYPES[dtype]),
        tuple(shape),
        fortran=False,
        open=opener,
        finish=finish,
    )
    return check_stored(stored, last - first)


def _from_bfloat16(bits: NDArray[Any]) -> NDArray[Any]:
    """A bfloat16 is the upper half of a float32."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


def open_pt(path: Path) -> Source:
    """Load tensors with PyTorch, which is told to build nothing but tensors."""
    try:
        torch = importlib.import_module("torch")
    except ImportError as error:
        raise FileError(
            path,
            "needs PyTorch to be read (pip install torch); or save the tensors as "
            ".safetensors or .npz.",
        ) from error
    with reading(path):
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
    return _in_memory(path, arrays)


def _to_numpy(torch: Any, path: Path, name: str, tensor: Any) -> NDArray[Any]:
    if tensor.layout != torch.strided or tensor.is_quantized or tensor.is_complex():
        raise FileError(path, f"{shorten(name)!r} is not a plain tensor of numbers.")
    # A view may claim a billion rows of a storage of one.
    claimed = math.prod(tensor.shape) * tensor.element_size()
    if claimed > tensor.untyped_storage().nbytes():
        raise FileError(path, f"{shorten(name)!r} is larger than what is stored.")
    tensor = tensor.detach()
    return (tensor.float() if tensor.dtype == torch.bfloat16 else tensor).numpy()


def _in_memory(path: Path, arrays: dict[str, NDArray[Any]]) -> Source:
    entries = [
        Entry(name, array.dtype.name, array.shape, kind_of(array.dtype))
        for name, array in arrays.items()
    ]

    def blocks(request: Request) -> Iterator[Block]:
        names, rows = request.names, request.rows
        same_rows(path, [entry for entry in entries if entry.name in names])
        for start in range(0, len(arrays[names[0]]), rows):
            part = slice(start, start + rows)
            yield {name: arrays[name][part] for name in names}

    return Source(path, "pt", None, tuple(entries), blocks, is_table=False)

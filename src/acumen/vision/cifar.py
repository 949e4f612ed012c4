"""CIFAR-10 and CIFAR-100 as their authors publish them, in the binary version."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acumen.files.errors import FileError, reading
from acumen.vision.images import Images, Item, fingerprint

SIDE = 32
PIXELS = 3 * SIDE * SIDE
PICKLES = ("data_batch_1", "test_batch", "batches.meta", "meta")


@dataclass(frozen=True, slots=True)
class Version:
    """One of the two sets: a record is some bytes of labels, then red, green, blue."""

    name: str
    classes: int
    label_bytes: int  # the last of them is the class
    splits: dict[str, tuple[str, ...]]


VERSIONS = (
    Version(
        "CIFAR-10",
        classes=10,
        label_bytes=1,
        splits={
            "test": ("test_batch.bin",),
            "train": tuple(f"data_batch_{number}.bin" for number in range(1, 6)),
        },
    ),
    Version(
        "CIFAR-100",
        classes=100,
        label_bytes=2,
        splits={"test": ("test.bin",), "train": ("train.bin",)},
    ),
)


def version_of(folder: Path) -> Version | None:
    """Which of the two a folder holds, or None; the pickled version is refused."""
    for version in VERSIONS:
        if any((folder / f).is_file() for s in version.splits.values() for f in s):
            return version
    if any((folder / name).is_file() for name in PICKLES):
        raise FileError(
            folder,
            "holds the pickled version of CIFAR, and pickles are never opened, for "
            "reading one can run any code; download the binary version (files ending "
            "in .bin).",
        )
    return None


def open_cifar(folder: Path, version: Version, split: str) -> Images:
    """The images of a split, in the order of the files."""
    if split not in version.splits:
        raise ValueError(
            f"split must be {' or '.join(map(repr, version.splits))} for "
            f"{version.name}, got {split!r}."
        )
    paths = [folder / name for name in version.splits[split]]
    records = [_records(path, version) for path in paths]

    def items() -> Iterator[Item]:
        for path, rows in zip(paths, records, strict=True):
            for number, row in enumerate(rows):
                label = int(row[version.label_bytes - 1])
                yield Item(f"{path.name}:{number}", label, _pixels(row))

    digests = (hashlib.sha256(rows.tobytes()).hexdigest() for rows in records)
    count = sum(map(len, records))
    return Images(f"{version.name} {split}", items, fingerprint(digests), count)


def _records(path: Path, version: Version) -> NDArray[np.uint8]:
    with reading(path):
        content = np.fromfile(path, np.uint8)
    length = version.label_bytes + PIXELS
    if not content.size or content.size % length:
        raise FileError(
            path,
            f"must be records of {length} bytes; its size is {content.size}: it is "
            "damaged or cut short.",
        )
    records = content.reshape(-1, length)
    labels = records[:, version.label_bytes - 1]
    row = int(labels.argmax())
    if labels[row] >= version.classes:
        raise FileError(
            path,
            f"record {row} has the class {labels[row]}, but {version.name} has "
            f"{version.classes}.",
        )
    return records


def _pixels(record: NDArray[np.uint8]) -> NDArray[Any]:
    planes = record[-PIXELS:].reshape(3, SIDE, SIDE)
    return np.ascontiguousarray(planes.transpose(1, 2, 0))

"""Labelled images in a fixed order, decoded one by one when their turn comes."""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acumen.files.errors import reading
from acumen.vision.packages import needed


@dataclass(frozen=True, slots=True, eq=False)
class Item:
    """One image: its name, its class, and its file, its bytes or its pixels."""

    name: str
    label: int
    content: Path | bytes | NDArray[np.uint8]


@dataclass(frozen=True, slots=True, eq=False)
class Images:
    """A set of labelled images.

    Attributes
    ----------
    name : str
        What was opened, in words.
    items : function
        Gives all images from the first on, in the same order each time.
    fingerprint : str
        Changes when the images, their order or their labels do.
    count : int or None
        How many there are, where that is known without reading them.
    classes : tuple of str or None
        Names of the classes, if labels are places in this list.
    """

    name: str
    items: Callable[[], Iterator[Item]]
    fingerprint: str
    count: int | None = None
    classes: tuple[str, ...] | None = None


def picture(item: Item) -> Any:
    """Decode an image to RGB, or say which one cannot be."""
    pillow = needed("PIL.Image")
    if isinstance(item.content, np.ndarray):
        return pillow.fromarray(item.content)
    content = item.content
    file = io.BytesIO(content) if isinstance(content, bytes) else content
    with reading(Path(item.name)), pillow.open(file) as image:
        return image.convert("RGB")


def fingerprint(facts: Iterable[object]) -> str:
    """A digest of what tells one set of images from another.

    Examples
    --------
    >>> fingerprint(["a.png", 0]) == fingerprint(["a.png", 1])
    False
    """
    digest = hashlib.sha256()
    for fact in facts:
        digest.update(f"{fact}\n".encode())
    return digest.hexdigest()

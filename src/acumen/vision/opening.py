"""Open images wherever they are: the one place that knows all kinds of them."""

from __future__ import annotations

import glob
from collections.abc import Sequence
from pathlib import Path

from acumen.files.errors import FileError
from acumen.vision.cifar import open_cifar, version_of
from acumen.vision.folders import open_classes, open_labelled
from acumen.vision.images import Images
from acumen.vision.streams import open_stream
from acumen.vision.tars import open_tars

STREAM = "hf:"


def open_images(
    where: str | Path,
    *,
    labels: str | Path | None = None,
    split: str | None = None,
    classes: Sequence[str] | None = None,
) -> Images:
    """Open labelled images.

    Parameters
    ----------
    where : str or Path
        A folder with one sub-folder per class; a folder of images, with `labels`; a
        folder of the binary version of CIFAR-10 or CIFAR-100; webdataset shards
        (``"val/*.tar"``, or a folder of them); or ``"hf:NAME"``, a data set on the
        Hugging Face hub, read as a stream.
    labels : str or Path, optional
        A file with a line ``name,class`` for each image.
    split : str, optional
        Which part of CIFAR (by default ``"test"``) or of a stream (``"validation"``).
    classes : sequence of str, optional
        Names of the classes in the order of the model's outputs, if the sub-folders or
        the labels are names; by default they are numbered in alphabetical order.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> for name in ("cat/1.png", "dog/2.png", "dog/3.png"):
    ...     path = pathlib.Path(folder.name, name)
    ...     path.parent.mkdir(exist_ok=True)
    ...     path.touch()
    >>> images = open_images(folder.name)
    >>> images.count, images.classes
    (3, ('cat', 'dog'))
    >>> [(item.name, item.label) for item in images.items()]
    [('cat/1.png', 0), ('dog/2.png', 1), ('dog/3.png', 1)]
    >>> folder.cleanup()
    """
    text, path = str(where), Path(where)
    if text.startswith(STREAM):
        _unused("labels", labels, "a stream")
        _unused("classes", classes, "a stream")
        return open_stream(text.removeprefix(STREAM), split or "validation")
    if labels is not None:
        _unused("split", split, "a file of labels")
        return open_labelled(_folder(path), Path(labels), classes)
    if tars := _tars(text, path):
        _unused("split", split, "webdataset shards")
        _unused("classes", classes, "webdataset shards")
        return open_tars(text, tars)
    if version := version_of(_folder(path)):
        _unused("classes", classes, version.name)
        return open_cifar(path, version, split or "test")
    _unused("split", split, "sub-folders of classes")
    return open_classes(path, classes)


def _folder(path: Path) -> Path:
    if not path.is_dir():
        raise FileError(path, "there is no such folder of images.")
    return path


def _tars(text: str, path: Path) -> list[Path]:
    if path.is_dir():
        return sorted(path.glob("*.tar"))
    if path.is_file():
        return [path] if path.suffix == ".tar" else []
    return [Path(name) for name in sorted(glob.glob(text))]  # noqa: PTH207


def _unused(name: str, value: object, where: str) -> None:
    if value is not None:
        raise ValueError(f"{name} does not apply to {where}.")

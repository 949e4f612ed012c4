"""Labelled images wherever they are: folders, tars, CIFAR files, streams."""

from __future__ import annotations

import glob
import hashlib
import importlib
import io
import logging
import tarfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import (
    EXTRAS,
    as_path,
    check_texts,
    missing,
    read_names,
    shown,
)
from calibrant.files._sources import FileError, quoted, reading


def needed(name: str) -> Any:
    """An optional package, or an error that says how to install it.

    >>> needed("timm.no_such_module")
    Traceback (most recent call last):
    ImportError: calibrant.vision needs timm...: pip install 'calibrant[vision]'.
    """
    try:
        return importlib.import_module(name)
    except (ImportError, RuntimeError) as error:  # torchvision built for another torch
        cause = ImportError(str(error), name=name)
        if isinstance(error, ImportError) and error.name in EXTRAS:
            cause = error
        raise missing(cause, "calibrant.vision", "vision") from error


@contextmanager
def downloading(what: str, way_out: str) -> Iterator[None]:
    """One error for all the ways a download can fail; retries are not talked about."""
    hub = logging.getLogger("huggingface_hub")
    level = hub.level
    hub.setLevel(logging.ERROR)
    try:
        yield
    except (ValueError, ImportError):  # a wrong name, not a failure on the way
        raise
    except Exception as error:
        reason = " ".join(str(error).split()).rstrip(".")
        raise OSError(f"{what} cannot be downloaded ({reason}); {way_out}") from error
    finally:
        hub.setLevel(level)


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
    source : mapping
        Where they were downloaded from, for the manifest.
    """

    name: str
    items: Callable[[], Iterator[Item]]
    fingerprint: str
    count: int | None = None
    classes: tuple[str, ...] | None = None
    source: Mapping[str, str] = field(default_factory=dict)


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
    """A digest of what tells one set of images from another."""
    digest = hashlib.sha256()
    for fact in facts:
        digest.update(f"{fact}\n".encode())
    return digest.hexdigest()


IMAGENET = "imagenet-1k"


def read_classes(where: str) -> tuple[str, ...]:
    """Names of the classes of a model, in the order of its outputs.

    They are from a file, one a line; ``imagenet-1k`` are the WordNet identifiers.
    """
    if where == IMAGENET:
        return tuple(needed("timm").data.ImageNetInfo(IMAGENET).label_names())
    path = Path(where)
    with reading(path):
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    names = tuple(line.strip() for line in lines if line.strip())
    if not names or len(set(names)) < len(names):
        raise FileError(path, "must name each class once, one a line.")
    return names


def class_numbers(
    names: Sequence[str], classes: Sequence[str] | None
) -> tuple[dict[str, int], tuple[str, ...] | None]:
    """The number of each class name, and the list of names it is a place in.

    That list is `classes` where it is given. Else names that are all numbers stand for
    themselves, and others are numbered in alphabetical order, as everybody does it.
    """
    if classes is None and all(n.isascii() and n.isdigit() for n in names):
        return {name: int(name) for name in names}, None
    known = tuple(sorted(set(names)) if classes is None else classes)
    if unknown := sorted(set(names) - set(known)):
        raise ValueError(
            f"classes must name every class of the images; {unknown[0]!r} is not among "
            f"them ({len(unknown)} of {len(set(names))} are missing)."
        )
    numbers = {name: number for number, name in enumerate(known)}
    return {name: numbers[name] for name in sorted(set(names))}, known


SIDE = 32
PIXELS = 3 * SIDE * SIDE
PICKLES = ("data_batch_1", "test_batch", "batches.meta", "meta")


@dataclass(frozen=True, slots=True)
class Version:
    """CIFAR-10 or CIFAR-100, as their authors publish them in the binary version.

    A record is some bytes of labels, then red, green, blue.
    """

    name: str
    classes: int
    label_bytes: int  # the last of them is the class
    splits: dict[str, tuple[str, ...]]


FIVE = tuple(f"data_batch_{number}.bin" for number in range(1, 6))
VERSIONS = (
    Version("CIFAR-10", 10, 1, {"test": ("test_batch.bin",), "train": FIVE}),
    Version("CIFAR-100", 100, 2, {"test": ("test.bin",), "train": ("train.bin",)}),
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
        known = " or ".join(map(repr, version.splits))
        raise ValueError(f"split must be {known} for {version.name}, got {split!r}.")
    paths = [folder / name for name in version.splits[split]]
    records = [_records(path, version) for path in paths]

    def items() -> Iterator[Item]:
        for path, rows in zip(paths, records, strict=True):
            for number, row in enumerate(rows):
                label = int(row[version.label_bytes - 1])
                planes = row[-PIXELS:].reshape(3, SIDE, SIDE)
                pixels = np.ascontiguousarray(planes.transpose(1, 2, 0))
                yield Item(f"{path.name}:{number}", label, pixels)

    digest = fingerprint(hashlib.sha256(rows.tobytes()).hexdigest() for rows in records)
    return Images(f"{version.name} {split}", items, digest, sum(map(len, records)))


def _records(path: Path, version: Version) -> NDArray[np.uint8]:
    with reading(path):
        content = np.fromfile(path, np.uint8)
    length = version.label_bytes + PIXELS
    if not content.size or content.size % length:
        rule = f"must be records of {length} bytes; its size is {content.size}"
        raise FileError(path, f"{rule}: it is damaged or cut short.")
    records = content.reshape(-1, length)
    labels = records[:, version.label_bytes - 1]
    row = int(labels.argmax())
    if labels[row] >= version.classes:
        found = f"record {row} has the class {labels[row]}"
        raise FileError(path, f"{found}, but {version.name} has {version.classes}.")
    return records


SUFFIXES = (".bmp", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp")
HEADERS = ("label", "labels", "class", "target")


def open_classes(folder: Path, classes: Sequence[str] | None) -> Images:
    """Images of a folder with one sub-folder per class, sorted by class and name."""
    shown = [path for path in folder.iterdir() if not path.name.startswith(".")]
    names = sorted(path.name for path in shown if path.is_dir())
    if not names:
        raise FileError(
            folder,
            "has no sub-folders, one for each class; for a folder of images say their "
            "classes with --labels FILE.",
        )
    numbers, known = class_numbers(names, classes)
    rows = [
        (path, numbers[name])
        for name in names
        for path in sorted((folder / name).rglob("*"))
        if path.suffix.lower() in SUFFIXES
    ]
    if not rows:
        raise FileError(folder, f"has no image ({', '.join(SUFFIXES)}).")
    return _listed(folder, rows, known)


def open_labelled(folder: Path, labels: Path, classes: Sequence[str] | None) -> Images:
    """Images that a file lists, one line ``name,class`` each, in the order of the file."""
    lines = _lines(labels)
    numbers, known = class_numbers([name for _, name in lines], classes)
    rows = [(folder / file, numbers[name]) for file, name in lines]
    for path, _ in rows:
        if not path.is_file():
            raise FileError(labels, f"lists {path.name}, which is not in {folder}.")
    return _listed(folder, rows, known)


def _listed(
    folder: Path, rows: list[tuple[Path, int]], classes: tuple[str, ...] | None
) -> Images:
    named = [(path.relative_to(folder).as_posix(), label, path) for path, label in rows]
    digest = fingerprint((name, label, p.stat().st_size) for name, label, p in named)
    items = [Item(*row) for row in named]
    return Images(str(folder), lambda: iter(items), digest, len(items), classes)


def _lines(labels: Path) -> list[tuple[str, str]]:
    """Names and classes, parted by the last comma, tab or blank of the line."""
    with reading(labels):
        text = labels.read_text(encoding="utf-8-sig")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if not lines:
        raise FileError(labels, "has no lines.")
    mark = next((mark for mark in (",", "\t") if mark in lines[0]), None)
    cells = [line.rsplit(mark, 1) for line in lines]
    for number, cell in enumerate(cells, start=1):
        if len(cell) < 2:
            rule = "must be a file name and its class: 'cat.png,3'"
            raise FileError(labels, f"line {number} {rule}.")
    named = cells[0][1].strip().lower() in HEADERS
    return [(file.strip(), label.strip()) for file, label in cells[named:]]


TAR_IMAGES, LABEL = ("jpg", "jpeg", "png", "webp"), "cls"


def open_tars(name: str, paths: Sequence[Path]) -> Images:
    """The samples of webdataset shards: tar files of ``key.jpg`` beside ``key.cls``.

    They are in the order of the files and of their members.
    """
    facts = ((path.name, path.stat().st_size) for path in paths)
    return Images(
        name, lambda: chain.from_iterable(map(_items, paths)), fingerprint(facts)
    )


def _items(path: Path) -> Iterator[Item]:
    for key, fields in _samples(path):
        kinds = [kind for kind in TAR_IMAGES if kind in fields]
        label = fields.get(LABEL, b"").strip()
        if len(kinds) != 1 or not label.isdigit():
            raise FileError(
                path,
                f"sample {key!r} must have one image ({', '.join(TAR_IMAGES)}) and its "
                f"class number (.{LABEL}); it has {', '.join(sorted(fields))}.",
            )
        yield Item(f"{path.name}:{key}.{kinds[0]}", int(label), fields[kinds[0]])


def _samples(path: Path) -> Iterator[tuple[str, dict[str, bytes]]]:
    """Members that follow each other and differ only after the first dot of the name."""
    key, fields = "", dict[str, bytes]()
    with reading(path), tarfile.open(path, "r:") as archive:  # read, never extracted
        for member in archive:
            file = archive.extractfile(member)
            if file is None:
                continue
            name = PurePosixPath(member.name)
            stem, _, kind = name.name.partition(".")
            if (here := str(name.with_name(stem))) != key:
                if fields:
                    yield key, fields
                key, fields = here, {}
            fields[kind.lower()] = file.read()
    if fields:
        yield key, fields


STREAM_IMAGES = ("image", "img", "jpg", "jpeg", "png", "webp")
LABELS = ("label", "labels", "cls", "fine_label")
NOWHERE: Mapping[str, str] = {}


def open_stream(name: str, split: str) -> Images:
    """A split of a data set such as ``timm/imagenet-1k-wds``, or ``NAME@REVISION``.

    It is on the Hugging Face hub, and streamed: nothing is stored. Whatever branch or tag
    is asked for, what is read is one commit of it, to its end.
    """
    where, _, revision = name.partition("@")
    load, hub = needed("datasets").load_dataset, needed("huggingface_hub").HfApi()
    way_out = "check its name, the network, and your right to it."
    with downloading(f"the data set {name}", way_out):
        commit = hub.dataset_info(where, revision=revision or None).sha
        rows = load(where, split=split, revision=commit, streaming=True)
    known = (rows.info.splits or {}).get(split)
    count = None if known is None else known.num_examples
    source = {"images_repository": where, "images_revision": commit}
    return images_of(rows, f"hf:{name} {split}", count, source)


def images_of(
    rows: Any, name: str, count: int | None = None, source: Mapping[str, str] = NOWHERE
) -> Images:
    """The images of an open stream; decoding is left to us."""
    columns = list(rows.column_names or next(iter(rows)))
    image, label = _only(columns, STREAM_IMAGES, name), _only(columns, LABELS, name)
    packed = rows.decode(False)  # noqa: FBT003

    def items() -> Iterator[Item]:
        with downloading(f"the rest of {name}", "run the command again to go on."):
            for number, row in enumerate(packed):
                if (content := row[image].get("bytes")) is None:
                    raise ValueError(f"{name}:{number} has no image in it.")
                if type(row[label]) is not int:
                    rule = f"must have a class number, got {row[label]!r}"
                    raise ValueError(f"{name}:{number} {rule}.")
                yield Item(f"{name}:{number}", row[label], content)

    facts = fingerprint([name, image, label, *source.values()])
    return Images(name, items, facts, count, source=source)


def _only(columns: list[str], known: tuple[str, ...], name: str) -> str:
    found = [column for column in columns if column in known]
    if len(found) != 1:
        raise ValueError(
            f"{name} must have one column named {', '.join(known[:-1])} or {known[-1]}; "
            f"it has {quoted(columns)}."
        )
    return found[0]


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
    text, path = str(where), as_path(where, "where")
    check_texts(split=split)
    if classes is not None:
        classes = _class_names(classes)
    if text.startswith(STREAM):
        _unused("a stream", labels=labels, classes=classes)
        return open_stream(text.removeprefix(STREAM), split or "validation")
    if labels is not None:
        _unused("a file of labels", split=split)
        return open_labelled(_folder(path), as_path(labels, "labels"), classes)
    if tars := _tars(text, path):
        _unused("webdataset shards", split=split, classes=classes)
        return open_tars(text, tars)
    if version := version_of(_folder(path)):
        _unused(version.name, classes=classes)
        return open_cifar(path, version, split or "test")
    _unused("sub-folders of classes", split=split)
    return open_classes(path, classes)


def _class_names(given: Any) -> tuple[str, ...]:
    names = tuple(str(name) for name in read_names(given, "classes"))
    if not names or len(set(names)) < len(names):
        raise ValueError(f"classes must name each class once, got {shown(given)}.")
    return names


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


def _unused(where: str, **options: object) -> None:
    for name, value in options.items():
        if value is not None:
            raise ValueError(f"{name} does not apply to {where}.")

"""Images in folders: one sub-folder per class, or one folder and a file of labels."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from acumen.files.errors import FileError, reading
from acumen.vision.classes import class_numbers
from acumen.vision.images import Images, Item, fingerprint

SUFFIXES = frozenset(
    {".bmp", ".jpeg", ".jpg", ".pgm", ".png", ".ppm", ".tif", ".tiff", ".webp"}
)
HEADERS = frozenset({"label", "labels", "class", "target"})


def open_classes(folder: Path, classes: Sequence[str] | None) -> Images:
    """Images of a folder with one sub-folder per class, sorted by class and name."""
    names = sorted(
        path.name
        for path in folder.iterdir()
        if path.is_dir() and not path.name.startswith(".")
    )
    if not names:
        raise FileError(
            folder,
            "has no sub-folders, one for each class; for a folder of images say their "
            "classes with --labels FILE.",
        )
    numbers, known = class_numbers(names, classes)
    rows = [
        (path, numbers[name]) for name in names for path in _pictures(folder / name)
    ]
    if not rows:
        raise FileError(folder, f"has no image ({', '.join(sorted(SUFFIXES))}).")
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


def _pictures(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in SUFFIXES)


def _listed(
    folder: Path, rows: list[tuple[Path, int]], classes: tuple[str, ...] | None
) -> Images:
    items = [
        Item(path.relative_to(folder).as_posix(), label, path) for path, label in rows
    ]
    facts = (
        (i.name, i.label, p.stat().st_size)
        for i, (p, _) in zip(items, rows, strict=True)
    )
    return Images(
        str(folder), lambda: iter(items), fingerprint(facts), len(items), classes
    )


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
            raise FileError(
                labels, f"line {number} must be a file name and its class: 'cat.png,3'."
            )
    named = cells[0][1].strip().lower() in HEADERS
    return [(file.strip(), label.strip()) for file, label in cells[named:]]

"""Names of the classes of a model, in the order of its outputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from acumen.files.errors import FileError, reading
from acumen.vision.packages import timm

IMAGENET = "imagenet-1k"


def read_classes(where: str) -> tuple[str, ...]:
    r"""Names from a file, one a line; or ``imagenet-1k``, the WordNet identifiers.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "classes.txt"
    ...     _ = path.write_text("cat\ndog\n")
    ...     read_classes(str(path))
    ('cat', 'dog')
    """
    if where == IMAGENET:
        return tuple(timm().data.ImageNetInfo(IMAGENET).label_names())
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

    Examples
    --------
    >>> class_numbers(["dog", "cat"], None)
    ({'cat': 0, 'dog': 1}, ('cat', 'dog'))
    >>> class_numbers(["10", "9"], None)
    ({'10': 10, '9': 9}, None)
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

"""Images in webdataset shards: tar files of ``key.jpg`` beside ``key.cls``."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from acumen.files.errors import FileError, reading
from acumen.vision.images import Images, Item, fingerprint

IMAGES = ("jpg", "jpeg", "png", "webp")
LABEL = "cls"


def open_tars(name: str, paths: Sequence[Path]) -> Images:
    """The samples of all shards, in the order of the files and of their members."""

    def items() -> Iterator[Item]:
        for path in paths:
            yield from _items(path)

    facts = ((path.name, path.stat().st_size) for path in paths)
    return Images(name, items, fingerprint(facts))


def _items(path: Path) -> Iterator[Item]:
    for key, fields in _samples(path):
        kinds = [kind for kind in IMAGES if kind in fields]
        label = fields.get(LABEL, b"").strip()
        if len(kinds) != 1 or not label.isdigit():
            raise FileError(
                path,
                f"sample {key!r} must have one image ({', '.join(IMAGES)}) and its "
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

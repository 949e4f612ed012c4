"""Images of a data set on the Hugging Face hub, streamed: nothing is stored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from acumen.files.errors import quoted
from acumen.vision.images import Images, Item, fingerprint
from acumen.vision.packages import downloading, needed

IMAGES = ("image", "img", "jpg", "jpeg", "png", "webp")
LABELS = ("label", "labels", "cls", "fine_label")


def open_stream(name: str, split: str) -> Images:
    """A split of a data set such as ``timm/imagenet-1k-wds``, or ``NAME@REVISION``."""
    where, _, revision = name.partition("@")
    datasets = needed("datasets")
    with downloading(
        f"the data set {name}", "check its name, the network, and your right to it."
    ):
        rows = datasets.load_dataset(
            where, split=split, revision=revision or None, streaming=True
        )
    count = (rows.info.splits or {}).get(split)
    return images_of(
        rows, f"hf:{name} {split}", None if count is None else count.num_examples
    )


def images_of(rows: Any, name: str, count: int | None = None) -> Images:
    """The images of an open stream; decoding is left to us."""
    columns = list(rows.column_names or next(iter(rows)))
    image, label = _only(columns, IMAGES, name), _only(columns, LABELS, name)
    packed = rows.decode(False)  # noqa: FBT003

    def items() -> Iterator[Item]:
        with downloading(f"the rest of {name}", "run the command again to go on."):
            for number, row in enumerate(packed):
                yield _item(f"{name}:{number}", row[image], row[label])

    return Images(name, items, fingerprint([name, image, label]), count)


def _item(name: str, image: Mapping[str, Any], label: Any) -> Item:
    content = image.get("bytes")
    if content is None:
        raise ValueError(f"{name} has no image in it.")
    if type(label) is not int:
        raise ValueError(f"{name} must have a class number, got {label!r}.")
    return Item(name, label, content)


def _only(columns: list[str], known: tuple[str, ...], name: str) -> str:
    found = [column for column in columns if column in known]
    if len(found) != 1:
        raise ValueError(
            f"{name} must have one column named {', '.join(known[:-1])} or {known[-1]}; "
            f"it has {quoted(columns)}."
        )
    return found[0]

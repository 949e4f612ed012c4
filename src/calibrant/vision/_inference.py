"""Run a model over images into shards of logits, and go on where a run was stopped."""

from __future__ import annotations

import hashlib
import json
import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import (
    as_path,
    check_choice,
    check_flags,
    check_functions,
    check_kind,
    check_number,
)
from calibrant._base.records import read_file, read_json
from calibrant._base.write import digest_of, locked, write_npz, write_text
from calibrant.files._open import MANIFEST
from calibrant.files._sources import FileError
from calibrant.vision._images import Images, Item, needed, picture
from calibrant.vision._models import Model

FORMAT, VERSION = "calibrant logits", 1
FORMATS = (FORMAT, "acumen logits")  # until 0.1.0 the project was called acumen
SHARD = re.compile(r"shard-\d{5,}\.npz")
BEGIN_ANEW = "choose another folder, or begin anew with force=True."


@dataclass(frozen=True, slots=True)
class Shard:
    """One file of logits: how many rows it has, and the digest of its bytes."""

    file: str
    rows: int
    sha256: str


@dataclass(frozen=True, slots=True)
class Manifest:
    """What has been written, from what, and whether that is all there is.

    Settings decide the bytes of the shards; sources say where weights and images came from.
    """

    settings: Mapping[str, Any]
    shards: tuple[Shard, ...] = ()
    complete: bool = False
    sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Rows of all shards."""
        return sum(shard.rows for shard in self.shards)

    def with_shard(self, new: Shard) -> Manifest:
        """The manifest with one more shard, or another one in its place."""
        shards = [*(shard for shard in self.shards if shard.file != new.file), new]
        shards.sort(key=lambda shard: (len(shard.file), shard.file))
        return replace(self, shards=tuple(shards))


def shard_name(number: int) -> str:
    """The file of a shard; the names sort as the numbers do."""
    return f"shard-{number:05d}.npz"


def write_shard(folder: Path, number: int, arrays: Mapping[str, Any]) -> Shard:
    """Write the arrays of a shard; equal arrays give equal bytes."""
    path = folder / shard_name(number)
    write_npz(path, arrays)
    return Shard(path.name, len(arrays["labels"]), digest_of(path))


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Write the manifest, with a digest of itself."""
    content: dict[str, Any] = {"format": FORMAT, "version": VERSION, **asdict(manifest)}
    content["sha256"] = _digest(content)
    write_text(folder / MANIFEST, json.dumps(content, indent=1) + "\n")


def _digest(content: Mapping[str, Any]) -> str:
    plain = {key: value for key, value in content.items() if key != "sha256"}
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()


def read_manifest(folder: Path) -> Manifest:
    """Read a manifest, and refuse one that is not as it was written."""
    path = folder / MANIFEST
    try:
        content = read_json(read_file(path))
        ours = content["format"] in FORMATS
        whole = ours and content["sha256"] == _digest(content)
    except (ValueError, TypeError, KeyError):
        whole = False
    if not whole:
        raise FileError(path, f"is damaged or not ours; {BEGIN_ANEW}")
    if content["version"] != VERSION:
        raise FileError(path, f"has the version {content['version']}; {BEGIN_ANEW}")
    shards = tuple(Shard(**shard) for shard in content["shards"])
    sources = content.get("sources", {})  # until 0.1.0 there were none
    return Manifest(content["settings"], shards, content["complete"], sources)


def begin(folder: Path, settings: Mapping[str, Any], *, force: bool) -> Manifest:
    """The manifest to go on from: that of the folder, or an empty one."""
    present = {path.name for path in folder.iterdir() if not path.name.startswith(".")}
    ours = {name for name in present if name == MANIFEST or SHARD.fullmatch(name)}
    if foreign := sorted(present - ours):
        other = f"has other files in it ({foreign[0]})"
        raise FileError(folder, f"{other}; choose another folder.")
    if force or not ours:
        for name in sorted(ours):  # the manifest first: it must not outlive a shard
            (folder / name).unlink()
        return Manifest(dict(settings))
    if MANIFEST not in ours:
        raise FileError(folder, f"has shards but no {MANIFEST}; {BEGIN_ANEW}")
    return _same(folder, read_manifest(folder), settings)


def _same(folder: Path, found: Manifest, settings: Mapping[str, Any]) -> Manifest:
    """Refuse to mix logits of two models, two sets of images or two ways of storing."""
    for name in [*settings, *found.settings]:
        before, now = found.settings.get(name), settings.get(name)
        if before != now:
            begun = f"was begun with {name} {before!r}, not {now!r}"
            raise FileError(folder, f"{begun}; {BEGIN_ANEW}")
    return found


def intact(folder: Path, manifest: Manifest) -> tuple[Manifest, tuple[str, ...]]:
    """The manifest of the shards that are as they were written, and names of the others."""

    def as_written(shard: Shard) -> bool:
        path = folder / shard.file
        return path.is_file() and digest_of(path) == shard.sha256

    kept = tuple(filter(as_written, manifest.shards))
    if len(kept) == len(manifest.shards):
        return manifest, ()
    bad = tuple(shard.file for shard in manifest.shards if shard not in kept)
    return replace(manifest, shards=kept, complete=False), bad


AHEAD = 2  # batches that are being decoded while one is run


Batch: TypeAlias = tuple[list[Item], NDArray[np.float32]]


def run(
    model: Model, items: Iterable[Item], size: int, pool: Executor
) -> Iterator[Batch]:
    """Images and their logits in order, `size` rows at a time, decoded in threads."""

    def tensor(item: Item) -> Any:
        image = picture(item)
        try:
            return model.prepare(image)
        except ValueError as error:
            raise ValueError(f"{item.name}: {error}") from error

    rest = iter(items)
    waiting: deque[tuple[list[Item], Iterator[Any]]] = deque()
    while batch := list(islice(rest, size)):
        waiting.append((batch, pool.map(tensor, batch)))
        if len(waiting) > AHEAD:
            yield _finish_batch(model, *waiting.popleft())
    while waiting:
        yield _finish_batch(model, *waiting.popleft())


def _finish_batch(model: Model, batch: list[Item], tensors: Iterator[Any]) -> Batch:
    logits = forward(model, list(tensors))
    if bad := np.flatnonzero(~np.isfinite(logits).all(axis=1)).tolist():
        raise ValueError(
            f"{model.name} gives NaN or infinite logits for {batch[bad[0]].name}; use "
            "other weights, or leave the image out."
        )
    return batch, logits


def forward(model: Model, tensors: list[Any]) -> NDArray[np.float32]:
    """Logits of prepared images: one row each, one column per class."""
    torch = needed("torch")
    try:
        with torch.inference_mode():
            outputs = model.network(torch.stack(tensors).to(model.device))
    except RuntimeError as error:  # too little memory, or shapes that do not fit
        reason = str(error).split("\n")[0].rstrip(".")
        raise ValueError(
            f"{model.name} cannot run {len(tensors)} images at once ({reason}); try a "
            "smaller batch_size (--batch-size)."
        ) from error
    if not isinstance(outputs, torch.Tensor) or outputs.ndim != 2:
        raise ValueError(f"{model.name} is no classifier: it gives no rows of logits.")
    return outputs.float().cpu().numpy()


@dataclass(frozen=True, slots=True)
class Run:
    """What a run left behind: the manifest of a folder, and the shards it did again."""

    folder: Path
    manifest: Manifest
    redone: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Job:
    """What is run, and how it is cut into shards and batches."""

    model: Model
    images: Images
    batch_size: int
    dtype: str
    shard_rows: int
    limit: int | None

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that decides the bytes of the shards."""
        return {
            **self.model.provenance,
            "images": self.images.name,
            "images_sha256": self.images.fingerprint,
            "batch_size": self.batch_size,
            "dtype": self.dtype,
            "shard_rows": self.shard_rows,
            "limit": self.limit,
        }

    @property
    def rows(self) -> int | None:
        """How many images will be run, if that is known."""
        known = self.images.count
        return known if known is None or self.limit is None else min(known, self.limit)


def infer(
    model: Model,
    images: Images,
    out: str | Path,
    *,
    batch_size: int = 64,
    dtype: Literal["float16", "float32"] = "float32",
    shard_rows: int = 5000,
    limit: int | None = None,
    workers: int = 2,
    force: bool = False,
    progress: Callable[[int, int | None], None] | None = None,
) -> Run:
    """Write the logits of all images to a folder of ``.npz`` shards.

    A folder in which a run was stopped is finished: shards whose digest is that of the
    manifest are kept, others are done again, and the files are then, bit for bit, those
    of a run that was never stopped.

    Parameters
    ----------
    model : Model
        The network, from `load_model` or your own.
    images : Images
        The images, from `open_images` or your own.
    out : str or Path
        Folder for the shards and the manifest. It holds nothing else.
    batch_size : int
        Images that are run together. The last bits of logits may depend on it, so no
        batch reaches over the end of a shard.
    dtype : {"float32", "float16"}
        How logits are stored. They are computed in the network's own precision.
    shard_rows : int
        Rows of a shard: what is lost, at most, when a run is stopped.
    limit : int, optional
        Run only so many images, from the first on.
    workers : int
        Threads that decode and prepare images.
    force : bool
        Whether to begin anew in a folder that holds other logits.
    progress : function, optional
        Called with the rows done and the rows there are (None if nobody knows).

    Returns
    -------
    Run
        The manifest, and which damaged shards were done again.
    """
    check_kind(model, Model, "model")
    check_kind(images, Images, "images")
    sizes = {"batch_size": batch_size, "shard_rows": shard_rows, "workers": workers}
    for name, value in (sizes if limit is None else {**sizes, "limit": limit}).items():
        check_number(value, name, 1, kind="a whole number")
        check_kind(value, (int, np.integer), name)
    check_choice(dtype, "dtype", ("float16", "float32"))
    check_flags(force=force)
    check_functions(progress=progress)
    folder, job = (
        as_path(out, "out"),
        Job(model, images, batch_size, dtype, shard_rows, limit),
    )
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / MANIFEST):
        manifest, redone = intact(folder, begin(folder, job.settings, force=force))
        if not manifest.complete:
            manifest = replace(manifest, sources={**model.source, **images.source})
            tell = progress or (lambda rows, of: None)
            with ThreadPoolExecutor(workers) as pool:
                manifest = _finish(job, folder, manifest, pool, tell)
    return Run(folder, manifest, redone)


Progress: TypeAlias = Callable[[int, int | None], None]


def _finish(
    job: Job, folder: Path, manifest: Manifest, pool: Executor, progress: Progress
) -> Manifest:
    """Write the shards that the manifest lacks, and the manifest after each of them."""
    write_manifest(folder, manifest)
    for number, items in _missing(job, manifest):
        batches = run(job.model, items, job.batch_size, pool)
        arrays = _arrays(job, batches, number * job.shard_rows, progress)
        manifest = manifest.with_shard(write_shard(folder, number, arrays))
        write_manifest(folder, manifest)
    if not manifest.shards:
        raise ValueError(f"{job.images.name} has no images.")
    manifest = replace(manifest, complete=True)
    write_manifest(folder, manifest)
    return manifest


def _missing(job: Job, manifest: Manifest) -> Iterator[tuple[int, Iterator[Item]]]:
    """Number and images of each shard that is not there yet."""
    items = islice(job.images.items(), job.limit)
    done = {shard.file: shard.rows for shard in manifest.shards}
    for number in count():
        if (kept := done.get(shard_name(number))) is not None:
            if sum(1 for _ in islice(items, kept)) < kept:
                raise ValueError(f"{job.images.name} has fewer images than before.")
        elif (first := next(items, None)) is not None:
            yield number, chain([first], islice(items, job.shard_rows - 1))
        else:
            return


def _arrays(
    job: Job, batches: Iterator[Batch], before: int, progress: Progress
) -> dict[str, NDArray[Any]]:
    """Arrays of one shard; pixels are let go of batch by batch."""
    logits, labels, names = list[NDArray[Any]](), list[int](), list[str]()
    for batch, found in batches:
        _check_classes(job.images, batch, found.shape[1])
        logits.append(_stored(found, job.dtype, batch))
        labels += [item.label for item in batch]
        names += [item.name for item in batch]
        progress(before + len(labels), job.rows)
    numbers = np.array(labels, np.int64)
    return {
        "logits": np.concatenate(logits),
        "labels": numbers,
        "image": np.array(names),
    }


def _check_classes(images: Images, batch: list[Item], outputs: int) -> None:
    """Labels must mean outputs of the model, or every number from here on is wrong."""
    if images.classes is not None and len(images.classes) != outputs:
        raise ValueError(
            f"{images.name} has {len(images.classes)} classes, but the model has "
            f"{outputs} outputs; name the class of each output, in order, in a file "
            "(--classes)."
        )
    for item in batch:
        if not 0 <= item.label < outputs:
            found = f"{item.name} has the class {item.label}"
            raise ValueError(f"{found}, but the model's are 0 to {outputs - 1}.")


def _stored(logits: NDArray[np.float32], dtype: str, batch: list[Item]) -> NDArray[Any]:
    with np.errstate(over="ignore"):
        stored = logits.astype(dtype)
    if bad := np.flatnonzero(np.isinf(stored).any(axis=1)).tolist():
        large = f"logits of {batch[bad[0]].name} are too large for float16"
        raise ValueError(f"{large}; store them as float32.")
    return stored

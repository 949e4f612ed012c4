"""Run a model over images into a folder of shards, and go on where a run was stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass, replace
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from acumen.vision.batches import run
from acumen.vision.images import Images, Item
from acumen.vision.models import Model
from acumen.vision.shards import (
    Manifest,
    begin,
    intact,
    shard_name,
    write_manifest,
    write_shard,
)


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
    _check_positive(batch_size=batch_size, shard_rows=shard_rows, workers=workers)
    if limit is not None:
        _check_positive(limit=limit)
    if dtype not in ("float16", "float32"):
        raise ValueError(f"dtype must be 'float16' or 'float32', got {dtype!r}.")
    folder, job = Path(out), Job(model, images, batch_size, dtype, shard_rows, limit)
    begun = begin(folder, job.settings, force=force)
    manifest, redone = intact(folder, begun)
    if not manifest.complete:
        with ThreadPoolExecutor(workers) as pool:
            manifest = _finish(job, folder, manifest, pool, progress or _silent)
    return Run(folder, manifest, redone)


def _check_positive(**values: int) -> None:
    for name, value in values.items():
        if value < 1:
            raise ValueError(f"{name} must be a positive integer, got {value!r}.")


def _silent(rows: int, of: int | None) -> None:
    """Report nothing."""


def _finish(
    job: Job,
    folder: Path,
    manifest: Manifest,
    pool: Executor,
    progress: Callable[[int, int | None], None],
) -> Manifest:
    """Write the shards that the manifest lacks, and the manifest after each of them."""
    write_manifest(folder, manifest)
    for number, items in _missing(job, manifest):

        def report(rows: int, before: int = number * job.shard_rows) -> None:
            progress(before + rows, job.rows)

        arrays = _arrays(job, items, pool, report)
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
    job: Job, items: Iterator[Item], pool: Executor, report: Callable[[int], None]
) -> dict[str, NDArray[Any]]:
    """Arrays of one shard; pixels are let go of batch by batch."""
    logits: list[NDArray[Any]] = []
    labels: list[int] = []
    names: list[str] = []
    for batch, found in run(job.model, items, job.batch_size, pool):
        _check_classes(job.images, batch, found.shape[1])
        logits.append(_stored(found, job.dtype, batch))
        labels += [item.label for item in batch]
        names += [item.name for item in batch]
        report(len(labels))
    return {
        "logits": np.concatenate(logits),
        "labels": np.array(labels, np.int64),
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
            raise ValueError(
                f"{item.name} has the class {item.label}, but the model's are 0 to "
                f"{outputs - 1}."
            )


def _stored(logits: NDArray[np.float32], dtype: str, batch: list[Item]) -> NDArray[Any]:
    with np.errstate(over="ignore"):
        stored = logits.astype(dtype)
    if bad := np.flatnonzero(np.isinf(stored).any(axis=1)).tolist():
        raise ValueError(
            f"logits of {batch[bad[0]].name} are too large for float16; store them as "
            "float32."
        )
    return stored

"""From images to logits: decoded in threads, run in batches, in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Executor
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from acumen.vision.images import Item, picture
from acumen.vision.models import Model
from acumen.vision.packages import needed

AHEAD = 2
"""Batches that are being decoded while one is run."""


def run(
    model: Model, items: Iterable[Item], size: int, pool: Executor
) -> Iterator[tuple[list[Item], NDArray[np.float32]]]:
    """Images and their logits, `size` rows at a time."""

    def tensor(item: Item) -> Any:
        image = picture(item)
        try:
            return model.prepare(image)
        except ValueError as error:
            raise ValueError(f"{item.name}: {error}") from error

    waiting: deque[tuple[list[Item], Iterator[Any]]] = deque()
    for batch in _batched(items, size):
        waiting.append((batch, pool.map(tensor, batch)))
        if len(waiting) > AHEAD:
            yield _finish(model, *waiting.popleft())
    while waiting:
        yield _finish(model, *waiting.popleft())


def _batched(items: Iterable[Item], size: int) -> Iterator[list[Item]]:
    rest = iter(items)
    while batch := list(islice(rest, size)):
        yield batch


def _finish(
    model: Model, batch: list[Item], tensors: Iterator[Any]
) -> tuple[list[Item], NDArray[np.float32]]:
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

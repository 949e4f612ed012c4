"""Evaluation of rows that pass by in batches: files of any size, in constant memory."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import fields, replace
from typing import Any

import numpy as np

from acumen.arrays import Column, as_scores
from acumen.files import FileError, Found
from acumen.predictions import Predictions, read_predictions
from acumen.results import Evaluation
from acumen.settings import Settings
from acumen.sketches.accumulation import Accumulation


def evaluate_batches(
    batches: Iterable[Found],
    *,
    name: str = "model",
    target: str | None = None,
    progress: Callable[[int], object] | None = None,
    **options: Any,
) -> Evaluation:
    """Evaluate predictions batch by batch, in constant memory.

    Parameters
    ----------
    batches : iterable of Found
        What `acumen.files.batches` gives.
    name, target
        As in `acumen.evaluate`; ``"class-wise"`` needs all rows in memory.
    progress : callable, optional
        Called after each batch with the number of rows read so far.
    **options
        Those of `acumen.evaluate` that say how to estimate, from `divergence` to `rng`.

    Returns
    -------
    Evaluation
        As `acumen.evaluate` or `acumen.evaluate_pairs` give it for all rows at once,
        but without intervals of the top-label ECE and, under soft labels, of ``unc``.

    Notes
    -----
    Neither the order nor the size of the batches matters, round-off apart.

    Up to 131,072 distinct confidences every number is that of the rows (to 1e-10);
    under soft labels, the interval of the Brier calibration error nearly so: its
    ends were off by up to 0.007 with 60 rows, 1e-4 with 600, 3e-6 with 6,000.

    Beyond that, these still are: accuracy, mean losses, d_CAL at a given bandwidth with
    the Gaussian kernel, ECE, ACE, MCE and top-label ECE with any number of bins,
    SmoothECE, the confidence gap and ``unc``. The adaptive d_CAL is too, unless the
    confidences lie so close together that their cells (see below) number 2,000 or
    less: then it sees finer cells than the rows give it, and moves by some 1e-6.

    What depends on the order of confidences comes from cells at most 0.00013 wide, and
    narrower towards 0 and 1. The KS error is then off by no more than `largest_share`,
    AUROC by no more than half the share of pairs of a hit and a miss within one cell.
    Of a million rows of various shapes, AUROC was off by 2e-7, the KS error by 4e-6,
    ``ece_mass`` by 6e-6, ``ece_debiased`` by 3e-5, ``mcb`` and ``dsc`` by 5e-6; of
    rows that all lie within 0.002, AUROC by 8e-5.

    `distinct` is then 131,073, which means at least so many; `largest_share` is that
    of the heaviest cell, no less than that of the commonest confidence; `atoms` is
    empty. Resampled intervals differ as those of another seed do.

    The top-label ECE is left out if classes times bins exceed a million.

    Examples
    --------
    >>> import tempfile, numpy as np, acumen as ac
    >>> from acumen.files import batches
    >>> folder = tempfile.TemporaryDirectory()
    >>> p = np.random.default_rng(0).random((2, 1000))
    >>> for shard, rows in enumerate(p):
    ...     np.savez(f"{folder.name}/{shard}.npz", prob=rows, outcome=rows > 0.4)
    >>> ev = evaluate_batches(batches(folder.name, rows=300))
    >>> whole = ac.evaluate(p.ravel() > 0.4, probs=p.ravel())
    >>> ev.rows, bool(abs(ev.metrics["ks_error"] - whole.metrics["ks_error"]) < 1e-12)
    (2000, True)
    >>> folder.cleanup()
    """
    settings = _read_settings(options)
    if target == "class-wise":
        raise ValueError(
            "target='class-wise' needs all rows in memory: pass what "
            "acumen.files.read gives to evaluate."
        )
    sums, rows = Accumulation(settings), 0
    for found in batches:
        if len(found):
            with _rows_of_the_file(found):
                sums.add(_read(found, target))
        rows += len(found)
        if progress is not None:
            progress(rows)
    return sums.evaluation(name)


def _read_settings(options: dict[str, Any]) -> Settings:
    known = {field.name for field in fields(Settings)}
    for option in options:
        if option not in known:
            raise TypeError(
                f"evaluate_batches has no option {option!r}. Labels, weights and names "
                "of classes come with the batches; cluster= needs all rows in memory."
            )
    return Settings(**options).checked()


@contextmanager
def _rows_of_the_file(found: Found) -> Iterator[None]:
    """Errors that name a row of the batch name the row of the file instead."""
    try:
        yield
    except ValueError as error:
        said, last = str(error), found.start + len(found) - 1
        number = re.search(r"\brow (\d+)", said)
        if number is None:
            raise
        row = f"row {found.start + int(number[1])}"
        said = said[: number.start()] + row + said[number.end() :]
        said = re.sub(r"of \d+ rows are", f"of rows {found.start} to {last} are", said)
        raise FileError(found.path, said) from error


def _read(found: Found, target: str | None) -> Predictions:
    """Read a batch; of its weights, which may all be 0, only the signs are checked."""
    given = {found.kind: found.scores}
    predictions = read_predictions(
        found.y, classes=found.classes, target=target, **given
    )
    return replace(predictions, weight=_read_weight(found))


def _read_weight(found: Found) -> Column | None:
    if found.sample_weight is None:
        return None
    weight = found.sample_weight.reshape(len(found))
    if weight.dtype != bool:
        weight = as_scores(weight, "sample_weight")
    weight = weight.astype(np.float64)
    bad = ~((weight >= 0) & np.isfinite(weight))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"sample_weight must be finite and not negative; row {row} is {weight[row]} "
            f"({int(bad.sum())} of {len(bad)} rows are off)."
        )
    return weight

"""The sketch: a few megabytes that replace any number of rows, and add up."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from os import PathLike
from pathlib import Path
from typing import Any

from acumen.bregman import BRIER, LOG, Divergence, find_divergence
from acumen.groups import group_names, soft_weight
from acumen.predictions import Predictions, read_predictions, read_weight
from acumen.sketches import storage
from acumen.sketches.bounds import bounds_of
from acumen.sketches.contents import Contents
from acumen.sketches.holder import Holder
from acumen.sketches.rows import reduced
from acumen.writing import write_bytes


class Sketch(Holder):
    """Sums that replace the rows: add rows as they come, merge, save, evaluate.

    Whatever the number of rows, it stays within a few megabytes; sketches of shards add
    up to the sketch of all rows. ``ac.evaluate(sketch)`` gives the same `Evaluation` as
    the rows: see `bounds` for how closely.

    Parameters
    ----------
    target : {"top-label", "positive", "class-wise"}, optional
        As in `evaluate`. ``"class-wise"`` keeps a sketch of every class.
    classes : sequence, optional
        Names of the classes in column order, if labels are names.
    divergence : str or Divergence
        Your own divergence is carried beside Brier and log.
    engine : {"auto", "numpy", "numba"}
        What adds up the rows.

    Notes
    -----
    Up to 131,072 distinct confidences every number is that of the rows. Beyond that,
    accuracy, losses, d_CAL at a given bandwidth (Gaussian kernel), SmoothECE, the
    confidence gap and binned errors still are, to 1e-10, with bins whose number divides
    9600 and that are closed on the right. What depends on ranks (KS, AUROC, equal-mass
    bins, isotonic fits) comes from cells 1/9600 wide and 0.02 in log-odds; `bounds` says
    how far off that can be. Probabilities in single precision move the adaptive d_CAL by
    up to 1e-4 of itself.

    The sharpness gap and the top-label ECE have no interval: they need every row.

    Examples
    --------
    >>> import numpy as np, acumen as ac
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], size=6000)
    >>> y = np.array([rng.choice(3, p=row) for row in p])
    >>> shards = [ac.Sketch().update(y[i::3], probs=p[i::3]) for i in range(3)]
    >>> sketch = shards[0] + shards[1] + shards[2]
    >>> sketch
    Sketch(rows=6000, target='top-label', classes=3)
    >>> ev, whole = ac.evaluate(sketch), ac.evaluate(y, probs=p)
    >>> bool(abs(ev.metrics["smooth_ece"] - whole.metrics["smooth_ece"]) < 1e-12)
    True
    """

    def __init__(
        self,
        *,
        target: str | None = None,
        classes: Sequence[Hashable] | None = None,
        divergence: str | Divergence = "brier",
        engine: str = "auto",
    ) -> None:
        super().__init__()
        main = find_divergence(divergence)
        self._target, self._classes = target, classes
        self._divergences = {"brier": BRIER, "log": LOG, main.name: main}
        self.engine = engine

    # -- adding rows -----------------------------------------------------------------

    def update(
        self,
        y: Any,
        *,
        probs: Any = None,
        logits: Any = None,
        classes: Sequence[Hashable] | None = None,
        sample_weight: Any = None,
        group: Any = None,
        part: str | None = None,
    ) -> Sketch:
        """Add predictions; returns the sketch itself.

        Parameters
        ----------
        y, probs, logits, classes, sample_weight, group
            As in `evaluate`. Weights may all be 0; their mean is judged at the end.
        part : str, optional
            A name for these rows, such as that of their file. Rows of a part that is
            already in the sketch are skipped: a stream that was interrupted can start
            over from the last saved sketch and counts nothing twice.

        Examples
        --------
        >>> import acumen as ac
        >>> sketch = ac.Sketch()
        >>> for _ in range(2):  # the second time around it is skipped
        ...     sketch = sketch.update([1, 0, 1], probs=[0.9, 0.2, 0.6], part="day 1")
        >>> sketch.rows
        3
        """
        if self._seen(part):
            return self
        predictions = read_predictions(
            y,
            probs=probs,
            logits=logits,
            classes=self._classes if classes is None else classes,
            target=self._target,
        )
        return self._add(predictions, sample_weight, group, part)

    def update_pairs(
        self,
        correct: Any,
        confidence: Any,
        *,
        loss: Any = None,
        sample_weight: Any = None,
        group: Any = None,
        part: str | None = None,
    ) -> Sketch:
        """Add pairs of correctness and confidence; returns the sketch itself.

        Parameters
        ----------
        correct, confidence, sample_weight, group
            As in `evaluate_pairs`.
        loss : array_like or mapping of them, optional
            The full loss of each row, where the pairs are what is left of predictions
            of many classes: the Brier score, or ``{"brier": ..., "log": ...}``. Only
            these scores are then known, and the sketch is that of a top label.
        part : str, optional
            As in `update`.

        Examples
        --------
        >>> import acumen as ac
        >>> sketch = ac.Sketch().update_pairs([1, 1, 0], [0.9, 0.6, 0.7])
        >>> round(ac.evaluate(sketch).metrics["brier"], 3)
        0.22
        """
        if self._seen(part):
            return self
        if self._target is not None and loss is None:
            raise ValueError("target does not apply to confidence pairs.")
        predictions = read_predictions(correct, confidence=confidence)
        return self._add(predictions, sample_weight, group, part, loss)

    def _seen(self, part: str | None) -> bool:
        return part is not None and part in self.parts

    def _add(
        self,
        predictions: Predictions,
        sample_weight: Any,
        group: Any,
        part: str | None,
        loss: Any = None,
    ) -> Sketch:
        weight = read_weight(sample_weight, len(predictions.scores), part=True)
        predictions = replace(predictions, weight=weight)
        names = None if group is None else group_names(group, predictions)
        if weight is not None and not weight.any():
            return self
        kind, columns = reduced(predictions, self._divergences, loss, self.engine)
        with self.whole_update(kind) as contents:
            contents.add(columns, names, self.engine)
            contents.add_classes(predictions, self.engine)
            contents.soft_rows += soft_weight(predictions)
            contents.parts |= {part} if part is not None else set()
        return self

    # -- what it holds ---------------------------------------------------------------

    def bounds(self, bins: int = 15) -> dict[str, float]:
        """How far metrics of the sketch may be from those of the rows.

        Metrics that are not listed are those of the rows, to 1e-10. Nothing is listed
        while there are at most 131,072 distinct confidences.

        Parameters
        ----------
        bins : int
            The number of bins, as in `evaluate`. Numbers that divide 9600, such as 10,
            15, 20, 25, 30, 50 and 100, give the bins of the rows.

        Examples
        --------
        >>> import numpy as np, acumen as ac
        >>> p = np.random.default_rng(0).random(200_000)
        >>> sketch = ac.Sketch().update_pairs(p > 0.5, p)
        >>> sorted(sketch.bounds())
        ['auroc', 'ece_mass', 'ks_error']
        >>> sketch.bounds()["auroc"] < 1e-4
        True
        """
        contents = self.checked()
        return {} if contents is None else bounds_of(contents.state, bins)

    # -- adding up, and files --------------------------------------------------------

    def __add__(self, other: Sketch) -> Sketch:
        if not isinstance(other, Sketch):
            return NotImplemented
        return self.merge(other)

    def merge(self, *others: Sketch) -> Sketch:
        """The sketch of the rows of this one and of the others, as a new sketch.

        Examples
        --------
        >>> import acumen as ac
        >>> day = ac.Sketch().update_pairs([1, 0], [0.9, 0.4])
        >>> day.merge(day, day).rows
        6
        """
        found = [x for x in (s.checked() for s in (self, *others)) if x is not None]
        if not found:
            return Sketch()
        return Sketch.of(
            reduce(add, found[1:], found[0] + Contents.empty(found[0].kind))
        )

    @classmethod
    def of(cls, contents: Contents) -> Sketch:
        """A sketch of sums already made, to which rows can be added."""
        kind, sketch = contents.kind, cls()
        if kind.target != "pairs":
            sketch._target, sketch._classes = kind.target, kind.classes
        sketch._divergences = dict(kind.divergences)
        sketch.contents = contents
        return sketch

    def save(self, path: str | PathLike[str], *, force: bool = True) -> None:
        """Write the sketch to an ``.npz`` file, whole or not at all.

        Parameters
        ----------
        path : str or path
            Where to; replaced if it exists, unless `force` is false.
        force : bool
            Whether an existing file may be replaced.

        Examples
        --------
        >>> import tempfile, acumen as ac
        >>> folder = tempfile.TemporaryDirectory()
        >>> sketch = ac.Sketch().update_pairs([1, 0], [0.9, 0.4], part="monday")
        >>> sketch.save(f"{folder.name}/week.npz")
        >>> ac.Sketch.load(f"{folder.name}/week.npz").parts
        frozenset({'monday'})
        >>> folder.cleanup()
        """
        write_bytes(Path(path), self.to_bytes(), force=force)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Sketch:
        """Read a sketch that `save` wrote; a damaged file is refused."""
        return cls.of(storage.read_file(Path(path)))

    def to_bytes(self) -> bytes:
        """The sketch as the contents of its file, to be sent elsewhere.

        Examples
        --------
        >>> import acumen as ac
        >>> sent = ac.Sketch().update_pairs([1, 0], [0.9, 0.4]).to_bytes()
        >>> ac.Sketch.from_bytes(sent).rows
        2
        """
        contents = self.checked()
        if contents is None:
            raise ValueError("the sketch has no rows yet, so there is nothing to save.")
        return storage.to_bytes(contents)

    @classmethod
    def from_bytes(cls, content: bytes) -> Sketch:
        """The sketch that `to_bytes` gave; damaged bytes are refused."""
        return cls.of(storage.from_bytes(content))

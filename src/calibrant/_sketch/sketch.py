"""The sketch: a few megabytes that replace any number of rows, and add up."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from operator import add
from os import PathLike
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import (
    RowError,
    as_path,
    check_choice,
    check_flags,
    check_kind,
    check_length,
    check_text,
    check_texts,
    read_names,
)
from calibrant._base.records import read_file
from calibrant._base.views import Printed
from calibrant._inputs import predictions as inputs
from calibrant._inputs.arrays import Column, as_scores, check_indices
from calibrant._inputs.divergences import BUILT_IN, Divergence, find_divergence
from calibrant._rows.columns import Columns
from calibrant._rows.engines import ENGINES
from calibrant._rows.reduce import each_class, reduce_to_columns
from calibrant._sketch.cells import Cells, Kind, bounds_of, check_groups
from calibrant._sketch.clusters import Hashes

if TYPE_CHECKING:
    from calibrant._sketch import storage

MOST_LOSS = 1e100
MOST_CLASSES = 200
"""Classes up to which a sketch of each may be kept."""


class Sketch(Printed):
    """Sums that replace the rows: add rows as they come, merge, save, evaluate.

    Whatever the number of rows, it stays within a few megabytes; sketches of shards add
    up to the sketch of all rows. ``cal.evaluate(sketch)`` gives the same `Evaluation` as
    the rows: see `bounds` for how closely.

    Parameters
    ----------
    target : {"top-label", "positive", "class-wise"}, optional
        As in `evaluate`. ``"class-wise"`` keeps a sketch of every class.
    classes : sequence, optional
        Names of the classes in column order, if labels are names.
    divergence : str or Divergence
        Your own divergence is carried beside Brier and log.
    engine : {"auto", "numpy", "compiled"}
        What adds up the rows.

    Notes
    -----
    Up to 131,072 distinct confidences every number is that of the rows. Beyond that,
    accuracy, losses, d_CAL at a given bandwidth (Gaussian kernel), SmoothECE, the
    confidence gap and binned errors still are, to 1e-10, with bins whose number divides
    9600 and that are closed on the right. What depends on ranks (KS, AUROC, equal-mass
    bins, isotonic fits) comes from cells 1/9600 wide and 0.02 in log-odds; `bounds` says
    how far off that can be. Probabilities in single precision move the adaptive d_CAL by
    up to 1e-4 of itself, weights of equal confidences by up to 1e-3.

    The sharpness gap and the top-label ECE have no interval: they need every row.

    Examples
    --------
    >>> import numpy as np, calibrant as cal
    >>> rng = np.random.default_rng(0)
    >>> p = rng.dirichlet([1, 1, 1], size=6000)
    >>> y = np.array([rng.choice(3, p=row) for row in p])
    >>> shards = [cal.Sketch().update(y[i::3], probs=p[i::3]) for i in range(3)]
    >>> sketch = shards[0] + shards[1] + shards[2]
    >>> sketch
    Sketch(rows=6000, target='top-label', classes=3)
    >>> ev, whole = cal.evaluate(sketch), cal.evaluate(y, probs=p)
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
        main = find_divergence(divergence)
        check_choice(target, "target", (None, *inputs.TARGETS))
        check_choice(engine, "engine", ENGINES)
        if classes is not None:
            classes = read_names(classes, "classes")
        self._target, self._classes = target, classes
        self._divergences = {**BUILT_IN, main.name: main}
        self.engine = engine
        self.kind: Kind | None = None
        self.cells = Cells(self._divergences)
        self.groups: dict[str, Cells] = {}
        self.per_class: list[Cells] = []
        self._soft = 0.0
        self._parts: frozenset[str] = frozenset()
        self._torn = False

    @classmethod
    def of(
        cls, kind: Kind, cells: Cells, groups: Mapping[str, Cells] | None = None
    ) -> Sketch:
        """A sketch of sums already made, to which rows can be added."""
        sketch = cls()
        if kind.target != "pairs":
            sketch._target, sketch._classes = kind.target, kind.classes or None
        sketch._divergences = dict(kind.divergences)
        sketch.kind, sketch.cells, sketch.groups = kind, cells, dict(groups or {})
        return sketch

    # -- adding rows -----------------------------------------------------------------

    def update(
        self,
        y: Any,
        *,
        probs: Any = None,
        logits: Any = None,
        classes: Sequence[Hashable] | None = None,
        sample_weight: Any = None,
        frequency: Any = None,
        cluster: Any = None,
        group: Any = None,
        part: str | None = None,
    ) -> Sketch:
        """Add predictions; returns the sketch itself.

        Parameters
        ----------
        y, probs, logits, classes, sample_weight, frequency, cluster, group
            As in `evaluate`. Weights are of one unit in all updates, and may all be 0.
            Clusters are named in every update or in none.
        part : str, optional
            A name for these rows, such as that of their file. Rows of a part that is
            already in the sketch are skipped: a stream that was interrupted can start
            over from the last saved sketch and counts nothing twice.

        Examples
        --------
        >>> import calibrant as cal
        >>> sketch = cal.Sketch()
        >>> for _ in range(2):  # the second time around it is skipped
        ...     sketch = sketch.update([1, 0, 1], probs=[0.9, 0.2, 0.6], part="day 1")
        >>> sketch.rows
        3
        """
        check_texts(part=part)
        if part in self.parts:
            return self
        beside = {"sample_weight": sample_weight, "frequency": frequency}
        beside |= {"cluster": cluster, "group": group}
        check_indices(y=y, probs=probs, logits=logits, **beside)
        names = self._classes if classes is None else classes
        said: dict[str, Any] = {"classes": names, "target": self._target}
        predictions = inputs.read_predictions(y, probs=probs, logits=logits, **said)
        weights = inputs.read_weights(
            sample_weight, frequency, len(predictions.scores), part=True
        )
        return self._add(predictions, weights, cluster, group, part)

    def update_pairs(
        self,
        correct: Any,
        confidence: Any,
        *,
        loss: Any = None,
        sample_weight: Any = None,
        frequency: Any = None,
        cluster: Any = None,
        group: Any = None,
        part: str | None = None,
    ) -> Sketch:
        """Add pairs of correctness and confidence; returns the sketch itself.

        Parameters
        ----------
        correct, confidence, sample_weight, frequency, cluster, group
            As in `evaluate_pairs`; see `update`.
        loss : array_like or mapping of them, optional
            The full loss of each row, where the pairs are what is left of predictions
            of many classes: the Brier score, or ``{"brier": ..., "log": ...}``. Only
            these are then known; ``Sketch(classes=...)`` says how many classes there are.
        part : str, optional
            As in `update`.

        Examples
        --------
        >>> import calibrant as cal
        >>> sketch = cal.Sketch().update_pairs([1, 1, 0], [0.9, 0.6, 0.7])
        >>> round(cal.evaluate(sketch).metrics["brier"], 3)
        0.22
        """
        check_texts(part=part)
        if part in self.parts:
            return self
        for what in ("target", "classes") if loss is None else ():
            if getattr(self, f"_{what}") is not None:
                raise ValueError(f"{what} does not apply to confidence pairs.")
        beside = {"sample_weight": sample_weight, "frequency": frequency, "loss": loss}
        beside |= {"cluster": cluster, "group": group}
        check_indices(correct=correct, confidence=confidence, **beside)
        predictions = inputs.read_predictions(correct, confidence=confidence)
        weights = inputs.read_weights(
            sample_weight, frequency, len(predictions.scores), part=True
        )
        return self._add(predictions, weights, cluster, group, part, loss)

    def _add(
        self,
        predictions: inputs.Predictions,
        weights: inputs.Weights,
        cluster: Any,
        group: Any,
        part: str | None,
        loss: Any = None,
    ) -> Sketch:
        weight, squared = weights
        predictions = replace(predictions, weight=weight, squared=squared)
        names, hashes = inputs.read_groups(group, predictions), None
        if cluster is not None:
            hashes = inputs.hash_clusters(cluster, predictions)
        if weight is not None and not weight.any():
            return self
        kind, columns = reduced(predictions, self._divergences, loss, self.engine)
        if loss is not None:
            kind = replace(kind, classes=tuple(self._classes or ()))
        kind = replace(kind, clustered=hashes is not None)
        with self._whole_update(kind, names):
            self._add_rows(columns, names, hashes)
            if self.per_class:
                rows = each_class(predictions)
                for own, columns in zip(self.per_class, rows, strict=True):
                    own.update(columns, self.engine, hashes)
            self._soft += inputs.soft_weight(predictions)
            self._parts |= {part} if part is not None else set()
        return self

    @contextmanager
    def _whole_update(
        self, kind: Kind, names: NDArray[np.str_] | None
    ) -> Iterator[None]:
        """Rows of this kind are added whole, or the sketch is of no more use."""
        check_groups({*self.groups, *(() if names is None else names.tolist())})
        known = self.checked()
        if known is None:
            self._begin(kind)
        else:
            known.check_fits(kind)
        self._torn = True
        yield
        self._torn = False

    def _begin(self, kind: Kind) -> None:
        if kind.target == "class-wise":
            if (count := len(kind.classes)) > MOST_CLASSES:
                raise ValueError(
                    f"a sketch of every class takes 4 MB each, and {count} classes are "
                    f"more than {MOST_CLASSES}. Use target='top-label', or some classes "
                    "at a time with target='positive'."
                )
            self.per_class = [Cells.for_sketch(kind.divergences) for _ in range(count)]
        self.kind, self.cells = kind, kind.empty()

    def _add_rows(
        self, columns: Columns, names: NDArray[np.str_] | None, hashes: Hashes | None
    ) -> None:
        assert self.kind is not None
        self.cells.update(columns, self.engine, hashes)
        for name in [] if names is None else np.unique(names).tolist():
            group, some = self.groups.setdefault(name, self.kind.empty()), names == name
            own = None if hashes is None else hashes[some]
            group.update(columns.take(some), self.engine, own)

    # -- what it holds ---------------------------------------------------------------

    def checked(self) -> Kind | None:
        """What the rows are, None without rows; an interrupted update is refused."""
        if self._torn:
            raise RuntimeError(
                "an update of this sketch was interrupted, and some of its rows are in; "
                "start again from the last sketch that was saved."
            )
        return self.kind

    @property
    def rows(self) -> int:
        """Rows of positive weight so far."""
        return self.cells.rows if self.checked() else 0

    @property
    def soft_rows(self) -> float:
        """Weight, of mean 1, of rows whose label is a share."""
        return self._soft * self.cells.count / self.cells.weight if self._soft else 0.0

    @property
    def parts(self) -> frozenset[str]:
        """Names of the parts that are in."""
        self.checked()
        return self._parts

    def rename_part(self, old: str | None, new: str) -> None:
        """Put the name of a part in place of another, if it had one."""
        check_texts(old=old)
        check_text(new, "new")
        self._parts = self.parts - {old} | {new}

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
        >>> import numpy as np, calibrant as cal
        >>> p = np.random.default_rng(0).random(200_000)
        >>> sketch = cal.Sketch().update_pairs(p > 0.5, p)
        >>> sorted(sketch.bounds())
        ['augrc', 'aurc', 'auroc', 'ece_mass', 'excess_aurc', 'ks_error']
        >>> sketch.bounds()["auroc"] < 1e-4
        True
        """
        kind = self.checked()
        return {} if kind is None else bounds_of(self.cells, bins, kind.target)

    def facts(self) -> dict[str, Any]:
        """What the sketch holds, as plain values.

        ``weight`` is the total as it was given, ``count`` how many examples the rows stand
        for, ``effective`` how many of equal weight would have as little noise, and
        ``clusters`` how many are told apart, at most 128.

        Examples
        --------
        >>> import calibrant as cal
        >>> facts = cal.Sketch().update_pairs([1, 0], [0.9, 0.4]).facts()
        >>> facts["rows"], facts["target"], facts["scores"]
        (2, 'pairs', ['brier', 'log'])
        """
        kind = self.checked()
        if kind is None:
            return {"rows": 0}
        return {
            "rows": self.cells.rows,
            "weight": self.cells.weight,
            "count": self.cells.count,
            "effective": self.cells.effective,
            "clusters": self._clusters(),
            "target": kind.target,
            "classes": len(kind.classes) or None,
            "scores": list(kind.divergences),
            "groups": sorted(self.groups),
            "parts": sorted(self._parts),
            "all_values": self.cells.exact,
        }

    def __str__(self) -> str:
        facts = self.facts()
        if not facts["rows"]:
            return "A sketch without examples."
        kept = "every distinct confidence" if facts["all_values"] else "sums by cell"
        told = facts["classes"] and facts["target"] != "pairs"
        classes = f", {facts['classes']} classes" if told else ""
        lines = {
            "examples": f"{facts['rows']:,}",
            "weights": self._weights(facts),
            **self._unlike_rows(facts),
            "target": facts["target"] + classes,
            "scores": ", ".join(facts["scores"]),
            "stored": kept,
            "groups": ", ".join(facts["groups"]),
            "parts": f"{len(facts['parts']):,}" if facts["parts"] else "",
        }
        width = max(8, *(len(name) + 1 for name, value in lines.items() if value))
        shown = [f"  {name:<{width}}{value}" for name, value in lines.items() if value]
        return "\n".join(["Sketch", *shown])

    def _clusters(self) -> int | None:
        found = self.cells.clusters
        return None if found is None else found.count

    def _weights(self, facts: Mapping[str, Any]) -> str:
        """What weights sum to, where there are any."""
        weighted = facts["weight"] != facts["rows"]
        return f"sum to {facts['weight']:,.10g}" if weighted else ""

    def _unlike_rows(self, facts: Mapping[str, Any]) -> dict[str, str]:
        """What weights leave of the rows, and their clusters, where there are any."""
        found, clusters = dict[str, str](), self.cells.clusters
        if self.cells.squares is not None:
            found["n"] = f"{facts['count']:,.10g}, effective {facts['effective']:,.6g}"
        if clusters is not None:
            found["clusters"] = f"{clusters.count:,}{' or more' * clusters.folded}"
        return found

    def __repr__(self) -> str:
        kind = self.checked()
        if kind is None:
            return "Sketch(rows=0)"
        told = kind.classes and kind.target != "pairs"
        classes = f", classes={len(kind.classes)}" if told else ""
        groups = f", groups={len(self.groups)}" if self.groups else ""
        return f"Sketch(rows={self.rows}, target={kind.target!r}{classes}{groups})"

    # -- adding up, and files --------------------------------------------------------

    def __add__(self, other: Sketch) -> Sketch:
        if not isinstance(other, Sketch):
            return NotImplemented
        return self.merge(other)

    def merge(self, *others: Sketch) -> Sketch:
        """The sketch of the rows of this one and of the others, as a new sketch.

        Examples
        --------
        >>> import calibrant as cal
        >>> day = cal.Sketch().update_pairs([1, 0], [0.9, 0.4])
        >>> day.merge(day, day).rows
        6
        """
        both = Sketch()
        for sketch in (self, *others):
            if (kind := sketch.checked()) is not None:
                if both.kind is None:
                    both = Sketch.of(kind, both.cells)
                    both._begin(kind)
                both._add_sketch(sketch, kind)
        return both

    def _add_sketch(self, other: Sketch, kind: Kind) -> None:
        assert self.kind is not None
        self.kind.check_fits(kind)
        if both := self._parts & other._parts:
            raise ValueError(
                f"part {min(both)!r} is in both sketches ({len(both)} parts are), and its "
                "rows would count twice. Merge sketches of different parts."
            )
        names = sorted({*self.groups, *other.groups})
        check_groups(names)
        self.cells += other.cells
        empty = {name: kind.empty() for name in names}
        mine, theirs = empty | self.groups, empty | other.groups
        self.groups = {name: mine[name] + theirs[name] for name in names}
        self.per_class = list(map(add, self.per_class, other.per_class))
        self._parts |= other._parts
        self._soft += other._soft

    def save(self, path: str | PathLike[str], *, force: bool = False) -> None:
        """Write the sketch to an ``.npz`` file, whole or not at all.

        Parameters
        ----------
        path : str or path
            Where to; a file that is there is refused, unless `force` says to replace it.
        force : bool
            Whether an existing file may be replaced.

        Examples
        --------
        >>> import tempfile, calibrant as cal
        >>> folder = tempfile.TemporaryDirectory()
        >>> sketch = cal.Sketch().update_pairs([1, 0], [0.9, 0.4], part="monday")
        >>> sketch.save(f"{folder.name}/week.npz")
        >>> cal.Sketch.load(f"{folder.name}/week.npz").parts
        frozenset({'monday'})
        >>> folder.cleanup()
        """
        from calibrant._base.write import write_bytes

        check_flags(force=force)
        write_bytes(as_path(path), self.to_bytes(), force=force)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Sketch:
        """Read a sketch that `save` wrote; a damaged file is refused.

        So are sums that no rows have, whatever their checksum.
        """
        from calibrant._sketch import storage  # not needed to add up

        return _unpacked(*storage.from_bytes(read_file(as_path(path)), str(path)))

    def to_bytes(self) -> bytes:
        """The sketch as the contents of its file, to be sent elsewhere.

        Examples
        --------
        >>> import calibrant as cal
        >>> sent = cal.Sketch().update_pairs([1, 0], [0.9, 0.4]).to_bytes()
        >>> cal.Sketch.from_bytes(sent).rows
        2
        """
        return self.packed(compressed=True)

    def packed(self, *, compressed: bool) -> bytes:
        """The same; on the way between workers compressing would take too long."""
        from calibrant._sketch import storage

        if (kind := self.checked()) is None:
            raise ValueError("the sketch has no rows yet, so there is nothing to save.")
        about = {
            "target": kind.target,
            "classes": [_plain(name) for name in kind.classes],
            "divergences": list(kind.divergences),
            "parts": sorted(self._parts),
            "soft_rows": self._soft,
        }
        groups = {f"group {name}": cells for name, cells in self.groups.items()}
        classes = {f"class {j}": cells for j, cells in enumerate(self.per_class)}
        cells = {"rows": self.cells, **groups, **classes}
        return storage.to_bytes(about, cells, compressed=compressed)

    @classmethod
    def from_bytes(cls, content: bytes) -> Sketch:
        """The sketch that `to_bytes` gave; damaged bytes are refused."""
        from calibrant._sketch import storage

        check_kind(content, bytes, "content")
        return _unpacked(*storage.from_bytes(content))


def _unpacked(about: storage.Header, cells: dict[str, Cells]) -> Sketch:
    """The sketch of what `Sketch.packed` packed."""
    rows = cells["rows"]
    classes = about.classes
    truths = all(isinstance(name, bool) for name in classes)
    if about.target == "top-label" and truths and rows.within is None:
        classes = ()  # pairs with their full losses: 0.1.0 wrote (False, True) for them
    kind = Kind(about.target, classes, rows.divergences, rows.clusters is not None)
    titled = {title.partition(" ")[::2]: own for title, own in cells.items()}
    groups = {name: own for (what, name), own in titled.items() if what == "group"}
    sketch = Sketch.of(kind, rows, groups)
    sketch.per_class = [own for (what, _), own in titled.items() if what == "class"]
    sketch._parts, sketch._soft = frozenset(about.parts), about.soft_rows
    return sketch


def _plain(name: Any) -> Any:
    value = name.item() if isinstance(name, np.generic) else name
    if not isinstance(value, str | int | float | bool):
        raise TypeError(
            f"classes must be text or numbers to be saved, got {name!r}. Name them so."
        )
    return value


# -- rows on their way into a sketch ---------------------------------------------------


def reduced(
    predictions: inputs.Predictions,
    divergences: Mapping[str, Divergence],
    loss: Any,
    engine: str,
) -> tuple[Kind, Columns]:
    """The kind of predictions and their columns; `loss` are full losses of pairs."""
    target = "pairs" if predictions.kind == "confidence" else str(predictions.target)
    own = {n: d for n, d in divergences.items() if n not in BUILT_IN}
    if target == "class-wise":
        predictions = replace(predictions, target="top-label")
    columns = reduce_to_columns(predictions, own, engine)
    if loss is not None:
        given = loss if isinstance(loss, Mapping) else {"brier": loss}
        target, divergences = "top-label", known_losses(given)
        losses = {name: _read(given[name], name, predictions) for name in divergences}
        columns = replace(columns, losses=losses)
    return Kind(target, predictions.classes, divergences), columns


def known_losses(given: Mapping[str, Any]) -> dict[str, Divergence]:
    """The divergences of losses by name, of which Brier must be one."""
    if "brier" not in given or not set(given) <= set(BUILT_IN):
        raise ValueError(
            "loss must be the Brier score of each row, or a mapping with 'brier' and "
            f"perhaps 'log'; got {sorted(map(str, given))}."
        )
    return {name: BUILT_IN[name] for name in BUILT_IN if name in given}


def _read(loss: Any, name: str, predictions: inputs.Predictions) -> Column:
    values = as_scores(loss, "loss").astype(np.float64)
    n, weight = len(predictions.scores), predictions.weight
    check_length(values, n, "loss")
    counts = np.ones(n, bool) if weight is None else weight > 0
    bad = ~(values >= 0) & counts
    if name == "brier":
        bad |= ~(values <= MOST_LOSS) & counts
    if bad.any():
        rule = f"loss must be neither negative nor immense ({name});"
        raise RowError.at_first(rule, bad, values)
    return values[counts]

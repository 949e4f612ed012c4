"""The metric of a training loop, in the manner of torchmetrics."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor
from torchmetrics import Metric

from calibrant._base.checks import check_choice, check_flags, check_number
from calibrant._base.evaluation import Evaluation
from calibrant._base.measures import MEASURES
from calibrant._inputs.arrays import FEW_ROWS, no_logits
from calibrant._inputs.predictions import LEAST_CLUSTERS
from calibrant._sketch.sketch import Sketch
from calibrant._verbs.evaluate import evaluate
from calibrant.torch import _tensor_cells as tensor_cells
from calibrant.torch._tensor_cells import (
    NO_DOUBLE,
    RowWeights,
    as_rows,
    check_order,
    check_tensors,
    group_of,
    mark,
    read_weights,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure


COUNTS = ("bad", "like_probs")
"""What is counted to be refused later; all else are sums of rows."""


class BatchNumbers(dict[str, Tensor]):
    """The numbers of one batch, computed when the first of them is looked at.

    Most training loops look at few batches, and an evaluation takes longer than a step.
    """

    def __init__(self, make: Callable[[], Mapping[str, Tensor]]) -> None:
        super().__init__(dict.fromkeys(watched()))  # type: ignore[arg-type]
        self._make: Callable[[], Mapping[str, Tensor]] | None = make

    def _found(self) -> dict[str, Tensor]:
        if self._make is not None:
            make, self._make = self._make, None
            super().update(make())
        return self

    def __getitem__(self, name: str) -> Tensor:
        return dict.__getitem__(self._found(), name)

    def get(self, name: str, default: Any = None) -> Any:
        """As of any dict."""
        return dict.get(self._found(), name, default)

    def items(self) -> Any:
        """As of any dict."""
        return dict.items(self._found())

    def values(self) -> Any:
        """As of any dict."""
        return dict.values(self._found())

    def __iter__(self) -> Iterator[str]:  # so that copies ask for the numbers
        return super().__iter__()

    def __repr__(self) -> str:
        return dict.__repr__(self._found())

    def __reduce__(self) -> Any:
        return dict, (dict(self.items()),)


def _counted(count: int, what: str) -> str:
    return f"{count:,} {what}{'' if count == 1 else 's'}"


def watched() -> list[str]:
    """Names of the numbers worth watching."""
    named = [key for key, measure in MEASURES.items() if measure.watched]
    return [*named, "calibration", "sharpness_gap"]


class CalibrationSharpness(Metric):
    """Calibration and sharpness of predictions, batch by batch and over processes.

    What is kept of the rows is a sketch of a few megabytes, on the device of the metric
    and of the same size for any number of rows; `update` never makes the host wait.

    Parameters
    ----------
    num_classes : int
        Number of classes.
    scores : {"logits", "probs"}
        What `update` is given. It is never found out by looking at the numbers.
    target : {"top-label", "positive"}, optional
        What is asked of each row: is the predicted class as likely as claimed, or is the
        positive class, of which 1-D scores are then given. Two classes need it said;
        three or more are ``"top-label"``.
    ignore_index : int, optional
        A label whose rows are left out.
    clustered : bool
        Whether `update` is told which rows depend on each other. That takes 14 MB more,
        and `update` then makes the host wait for the names of clusters.
    **kwargs
        Those of `torchmetrics.Metric`, such as ``dist_sync_on_step``.

    Notes
    -----
    Sums stay in double precision whatever dtype the model is converted to. On a device
    that has none (MPS), rows are reduced on it and their sums kept on the CPU.

    Rows that hold NaN or labels of no class are counted, and `compute` refuses them:
    looking at once would make the host wait.

    Examples
    --------
    >>> import torch
    >>> from calibrant.torch import CalibrationSharpness
    >>> metric = CalibrationSharpness(3, scores="logits")
    >>> rng = torch.Generator().manual_seed(0)
    >>> for _ in range(10):
    ...     z = torch.randn(500, 3, generator=rng)
    ...     y = torch.multinomial(z.softmax(1), 1, generator=rng)[:, 0]
    ...     metric.update(3 * z, y)  # three times too sure
    >>> found = metric.compute()
    >>> bool(abs(found["brier"] - found["calibration"] - found["sharpness_gap"]) < 1e-12)
    True
    >>> ev = metric.evaluation(name="net", interval=None)
    >>> ev.rows, ev.metrics["confidence_gap"] > 0.2
    (5000, True)
    """

    is_differentiable = False
    full_state_update = False
    bad: Tensor
    like_probs: Tensor  # rows of logits that are distributions, and all rows

    def __init__(
        self,
        num_classes: int,
        *,
        scores: str | None = None,
        target: str | None = None,
        ignore_index: int | None = None,
        clustered: bool = False,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_choice(scores, "scores", ("logits", "probs"))
        check_number(num_classes, "num_classes", 2, kind="a whole number")
        check_flags(clustered=clustered)
        if ignore_index is not None:
            check_number(ignore_index, "ignore_index", -inf, kind="a whole number")
        num_classes = int(num_classes)
        self.num_classes, self.scores = num_classes, str(scores)
        self.target = _choose_target(num_classes, target)
        self.ignore_index, self.clustered = ignore_index, clustered
        predicted = num_classes if self.target == "top-label" else 0
        for name, zero in tensor_cells.empty(predicted, clustered=clustered).items():
            self.add_state(name, zero, tensor_cells.EXTREMES.get(name, "sum"))
        self._batch: list[Any] | None = None  # where `forward` wants it
        self.add_state("bad", torch.zeros(3, dtype=torch.int64), "sum")
        self.add_state("like_probs", torch.zeros(2, dtype=torch.int64), "sum")

    def update(
        self,
        preds: Tensor,
        target: Tensor,
        sample_weight: Tensor | None = None,
        frequency: Tensor | None = None,
        cluster: Tensor | None = None,
    ) -> None:
        """Add predictions and their labels.

        Parameters
        ----------
        preds : tensor
            Scores, n x k or n x k x ...; 1-D if the target is ``"positive"``.
        target : tensor of int
            The observed classes.
        sample_weight, frequency : tensor, optional
            Importance of each label, in one unit for all updates, and how many rows it
            stands for, as in `calibrant.evaluate`.
        cluster : tensor of int, optional
            Which rows depend on each other, if the metric is `clustered`; then always.
        """
        beside = {"sample_weight": sample_weight, "frequency": frequency}
        beside |= {"cluster": cluster}
        some = {name: x for name, x in beside.items() if x is not None}
        check_tensors(preds=preds, target=target, **some)
        check_order(preds, target, self.scores, scores_first=True)
        self._check_shape(preds)
        self._check_cluster(cluster)
        self._leave_inference_mode()
        scores, y = as_rows(preds, target, self.scores)
        columns, *bad, distributions = mark(scores, y, self.scores)
        weights = RowWeights()
        if sample_weight is not None or frequency is not None:
            weights, off = read_weights(sample_weight, frequency, columns.hit)
            bad.append(off)
        if cluster is not None:
            weights = weights._replace(group=group_of(cluster, columns.hit))
        keep = torch.ones_like(columns.hit, dtype=torch.bool)
        if self.ignore_index is not None:
            keep = (y != self.ignore_index).to(keep.device)
        offends = torch.stack(bad) & keep
        self.bad[: len(bad)].add_(offends.sum(dim=1))
        self.like_probs.add_(torch.stack([distributions & keep, keep]).sum(dim=1))
        sound = keep & ~offends.any(dim=0)
        tensor_cells.add_rows(self._sums(), columns, sound, weights)
        if self._batch is not None:
            self._batch.append((columns, sound, weights, offends))

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Add a batch; its numbers are computed when they are looked at.

        Parameters
        ----------
        *args, **kwargs
            As of `update`.
        """
        if self.dist_sync_on_step:
            return super().forward(*args, **kwargs)
        self._batch = []
        try:
            self.update(*args, **kwargs)
            batch = self._batch[0]
        finally:
            self._batch = None
        numbers = BatchNumbers(lambda: self._numbers_of(*batch))
        self._forward_cache = numbers  # type: ignore[assignment]
        return numbers

    def _numbers_of(
        self, columns: Any, sound: Tensor, weights: RowWeights, offends: Tensor
    ) -> dict[str, Tensor]:
        """The numbers of one batch alone."""
        alone = type(self)(
            self.num_classes,
            scores=self.scores,
            target=self.target,
            clustered=self.clustered,
        ).to(sound.device)
        alone.bad[: len(offends)].add_(offends.sum(dim=1))
        tensor_cells.add_rows(alone._sums(), columns, sound, weights)
        return alone._numbers()

    def compute(self) -> dict[str, Tensor]:
        """The numbers worth watching, each as a tensor.

        Returns
        -------
        dict of str to Tensor
            ``calibration`` and ``sharpness_gap``, which add up to ``brier``; ``nll``,
            ``accuracy``, ``ece``, ``smooth_ece`` and ``confidence_gap``.
        """
        return self._numbers()

    def _numbers(self) -> dict[str, Tensor]:
        sketch = self._sketch()
        clusters = sketch.cells.clusters
        if clusters is not None and clusters.count < LEAST_CLUSTERS:
            sketch = self._sketch(forget="clusters")  # those of one batch may be few
        ev = evaluate(sketch, interval=None)
        parts = ev.decomposition
        own = {"calibration": parts.calibration, "sharpness_gap": parts.sharpness_gap}
        known = own | dict(ev.metrics)
        found = {name: float(known[name]) for name in watched()}
        dtype = torch.float32 if self.device.type in NO_DOUBLE else torch.float64
        return {
            name: torch.tensor(x, dtype=dtype, device=self.device)
            for name, x in found.items()
        }

    def evaluation(self, name: str = "model", **options: Any) -> Evaluation:
        """The whole record of the rows so far, as `calibrant.evaluate` gives it.

        Parameters
        ----------
        name : str
            The model's name, for printing.
        **options
            Those of `calibrant.evaluate` that say how to estimate.
        """
        return evaluate(self.sketch(), name=name, **options)

    def sketch(self) -> Sketch:
        """The rows so far as a `Sketch`, to be merged with others or saved.

        Over several processes it holds the rows of all, and all must call it.
        """
        synced = self._is_synced
        with self.sync_context(
            dist_sync_fn=self.dist_sync_fn,
            should_sync=self._to_sync and not synced,
            should_unsync=not synced,
        ):
            return self._sketch()

    def plot(
        self,
        val: Evaluation | Sequence[Evaluation] | None = None,
        ax: Any = None,
        **options: Any,
    ) -> tuple[Figure, Any]:
        """Draw the calibration-sharpness diagram of the rows so far.

        Parameters
        ----------
        val : Evaluation or sequence of them, optional
            What `evaluation` gave before, to be drawn instead.
        ax : Axes or sequence of Axes, optional
            Where to draw.
        **options
            Those of `calibrant.plot.calibration_sharpness`.

        Returns
        -------
        (Figure, Axes)
            Axes in an array if there are several evaluations.
        """
        from calibrant.plot._calibration_sharpness import calibration_sharpness

        drawn = self.evaluation() if val is None else val
        axes = calibration_sharpness(drawn, ax=ax, **options)
        first = axes.flat[0] if hasattr(axes, "flat") else axes
        return first.figure, axes

    def _sums(self) -> dict[str, Tensor]:
        return {
            name: getattr(self, name) for name in self._defaults if name not in COUNTS
        }

    def _sketch(self, forget: str = "") -> Sketch:
        scores, labels, weights = self.bad.tolist()
        most = self.num_classes - 1
        if weights:
            have = "has" if weights == 1 else "have"
            raise ValueError(
                f"{_counted(weights, 'row')} {have} a sample_weight or frequency that is negative or not "
                "finite, or a frequency that is not whole; start again with reset()."
            )
        if scores or labels:
            off = []
            if scores:
                rule = "not finite" if self.scores == "logits" else "no distribution"
                off.append(f"{_counted(scores, 'row')} of {self.scores} ({rule})")
            if labels:
                off.append(f"{_counted(labels, 'label')} (no class, 0 to {most})")
            hint = ""
            if scores and self.scores == "probs":
                hint = (
                    "Are they logits, or percents? Pass scores='logits', or divide them by "
                    "100. Are they of half precision? Divide each row by its sum. "
                )
            verb = "breaks" if scores + labels == 1 else "break"
            raise ValueError(
                f"{' and '.join(off)} {verb} a rule. {hint}calibrant.torch.reduce_rows says "
                "which, batch by batch; start again with reset()."
            )
        distributions, rows = self.like_probs.tolist()
        if distributions == rows >= FEW_ROWS:
            because = "no number is negative and every row sums to 1"
            raise no_logits(because, "Use CalibrationSharpness(..., scores='probs').")
        sums = {name: x for name, x in self._sums().items() if name != forget}
        return tensor_cells.sketch_of(sums, self.target, tuple(range(self.num_classes)))

    def _leave_inference_mode(self) -> None:
        """Copy sums that were reset in inference mode, which could not be added to."""
        if not torch.is_inference_mode_enabled():
            for name in self._defaults:
                if (x := getattr(self, name)).is_inference():
                    setattr(self, name, x.clone())

    def _check_cluster(self, cluster: Tensor | None) -> None:
        if self.clustered != (cluster is not None):
            raise ValueError(
                "cluster= goes with CalibrationSharpness(..., clustered=True), and with "
                "every update of it."
            )

    def _check_shape(self, preds: Tensor) -> None:
        positive = self.target == "positive"
        fits = preds.ndim == 1 if positive else preds.shape[1:2] == (self.num_classes,)
        if not fits:
            wanted = "1-D" if positive else f"n x {self.num_classes}"
            raise ValueError(
                f"preds must be {wanted} for target={self.target!r} and "
                f"{self.num_classes} classes, got shape {tuple(preds.shape)}."
            )

    def set_dtype(self, dst_type: Any) -> Metric:
        """Leave the sums in double precision: in a lower one rows would get lost."""
        return self

    def _apply(
        self, fn: Callable[[Tensor], Tensor], exclude_state: Sequence[str] = ""
    ) -> torch.nn.Module:
        def only_move(x: Tensor) -> Tensor:
            place = fn(torch.empty(0, device=x.device)).device
            kept = x.dtype != torch.float32  # a state; numbers it has given may move
            return x.to("cpu" if kept and place.type in NO_DOUBLE else place)

        return super()._apply(only_move, exclude_state)


def _choose_target(num_classes: int, target: str | None) -> str:
    if target is None and num_classes == 2:
        raise ValueError(
            "two classes can be read in two ways: say target='positive' to ask about the "
            "second one, with 1-D scores, or target='top-label' to ask about the larger."
        )
    target = "top-label" if target is None else target
    check_choice(target, "target", ("top-label", "positive"))
    if target == "positive" and num_classes > 2:
        raise ValueError(
            f"target='positive' needs a binary problem, got {num_classes} classes."
        )
    return target

"""Rows and sums as tensors, on the device the predictions are on."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from calibrant._base.checks import RowError, check_kind
from calibrant._inputs.arrays import ROW_SUM_TOLERANCE
from calibrant._inputs.divergences import BUILT_IN
from calibrant._inputs.predictions import (
    MOST_CLUSTER_GROUPS,
    hash_names,
    read_predictions,
)
from calibrant._rows import compiled, engines
from calibrant._rows.reduce import reduce_to_columns
from calibrant._sketch import cells as cell_sums
from calibrant._sketch import clusters
from calibrant._sketch.grid import CELLS, LOG_ODDS_CELLS, LOG_ODDS_REACH, ORDER, STEPS
from calibrant._sketch.sketch import Sketch

# -- one pass over the matrix on its own device: scores and labels to columns -----------
#
# The same columns as `calibrant._rows.reduce` gives. Nothing is read back while it runs:
# rows that break a rule are marked, and the caller decides when to look.

NO_DOUBLE = frozenset({"mps"})
"""Devices without double precision: what is left of their rows goes to the CPU."""


class TensorColumns(NamedTuple):
    """What is left of n rows: float64 tensors of n numbers.

    `brier` and `log` are the full losses of each row; `predicted` is the class of the
    confidence, or None for scores of one positive class.
    """

    confidence: Tensor
    log_odds: Tensor
    hit: Tensor
    brier: Tensor
    log: Tensor
    predicted: Tensor | None

    def take(self, rows: slice) -> TensorColumns:
        """Some of the rows."""
        h, z, hit, brier, log = (x[rows] for x in self[:5])
        predicted = None if self.predicted is None else self.predicted[rows]
        return TensorColumns(h, z, hit, brier, log, predicted)


class Marked(NamedTuple):
    """Columns, and which of their rows must not be used.

    `distributions` are logits that look like probabilities: if all do, they are.
    """

    columns: TensorColumns
    bad_scores: Tensor
    bad_labels: Tensor
    distributions: Tensor


def reduce_rows(
    y: Tensor, *, probs: Tensor | None = None, logits: Tensor | None = None
) -> TensorColumns:
    """Reduce predictions to columns, on the device they are on.

    Parameters
    ----------
    y : (n,) tensor of int
        The observed classes; 0 and 1, of any dtype, beside 1-D scores.
    probs, logits : tensor
        Exactly one of them: n x k, n x k x ... with a label for each place, or 1-D for
        the positive class of a binary problem. Any floating dtype.

    Returns
    -------
    TensorColumns
        Confidence, log-odds, hit, Brier and log loss of each row. The matrix is read in
        single precision, or in double if it is given so. Log-odds are exact where the
        confidence rounds to 1.

    Notes
    -----
    The host waits for the device once, at the end, to see whether a row breaks a rule.

    Examples
    --------
    >>> import torch
    >>> from calibrant.torch import reduce_rows
    >>> columns = reduce_rows(torch.tensor([0, 2]), logits=torch.tensor([[60.0, 0, 0]] * 2))
    >>> columns.confidence.tolist()
    [1.0, 1.0]
    >>> [round(z, 4) for z in columns.log_odds.tolist()]
    [59.3069, 59.3069]
    >>> columns.log[1].item()
    60.0
    """
    if (probs is None) == (logits is None):
        raise TypeError("pass exactly one of probs= and logits=.")
    kind = "probs" if logits is None else "logits"
    scores = probs if logits is None else logits
    assert scores is not None
    check_tensors(y=y, **{kind: scores})
    with torch.no_grad():
        rows, labels = as_rows(scores, y, kind)
        found = mark(rows, labels, kind)
        bad = (found.bad_scores | found.bad_labels).any()
        if bool(bad | found.distributions.all()):
            _refuse(rows, labels, kind, found.bad_labels)
    return found.columns


def check_tensors(**given: Any) -> None:
    """Raise one clear error unless these arguments are each a tensor."""
    for name, value in given.items():
        check_kind(value, Tensor, name)


def check_order(
    scores: Tensor, y: Tensor, kind: str, *, scores_first: bool = False
) -> None:
    """Raise one clear error if labels and scores were swapped."""
    if y.is_floating_point() and not scores.is_floating_point():
        raise TypeError(
            f"{kind} must be floating-point numbers, got {scores.dtype}, and the labels "
            f"are {y.dtype}: it looks as if labels and scores were swapped. Here labels "
            f"come {'second' if scores_first else 'first'}."
        )


def as_rows(scores: Tensor, y: Tensor, kind: str) -> tuple[Tensor, Tensor]:
    """Scores as n or n x k and labels as n, of agreeing shapes."""
    check_order(scores, y, kind)
    if not scores.is_floating_point():
        raise TypeError(f"{kind} must be floating-point numbers, got {scores.dtype}.")
    if scores.shape[:1] + scores.shape[2:] != y.shape or scores.ndim == 0:
        raise ValueError(
            f"y must have one label for each row of {kind}: {tuple(y.shape)} for "
            f"{tuple(scores.shape)}, the classes of which come second."
        )
    if scores.ndim == 1:
        return scores, y
    if scores.shape[1] < 2:
        raise ValueError(
            f"{kind} has one column, but needs one per class. For a binary problem pass "
            "the scores of the positive class as a 1-D tensor."
        )
    if y.is_floating_point():
        raise TypeError(f"y must hold class numbers, got {y.dtype}.")
    return scores.movedim(1, -1).reshape(-1, scores.shape[1]), y.reshape(-1)


def mark(scores: Tensor, y: Tensor, kind: str) -> Marked:
    """The columns of rows, and which of them break a rule; the host need not wait."""
    if scores.ndim == 1:
        return _positive(scores, y, kind)
    k = scores.shape[1]
    known = (y >= 0) & (y < k)
    labels = torch.where(known, y, 0).long()
    work = scores if scores.dtype == torch.float64 else scores.float()
    reduced = _reduced(work, labels, kind, tolerance_of(scores))
    if kind == "logits":
        columns, bad = reduced or _of_logits(work, labels)
        off = (_wide(work.sum(dim=1)) - 1).abs()
        like = (off <= tolerance_of(scores)) & (_wide(work.amin(dim=1)) >= 0)
    else:
        columns, bad = reduced or _of_probs(work, labels, tolerance_of(scores))
        like = torch.zeros_like(bad)
    return Marked(columns, bad, ~known.to(bad.device), like)


def _reduced(
    scores: Tensor, labels: Tensor, kind: str, tolerance: float
) -> tuple[TensorColumns, Tensor] | None:
    """Columns, and rows that break a rule, by the compiled loop; None if it cannot.

    It reads the memory of the processor, so it is for tensors that are there.
    """
    here = scores.device.type == labels.device.type == "cpu"
    if not (here and engines.wanted("auto")):
        return None
    n, k = scores.shape
    found, predicted = np.empty((5, n)), np.empty(n, np.int32)
    offends = np.zeros(n, np.bool_)
    given: Any = scores.detach().contiguous().numpy(), labels.contiguous().numpy()
    filled: Any = *found, predicted, offends
    compiled.loops.reduce(kind == "logits", tolerance, k, *given, *filled)
    h, z, hit, brier, log = torch.from_numpy(found).unbind()
    best = torch.from_numpy(predicted).long()
    columns = TensorColumns(h, z, hit, brier, log, best)
    return columns, torch.from_numpy(offends)


def tolerance_of(scores: Tensor) -> float:
    """How far a row of probabilities may be from summing to 1."""
    return ROW_SUM_TOLERANCE[str(scores.dtype).removeprefix("torch.")]


def _wide(x: Tensor) -> Tensor:
    """One number per row, in double precision."""
    return (x.cpu() if x.device.type in NO_DOUBLE else x).double()


def _at(matrix: Tensor, column: Tensor) -> Tensor:
    return _wide(matrix.gather(1, column[:, None])[:, 0])


def _of_logits(z: Tensor, y: Tensor) -> tuple[TensorColumns, Tensor]:
    # Relative to the second largest entry nothing underflows that counts, and the sums
    # leave the largest out, so that 1 - h and every loss keep their relative accuracy.
    best = z.argmax(dim=1)
    others = z.scatter(1, best[:, None], -torch.inf)
    second = others.amax(dim=1)
    floor = torch.where(second.isneginf(), 0.0, second)  # no other class is possible
    others.sub_(floor[:, None]).exp_()
    sums, squares = _wide(others.sum(dim=1)), _wide(others.square_().sum(dim=1))

    top = _at(z, best)
    gap = _wide(second) - top
    rest, squares = gap.exp() * sums, (2 * gap).exp() * squares
    behind = top - _at(z, y)
    hit = (best == y).to(top.device)
    scale, e_y = 1 / (1 + rest), torch.exp(-behind)
    missing = torch.where(hit, rest, 1 + rest - e_y) * scale
    spread = torch.where(hit, squares, 1 + (squares - e_y * e_y).clamp(min=0))
    columns = TensorColumns(
        confidence=scale,
        log_odds=-(gap + sums.log()),
        hit=hit.double(),
        brier=missing * missing + spread * scale * scale,
        log=rest.log1p() + behind,
        predicted=best.to(top.device),
    )
    return columns, ~top.isfinite()


def _of_probs(p: Tensor, y: Tensor, tolerance: float) -> tuple[TensorColumns, Tensor]:
    best = p.argmax(dim=1)
    others = p.scatter(1, best[:, None], 0.0)
    rest, least = _wide(others.sum(dim=1)), _wide(others.amin(dim=1))
    squares = _wide(others.square_().sum(dim=1))

    top, p_y = _at(p, best), _at(p, y)
    hit = (best == y).to(top.device)
    wrong = top * top + (squares - p_y * p_y).clamp(min=0)
    columns = TensorColumns(
        confidence=top.clamp(max=1),
        log_odds=top.log() - rest.log(),
        hit=hit.double(),
        brier=(1 - p_y).square() + torch.where(hit, squares, wrong),
        log=-p_y.clamp(max=1).log(),
        predicted=best.to(top.device),
    )
    return columns, ~((top + rest - 1).abs() <= tolerance) | (least < 0)


def _positive(scores: Tensor, y: Tensor, kind: str) -> Marked:
    x, labels = _wide(scores), _wide(y)
    if kind == "logits":
        bad, z = ~(x < torch.inf), x
        h = z.sigmoid()
    else:
        bad, h = ~((x >= 0) & (x <= 1 + tolerance_of(scores))), x.clamp(max=1)
        z = h.log() - torch.log1p(-h)
    hit = (labels == 1).double()
    loss = softplus(torch.where(hit > 0, -z, z))
    columns = TensorColumns(h, z, hit, (hit - h).square(), loss, None)
    return Marked(columns, bad, (labels != 0) & (labels != 1), torch.zeros_like(bad))


def softplus(x: Tensor) -> Tensor:
    """log(1 + e^x) without overflow; PyTorch's own is x itself beyond 20."""
    return x.clamp(min=0) + torch.log1p(torch.exp(-x.abs()))


def _refuse(scores: Tensor, y: Tensor, kind: str, bad_labels: Tensor) -> None:
    """Raise one error for all rows that break a rule."""
    if bool(bad_labels.any()):
        k = 2 if scores.ndim == 1 else scores.shape[1]
        row, many = int(bad_labels.int().argmax()), int(bad_labels.sum())
        rule, what = f"y must be in 0..{k - 1}, the column numbers;", y[row].item()
        raise RowError(rule, row, f"is {what}", many, len(y), "outside")
    # The NumPy reduction has the words: it names the row and the reason.
    given: dict[str, Any] = {kind: scores}
    target = "positive" if scores.ndim == 1 else "top-label"
    reduce_to_columns(read_predictions(torch.zeros_like(y), target=target, **given))


# -- sums by cell on the device: what `calibrant._sketch` keeps of rows, as tensors -----
#
# All are sums, least or largest values over rows, so those of several devices or
# processes are put together entry by entry.


class RowWeights(NamedTuple):
    """How much rows count: tensors of n numbers, each None where it is not needed.

    `mass` is f w, f how many rows a row stands for and w its importance; `squared` is
    f w^2, of rows with importance; `times` is f. `group` is the group of the cluster.
    """

    mass: Tensor | None = None
    squared: Tensor | None = None
    times: Tensor | None = None
    group: Tensor | None = None

    def take(self, rows: slice) -> RowWeights:
        """Those of some of the rows."""
        return RowWeights(*(None if x is None else x[rows] for x in self))

    def __bool__(self) -> bool:
        return any(x is not None for x in self)


def read_weights(
    sample_weight: Tensor | None, frequency: Tensor | None, like: Tensor
) -> tuple[RowWeights, Tensor]:
    """The weights of rows, and which break a rule; the host need not wait."""
    w, f = (_one_each(x, like) for x in (sample_weight, frequency))
    bad = torch.zeros_like(like, dtype=torch.bool)
    for x in (w, f):
        bad = bad if x is None else bad | ~((x >= 0) & x.isfinite())
    if f is not None:
        bad = bad | (f != f.floor())
    if w is None:
        return RowWeights(f, None, f), bad
    mass = w if f is None else w * f
    return RowWeights(mass, mass * w, f), bad


def _one_each(x: Tensor | None, like: Tensor) -> Tensor | None:
    if x is None:
        return None
    if x.numel() != len(like):
        raise ValueError(
            f"weights, counts and clusters must be one for each label: got {x.numel()} "
            f"for {len(like)}."
        )
    return _wide(x.reshape(-1)).to(like.device)


def group_of(cluster: Tensor, like: Tensor) -> Tensor:
    """The group of the cluster of each row, as a sketch has it; the host waits."""
    if cluster.is_floating_point() or cluster.numel() != len(like):
        raise ValueError(
            "cluster must be a tensor of whole numbers, one for each label; got "
            f"{cluster.numel()} of {cluster.dtype} for {len(like)}."
        )
    found, number = torch.unique(cluster.reshape(-1), return_inverse=True)
    hashed = hash_names(found.cpu().numpy()) % np.uint64(MOST_CLUSTER_GROUPS)
    groups = torch.from_numpy(hashed.astype(np.int64))
    return groups.to(number.device)[number].to(like.device)


PART = 1 << 14
"""Rows added at a time; their contributions take 5 MB."""

EXTREMES = {"low": "min", "high": "max"}
"""How tensors are put together that are not sums."""

Sums = Mapping[str, Tensor]


TOTALS = cell_sums.Totals.__slots__[:5]

SQUARES = (*cell_sums.SQUARES, *dict.fromkeys(cell_sums.WITHOUT_WEIGHTS))
"""Sums of squared weights, and what they would be if rows with weights only counted."""


def empty(classes: int, *, clustered: bool = False) -> dict[str, Tensor]:
    """The sums of no rows; `classes` is the number of classes that may be predicted.

    `table` has the sums of each cell, `low` and `high` its least and largest confidence;
    `totals` those of `calibrant._sketch.cells.Totals` for Brier and log; `certain` counts h = 0 and
    h = 1; `within` has the residuals of each predicted class, if these are kept. `more` is
    how many rows there are beside those in `rows` by what their counts say. `squares` and
    `squared_totals` are those of rows with importance alone, so that others cost nothing;
    `clusters` has the sums of each group of clusters in each log-odds cell.
    """
    zeros = {
        "table": (STEPS, len(cell_sums.fields_of(BUILT_IN))),
        "totals": (len(BUILT_IN), len(TOTALS)),
        "certain": (2,),
        "more": (),
        "squares": (STEPS, len(SQUARES)),
        "squared_totals": (len(BUILT_IN), 4),
    }
    if clustered:
        width = len(clusters.FIELDS) + len(BUILT_IN)
        zeros["clusters"] = (MOST_CLUSTER_GROUPS * LOG_ODDS_CELLS, width)
    if 0 < classes * cell_sums.CLASS_BINS <= cell_sums.MOST_CLASS_BINS:
        zeros["within"] = (classes, cell_sums.CLASS_BINS)
    return {
        "rows": torch.zeros((), dtype=torch.int64),
        "low": torch.full((STEPS,), torch.inf, dtype=torch.float64),
        "high": torch.full((STEPS,), -torch.inf, dtype=torch.float64),
        **{name: torch.zeros(x, dtype=torch.float64) for name, x in zeros.items()},
    }


def add_rows(
    sums: Sums, columns: TensorColumns, keep: Tensor, weights: RowWeights
) -> None:
    """Add rows to the sums, in place; rows that are not kept leave no trace."""
    if not weights and _added(sums, columns, keep):
        return
    for start in range(0, len(keep), PART):
        part = slice(start, start + PART)
        _add_part(sums, columns.take(part), keep[part], weights.take(part))


def _added(sums: Sums, columns: TensorColumns, keep: Tensor) -> bool:
    """Whether the compiled loop could add the rows: all of it in the processor's memory."""
    here = {x.device.type for x in (*sums.values(), *columns[:5], keep)} == {"cpu"}
    here = here and all(x.is_contiguous() for x in sums.values())
    if columns.predicted is None or not (here and engines.wanted("auto")):
        return False
    names = "table", "low", "high", "totals", "certain"
    within = sums.get("within")
    given: Any = [
        *(sums[x] for x in names),
        within,
        keep,
        columns.predicted,
        *columns[:5],
    ]
    arrays: Any = [
        None if x is None else x.detach().contiguous().numpy() for x in given
    ]
    bins = 0 if within is None else cell_sums.CLASS_BINS
    arrays.append(np.empty(7 * len(keep)))
    compiled.loops.add_batch(bins, *arrays)
    sums["rows"].add_(keep.sum())
    return True


def _add_part(
    sums: Sums, columns: TensorColumns, keep: Tensor, weights: RowWeights
) -> None:
    if weights.mass is not None:
        keep = keep & (weights.mass > 0)
    weights = RowWeights(
        *(None if x is None else torch.where(keep, x, 0) for x in weights)
    )
    h, z, hit, brier, log = (torch.where(keep, x, 0.0) for x in columns[:5])
    losses = torch.stack([brier, log])
    own, w = cell_of(h, CELLS), keep.double()
    cell = own + cell_of_log_odds(h)
    if weights.mass is not None:
        w = weights.mass
    table = _contributions(h, z, hit, losses, own)
    sums["table"].index_add_(0, cell, table * w[:, None])
    sums["low"].scatter_reduce_(0, cell, torch.where(keep, h, torch.inf), "amin")
    sums["high"].scatter_reduce_(0, cell, torch.where(keep, h, -torch.inf), "amax")
    totals = torch.where(keep, _totals(h, z, hit, losses), 0.0)
    certain = torch.stack([z.isneginf(), z.isposinf()]).double()
    if weights.mass is not None:
        totals, certain = torch.where(keep, totals * w, 0.0), certain * w
    sums["totals"].add_(totals.sum(dim=2))
    sums["certain"].add_(certain.sum(dim=1))
    sums["rows"].add_(keep.sum())
    if weights:
        _add_weights(sums, cell, (h, hit, losses, w), weights)
    if "within" in sums and columns.predicted is not None:
        place = columns.predicted * cell_sums.CLASS_BINS + cell_of(
            h, cell_sums.CLASS_BINS
        )
        sums["within"].view(-1).index_add_(0, place, (hit - h) * w)


def _add_weights(
    sums: Sums, cell: Tensor, rows: tuple[Tensor, ...], weights: RowWeights
) -> None:
    """Add what counts, importance and clusters of rows ask for beside the other sums."""
    h, hit, losses, w = rows
    finite, r, w2 = _or_zero(losses), hit - h, w
    if weights.times is not None:
        sums["more"].add_((weights.times - (w > 0).double()).sum())
    if weights.squared is not None:
        w2 = weights.squared
        w3 = torch.where(w > 0, w2 * w2 / w, 0.0)
        terms = [w2, w2 * r, w2 * r * r, w3 * r * r, w, w * r, w * r * r]
        sums["squares"].index_add_(0, cell, torch.stack(terms, dim=1))
        pairs = [x * y for x in (w2, w) for y in (finite, finite * finite)]
        sums["squared_totals"].add_(torch.stack(pairs, dim=1).sum(dim=2))
    if weights.group is not None:
        place = weights.group * LOG_ODDS_CELLS
        place += (cell - cell_of(h, CELLS) - 1).clamp(0, LOG_ODDS_CELLS - 1)
        terms = [w, w * hit, w * r, w * h, w2, *(w * finite)]
        sums["clusters"].index_add_(0, place, torch.stack(terms, dim=1))


def _contributions(
    h: Tensor, z: Tensor, hit: Tensor, losses: Tensor, cell: Tensor
) -> Tensor:
    """What each row adds to each field of its cell, in the order of `fields_of`."""
    finite_z, (brier, log), lost = _or_zero(z), _or_zero(losses), ~losses.isfinite()
    values = torch.stack([torch.ones_like(h), hit, brier, 2 * h, log, finite_z], dim=1)
    powers = torch.vander(h * CELLS - cell - 0.5, ORDER, increasing=True)
    moments = (values[:, :, None] * powers[:, None, :]).flatten(1)
    residuals = torch.vander(hit - h, 5, increasing=True)[:, 1:]
    cut = z.clamp(-LOG_ODDS_REACH, LOG_ODDS_REACH)
    others = torch.stack([hit * hit, h, finite_z, cut], dim=1)
    return torch.cat([moments, residuals, others, lost.double().T], dim=1)[
        :, _places_of_fields()
    ]


@cache
def _places_of_fields() -> list[int]:
    """Where the fields of a cell are among what `_contributions` puts together."""
    values = "weight", "hit", "brier_loss", "brier_slope", "log_loss", "log_slope"
    found = [f"{x}_{j}" for x in values for j in range(ORDER)]
    found += ["r1", "r2", "r3", "r4", "hit2", "h", "finite_z", "z"]
    found += [f"{x}_infinite" for x in BUILT_IN]
    return [found.index(name) for name in cell_sums.fields_of(BUILT_IN)]


def _totals(h: Tensor, z: Tensor, hit: Tensor, losses: Tensor) -> Tensor:
    """What each row adds to `Totals`, for Brier and for log."""
    finite = _or_zero(losses)
    unit = torch.stack([(hit - h).square(), softplus(torch.where(hit > 0, -z, z))])
    phi_hit = torch.stack([hit, torch.zeros_like(hit)])  # a^2, and no entropy at 0 or 1
    tangent = torch.stack([-h * h, torch.where(z.isfinite(), -softplus(z), 0.0)])
    return torch.stack([finite, finite * finite, unit, phi_hit, tangent], dim=1)


def _or_zero(x: Tensor) -> Tensor:
    return torch.where(x.isfinite(), x, 0.0)


def cell_of(h: Tensor, cells: int) -> Tensor:
    """As `calibrant._sketch.grid.cell_of`: number of the right-closed cell that holds h."""
    cell = torch.ceil(h * cells) - 1
    cell -= (h <= cell / cells).double()  # the product rounded up across an edge
    cell += (h > (cell + 1) / cells).double()
    return cell.clamp(min=0).long()


def cell_of_log_odds(h: Tensor) -> Tensor:
    """As `calibrant._sketch.grid.log_odds_cell`, from the log-odds of h itself."""
    z = h.log() - torch.log1p(-h)
    scaled = z.clamp(-LOG_ODDS_REACH, LOG_ODDS_REACH) + LOG_ODDS_REACH
    scaled *= LOG_ODDS_CELLS / (2 * LOG_ODDS_REACH)
    cell = scaled.long().clamp(max=LOG_ODDS_CELLS - 1) + 1
    cell = torch.where(z.isneginf(), 0, cell)
    return torch.where(z.isposinf(), LOG_ODDS_CELLS + 1, cell)


def sketch_of(sums: Sums, target: str, classes: tuple[Hashable, ...]) -> Sketch:
    """The sums as a sketch on the host, to be evaluated, merged or saved."""
    if not int(sums["rows"]):
        return Sketch(target=target, classes=classes)
    arrays = {name: x.detach().cpu().numpy().copy() for name, x in sums.items()}
    cells = cell_sums.Cells(
        BUILT_IN, rows=int(arrays["rows"]), within=arrays.get("within")
    )
    cells.certain_no, cells.certain_yes = arrays["certain"].tolist()
    cells.table = arrays["table"].T.copy()
    cells.count = float(cells.rows + arrays["more"])
    cells.low, cells.high = arrays["low"], arrays["high"]
    for name, total in zip(BUILT_IN, arrays["totals"].tolist(), strict=True):
        cells.totals[name] = cell_sums.Totals.of_counted(*total)
    if arrays["squares"].any():
        _put_squares(cells, arrays["squares"].T, arrays["squared_totals"])
    if "clusters" in arrays:
        cells.clusters = _clusters_of(arrays["clusters"])
    kind = cell_sums.Kind(target, classes, BUILT_IN, clustered="clusters" in arrays)
    return Sketch.of(kind, cells)


LITTLE = 1e-9
"""Share of a weight below which what is left of it is round-off."""


def _put_squares(
    cells: cell_sums.Cells, squares: NDArray[Any], totals: NDArray[Any]
) -> None:
    """Add sums of squared weights to those of the rows that only count."""
    own, plain = squares[:4], dict(zip(SQUARES[4:], squares[4:], strict=True))
    others = cells["weight_0"] - plain["weight_0"]
    only = others > LITTLE * plain["weight_0"]  # rows without importance are there too
    rest = [cells[name] - plain[name] for name in cell_sums.WITHOUT_WEIGHTS]
    cells.squares = own + np.where(only, rest, 0.0)
    for total, row in zip(cells.totals.values(), totals.tolist(), strict=True):
        rest_of = np.array([total.loss, total.loss2]) - row[2:]
        total.w2_loss, total.w2_loss2 = (row[:2] + rest_of * only.any()).tolist()


def _clusters_of(sums: NDArray[Any]) -> clusters.ClusterSums:
    some = np.flatnonzero(sums[:, 0])
    group, cell = np.divmod(some, LOG_ODDS_CELLS)
    own = np.ascontiguousarray(sums[some].T)
    return clusters.ClusterSums(group.astype(np.uint64), cell, own, folded=True)

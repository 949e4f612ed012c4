"""Predictions out of files: all at once, or in batches for what is larger than memory."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from calibrant._base.checks import RowError, check_number, out_of_order
from calibrant.files import _sources as sources
from calibrant.files._duckdb import TRUTHS, is_missing
from calibrant.files._open import (
    Paths,
    check_no_copies,
    find_files,
    format_of,
    open_all,
)
from calibrant.files._plan import (
    Plan,
    Roles,
    ScoreKind,
    SharedScale,
    all_digits,
    as_roles,
    make_plan,
)
from calibrant.files._sources import TASK, Block, FileError, Request, Source


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """Predictions as they were found, by the names `evaluate` gives them.

    Attributes
    ----------
    kind : {"probs", "logits", "confidence"}
        What the scores are.
    scores, y : array
        Scores, and the labels (or, for confidences, whether they were right; or None if
        rows may be without labels, and are).
    sample_weight, group : array or None
        Importance and subgroup of each row.
    classes : tuple or None
        Names of the classes, if labels are names.
    path, start
        The file and the number of the first row in it.
    frequency, cluster : array or None
        How many rows each stands for, and which of them depend on each other.
    ids : array or None
        What identifies each row, if that was asked for and the file has it.
    plan : Plan or None
        Which column or array was taken for what.
    rows : array or None
        Numbers of the rows in the file, if some were left out for what they lack.
    dropped, dropped_ids : int, array or None
        How many were left out, and what identifies them, as `ids`.
    dropped_groups : array or None
        Groups of those that were left out.
    dropped_silent : array or None
        Whether those that were left out have no score; else they lack a label or weight.
    files : dict of Path to int
        How many rows each file has, if there are several.
    unpaired, absent : Found or None
        Rows that lack nothing, and are not compared: another file has no score for them,
        or no such row at all.
    choices : bool
        Whether scores are those of options to choose from, which differ from question to
        question, so that ``"top-label"`` is what is asked of them.
    others : dict of str to array
        What else the file has of each row, if that was asked for.
    """

    kind: ScoreKind
    scores: NDArray[Any]
    y: Any
    sample_weight: NDArray[Any] | None
    group: NDArray[Any] | None
    classes: tuple[Any, ...] | None
    path: Path
    start: int = 0
    frequency: NDArray[Any] | None = None
    cluster: NDArray[Any] | None = None
    ids: NDArray[Any] | None = None
    plan: Plan | None = None
    rows: NDArray[Any] | None = None
    dropped: int = 0
    dropped_ids: NDArray[Any] | None = None
    choices: bool = False
    others: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    dropped_groups: NDArray[Any] | None = None
    unpaired: Found | None = None
    absent: Found | None = None
    dropped_silent: NDArray[Any] | None = None
    files: Mapping[Path, int] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.scores)

    def in_file(self, error: RowError) -> RowError:
        """The same error, which counts rows as the file does."""
        before = self.start
        if self.rows is not None:
            before = int(self.rows[error.row]) - error.row
        return error.shifted(before) if before else error

    @property
    def silent(self) -> int:
        """How many were left out because they have no score."""
        lost = self.dropped_silent
        return self.dropped if lost is None else int(lost.sum())

    @property
    def pairs(self) -> bool:
        """Whether these are confidences, for `evaluate_pairs`."""
        return self.kind == "confidence"

    @property
    def arguments(self) -> dict[str, Any]:
        """Keywords for `calibrant.evaluate`, or for `calibrant.evaluate_pairs`."""
        given: dict[str, Any] = {"sample_weight": self.sample_weight}
        rare = {"frequency": self.frequency, "cluster": self.cluster}
        given |= {name: column for name, column in rare.items() if column is not None}
        if self.pairs:
            return {"correct": self.y, "confidence": self.scores, **given}
        return {"y": self.y, self.kind: self.scores, "classes": self.classes, **given}

    @property
    def labels_by_file(self) -> Iterator[tuple[Path, Any]]:
        """The labels that each file has."""
        start = 0
        for path, rows in (self.files or {self.path: len(self)}).items():
            yield path, self.y[start : start + rows]
            start += rows

    def target(self, said: str | None) -> str | None:
        """What is asked of the rows: as said, or that of options to choose from."""
        if self.pairs and said is not None:
            only_one = "there is one question of an answer, whether it is correct"
            raise FileError(
                self.path,
                f"--target {said} does not apply to stated confidences: {only_one}; leave "
                "it out.",
            )
        return "top-label" if said is None and self.choices else said


Classes: TypeAlias = tuple[Any, ...] | None


def found_in(
    path: Path, plan: Plan, block: Block, classes: Classes, start: int, roles: Roles
) -> Found:
    """One block of a file, checked for what is missing; rows of weight 0 may lack it."""
    block, rows, dropped = _as_numbers(path, plan, block, start, roles), None, 0
    dropped_ids = None if plan.id is None else block[plan.id][:0]
    dropped_groups = None if plan.group is None else block[plan.group][:0]
    dropped_silent = np.zeros(0, bool)
    if roles.drop_missing:
        truths = plan.label, plan.correct, plan.pred
        named = plan.group if "group" in roles.given else None  # not a log's own task
        others = (*truths, plan.weight, plan.frequency, named)
        kept = ~lacking(*(block[x] for x in (*plan.scores, *others) if x is not None))
        rows, dropped = start + np.flatnonzero(kept), int((~kept).sum())
        dropped_ids = None if plan.id is None else block[plan.id][~kept]
        dropped_groups = None if plan.group is None else block[plan.group][~kept]
        dropped_silent = lacking(*(block[x] for x in plan.scores))[~kept]
        block = {name: values[kept] for name, values in block.items()}
    columns = [block[name] for name in plan.scores]
    scores = columns[0] if len(columns) == 1 else np.stack(columns, axis=1)
    missing = np.isnan(scores)
    weight, frequency = (
        _counted(path, block, name, missing, start)
        for name in (plan.weight, plan.frequency)
    )
    way_out = OR_A_WORD if plan.kind == "confidence" else OR_NO_WEIGHT
    _check_present(path, plan.scores, missing, start, way_out)
    single = scores.ndim == 1
    y, classes = _labels_or_hits(path, plan, block, classes, start, single=single)
    group, cluster, ids = (
        None if name is None else block[name]
        for name in (plan.group, plan.cluster, plan.id)
    )
    given = plan.kind, scores, y, weight, group, classes, path, start
    more = {name: block[name] for name in plan.others}
    found = Found(*given, frequency, cluster, ids, plan, rows, dropped, dropped_ids)
    lost: dict[str, Any] = {
        "dropped_groups": dropped_groups,
        "dropped_silent": dropped_silent,
    }
    return replace(found, **lost, others=more)


def _labels_or_hits(
    path: Path, plan: Plan, block: Block, classes: Classes, start: int, *, single: bool
) -> tuple[Any, Classes]:
    """Labels and the names of classes, or whether answers were right."""
    if plan.kind == "confidence":
        if plan.correct is not None:
            return _correct(path, block, plan.correct, start), classes
        return _right(path, plan, block, start), classes
    if plan.label is None:
        return None, classes
    y = _labels(path, block, plan.label, start)
    if single and classes is None:
        y = _yes_or_no(y)
    if classes is None and plan.stars is None:
        _check_order(path, plan.scores, y)
    return _named(path, y, classes, plan.stars)


COMMA = re.compile(r"[\d.]*,\d+ ?%?")
"""A number with a decimal comma."""

SPELT = {"yes": True, "no": False, "true": True, "false": False}
"""Words for what is so and what is not, in upper or lower case."""


def _yes_or_no(values: NDArray[Any]) -> NDArray[Any]:
    """Text as true and false, if all of it is yes, no, true or false."""
    if values.dtype.kind in "biuf":
        return values
    words = [SPELT.get(str(value).strip().lower()) for value in values]
    return values if None in words else np.array(words, bool)


def _correct(path: Path, block: Block, name: str, start: int) -> NDArray[Any]:
    """Whether answers are correct: numbers, true and false, yes and no."""
    values = _labels(path, block, name, start)
    found = _yes_or_no(values)
    if found.dtype.kind in "biuf":
        return found
    bad = [str(x).strip().lower() not in SPELT for x in values]
    row = bad.index(True)
    shown = f"row {start + row} of {sources.shorten(name)!r} is {values[row]!r}"
    raise FileError(path, f"{shown}; it must be 1 or 0, true or false, yes or no.")


def _as_numbers(
    path: Path, plan: Plan, block: Block, start: int, roles: Roles
) -> Block:
    """The same with numbers that are spelt 0,27 or 27% read, and per cent divided."""
    if not (roles.spelt or roles.drop_missing):
        return block
    found = dict(block)
    for name in filter(None, (*plan.scores, plan.weight, plan.frequency)):
        if found[name].dtype.kind not in "biuf":
            if name in plan.scores and roles.scale is not None:
                _check_words(path, name, found[name], start, roles)
            cells, found[name] = found[name], numbers_of(found[name], roles)
            _check_decimal(path, name, cells, start, roles)
            _check_numbers(path, name, cells, found[name], start, roles)
            if roles.percent and name in plan.scores:
                _check_signs(path, name, cells, found[name], start)
        if roles.percent and name in plan.scores:
            found[name] = found[name] / 100
    return found


def _check_decimal(
    path: Path, name: str, cells: NDArray[Any], start: int, roles: Roles
) -> None:
    """Refuse 0,27 without ``decimal``: it is a number, and must not pass for missing."""
    if roles.decimal is not None:
        return
    for row, cell in enumerate(cells):
        if COMMA.fullmatch(str(cell).strip()) and np.isnan(_number(cell, roles)):
            shown = f"row {start + row} of {sources.shorten(name)!r} is {cell!r}"
            raise FileError(path, f"{shown}; pass --decimal , to read it.")


def _check_numbers(
    path: Path,
    name: str,
    cells: NDArray[Any],
    found: NDArray[Any],
    start: int,
    roles: Roles,
) -> None:
    """Refuse 9O%, which is damaged: only NA, null, NaN and empty text are missing."""
    for row in np.flatnonzero(np.isnan(found)).tolist():
        if not is_empty(cells[row]):
            shown = f"row {start + row} of {sources.shorten(name)!r} is {cells[row]!r}"
            way_out = "write null where there is no answer"
            if not roles.percent:  # a scale is 0 to 1
                way_out += ", or pass --scale for words"
            if str(cells[row]).strip().endswith("%"):
                way_out = "write all of them alike, as 0.12 or, with --percent, as 12%"
            raise FileError(path, f"{shown}, which is no number; {way_out}.")


def is_empty(cell: Any) -> bool:
    """Whether a cell of text has nothing in it, or says so."""
    text = str(cell or "")
    return is_missing(text) or text.strip().lower() in ("nan", "null")


def _has_marks(cells: NDArray[Any] | None) -> bool:
    """Whether a cell is NA or its like."""
    named = set() if cells is None or cells.dtype != object else {*cells.tolist()}
    return any(name is not None and is_missing(name) for name in named)


def _without_marks(plan: Plan, block: Block) -> Block:
    """The same with NA beside yes and no as None: among other names, it may be a class."""
    found = dict(block)
    for name in filter(None, (plan.label, plan.correct)):
        if _has_marks(found[name]):
            cells = [None if is_empty(cell) else cell for cell in found[name]]
            known = {str(cell).strip().lower() for cell in cells if cell is not None}
            if known and known <= {*SPELT}:
                found[name] = np.array(cells, object)
    return found


def _check_clusters(found: Found) -> None:
    """Refuse NA, which would be one large cluster of all that have none."""
    if found.cluster is None or found.plan is None or not _has_marks(found.cluster):
        return
    row = next(
        i for i, x in enumerate(found.cluster) if x is not None and is_missing(x)
    )
    at = found.start + row if found.rows is None else int(found.rows[row])
    shown = f"row {at} of {sources.shorten(str(found.plan.cluster))!r}"
    raise FileError(
        found.path,
        f"{shown} is {found.cluster[row]!r}, which stands for no cluster; give rows that "
        "belong to no other a cluster of their own, or write the name out.",
    )


def _with_truths(path: Path, block: Block, names: frozenset[str], start: int) -> Block:
    """The same with labels that were read as text as numbers; what is none is refused."""
    found = dict(block)
    for name in names:
        numbers = np.array([_truth(cell) for cell in block[name]], np.float64)
        for row in np.flatnonzero(np.isnan(numbers)).tolist():
            if not is_empty(cell := block[name][row]):
                shown = f"row {start + row} of {sources.shorten(name)!r} is {cell!r}"
                first = "which is no number, as the first is"
                way_out = "leave the cell empty where there is none"
                raise FileError(path, f"{shown}, {first}; {way_out}.")
        wide = np.abs(numbers) >= sources.TOLD_APART
        exact = wide & np.isfinite(numbers)
        texts = np.array(
            [x if y else None for x, y in zip(block[name], exact, strict=True)], object
        )
        found[name] = sources.with_digits(numbers, texts)
    return found


def _truth(cell: Any) -> float:
    """A number, or true and false as 1 and 0; NaN for what is neither."""
    text = str(cell or "").strip().lower()
    if text in TRUTHS:
        return TRUTHS[text]
    try:
        return float(text)
    except ValueError:
        return np.nan


def _check_signs(
    path: Path, name: str, cells: NDArray[Any], found: NDArray[Any], start: int
) -> None:
    """Refuse 0.9 beside 90%: it is a fraction, and would be divided as well."""
    signed = np.array([str(cell).rstrip().endswith("%") for cell in cells], bool)
    bare = ~signed & (found > 0) & (found <= 1)
    if signed.any() and bare.any():
        row = int(np.argmax(bare))
        shown = f"row {start + row} of {sources.shorten(name)!r} is {cells[row]!r}"
        beside = f"without a sign beside {cells[int(np.argmax(signed))]!r}"
        count = f"{int(bare.sum()):,} of {len(cells):,} are such"
        way_out = "write all with a sign, or all as fractions and leave --percent out"
        raise FileError(path, f"{shown}, {beside} ({count}); {way_out}.")


def _check_words(
    path: Path, name: str, cells: NDArray[Any], start: int, roles: Roles
) -> None:
    """Refuse a word that the scale does not have."""
    empty = np.array([is_empty(cell) for cell in cells], bool)
    unknown = np.isnan(numbers_of(cells, roles)) & ~empty
    if unknown.any():
        row = int(np.argmax(unknown))
        shown = f"row {start + row} of {sources.shorten(name)!r} is {cells[row]!r}"
        known = sources.quoted(list(roles.words))
        way_out = "give the word a number, or write null where there is no answer"
        raise FileError(
            path, f"{shown}, which --scale does not have (it has {known}); {way_out}."
        )


def numbers_of(cells: NDArray[Any], roles: Roles) -> NDArray[np.float64]:
    """Numbers that are spelt as the roles say; NaN for what is none."""
    if not roles.spelt:
        with suppress(ValueError):
            return cells.astype(np.float64)  # None becomes NaN
    return np.array([_number(cell, roles) for cell in cells], np.float64)


def _shows_per_cent(plan: Plan, block: Block, roles: Roles) -> bool:
    """Whether a score is above 1, or has a sign of per cent."""
    for name in plan.scores:
        cells = block[name]
        if cells.dtype.kind not in "biuf":
            if any(str(cell).rstrip().endswith("%") for cell in cells):
                return True
            cells = numbers_of(cells, roles)
        if (cells > 1).any():
            return True
    return False


def _has_words(plan: Plan, block: Block, roles: Roles) -> bool:
    """Whether a score is a word of the scale."""
    columns = (block[x] for x in plan.scores if block[x].dtype.kind not in "biuf")
    written = (str(cell).strip().lower() for cells in columns for cell in cells)
    return any(text in roles.words for text in written)


def _number(cell: Any, roles: Roles) -> float:
    text = "" if cell is None else str(cell).strip()
    if text.lower() in roles.words:
        return roles.words[text.lower()]
    if roles.percent:
        text = text.removesuffix("%").rstrip()
    if roles.decimal is not None:
        text = text.replace(roles.decimal, ".")
    try:
        return float(text)
    except ValueError:
        return np.nan


def lacking(*columns: NDArray[Any]) -> NDArray[np.bool_]:
    """Rows without a value in any of these columns."""
    found = np.zeros(len(columns[0]), bool)
    for values in columns:
        if values.dtype.kind in "biuf":
            found |= _any(np.isnan(values))
        else:
            empty = [value is None or value == "" for value in values.tolist()]
            found |= np.array(empty, bool)
    return found


def _counted(
    path: Path, block: Block, name: str | None, missing: NDArray[Any], start: int
) -> NDArray[Any] | None:
    """A weight or count of each row; nothing is missing where it is 0."""
    if name is None:
        return None
    values = block[name]
    _check_present(path, [name], np.isnan(values), start)
    missing[values == 0] = False
    return values


def _right(path: Path, plan: Plan, block: Block, start: int) -> NDArray[Any]:
    """Whether the predicted class is the true one."""
    for name in (plan.pred, plan.label):
        _check_told_apart(path, block, str(name), start)
    said = _labels(path, block, plan.pred, start)
    true = _labels(path, block, plan.label, start)
    if said.dtype.kind in "biuf" and true.dtype.kind in "biuf":
        return said == true
    one, other = (sources.text_of(x).astype(object) for x in (said, true))
    return np.asarray(one == other, bool)  # text of NumPy would lose a last NUL


def _check_told_apart(path: Path, block: Block, name: str, start: int) -> None:
    """Refuse classes that are floats so large that different numbers became one."""
    values = block[name]
    if values.dtype.kind != "f":
        return
    wide = np.abs(values) >= 2.0 ** (np.finfo(values.dtype).nmant + 1)
    if wide.any():
        row = int(np.argmax(wide))
        raise FileError(
            path,
            f"row {start + row} of {sources.shorten(name)!r} is {values[row]:.17g}, and "
            f"{values.dtype} cannot tell such numbers apart; save them as integers, or "
            "as text.",
        )


def _labels(path: Path, block: Block, name: str | None, start: int) -> NDArray[Any]:
    assert name is not None
    values = sources.whole(block[name])
    known = values.dtype.kind in "biuf"
    missing = np.isnan(values) if known else np.array([v is None for v in values], bool)
    _check_present(path, [name], missing, start, LEAVE_OUT)
    return sources.text_of(values) if values.dtype.kind == "S" else values


LEAVE_OUT = "leave out rows where it is missing (--drop-missing)"
OR_NO_WEIGHT = f"{LEAVE_OUT}, or give them weight 0"
OR_A_WORD = f"{LEAVE_OUT}, say what words mean (--scale 'unsure=0.5'), or give such rows weight 0"


def _check_present(
    path: Path,
    names: Sequence[str],
    missing: NDArray[np.bool_],
    start: int,
    way_out: str = OR_NO_WEIGHT,
) -> None:
    """Refuse the first row with something missing; there is one name, or one a column."""
    if missing.any():
        row, *at = (int(i) for i in np.argwhere(missing)[0])
        name = sources.shorten(names[at[0] if at and len(names) > 1 else 0])
        raise FileError(
            path,
            f"row {start + row} of {name!r} is NaN, missing or not a number "
            f"({int(_any(missing).sum())} of {len(missing)} rows are); {way_out}"
            f"{_absent(missing)}.",
        )


def _absent(missing: NDArray[np.bool_]) -> str:
    """What to say of a row that has some of its scores."""
    if missing.ndim == 1 or not (_any(missing) & ~missing.all(axis=1)).any():
        return ""
    return "; an option that a question does not have may be missing with --ragged"


def _any(missing: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return np.asarray(missing if missing.ndim == 1 else missing.any(axis=1))


def _check_order(path: Path, columns: tuple[str, ...], y: NDArray[Any]) -> None:
    """Refuse columns whose numbers contradict their order, beside labels in numbers."""
    if y.dtype.kind in "biuf" and out_of_order(columns):
        numbers = ",".join(re.findall(r"\d+$", name)[0] for name in columns)
        raise FileError(
            path,
            f"the columns {sources.quoted(columns)} are not in the order of their numbers: which "
            "of them is class 0? Name the classes in the order of the columns, with "
            f"--classes {sources.shorten(numbers)}.",
        )


def _named(
    path: Path, y: NDArray[Any], classes: Classes, stars: tuple[str, ...] | None
) -> tuple[NDArray[Any], Classes]:
    """Labels and names that can be held against each other, as numbers or as text.

    Numbers among columns named by words are column numbers; among columns named by
    numbers they are names.
    """
    is_text = y.dtype.kind not in "biuf"
    if classes is None and stars is not None and (is_text or all_digits(stars)):
        classes = stars
    if classes is None and is_text and len(y):
        found = f"labels are text ({sources.shorten(str(y[0]))!r}); name the classes"
        way_out = "in the order of the columns, with --classes A,B,..."
        raise FileError(path, f"{found}, {way_out}")
    if classes is None or y.ndim != 1:
        return y, None
    if is_text or not all_digits(classes):
        return sources.text_of(y), tuple(str(name) for name in classes)
    numbers = tuple(int(name) for name in classes)
    return y, None if numbers == tuple(range(len(numbers))) else numbers


PER_ROW = (
    *("scores", "y", "sample_weight", "frequency", "cluster", "group"),
    *("ids", "rows"),
)
"""What there is one of for each row."""

OF_DROPPED = ("dropped_ids", "dropped_groups", "dropped_silent")
"""What there is one of for each row that was left out."""

BATCH_BYTES, MOST_ROWS, EVERYTHING = 1 << 25, 1 << 18, 1 << 62

MOST_RECORDS = 1 << 14
"""Rows of a batch that are objects of Python, which take a hundred times the numbers."""


def read(paths: Paths, roles: Roles | None = None) -> Found:
    """Read predictions that fit in memory.

    Parameters
    ----------
    paths : path or sequence of paths
        A file, a glob pattern, a folder of shards, or several of them.
    roles : Roles, optional
        Which array or column is what; else well-known names decide.

    Returns
    -------
    Found
        Pass its ``arguments`` to `calibrant.evaluate` or `calibrant.evaluate_pairs`.

    Examples
    --------
    >>> import tempfile, numpy as np, calibrant as cal
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = f"{folder.name}/model.npz"
    >>> np.savez(path, prob=[0.9, 0.2, 0.7], outcome=[1, 0, 1])
    >>> found = read(path)
    >>> found.kind, found.scores, found.y
    ('probs', array([0.9, 0.2, 0.7]), array([1, 0, 1]))
    >>> round(cal.brier(found.y, probs=found.scores), 4)
    0.0467
    >>> folder.cleanup()
    """
    found = list(_batches(paths, as_roles(roles), None, in_memory=True))
    if not found:
        several = [paths] if isinstance(paths, str | Path) else paths
        raise FileError(", ".join(map(str, several)), "has no rows.")
    whole = found[0] if len(found) == 1 else _join(found)
    return _without_single_task(whole, as_roles(roles))


def _without_single_task(found: Found, roles: Roles) -> Found:
    """The same without groups, if a harness wrote them and there is one task only."""
    named = found.plan is not None and found.plan.group == TASK and roles.group is None
    if not named or found.group is None or len(set(found.group.tolist())) > 1:
        return found
    assert found.plan is not None
    return replace(found, group=None, plan=replace(found.plan, group=None))


def batches(
    paths: Paths, roles: Roles | None = None, rows: int | None = None
) -> Generator[Found, None, None]:
    """Read predictions a batch at a time, in the order of files and rows.

    Parameters
    ----------
    paths, roles
        As in `read`.
    rows : int, optional
        Most rows of a batch; by default about 32 MB of scores.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> folder = tempfile.TemporaryDirectory()
    >>> path = f"{folder.name}/model.npz"
    >>> np.savez(path, prob=[0.9, 0.2, 0.7], outcome=[1, 0, 1])
    >>> [batch.y.tolist() for batch in batches(path, rows=2)]
    [[1, 0], [1]]
    >>> folder.cleanup()
    """
    if rows is not None:
        check_number(rows, "rows", 1, kind="a whole number")
        rows = int(rows)
    return _batches(paths, as_roles(roles), rows, in_memory=False)


def _batches(
    paths: Paths, roles: Roles, rows: int | None, *, in_memory: bool
) -> Generator[Found, None, None]:
    like: Found | None = None
    needless = _Needless(roles)
    if not roles.count_copies:
        check_no_copies(find_files(paths))
    options = options_in(paths, roles)
    for source in open_all(paths, roles.sep):
        plan = make_plan(source, roles)
        told = roles  # with the column of groups, be it found or named
        if "group" not in source.roles:
            told = replace(roles, group=plan.group)
        if options and isinstance(options[0], str):
            plan = replace(plan, stars=options)
        if in_memory:
            _check_size(source, plan)
        classes = _class_names(source, plan, roles)
        truths, start = _truths(source, plan, roles), 0
        size = EVERYTHING  # one piece needs no joining
        if source.is_table or not in_memory:
            size = rows or _batch_size(source, plan)
        text = _as_text(source, plan, roles) | truths
        exact = frozenset(filter(None, [plan.label, plan.pred]))
        lenient = roles.drop_missing or roles.with_others
        wanted = Request(plan.names, size, text, None, exact, lenient, options)
        for read in source.blocks(wanted):
            needless.look(plan, read)
            block = _with_truths(source.path, read, truths, start)
            if source.format in DELIMITED:
                block = _without_marks(plan, block)
            found = found_in(source.path, plan, block, classes, start, told)
            if source.format in DELIMITED:
                _check_clusters(found)
            if options:
                needless.ragged = True  # lists may differ, and need not
                found = _of_options(found, source)
            start += len(found) + found.dropped
            like = like or found
            _check_alike(like, found)
            yield found
    if like is not None:
        needless.check(like.path, plan.scores[0])


def _batch_size(source: Source, plan: Plan) -> int:
    """Rows to read at a time."""
    size = BATCH_BYTES // (8 * _width(source, plan.scores))
    most = MOST_ROWS if source.options_in is None else MOST_RECORDS
    return max(1, min(most, size))


def _truths(source: Source, plan: Plan, roles: Roles) -> frozenset[str]:
    """Labels to read as text, lest one that is no number pass for missing."""
    given = (plan.label, plan.correct, plan.pred)
    if not (roles.drop_missing and source.format in DELIMITED):
        return frozenset()
    return frozenset(x for x in given if x and source[x].kind == "number")


def _as_text(source: Source, plan: Plan, roles: Roles) -> frozenset[str]:
    """Columns of a table to read as text: names, and numbers that may be spelt."""
    if not source.is_table:
        return frozenset()
    named = [plan.group, plan.cluster, plan.id, *plan.others]
    if roles.spelt or (roles.drop_missing and source.format in DELIMITED):
        named += [*plan.scores, plan.weight, plan.frequency]
    return frozenset(x for x in filter(None, named) if len(source[x].shape) == 1)


class _Needless:
    """Options that nothing in the files called for: they were meant for other files."""

    def __init__(self, roles: Roles) -> None:
        self.roles = roles
        self.per_cent = not roles.percent
        self.decimal = roles.decimal is None
        self.ragged = not roles.ragged
        self.words = roles.scale is None

    def look(self, plan: Plan, block: Block) -> None:
        """At cells as they are written."""
        self.per_cent = self.per_cent or _shows_per_cent(plan, block, self.roles)
        if not self.decimal:
            names = filter(None, (*plan.scores, plan.weight, plan.frequency))
            columns = (block[x] for x in names if block[x].dtype.kind not in "biuf")
            mark = str(self.roles.decimal)
            self.decimal = any(mark in str(cell) for cells in columns for cell in cells)
        self.words = self.words or _has_words(plan, block, self.roles)

    def check(self, path: Path, score: str) -> None:
        """Refuse the first that was not needed."""
        name = repr(sources.shorten(score))
        if not self.per_cent:
            raise FileError(
                path,
                f"--percent divides by 100, but no value of {name} is above 1; leave "
                "--percent out, or bring all files to one scale, or write 0.5% for half a "
                "per cent.",
            )
        if not self.decimal:
            mark = self.roles.decimal
            none = f"no number of {name} is written with {mark!r}"
            raise FileError(path, f"--decimal is {mark!r}, but {none}; leave it out.")
        if not self.ragged:
            lists = f"{name} holds no lists that could differ in length"
            raise FileError(path, f"--ragged does not apply: {lists}; leave it out.")
        self._check_words(path, name)

    def _check_words(self, path: Path, name: str) -> None:
        scale, none = self.roles.scale, f"no value of {name} is a word of it"
        error = FileError(path, f"--scale has no effect: {none}; leave it out.")
        if isinstance(scale, SharedScale):
            scale.used = scale.used or self.words
            scale.without += [] if self.words else [error]
        elif not self.words:
            raise error


DELIMITED = ("csv", "tsv")
"""Formats in which a cell may hold anything: what is no number is not missing."""

WITH_OPTIONS = ("jsonl", "json", "eval")
"""Formats in which a score may be an object, or a list of any length."""


def options_in(paths: Paths, roles: Roles) -> tuple[Any, ...]:
    """Options of all questions in all files, if questions may differ in theirs."""
    found: dict[Any, None] = {}
    if format_of(find_files(paths)[0]).name not in WITH_OPTIONS:
        return ()
    for source in open_all(paths, roles.sep):
        name = make_plan(source, roles).scores[0]
        entry = source[name]
        differ = roles.ragged or source.ragged or entry.dtype == sources.OPTIONS
        if len(entry.shape) == 1 or not differ or source.options_in is None:
            return ()
        found |= dict.fromkeys(source.options_in(name))
    named = tuple(roles.classes or ())
    if found and {*found} <= {*named}:
        return named
    return tuple(sorted(found, key=lambda x: (len(str(x)), str(x))))


def _of_options(found: Found, source: Source) -> Found:
    """Scores with 0 in place of options that are not there, if they are probabilities."""
    absent = np.isneginf(found.scores)
    if found.y is not None and found.y.ndim == 1 and not source.sure:
        _check_true_option(found, absent)
    is_probs = found.kind == "probs"
    scores = np.where(absent, 0.0, found.scores) if is_probs else found.scores
    return replace(found, scores=scores, choices=True)


def _check_true_option(found: Found, absent: NDArray[np.bool_]) -> None:
    """Refuse a question whose true option has no score: it would be infinitely wrong."""
    names = range(absent.shape[1]) if found.classes is None else found.classes
    place = {name: i for i, name in enumerate(names)}
    for row, label in enumerate(found.y.tolist()):
        if label in place and absent[row, place[label]]:
            number = found.start + row if found.rows is None else int(found.rows[row])
            raise FileError(
                found.path,
                f"row {number} has no score for its true option, {label!r}. If a list of "
                "the likeliest tokens was cut short, ask for more of them, or evaluate "
                "the answer alone (--confidence).",
            )


def read_columns(
    paths: Paths, wanted: Sequence[str], sep: str | None = None
) -> dict[str, NDArray[Any]]:
    """Columns or arrays beside the predictions, by name or by a pattern such as ``x_*``.

    Examples
    --------
    >>> import tempfile, numpy as np
    >>> folder = tempfile.TemporaryDirectory()
    >>> np.savez(f"{folder.name}/a.npz", prob=[0.9, 0.2], outcome=[1, 0], age=[40, 62])
    >>> read_columns(f"{folder.name}/a.npz", ["age"])
    {'age': array([40, 62])}
    >>> folder.cleanup()
    """
    parts: dict[str, list[NDArray[Any]]] = {}
    for source in open_all(paths, sep):
        names = [_matching(source, pattern) for pattern in wanted]
        chosen = tuple(dict.fromkeys(name for found in names for name in found))
        for block in source.blocks(Request(chosen, MOST_ROWS)):
            for name in chosen:
                parts.setdefault(name, []).append(block[name])
    return {name: np.concatenate(blocks) for name, blocks in parts.items()}


def _matching(source: Source, pattern: str) -> list[str]:
    found = [name for name in source.names if fnmatchcase(name, pattern)]
    if not found:
        known = sources.quoted(source.names, most=8)
        raise FileError(source.path, f"has no column {pattern!r}; there are {known}.")
    return found


def _check_size(source: Source, plan: Plan) -> None:
    """Columns may be packed as tightly as archives: a constant costs no space."""
    if source.is_table and source.rows is not None:
        size = 8 * source.rows * _width(source, plan.names)
        sources.check_expansion(source.path, "it", size, source.path.stat().st_size)


OF_A_ROW = 200
"""Bytes that an evaluation takes for each row beside its scores, about."""


def memory_of(paths: Paths, roles: Roles | None = None) -> int:
    """Bytes that rows in files take when they are read and evaluated, about.

    Numbers count as float64, however few bytes they have in the file.
    """
    total = 0
    roles = roles or Roles()
    for source in open_all(paths, roles.sep):
        plan = make_plan(source, roles)
        rows = source.rows or source[plan.names[0]].shape[0]
        if rows is None:
            with sources.reading(source.path):
                rows = lines_in(source.stored or source.path)
        total += rows * (OF_A_ROW + 8 * _width(source, plan.names))
    return total


def lines_in(path: Path) -> int:
    """Line ends in a file of text: as many as rows, or more."""
    with path.open("rb") as file:
        pieces = iter(lambda: file.read(1 << 20), b"")
        return sum(max(piece.count(b"\n"), piece.count(b"\r")) for piece in pieces)


def _width(source: Source, names: Sequence[str]) -> int:
    """Numbers in a row of these entries."""
    return sum((source[name].shape[1:] or (1,))[0] or 1 for name in names)


def _class_names(source: Source, plan: Plan, roles: Roles) -> Classes:
    """Names said by the user, or in an array beside the scores."""
    if roles.classes is not None:
        if plan.kind == "confidence":
            raise FileError(source.path, "classes do not apply to confidences.")
        return tuple(roles.classes)
    if plan.classes is None:
        return None
    (block,) = source.blocks(Request((plan.classes,), EVERYTHING))
    return tuple(sources.text_of(block[plan.classes]).tolist())


def _check_alike(first: Found, other: Found) -> None:
    """Shards must hold the same kind of predictions, of the same classes."""
    for what, a, b in (
        ("kind of scores", first.kind, other.kind),
        ("number of classes", first.scores.shape[1:], other.scores.shape[1:]),
        ("class names", first.classes, other.classes),
        ("weight", first.sample_weight is None, other.sample_weight is None),
        ("frequency", first.frequency is None, other.frequency is None),
        ("cluster", first.cluster is None, other.cluster is None),
        ("group", first.group is None, other.group is None),
        ("columns", [*first.others], [*other.others]),
        ("lengths of lists", _widths(first), _widths(other)),
    ):
        if a != b:
            name = sources.quoted([first.path.name])
            problem = f"differs from {name} in its {what}; shards must be alike."
            raise FileError(other.path, problem)


def _widths(found: Found) -> list[tuple[int, ...]]:
    """Numbers that a row has of each column."""
    columns = [getattr(found, name) for name in PER_ROW]
    return [
        np.shape(x)[1:] for x in (*columns, *found.others.values()) if x is not None
    ]


def _join(found: list[Found]) -> Found:
    def joined(name: str) -> Any:
        parts = [getattr(one, name) for one in found]
        return None if parts[0] is None else np.concatenate(parts)

    dropped = sum(one.dropped for one in found)
    columns = {name: joined(name) for name in (*PER_ROW, *OF_DROPPED)}
    others = {
        name: np.concatenate([one.others[name] for one in found])
        for name in found[0].others
    }
    files: Counter[Path] = Counter()
    for one in found:
        files[one.path] += len(one)
    more: dict[str, Any] = {"others": others, "files": files if len(files) > 1 else {}}
    return replace(found[0], start=0, dropped=dropped, **more, **columns)

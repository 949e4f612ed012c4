"""From files to evaluations, to what is printed, to the exit code of gates."""

from __future__ import annotations

import json
import operator
import re
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from hashlib import blake2b, sha256
from math import inf, isclose, isnan, log, nan
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import click
import numpy as np

from calibrant._base.checks import MOST_NAME, RowError, one_line
from calibrant._base.comparison import Comparison
from calibrant._base.evaluation import Evaluation
from calibrant._base.measures import (
    BUILT_IN,
    HEADLINE,
    MEASURES,
    key_of,
    keys_as_said,
    plain,
)
from calibrant._base.records import Estimate, as_plain
from calibrant._base.write import target_of
from calibrant._inputs.arrays import ROW_SUM_TOLERANCE
from calibrant._verbs.by_group import macro_average, with_reason
from calibrant._verbs.compare import BY_ID, KEPT, has_ids, print_of_kept
from calibrant._verbs.evaluate import evaluate, evaluate_pairs
from calibrant.cli import _flags as flags
from calibrant.files._sources import text_of

if TYPE_CHECKING:
    from calibrant._sketch.sketch import Sketch
    from calibrant._verbs.compare_groups import Groups

IN_FILES, IN_MEMORY = 1 << 28, 1 << 31
"""Bytes of files, and of what their rows take, up to which all are read at once."""


def evaluate_models(
    models: Sequence[flags.Model],
    progress: flags.Steps,
    order: Callable[[Any], Any] = lambda found: found,
    **roles: Any,
) -> list[Evaluation]:
    """Evaluate each model; a file may be files joined by commas.

    What is read at once passes through `order` on its way.
    """
    found = []
    if all(_is_sketch(flags.paths_of(model.file)) for model in models):
        _check_unread(models[0].file, flags.roles_of(models[0].said))
    every = [flags.roles_of(model.said, **roles) for model in models]
    with sharing_scale(every) as each:
        for number, (model, own) in enumerate(zip(models, each, strict=True)):
            with flags.about(model.file):
                part = progress.part(number, len(models))
                found.append(_evaluate_file(model, own, part, order))
    return found


@contextmanager
def sharing_scale(roles: Sequence[Any]) -> Iterator[list[Any]]:
    """The same, by which one file may state words and another numbers."""
    from calibrant.files._plan import SharedScale

    if len(roles) < 2 or roles[0].scale is None:
        yield [*roles]
        return
    scale = SharedScale(roles[0].scale)
    yield [replace(own, scale=scale) for own in roles]
    scale.check()


def _evaluate_file(
    model: flags.Model, roles: Any, progress: Any, order: Callable[[Any], Any]
) -> Evaluation:
    """In memory where the file fits, in batches where it does not."""
    from calibrant.files._inspect import repeated_ids
    from calibrant.files._read import batches

    file, name, said = model.file, model.name, model.said
    paths, options = flags.paths_of(file), flags.evaluation_of(said)
    progress(0.0, f"read {name}")
    if (sketch := sketch_in(paths)) is not None:
        _check_no_columns(file, roles)
        return evaluate(sketch, **options, name=name)
    if too_large(paths, roles):
        from calibrant._verbs.stream import evaluate_batches

        def report(rows: int) -> None:
            progress(0.5, f"{name}: {rows:,} examples")

        with Taken(file, roles, quiet=said["quiet"]) as taken:
            found = map(taken.add, batches(paths, roles))
            ev = evaluate_batches(found, name=name, progress=report, **options)
            known = taken.print_of_kept
            return replace(ev, left_out=float(taken.silent), fingerprint=known)
    rows = order(read_file(file, roles, quiet=said["quiet"]))
    progress(0.5, f"evaluate {name}")
    ev = _knowing_kept(evaluate_found(rows, name, said), rows)
    return replace(ev, repeated=repeated_ids(paths, roles.sep))


def _knowing_kept(ev: Evaluation, found: Any) -> Evaluation:
    """The same, which knows which examples are left, if others were left out."""
    if not found.dropped or has_ids(ev):
        return ev
    kept = found.rows if found.ids is None else text_of(found.ids).astype(str)
    labels = "" if found.pairs else str(ev.fingerprint)
    return replace(ev, fingerprint=print_of_kept(kept.tolist(), labels))


def too_large(paths: list[str], roles: Any) -> bool:
    """Whether files, or what their rows take, are too large to be read at once."""
    from calibrant.files._read import memory_of

    return size_of(paths) > IN_FILES or memory_of(paths, roles) > IN_MEMORY


def read_file(file: str, roles: Any, *, quiet: bool) -> Any:
    """All predictions in a file, and a word on what was taken and left out."""
    from calibrant.files._read import read

    with Taken(file, roles, quiet=quiet) as taken:
        found = taken.add(read(flags.paths_of(file), roles))
    if not quiet and (told := _names_in_groups(found)):
        click.echo(f"note: {one_line(f'{taken.file}: {told}')}", err=True)
    return found


def _names_in_groups(found: Any) -> str:
    """That most names of clusters are in several groups, and may be of other things in each."""
    if found.cluster is None or found.group is None:
        return ""
    pairs = {*zip(map(str, found.cluster), map(str, found.group), strict=True)}
    groups = Counter(cluster for cluster, _ in pairs)
    several = sum(count > 1 for count in groups.values())
    if 2 * several < len(groups):
        return ""
    cluster, group = found.plan.cluster, found.plan.group
    return (
        f"{several:,} of {len(groups):,} clusters {cluster!r} have examples in several "
        f"groups {group!r}; if a name means something else in each, put both into one column"
    )


def evaluate_found(found: Any, name: str, said: Mapping[str, Any]) -> Evaluation:
    """Evaluate what was read; errors count rows as the file does."""
    options = flags.evaluation_of(said) | {"group": found.group, "name": name}
    verb = evaluate_pairs if found.pairs else evaluate
    options["target"] = found.target(options["target"])
    if found.pairs:
        del options["target"]
    try:
        ev = verb(**found.arguments, **options)
    except RowError as error:
        raise found.in_file(error) from error
    if found.pairs and found.ids is not None:  # which have no labels to be known by
        ev = replace(ev, fingerprint=_print_of_ids(found.ids))
    return with_left_out(ev, found)


def _print_of_ids(ids: Any) -> str:
    """A hash of what identifies the rows, in their order."""
    text = "\0".join(text_of(ids).astype(str).tolist())
    return BY_ID + sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:32]


def with_left_out(ev: Evaluation, found: Any) -> Evaluation:
    """The same, which knows how many examples were left out, and how many of a whole."""
    counts = _left_out(found)
    parts = {
        name: _without(part, *(count[name] for count in counts))
        for name, part in ev.per_group.items()
    }
    return _without(replace(ev, per_group=parts), *(count[None] for count in counts))


def groups_with_left_out(groups: Groups, found: Any) -> Groups:
    """The same groups, each of which knows how many examples of it were left out."""
    counts = _left_out(found)
    parts = (_without(ev, *(count[ev.name] for count in counts)) for ev in groups)
    return replace(groups, evaluations=tuple(parts))


def groups_left_out(groups: Groups, found: Any) -> list[str]:
    """Groups that are not among these, as all of their examples were left out."""
    names = {name for count in _left_out(found) for name in count if name is not None}
    return sorted(names - {*groups.names})


def _left_out(found: Any) -> tuple[Counter[Any], ...]:
    """Examples without a score, without a partner, and of no file, as `_counted` has them."""
    from calibrant.files._read import lacking

    lost: Counter[Any] = Counter({None: found.silent})
    if found.dropped_groups is not None:
        named = found.dropped_groups[found.dropped_silent]
        lost.update(map(str, named[~lacking(named)]))
    return lost, _counted(found.unpaired), _counted(found.absent)


def _without(
    ev: Evaluation, lacking: float, unpaired: float, absent: float
) -> Evaluation:
    apart = unpaired + absent
    left_out, apart, absent = map(float, (lacking + apart, apart, absent))
    return replace(ev, left_out=left_out, unpaired=apart, absent=absent)


def _counted(rows: Any) -> Counter[Any]:
    """How many examples there are, by None, and of each group, by its name."""
    counts: Counter[Any] = Counter()
    if rows is None:
        return counts
    count = [1] * len(rows) if rows.frequency is None else rows.frequency.tolist()
    counts[None] = sum(count)
    for name, some in zip(
        () if rows.group is None else rows.group, count, strict=False
    ):
        counts[str(name)] += some
    return counts


USED = {
    "weight": "sample weights",
    "frequency": "frequencies",
    "cluster": "clusters of dependent examples",
    "group": "groups",
}
"""Columns that are taken by their names, and what for."""


FEW_SMALL = 0.05
"""Up to which share of probabilities may be at most 1 per cent before it is noted."""


class Taken:
    """Says on stderr which columns were taken by name, and how many rows left out."""

    def __init__(self, file: str, roles: Any, *, quiet: bool) -> None:
        self.file = "standard input" if file == flags.STDIN else file
        self.plan: Any = None
        self.asked = set(roles.given) - {"weight"}
        self.percent = roles.percent
        self.quiet, self.total, self.dropped, self.rows = quiet, 0.0, 0, 0
        self.silent = 0
        self.above, self.most, self.small, self.bare = 0, 1.0, 0, 0.0
        self.path, self.sep = Path(), roles.sep
        self.joined = _Joined() if flags.are_joined(file) else None
        self.kept = blake2b(digest_size=16)

    def __enter__(self) -> Self:
        return self

    def add(self, found: Any, of: int = 0) -> Any:
        """Count some rows, of perhaps more that were complete, and pass them on."""
        self.plan, self.path = found.plan, found.path
        if self.joined is not None:
            self.joined.add(found)
        self.rows += max(len(found), of) + found.dropped
        self.dropped += found.dropped
        self.silent += found.silent
        if found.rows is not None:
            rows = "".join(f"\0{row}" for row in found.rows.tolist())
            self.kept.update(rows.encode())
        if found.sample_weight is not None:
            self.total += float(found.sample_weight.sum())
        if found.kind != "logits" and found.scores.size == len(found):
            tolerance = ROW_SUM_TOLERANCE.get(found.scores.dtype.name, 0.0)
            allowed = tolerance if found.kind == "probs" else 0.0
            above = (found.scores > 1) & (
                found.scores <= 1 + allowed
            )  # as is evaluated
            self.above += int(above.sum())
            self.most = max(self.most, float(found.scores[above].max(initial=1.0)))
            small = (found.scores > 0) & (found.scores <= 0.01)
            self.small += int(small.sum())
            if small.any() and not self.bare:
                self.bare = 100 * float(found.scores[small].max())
        return found

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None and self.joined is not None:
            self.joined.check()
        if self.quiet or kind is not None or self.plan is None:
            return
        for role, what in USED.items():
            if role in self.asked or (column := getattr(self.plan, role)) is None:
                continue
            summed = f" (weights sum to {self.total:,.6g})" if role == "weight" else ""
            self._say(f"using column {column!r} as {what}{summed}")
        self._say_unread()
        if self.joined is not None and (told := str(self.joined)):
            click.echo(f"note: {one_line(told)}", err=True)
        if self.above:
            are = (
                "1 probability" if self.above == 1 else f"{self.above:,} probabilities"
            )
            was = "was" if self.above == 1 else "were"
            self._say(f"{are} above 1 (at most {self.most:.10g}) {was} read as 1")
        if self.percent and self.small > FEW_SMALL * self.rows:
            what = f"{self.small:,} of {self.rows:,} probabilities are written so"
            read = f"{self.bare:.6g} as {self.bare:.6g} %"
            self._say(f"--percent reads {read}: {what}, above 0 and at most 1")
        if self.dropped:
            missing = "with a missing score, label or weight"
            if self.plan.group is not None:
                missing = f"with a missing score, label, weight or {self.plan.group!r}"
            if labels := self.dropped - self.silent:
                missing += (
                    f"; {labels:,} of them {'has' if labels == 1 else 'have'} a score"
                )
            self._say(f"dropped {self.dropped:,} of {self.rows:,} examples {missing}")

    @property
    def print_of_kept(self) -> str | None:
        """As `print_of_kept` has it, of all rows that were seen; None if none was left out."""
        return f"{KEPT}{self.kept.hexdigest()}" if self.dropped else None

    def _say_unread(self) -> None:
        """A column that looks like counts of examples, and is not taken by its name."""
        from calibrant.files._inspect import unread_counts

        if self.plan.frequency is None and self.plan.weight is None:
            name = unread_counts(self.path, self.plan.names, self.sep)
            if name is not None:
                told = f"column {name!r} is not read: each row counts as one example"
                self._say(f"{told}; if it is how many, pass --frequency {name}")

    def _say(self, text: str) -> None:
        click.echo(f"note: {one_line(f'{self.file}: {text}')}", err=True)


ENOUGH = 20
"""So many labels that are the same in two files are no chance."""


class _Joined:
    """Files that a comma joins: rows of one model, or two models by mistake."""

    def __init__(self) -> None:
        self.rows: Counter[Path] = Counter()
        self.labels: dict[Path, Any] = {}
        self.kinds: dict[Path, set[str]] = {}

    def add(self, found: Any) -> None:
        """Some rows, of one file or of all."""
        for path, labels in () if found.y is None else found.labels_by_file:
            texts = [str(label) for label in np.asarray(labels).tolist()]
            self.rows[path] += len(texts)
            self.kinds.setdefault(path, set()).update(texts[:ENOUGH])
            told = "\0".join([*texts, ""]).encode("utf-8", "surrogatepass")
            self.labels.setdefault(path, sha256()).update(told)

    def check(self) -> None:
        """Refuse files whose labels are equal row by row: they hold the same examples."""
        seen: dict[str, Path] = {}
        for path, digest in self.labels.items():
            enough = self.rows[path] >= ENOUGH and len(self.kinds[path]) > 1
            if enough and (other := seen.setdefault(digest.hexdigest(), path)) != path:
                raise ValueError(
                    f"{other} and {path} have the same labels, row by row, so they are not "
                    "examples of one model. Put a space between them to compare two models."
                )

    def __str__(self) -> str:
        if len(self.rows) < 2:
            return ""
        *first, last = map(str, self.rows)
        sizes = " + ".join(f"{rows:,}" for rows in self.rows.values())
        return (
            f"{', '.join(first)} and {last} are read as {sizes} examples of one model; put a "
            "space between them to compare two models"
        )


def sketch_in(paths: list[str]) -> Sketch | None:
    """The sketch in a file, if that is what is in it."""
    if not _is_sketch(paths):
        return None
    from calibrant._sketch.sketch import Sketch

    return Sketch.load(paths[0])


def _is_sketch(paths: list[str]) -> bool:
    from calibrant._sketch.storage import is_sketch

    return len(paths) == 1 and is_sketch(Path(paths[0]))


def check_of_sketch(file: str, roles: Any) -> None:
    """Refuse what is said of columns and of reading where there is a sketch alone."""
    _check_no_columns(file, roles)
    _check_unread(file, roles)


def _check_no_columns(file: str, roles: Any) -> None:
    if roles.given:
        raise ValueError(
            f"{file} is a sketch, which has no columns; drop --{roles.given[0]}."
        )


def _check_unread(file: str, roles: Any) -> None:
    """Refuse options on how to read examples where these were read into a sketch."""
    for name in flags.READING:
        if getattr(roles, name):
            option = f"--{name.replace('_', '-')}"
            raise ValueError(
                f"{file} is a sketch, whose examples were read when it was made, so {option} "
                f"has no effect; give it to calibrant sketch, or drop {option}."
            )


def size_of(paths: list[str]) -> int:
    """Bytes of all files that are named, matched by a pattern, or in a folder."""
    from calibrant.files._open import find_files

    return sum(path.stat().st_size for path in find_files(paths))


def read_vectors(file: str, roles: Any, who: str, *, quiet: bool) -> Any:
    """Predictions of all classes in a file; `who` needs them."""
    found = read_file(file, roles, quiet=quiet)
    if found.pairs:
        confidence, correct = found.plan.scores[0], found.plan.correct
        way_out = f"To recalibrate them pass --probs {confidence} --label {correct}."
        raise ValueError(
            f"{file} holds stated confidences; {who} needs logits or probabilities of "
            f"all classes. {way_out if correct else ''}".rstrip()
        )
    return found


def check_outputs(
    *outputs: Path | None, reads: Iterable[str | None], force: bool
) -> None:
    """Refuse before any work what must not be written: a folder, a device, an input."""
    given = [path for path in outputs if path is not None]
    reads = list(reads)
    if reads.count(flags.STDIN) > 1:
        raise ValueError("- is standard input, which can be read once only.")
    targets = {target_of(path): path for path in given}
    for target, path in targets.items():
        if target.exists() and not force:
            raise FileExistsError(f"{path} exists; pass --force to replace it.")
        if any(map(target.samefile, _files_of(reads) if target.exists() else [])):
            raise ValueError(f"{path} is read and written; write to another file.")
    if len(targets) < len(given):
        raise ValueError(f"{given[0]} is two outputs; give each a file of its own.")


def check_suffix(path: Path | None, *suffixes: str) -> None:
    """Refuse a name that promises another format than the one written."""
    if path is None or (path.suffix.lower() in ("", *suffixes) and path.name != "-"):
        return
    kind = suffixes[0][1:].upper()
    raise ValueError(
        f"{path}: this writes {kind}; give the file a name that ends in {suffixes[0]}."
    )


def check_title(title: str | None, output: Path | None) -> None:
    """Refuse a heading of a page that is not written."""
    if title is not None and output is None:
        raise click.UsageError("--title is of the page; name its file with --output.")


def _files_of(reads: Iterable[str | None]) -> Iterator[Path]:
    """The files that arguments mean, as far as there are any."""
    from calibrant.files._open import find_files

    for paths in map(flags.paths_of, filter(None, reads)):
        try:
            yield from find_files(paths)
        except (ValueError, OSError):  # not of a format: a recalibrator, or an error
            yield from filter(Path.exists, map(Path, paths))


def write_page(
    models: Comparison,
    output: Path | None,
    verdicts: Sequence[str | None] = (),
    **options: Any,
) -> str:
    """Write the report, if one was asked for, with the conditions that hold, and say so."""
    if output is None:
        return ""
    from calibrant.report._report import report

    given: dict[str, Any] = {**options, **failed(verdicts)}
    path = report(models, output, **given)
    return f"report: {one_line(str(path))}"


def print_models(
    models: Comparison,
    said: Mapping[str, Any],
    more: str = "",
    **also: Any,
) -> None:
    """Print a comparison, its groups, and what more there is to say, or JSON.

    `also` goes into the JSON.
    """
    if said["as_json"]:
        findings = [finding.to_dict() for finding in models.audit()]
        found = {**models.to_dict(), "findings": findings, **_macro_as_json(models)}
        click.echo(json.dumps({**found, **also}))
        return
    if said["quiet"]:
        return
    from calibrant._views.words import sizes_in_words
    from calibrant.report._report import groups_of
    from calibrant.terminal._page import show

    show(models)
    sys.stdout.flush()  # a closed pipe is noticed here, not when Python ends
    for group, of_group in groups_of(models).items():
        apart = _told_apart(of_group, models)
        click.echo(f"\ngroup {one_line(group, MOST_NAME)}: {sizes_in_words(apart)}")
        click.echo(apart.table("text", footnotes=False))
    for line in _macro_lines(models):
        click.echo(line)
    if more:
        click.echo(f"\n{more}")


def _told_apart(of_group: Sequence[Evaluation], models: Comparison) -> Comparison:
    """The models on a group: of other examples as a whole, they are there, too.

    Records of groups may not know their examples, so those of the whole models decide.
    """
    from calibrant.table._layout import same_examples

    sets = enumerate(same_examples(models))
    known = {models[i].name: f"{BY_ID}of set {key}" for key, at in sets for i in at}
    return Comparison(tuple(replace(x, fingerprint=known[x.name]) for x in of_group))


MACRO = ("accuracy", "ece", "nll", "brier", "calibration", "sharpness_gap")
"""Numbers of which the mean over groups is printed."""


def _macro_lines(models: Comparison) -> list[str]:
    """Means over groups, each counted once, with intervals."""
    lines = []
    for ev in models:
        if len(ev.per_group) < 2:
            continue
        found, name = macro_average(ev), one_line(ev.name, MOST_NAME)
        head = (
            f"{name}, macro average over {len(ev.per_group)} groups, each counted once"
        )
        labels = {key: MEASURES[key].label for key in MACRO if key in found}
        width = max(map(len, labels.values()))
        lines += ["", f"{head}:"]
        lines += [f"  {x:<{width}}  {with_reason(found[k])}" for k, x in labels.items()]
    return lines


def _macro_as_json(models: Comparison) -> dict[str, Any]:
    grouped = [ev for ev in models if len(ev.per_group) > 1]
    found = {
        ev.name: {key: as_plain(x) for key, x in macro_average(ev).items()}
        for ev in grouped
    }
    return {"macro_averages": found} if found else {}


def print_result(found: Any, more: str, said: Mapping[str, Any], **also: Any) -> None:
    """Print a result that prints itself, findings and what more there is, or its JSON.

    `also` goes into the JSON.
    """
    findings = found.audit() if isinstance(found, Comparison) else []
    if said["as_json"]:
        if findings:
            also = {"findings": [x.to_dict() for x in findings], **also}
        click.echo(json.dumps({**found.to_dict(), **also}))
    elif not said["quiet"]:
        parts = [str(found), _remarks(found, findings), more]
        click.echo("\n\n".join(filter(None, parts)))


def _remarks(found: Any, findings: Sequence[Any]) -> str:
    """What print and page say of several models: findings, and good news."""
    if not isinstance(found, Comparison):
        return ""
    from calibrant._views.words import remarks
    from calibrant.table._text import note_lines

    signed = [replace(x, mark="!" * x.finding) for x in remarks(found, findings)]
    return "\n".join(note_lines(signed))


# -- gates for continuous integration: conditions on a model, and what trips them ------

TRIPPED = 3
NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
FORM = re.compile(
    rf"\s*([^<>=]+?)\s*(\.upper|\.lower)?\s*(>=|<=|>|<)\s*({NUMBER})\s*(%?)\s*"
)

HOLDS = {">": operator.gt, "<": operator.lt, ">=": operator.ge, "<=": operator.le}

SIGNED = ("confidence_gap", "ece_debiased", "top_label_ece")
SQUARED = ("mcb", "dsc", "unc")
ENDS = {
    **dict.fromkeys(BUILT_IN, (0.0, 1.0)),
    **dict.fromkeys(SIGNED, (-1.0, 1.0)),
    **dict.fromkeys(SQUARED, (0.0, 2.0)),
    **dict.fromkeys(HEADLINE, (-2.0, 2.0)),
    "brier": (0.0, 2.0),
    "total": (0.0, 2.0),
    "nll": (0.0, inf),
    "coverage": (0.0, 1.0),
}
"""Between which ends numbers lie; those of one's own may be anything."""

PAPER_WITHOUT_ENDS = ("calibration", "sharpness_gap", "smooth_ece")
"""Numbers without an interval as published; the last has one with a bandwidth alone."""

COVERAGE = "coverage"
"""The share of examples with a confidence, a condition of models that is no metric."""

SMALL = ("ece", "ace", "smooth_ece", "ece_mass", "ece_debiased", "ks_error",
         "top_label_ece", "calibration")  # fmt: skip
SCORES = ("brier", "nll", "total", "sharpness_gap")
DOUBTFUL, FAR_ABOVE, FAR_APART, WIDE = 0.2, 20, 5, 0.1
"""Calibration errors of real models are below the first. A limit as large is more likely
0.65 of a table of percentages, which is 0.0065; so is one so many times what was found,
of scores too; and a difference so many times what the baseline has. Differences are near 0
by nature: only from the last on is a limit on one noted as far from what was found."""


@dataclass(frozen=True, slots=True)
class Gate:
    """Fail if a number, or an end of its interval, is on the wrong side of a limit."""

    key: str
    end: str
    sign: str
    limit: float
    percent: bool = False

    @classmethod
    def read(
        cls,
        text: str,
        option: str = "--fail-if",
        *,
        divergence: str = "brier",
        difference: bool = False,
        coverage: bool = False,
    ) -> Gate:
        """Read a condition such as ``brier > 0.2``, ``ECE.upper > 5%`` or ``acc < 0.9``."""
        form = FORM.fullmatch(text)
        if form is None:
            raise click.BadParameter(
                f"{text!r} is not a condition such as 'brier > 0.2' or "
                "'ece.upper > 5%'.",
                param_hint=option,
            )
        key = _key_of(form[1], option, coverage=coverage)
        limit = float(form[4]) / (100 if form[5] else 1)
        percent = bool(form[5])
        gate = cls(key, (form[2] or "").lstrip("."), form[3], limit, percent)
        low, high = ENDS.get(key, (-inf, inf))
        if divergence != "brier" and key in HEADLINE:
            low, high = (0.0 if key == "total" else -inf), inf
        if difference:
            low, high = low - high, high - low
        gate.check(text, low, high, option, difference=difference)
        gate.check_doubtful(text, option)
        return gate

    def check(
        self,
        text: str,
        low: float,
        high: float,
        option: str,
        *,
        difference: bool = False,
    ) -> None:
        """Refuse a limit on the wrong side of which all numbers are, or none."""
        least, most = (HOLDS[self.sign](end, self.limit) for end in (low, high))
        if least != most:
            return
        label = COVERAGE if self.key == COVERAGE else MEASURES[self.key].label
        if difference:
            label = f"the difference in {label}"
        what = "always" if least else "never"
        told = f"{text!r} {what} holds: {label} lies between {low:g} and {high:g}."
        less = self.limit / 100
        if low < less < high and abs(self.limit) >= 1:
            condition = f"{self.name} {self.sign} {less:g}"
            told += (
                f" If it is a percentage, write {condition!r} or "
                f"'{self.name} {self.sign} {self.limit:g}%'."
            )
        raise click.BadParameter(told, param_hint=option)

    def check_doubtful(self, text: str, option: str) -> None:
        """Refuse a limit without a sign that may be a fraction or a percentage."""
        if self.key in SMALL and DOUBTFUL <= abs(self.limit) < 1 and not self.percent:
            told = f"{text!r} is in doubt: it may be a fraction or a percentage. "
            told += f"Write {self._two_ways}."
            raise click.BadParameter(told, param_hint=option)

    def check_end(self, said: Mapping[str, Any]) -> None:
        """Refuse the end of an interval that no examples would give, as it was asked for."""
        paper = ""
        if said["bandwidth"] != "auto" and self.key in PAPER_WITHOUT_ENDS[:2]:
            paper = "--bandwidth"
        elif said["preset"] is not None and self.key in PAPER_WITHOUT_ENDS:
            paper = f"--preset {said['preset']}"
        if self.end and (paper or self.key == COVERAGE):
            whose = f"{self.key} with {paper}" if paper else self.key
            way_out = (
                f"leave out {paper} or .{self.end}"
                if paper
                else f"leave out .{self.end}"
            )
            told = (
                f"{whose} has no interval, of which {self.name} is an end; {way_out}."
            )
            raise click.BadParameter(told, param_hint="--fail-if")

    @property
    def name(self) -> str:
        """The number, or the end of its interval, as conditions call it."""
        return f"{self.key}.{self.end}" if self.end else self.key

    @property
    def _two_ways(self) -> str:
        """The two things that a limit without a sign may mean."""
        less, more = (
            f"'{self.name} {self.sign} {x:.10g}%'"
            for x in (self.limit, 100 * self.limit)
        )
        return f"{less} or {more}"

    def check_scale(self, target: str, classes: int | None, divergence: str) -> None:
        """Refuse limits that numbers of this model cannot reach, or no sensible one does."""
        logs = self.key == "nll" or (self.key in HEADLINE and divergence == "log")
        squares = not logs and self.key in ("brier", *SQUARED, *HEADLINE)
        if squares and target in ("positive", "pairs"):
            self._check_of_one()
            return
        if classes is None:
            return
        guessing = log(classes) if logs else 1 - 1 / classes
        if (logs or squares) and abs(self.limit) > guessing and not self.percent:
            raise click.UsageError(
                f"a limit of {self.limit:g} on {self.key} is more than what guessing among "
                f"{classes:,} classes has ({guessing:.2g}): write {self._two_ways}."
            )

    def _check_of_one(self) -> None:
        """Refuse a limit that no squared error of one probability exceeds."""
        if abs(self.limit) < 1:
            return
        above = (self.sign in (">", ">=")) == (self.limit > 0)
        what = "the Brier score" if self.key in ("brier", "total") else self.key
        told = f"{what} of one probability lies between 0 and 1."
        less = f"'{self.name} {self.sign} {self.limit:g}%'"
        raise click.UsageError(
            f"'{self.name} {self.sign} {self.limit:g}' {'never' if above else 'always'} "
            f"holds: {told}{'' if self.percent else f' If it is a percentage, write {less}.'}"
        )

    def doubt(self, who: str, value: float, times: float = FAR_ABOVE) -> str:
        """Why a limit is perhaps not what was meant, if a number is far below it."""
        shown = self.key in (*SMALL, *SCORES)
        bare = shown and self.sign in (">", ">=") and not self.percent
        if not (bare and 0 < value * times < self.limit):
            return ""
        return (
            f"{who}: the limit of {100 * self.limit:.10g}% is {self.limit / value:,.0f} times "
            f"its {self.key}, {100 * value:.2g}%. To be clear, write {self._two_ways}."
        )

    def doubt_of_difference(self, who: str, value: float) -> str:
        """The same of a limit on a difference, above or below."""
        wide = self.key in ENDS and abs(self.limit) >= WIDE and not self.percent
        far = FAR_ABOVE * abs(value) < abs(self.limit)
        if not (wide and far) or self.holds(value):
            return ""
        return (
            f"{who}: the limit of {100 * self.limit:.10g}% is far from the difference in "
            f"{self.key}, {100 * value:.2g}%. To be clear, write {self._two_ways}."
        )

    def holds(self, value: float) -> bool:
        """Whether a number is on the wrong side; what equals the limit but for rounding is on it."""
        if isclose(value, self.limit, rel_tol=1e-12, abs_tol=1e-15):
            return self.sign in (">=", "<=")
        return bool(HOLDS[self.sign](value, self.limit))

    def verdict(
        self, who: str, estimate: Estimate, what: str, level: float
    ) -> str | None:
        """Why a number fails, or None; one that is missing fails too."""
        value, aside = float(estimate), ""
        if self.end and not isnan(value):
            if estimate.interval is None:
                return f"{who}: {what} has no interval to take the end of."
            value = estimate.interval[self.end == "upper"]
            interval = f"{100 * level:g}% interval of {what} ({estimate.method})"
            if what in MEASURES and estimate > estimate.interval[1]:
                aside = f" Biased up by noise, {what} itself is {float(estimate):.6g}."
            what = f"{self.end} end of the {interval}"
        if isnan(value):
            return f"{who}: {what} is undefined."
        if self.holds(value):
            return f"{who}: {what} is {value:.6g}, {self.sign} {self.limit:g}.{aside}"
        return None


def _key_of(name: str, option: str, *, coverage: bool) -> str:
    """The key of a number by its name in tables, in print or in JSON."""
    if (key := key_of(name)) is not None:
        return key
    if name.lower() == COVERAGE and coverage:
        return COVERAGE
    if name.lower() == COVERAGE:
        told = "coverage is of a model, not of a difference or a period; gate it in report."
        raise click.BadParameter(told, param_hint=option)
    hint = f"; did you mean {near!r}?" if (near := _near_key(name)) else "."
    known = [f"{x} (d_cal)" if x == "calibration" else x for x in MEASURES]
    known += [COVERAGE] if coverage else []
    raise click.BadParameter(
        f"there is no column {name!r}{hint} There are {', '.join(known)}.",
        param_hint=option,
    )


def _near_key(name: str) -> str | None:
    """The key that was perhaps meant."""
    from difflib import get_close_matches

    known = keys_as_said()
    near = get_close_matches(plain(name), known, 1, cutoff=0.75)
    return known[near[0]] if near else None


def _number_of(ev: Evaluation, key: str) -> Estimate:
    """What a gate is about."""
    return Estimate(ev.coverage) if key == COVERAGE else MEASURES[key].of(ev)


def _fail_if(text: str) -> flags.Decorator:
    limits = "Limits are percentages (5%) or fractions (0.05). Repeatable."
    return click.option(
        "--fail-if",
        "conditions",
        multiple=True,
        metavar="CONDITION",
        help=f"{text} {limits}",
    )


fail_if_different = _fail_if(
    "Exit with code 3 if it holds for a difference from the baseline, in a group too: "
    "'brier > 0.01', 'brier.upper > 0.01'."
)


def gate_options(of: str) -> flags.Decorator:
    """Conditions on whatever the command evaluates, in words."""
    return flags.together(
        _fail_if(
            f"Exit with code 3 if it holds for {of}: 'brier > 0.2', "
            "'ece.upper > 5%', 'coverage < 0.8' (of examples with a confidence)."
        ),
        click.option(
            "--max-ece-upper",
            metavar="X",
            help="The same as --fail-if 'ece.upper > X'.",
        ),
    )


def gates_of(said: Mapping[str, Any], *, difference: bool = False) -> list[Gate]:
    """The gates asked for."""
    about = {"divergence": said["divergence"], "difference": difference}
    given = {**about, "coverage": not difference}
    gates = [Gate.read(text, **given) for text in said["conditions"]]
    if (most := said.get("max_ece_upper")) is not None:
        gates.append(Gate.read(f"ece.upper > {most}", "--max-ece-upper"))
    for gate in gates:
        gate.check_end(said)
    return gates


def failed(verdicts: Sequence[str | None] | None) -> dict[str, list[str]]:
    """What JSON says of conditions, if there were any: those that hold."""
    found = [one_line(verdict) for verdict in verdicts or () if verdict is not None]
    return {"failed": found} if verdicts else {}


def judge(gates: Sequence[Gate], models: Iterable[Evaluation]) -> list[str | None]:
    """Why a model, or a group of it, fails a gate, or None for those that pass."""
    verdicts = []
    for ev in models:
        groups = {f"{ev.name}, group {x!r}": part for x, part in ev.per_group.items()}
        for who, part in {ev.name: ev, **groups}.items():
            for gate in gates:
                gate.check_scale(ev.target, ev.k, ev.divergence)
                number, level = _number_of(part, gate.key), float(ev.settings["level"])
                if part is ev:
                    say_doubt(gate.doubt(who, float(number)))
                verdicts.append(gate.verdict(who, number, gate.key, level))
    return verdicts


def judge_left_out(gates: Sequence[Gate], lost: Iterable[str]) -> list[str | None]:
    """Why groups without any example fail gates: their coverage is 0."""
    of_all = [gate for gate in gates if gate.key == COVERAGE]
    return [
        gate.verdict(name, Estimate(0.0), COVERAGE, 0.95)
        for name in lost
        for gate in of_all
    ]


def check_coverage_known(gates: Sequence[Gate], files: Iterable[str]) -> None:
    """Refuse to gate what a sketch does not say: how many examples were left out."""
    for file in files if any(gate.key == COVERAGE for gate in gates) else ():
        if _is_sketch(flags.paths_of(file)):
            raise ValueError(
                f"{file} is a sketch, which does not know how many examples were left out, so "
                "there is no coverage to gate; gate that of the files it was made of."
            )


def say_doubt(doubt: str) -> None:
    """Say on stderr why a limit is perhaps not what was meant, if there is a reason."""
    if doubt:
        click.echo(f"note: {one_line(doubt)}", err=True)


def _doubts_of_differences(gate: Gate, found: Any) -> list[str]:
    """Why a limit on differences is in doubt: for the baseline has far less, or they do."""
    base = found[found.baseline]
    if doubt := gate.doubt(base.name, float(_number_of(base, gate.key)), FAR_APART):
        return [doubt]
    return [
        gate.doubt_of_difference(f"{name} - {base.name}", float(numbers[gate.key]))
        for name, numbers in found.differences.items()
        if gate.key in numbers
    ]


def differences_failing(
    gates: Iterable[Gate], found: Any, group: str = ""
) -> list[Any]:
    """Why differences of models from a baseline fail gates, or None for those that pass."""
    where = f", group {group!r}" if group else ""
    verdicts = []
    for gate in gates:
        base = found[found.baseline]
        gate.check_scale(base.target, base.k, base.divergence)
        for doubt in [] if group else _doubts_of_differences(gate, found):
            say_doubt(doubt)
        for name, numbers in found.differences.items():
            number = numbers.get(gate.key, Estimate(nan))
            who, what = (
                f"{name} - {found.baseline}{where}",
                f"the difference in {gate.key}",
            )
            verdicts.append(gate.verdict(who, number, what, found.level))
    return verdicts


def trip(verdicts: Iterable[str | None]) -> None:
    """Exit with code 3, after saying why, unless all verdicts are None."""
    failures = [verdict for verdict in verdicts if verdict is not None]
    for failure in failures:
        click.echo(f"gate: {one_line(failure)}", err=True)
    if failures:
        raise click.exceptions.Exit(TRIPPED)

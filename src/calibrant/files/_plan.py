"""Which entry of a file plays which role, and how the file will be read."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

from calibrant._base.checks import (
    check_flags,
    check_kind,
    check_number,
    check_text,
    check_texts,
    read_names,
)
from calibrant.files._sources import (
    OPTIONS,
    Entry,
    FileError,
    Request,
    Source,
    quoted,
    shorten,
)

# Logits and probabilities are told apart by name only, never by looking at the numbers.

Names: TypeAlias = str | Sequence[str]
"""A name, a pattern with one ``*``, names with commas between them, or a list of names."""

KNOWN = {
    "label": ("labels", "label", "y", "y_true", "target", "targets", "outcome"),
    "logits": ("logits", "logit"),
    "probs": ("probs", "probabilities", "prob", "probability", "y_prob", "y_proba"),
    "confidence": ("confidence", "confidences", "conf"),
    "correct": ("correct", "is_correct"),
    "pred": ("pred", "preds", "prediction", "predicted", "y_pred"),
    "weight": ("weight", "weights", "sample_weight"),
    "frequency": ("frequency", "frequencies"),
    "cluster": ("cluster", "clusters"),
    "group": ("group", "groups"),
    "classes": ("classes", "class_names"),
    "id": ("id", "ids", "example_id"),
}
"""Names that are read without being asked for, in upper or lower case."""

ARGUMENTS = {"label": "y", "weight": "sample_weight"}
"""Roles that arguments in Python have another name for than files and the command."""

PATTERNS = {"logits": ["logits_*", "logit_*"], "probs": ["probs_*", "prob_*", "p_*"]}
"""Columns that are read together if what stands for ``*`` are numbers, or the classes."""

LOOKED_AT = 1000
"""Labels that are looked at, to see whether columns are called by the same names."""


class SharedScale(dict[str, float]):
    """A scale for files read one by one, of which one at least must have a word of it."""

    def __init__(self, words: Mapping[str, float]) -> None:
        super().__init__(words)
        self.used = False
        self.without: list[FileError] = []

    def check(self) -> None:
        """Refuse the scale if no file had a word of it."""
        if self.without and not self.used:
            raise self.without[0]


@dataclass(frozen=True, slots=True)
class Roles:
    """What to read; what is not said is found by the names in `KNOWN`.

    Attributes
    ----------
    y : str, optional
        The true class of each row.
    probs, logits : str or sequence of str, optional
        An n x k array, a column of lists, or one column per class: a pattern such as
        ``"p_*"`` or a list of names. One column alone is the positive class.
    confidence, correct : str, optional
        Stated confidence and whether it was right. Without `correct`, right is where
        `pred` equals `y`.
    pred : str, optional
        The predicted class, for confidences without `correct`.
    sample_weight, frequency, cluster, group : str, optional
        Importance of each row, in any unit; how many rows it stands for; which rows depend
        on each other; and its subgroup. ``""`` reads none, whatever columns are called.
    classes : sequence of str, optional
        Names of the classes in the order of the columns.
    id : str, optional
        What identifies each example; read only if `with_id`.
    unlabelled : bool
        Whether rows may be without labels, as when a recalibrator is applied to them.
    with_id : bool
        Whether ids are read, where a file has them, to pair the examples of two models.
    with_others : bool
        Whether all else that a file has of each row is read, to be written again.
    sep, decimal : str, optional
        What text tables have between columns, and in numbers in place of a point.
    percent : bool
        Whether probabilities and confidences are from 0 to 100, with or without a sign.
    drop_missing : bool
        Whether rows that lack a score, a label, a weight or a group are left out, and
        counted.
    ragged : bool
        Whether questions differ in their number of options, so that lists of scores may
        be of different lengths. An option that a question does not have has probability 0.
    count_copies : bool
        Whether files of the same bytes are files of their own, and not an error.
    scale : mapping of str to float, optional
        Words for confidences, and what they mean: ``{"likely": 0.8, "unsure": 0.5}``.

    Examples
    --------
    >>> Roles(y="truth", probs="p_*").given
    ('label', 'probs')
    """

    y: str | None = None
    probs: Names | None = None
    logits: Names | None = None
    confidence: str | None = None
    correct: str | None = None
    pred: str | None = None
    sample_weight: str | None = None
    frequency: str | None = None
    cluster: str | None = None
    group: str | None = None
    classes: Sequence[str] | None = None
    id: str | None = None
    unlabelled: bool = False
    with_id: bool = False
    with_others: bool = False
    sep: str | None = None
    decimal: str | None = None
    percent: bool = False
    drop_missing: bool = False
    ragged: bool = False
    count_copies: bool = False
    scale: Mapping[str, float] | None = None

    def __post_init__(self) -> None:
        lists = ("probs", "logits", "classes")
        flags = (
            *("unlabelled", "with_id", "with_others"),
            *("percent", "drop_missing", "ragged", "count_copies"),
        )
        self._check_scale()
        check_flags(**{flag: getattr(self, flag) for flag in flags})
        for name in self.__dataclass_fields__:
            value = getattr(self, name)
            if name in lists and not (value is None or isinstance(value, str)):
                for one in read_names(value, name):
                    check_text(one, name)
            elif name not in (*flags, "scale"):
                check_texts(**{name: value})
        for name, mark in {"sep": self.sep, "decimal": self.decimal}.items():
            if mark is not None and len(mark) != 1:
                raise ValueError(f"{name} must be a single character, got {mark!r}.")
        if self.sep is not None and self.sep == self.decimal:
            raise ValueError(f"sep and decimal must differ; both are {self.sep!r}.")

    def _check_scale(self) -> None:
        """Words are told apart by their letters, not by upper and lower case."""
        if self.scale is None:
            return
        check_kind(self.scale, Mapping, "scale")
        for word, number in self.scale.items():
            check_text(word, "scale")
            per_cent = "Per cent are divided by 100."
            check_number(number, f"scale of {word!r}", 0, 1, remedy=per_cent)
        if len(self.words) < len(self.scale) or not self.words:
            raise ValueError("scale must name each word once, in any case of letters.")
        if self.percent:
            raise ValueError("scale and percent exclude each other; a scale is 0 to 1.")

    @property
    def spelt(self) -> bool:
        """Whether numbers may be spelt in a way of their own: 0,27 or 27% or likely."""
        return self.percent or self.decimal is not None or self.scale is not None

    @property
    def words(self) -> dict[str, float]:
        """What words for confidences mean, in lower case."""
        return {word.strip().lower(): x for word, x in (self.scale or {}).items()}

    def said(self, role: str) -> Any:
        """What was said for a role, by the name that `KNOWN` has for it."""
        return getattr(self, ARGUMENTS.get(role, role))

    @property
    def given(self) -> tuple[str, ...]:
        """The roles that were said; an empty name says that there is none."""
        return tuple(role for role in KNOWN if self.said(role) not in (None, ""))


def as_roles(roles: Any) -> Roles:
    """The roles given, or none."""
    found = Roles() if roles is None else roles
    check_kind(found, Roles, "roles")
    return found


def split_pattern(pattern: str, names: Sequence[str]) -> dict[str, str]:
    """Names that fit a pattern, and what stands for its star in each.

    >>> split_pattern("p_*", ["y", "p_cat", "p_dog"])
    {'p_cat': 'cat', 'p_dog': 'dog'}
    """
    start, _, end = (re.escape(part) for part in pattern.partition("*"))
    fits = re.compile(f"{start}(.+){end}", re.DOTALL)
    found = {name: fits.fullmatch(name) for name in names}
    return {name: match[1] for name, match in found.items() if match}


def in_order(parts: dict[str, str]) -> dict[str, str]:
    """Names sorted by number if all stars are numbers, so that p_10 follows p_9."""
    if not are_numbers(parts):
        return parts
    return dict(sorted(parts.items(), key=lambda item: int(item[1])))


def are_numbers(parts: dict[str, str]) -> bool:
    """Whether every star stands for a number, each another one."""
    stars = parts.values()
    return all_digits(stars) and len({int(star) for star in stars}) == len(stars)


def all_digits(words: Iterable[Any]) -> bool:
    """Whether all of them are whole numbers, of no great size."""
    texts = [str(word) for word in words]
    return all(text.isascii() and text.isdigit() and len(text) < 10 for text in texts)


OF_ROWS = ("weight", "frequency", "cluster", "group")
"""Roles of what rows have beside scores and labels."""

ScoreKind = Literal["probs", "logits", "confidence"]

SCORES: tuple[ScoreKind, ...] = ("probs", "logits", "confidence")

NAMED = ("label", "correct", "pred", *OF_ROWS)
"""Roles of one entry each, which is said by its name."""

APART = (*SCORES, "label", "correct", "pred", "weight", "frequency")
"""Roles of which an entry has one at most; a cluster or group may be anything else too."""


@dataclass(frozen=True, slots=True)
class Plan:
    """Names of entries by role; `scores` is one array, or one column per class.

    `stars` are what stood for the star of a pattern: the names of the classes.
    """

    kind: ScoreKind
    scores: tuple[str, ...]
    label: str | None
    correct: str | None
    pred: str | None
    weight: str | None
    frequency: str | None
    cluster: str | None
    group: str | None
    classes: str | None
    stars: tuple[str, ...] | None
    id: str | None = None
    others: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Entries to be read row by row, each once."""
        others = (self.label, self.correct, self.pred)
        of_rows = (self.weight, self.frequency, self.cluster, self.group, self.id)
        named = [*self.scores, *filter(None, others + of_rows), *self.others]
        return tuple(dict.fromkeys(named))

    @property
    def sentence(self) -> str:
        """The plan in words."""
        first, last = self.scores[0], self.scores[-1]
        said = f"{self.kind} {quoted([first])}"
        if len(self.scores) > 1:
            said = f"{self.kind} in {len(self.scores)} columns, {first!r} to {last!r}"
        if self.kind == "confidence":
            right = repr(self.correct) if self.correct else "where pred equals label"
            said += f", correct {right}"
        else:
            said += ", no label" if self.label is None else f", label {self.label!r}"
        for role in (*OF_ROWS, "classes"):
            if (name := getattr(self, role)) is not None:
                said += f", {role} {name!r}"
        return said


def make_plan(source: Source, roles: Roles) -> Plan:
    """Decide what is read, from what was said and from well-known names."""
    _check_said(source, roles)
    kind = _kind(source, roles)
    if kind == "confidence":
        scores: tuple[str, ...] = (_need(source, roles, "confidence"),)
        stars = None
        correct = _seek(source, roles, "correct")
        pred = None if correct else _seek(source, roles, "pred")
        label = _need(source, roles, "label") if pred else None
        if not correct and not pred:
            raise _missing(source, roles, "correct")
    else:
        scores, stars = _scores(source, roles, kind)
        find = _seek if roles.unlabelled else _need
        label, correct, pred = find(source, roles, "label"), None, None
    weight, frequency, cluster, group = (_seek(source, roles, x) for x in OF_ROWS)
    classes = None if roles.classes is not None else _classes(source, roles, kind)
    of_rows = weight, frequency, cluster, group
    name = _seek(source, roles, "id") if roles.with_id else None
    plan = Plan(kind, scores, label, correct, pred, *of_rows, classes, stars, name)
    if roles.percent and kind == "logits":
        raise FileError(source.path, "holds logits, which are never --percent.")
    _check(source, plan, roles)
    return replace(plan, others=_others(source, plan)) if roles.with_others else plan


def _check_said(source: Source, roles: Roles) -> None:
    """Refuse a name that is not there, and one that was said for two things."""
    for role in NAMED:
        if role in roles.given and roles.said(role) not in source.named:
            raise _no_such(source, role, roles.said(role))
    seen: dict[str, str] = {}
    for role in APART:
        for name in _said_names(source, roles, role) if role in roles.given else ():
            if (other := seen.setdefault(name, role)) != role:
                both = f"cannot take {shorten(name)!r} as {other} and as {role}"
                way_out = f"leave out --{other} or --{role}"
                raise FileError(source.path, f"{both}; {way_out}.")


def _others(source: Source, plan: Plan) -> tuple[str, ...]:
    """What else there is of each row."""
    rows = source[plan.scores[0]].shape[0]
    return tuple(
        entry.name
        for entry in source.entries
        if entry.name not in (*plan.names, plan.classes)
        and entry.kind != "other"
        and len(entry.shape) > 0
        and (source.is_table or entry.shape[0] == rows)
    )


def _kind(source: Source, roles: Roles) -> ScoreKind:
    said = [kind for kind in SCORES if kind in roles.given]
    if not said and {"correct", "pred"} & set(roles.given):
        return "confidence"
    readable = said or [kind for kind in SCORES if _readable(source, roles, kind)]
    if not said and source.roles:  # whole vectors say more than confidences do
        readable = readable[:1]
    if len(readable) == 1:
        return readable[0]
    if readable:
        way_out = _say_which(*readable, between=" or ")
        ways = " and as ".join(readable)
        raise FileError(source.path, f"can be read as {ways}; {way_out}.")
    if _known(source, roles, "confidence"):
        raise _missing(source, roles, "correct")
    if _is_empty(source):
        raise FileError(source.path, "has no rows.")
    known = "none of them known as probs, logits or confidence"
    way_out = _say_which(*SCORES)
    has = f"has {quoted(source.names)}, {known}"
    end = _join(source) or _also(source, roles, "label") or _alike(source)
    raise FileError(source.path, f"{has}; {way_out}{end}.")


def _is_empty(source: Source) -> bool:
    """Whether a table has names of columns, and nothing below them."""
    request = Request(source.names[:1], 1, most=1, missing=True)
    return source.is_table and not any(len(x) for x in source.blocks(request))


def _alike(source: Source) -> str:
    """Columns called like scores of classes that the labels do not name."""
    for kind, patterns in PATTERNS.items():
        for pattern in patterns:
            if len(split_pattern(pattern, source.names)) > 1:
                only = "is known only where labels name its columns"
                return f". {pattern!r} {only}; --{kind} {pattern!r} takes it"
    return ""


def _readable(source: Source, roles: Roles, kind: ScoreKind) -> bool:
    """Whether well-known names give these scores, and what they are held against."""
    if kind == "confidence":
        against = _known(source, roles, "correct") or _known(source, roles, "pred")
        return bool(_known(source, roles, kind) and against)
    if source.roles and not _known(source, roles, "label"):
        return False
    return bool(_known(source, roles, kind) or _known_columns(source, roles, kind))


def _known(source: Source, roles: Roles, role: str) -> list[str]:
    """Entries that are called as a role is, and were not said to be another."""
    free = _free(source, roles, role)
    if (name := source.roles.get(role)) is not None:
        return [name] if name in free else []
    found = [name for name in free if name.lower() in KNOWN[role]]
    if found or source.format != "npy":
        return found
    return [name for name in free if _roles_in(name) == {role}]


def _free(source: Source, roles: Roles, role: str) -> list[str]:
    """Entries that were not said to be of another role, whatever they are called."""
    others = (x for x in roles.given if x not in (role, "classes"))
    taken = {name for other in others for name in _said_names(source, roles, other)}
    return [name for name in source.names if name not in taken]


def _said_names(source: Source, roles: Roles, role: str) -> Sequence[str]:
    """The entries that were said to be of a role."""
    said = roles.said(role)
    if not isinstance(said, str):
        return tuple(said)
    if role not in PATTERNS or said in source.named:
        return (said,)
    return tuple(split_pattern(said, source.names)) or said.split(",")


def _roles_in(name: str) -> set[str]:
    """Roles of an array that its file's name begins or ends with: resnet_logits.npy."""
    if any(name.lower() in names for names in KNOWN.values()):
        return set()
    words = re.split(r"[_.-]", name.lower())
    ends = {word for word in (words[0], words[-1]) if len(word) > 1}
    return {role for role in ("label", "logits", "probs") if ends & {*KNOWN[role]}}


def _known_columns(source: Source, roles: Roles, kind: str) -> list[dict[str, str]]:
    free = _free(source, roles, kind)
    found = [split_pattern(p, free) for p in PATTERNS[kind]]
    several = [parts for parts in found if len(parts) > 1]
    return [x for x in several if are_numbers(x) or _are_classes(source, roles, x)]


def _are_classes(source: Source, roles: Roles, parts: dict[str, str]) -> bool:
    """Whether stars stand for the classes: those said, or those that the labels name."""
    if roles.classes is not None:
        return sorted(parts.values()) == sorted(roles.classes)
    found = [roles.y] if roles.y else _known(source, roles, "label")
    label = source.named.get(found[0]) if len(found) == 1 else None
    if label is None or label.kind != "text" or len(label.shape) != 1:
        return False
    request = Request((label.name,), LOOKED_AT, most=LOOKED_AT, missing=True)
    block = next(iter(source.blocks(request)), None)
    words = () if block is None else block[label.name]
    named = {str(word) for word in words if word is not None}
    return bool(named) and named <= {*parts.values()}


def _seek(source: Source, roles: Roles, role: str) -> str | None:
    """The entry of a role: as said, or the only one of a well-known name."""
    said = roles.said(role)
    if said == "" and role in (*OF_ROWS, "id"):
        return None
    if said is not None:
        if said not in source.named:
            raise _no_such(source, role, said)
        return str(said)
    found = _known(source, roles, role)
    if len(found) > 1:
        several = f"has {quoted(found)}, each of which could be the {role}"
        raise FileError(source.path, f"{several}; {_say_which(role)}.")
    return found[0] if found else None


def _need(source: Source, roles: Roles, role: str) -> str:
    found = _seek(source, roles, role)
    if found is None:
        raise _missing(source, roles, role)
    return found


def _missing(source: Source, roles: Roles, role: str) -> FileError:
    also = " (or the predicted class with --pred)" if role == "correct" else ""
    none = f"has {quoted(source.names)}, none of them known as the {role}"
    end = f"{also}{_join(source)}{_also(source, roles, role)}"
    return FileError(source.path, f"{none}; {_say_which(role)}{end}.")


def _also(source: Source, roles: Roles, role: str) -> str:
    """An entry that is called as a role is, but was said to be another."""
    free = _free(source, roles, role)
    for other in roles.given:
        for name in _said_names(source, roles, other) if other not in APART else ():
            if name not in free and name.lower() in KNOWN[role]:
                return (
                    f". {name!r} is the {other}; --{role} {name} takes it as {role} too"
                )
    return ""


def _join(source: Source) -> str:
    """How to name files of one array each, where only one was named."""
    if source.format != "npy" or len(source.entries) > 1:
        return ""
    return ". Arrays of one model are joined by a comma: logits.npy,labels.npy"


def _no_such(source: Source, role: str, said: str) -> FileError:
    none = f"has no {shorten(said)!r} for {role}"
    return FileError(source.path, f"{none}; it has {quoted(source.names)}.")


def _say_which(*roles: str, between: str = ", ") -> str:
    return "say which with " + between.join(f"--{role} NAME" for role in roles)


def _scores(
    source: Source, roles: Roles, kind: ScoreKind
) -> tuple[tuple[str, ...], tuple[str, ...] | None]:
    """Names of the scores, and what the stars of a pattern stood for."""
    said = roles.said(kind)
    if said is None:
        columns = _known_columns(source, roles, kind)
        if len(columns) == 1 and not _known(source, roles, kind):
            return _of_parts(columns[0])
        if columns:
            several = f"has {kind} of more than one name"
            raise FileError(source.path, f"{several}; {_say_which(kind)}.")
        return (_need(source, roles, kind),), None
    if not isinstance(said, str):
        wanted = [str(name) for name in said]
    elif said in source.named:
        return (said,), None
    elif said.count("*") == 1:
        if not (parts := split_pattern(said, source.names)):
            raise _no_such(source, kind, said)
        return _of_parts(parts)
    else:
        wanted = said.split(",")
    if unknown := [name for name in wanted if name not in source.named]:
        raise _no_such(source, kind, unknown[0])
    if len(set(wanted)) < len(wanted) or not wanted:
        raise FileError(source.path, f"{kind} must name each column once.")
    return tuple(wanted), None


def _of_parts(parts: dict[str, str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    parts = in_order(parts)
    return tuple(parts), tuple(parts.values())


def _classes(source: Source, roles: Roles, kind: ScoreKind) -> str | None:
    """An array of class names beside the others; a table has no place for one."""
    none = source.is_table or kind == "confidence"
    found = [] if none else _known(source, roles, "classes")
    return found[0] if found and len(source[found[0]].shape) == 1 else None


def _check(source: Source, plan: Plan, roles: Roles) -> None:
    """Every role has entries of the right shape and type."""
    many = len(plan.scores) > 1 or plan.kind == "confidence"
    for name in plan.scores:
        _check_entry(source, name, plan.kind, 1 if many else 2, text=roles.spelt)
    for role in ("correct", "weight", "frequency"):
        if (name := getattr(plan, role)) is not None:
            text = role == "correct" or roles.decimal is not None
            _check_entry(source, name, role, 1, text=text)
    soft = 1 if plan.kind == "confidence" else 2  # a matrix of labels is soft labels
    named = ("label", soft), ("pred", 1), ("cluster", 1), ("group", 1), ("id", 1)
    for role, sides in named:
        entry = source[name] if (name := getattr(plan, role)) is not None else None
        if entry and (entry.kind == "other" or not 1 <= len(entry.shape) <= sides):
            raise _wrong(source, entry, f"one number or text per row, to be {role}")


def _check_entry(
    source: Source, name: str, role: str, sides: int, *, text: bool
) -> None:
    entry = source[name]
    if entry.kind == "text" and len(entry.shape) == 1 and not text:
        raise _is_text(source, entry, role)
    if entry.dtype == OPTIONS and sides == 2:
        return
    if entry.kind == "other" or (entry.kind == "text" and not text):
        raise _wrong(source, entry, f"numbers, to be {role}")
    if not 1 <= len(entry.shape) <= sides:
        shape = "one number per row" if sides == 1 else "one row per prediction"
        raise _wrong(source, entry, f"{shape}, to be {role}")
    if 0 in entry.shape:
        raise FileError(source.path, f"{shorten(entry.name)!r} has no numbers in it.")


LOOKED_AT = 1000
"""Rows among which the first text is looked for, to tell what kind it is."""


def _is_text(source: Source, entry: Entry, role: str) -> FileError:
    """Text where numbers should be, with the option that reads it if there is one."""
    some = source.blocks(Request((entry.name,), LOOKED_AT, most=LOOKED_AT))
    values = next(some, {entry.name: [""]})[entry.name]
    first = next((str(x) for x in values if x is not None and str(x).strip()), "")
    forms = {"--decimal ,": r"[\d.]*,\d+ ?%?", "--percent": r"[\d.,]+ ?%"}
    ways = [way for way, form in forms.items() if re.fullmatch(form, first.strip())]
    said = f"{shorten(entry.name)!r} must hold numbers, to be {role}; it holds text"
    way_out = f"; pass {' and '.join(ways)}" if ways else ""
    if not ways and role in ("confidence", "probs"):
        way_out = "; say what words mean with --scale 'likely=0.8,unsure=0.5'"
    return FileError(source.path, f"{said} ({shorten(first)!r}){way_out}.")


def _wrong(source: Source, entry: Entry, need: str) -> FileError:
    found = f"{shorten(entry.dtype)} of shape {shape_words(entry)}"
    name = shorten(entry.name)
    if entry.dtype == "objects":
        way_out = (
            'write a number for each option, {"A": -0.2, ...}, or a list of numbers'
        )
        return FileError(source.path, f"{name!r} holds objects, {{...}}; {way_out}.")
    return FileError(source.path, f"{name!r} must hold {need}; it is {found}.")


def shape_words(entry: Entry) -> str:
    """The shape, with n for rows not yet counted: n x 3."""
    sides = ["n" if s is None and i == 0 else str(s) for i, s in enumerate(entry.shape)]
    return " x ".join("?" if side == "None" else side for side in sides) or "one value"

"""Records that were saved: recalibrators, evaluations and sketches, changed by anyone."""

from __future__ import annotations

import copy
import io
import json
import re
import zipfile
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from .api import METHODS, evaluation_objection, probability_objection
from .cases import Case, special
from .choices import Choices
from .formats import NUMBERS, bytes_off, npy

VALUES: tuple[Any, ...] = (
    None, 0, 1, -1, 0.5, -0.5, 1e308, -1e308, 5e-324, 2**63, 10**30, "", "nan", "inf", "-inf",
    "x", "\x1b[31m", "a\0b", True, [], {}, [0.5], [[0.5]], {"a": 1}, [None], "__class__",
    [[[]]], ["a", 1], 1e999, float("nan"), 16.0, 1.0000001, "<f8",
)  # fmt: skip
"""Values to put in the place of another; the last ones are no strict JSON."""

KEYS = (
    "predict_proba",
    "__class__",
    "__dict__",
    "x",
    "",
    "learned",
    "\x1b",
    "_apply",
    "array",
)


@cache
def rows() -> tuple[Any, Any, Any]:
    """Labels, probabilities and logits that the records come from."""
    rng = np.random.default_rng(1)
    probs = rng.dirichlet(np.ones(3), 40)
    y = np.array([rng.choice(3, p=p) for p in probs])
    y[:3] = 0, 1, 2
    return y, probs, 2 * np.log(probs)


@cache
def recalibrators() -> tuple[tuple[str, str], ...]:
    """A saved recalibrator of each method."""
    import tempfile
    import warnings

    from calibrant import recalibration

    y, probs, logits = rows()
    found = []
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit on forty rows may be noted
        for name in METHODS:
            for kind, scores in (("probs", probs), ("logits", logits)):
                path = Path(folder) / f"{name}-{kind}.json"
                method = getattr(recalibration, name)(scores=kind)
                method.fit(scores, y).save(path)
                found.append((name, path.read_text("utf-8")))
    return tuple(found)


@cache
def evaluations() -> tuple[str, ...]:
    """Saved evaluations, their curves cut short so that a change hits more than curves."""
    from calibrant import Evaluation, evaluate

    y, probs, _ = rows()
    options: tuple[dict[str, Any], ...] = (
        {},
        {"target": "class-wise"},
        {"group": y},
        {"sample_weight": probs[:, 0]},
    )
    made = [evaluate(y, probs=probs, bins=4, **more).to_dict() for more in options]
    return tuple(Evaluation.from_dict(_cut(x)).to_json() for x in made)


LONG = ("curves", "paper_curves", "smooth")
"""Parts of an evaluation that are hundreds of places along the confidence."""


def _cut(value: Any, *, inside: bool = False) -> Any:
    """The same with no curve longer than five places, and without a digest."""
    if isinstance(value, dict):
        left = {name: x for name, x in value.items() if name != "digest"}
        return {n: _cut(x, inside=inside or n in LONG) for n, x in left.items()}
    if isinstance(value, list):
        return [_cut(x, inside=inside) for x in value[: 5 if inside else None]]
    return value


@cache
def sketches() -> tuple[bytes, ...]:
    """Saved sketches: of vectors, of pairs, with weights and clusters."""
    from calibrant import Sketch

    y, probs, _ = rows()
    pairs = Sketch().update_pairs(y == 0, probs[:, 0], cluster=np.arange(40) % 12)
    weighted = Sketch().update(y, probs=probs, sample_weight=probs[:, 1])
    return (
        Sketch().update(y, probs=probs).to_bytes(),
        pairs.to_bytes(),
        weighted.to_bytes(),
    )


@cache
def results() -> tuple[tuple[type, str], ...]:
    """Results of other verbs, which are records too."""
    import calibrant as cal

    y, probs, _ = rows()
    y, p = (y == 0).astype(int), probs[:, 0]
    group = np.array(["a", "b"])[np.arange(40) % 2]
    evs = [cal.evaluate(y, probs=p, interval=None, name=name) for name in "ab"]
    made = (
        cal.monitor(y, probs=p, period=np.sort(group)), cal.risk_coverage(y, probs=p),
        cal.decision_curve(y, probs=p, thresholds=[0.2, 0.5]), cal.clinical(y, probs=p),
        cal.murphy(y, probs=p, thresholds=[0.2, 0.5]), cal.cutoff_error(y, probs=p),
        cal.compare_groups(y, probs=p, group=group), cal.t_cal(y, probs=p, resamples=20),
        cal.multicalibration_error(y, probs=p, groups={"a": group == "a"}),
        cal.kernel_calibration_error(y, probs=p, resamples=20), cal.compare(*evs),
        cal.calibration_test(y, probs=p), cal.confidence_split(y, probs=p),
        cal.canonical_calibration_error(y, probs=p), cal.loss_parts(y, probs=p, explain=probs),
    )  # fmt: skip
    return tuple(
        (type(x), type(x).from_dict(_cut(x.to_dict())).to_json()) for x in made
    )


def record_case(c: Choices, home: Path) -> Case:
    """A record, changed in one or two places, and loaded."""
    what = c.one((_recalibrator, _evaluation, _recalibrator, _sketch, _result, _result))
    return what(c, home)


# -- JSON -----------------------------------------------------------------------------


def changed(c: Choices, text: str) -> tuple[bytes, bool]:
    """JSON with something else in it, and whether its digest, if any, was kept."""
    how = c.below(8)
    if how == 7:
        return bytes_off(c, text.encode()), True
    if how == 6:
        deep = c.one(
            ("[" * 5000, '{"a":' * 5000, "[" * 99 + "]" * 99, "9" * 5000, "NaN", "")
        )
        return deep.encode(), False
    given = json.loads(text)
    for _ in range(how % 3 + (how > 0)):
        change(c, given)
    kept = not c.chance(200) and "digest" in given
    if not kept:
        given.pop("digest", None)
    made = json.dumps(given)
    if c.chance(6):
        made = f'{made[:-1]}, "{c.one([*given, "x"])}": {json.dumps(c.one(VALUES))}}}'
    return made.encode(), kept


def change(c: Choices, given: Any) -> None:
    """Replace, remove or add one thing somewhere inside."""
    for _ in range(12):
        keys = (
            list(given)
            if isinstance(given, dict)
            else list(range(min(len(given), 200)))
        )
        if not keys:
            return
        key = c.one(keys)
        inner = given[key]
        if not (isinstance(inner, dict | list) and inner) or c.chance(60):
            break
        given = inner
    how = c.below(6)
    if how == 4 and isinstance(given, dict):
        given[c.one(KEYS)] = c.one(VALUES)
    elif how == 5:
        del given[key]
    elif how == 3 and isinstance(given, list):
        given.append(copy.deepcopy(given[key]))
    elif how == 2 and isinstance(inner, int | float):
        given[key] = c.one((-inner, inner + 1, inner * 16, 1 / inner if inner else 1))
    else:
        given[key] = copy.deepcopy(c.one(VALUES))


def _recalibrator(c: Choices, home: Path) -> Case:
    name, text = c.one(recalibrators())
    content, kept = changed(c, text)
    path = home / "saved.json"
    path.write_bytes(content)
    wrong = special(c, home, [path]) if c.chance(3) else "?"
    digest = _digest(text)

    def call() -> Any:
        from calibrant import recalibration

        made = recalibration.load(path)
        _, probs, logits = rows()
        result = made.predict_proba(probs if made.scores == "probs" else logits)
        if kept and digest:
            made.save(home / "again.json")
        return result

    def check(result: Any) -> str:
        again = home / "again.json"
        if (
            kept
            and digest
            and again.exists()
            and _digest(again.read_text("utf-8")) != digest
        ):
            return "the digest is the old one, and the record another"
        return probability_objection(result)

    return Case(
        f"recalibrator {name}",
        call,
        ("saved.json",),
        f"recalibration.load  # {name}",
        wrong,
        check,
    )


def _digest(text: str) -> str:
    return str(json.loads(text).get("digest", ""))


def _evaluation(c: Choices, home: Path) -> Case:
    text = c.one(evaluations())
    content, kept = changed(c, text)
    digest = _digest(text)

    def call() -> Any:
        from calibrant import Evaluation

        ev = Evaluation.from_json(content.decode("utf-8", "replace"))
        again = Evaluation.from_json(ev.to_json())
        if again.to_json() != ev.to_json():
            raise AssertionError(
                "an evaluation that changes on its way to JSON and back"
            )
        str(ev), repr(ev)
        if shown:
            ev.table("text"), ev.audit()
        return ev

    shown = c.below(4) == 0

    def check(ev: Any) -> str:
        if kept and digest and _digest(ev.to_json()) != digest:
            return "the digest is the old one, and the record another"
        return evaluation_objection(ev)

    names = ("evaluation", "JSON", "json")
    (home / "evaluation.json").write_bytes(content)
    return Case("evaluation", call, names, "Evaluation.from_json(...)", "?", check)


def _result(c: Choices, home: Path) -> Case:
    kind, text = c.one(results())
    content, kept = changed(c, text)
    digest = _digest(text)

    def call() -> Any:
        found = kind.from_json(content.decode("utf-8", "replace"))  # type: ignore[attr-defined]
        again = kind.from_json(found.to_json())  # type: ignore[attr-defined]
        if again.to_json() != found.to_json():
            raise AssertionError("a result that changes on its way to JSON and back")
        str(found), repr(found)
        return found

    def check(found: Any) -> str:
        if kept and digest and _digest(found.to_json()) != digest:
            return "the digest is the old one, and the record another"
        return ""

    name = kind.__name__
    names = (name, "JSON", "json", *_spaced(name))
    (home / "result.json").write_bytes(content)
    return Case(name, call, names, f"{name}.from_json(...)", "?", check)


def _spaced(name: str) -> tuple[str, ...]:
    """A name of a class as words: risk coverage."""
    words = re.findall("[A-Z][a-z]*", name)
    return (" ".join(words).lower(), words[0].lower())


def _objection(ev: Any) -> str:
    return "" if ev is None else evaluation_objection(ev)


# -- sketches -------------------------------------------------------------------------


def _sketch(c: Choices, home: Path) -> Case:
    content = c.one(sketches())
    how = c.below(4)
    if how == 1:
        content = bytes_off(c, content)
    elif how > 1:
        content = _resealed(c, content, seal=how == 2)
    path = home / "sketch.npz"
    path.write_bytes(content)
    wrong = special(c, home, [path]) if c.chance(3) else "?"

    def call() -> Any:
        from calibrant import Sketch, evaluate

        sketch = Sketch.load(path)
        str(sketch), sketch.facts()
        return evaluate(sketch + sketch, interval=None) if whole else None

    whole = c.below(6) == 0
    names = ("sketch", "cluster", "rows")
    return Case("sketch", call, names, "evaluate(Sketch.load(...))", wrong, _objection)


def _resealed(c: Choices, content: bytes, *, seal: bool) -> bytes:
    """The archive with an array changed; its digest is made anew where `seal` says so."""
    from calibrant._sketch import storage

    with np.load(io.BytesIO(content)) as archive:
        arrays = dict(archive)
    arrays.pop(storage.DIGEST, None)
    for _ in range(c.between(1, 2)):
        name = c.one(sorted(arrays, key=lambda name: name != storage.HEADER))
        if name == storage.HEADER and name in arrays:
            header = json.loads(arrays[name].tobytes())
            change(c, header)
            arrays[name] = np.frombuffer(json.dumps(header).encode(), np.uint8)
        elif name in arrays:
            arrays[name] = _other_array(c, arrays[name])
    if seal:
        arrays[storage.DIGEST] = np.frombuffer(storage._digest(arrays), np.uint8)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            archive.writestr(f"{name}.npy", npy(array))
    return file.getvalue()


def _other_array(c: Choices, array: Any) -> Any:
    how = c.below(8)
    if how == 0 and array.size and array.dtype.kind in "iuf":
        made = array.copy()
        edges = (
            (-1, 0, 1, 2**31 - 1)
            if array.dtype.kind in "iu"
            else (-1.0, np.nan, np.inf, 1e308, 0.0)
        )
        made.flat[c.below(array.size)] = np.array(c.one(edges)).astype(array.dtype)
        return made
    plain = array.dtype.kind in "if" and array.ndim > 0
    if not plain:
        return np.array(c.one((0, -1, "x", 2.5)))
    options = (
        array[::-1], array[:0], -array, array.astype("f4"), array[..., None], np.array(c.one(NUMBERS[:8])), np.array(["x"]),
    )  # fmt: skip
    return options[how - 1]

"""Numbers and words of version 0.1.0 are still what they were.

Each case of `cases.py` is run again and compared with `goldens.json.gz`, which `acumen`
0.1.0 wrote. ``CALIBRANT_FROZEN_PACKAGE`` names another package to run them with.
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import cases
import freeze
import pytest

HERE = Path(__file__).parent
FROZEN_AS = "acumen"
PACKAGE = os.environ.get("CALIBRANT_FROZEN_PACKAGE", "calibrant")

TOLERANCE = 1e-12
"""Of a number, or of the largest in its list."""

ROUND_OFF = 1e-15
"""What a number may always be off by: round-off where numbers of size 1 cancel."""

LOOSER: dict[str, tuple[float, str]] = {
    "page_": (1e-6, "pages carry their columns in single precision"),
    "numba_float32_": (
        1e-7,
        "losses of scores in single precision were rounded by numba in another order",
    ),
}
"""Tolerances by the beginning of the name of a case, each with its reason."""

SOLVED: dict[str, tuple[float, str]] = {
    r"^metric_choose_bandwidth/.*/standard_error/": (
        1e-6,
        "of a difference of nearly equal sums, whose last digits depend on the processor",
    ),
    r"^recalibrator_DirichletCalibration/|^study_all_methods/.*/paper_curves/": (
        1e-9,
        "a fit that is iterated, the last digits of which depend on the processor",
    ),
    r"^study_\w+/.*/smooth(_ece)?/": (
        1e-11,
        "SmoothECE, near 0.03, was solved to 1e-12: 1e-13 of the equation was left, now 1e-16",
    ),
}
"""Tolerances by the pattern of a place, each with its reason."""

EXCEPTIONS: dict[str, str] = {
    "evaluate_float16_probs/log_odds_histogram": (
        "a row's log-odds cell is that of its confidence, as in sketches; at the edge of a "
        "bar a rounded probability can lie on the other side"
    ),
}
EXCEPTIONS |= dict.fromkeys(
    ["evaluate_numpy/isotonic", "numba_logits/isotonic", "numba_probs/isotonic"]
    + [f"sketch_merged/{i}/evaluation/isotonic" for i in range(3)],
    "levels of exactly the same accuracy are one; round-off had kept two of them apart",
)
"""What was changed deliberately, with the reason.

A key is the name of a case, or that and the beginning of a path in its result, such as
``"words_of_models/paper/0"``.
"""

CHANGED = {
    r"(?<!paper_)curves?/|/line/|/lines/|/collections$|/xlim|/ylim": (
        "the curve has fewer places, another width, and two bands"
    ),
    r"/(calibration|sharpness[_ ]gap|gap)(/|$)": "d_CAL is that of the ladder",
    r"^metric_(calibration_error|calibration_bracket|bracket|confidence_split)": (
        "d_CAL is that of the ladder, sides are those of the new curve, and folds of the "
        "bracket do not cut clusters"
    ),
    r"/(calibration_error|error|confidence_split)/": "d_CAL is that of the ladder",
    r"/interval(/|$)|/intervals$|/method$|/metrics/[^/]+/[12]$|/total/[12]$": (
        "intervals heed squared weights, Student's law and few surprises, and tests are "
        "inverted on other shapes"
    ),
    r"/p_value$|_p$": "with weights and clusters p-values are simulated otherwise",
    r"/(band_low|band_high|resolution|n_effective|n_clusters|duplicates|repeated"
    r"|sum_of_weights|largest_class|left_out|unpaired|absent|mean_replaced|folded)$": (
        "new fields"
    ),
    r"/positive$|^page_of_\w+(/0)?/(estimators|each|scores/\d/(column|total))$": "new fields",
    r"^page_of_\w+(/0)?/(columns/\d+/estimated|models/\d+/alike(_live)?)$": "new fields",
    r"^page_of_\w+(/0)?/(gap_below_0|variants)$": "new fields",
    r"^page_of_\w+(/0)?(/models/\d+)?/(level|z)$": "each model has a level of its own",
    r"/(clusters|count|effective|lost|examples)$|/learned/lapse_$|/parameters/pairs$": "new fields",
    r"/macro_averages$": "new fields",
    r"^(recalibrator|numba|command_recalibrate).*/digest$": "files carry a digest",
    r"/(findings|sentences|badges|text|texts|notes|notes_|evidence|verdict)(/|$)": (
        "new findings, and examples where rows were said"
    ),
    r"^page_of_\w+/1$": "pages say how many examples count, and what bands mean",
    r" \(text\)$": "texts show the numbers above, and say examples where they said rows",
    r"^metric_canonical_calibration_error/.*/standard_error$": "n - 1 rows vary",
    r"^sketch_\w+\.npz/numbers/(curve|groups)/": "estimates of old sketches are as new ones",
    r"^audits_of_models/[^/]+$|^audit_of_comparison/\d+$": "new findings",
    r"^frames_of_models/(0/(low|high|value)|2)/": "frames of the numbers and curves above",
    r"/(aurc|excess_aurc|augrc)(/|$)|^frames_of_models/0/\w+$": "new metrics",
    r"^sketch_pairs/1/(evaluation/(per_group/\w+/)?k|facts/classes)$": (
        "pairs with their full losses do not say how many classes there are"
    ),
    r"/ends/": "axes reach as far as bands and curves do",
}
"""What weights, clusters, few events and the second version of the estimators changed.

Patterns of paths, with the reason. What they leave is held: the values of metrics, bins,
histograms, isotonic fits, the paper's estimates, sketches and recalibrators.
"""

SHOWN = 8
"""Differences that a failure lists."""


@pytest.fixture(scope="session")
def goldens() -> dict[str, Any]:
    """What was frozen, by the name of the case."""
    return freeze.read()


@pytest.mark.parametrize("name", list(cases.CASES))
def test_frozen(
    name: str, goldens: dict[str, Any], tmp_path: Path, part: Any, request: Any
) -> None:
    """A case gives what it gave."""
    for package in cases.CASES[name].needs:
        part(package)
    if cases.CASES[name].compiled:
        request.getfixturevalue("built")
    found = cases.run(name, importlib.import_module(PACKAGE), tmp_path)
    differences = list(compare(goldens[name], found, name, tolerance_of(name)))
    kept, excused = [], []
    for path, text in differences:
        reason = reason_for(path)
        (kept if reason is None else excused).append((path, text, reason))
    for path, text, reason in excused:
        print(f"{path} changed deliberately ({reason}): {text}")  # noqa: T201
    shown = "\n".join(f"{path}: {text}" for path, text, _ in kept[:SHOWN])
    assert not kept, f"{len(kept)} differences, the first of them:\n{shown}"


def test_every_case_is_frozen(goldens: dict[str, Any]) -> None:
    """No case was added without a golden, and none was lost."""
    assert sorted(goldens) == sorted(cases.CASES)


def test_exceptions_are_about_cases() -> None:
    """An exception that excuses nothing is a mistake."""
    names = {key.partition("/")[0] for key in EXCEPTIONS}
    assert names <= set(cases.CASES)


def tolerance_of(name: str) -> float:
    """How closely the numbers of a case must agree."""
    return next(
        (x for key, (x, _) in LOOSER.items() if name.startswith(key)), TOLERANCE
    )


def tolerance_at(path: str) -> float:
    """How closely a number must agree that was solved for."""
    found = (x for pattern, (x, _) in SOLVED.items() if re.search(pattern, path))
    return next(found, 0.0)


def reason_for(path: str) -> str | None:
    """Why this place may differ, if it may."""
    found = (
        why
        for key, why in EXCEPTIONS.items()
        if path == key or path.startswith(f"{key}/")
    )
    changed = (why for pattern, why in CHANGED.items() if re.search(pattern, path))
    return next(found, None) or next(changed, None)


def compare(
    golden: Any, found: Any, path: str, tolerance: float, scale: float = 0.0
) -> Iterator[tuple[str, str]]:
    """Places where two structures differ, and how; the order of keys does not count."""
    if isinstance(golden, dict) and isinstance(found, dict):
        yield from _compare_dicts(golden, found, path, tolerance)
    elif isinstance(golden, list) and isinstance(found, list):
        yield from _compare_lists(golden, found, path, tolerance)
    elif is_number(golden) and is_number(found):
        if not is_close(golden, found, max(tolerance, tolerance_at(path)), scale):
            yield (
                path,
                f"was {golden!r}, is {found!r}, off by {abs(golden - found):.3g}",
            )
    elif isinstance(golden, str) and isinstance(found, str):
        if renamed(golden) != found:
            yield f"{path} (text)", _first_difference(renamed(golden), found)
    elif type(golden) is not type(found) or golden != found:
        yield path, f"was {golden!r}, is {found!r}"


def _compare_dicts(
    golden: dict[str, Any], found: dict[str, Any], path: str, tolerance: float
) -> Iterator[tuple[str, str]]:
    golden = {renamed(key): value for key, value in golden.items()}
    for key in sorted(golden.keys() - found.keys()):
        yield f"{path}/{key}", f"was {golden[key]!r:.80}, is missing"
    for key in sorted(found.keys() - golden.keys()):
        yield f"{path}/{key}", f"was not there, is {found[key]!r:.80}"
    for key in sorted(golden.keys() & found.keys()):
        yield from compare(golden[key], found[key], f"{path}/{key}", tolerance)


def _compare_lists(
    golden: list[Any], found: list[Any], path: str, tolerance: float
) -> Iterator[tuple[str, str]]:
    if len(golden) != len(found):
        yield path, f"had {len(golden)} items, has {len(found)}"
        return
    scale = max((abs(x) for x in golden if is_number(x)), default=0.0)
    for place, (one, other) in enumerate(zip(golden, found, strict=True)):
        yield from compare(one, other, f"{path}/{place}", tolerance, scale)


def is_number(value: Any) -> bool:
    """Whether this is an int or a float; True and False are none."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def is_close(golden: float, found: float, tolerance: float, scale: float = 0.0) -> bool:
    """Whether numbers are equal, but for the tolerance."""
    size = max(abs(golden), abs(found), scale)
    return abs(golden - found) <= max(tolerance * size, ROUND_OFF)


def renamed(text: str) -> str:
    """The text with the package's name, and short name in code, as they are now."""
    if PACKAGE == FROZEN_AS:
        return text
    text = text.replace("ACUMEN", PACKAGE.upper()).replace(FROZEN_AS, PACKAGE)
    return re.sub(r"\bac\.", "cal.", text)


def _first_difference(golden: str, found: str) -> str:
    """The places around the first character that differs."""
    pairs = enumerate(zip(golden, found, strict=False))
    short = min(len(golden), len(found))
    at = next((i for i, (one, other) in pairs if one != other), short)
    part = slice(max(0, at - 30), at + 50)
    return f"was ...{golden[part]!r}, is ...{found[part]!r} (character {at})"

"""Audit a model or a comparison: pitfalls of calibration, looked for one by one."""

from __future__ import annotations

import inspect
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from calibrant._base.comparison import Comparison, as_shown
from calibrant._base.records import SEVERITIES, Finding
from calibrant._verbs.compare import same_clusters, same_rows, were_paired
from calibrant.audit._rules import COMPARISON_RULES, MODEL_RULES, WHOSE, Audited, Told
from calibrant.table._table import names

CODES = {"too_few_rows_to_rank": "too-few-rows"}
"""Codes that are not the name of their rule."""


def audit(models: Any) -> tuple[Finding, ...]:
    """What to know before quoting a number of a model or a comparison, worst first.

    Parameters
    ----------
    models : Evaluation, Comparison or list of Evaluation
        What is to be audited. Rules that need the examples are silent where these are
        gone, as after JSON.

    Examples
    --------
    >>> import calibrant as cal
    >>> ev = cal.evaluate_pairs([1, 1, 0, 1] * 500, [0.75] * 2000, name="MRR")
    >>> [finding.code for finding in audit(ev)]
    ['trivial-confidence', 'one-dimensional-score']
    """
    comparison = as_shown(models)
    found = [
        _finding(rule, told, ev.name)
        for ev in comparison
        for rule in MODEL_RULES
        for told in rule(ev)
    ]
    found += _of_several(comparison)
    told = [_naming(x, comparison) for x in _merged(found)]
    return tuple(sorted(told, key=lambda x: SEVERITIES.index(x.severity)))


def _merged(findings: Iterable[Finding]) -> Iterable[Finding]:
    """Findings that say the same of several models, as one."""
    found: dict[tuple[str, str], Finding] = {}
    for one in findings:
        before = found.setdefault((one.code, one.text), one)
        if before is not one:
            models = (*before.models, *one.models)
            found[one.code, one.text] = replace(before, models=models)
    return found.values()


def _naming(finding: Finding, comparison: Comparison) -> Finding:
    """The same, which names those whose examples it is about, unless all have them."""
    whose, models = "", finding.models
    if len(models) < len(comparison) or not _on_the_same_rows(comparison):
        whose = f" of {'each of ' * (len(models) > 1)}{names(models)}"
    return replace(finding, text=finding.text.replace(WHOSE, whose))


def _on_the_same_rows(comparison: Comparison) -> bool:
    first, *others = comparison
    return all(
        (same_rows(x, first) and same_clusters(x, first)) or were_paired(x, first)
        for x in others
    )


def _of_several(comparison: Comparison) -> Iterable[Finding]:
    audited = Audited(comparison)
    alike = len({(ev.target, ev.divergence) for ev in comparison}) == 1
    if len(comparison) < 2 or not alike:
        return []
    return [_finding(rule, x) for rule in COMPARISON_RULES for x in rule(audited)]


def _finding(rule: Any, told: Told, *name: str) -> Finding:
    severity, text, evidence, advice, models = told
    return Finding(_code(rule), severity, models or name, text, evidence, advice)


def _code(rule: Any) -> str:
    return CODES.get(rule.__name__, rule.__name__.replace("_", "-"))


PAGE = """\
# What an audit looks for

`ev.audit()` and `cmp.audit()` return findings, worst first. Each has a stable code, a
severity (serious: a number misleads as it stands; warning: it does unless one knows;
note: good to know), the numbers behind it, and advice. Rules that need the examples are
silent where an evaluation was read from JSON.
"""


def docs_page() -> str:
    """A Markdown page of all codes with their reasons, made of the rules' docstrings."""
    parts = [PAGE]
    rules = {"One model": MODEL_RULES, "Several models": COMPARISON_RULES}
    for heading, those in rules.items():
        parts += [f"## {heading}\n", *map(_entry, those)]
    return "\n".join(parts)


def _entry(rule: Any) -> str:
    what, _, why = inspect.cleandoc(rule.__doc__).partition("\n\n")
    return f"### `{_code(rule)}`\n\n{what}\n\n{why}\n"

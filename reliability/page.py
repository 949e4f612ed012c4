"""The figures of docs/reliability.md, written from results: none of them is typed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from . import mutants, results
from .engine import KINDS
from .judge import CEILING, SECONDS

WORDS = {
    "readers": "files, by format",
    "harness": "files of language-model harnesses",
    "records": "saved records",
    "api": "calls of public functions",
    "command": "lines of the command",
    "engines": "arrays for NumPy and compiled loops",
}


def markdown(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    whole = [head, ["---", *["--:"] * (len(head) - 1)], *lines]
    return "\n".join(f"| {' | '.join(line)} |" for line in whole) + "\n"


def block(name: str, text: str) -> str:
    """Text between marks, which a page includes by name."""
    return f"<!-- {name} -->\n\n{text.rstrip()}\n\n<!-- end of {name} -->\n"


# -- the fuzzer -----------------------------------------------------------------------


def outcomes(kind: dict[str, Any]) -> Counter[str]:
    """What became of all inputs of a kind."""
    total: Counter[str] = Counter()
    for counted in kind["about"].values():
        total.update(counted)
    return total


def fuzz_page(stored: dict[str, Any]) -> str:
    """Inputs by kind, and what was found."""
    known = {name: stored["kinds"][name] for name in KINDS if name in stored["kinds"]}
    parts = [
        "# Inputs tried\n\nWritten by `python -m reliability page` from results.json.\n",
        block("inputs", _inputs(known, stored["findings"]) + _before(stored)),
        block(
            "by kind", "\n".join(_by_kind(name, kind) for name, kind in known.items())
        ),
        block("findings", _findings(stored["findings"])),
    ]
    return "\n".join(parts)


def _inputs(known: dict[str, Any], findings: dict[str, Any]) -> str:
    total = sum(kind["inputs"] for kind in known.values())
    minutes = sum(kind["seconds"] for kind in known.values()) / 60
    open_ones = [name for name, finding in findings.items() if not finding["mended"]]
    lines = [
        [WORDS[name], *map(_number, _figures(name, kind, open_ones))]
        for name, kind in known.items()
    ]
    head = [
        "what",
        "inputs",
        "accepted",
        "refused",
        "open findings",
        "steps of code seen",
    ]
    text = (
        f"{total:,} inputs in {minutes:.0f} minutes of one core "
        f"({60_000 * minutes / max(total, 1):.1f} ms each); {len(findings)} findings so far, "
        f"{len(findings) - len(open_ones)} of them mended. The slowest input computed for "
        f"{max((kind['slowest'] for kind in known.values()), default=0):.1f} s (the limit is "
        f"{SECONDS} s), and no input may raise the peak of memory by more than {CEILING} MB.\n\n"
    )
    return text + markdown(head, lines)


def _before(stored: dict[str, Any]) -> str:
    """Inputs that another judge saw, which count for nothing above."""
    before = stored.get("before")
    if not before:
        return ""
    return f"\nNot counted: {before['inputs']:,} inputs before {before['until']}.\n"


def _figures(name: str, kind: dict[str, Any], open_ones: list[str]) -> list[int]:
    became = outcomes(kind)
    mine = [finding for finding in open_ones if finding.startswith(f"{name} |")]
    return [kind["inputs"], became["fine"], became["refused"], len(mine), kind["arcs"]]


def _number(value: int) -> str:
    return f"{value:,}"


def _by_kind(name: str, kind: dict[str, Any]) -> str:
    lines = [
        [
            about,
            *map(
                _number,
                (sum(became.values()), became.get("fine", 0), became.get("refused", 0)),
            ),
        ]
        for about, became in sorted(kind["about"].items())
    ]
    head = [WORDS[name], "inputs", "accepted", "refused"]
    return markdown(head, lines)


def _findings(findings: dict[str, Any]) -> str:
    if not findings:
        return "None.\n"
    lines = [
        [
            f"`{_plain(name)}`",
            _plain(finding["said"])[:120],
            "mended" if finding["mended"] else "open",
        ]
        for name, finding in sorted(findings.items())
    ]
    return markdown(["found", "what it said", "now"], lines).replace("--:", "---")


def _plain(text: str) -> str:
    """Text that a table can hold."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in text)
    return shown.replace("|", "/").replace("`", "'").replace("<", "‹").replace(">", "›")


# -- mutants --------------------------------------------------------------------------


def mutant_page(stored: dict[str, Any]) -> str:
    """How many mutants were noticed, and which were not."""
    found = list(stored.get("mutants", {}).values())
    parts = [
        "# Mutants\n\nWritten by `python -m reliability page` from mutants.json.\n",
        block("score", _score(found, stored.get("lines", 0))),
        block("survivors", _survivors(found)),
    ]
    return "\n".join(parts)


def _score(found: list[dict[str, Any]], lines: int) -> str:
    if not found:
        return "No mutant has been tried yet.\n"
    rows = []
    packages = sorted({one["file"].split("/")[2] for one in found})
    for package in packages:
        mine = [one for one in found if one["file"].split("/")[2] == package]
        dead = sum(one["killed_by"] is not None for one in mine)
        told = sum(bool(one["why"]) for one in mine if one["killed_by"] is None)
        share = f"{100 * dead / len(mine):.0f} %"
        rows.append(
            [
                f"`{package}`",
                str(len(mine)),
                str(dead),
                share,
                str(len(mine) - dead),
                str(told),
            ]
        )
    head = ["package", "mutants", "noticed", "share", "survivors", "explained"]
    text = f"{len(found):,} mutants, drawn at random over {lines:,} lines.\n\n"
    return text + markdown(head, rows)


def _survivors(found: list[dict[str, Any]]) -> str:
    left = [one for one in found if one["killed_by"] is None]
    if not left:
        return "None.\n"
    lines = [
        [
            f"{one['file'].removeprefix('src/calibrant/')}:{one['line']}",
            f"`{_plain(one['old'])[:60]}` → `{_plain(one['new'])[:60]}`",
            one["why"] or "not explained yet",
        ]
        for one in sorted(left, key=lambda one: (one["file"], one["line"]))
    ]
    return markdown(["where", "change that no test noticed", "why"], lines).replace(
        "--:", "---"
    )


# -- branches -------------------------------------------------------------------------


def branches_by_package(report: dict[str, Any]) -> dict[str, list[int]]:
    """Lines, lines not run, branches and branches not taken, of a report of `coverage`."""
    found: dict[str, list[int]] = {}
    for file, about in report["files"].items():
        package = file.replace("\\", "/").rpartition("calibrant/")[2].split("/")[0]
        keys = ("num_statements", "missing_lines", "num_branches", "missing_branches")
        own = [about["summary"][key] for key in keys]
        found[package] = [
            a + b for a, b in zip(found.get(package, [0] * 4), own, strict=True)
        ]
    return dict(sorted(found.items()))


def branch_page(found: dict[str, list[int]]) -> str:
    """Which share of lines and branches of the core the tests take."""
    title = (
        "# Branches\n\nWritten by `python -m reliability page` from branches.json.\n"
    )
    if not found:
        return f"{title}\n{block('branches', 'Not measured yet.')}"
    whole = [sum(column) for column in zip(*found.values(), strict=True)]
    lines = [
        [name, f"{n:,}", _share(n, missed), f"{of:,}", _share(of, left)]
        for name, (n, missed, of, left) in {**found, "all": whole}.items()
    ]
    head = ["package", "lines", "run", "branches", "taken"]
    return f"{title}\n{block('branches', markdown(head, lines))}"


def _share(of: int, missed: int) -> str:
    return f"{100 * (1 - missed / max(of, 1)):.1f} %"


# -- kills ----------------------------------------------------------------------------


def kill_page(found: dict[str, dict[str, Any]]) -> str:
    """How often each writer was killed, and what was left."""
    left = ("old file or none", "sketch of some rows", "new file", "orphan")
    head = ["file", "kills", *left, "failures"]
    lines = [
        [
            name,
            *(str(x.get(what, 0)) for what in ("killed", *left)),
            str(len(x["failures"])),
        ]
        for name, x in found.items()
    ]
    kills, failures = (
        sum(x["killed"] for x in found.values()),
        sum(len(x["failures"]) for x in found.values()),
    )
    text = f"{kills:,} kills, {failures} broken promises.\n\n{markdown(head, lines)}"
    title = "# Kills\n\nWritten by `python -m reliability page` from kills.json.\n"
    return f"{title}\n{block('kills', text)}"


def pages() -> dict[str, str]:
    """Each page by its file."""
    stored = results.load(results.RESULTS)
    tried, killed, taken = (
        json.loads(path.read_text("utf-8")) if path.exists() else {}
        for path in (mutants.RESULTS, results.KILLS, results.BRANCHES)
    )
    return {
        "fuzz.md": fuzz_page(stored),
        "mutants.md": mutant_page(tried),
        "kills.md": kill_page(killed),
        "branches.md": branch_page(taken),
    }

"""Figures that add up over runs, and the corpus that grows: files beside this one."""

from __future__ import annotations

import base64
import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

from .engine import KINDS, Found

HERE = Path(__file__).parent
RESULTS, CORPUS = HERE / "results.json", HERE / "corpus"
KILLS = HERE / "kills.json"
BRANCHES = HERE / "branches.json"

MOST_KEPT, MOST_BYTES = 400, 40_000
"""Inputs of a kind that are kept for the next run, and their bytes."""


def load(path: Path) -> dict[str, Any]:
    """Results so far."""
    if path.exists():
        return json.loads(path.read_text("utf-8"))
    return {"seed": 1, "kinds": {}, "findings": {}}


def save(results: dict[str, Any], path: Path) -> None:
    """Write the results, whole or not at all."""
    beside = path.with_suffix(".part")
    beside.write_text(json.dumps(results, indent=1, sort_keys=True) + "\n", "utf-8")
    os.replace(beside, path)  # noqa: PTH105


def fold(results: dict[str, Any], found: Found) -> None:
    """Add what a slice saw."""
    kind = results["kinds"].setdefault(
        found.kind, {"inputs": 0, "slices": 0, "about": {}}
    )
    kind["inputs"] += found.inputs
    kind["slices"] += 1
    kind["seconds"] = round(kind.get("seconds", 0) + found.seconds, 1)
    for name, value in (("slowest", found.slowest), ("megabytes", found.megabytes)):
        kind[name] = round(max(kind.get(name, 0), value), 2)
    kind["arcs"] = max(kind.get("arcs", 0), len(found.arcs))
    for about, outcomes in found.about.items():
        kind["about"][about] = dict(Counter(kind["about"].get(about, {})) + outcomes)
    for name, finding in found.findings.items():
        known = results["findings"].setdefault(
            name, finding | {"count": 0, "mended": False}
        )
        known["count"] += finding["count"]
        known["mended"] = False


def add(results: dict[str, Any], other: dict[str, Any]) -> None:
    """Add the figures of a run that kept its own."""
    for name, kind in other["kinds"].items():
        found = Found(name, kind["inputs"], seconds=kind["seconds"])
        found.slowest, found.megabytes = kind["slowest"], kind["megabytes"]
        found.about = {about: Counter(x) for about, x in kind["about"].items()}
        fold(results, found)
        known = results["kinds"][name]
        known["slices"] += kind["slices"] - 1
        known["arcs"] = max(known["arcs"], kind["arcs"])
    for name, finding in other["findings"].items():
        known = results["findings"].setdefault(name, finding | {"count": 0})
        known["count"] += finding["count"]
        known["mended"] = known["mended"] and finding["mended"]


def read_corpus(kind: str, folder: Path) -> list[bytes]:
    """Inputs that were kept."""
    path = folder / f"{kind}.txt"
    lines = path.read_text("ascii").split() if path.exists() else []
    return [base64.b64decode(line) for line in lines]


def write_corpus(kind: str, inputs: list[bytes], folder: Path) -> None:
    """Keep inputs, the newest last, as many as there is room for."""
    folder.mkdir(exist_ok=True)
    room, kept = MOST_BYTES, []
    for data in inputs[:MOST_KEPT]:
        room -= len(data)
        if room >= 0:
            kept.append(base64.b64encode(data).decode())
    (folder / f"{kind}.txt").write_text("\n".join(kept) + "\n", "ascii")


def kinds(text: str) -> list[str]:
    """Kinds of inputs by their names."""
    named = [part.strip() for part in text.split(",") if part.strip()]
    unknown = [name for name in named if name not in KINDS]
    if unknown:
        raise ValueError(f"no kind {unknown[0]!r}; there are {', '.join(KINDS)}.")
    return named

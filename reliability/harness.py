"""Files of harnesses for language models, one thing in them changed."""

from __future__ import annotations

import importlib.util
import io
import json
import tempfile
import zipfile
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from .api import WORDS
from .cases import Case, put, special, spelled
from .choices import Choices
from .formats import bytes_off
from .records import change

TESTS = Path(__file__).resolve().parent.parent / "tests"
SEEDS, QUESTIONS = 4, 6


@cache
def _writers() -> ModuleType:
    """The writers of the tests, after the schemas of the harnesses."""
    spec = importlib.util.spec_from_file_location(
        "harness_writers", TESTS / "harness_writers.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def names() -> tuple[str, ...]:
    """Files that are written, by name; the last two hold one object or array a line."""
    return (*_writers().HARNESS_WRITERS, "percent.jsonl", "words.jsonl")


@cache
def written(name: str, seed: int) -> tuple[bytes, float]:
    """A file of a few questions, as it should be, and the accuracy it tells of."""
    rng, lines = np.random.default_rng(seed), None
    scores = -np.round(rng.gamma(2, 2, (QUESTIONS, 4)), 2) - 0.5
    label = rng.integers(0, 4, QUESTIONS)
    right = float(np.mean(scores.argmax(axis=1) == label))
    if name == "percent.jsonl":
        lines = [{"confidence": f"{x:.0f}%", "correct": bool(x > 50)} for x in (90, 30, 70, 55, 2)]  # fmt: skip
        right = 0.6
    elif name == "words.jsonl":
        said = ("sure", "likely", "sure", "unsure")
        lines = [
            {"confidence": word, "pred": "ABBA"[i], "label": "ABAB"[i]}
            for i, word in enumerate(said)
        ]
        right = 0.5
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        if lines is None:
            _writers().HARNESS_WRITERS[name](path, {"logits": scores, "labels": label})
        else:
            _writers().write_lines(path, lines)
        return path.read_bytes(), right


def harness_case(c: Choices, home: Path) -> Case:
    """Read a file of a harness; an untouched one must give its accuracy."""
    name = c.one(names())
    content, right = written(name, c.below(SEEDS))
    content, wrong = changed(c, name, content)
    path = put(home / name, content)
    if c.chance(3):
        wrong = special(c, home, [path])
    how = c.one(("read", "batches", "inspect"))
    rows = c.one((3, 1, 100))
    roles, plain = _roles(c, name)
    return Case(
        f"{name[:20].rstrip('_')} {how}".replace("_trees_2024-05", ""),
        lambda: _use(path, how, rows, roles),
        (*spelled([path]), *WORDS, *roles),
        f"calibrant.files.{how}({name!r})",
        "?" if how == "inspect" else wrong or "?",
        lambda found: _off(found, right) if not wrong and plain else "",
    )


OTHER = (
    {"percent": True}, {"drop_missing": True}, {"ragged": True}, {"with_id": True},
    {"scale": {"sure": 2.0}}, {"scale": {}}, {"confidence": "nope"}, {"group": "model"},
    {"cluster": "question"}, {"y": "target"}, {"decimal": ","}, {"with_others": True},
)  # fmt: skip
"""Things to say of a file that it may contradict."""


def _roles(c: Choices, name: str) -> tuple[dict[str, Any], bool]:
    """What is said of the file, and whether it is what should be said."""
    usual: dict[str, Any] = {
        "percent.jsonl": {"percent": True},
        "words.jsonl": {"scale": {"sure": 0.9, "likely": 0.7, "unsure": 0.5}},
    }.get(name, {})
    return (usual, True) if not c.chance(40) else ({**usual, **c.one(OTHER)}, False)


def _use(path: Path, how: str, rows: int, said: dict[str, Any]) -> float | None:
    """The accuracy, by the rows as they were read."""
    from calibrant import accuracy, files

    roles = files.Roles(**said)
    if how == "inspect":
        str(files.inspect(path, roles))
        return None
    parts = (
        list(files.batches(path, roles, rows=rows))
        if how == "batches"
        else [files.read(path, roles)]
    )
    right = total = 0.0
    for part in parts:
        given = {name: x for name, x in part.arguments.items() if x is not None}
        given.pop("cluster", None)
        y = given.pop("correct") if part.pairs else given.pop("y")
        target = {} if part.pairs else {"target": "top-label"}
        right += float(accuracy(y, **given, **target)) * len(part)
        total += len(part)
    return right / total


def _off(found: float | None, right: float) -> str:
    if found is None or abs(found - right) < 1e-9:
        return ""
    return "another accuracy than the harness has"


# -- changes --------------------------------------------------------------------------


def changed(c: Choices, name: str, content: bytes) -> tuple[bytes, str]:
    """The file with something else in it, and what is wrong with it, if it must be."""
    how = c.below(8)
    if how == 0:
        return content, ""
    if how == 7:
        return bytes_off(c, content), "?"
    if name.endswith(".eval"):
        return _archive(c, content, how), "?"
    if name.endswith(".json"):
        whole = json.loads(content)
        _some(c, whole, how)
        return _dumped(whole), "?"
    return _lines(c, content, how)


def _some(c: Choices, whole: Any, how: int) -> None:
    for _ in range(1 + how % 2):
        change(c, whole)


def _dumped(whole: Any) -> bytes:
    return json.dumps(whole).encode("utf-8", "surrogatepass")


def _lines(c: Choices, content: bytes, how: int) -> tuple[bytes, str]:
    """JSON lines: one changed inside, twice, missing its end, or something else."""
    lines = content.splitlines()
    at = c.below(len(lines))
    wrong = "?"
    if how < 5:
        whole = json.loads(lines[at])
        _some(c, whole, how)
        lines[at] = _dumped(whole)
    elif how == 5:
        lines[at], wrong = lines[at][: c.below(len(lines[at]))] or b"{", "half a line"
    else:
        lines.insert(at, c.one((lines[at], b"", b"null", b"[1]", b"{}", b"\xff\xfe")))
    return b"\n".join(lines) + b"\n", wrong


def _archive(c: Choices, content: bytes, how: int) -> bytes:
    """Members of an archive: one changed inside, missing, twice, or of another name."""
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        members = [(x, archive.read(x)) for x in archive.namelist()]
    at = c.below(len(members))
    name, inner = members[at]
    if how < 4:
        whole = json.loads(inner)
        _some(c, whole, how)
        members[at] = name, _dumped(whole)
    elif how == 4:
        del members[at]
    elif how == 5:
        members.append(
            (c.one((name, "samples/9_epoch_1.json", "../x.json", "\x1b")), inner)
        )
    else:
        members[at] = name, bytes_off(c, inner)
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        for name, inner in members:
            archive.writestr(name, inner)
    return file.getvalue()

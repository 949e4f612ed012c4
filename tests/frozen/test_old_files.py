"""Files that version 0.1.0 wrote can still be read, and say the same.

``CALIBRANT_FROZEN_PACKAGE`` names another package to read them with.
"""

from __future__ import annotations

import importlib
import json
import lzma
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cases
import freeze
import pytest
import test_frozen as frozen

HERE = Path(__file__).parent
FILES = HERE / "old_files"
EXPECTED = json.loads((FILES / "expected.json").read_text(encoding="utf-8"))
SKETCHES = [name for name in EXPECTED if name.endswith(".npz")]


@pytest.fixture(scope="module")
def cal() -> Any:
    """The package that reads the files."""
    return importlib.import_module(frozen.PACKAGE)


def text_of(name: str) -> str:
    """The text in a packed file."""
    return lzma.decompress((FILES / name).read_bytes()).decode()


def is_text(path: str) -> bool:
    """Whether a place holds words: where they said rows they say examples.

    Sentences about differences that four digits do not show are left out.
    """
    return path.endswith((" (text)", "/sentences"))


def assert_expected(
    name: str, found: Any, may_differ: Callable[[str], object] = is_text
) -> None:
    """What was found is what 0.1.0 said of the same file, but for what may differ.

    Of what was computed in 0.1.0 that is words; a sketch is computed from anew.
    """
    compared = frozen.compare(EXPECTED[name], found, name, frozen.TOLERANCE)
    differences = [(path, text) for path, text in compared if not may_differ(path)]
    shown = "\n".join(f"{path}: {text}" for path, text in differences[: frozen.SHOWN])
    assert not differences, f"{len(differences)} differences:\n{shown}"


def test_evaluation(cal: Any) -> None:
    """An evaluation as JSON."""
    ev = cal.Evaluation.from_json(text_of("evaluation.json.xz"))
    assert_expected("evaluation.json.xz", freeze.numbers_of(ev))


def test_comparison(cal: Any) -> None:
    """A comparison of two models as JSON."""
    found = cal.Contrast.from_json(text_of("comparison.json.xz"))
    assert_expected("comparison.json.xz", freeze.told_of(found))


def test_study(cal: Any) -> None:
    """A study as JSON."""
    found = cal.Study.from_json(text_of("study.json.xz"))
    assert_expected("study.json.xz", freeze.studied(found))


@pytest.mark.parametrize("name", SKETCHES)
def test_sketch(name: str, cal: Any) -> None:
    """A sketch, evaluated and added to itself."""
    with cases.by_engine("numpy"):
        found = freeze.sketched(cal, cal.Sketch.load(FILES / name))
    assert_expected(name, found, frozen.reason_for)


@pytest.mark.parametrize("name", list(EXPECTED["recalibrators"]))
def test_recalibrator(name: str, cal: Any) -> None:
    """A recalibrator gives three rows the same probabilities."""
    expected = EXPECTED["recalibrators"][name]
    with cases.by_engine("numpy"):
        made = cal.recalibration.load(FILES / f"{name}.json")
        found = made.predict_proba(expected["rows"]).tolist()
    assert type(made).__name__ == expected["class"]
    assert not list(frozen.compare(expected["gives"], found, name, frozen.TOLERANCE))

"""The table of benchmarks comes from one run, and each of its rows has its seconds."""

import importlib
import json
import subprocess
import sys
from datetime import datetime
from math import isclose
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"
FOUND = json.loads((FOLDER / "results.json").read_text(encoding="utf-8"))
MEASURED = [row for row in FOUND["rows"] if "skipped" not in row]


def own(name, monkeypatch):
    """A module of the benchmarks, which is no package."""
    monkeypatch.syspath_prepend(str(FOLDER))
    return importlib.import_module(name)


def ran(*words):
    command = [sys.executable, str(FOLDER / "run.py"), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout.splitlines()


@pytest.mark.parametrize("row", MEASURED, ids=lambda row: row["title"])
def test_a_row_has_the_seconds_it_rests_on(row):
    clocks = [x for one in row["seconds"].values() for x in (one["cpu"], one["wall"])]
    assert clocks
    assert min(clocks) > 0
    assert row["took"] > 0
    assert row["load"] >= 0


@pytest.mark.parametrize("row", MEASURED, ids=lambda row: row["title"])
def test_a_ratio_of_two_is_that_of_their_seconds(row):
    if row["unit"] != "x" or len(row["seconds"]) != 2:
        return
    one, two = (side["cpu"] for side in row["seconds"].values())
    assert any(isclose(row["value"], x) for x in (one / two, two / one))


def test_the_results_say_when_and_where_they_were_measured():
    assert datetime.strptime(FOUND["date"], "%Y-%m-%d %H:%M UTC")
    assert FOUND["machine"]["cores"] >= 1
    assert FOUND["machine"]["cpu"]
    assert {"Python", "calibrant", "numpy"} <= set(FOUND["versions"])


def test_every_row_there_is_was_run():
    quick = ["--once"] if FOUND["once"] else []
    assert [row["title"] for row in FOUND["rows"]] == ran("--list", *quick)


def test_the_page_is_what_the_run_found(monkeypatch):
    written = (FOLDER / "results.md").read_text(encoding="utf-8")
    assert written == own("run", monkeypatch).page(FOUND)


@pytest.mark.parametrize("seconds", [{}, {"ours": {}}, {"ours": {"cpu": 0.0}}])
def test_a_ratio_without_seconds_is_refused(seconds, monkeypatch):
    with pytest.raises(ValueError, match="seconds"):
        own("registry", monkeypatch).Ratio(2.0, None, (), seconds)


def test_a_quick_run_writes_where_it_is_told_to(tmp_path):
    told = ran("--once", "--no-peers", "--only=--help", "--into", str(tmp_path))
    found = json.loads((tmp_path / "results.json").read_text(encoding="utf-8"))
    (row,) = found["rows"]
    assert found["once"]
    assert row["value"] == row["seconds"]["ours"]["cpu"] / row["seconds"]["bare"]["cpu"]
    assert told[2].startswith("| `calibrant --help` / bare `python` |")


def test_a_peer_that_is_not_there_is_named(tmp_path):
    told = ran("--once", "--no-peers", "--only", "Wolfe", "--into", str(tmp_path))
    assert "without torch" in told[2]

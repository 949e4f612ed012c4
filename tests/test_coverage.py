"""How often intervals hold the truth: the script of the coverage table, reduced."""

import json
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal

FOLDER = Path(__file__).resolve().parent.parent / "simulations"


@pytest.fixture(scope="module")
def coverage(simulation):
    return simulation("interval_coverage")


@pytest.fixture(scope="module")
def pages(simulation):
    return simulation("coverage_page")


def world_of(coverage, name):
    return next(world for world in coverage.WORLDS if world.name == name)


WORLDS = (
    "uniform, calibrated",
    "uniform, over-confident",
    "Beta(½,½), under-confident",
    "Beta(½,½), p + 0.02",
)
"""The null, a smooth error, the steepest curve, and an error hard to tell from 0."""


@pytest.mark.simulation
@pytest.mark.parametrize("kind", ["closed", "resampled"])
@pytest.mark.parametrize("name", WORLDS)
def test_intervals_cover(coverage, pages, name, kind):
    found = coverage.simulate(world_of(coverage, name), 1000, kind, 60, seed=2)
    assert set(found) == set(pages.KINDS[kind])
    for metric in found.keys() - {"sharpness_gap"}:  # a fifth of the data sets
        assert found[metric]["covered"] >= 0.85  # by chance lower once in 500 times
        assert found[metric]["length"] > 0


def test_the_paired_difference_is_that_of_a_comparison(coverage):
    world = world_of(coverage, "uniform, p²")
    a, p = world.draw(400, np.random.default_rng(0))
    other = coverage.rival(p)
    models = [
        cal.evaluate_pairs(a, x, name=name) for name, x in (("p", p), ("other", other))
    ]
    expected = cal.compare(*models).differences["other"]["brier"].interval
    found = coverage.paired((a - other) ** 2 - (a - p) ** 2)
    assert found == pytest.approx(expected, rel=1e-9)


# -- page --------------------------------------------------------------------------


def cases_of(pages, n=1000, replicates=1000, **changed):
    found = {"covered": 0.95, "above": 0.0, "length": 0.1, "count": replicates}
    shares = {name: found | {"covered": x} for name, x in changed.items()}
    return [
        {
            "world": "uniform, calibrated",
            "n": n,
            "kind": kind,
            "replicates": replicates,
            "found": {name: shares.get(name, found) for name in names},
        }
        for kind, names in pages.KINDS.items()
    ]


def test_every_metric_has_one_kind(coverage, pages):
    names = [name for names in pages.KINDS.values() for name in names]
    assert len(names) == len(set(names))
    assert set(names) == set(coverage.truths(coverage.WORLDS[0]))


def test_the_page_marks_shares_outside_the_target(pages):
    assert "**" not in pages.page(cases_of(pages), 1)
    assert pages.page(cases_of(pages, ece=0.8), 1).count("**80.0**") == 1


def test_the_page_tells_how_many_data_sets_there_are(pages):
    few = cases_of(pages, n=100_000, replicates=200)
    text = pages.page([*cases_of(pages), few[0]], 1)
    assert "| closed forms | 1,000 (± 0.7) | 200 (± 1.5) |" in text
    assert "| resampled | 1,000 (± 0.7) |  |" in text


def test_the_committed_page_is_made_of_the_committed_counts(pages):
    kept = json.loads((FOLDER / "coverage.json").read_text("utf-8"))
    text = (FOLDER / "coverage.md").read_text("utf-8")
    assert text == pages.page(kept["cases"], kept["seed"])


def test_a_run_that_was_stopped_goes_on(coverage, pages):
    done = cases_of(pages)
    rest = [world.name for world in coverage.WORLDS[1:]]
    left = list(coverage.missing(done, pages.KINDS, [1000], 1000))
    assert [world.name for _, _, world in left] == 2 * rest
    assert len(list(coverage.missing(done, ["closed"], [1000], 2000))) == len(rest) + 1
    again = cases_of(pages, replicates=2000)
    assert coverage.in_order([*done, *again]) == again

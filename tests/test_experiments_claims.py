"""The paper's claims on every recorded model, and the page that lists them."""

import re

import pytest

from experiments import exceptions, page
from experiments.claims import CLAIMS, judge
from experiments.models import RECORDED, read
from experiments.protocol import Experiment

PAGE = page.PAGE.read_text(encoding="utf-8")
pytestmark = pytest.mark.filterwarnings("ignore::calibrant.recalibration.FitWarning")


def listed_for(model):
    return {claim for claim in CLAIMS if exceptions.reason_for(claim, model)}


@pytest.mark.parametrize("name", RECORDED)
def test_claims_hold_but_for_known_exceptions(name, data):
    verdicts = judge(Experiment(read(name)))
    assert list(exceptions.contradictions(verdicts)) == []
    assert listed_for(name) <= {verdict.claim for verdict in verdicts}
    for verdict in verdicts:
        assert verdict.finding.holds or page.line(verdict) in PAGE.splitlines()


def test_the_page_has_the_numbers_of_the_run(data):
    for part in page.measured():
        assert part in PAGE, "run python -m experiments page"


def test_exceptions_are_of_recorded_models():
    for claim, reasons in exceptions.EXCEPTIONS.items():
        assert claim in CLAIMS
        models = [model for found in reasons.values() for model in found]
        assert set(models) <= set(RECORDED)
        assert len(models) == len(set(models))


@pytest.mark.parametrize("claim", CLAIMS)
def test_the_page_counts_the_exceptions(claim):
    counts = {True: 0, False: 0}
    for reason, models in exceptions.EXCEPTIONS.get(claim, {}).items():
        counts[exceptions.is_chance(reason)] += len(models)
    row = rf"^\| \*\*{claim}\*\*: .* \| \d+ \| {counts[True]} \| {counts[False]} \|$"
    assert re.search(row, PAGE, re.MULTILINE)

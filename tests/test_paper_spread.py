"""The paper's ±: ten subsamples of 5,000 rows; its slow twins are in test_experiments."""

import numpy as np
import pytest

import calibrant as cal


@pytest.fixture(scope="module")
def ev():
    rng = np.random.default_rng(0)
    h = rng.beta(4, 1, 6000)
    return cal.evaluate_pairs(rng.random(6000) < h**2, h, interval=None)


def test_all_rows_in_every_subsample_leave_no_spread(ev):
    mean, spread = cal.paper_spread(ev, size=6000)
    assert spread < 1e-12
    assert mean == pytest.approx(float(ev.paper.calibration), rel=1e-9)


def test_points_of_the_curve_spread_around_all_rows(ev):
    mean, spread = cal.paper_spread(ev, of="points", draws=200)
    assert 0 < spread < 0.2 * mean
    assert mean == pytest.approx(float(ev.paper.calibration), abs=3 * spread / 200**0.5)


def test_the_seed_decides(ev):
    assert cal.paper_spread(ev, rng=1) == cal.paper_spread(ev, rng=1)
    assert cal.paper_spread(ev, rng=1) != cal.paper_spread(ev, rng=2)


def test_more_rows_than_there_are_is_refused(ev):
    with pytest.raises(ValueError, match="size must be a whole number of rows"):
        cal.paper_spread(ev, size=6001)


def test_without_rows_there_is_nothing_to_draw(ev):
    read = cal.Evaluation.from_json(ev.to_json())
    with pytest.raises(ValueError, match="ev holds no rows"):
        cal.paper_spread(read)

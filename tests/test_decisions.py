"""Decision curves, Murphy diagrams, cutoff error: brute force, identities, peers, views."""

from __future__ import annotations

import json
from dataclasses import replace
from math import comb
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.special import expit, logit

import calibrant as cal
import calibrant.plot
from calibrant._verbs.decisions import freedom_of
from calibrant._verbs.reading import read_sample

PEERS = Path(__file__).parent.parent / "benchmarks" / "peer_decisions.json"
REAL = ["adult_random_forest", "fivethirtyeight_governors"]
ROWS = st.lists(
    st.tuples(st.booleans(), st.sampled_from([0.0, 0.2, 0.5, 0.55, 0.9, 1.0])),
    min_size=1,
    max_size=12,
)
AT = np.array([0.1, 0.2, 0.5, 0.8])


def forecasts(n=1500, seed=0, power=1.3):
    rng = np.random.default_rng(seed)
    p = rng.beta(1, 2, n)
    return (rng.random(n) < p**power).astype(int), p


def trapezoid(y, x):
    return float(((y[1:] + y[:-1]) / 2 * np.diff(x)).sum())


# -- what is printed ------------------------------------------------------------------------


def printed(curve):
    """The thresholds in the table of a curve."""
    found = (line.split() for line in str(curve).splitlines())
    return [x[0] for x in found if len(x) > 2 and x[1][0] in "+-"]


def test_thresholds_that_were_asked_for_are_printed():
    y, p = forecasts()
    few = cal.decision_curve(y, probs=p, thresholds=[0.01, 0.02, 0.035])
    assert printed(few) == ["0.01", "0.02", "0.035"]
    many = cal.decision_curve(y, probs=p, thresholds=np.linspace(0.001, 0.02, 39))
    assert len(printed(many)) == 8
    assert (printed(many)[0], printed(many)[-1]) == ("0.001", "0.02")
    assert printed(cal.decision_curve(y, probs=p)) == [
        "0.05",
        "0.10",
        "0.20",
        "0.30",
        "0.50",
    ]
    few = cal.murphy(y, probs=p, thresholds=[0.015])
    assert "    0.015  " in str(few)


def test_low_thresholds_of_rare_events_are_printed_with_digits_that_show():
    y, p = np.repeat([1, 0], [10, 3990]), np.repeat([0.05, 0.001], [20, 3980])
    found = cal.decision_curve(y, probs=p)
    assert printed(found)[:3] == ["0.01", "0.02", "0.05"]
    assert f"{found.net_benefit[0]:+.4f}" in str(found)
    assert "event rate is below all thresholds: give some near it" in str(found)
    assert "below all" not in str(cal.decision_curve(y, probs=p, thresholds=[0.002]))
    chosen = cal.decision_curve(y, probs=p, thresholds=[0.1, 0.2])
    assert "below all" not in str(chosen)


def test_what_is_printed_is_aligned_has_no_minus_zero_and_tells_clusters():
    y, p = forecasts()
    cluster = np.arange(len(y)) // 5
    one, other = (
        cal.evaluate(y, probs=x, cluster=cluster, name="A") for x in (p, p**1.5)
    )
    found = cal.murphy(one, baseline=other)
    text = str(found)
    assert f"examples in {len(y) // 5} clusters\n" in text
    assert min(found.score) < 0 < max(found.score)
    assert len({row.index("[") for row in text.splitlines()[4:]}) == 1
    none = 0 * found.score
    nearly = replace(found, score=none - 1e-9, low=none - 2e-9, high=none)
    assert "-0.0000" not in str(nearly)
    walk, curve = cal.cutoff_error(one, resamples=100), cal.decision_curve(one)
    assert f"examples in {len(y) // 5} clusters\n" in str(walk)
    assert f"examples in {curve.n_clusters} clusters, event" in str(curve)
    assert "clusters" not in str(cal.cutoff_error(y, probs=p, resamples=100))


def test_a_difference_of_net_benefits_is_not_beside_levels():
    y, p = forecasts()
    name = "ENS (the raw ensemble of as many as fifty members, as it was issued)"
    one = cal.evaluate(y, probs=p, name="L")
    other = cal.evaluate(y, probs=p**2, name=name)
    found = cal.decision_curve(one, baseline=other)
    assert "treat all" not in str(found).lower()
    assert "Treating none" not in str(found)
    assert str(found).endswith("Above 0 L has the larger net benefit.")
    both = cal.murphy(one, baseline=other)
    for ax in (calibrant.plot.decision_curve(found), calibrant.plot.murphy(both)):
        ax.figure.draw_without_rendering()
        box = ax.yaxis.label.get_window_extent()
        assert box.y0 >= 0
        assert box.y1 <= ax.figure.bbox.height
        assert "less that of ENS" in ax.get_ylabel()


def test_what_does_not_go_with_an_evaluation_is_named():
    y, p = forecasts()
    ev = cal.evaluate(y, probs=p)
    with pytest.raises(TypeError, match="baseline must be of type Evaluation"):
        cal.murphy(ev, baseline=p)
    with pytest.raises(TypeError, match=r"an Evaluation already holds .* leave probs="):
        cal.decision_curve(ev, probs=p)


# -- net benefit and elementary scores ------------------------------------------------------


@given(ROWS)
def test_net_benefit_is_hits_less_false_alarms_at_their_odds(rows):
    y, p = (np.array(x, float) for x in zip(*rows, strict=True))
    found = cal.decision_curve(y, confidence=p, thresholds=AT)
    for t, benefit, every in zip(AT, found.net_benefit, found.treat_all, strict=True):
        hits, alarms = ((p >= t) & (y == 1)).mean(), ((p >= t) & (y == 0)).mean()
        assert benefit == pytest.approx(hits - alarms * t / (1 - t), abs=1e-12)
        assert every == pytest.approx(
            y.mean() - (1 - y.mean()) * t / (1 - t), abs=1e-12
        )


@given(ROWS)
def test_elementary_scores_are_costs_and_net_benefit_follows_from_them(rows):
    y, p = (np.array(x, float) for x in zip(*rows, strict=True))
    found = cal.murphy(y, confidence=p, thresholds=AT)
    benefit = cal.decision_curve(y, confidence=p, thresholds=AT).net_benefit
    for t, score, gain in zip(AT, found.score, benefit, strict=True):
        cost = t * ((p >= t) & (y == 0)).mean() + (1 - t) * ((p < t) & (y == 1)).mean()
        assert score == pytest.approx(2 * cost, abs=1e-12)
        assert gain == pytest.approx(y.mean() - score / (2 * (1 - t)), abs=1e-12)


def test_the_area_below_a_murphy_diagram_is_the_brier_score():
    y, p = forecasts()
    at = np.linspace(0, 1, 20_001)
    found = cal.murphy(y[:200], probs=p[:200], thresholds=at)
    assert trapezoid(found.score, at) == pytest.approx(found.area, abs=1e-4)
    assert found.area == pytest.approx(cal.brier(y[:200], probs=p[:200]), abs=1e-15)


def test_differences_of_models_are_paired():
    y, p = forecasts()
    a, b = (cal.evaluate(y, probs=x, name=n) for n, x in {"a": p, "b": p**0.8}.items())
    found = cal.murphy(b, baseline=a, thresholds=AT)
    apart = [cal.murphy(x, thresholds=AT) for x in (b, a)]
    assert found.score == pytest.approx(apart[0].score - apart[1].score, abs=1e-12)
    assert found.area == pytest.approx(apart[0].area - apart[1].area, abs=1e-12)
    assert found.baseline == "a"
    wide = np.hypot(*(x.high - x.low for x in apart))
    assert (found.high - found.low < 0.8 * wide).all()
    benefit = cal.decision_curve(b, baseline=a, thresholds=AT)
    assert benefit.net_benefit == pytest.approx(
        -found.score / (2 * (1 - AT)), abs=1e-12
    )


def test_a_model_does_not_differ_from_itself():
    ev = cal.evaluate(*forecasts()[:1], probs=forecasts()[1])
    found = cal.murphy(ev, baseline=ev)
    assert not found.score.any()
    assert not found.high.any()


def test_frequency_repeats_weights_have_no_unit_and_clusters_count_once():
    y, p = forecasts(300, 1)
    times = np.random.default_rng(2).integers(1, 4, 300)
    once = cal.decision_curve(y, probs=p, frequency=times, thresholds=AT)
    many = cal.decision_curve(
        np.repeat(y, times), probs=np.repeat(p, times), thresholds=AT
    )
    assert once.net_benefit == pytest.approx(many.net_benefit, abs=1e-12)
    assert once.low == pytest.approx(many.low, abs=1e-9)
    light, heavy = (
        cal.murphy(y, probs=p, sample_weight=u * times, thresholds=AT) for u in (1, 5)
    )
    assert light.low == pytest.approx(heavy.low, abs=1e-12)
    plain = cal.murphy(y, probs=p, thresholds=AT)
    four = cal.murphy(
        np.repeat(y, 4),
        probs=np.repeat(p, 4),
        cluster=np.repeat(np.arange(300), 4),
        thresholds=AT,
    )
    assert four.high - four.low == pytest.approx(plain.high - plain.low, rel=0.2)


def test_where_nobody_is_acted_on_more_may_be():
    p = np.full(1000, 0.01)
    y = np.zeros(1000, int)
    y[:10] = 1
    found = cal.decision_curve(y, probs=p, thresholds=[0.5])
    assert found.net_benefit.tolist() == [0.0]
    assert found.low[0] == -found.high[0]
    assert 0.003 < found.high[0] < 0.005  # 3.69 / n, by the Poisson law of none


def test_a_sketch_has_the_curves_of_its_cells():
    y, p = forecasts(5000, 3)
    sketch = cal.Sketch(target="positive").update(y, probs=p)
    for verb, column in ((cal.decision_curve, "net_benefit"), (cal.murphy, "score")):
        exact, summed = verb(y, probs=p, thresholds=AT), verb(sketch, thresholds=AT)
        assert getattr(summed, column) == pytest.approx(
            getattr(exact, column), abs=2e-3
        )
        assert summed.high == pytest.approx(exact.high, abs=2e-3)


def test_one_class_and_certain_forecasts_behave():
    found = cal.decision_curve([0, 0, 0], probs=[0.0, 1.0, 0.5], thresholds=[0.5])
    assert found.net_benefit[0] == pytest.approx(-2 / 3)
    assert cal.murphy([1, 1], probs=[1.0, 1.0]).area == 0


def test_what_cannot_be_decided_is_refused():
    y, p = forecasts(100)
    with pytest.raises(
        ValueError, match="thresholds must be increasing numbers between"
    ):
        cal.decision_curve(y, probs=p, thresholds=[0.0, 0.5])
    with pytest.raises(ValueError, match="thresholds must be increasing"):
        cal.murphy(y, probs=p, thresholds=[0.5, 0.4])
    ev = cal.evaluate(y, probs=p)
    with pytest.raises(TypeError, match="baseline= compares two Evaluations"):
        cal.murphy(y, probs=p, baseline=ev)
    other = cal.evaluate(1 - y, probs=p, name="other")
    with pytest.raises(ValueError, match="different rows, targets or clusters"):
        cal.murphy(ev, baseline=other)
    both = np.column_stack([1 - p, p])
    each = cal.evaluate(y, probs=both, target="class-wise")
    with pytest.raises(ValueError, match="a decision is about one event"):
        cal.decision_curve(each)


# -- cumulative differences --------------------------------------------------------------


@given(ROWS)
def test_the_cutoff_error_is_the_largest_sum_over_an_interval(rows):
    y, p = (np.array(x, float) for x in zip(*rows, strict=True))
    places = np.unique(p)
    sums = [
        abs((y - p)[(p >= a) & (p <= b)].sum()) / len(p) for a in places for b in places
    ]
    found = cal.cutoff_error(y, confidence=p)
    assert found.error == pytest.approx(max(sums), abs=1e-12)
    assert np.ptp(found.difference) == pytest.approx(float(found.error), abs=1e-12)


@given(ROWS)
def test_the_decision_loss_is_what_the_best_other_cutoff_would_save(rows):
    y, p = (np.array(x, float) for x in zip(*rows, strict=True))
    cutoffs = np.concatenate([np.linspace(0.01, 0.99, 99), np.unique(p)])
    cutoffs = np.unique(cutoffs[(cutoffs > 0) & (cutoffs < 1)])
    found = cal.cutoff_error(y, confidence=p)
    worst = max(_lost(y, p, c) / max(c, 1 - c) for c in cutoffs)
    assert found.decision_loss >= worst - 1e-12  # it looks between these cutoffs, too
    assert found.decision_loss <= 2 * found.error + 1e-12
    if found.cutoff in cutoffs:
        assert found.decision_loss == pytest.approx(worst, abs=1e-12)


def _lost(y, p, c):
    """Gain of acting from the best place on, less that of acting from c on, or above c."""
    places = [*np.unique(p), 2.0]
    gains = [((y - c) * (p >= t)).mean() for t in places]
    own = min(((y - c) * (p >= c)).mean(), ((y - c) * (p > c)).mean())
    return max(gains) - own


def test_a_calibrated_model_stays_in_the_band_and_another_leaves_it():
    y, p = forecasts(4000, 5, power=1.0)
    inside, outside = (cal.cutoff_error(y, probs=x) for x in (p, p**0.4))
    assert np.abs(inside.difference).max() < inside.reach
    assert np.abs(outside.difference).max() > outside.reach
    assert inside.error.interval[0] == 0
    assert outside.error.interval[0] > 0
    assert outside.decision_loss.interval[0] > 0


def test_ks_and_kuiper_are_read_from_the_same_walk():
    y, p = forecasts(800, 6)
    found = cal.cutoff_error(y, probs=p)
    assert np.abs(found.difference).max() == pytest.approx(cal.ks_error(y, probs=p))


# -- other libraries --------------------------------------------------------------------


def _peer(name, data):
    file, found = data(name), json.loads(PEERS.read_text())
    p = np.clip(file["prob"].astype(float), 1e-6, 1 - 1e-6)
    return file["outcome"].astype(int), p, found["files"][name], found["thresholds"]


@pytest.mark.parametrize("name", REAL)
def test_model_diagnostics_and_dcurves(name, data):
    y, p, theirs, at = _peer(name, data)
    score = cal.murphy(y, probs=p, thresholds=at).score
    assert score / 2 == pytest.approx(
        theirs["model_diagnostics"]["elementary"], abs=1e-12
    )
    ours = cal.decision_curve(y, probs=p, thresholds=at)
    assert ours.net_benefit == pytest.approx(
        theirs["dcurves"]["net_benefit"], abs=1e-12
    )
    assert ours.treat_all == pytest.approx(theirs["dcurves"]["treat_all"], abs=1e-12)


@pytest.mark.parametrize("name", REAL)
def test_mapie_and_uncertainty_calibration(name, data):
    y, p, theirs, _ = _peer(name, data)
    one = np.unique(p, return_index=True)[1]
    walk = cal.cutoff_error(y[one], probs=p[one]).difference
    assert walk[1:].max() == pytest.approx(theirs["mapie"]["largest"], abs=1e-9)
    assert walk[1:].min() == pytest.approx(theirs["mapie"]["smallest"], abs=1e-9)
    sure = np.unique(np.maximum(p, 1 - p), return_index=True)[1]
    area = theirs["uncertainty_calibration"]["selective"]
    ours = cal.aurc(1 - y[sure], probs=1 - p[sure])  # theirs predicts 1 at one half
    assert 1 - ours == pytest.approx(area, abs=1e-12)


# -- views ------------------------------------------------------------------------------


@pytest.mark.parametrize("verb", [cal.decision_curve, cal.murphy, cal.cutoff_error])
def test_records_print_restore_and_draw(verb):
    y, p = forecasts(400)
    found = verb(y, probs=p, name="mine")
    again = type(found).from_json(found.to_json())
    assert str(again) == str(found)
    assert "mine" in str(found)
    assert again.plot().get_xlim() == (0, 1)
    assert len(found.frame("pandas")) > 10
    assert "mine" in repr(found)


def test_figures_draw_what_the_records_hold():
    y, p = forecasts(400)
    evs = [cal.evaluate(y, probs=x, name=n) for n, x in {"a": p, "b": p**0.8}.items()]
    for figure, verb, place, column in (
        (calibrant.plot.decision_curve, cal.decision_curve, "threshold", "net_benefit"),
        (calibrant.plot.murphy, cal.murphy, "threshold", "score"),
        (
            calibrant.plot.cumulative_differences,
            cal.cutoff_error,
            "share",
            "difference",
        ),
        (calibrant.plot.risk_coverage, cal.risk_coverage, "coverage", "risk"),
    ):
        ax = figure(evs)
        lines = {line.get_gid(): line for line in ax.lines}
        for ev in evs:
            found, line = verb(ev), lines[ev.name]
            drawn = np.interp(getattr(found, place), line.get_xdata(), line.get_ydata())
            assert drawn == pytest.approx(getattr(found, column))
        assert ax.figure.alt_text


def test_the_triptych_has_three_panels_and_a_concave_roc():
    y, p = forecasts(400)
    axes = calibrant.plot.triptych(cal.evaluate(y, probs=p, name="a"))
    assert len(axes) == 3
    roc = {line.get_gid(): line for line in axes[2].lines}["a"]
    x, hit = roc.get_xdata(), roc.get_ydata()
    slopes = np.diff(hit) / np.maximum(np.diff(x), 1e-12)
    assert (np.diff(slopes) <= 1e-6).all()
    assert trapezoid(hit, x) >= cal.auroc(y, probs=p)  # the hull is never below


def test_more_models_than_can_be_told_apart_are_refused():
    y, p = forecasts(100)
    evs = [cal.evaluate(y, probs=p, name=str(i)) for i in range(9)]
    with pytest.raises(ValueError, match="models must be at most 8"):
        calibrant.plot.murphy(evs)


# -- how often intervals hold ----------------------------------------------------------------


@pytest.mark.simulation
@pytest.mark.parametrize("name", ["weights_off", "clusters_off"])
def test_intervals_hold_the_truth(name, simulation):
    """25 data sets; `simulations/decisions.md` has more."""
    harness = simulation("decisions")
    world = next(x for x, _ in harness.seen() if x.name == name)
    found = {}
    for replicate in range(25):
        harness.tallies.tally_of(harness.measure(world, 400, replicate), found)
    for key, (_, intervals, held, *_) in found.items():
        assert held >= 0.75 * intervals, key


def multinomial(n, p):
    """All counts of two rare kinds in n rows, and how likely they are."""
    for i in range(n + 1):
        for j in range(n + 1 - i):
            chance = p[0] ** i * p[1] ** j * (1 - sum(p)) ** (n - i - j)
            if (ways := comb(n, i) * comb(n - i, j) * chance) > 1e-7:
                yield i, j, ways


def test_net_benefit_of_few_that_are_acted_on_is_covered_exactly_as_promised():
    """60 rows, acted on rightly in 6 % and wrongly in 4 %: every data set, by its chance."""
    n, t, p = 60, 0.3, (0.06, 0.04)
    truth, held, size = p[0] - p[1] * t / (1 - t), 0.0, 0.0
    for right, wrong, chance in multinomial(n, p):
        y = np.repeat([1.0, 0.0], [right, n - right])
        h = np.repeat([0.6, 0.1], [right + wrong, n - right - wrong])
        found = cal.decision_curve(y, confidence=h, thresholds=[t])
        held += chance * (found.low[0] <= truth <= found.high[0])
        size += chance * (found.high[0] - found.low[0])
    assert 0.93 <= held <= 0.985
    error = np.sqrt((p[0] + p[1] * (t / (1 - t)) ** 2 - truth**2) / n)
    assert size < 1.25 * 2 * 1.96 * error


def test_the_brier_score_of_rare_events_is_covered_exactly():
    """100 rows of one risk of 3 %: without events, rows do not vary at all."""
    n, p = 100, 0.03
    truth = held = 0.0
    for k in range(n + 1):
        chance = comb(n, k) * p**k * (1 - p) ** (n - k)
        y, h = np.repeat([1.0, 0.0], [k, n - k]), np.full(n, p)
        area = cal.murphy(y, confidence=h, thresholds=[0.5]).area
        held += chance * (area.interval[0] <= p * (1 - p) <= area.interval[1])
        truth += chance * float(area)
    assert truth == pytest.approx(p * (1 - p))
    assert 0.93 <= held <= 0.99


def test_clusters_of_independent_rows_widen_a_difference_little():
    rng = np.random.default_rng(0)
    p = rng.beta(1.2, 3, 1000)
    y = (rng.random(1000) < p).astype(int)
    other = expit(0.8 * logit(p) + 0.5 * rng.normal(size=1000))
    widths = []
    for cluster in (None, np.repeat(np.arange(100), 10)):
        both = [
            cal.evaluate(y, probs=x, cluster=cluster, interval=None, name=name)
            for name, x in {"one": p, "two": other}.items()
        ]
        found = cal.murphy(both[1], baseline=both[0], thresholds=[0.2, 0.5])
        widths.append(found.high - found.low)
    np.testing.assert_allclose(widths[1], widths[0], rtol=0.25)


def test_few_rows_that_decide_an_error_leave_few_degrees_of_freedom():
    def rows(values, **given):
        scores = {"confidence": np.full(len(values), 0.5), **given}
        return read_sample(values > 0, scores, None, None, 0.95).sample.rows

    even = np.tile([1.0, -1.0], 50)
    assert freedom_of(rows(even), even) == 99
    values = np.concatenate([even, [20.0, -20.0]])
    squares = values**2  # of mean 0
    spread = (squares**2).sum() - squares.sum() ** 2 / 102
    assert freedom_of(rows(values), values) == pytest.approx(
        2 * squares.sum() ** 2 / spread
    )
    often = np.random.default_rng(0).integers(1, 5, 102)
    repeated, counted = np.repeat(values, often), rows(values, frequency=often)
    expected = freedom_of(rows(repeated), repeated)
    assert freedom_of(counted, values) == pytest.approx(expected)


def test_many_false_alarms_do_not_hide_that_a_miss_would_be_dear():
    """At a threshold of 1 %: 300 alarms more, and no miss seen, which costs 99 times that."""
    n = 1000
    y, ours = np.zeros(n, int), np.full(n, 0.005)
    theirs = np.where(np.arange(n) < 300, 0.02, 0.005)
    both = [
        cal.evaluate(y, probs=x, interval=None, name=name)
        for name, x in {"ours": ours, "theirs": theirs}.items()
    ]
    found = cal.murphy(both[1], baseline=both[0], thresholds=[0.01])
    assert found.score[0] == pytest.approx(0.006)
    missed = 2 * 0.99 * 3.69 / n  # the upper end of none in n, by the Poisson law
    assert 0.006 - found.low[0] > 0.9 * missed


def test_thresholds_that_are_not_there_are_not_printed():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    y = (rng.random(200) < p).astype(int)
    given = {"probs": p, "thresholds": [0.1, 0.33]}
    lines = str(cal.decision_curve(y, **given)).splitlines()
    starts = [line.split()[0] for line in lines if line.split()]
    assert any(x.startswith("0.1") for x in starts)
    assert any(x.startswith("0.33") for x in starts)
    assert not any(x.startswith(("0.2", "0.5")) for x in starts)


def test_rows_and_sketches_agree_on_what_is_usual_where_half_the_rows_have_a_value():
    p = np.repeat([0.0, 0.5, 1.0], [17, 21, 22])
    y = np.repeat([0, 1], [17 + 13, 8 + 22])
    rows = cal.decision_curve(y, probs=p)
    sums = cal.decision_curve(cal.Sketch(target="positive").update(y, probs=p))
    np.testing.assert_allclose(rows.low, sums.low, atol=1e-9)
    np.testing.assert_allclose(rows.high, sums.high, atol=1e-9)

"""What must not change a number: weights for copies, order of rows, names of classes."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from strategies import pairs, problems

import calibrant as cal
from calibrant._base.records import as_plain as plain

OPTIONS = [
    {},
    {"bandwidth": 0.05},
    {"bandwidth": 0.05, "estimator": "plugin", "boundary": "reflect"},
    {"bandwidth": 0.1, "kernel": "epanechnikov"},
    {"preset": "paper"},
]
FUNCTIONS = [
    lambda y, **g: cal.ece(y, bins="cube-root", strategy="mass", **g),
    lambda y, **g: cal.ece(y, bins="sweep", **g),
    lambda y, **g: cal.ece(y, bins="cube-root", norm=2, **g),
    lambda y, **g: cal.ece(y, strategy="mass", norm="max", **g),
    cal.smooth_ece,
    cal.logit_smoothed_ece,
    lambda y, **g: cal.corp(y, divergence="log", **g).discrimination,
    cal.calibration_error,
]


def numbers(record):
    """Numbers of an evaluation but the count of rows, flat; and ends of intervals."""
    found = record.to_dict()
    found.pop("rows")
    ends = [estimate.pop("interval") for estimate in found["metrics"].values()]

    def walk(value):
        if isinstance(value, dict):
            for item in value.values():
                yield from walk(item)
        elif isinstance(value, list):
            for item in value:
                yield from walk(item)
        elif isinstance(value, int | float) or value in ("nan", "inf", "-inf"):
            yield float(value)

    return np.array(list(walk(plain(found)))), np.array(list(walk(plain(ends))))


def same(a, b, tolerance=1e-9):
    """The same to round-off; of resampled intervals, it may turn a draw or two."""
    (one, ends), (other, others) = numbers(a), numbers(b)
    np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(ends, others, rtol=1e-3, atol=1e-3)


@settings(max_examples=25)
@given(pairs(most=30, weighted=False), st.data(), st.sampled_from(OPTIONS))
def test_frequencies_count_copies_of_rows(rows, data, options):
    h, a, _ = rows
    times = np.array(
        data.draw(st.lists(st.integers(0, 3), min_size=len(h), max_size=len(h)))
    )
    assume(times.any())
    weighted = cal.evaluate_pairs(a, h, frequency=times, **options)
    copied = cal.evaluate_pairs(np.repeat(a, times), np.repeat(h, times), **options)
    same(weighted, copied, 1e-8)  # the spread of equal losses is the root of round-off


@settings(max_examples=15)
@given(pairs(most=60), st.sampled_from([0.5, 4.0, 3.0, 1e-3]))
def test_the_unit_of_weights_does_not_matter(rows, factor):
    h, a, w = rows
    one, other = (cal.evaluate_pairs(a, h, sample_weight=x) for x in (w, factor * w))
    if (
        one.sum_of_weights is not None
    ):  # it says what was given; no number depends on it
        assert other.sum_of_weights == pytest.approx(factor * one.sum_of_weights)
        one, other = (replace(x, sum_of_weights=None) for x in (one, other))
    if factor in (0.5, 4.0):
        assert one.to_dict() == other.to_dict()
    else:
        same(one, other)


@settings(max_examples=15)
@given(pairs(most=30, weighted=False), st.data())
@pytest.mark.parametrize("metric", FUNCTIONS)
def test_frequencies_count_copies_for_each_function(metric, rows, data):
    h, a, _ = rows
    times = np.array(
        data.draw(st.lists(st.integers(0, 3), min_size=len(h), max_size=len(h)))
    )
    assume(times.any())
    weighted = metric(a, confidence=h, frequency=times)
    copied = metric(np.repeat(a, times), confidence=np.repeat(h, times))
    assert weighted == pytest.approx(copied, abs=1e-9, nan_ok=True)


@settings(max_examples=25)
@given(pairs(), st.randoms(use_true_random=False), st.sampled_from(OPTIONS))
def test_order_of_rows_does_not_matter(rows, random, options):
    h, a, w = rows
    index = np.array(random.sample(range(len(h)), len(h)))
    one = cal.evaluate_pairs(a, h, sample_weight=w, **options)
    other = cal.evaluate_pairs(a[index], h[index], sample_weight=w[index], **options)
    same(one, other)


@settings(max_examples=25)
@given(problems(classes=(3, 5)), st.randoms(use_true_random=False))
@pytest.mark.parametrize("target", ["top-label", "class-wise"])
def test_names_of_classes_do_not_matter(target, problem, random):
    z, y = problem
    z = z + 1e-5 * np.sqrt(np.arange(z.shape[1]))  # exact ties go to the lower class
    index = np.array(random.sample(range(z.shape[1]), z.shape[1]))
    one = cal.evaluate(y, logits=z, target=target)
    other = cal.evaluate(np.argsort(index)[y], logits=z[:, index], target=target)
    for name, value in one.metrics.items():
        assert other.metrics[name] == pytest.approx(value, abs=1e-9, nan_ok=True)
    assert other.decomposition.calibration == pytest.approx(
        one.decomposition.calibration, abs=1e-9
    )


@settings(max_examples=40)
@given(pairs(), st.sampled_from(OPTIONS))
@pytest.mark.parametrize("divergence", ["brier", "log"])
def test_the_parts_add_up(divergence, rows, options):
    h, a, w = rows
    ev = cal.evaluate_pairs(a, h, sample_weight=w, divergence=divergence, **options)
    for parts in (*ev.decompositions.values(), *ev.paper_decompositions.values()):
        total, calibration = float(parts.total), float(parts.calibration)
        if np.isfinite(total) and np.isfinite(calibration):
            added = calibration + parts.sharpness_gap
            assert added == pytest.approx(total, abs=1e-12)


@settings(max_examples=25)
@given(problems(classes=(2, 4)))
@pytest.mark.parametrize("target", ["top-label", "class-wise"])
@pytest.mark.parametrize("counterpart", ["paper", "tight"])
def test_the_parts_add_up_for_every_target(target, counterpart, problem):
    z, y = problem
    if target == "class-wise" and counterpart == "tight":
        counterpart = "paper"
    ev = cal.evaluate(y, logits=z, target=target, counterpart=counterpart)
    parts = ev.decomposition
    assert parts.calibration + parts.sharpness_gap == pytest.approx(
        parts.total, abs=1e-12
    )
    assert parts.total == pytest.approx(
        cal.brier(y, logits=z, target="top-label"), abs=1e-12
    )


def test_tight_counterpart_scales_the_calibration_error_by_k_over_k_minus_one():
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(500, 4)) * 3, rng.integers(0, 4, 500)
    for options in ({}, {"bandwidth": 0.05}):
        plain_, tight = (
            cal.evaluate(y, logits=z, counterpart=c, **options)
            for c in ("paper", "tight")
        )
        ratio = tight.decomposition.calibration / plain_.decomposition.calibration
        assert ratio == pytest.approx(4 / 3)
        assert tight.paper.calibration == plain_.paper.calibration
        one, other = plain_.curve, tight.curve
        error = one.loss - one.sharpness_gap  # adaptive: a mean over the rows nearby
        if options:
            d = (one.accuracy - one.confidence) ** 2
            np.testing.assert_allclose(error, d, atol=1e-12)
        fall = one.sharpness_gap - other.sharpness_gap
        np.testing.assert_allclose(fall, error / 3, atol=1e-12)
        assert (fall > 0).any()


MATRIX_METRICS = [
    cal.top_label_ece,
    cal.classwise_ece,
    lambda y, **g: cal.classwise_ece(y, strategy="mass", norm=2, **g),
    cal.full_vector_ece,
    lambda y, **g: cal.evaluate(y, target="class-wise", **g).decomposition.calibration,
    lambda y, **g: cal.evaluate(y, **g).decompositions["log"].total,
]


@settings(max_examples=15)
@given(problems(classes=(3, 4)), st.data())
@pytest.mark.parametrize("metric", MATRIX_METRICS)
def test_frequencies_count_copies_of_whole_rows(metric, problem, data):
    z, y = problem
    times = data.draw(st.lists(st.integers(0, 3), min_size=len(y), max_size=len(y)))
    times = np.array(times)
    assume(times.any())
    weighted = metric(y, logits=z, frequency=times)
    copied = metric(np.repeat(y, times), logits=np.repeat(z, times, axis=0))
    assert weighted == pytest.approx(copied, abs=1e-9)


def test_tight_counterpart_scales_the_interval_too():
    rng = np.random.default_rng(0)
    z, y = rng.normal(size=(500, 4)) * 3, rng.integers(0, 4, 500)
    paper, tight = (
        cal.evaluate(y, logits=z, counterpart=c).decomposition.calibration.interval
        for c in ("paper", "tight")
    )
    np.testing.assert_allclose(tight, np.multiply(paper, 4 / 3))

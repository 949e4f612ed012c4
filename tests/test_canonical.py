"""Full calibration: slow twins, closed forms, known truths, the Lemma on real data."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import softmax
from scipy.optimize import minimize_scalar
from strategies import problems

from calibrant._verbs import canonical_calibration_error as error_module
from calibrant._verbs import canonical_calibration_error as field_module
from calibrant._verbs.canonical_calibration_error import (
    GAINS,
    SQUARES,
    CanonicalError,
    Field,
    Start,
    Surroundings,
    Vectors,
    canonical_calibration_error,
    fit_slope,
    read_vectors,
    temper,
    tempered,
)
from calibrant._verbs.metric_functions import calibration_error

DIVERGENCES = ["brier", "log"]


def draw(p, rng):
    return (p.cumsum(axis=1) > rng.random((len(p), 1))).argmax(axis=1)


def law(n, k, seed, change=lambda p: p, alpha=1.0):
    """Dirichlet forecasts p, labels from the true law `change(p)`, and that law."""
    rng = np.random.default_rng(seed)
    p = rng.dirichlet(np.full(k, alpha), n)
    true = change(p)
    true = true / true.sum(axis=1, keepdims=True)
    return p, draw(true, rng), true


def full(divergence, m, p):
    """d(m, p) row by row."""
    if divergence == "brier":
        return ((m - p) ** 2).sum(axis=1)
    return (m * (np.log(m) - np.log(p))).sum(axis=1)


def vectors(p, y, w=None):
    w = np.ones(len(p)) if w is None else np.asarray(w, float)
    return Vectors(np.log(p), np.eye(p.shape[1])[y], w, w)


def started(q):
    """A start known for sure."""
    return Start(q, np.zeros_like(q))


# -- slow twins -------------------------------------------------------------------


def slow_gains(divergence, p, e, q, w, square):
    """Held-out gain, noise and size, one pair of rows at a time."""
    out = []
    for i in range(len(p)):
        K = [np.exp(-((np.sqrt(p[i]) - np.sqrt(x)) ** 2).sum() / 2 / square) for x in p]
        weight = np.array(K) * w
        weight[i] = K[i] * (w[i] - 1)  # of a row of weight 2, one is left out
        row = slow_brier if divergence == "brier" else slow_log
        out.append(row(p, e, q, w, i, np.array(K), weight))
    return np.array(out).T


def slow_brier(p, e, q, w, i, K, weight):
    whole = max((K * w).sum(), 1)
    g = sum(weight[j] * (e[j] - q[j]) for j in range(len(p))) / whole
    noise = sum(weight[j] * K[j] * ((e[j] - q[j]) ** 2).sum() for j in range(len(p)))
    u = q[i] + g - p[i]
    return 2 * (e[i] - p[i]) @ u - u @ u, noise / whole**2, u @ u


def slow_log(p, e, q, w, i, K, weight):
    hits = sum(weight[j] * e[j] for j in range(len(p))) + q[i]
    claims = sum(weight[j] * q[j] for j in range(len(p))) + q[i]
    m = q[i] * hits / claims
    m = m / m.sum()
    share = claims / (weight.sum() + 1)
    variance = (weight * K).sum() / weight.sum() * (1 - share) / claims
    noise = 0.5 * (m * np.minimum(variance, 4)).sum()
    return e[i] @ np.log(m / p[i]), noise, m @ np.log(m / p[i])


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("square", [0.5, 0.125, 0.015625])
def test_gains_are_those_of_each_pair_of_rows(divergence, square):
    p, y, _ = law(24, 4, seed=1)
    w = np.random.default_rng(2).integers(1, 3, 24).astype(float)
    rows, q = vectors(p, y, w), temper(np.log(p), 0.7)
    found = Field(rows, started(q), GAINS[divergence]).gains(np.arange(24), [square])[0]
    slow = slow_gains(divergence, p, rows.labels, np.exp(q), w, square)
    np.testing.assert_allclose(np.stack(found[:3]), slow, rtol=1e-9, atol=1e-12)


def test_halved_squares_are_kernels_of_their_own():
    p, y, _ = law(30, 3, seed=3)
    rows = vectors(p, y)
    around = Surroundings(rows, p)
    every = around.sums(np.arange(5), SQUARES[0], 6)
    for square, found in zip(SQUARES[:6], every, strict=True):
        (alone,) = around.sums(np.arange(5), square, 1)
        np.testing.assert_allclose(found.hits, alone.hits, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(found.spread, alone.spread, rtol=1e-9, atol=1e-12)


def test_slope_is_the_best_by_a_plain_search():
    p, y, _ = law(400, 5, seed=4, change=lambda p: p**0.4)
    rows = vectors(p, y)

    def loss(slope):
        return -np.log((softmax(slope * np.log(p)) * rows.labels).sum(axis=1)).mean()

    best = minimize_scalar(loss, bounds=(0.05, 5), options={"xatol": 1e-9})
    slope, error = fit_slope(rows)
    assert slope == pytest.approx(best.x, rel=1e-5)
    curvature = (loss(slope + 1e-3) - 2 * loss(slope) + loss(slope - 1e-3)) / 1e-6
    assert error == pytest.approx((400 * curvature) ** -0.5, rel=1e-3)


def test_no_row_helps_to_temper_itself():
    p, y, _ = law(60, 3, seed=5)
    before = tempered(vectors(p, y), np.random.default_rng(0))
    other = y.copy()
    other[7] = (y[7] + 1) % 3
    after = tempered(vectors(p, other), np.random.default_rng(0))
    np.testing.assert_array_equal(before.log_probs[7], after.log_probs[7])
    assert (before.log_probs != after.log_probs).any()


# -- closed forms -----------------------------------------------------------------


def test_one_forecast_for_all_rows():
    # Everyone is everyone's neighbour: 2 r.g - |g|^2 + V with g = (S - r) / n, where the
    # sums of r.S and of |r|^2 over rows are |S|^2 and Q.
    p, y = np.tile([0.5, 0.3, 0.2], (40, 1)), np.arange(40) % 3
    rows = vectors(p, y)
    r = rows.labels - p
    S2, Q, n = (r.sum(axis=0) ** 2).sum(), (r**2).sum(), 40
    gain = (2 * n * (S2 - Q) - (n * S2 - 2 * S2 + Q)) / n**2
    noise = (n * Q - Q) / n**2
    found = Field(rows, started(np.log(p)), GAINS["brier"]).gains(np.arange(n), [0.5])[
        0
    ]
    assert found.held_out.sum() == pytest.approx(gain)
    assert found.noise.sum() == pytest.approx(noise)


def test_lonely_rows_keep_their_start():
    p = np.array([[0.98, 0.01, 0.01], [0.01, 0.98, 0.01], [0.01, 0.01, 0.98]])
    rows, q = vectors(p, np.array([1, 1, 1])), temper(np.log(p), 0.5)
    for divergence in DIVERGENCES:
        found = Field(rows, started(q), GAINS[divergence]).gains(np.arange(3), [1e-4])[
            0
        ]
        expected = full(divergence, np.exp(q), p)
        np.testing.assert_allclose(found.size, expected, rtol=1e-9)
        np.testing.assert_allclose(found.noise, 0, atol=1e-9)


def test_what_is_not_known_of_the_start_is_noise():
    p = np.array([[0.98, 0.01, 0.01], [0.01, 0.98, 0.01]])
    q, sigma = temper(np.log(p), 0.5), np.array([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]])
    start, m = Start(q, sigma), np.exp(q)
    expected = {"brier": (m * sigma) ** 2, "log": 0.5 * m * sigma**2}
    for divergence, noise in expected.items():
        field = Field(vectors(p, np.array([0, 1])), start, GAINS[divergence])
        found = field.gains(np.arange(2), [1e-4])[0]
        np.testing.assert_allclose(found.noise, noise.sum(axis=1), rtol=1e-9)


def test_error_of_the_start_is_that_of_its_slope():
    # d log q_c / d slope = z_c - mean z under q, by a difference.
    p, y, _ = law(100, 3, seed=15)
    start = tempered(vectors(p, y), np.random.default_rng(0))
    z = np.log(p[:1])
    ratio = start.log_probs[0] - start.log_probs[0, 0]
    slope = ratio[1] / (z[0, 1] - z[0, 0])
    rise = (temper(z, slope + 1e-6) - temper(z, slope - 1e-6)) / 2e-6
    scale = start.error[0] / rise[0]
    np.testing.assert_allclose(scale, scale[0], rtol=1e-5)
    assert 0.05 < scale[0] < 0.5  # about one over the root of 80 rows' information


def test_a_certain_forecast_that_fails_is_infinite():
    p, y, _ = law(100, 3, seed=6)
    p[0], y[0] = [1.0, 0.0, 0.0], 1
    found = canonical_calibration_error(y, probs=p, divergence="log")
    assert found.calibration == np.inf
    assert found.calibration.interval is None
    assert np.isfinite(canonical_calibration_error(y, probs=p).calibration)


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_a_class_held_impossible_costs_nothing_until_it_comes_true(divergence):
    p, y, _ = law(300, 2, seed=7)
    padded = np.c_[p, np.zeros(300)]
    found = canonical_calibration_error(y, probs=padded, divergence=divergence)
    without = canonical_calibration_error(y, probs=p, divergence=divergence)
    assert float(found.calibration) == pytest.approx(
        float(without.calibration), abs=1e-9
    )
    assert found.calibration.interval == pytest.approx(without.calibration.interval)


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("z", [1.5, 40.0, 800.0])
def test_a_model_that_is_always_right_is_under_confident(divergence, z):
    # Its best temperature is 0, up to a limit; what it loses, recalibration gains.
    y = np.arange(90) % 3
    logits = z * np.eye(3)[y]
    found = canonical_calibration_error(y, logits=logits, divergence=divergence)
    loss = full(
        divergence, np.eye(3)[y] * (1 - 2e-16) + 1e-16, softmax(logits) + 1e-300
    )
    assert found.held_out == pytest.approx(loss.mean(), abs=1e-3)


# -- known truths -----------------------------------------------------------------

CHANGES = {
    "temperature": lambda p: p**0.5,
    "shift": lambda p: p * np.exp(np.linspace(-0.8, 0.8, p.shape[1])),
    "swap": lambda p: 0.8 * p + 0.2 * np.roll(p, 1, axis=1),
}


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("k", [2, 3, 5])
def test_a_calibrated_model_gets_zero_on_average(k, divergence):
    found = [
        canonical_calibration_error(y, probs=p, divergence=divergence, rng=seed)
        for seed in range(24)
        for p, y, _ in [law(400, k, seed)]
    ]
    values = np.array([float(x.calibration) for x in found])
    assert abs(values.mean()) < 3 * values.std() / np.sqrt(24)
    assert np.mean([x.held_out for x in found]) < 0
    assert np.mean([x.calibration.interval[0] == 0 for x in found]) >= 0.8


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize("change", list(CHANGES))
def test_estimates_are_near_the_truth(change, divergence):
    found, truth = [], []
    for seed in range(6):
        p, y, true = law(1000, 3, seed, CHANGES[change])
        result = canonical_calibration_error(y, probs=p, divergence=divergence)
        found.append(float(result.calibration))
        truth.append(full(divergence, true, p).mean())
    noise = np.std(found) / np.sqrt(6)
    # What the kernel smooths away: up to a quarter of what no temperature explains.
    slack = 0.25 if change == "swap" else 0.05
    assert np.mean(found) < np.mean(truth) + 3 * noise
    assert np.mean(found) > (1 - slack) * np.mean(truth) - 3 * noise


def test_two_classes_agree_with_the_estimate_in_one_dimension():
    rng = np.random.default_rng(0)
    h = rng.beta(2, 1, 2000)
    y = (rng.random(2000) < h**2).astype(int)
    found = canonical_calibration_error(y, probs=np.stack([1 - h, h], axis=1))
    one = calibration_error(y, probs=h)  # of one class; the other errs as much
    assert found.calibration / 2 == pytest.approx(one, rel=0.05)
    assert found.calibration.interval[0] < 2 * one < found.calibration.interval[1]


# -- invariances ------------------------------------------------------------------


@settings(max_examples=15)
@given(problems(least=8, most=30), st.sampled_from(DIVERGENCES))
def test_names_of_classes_do_not_matter(problem, divergence):
    z, y = problem
    z = np.clip(z, -15, 15)
    turned = np.roll(np.arange(z.shape[1]), 1)
    one = canonical_calibration_error(y, logits=z, divergence=divergence)
    new = np.argsort(turned)[y]
    other = canonical_calibration_error(new, logits=z[:, turned], divergence=divergence)
    assert one.bandwidths == other.bandwidths
    # The temperature is found to a tolerance, from another side when classes are turned.
    assert float(one.calibration) == pytest.approx(float(other.calibration), abs=1e-7)


@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_weight_two_is_two_rows(divergence):
    p, y, _ = law(50, 3, seed=8)
    w = np.random.default_rng(9).integers(1, 4, 50)
    q = temper(np.log(p), 0.8)
    once = Field(vectors(p, y, w), started(q), GAINS[divergence])
    twins = np.repeat(np.arange(50), w)
    often = Field(vectors(p[twins], y[twins]), started(q[twins]), GAINS[divergence])
    for square in SQUARES[:4]:
        a = once.gains(np.arange(50), [square])[0]
        b = often.gains(np.arange(len(twins)), [square])[0]
        for x, each in zip(a, b, strict=True):
            np.testing.assert_allclose(x[twins], each, rtol=1e-9, atol=1e-12)


def test_soft_labels_and_zero_weights():
    p, y, _ = law(80, 3, seed=10)
    soft = canonical_calibration_error(np.eye(3)[y], probs=p)
    assert soft == canonical_calibration_error(y, probs=p)
    padded = np.r_[p, np.full((5, 3), np.nan)]
    w = np.r_[np.ones(80), np.zeros(5)]
    more = canonical_calibration_error(np.r_[y, [0] * 5], probs=padded, sample_weight=w)
    assert more == soft


def test_weights_are_not_mistaken_for_rows():
    p, y, _ = law(60, 3, seed=14)
    found = canonical_calibration_error(y, probs=p, frequency=np.full(60, 2.0))
    assert (found.n, found.rows, found.rows_used) == (120, 60, 60)
    assert "60 examples)" in str(found)


def test_blocks_change_nothing(monkeypatch):
    p, y, _ = law(70, 3, seed=11)
    whole = canonical_calibration_error(y, probs=p)
    monkeypatch.setattr(field_module, "BLOCK", 16)
    parts = canonical_calibration_error(y, probs=p)
    assert float(parts.calibration) == pytest.approx(
        float(whole.calibration), abs=1e-12
    )


# -- the boundary -----------------------------------------------------------------


def test_what_is_refused_is_named():
    with pytest.raises(ValueError, match=r"at most 10 classes, got 11"):
        canonical_calibration_error([0], probs=[np.full(11, 1 / 11)])
    with pytest.raises(
        ValueError, match="whole vectors, not confidence=: pass probs= or"
    ):
        canonical_calibration_error([0], confidence=[0.5])
    with pytest.raises(ValueError, match=r"divergence must be one of 'brier', 'log'"):
        canonical_calibration_error([0], probs=[[0.5, 0.5]], divergence="kl")
    with pytest.raises(ValueError, match="leave target out"):
        canonical_calibration_error([0], probs=[[0.5, 0.5]], target="positive")


def test_rows_beyond_the_limit_are_drawn_and_said(monkeypatch):
    monkeypatch.setattr(error_module, "MOST_ROWS", 100)
    p, y, _ = law(250, 3, seed=12)
    found = canonical_calibration_error(y, probs=p)
    assert (found.n, found.rows, found.rows_used) == (250, 250, 100)
    assert "250 examples, 100 of them compared" in str(found)
    assert found == canonical_calibration_error(y, probs=p)
    assert found != canonical_calibration_error(y, probs=p, rng=1)


@pytest.mark.parametrize("n", [1, 2, 7, 60])
@pytest.mark.parametrize("divergence", DIVERGENCES)
def test_record_survives_json_for_any_number_of_rows(n, divergence):
    p, y, _ = law(n, 3, seed=13)
    found = canonical_calibration_error(y, probs=p, divergence=divergence)
    again = CanonicalError.from_json(found.to_json())
    assert again == found
    assert again.calibration.interval == found.calibration.interval
    assert (found.calibration.interval is None) == (n < 50)
    assert str(again) == str(found)
    assert f"{found.calibration:.5f}" in str(found)


def test_logits_keep_what_probabilities_round_away():
    z = np.array([[800.0, 0.0, 1.0], [0.0, 2.0, 1.0]])
    rows = read_vectors([1, 1], {"logits": z}, "a test")
    assert rows.log_probs[0, 1] == pytest.approx(-800)


# -- real data --------------------------------------------------------------------


@pytest.mark.parametrize("divergence", DIVERGENCES)
@pytest.mark.parametrize(
    "name", ["cifar10_akamaster_resnet32", "cifar10_netcal_lenet_5"]
)
def test_full_calibration_error_is_at_least_that_of_the_confidence(
    data, name, divergence
):
    file = data(name)
    kind = "logits" if "logits" in file else "probs"
    given = {kind: file[kind][:3000], "divergence": divergence}
    found = canonical_calibration_error(file["labels"][:3000], **given)
    confidence = calibration_error(file["labels"][:3000], **given)
    assert found.held_out > confidence


# probmetrics 1.3.0, calib-err_brier_ts-mix_cv-5: a lower bound by temperature alone.
PEER = 0.0129919


def test_held_out_gain_agrees_with_a_peer_on_real_data(data):
    file = data("cifar10_akamaster_resnet32")
    found = canonical_calibration_error(file["labels"], logits=file["logits"])
    assert found.held_out == pytest.approx(PEER, rel=0.05)
    assert found.calibration.interval[0] < PEER < found.calibration.interval[1]


# -- weights and clusters ---------------------------------------------------------


def test_sums_leave_out_a_cluster_and_square_sums_of_clusters():
    p, y, _ = law(40, 3, seed=20)
    clusters, rng = np.arange(40) % 11, np.random.default_rng(0)
    w = rng.random(40) + 0.5
    rows = Vectors(np.log(p), np.eye(3)[y], w, w**2, clusters)
    start = temper(np.log(p), 0.8)
    q = np.exp(start)
    (near,) = Surroundings(rows, q).sums(np.arange(40), 0.3, 1)
    for i in range(40):
        K = w * np.exp((np.minimum(np.sqrt(p) @ np.sqrt(p[i]), 1) - 1) / 0.3)
        K[clusters == clusters[i]] = 0
        parts = [(K * (clusters == c)) for c in range(11)]
        assert near.others[i] == pytest.approx(K.sum())
        assert near.spread[i] == pytest.approx(sum(x.sum() ** 2 for x in parts))
        np.testing.assert_allclose(near.hits[i], K @ rows.labels, atol=1e-12)
        noise = sum(((x @ (rows.labels - q)) ** 2).sum() for x in parts)
        assert near.noise[i] == pytest.approx(noise)


def test_a_row_is_left_out_with_its_weight():
    p, y, _ = law(30, 3, seed=21)
    w = np.random.default_rng(1).random(30) + 0.5
    rows = Vectors(np.log(p), np.eye(3)[y], w, w**2)
    (near,) = Surroundings(rows, p).sums(np.arange(30), 0.3, 1)
    for i in range(30):
        K = w * np.exp((np.minimum(np.sqrt(p) @ np.sqrt(p[i]), 1) - 1) / 0.3)
        K[i] = 0
        np.testing.assert_allclose(near.hits[i], K @ rows.labels, atol=1e-12)
        length = ((rows.labels - p) ** 2).sum(axis=1)
        assert near.noise[i] == pytest.approx(K**2 @ length)


def test_the_unit_of_weights_does_not_matter():
    p, y, _ = law(80, 3, seed=22)
    w = np.random.default_rng(2).lognormal(size=80)
    one, other = (
        canonical_calibration_error(y, probs=p, sample_weight=x) for x in (w, 8 * w)
    )
    assert one == other
    assert one.n == 80


def test_copies_in_one_cluster_are_no_neighbours():
    p, y, _ = law(150, 3, seed=23)
    copies = {"probs": np.tile(p, (4, 1))}
    blind = canonical_calibration_error(np.tile(y, 4), **copies)
    names = np.tile(np.arange(150), 4)
    aware = canonical_calibration_error(np.tile(y, 4), cluster=names, **copies)
    once = canonical_calibration_error(y, probs=p)
    assert blind.calibration.interval[0] > 0.05  # copies agree with each other
    assert aware.calibration.interval[0] == 0
    lengths = [np.ptp(found.calibration.interval) for found in (aware, once)]
    assert lengths[0] > 0.7 * lengths[1]


def test_one_column_of_two_classes_is_a_vector():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    y = (rng.random(300) < p**2).astype(int)
    one = canonical_calibration_error(y, probs=p)
    two = canonical_calibration_error(y, probs=np.stack([1 - p, p], axis=1))
    assert one.k == 2
    assert one.calibration == pytest.approx(two.calibration)
    assert one.held_out == pytest.approx(two.held_out)

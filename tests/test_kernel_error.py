"""Kernel calibration errors: against sums over all pairs, and the level of their test."""

import numpy as np
import pytest
from oracles import softmax

import calibrant as cal


def _drawn():
    rng = np.random.default_rng(0)
    h = rng.random(150)
    hit = (rng.random(150) < h**1.3).astype(int)
    p = rng.dirichlet(np.ones(5), 120)
    return h, hit, p, (p.cumsum(axis=1) > rng.random((120, 1))).argmax(axis=1)


H, HIT, P, Y = _drawn()


def all_pairs(p, y, width, weight=None, cluster=None):
    """Widmann et al., pair by pair."""
    n = len(p)
    weight = np.ones(n) if weight is None else weight
    cluster = np.arange(n) if cluster is None else cluster
    e = np.eye(p.shape[1])[y] - p if p.ndim == 2 else (y - p)[:, None]
    p = p if p.ndim == 2 else p[:, None]
    value = total = 0.0
    for i in range(n):
        for j in range(n):
            if i != j and cluster[i] != cluster[j]:
                w = weight[i] * weight[j]
                kernel = np.exp(-np.sqrt(np.sum((p[i] - p[j]) ** 2)) / width)
                value += w * kernel * (e[i] @ e[j])
                total += w
    return value / total


def test_vectors_pair_by_pair():
    found = cal.kernel_calibration_error(Y, probs=P, width=0.3)
    assert (found.of, found.k, found.n, found.rows_used) == ("vector", 5, 120, 120)
    assert found.value == pytest.approx(all_pairs(P, Y, 0.3))
    weight, cluster = (
        np.random.default_rng(1).exponential(size=120),
        np.arange(120) // 4,
    )
    given = {"probs": P, "width": 0.3, "sample_weight": weight, "cluster": cluster}
    found = cal.kernel_calibration_error(Y, **given)
    assert found.value == pytest.approx(all_pairs(P, Y, 0.3, weight, cluster))
    assert found.law == "signs of clusters"


def test_confidences_pair_by_pair():
    found = cal.kernel_calibration_error(HIT, confidence=H, width=0.2)
    assert found.value == pytest.approx(all_pairs(H, HIT, 0.2))
    weight, cluster = (
        np.random.default_rng(2).exponential(size=150),
        np.arange(150) // 3,
    )
    given = {"confidence": H, "width": 0.2, "sample_weight": weight, "cluster": cluster}
    found = cal.kernel_calibration_error(HIT, **given)
    assert found.value == pytest.approx(all_pairs(H, HIT, 0.2, weight, cluster))
    top = cal.kernel_calibration_error(Y, probs=P, of="confidence", width=0.2)
    expected = all_pairs(P.max(axis=1), P.argmax(axis=1) == Y, 0.2)
    assert top.value == pytest.approx(expected)


@pytest.mark.parametrize("block", [2000, 50])
def test_a_count_is_rows(block, monkeypatch):
    from calibrant._verbs import kernel_calibration_error as module

    monkeypatch.setattr(module, "BLOCK", block)
    count = np.arange(120) % 3
    again = np.repeat(np.arange(120), count)
    for given in ({}, {"width": 0.3}, {"of": "confidence"}):
        one = cal.kernel_calibration_error(Y, probs=P, frequency=count, **given)
        two = cal.kernel_calibration_error(Y[again], probs=P[again], **given)
        assert one.value == pytest.approx(two.value, abs=1e-12)
        assert (one.p_value, one.width, one.n) == (two.p_value, two.width, two.n)
        assert one.n == count.sum()


def test_mmce_is_that_of_its_authors():
    kernel = np.exp(-np.abs(H[:, None] - H) / 0.4)
    residual = HIT - H
    expected = np.sqrt(residual @ kernel @ residual) / 150
    assert cal.mmce(HIT, confidence=H) == pytest.approx(expected)
    weight = np.random.default_rng(3).exponential(size=150)
    expected = (
        np.sqrt((weight * residual) @ kernel @ (weight * residual)) / weight.sum()
    )
    found = cal.mmce(HIT, confidence=H, sample_weight=weight)
    assert found == pytest.approx(expected)
    top = cal.mmce(Y, probs=P)
    assert top == pytest.approx(
        cal.mmce(P.argmax(axis=1) == Y, confidence=P.max(axis=1))
    )


def test_the_least_width_overflows_nothing():
    h = np.array([0.0, 0.5, 1.0, 1.0])
    found = cal.mmce([0, 1, 1, 0], confidence=h, width=0.01)
    kernel = np.exp(-np.abs(h[:, None] - h) / 0.01)
    residual = np.array([0, 0.5, 0, -1])
    assert found == pytest.approx(np.sqrt(residual @ kernel @ residual) / 4)


@pytest.mark.simulation
@pytest.mark.parametrize("k", [1, 8])
def test_the_test_keeps_its_level_and_finds_what_is_there(k):
    rng = np.random.default_rng(1)
    fair, off = [], []
    for _ in range(100):
        if k == 1:
            h = rng.beta(3, 1, 60)
            given = {"confidence": h}
            labels = [rng.random(60) < h, rng.random(60) < h**2]
        else:
            p = rng.dirichlet(np.ones(k), 60)
            given = {"probs": p}
            true = softmax(np.log(p) + 1.5 * (np.arange(k) == 0))
            labels = [
                (q.cumsum(axis=1) > rng.random((60, 1))).argmax(axis=1)
                for q in (p, true)
            ]
        for y, found in zip(labels, (fair, off), strict=True):
            found.append(
                cal.kernel_calibration_error(y, **given, resamples=39, rng=rng).p_value
            )
    assert 0.01 <= np.mean(np.array(fair) <= 0.05) <= 0.12
    assert np.mean(np.array(fair) <= 0.5) == pytest.approx(0.5, abs=0.17)
    assert np.mean(np.array(off) <= 0.05) > 0.5


def test_blocks_are_parts_of_the_same_sum(monkeypatch):
    from calibrant._verbs import kernel_calibration_error as module

    whole = cal.kernel_calibration_error(Y, probs=P, width=0.3, rng=2)
    monkeypatch.setattr(module, "BLOCK", 40)
    parts = cal.kernel_calibration_error(Y, probs=P, width=0.3, rng=2)
    order = np.random.default_rng(2).permutation(120)
    pieces = [all_pairs(P[x], Y[x], 0.3) for x in np.array_split(order, 3)]
    assert parts.value == pytest.approx(np.mean(pieces))
    assert parts.value != whole.value


def test_records_and_words():
    found = cal.kernel_calibration_error(Y, probs=P)
    assert type(found).from_json(found.to_json()) == found
    assert "squared kernel calibration error of all 5 classes, 120 examples" in str(
        found
    )
    again = cal.kernel_calibration_error(Y, logits=np.log(P))
    assert again.value == pytest.approx(found.value)


@pytest.mark.parametrize("n", [1, 2])
def test_few_rows(n):
    found = cal.kernel_calibration_error([1] * n, confidence=[0.4] * n)
    assert found.value == pytest.approx(0 if n == 1 else 0.36)
    assert 0 < found.p_value <= 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"width": 0}, "width must be"),
        ({"resamples": 1}, "resamples must be"),
        ({"of": "all"}, "of must be one of"),
        ({"rng": -1}, "rng must be"),
    ],
)
def test_wrong_arguments(options, message):
    with pytest.raises(ValueError, match=message):
        cal.kernel_calibration_error(Y, probs=P, **options)
    with pytest.raises(ValueError, match="labels that are classes, not shares: row 0"):
        cal.kernel_calibration_error(P, probs=P)


def test_rows_of_unequal_length_are_named():
    with pytest.raises(TypeError, match=r"^probs"):
        cal.kernel_calibration_error([0, 1, 2], probs=[[[0.5, 0.5], [0.2, 0.8]], [1]])


def test_rows_alone_in_their_cluster_are_paired_with_all_others():
    cluster = np.arange(150)
    alone = cal.kernel_calibration_error(HIT, confidence=H, cluster=cluster)
    plain = cal.kernel_calibration_error(HIT, confidence=H)
    assert alone.value == pytest.approx(plain.value)
    cluster[:30] = 0
    some = cal.kernel_calibration_error(HIT, confidence=H, cluster=cluster)
    assert some.value != pytest.approx(plain.value)

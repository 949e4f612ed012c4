"""Several labels at once, the likeliest few classes, and any event with its confidence."""

import numpy as np
import pytest
from oracles import softmax

import calibrant as cal

N, K = 300, 4


def _drawn():
    rng = np.random.default_rng(0)
    z = 2 * rng.normal(size=(N, K)) + rng.normal(size=(N, 1))
    y = (rng.random((N, K)) < 1 / (1 + np.exp(-z / 2))).astype(int)
    logits = 3 * rng.normal(size=(800, 6))
    return z, y, logits, (logits / 2 + rng.gumbel(size=logits.shape)).argmax(axis=1)


Z, Y, LOGITS, LABELS = _drawn()
P = 1 / (1 + np.exp(-Z))
MULTI = {"target": "multi-label"}


# -- several labels ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "metric", ["ece", "mce", "ace", "ks_error", "auroc", "brier", "nll"]
)
def test_metrics_are_those_of_all_labels_as_pairs(metric):
    found = getattr(cal, metric)(Y, probs=P, **MULTI)
    assert found == pytest.approx(getattr(cal, metric)(Y.ravel(), confidence=P.ravel()))
    assert found == pytest.approx(getattr(cal, metric)(Y, logits=Z, **MULTI), rel=1e-9)


def test_an_evaluation_is_that_of_pairs_with_rows_as_clusters():
    ev = cal.evaluate(Y, probs=P, **MULTI, rng=1)
    rows = np.repeat(np.arange(N), K)
    pairs = cal.evaluate(Y.ravel(), probs=P.ravel(), cluster=rows, rng=1)
    assert ev.decomposition == pairs.decomposition
    assert ev.metrics == pairs.metrics
    assert (ev.target, ev.k, ev.n, ev.n_clusters) == ("multi-label", K, N * K, N)
    alone = cal.evaluate(Y.ravel(), probs=P.ravel(), rng=1)
    wide, narrow = (np.ptp(x.metrics["brier"].interval) for x in (ev, alone))
    assert wide != pytest.approx(narrow)


def test_each_label_is_told_by_its_name():
    names = ["cat", "dog", "owl", "yak"]
    ev = cal.evaluate(Y, probs=P, classes=names, **MULTI)
    assert list(ev.per_group) == names
    for j, name in enumerate(names):
        own = cal.evaluate(Y[:, j], probs=P[:, j], interval=None)
        assert ev.per_group[name].metrics["ece"] == pytest.approx(own.metrics["ece"])
        assert ev.per_group[name].n == N
    again = cal.Evaluation.from_json(ev.to_json())
    assert again.per_group["owl"].metrics == ev.per_group["owl"].metrics


def test_weights_counts_clusters_and_groups_belong_to_rows():
    count = np.arange(N) % 3
    ev = cal.evaluate(Y, probs=P, frequency=count, **MULTI)
    again = np.repeat(np.arange(N), count)
    same = cal.evaluate(Y[again], probs=P[again], cluster=again, **MULTI)
    assert float(ev.decomposition.calibration) == pytest.approx(
        float(same.decomposition.calibration)
    )
    assert ev.metrics["brier"].interval == pytest.approx(same.metrics["brier"].interval)
    weight = np.arange(N) % 2 * 3.0
    half = cal.evaluate(Y, probs=P, sample_weight=weight, **MULTI)
    assert half.n == N * K / 2
    assert half.sum_of_weights == weight.sum()
    grouped = cal.evaluate(Y, probs=P, group=np.arange(N) % 2, **MULTI)
    assert [x.n for x in grouped.per_group.values()] == [N * K / 2] * 2
    assert (
        cal.evaluate(Y, probs=P, cluster=np.arange(N) // 10, **MULTI).n_clusters == 30
    )


def test_shares_are_labels_too():
    soft = 0.2 + 0.6 * Y
    ev = cal.evaluate(soft, probs=P, interval=None, **MULTI)
    assert ev.metrics["brier"] == pytest.approx(np.mean((P - soft) ** 2))


def test_models_are_compared_and_shown():
    one = cal.evaluate(Y, probs=P, name="one", **MULTI)
    two = cal.evaluate(Y, logits=Z / 2, name="two", **MULTI)
    found = cal.compare([one, two])
    assert "two's Brier score is" in str(found)
    assert "is each label as likely as forecast?" in str(found)
    assert "averaged over the labels: 0 to 100" in str(found)
    assert "observed frequency of each label" in one.describe()
    assert one.plot().get_ylabel() == "observed frequency"


@pytest.mark.parametrize(
    ("y", "given", "message"),
    [
        (Y[:, 0], {"probs": P}, r"needs probs or logits and y of one shape.*\(300,\)"),
        (Y[:, 0], {"probs": P[:, 0]}, "needs probs or logits and y of one shape"),
        (Y, {"confidence": P}, "got confidence of shape"),
        (Y, {"probs": P + (np.arange(N) == 7)[:, None]}, r"probs must be in \[0, 1\]; row 7"),
        (Y, {"logits": np.where(P > 2, P, np.nan)}, "logits must be finite; row 0"),
        (Y + 1, {"probs": P}, r"y must be in \[0, 1\]; row 0 is 2 for label"),
        (Y[:5], {"probs": P[:5]}, "needs 10 rows or more"),
    ],
)  # fmt: skip
def test_what_will_not_do_is_refused(y, given, message):
    with pytest.raises(ValueError, match=message):
        cal.evaluate(y, **given, **MULTI)


def test_errors_of_other_targets_point_to_it():
    with pytest.raises(ValueError, match=r"sums to .* pass target='multi-label'"):
        cal.evaluate(LABELS[:N] % K, probs=P)
    with pytest.raises(
        ValueError, match=r"y as soft labels.*pass target='multi-label'"
    ):
        cal.evaluate(Y, probs=softmax(Z))


# -- the likeliest few ---------------------------------------------------------------------------


@pytest.mark.parametrize("m", [1, 2, 3, 5])
def test_the_likeliest_few_row_by_row(m):
    p = softmax(LOGITS)
    order = np.argsort(-p, axis=1)[:, :m]
    h = np.take_along_axis(p, order, axis=1).sum(axis=1)
    hit = (order == LABELS[:, None]).any(axis=1)
    given = {"logits": LOGITS, "target": f"top-{m}"}
    assert cal.ece(LABELS, **given) == pytest.approx(cal.ece(hit, confidence=h))
    assert cal.accuracy(LABELS, **given) == hit.mean()
    assert cal.brier(LABELS, **given) == pytest.approx(cal.brier(LABELS, logits=LOGITS))
    ev = cal.evaluate(LABELS, **given)
    pairs = cal.evaluate_pairs(hit, h)
    assert float(ev.decomposition.calibration) == pytest.approx(
        float(pairs.decomposition.calibration), abs=1e-9
    )
    assert cal.evaluate(LABELS, logits=LOGITS, target=("top", m)).target == f"top-{m}"


def test_top_one_is_the_top_label():
    one = cal.evaluate(LABELS, logits=LOGITS, target="top-1").decomposition
    top = cal.evaluate(LABELS, logits=LOGITS).decomposition
    for name in ("total", "calibration", "sharpness_gap"):
        assert float(getattr(one, name)) == pytest.approx(
            float(getattr(top, name)), abs=1e-9
        )


def test_soft_labels_are_shares_of_the_event():
    soft = softmax(LOGITS / 2)
    among = np.argsort(-LOGITS, axis=1)[:, :2]
    share = np.take_along_axis(soft, among, axis=1).sum(axis=1)
    found = cal.accuracy(soft, logits=LOGITS, target="top-2")
    assert found == pytest.approx(share.mean())


def test_as_many_as_there_are_is_no_question():
    with pytest.raises(ValueError, match="needs more than 6 classes, got 6"):
        cal.evaluate(LABELS, logits=LOGITS, target="top-6")
    with pytest.raises(ValueError, match="target must be one of"):
        cal.evaluate(LABELS, logits=LOGITS, target="top-0")


# -- any event ------------------------------------------------------------------------------------


def runner_up():
    return cal.Target(
        "runner-up",
        event=lambda p: np.argsort(-p, axis=1)[:, 1],
        confidence=lambda p: -np.sort(-p, axis=1)[:, 1],
    )


def test_any_event_with_its_confidence():
    ev = cal.evaluate(LABELS, logits=LOGITS, target=runner_up())
    p, second = softmax(LOGITS), np.argsort(-LOGITS, axis=1)[:, 1]
    pairs = cal.evaluate_pairs(second == LABELS, p[np.arange(800), second])
    assert ev.target == "event: runner-up"
    assert float(ev.decomposition.calibration) == pytest.approx(
        float(pairs.decomposition.calibration), abs=1e-9
    )
    assert (
        ev.decomposition.total
        == cal.evaluate(LABELS, logits=LOGITS).decomposition.total
    )
    assert cal.Evaluation.from_json(ev.to_json()).target == ev.target
    assert "does the event come true as often as claimed?" in str(ev)
    weight = np.arange(800) % 2
    half = cal.evaluate(LABELS, logits=LOGITS, target=runner_up(), sample_weight=weight)
    assert half.n == 400


def test_mean_replacement_is_an_event_too():
    """The paper's: the predicted class, whose confidence is the accuracy everywhere."""
    q = np.mean(LOGITS.argmax(axis=1) == LABELS)
    constant = cal.Target(
        "mean", lambda p: p.argmax(axis=1), lambda p: np.full(len(p), q)
    )
    assert cal.ece(LABELS, logits=LOGITS, target=constant) == pytest.approx(
        0, abs=1e-12
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"confidence": lambda p: 2 * p[:, 0] + 1}, r"must be in \[0, 1\]; row 0"),
        ({"confidence": lambda p: p}, r"got shapes \(800, 6\) and \(800,\)"),
        ({"event": lambda p: p[:3, 0]}, "must give one confidence per row"),
    ],
)
def test_events_that_are_none_are_refused(change, message):
    whole = {"event": lambda p: p.argmax(axis=1), "confidence": lambda p: p.max(axis=1)}
    with pytest.raises(ValueError, match=message):
        cal.evaluate(
            LABELS, logits=LOGITS, target=cal.Target("x", **{**whole, **change})
        )
    with pytest.raises(TypeError, match="event must be"):
        cal.Target("x", event=3, confidence=len)


def test_the_command_reads_several_labels(tmp_path):
    from click.testing import CliRunner

    from calibrant.cli import main

    np.savez(tmp_path / "m.npz", probs=P, labels=Y)
    found = CliRunner().invoke(
        main, ["report", str(tmp_path / "m.npz"), "--target", "multi-label", "--json"]
    )
    assert found.exit_code == 0, found.output
    assert '"multi-label"' in found.output


def test_an_event_of_ones_own_never_has_the_words_of_a_built_in():
    own = cal.Target(
        "top-2", event=lambda p: p.argmax(1), confidence=lambda p: p.max(1)
    )
    p = np.array([[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]] * 10)
    ev = cal.evaluate([0, 2] * 10, probs=p, target=own)
    assert ev.target == "event: top-2"
    assert "likeliest" not in str(ev)
    built_in = cal.evaluate([0, 2] * 10, probs=p, target="top-2")
    assert built_in.target == "top-2"
    assert "is the true class among the 2 likeliest as often as claimed?" in str(
        built_in
    )


def test_a_misspelt_target_is_told_of_the_top_ones():
    with pytest.raises(ValueError, match="'top-2'"):
        cal.evaluate([0, 2], probs=[[0.5, 0.3, 0.2], [0.1, 0.1, 0.8]], target="top2")

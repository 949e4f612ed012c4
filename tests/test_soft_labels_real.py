"""Human votes as soft labels of real networks: what no model can be rid of."""

import numpy as np
import pytest

import calibrant as cal


@pytest.fixture(scope="module")
def votes(simulation):
    return simulation("soft_labels")


def network(data, votes, name):
    arrays = data(votes.PREFIX + votes.MODELS[name])
    return {"logits": arrays["logits"]}, arrays["labels"]


@pytest.mark.parametrize("divergence", ["brier", "log"])
def test_a_vote_costs_the_distance_to_the_shares_and_an_irreducible_rest(
    data, votes, divergence
):
    scores, _ = network(data, votes, "WRN-28-10")
    pi = votes.shares(data)
    soft = cal.evaluate(pi, **scores, target="top-label", interval=None)
    # Each image once for every class, as often as it was voted for.
    n, k = pi.shape
    drawn = cal.evaluate(
        np.tile(np.arange(k), n),
        logits=np.repeat(scores["logits"], k, axis=0),
        sample_weight=pi.ravel(),
        target="top-label",
        interval=None,
    )
    rest = votes.irreducible(pi, divergence)
    total = soft.decompositions[divergence].total
    assert rest > total / 10
    assert drawn.decompositions[divergence].total == pytest.approx(
        total + rest, rel=1e-6
    )
    # The rest is no fault of the model's: its calibration error hardly moves.
    found, known = (x.decompositions[divergence].calibration for x in (drawn, soft))
    assert found == pytest.approx(known, abs=np.ptp(known.interval) / 4)


def test_shares_themselves_lose_nothing_but_the_rest(data, votes):
    pi = votes.shares(data)
    found = cal.evaluate(pi, probs=pi, target="top-label", interval=None)
    for name in ("brier", "log"):
        parts = found.decompositions[name]
        assert parts.total == pytest.approx(0, abs=1e-12)
        assert parts.calibration == pytest.approx(0, abs=1e-5)


def test_the_voters_are_under_confident_about_official_labels(data, votes):
    arrays = data("cifar10h_human_counts")
    found = cal.evaluate(arrays["labels"], probs=votes.shares(data))
    parts = found.decomposition
    assert found.metrics["confidence_gap"].interval[1] < 0
    assert parts.calibration.interval[0] > 0.004
    assert parts.total == pytest.approx(parts.calibration + parts.sharpness_gap)


def test_a_network_tuned_on_votes_is_calibrated_about_votes_only(data, votes):
    errors = {}
    for name in ("WRN-28-10", "WRN-28-10, tuned on votes"):
        scores, labels = network(data, votes, name)
        for kind, y in (("labels", labels), ("votes", votes.shares(data))):
            found = cal.evaluate(y, **scores, interval=None)
            errors[name, kind] = found.decomposition.calibration
    plain, tuned = (
        [errors[name, kind] for kind in ("labels", "votes")]
        for name in ("WRN-28-10", "WRN-28-10, tuned on votes")
    )
    assert plain[0].interval[1] < plain[1].interval[0]
    assert tuned[1].interval[1] < tuned[0].interval[0]
    assert tuned[0] > 10 * tuned[1]


def test_the_page_is_what_the_script_writes(data, votes):
    page = votes.HERE / "soft_labels.md"
    assert page.read_text("utf-8") == votes.page(data)

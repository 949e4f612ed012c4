"""Grouping loss: a lower bound that is unbiased for given regions, and what it splits."""

import numpy as np
import pytest
from command import calibrant as run

import calibrant as cal
from calibrant._inputs.divergences import BRIER
from calibrant._rows.columns import Columns
from calibrant._verbs.features import read_features
from calibrant._verbs.grouping_loss import (
    Explained,
    _noise,
    _ridge,
    cells_of,
    explained,
    learned_regions,
    line_of_bins,
)


def expit(z):
    return 1 / (1 + np.exp(-z))


@pytest.fixture
def rows():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(3000, 2))
    q = expit(x[:, 0] + 1.2 * x[:, 1])
    h = expit(0.8 * x[:, 0])
    return {"x": x, "q": q, "h": h, "y": (rng.random(3000) < q).astype(int)}


# -- twins --------------------------------------------------------------------------


def test_lines_of_bins_are_weighted_least_squares():
    rng = np.random.default_rng(0)
    h, w, bins = rng.random(60), rng.uniform(0.5, 2, 60), rng.integers(0, 3, 60)
    hit = rng.integers(0, 2, 60).astype(float)
    fit, _ = line_of_bins(Columns(h, None, hit, weight=w, squared=w**2), bins)
    for b in range(3):
        own = bins == b
        line = np.polyfit(h[own], hit[own], 1, w=np.sqrt(w[own]))
        assert fit[own] == pytest.approx(np.polyval(line, h[own]))


def test_the_brier_bound_is_that_of_the_slow_twin():
    rng = np.random.default_rng(1)
    n = 80
    h, bins, region = rng.random(n), rng.integers(0, 2, n), rng.integers(0, 3, n)
    hit = rng.integers(0, 2, n).astype(float)
    columns = Columns(h, None, hit)
    found = explained(*cells_of(columns, bins, region, None), columns, BRIER, None)
    slow = 0.0
    for b in range(2):
        own = bins == b
        x = np.column_stack([np.ones(own.sum()), h[own]])
        hat = x @ np.linalg.inv(x.T @ x) @ x.T
        r = hit[own] - hat @ hit[own]
        for k in range(3):
            here = (region[own] == k).astype(float)
            m, size = here @ r / here.sum(), here.sum()
            s2 = (here @ (r - m) ** 2) / (size - 1)
            left = here @ (np.eye(len(r)) - hat) @ here / size  # variance that is left
            slow += size / n * (m**2 - s2 / size * left)
    assert found.value == pytest.approx(slow)


def test_without_a_line_the_bound_is_the_mean_over_pairs_of_rows():
    """With one confidence, and many rows, it is the U-statistic of Perez-Lebel et al."""
    rng = np.random.default_rng(2)
    n = 400
    region = np.repeat([0, 1], n // 2)
    hit = (rng.random(n) < np.where(region == 0, 0.2, 0.6)).astype(float)
    found = cal.grouping_loss(hit.astype(int), probs=np.full(n, 0.4), explain=region)
    pairs = 0.0
    for k in (0, 1):
        own = hit[region == k] - hit.mean()
        total = own.sum() ** 2 - (own**2).sum()
        pairs += 0.5 * total / (len(own) * (len(own) - 1))
    s2 = hit.var(ddof=1)
    assert found == pytest.approx(pairs, abs=1.1 * s2 / n)  # its own bin takes one row


def test_ridge_is_that_of_normal_equations_at_one_of_its_penalties():
    rng = np.random.default_rng(3)
    x, train = rng.normal(size=(50, 3)), np.arange(50) < 40
    r = x[:40] @ [1.0, 0.0, -1.0] + 0.1 * rng.normal(size=40)
    score = _ridge(x, r, np.ones(40), train)
    z = (x - x[:40].mean(axis=0)) / x[:40].std(axis=0)
    ways = [
        z @ np.linalg.solve(z[:40].T @ z[:40] + p * np.eye(3), z[:40].T @ r)
        for p in 40 * np.logspace(-4, 2, 19)
    ]
    assert min(np.abs(score - way).max() for way in ways) < 1e-9


# -- what it says -------------------------------------------------------------------


@pytest.mark.parametrize("divergence", ["brier", "log"])
@pytest.mark.simulation
def test_the_bound_is_near_the_truth_and_not_above_it(divergence):
    rng, found = np.random.default_rng(5), []
    for _ in range(40):
        kind, h = rng.integers(0, 2, 2000), rng.uniform(0.2, 0.8, 2000)
        q = h + np.where(kind == 1, 0.15, -0.15)
        y = (rng.random(2000) < q).astype(int)
        how = {"explain": kind, "divergence": divergence}
        found.append(float(cal.grouping_loss(y, probs=h, **how)))
    h = np.linspace(0.2, 0.8, 2001)
    each = [
        q * np.log(q / h) + (1 - q) * np.log((1 - q) / (1 - h))
        for q in (h + 0.15, h - 0.15)
    ]
    truth = 0.15**2 if divergence == "brier" else float(np.mean(each))
    error = np.std(found) / np.sqrt(40)
    assert 0.8 * truth < np.mean(found) < truth + 2 * error


@pytest.mark.simulation
def test_errors_of_rare_outcomes_in_a_region_are_not_too_small(simulation):
    """Cells without events do not vary; the spread of the bound is known from 150 sets."""
    harness = simulation("grouping")
    rng, found = np.random.default_rng(0), []
    for _ in range(150):
        y, h, kind, _, _ = harness.drawn("an unseen feature", "-", rng)
        found.append(cal.grouping_loss(y, probs=h, explain=kind, divergence="log"))
    spread = np.std([float(x) for x in found])
    error = np.mean([np.ptp(x.interval) for x in found]) / 2 / 1.96
    assert 0.91 < error / spread < 1.15


@pytest.mark.parametrize("method", ["tree", "ridge"])
def test_features_that_the_model_does_not_see_are_found(rows, method):
    given = {"explain": rows["x"], "method": method}
    found = cal.loss_parts(rows["y"], probs=rows["h"], **given)
    assert found.grouping.interval[0] > 0.02
    parts = found.calibration + found.grouping + found.rest
    assert float(found.total) == pytest.approx(float(parts))
    chance = np.mean(rows["q"] * (1 - rows["q"]))
    assert found.rest > chance - 0.02  # what is left holds what is irreducible


def test_noise_explains_nothing(rows):
    noise = np.random.default_rng(6).normal(size=(3000, 3))
    found = cal.grouping_loss(rows["y"], probs=rows["h"], explain=noise)
    assert found.interval[0] == 0
    assert abs(found) < 0.004


def test_a_confidence_that_is_a_bijection_has_no_grouping_loss():
    rng = np.random.default_rng(7)
    h = rng.uniform(0.05, 0.95, 3000)
    y = (rng.random(3000) < h**2).astype(int)  # off, but it lumps nothing together
    found = cal.grouping_loss(y, probs=h, explain=np.log(h)[:, None])
    assert found.interval[0] == 0


def test_regions_are_learned_without_the_rows_they_are_measured_on(rows):
    columns = Columns(rows["h"], None, rows["y"].astype(float))
    other = rows["y"].astype(float)
    train = np.arange(3000) % 2 == 0
    other[~train] = 1 - other[~train]
    bins = np.zeros(3000, np.intp)
    features = read_features(rows["x"], 3000, "explain")
    ways = [
        learned_regions(features, x, bins, train, 4, "tree")
        for x in (columns, Columns(rows["h"], None, other))
    ]
    assert np.array_equal(*ways)


def test_soft_labels_know_all_three_parts():
    rng = np.random.default_rng(8)
    q, h = rng.beta(2, 2, 4000), np.full(4000, 0.5)
    parts = cal.loss_parts(q, confidence=h)
    assert parts.irreducible == pytest.approx(np.mean(q * (1 - q)))
    assert parts.total == pytest.approx(np.mean(q * (1 - q) + (q - h) ** 2))
    assert parts.rest == pytest.approx(0, abs=1e-12)
    entropy = -np.mean(q * np.log(q) + (1 - q) * np.log(1 - q))
    assert cal.loss_parts(
        q, confidence=h, divergence="log"
    ).irreducible == pytest.approx(entropy)


def test_noise_of_few_votes_is_taken_off():
    rng = np.random.default_rng(9)
    q = rng.beta(2, 2, 20_000)
    shares = rng.binomial(4, q) / 4
    parts = cal.loss_parts(shares, confidence=np.full(20_000, 0.5), votes=4)
    assert parts.irreducible == pytest.approx(np.mean(q * (1 - q)), abs=0.003)
    assert parts.grouping == pytest.approx(np.mean((q - 0.5) ** 2), abs=0.003)
    classes = rng.dirichlet([1, 1, 1], 500)
    whole = cal.loss_parts(classes, probs=np.full((500, 3), 1 / 3))
    assert whole.irreducible == pytest.approx(1 - (classes**2).sum(axis=1).mean())


def test_frequencies_are_repeated_rows(rows):
    kind = (rows["x"][:, 1] > 0).astype(int)
    count = 1 + (np.arange(3000) % 3)
    short = cal.loss_parts(rows["y"], probs=rows["h"], explain=kind, frequency=count)
    long = cal.loss_parts(
        np.repeat(rows["y"], count),
        probs=np.repeat(rows["h"], count),
        explain=np.repeat(kind, count),
    )
    assert short.grouping == pytest.approx(long.grouping, rel=0.03)


def test_parts_go_to_json_and_back(rows):
    found = cal.loss_parts(rows["y"], probs=rows["h"], explain=rows["x"])
    again = cal.LossParts.from_json(found.to_json())
    assert str(again) == str(found)
    assert again.seen == pytest.approx(found.seen)


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({}, "labels must be soft"),
        ({"explain": [[0.0]] * 4, "votes": 3}, "votes applies to soft labels"),
        ({"explain": [[0.0]] * 3}, "one entry per row"),
        ({"explain": [[np.nan]] * 4}, "must be finite numbers"),
        ({"explain": [[0.0]] * 4, "method": "forest"}, "method must be"),
        ({"explain": [["a"]] * 4, "method": "ridge"}, "takes numbers"),
        ({"explain": [[0.0]] * 4, "regions": 1}, "regions must be"),
        ({"explain": ["a", "b", "c", "d"]}, "no region has two rows"),
    ],
)
def test_what_cannot_be_split_is_refused(given, said):
    with pytest.raises(ValueError, match=said):
        cal.loss_parts([0, 1, 1, 0], probs=[0.2, 0.6, 0.7, 0.4], **given)


def test_too_many_regions_are_refused_with_a_way_out():
    y, p = np.arange(300) % 2, np.full(300, 0.5)
    with pytest.raises(
        ValueError, match=r"explain has 300 distinct values.*x\[:, None\]"
    ):
        cal.grouping_loss(y, probs=p, explain=np.arange(300))


def test_every_class_at_once_is_refused():
    with pytest.raises(ValueError, match="one number per class"):
        cal.grouping_loss(
            [0, 1, 2],
            probs=np.full((3, 3), 1 / 3),
            explain=[0, 1, 0],
            target="class-wise",
        )


# -- command and figure -------------------------------------------------------------


def test_the_command_splits_a_file(rows, tmp_path):
    table = np.column_stack([rows["y"], rows["h"], rows["x"]])
    lines = [f"{int(a)},{b:.6f},{c:.6f},{d:.6f}" for a, b, c, d in table]
    (tmp_path / "a.csv").write_text("\n".join(["outcome,prob,x_1,x_2", *lines]))
    found = run(
        "explain", "a.csv", "--by", "x_*", "--json", "-o", "p.html", cwd=tmp_path
    )
    parts = cal.LossParts.from_json(found.stdout)
    assert parts.grouping.interval[0] > 0.02
    assert "grouping loss" in (tmp_path / "p.html").read_text()


def test_the_figure_shows_the_parts_and_the_regions(rows):
    found = cal.loss_parts(rows["y"], probs=rows["h"], explain=rows["x"])
    axes = found.plot()
    heights = {bar.get_gid(): bar.get_height() for bar in axes[0].patches}
    assert heights["grouping loss"] == pytest.approx(100 * found.grouping)
    dots = next(x for x in axes[1].collections if x.get_gid() == "regions")
    assert len(dots.get_offsets()) == len(found.seen)
    soft = cal.loss_parts([0.2, 0.6] * 100, confidence=[0.4] * 200)
    assert len(soft.plot()) == 1


@pytest.mark.parametrize("value", [0.0, 1e-300, 1e-17])
def test_a_loss_of_nothing_but_rounding_has_an_interval(value):
    found = Explained(value, growing=6e-35, fixed=0.0).interval(0.95)
    assert found == pytest.approx((0.0, 0.0), abs=1e-15)


@pytest.mark.parametrize("explain", [3, "x", [], np.zeros((0, 4)), {"a": 3}])
def test_features_that_are_no_columns_are_named(explain):
    with pytest.raises(ValueError, match="explain must have"):
        cal.grouping_loss([0, 1], probs=[0.2, 0.8], explain=explain)


@pytest.mark.parametrize("explain", [[None], ["a", "b", "c"], [1]])
@pytest.mark.parametrize("weight", [None, [1.0, 1.0]])
def test_regions_of_another_length_are_named(explain, weight):
    given = {"probs": [0.2, 0.8], "sample_weight": weight}
    with pytest.raises(ValueError, match="explain must have one entry per row"):
        cal.grouping_loss([0, 1], **given, explain=explain)


def test_fewer_rows_than_folds_are_refused():
    with pytest.raises(ValueError, match="folds=2 needs as many rows"):
        cal.grouping_loss([1], probs=[0.8], explain=[[0.5]])


# -- clusters, other divergences, and records --------------------------------------------


@pytest.mark.parametrize("divergence", ["brier", "log"])
def test_copies_in_clusters_change_the_bound_little_and_its_interval_not(
    rows, divergence
):
    kind = (rows["x"][:, 1] > 0).astype(int)
    given = {"divergence": divergence}
    once = cal.grouping_loss(rows["y"], probs=rows["h"], explain=kind, **given)
    twice = {name: np.repeat(rows[name], 2) for name in ("y", "h")}
    found = cal.grouping_loss(
        twice["y"],
        probs=twice["h"],
        explain=np.repeat(kind, 2),
        cluster=np.repeat(np.arange(3000), 2),
        **given,
    )
    assert found == pytest.approx(once, rel=0.03)
    low, high = once.interval
    assert found.interval == pytest.approx((low, high), abs=0.1 * (high - low))
    careless = cal.grouping_loss(
        twice["y"], probs=twice["h"], explain=np.repeat(kind, 2), **given
    ).interval
    assert careless[1] - careless[0] < 0.8 * (high - low)


def test_a_cell_of_one_cluster_does_not_tell_how_clusters_differ():
    r = np.array([1.0, -2.0, 3.0, 0.5, 0.25])
    columns = Columns(np.full(5, 0.5), None, np.zeros(5))
    cell, cluster = np.array([0, 0, 0, 1, 1]), np.array([0, 0, 1, 2, 2])
    found = _noise(columns, cell, r, cluster)
    assert found[0] == pytest.approx(2 * ((1 - 2) ** 2 + 3**2))
    assert np.isnan(found[1])


def test_the_log_bound_is_near_that_of_many_rows(rows):
    """A model of two kinds at one confidence: the mean Kullback-Leibler divergence."""
    rng = np.random.default_rng(3)
    kind = np.arange(40_000) % 2
    q = np.where(kind, 0.8, 0.4)
    found = cal.grouping_loss(
        (rng.random(40_000) < q).astype(int),
        probs=np.full(40_000, 0.6),
        explain=kind,
        divergence="log",
    )
    p = np.array([0.4, 0.8])
    truth = np.mean(p * np.log(p / 0.6) + (1 - p) * np.log((1 - p) / 0.4))
    assert found.interval[0] < truth < found.interval[1]
    assert found == pytest.approx(truth, rel=0.1)


def test_the_frame_has_a_row_for_each_part(rows, part):
    part("pandas")
    parts = cal.loss_parts(rows["y"], probs=rows["h"], explain=rows["x"])
    frame = parts.frame("pandas")
    assert [*frame["part"]] == ["calibration error", "grouping loss", "rest", "total"]
    assert frame["value"].iloc[:3].sum() == pytest.approx(frame["value"].iloc[3])
    assert frame["low"].iloc[1] == parts.grouping.interval[0]
    assert np.isnan(frame["high"].iloc[2])


def test_votes_are_for_brier_only():
    with pytest.raises(ValueError, match="votes is known for divergence='brier' only"):
        cal.loss_parts([0.2, 0.7], confidence=[0.5, 0.5], votes=5, divergence="log")


# -- nothing found ------------------------------------------------------------------


def test_without_regions_the_loss_is_zero_without_an_interval(rows):
    few = {"y": rows["y"][:120], "probs": rows["h"][:120]}
    noise = np.random.default_rng(5).normal(size=(120, 1))
    parts = cal.loss_parts(**few, explain=noise)
    assert (float(parts.grouping), parts.grouping.interval) == (0.0, None)
    (told,) = parts.sentences
    assert told.startswith("No regions were found: too few examples, or these features")
    assert type(parts).from_dict(parts.to_dict()).sentences == parts.sentences
    assert cal.loss_parts(**few, explain=["one"] * 120).grouping.interval is None


def test_an_interval_from_zero_says_that_nothing_was_shown(rows):
    noise = np.random.default_rng(7).normal(size=(3000, 1))
    parts = cal.loss_parts(rows["y"], probs=expit(3 * rows["x"]).mean(1), explain=noise)
    assert parts.grouping.interval[0] == 0
    assert parts.sentences[0].startswith(
        "No grouping loss was shown on these 3,000 examples"
    )

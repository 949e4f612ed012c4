"""Groups: sizes, differences, the worst of them, a test of equality, and slices."""

import re
from dataclasses import replace

import numpy as np
import pytest
from command import calibrant as run
from scipy.optimize import brentq
from scipy.special import expit

import calibrant as cal
from calibrant._base.comparison import as_comparison
from calibrant._rows.columns import Columns
from calibrant._verbs.compare_groups import bins_of_rows, equal_calibration
from calibrant._verbs.features import Feature, grow, leaf_of, name_leaves
from calibrant._verbs.multicalibration_error import deviations
from calibrant.report._report import groups_of


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(8)
    n = 2400
    p, age = rng.beta(1, 2, n), rng.integers(20, 90, n)
    sex, region = rng.choice(["f", "m"], n), rng.choice(["east", "north", "west"], n)
    off = (age > 65) & (sex == "f")
    y = (rng.random(n) < np.where(off, np.minimum(1.8 * p, 1), p)).astype(int)
    return {"y": y, "p": p, "age": age, "sex": sex, "region": region, "off": off}


# -- comparison ---------------------------------------------------------------------


def test_the_heading_says_that_examples_are_in_clusters():
    rng = np.random.default_rng(0)
    p = rng.random(600)
    given = {"probs": p, "group": np.arange(600) // 300}
    y, cluster = rng.random(600) < p, np.arange(600) // 3
    assert "in clusters" not in str(cal.compare_groups(y, **given))
    found = str(cal.compare_groups(y, **given, cluster=cluster))
    assert "2 groups, 600 examples in clusters  [95%" in found.splitlines()[0]


def test_groups_have_the_numbers_of_their_rows_and_unpaired_differences(rows):
    found = cal.compare_groups(rows["y"], probs=rows["p"], group=rows["region"])
    apart = {
        name: cal.evaluate(rows["y"][own], probs=rows["p"][own], name=name)
        for name in ("east", "north", "west")
        for own in [rows["region"] == name]
    }
    assert found.baseline == max(apart, key=lambda name: apart[name].n)
    for name, ev in apart.items():
        assert found[name].n == ev.n
        assert found[name].metrics["brier"] == pytest.approx(ev.metrics["brier"])
    plain = cal.compare(*apart.values(), paired=False, baseline=found.baseline)
    for name, differences in plain.differences.items():
        assert found.differences[name] == pytest.approx(differences)


def test_the_worst_group_has_an_interval_of_all_groups_at_once(rows):
    found = cal.compare_groups(rows["y"], probs=rows["p"], group=rows["region"])
    wide = cal.evaluate(
        rows["y"], probs=rows["p"], group=rows["region"], level=0.95 ** (1 / 3)
    ).per_group
    brier = {name: ev.metrics["brier"] for name, ev in wide.items()}
    assert found.worst["brier"] == max(brier.values())
    ends = np.array([x.interval for x in brier.values()]).max(axis=0)
    assert found.worst["brier"].interval == pytest.approx(ends)
    low, high = (f"{end:.4f}" for end in found.worst["brier"].interval)
    where = f"{found.worst_group['brier']}, {found.worst['brier']:.4f}"
    (told,) = [x for x in found.sentences if "largest Brier" in x]
    assert told == (
        f"The largest Brier score of all groups lies in [{low}, {high}]; it was found in "
        f"{where}."
    )
    lowest = min(wide, key=lambda name: wide[name].metrics["accuracy"])
    assert found.worst_group["accuracy"] == lowest


def test_no_interval_of_one_event_s_brier_score_exceeds_1():
    rng = np.random.default_rng(0)
    group, p = rng.integers(0, 12, 60), rng.random(60)
    y = (rng.random(60) < p).astype(int)
    found = cal.compare_groups(y, probs=p, group=group)
    assert found.worst["brier"].interval[1] == 1.0
    given = {"group": group, "level": 0.99}
    for own in (cal.evaluate(y, probs=p, **given), cal.evaluate_pairs(y, p, **given)):
        assert max(x.metrics["brier"].interval[1] for x in own.per_group.values()) == 1
    both = cal.evaluate(y, probs=p, target="top-label", **given)  # of two classes
    assert max(x.metrics["brier"].interval[1] for x in both.per_group.values()) == 2


def test_a_worst_value_without_an_interval_claims_none():
    p, y = np.tile([0.9, 0.2, 0.6, 0.4], 3), np.tile([1, 0, 0, 1], 3)
    group = ["a"] * 11 + ["b"]
    found = cal.compare_groups(y, probs=p, group=group)
    assert found.worst["brier"].interval is None
    said = [x for x in found.sentences if x.startswith("The largest Brier")]
    where = f"found in {found.worst_group['brier']}: {found.worst['brier']:.4f}."
    assert said[0] == f"The largest Brier score of all groups was {where}"


def test_rows_and_sketches_say_the_same_of_groups(rows):
    for beside in ({}, {"sample_weight": 1.0 + (rows["age"] % 3)}):
        given = {"probs": rows["p"], "group": rows["region"], **beside}
        whole = cal.compare_groups(rows["y"], **given)
        sketch = cal.compare_groups(cal.Sketch().update(rows["y"], **given))
        assert sketch.names == whole.names
        assert sketch.equality.p_value == pytest.approx(whole.equality.p_value)
        assert sketch.worst["brier"] == pytest.approx(whole.worst["brier"])


def test_groups_go_to_json_and_back_and_print_names_and_sizes(rows):
    found = cal.compare_groups(
        rows["y"], probs=rows["p"], group=rows["sex"], name="risk"
    )
    assert str(cal.Groups.from_json(found.to_json())) == str(found)
    text = str(found)
    assert text.startswith("risk: 2 groups, 2,400 examples")
    for name in ("f", "m"):
        assert f"{int((rows['sex'] == name).sum()):,}" in text
    frame = found.frame("pandas")
    assert {*frame["model"]} == {"f", "m"}


def test_groups_run_by_the_numbers_in_their_names():
    rng = np.random.default_rng(0)
    p, group = rng.random(600), np.arange(600) % 12
    found = cal.compare_groups(rng.random(600) < p, probs=p, group=group)
    assert found.names == tuple(map(str, range(12)))


def test_small_errors_have_digits_that_show_them():
    rng = np.random.default_rng(0)
    p, group = rng.uniform(0, 0.01, 8000), np.repeat(["A", "B"], 4000)
    y = rng.random(8000) < np.where(group == "A", 4 * p, p)
    found = cal.compare_groups(y, probs=p, group=group)
    assert 1e-5 < found.worst["calibration"] < 0.001
    lines = [x for x in str(found).splitlines() if x.startswith("  A ")]
    lines += [x for x in found.sentences if x.startswith("The largest cal")]
    assert len(lines) == 2
    assert not any("0.0000 [" in x or "0.0000]" in x for x in lines)
    shown = f"{float(found.worst['calibration']):.5f}"
    assert all(shown in x for x in lines)


def test_groups_of_few_examples_say_why_errors_have_no_interval():
    rng = np.random.default_rng(0)
    p = rng.random(92)
    given = {"probs": p, "group": np.arange(92) % 6}
    found = cal.compare_groups(rng.random(92) < p, **given)
    said = "d_CAL below 20 and ECE below 50 examples: so few do not tell."
    assert found.sentences[-1].endswith(said)


def test_one_group_is_refused_and_so_is_an_unknown_baseline(rows):
    with pytest.raises(ValueError, match="two groups or more, got 0: give group="):
        cal.compare_groups(rows["y"], probs=rows["p"])
    with pytest.raises(ValueError, match="baseline must be"):
        cal.compare_groups(rows["y"], probs=rows["p"], group=rows["sex"], baseline="x")


# -- the test of equality -----------------------------------------------------------


def slow_statistic(columns, group, bins, clusters):
    """The same chi-squared, row by row and cluster by cluster."""
    w, hit = columns.weights, columns.hit
    z = np.clip(np.log(columns.confidence / (1 - columns.confidence)), -8, 8)
    m = np.empty(len(z))
    for b in set(bins):
        own = bins == b

        def surplus(a, own=own):
            return np.sum(w[own] * (expit(z[own] + a) - hit[own]))

        m[own] = expit(z[own] + brentq(surplus, -40, 40, xtol=1e-13))
    v, parts = w * m * (1 - m), []
    level = {b: np.average(z[bins == b], weights=v[bins == b]) for b in set(bins)}
    centre = sum(v[i] * level[bins[i]] for i in range(len(w))) / v.sum()
    for i in range(len(w)):
        b, row = bins[i], []
        for g in np.unique(group):
            share = v[(bins == b) & (group == g)].sum() / v[bins == b].sum()
            base = w[i] * ((group[i] == g) - share) * (hit[i] - m[i])
            row += [base, base * (level[b] - centre)]
        parts.append(row)
    parts = np.array(parts)
    sums = np.array([parts[clusters == c].sum(axis=0) for c in np.unique(clusters)])
    spread = sums.T @ sums
    return parts.sum(axis=0) @ np.linalg.pinv(spread, rcond=1e-9) @ parts.sum(axis=0)


@pytest.mark.parametrize("clustered", [False, True])
def test_the_statistic_is_that_of_the_slow_twin(clustered):
    rng = np.random.default_rng(0)
    n = 300
    h, w = rng.uniform(0.05, 0.95, n), rng.uniform(0.5, 2, n)
    hit, group = (rng.random(n) < h).astype(float), rng.integers(0, 3, n)
    columns = Columns(h, None, hit, weight=w, squared=w**2)
    clusters = np.arange(n) // (3 if clustered else 1)
    found = equal_calibration(columns, group, clusters if clustered else None)
    bins = bins_of_rows(columns, 120)
    assert found.statistic == pytest.approx(
        slow_statistic(columns, group, bins, clusters)
    )
    assert found.df == 4


@pytest.mark.simulation
def test_groups_that_are_off_alike_are_equal_and_others_are_not():
    rng, found = np.random.default_rng(1), {"alike": [], "other": []}
    for _ in range(200):
        h, group = rng.uniform(0.02, 0.98, 900), rng.integers(0, 3, 900)
        h = np.where(group == 0, h**2, h)  # other confidences are no other calibration
        q = {"alike": h**1.4, "other": np.where(group == 1, h**1.7, h)}
        for name, m in q.items():
            hit = (rng.random(900) < m).astype(float)
            found[name].append(equal_calibration(Columns(h, None, hit), group).p_value)
    size = np.mean(np.array(found["alike"]) < 0.05)
    assert 0.01 <= size <= 0.095
    assert np.mean(np.array(found["other"]) < 0.05) > 0.9


def rare(rng, shares):
    """Forecasts of rare events that are right, in groups of which some are small."""
    h = np.clip(rng.beta(0.5, 40, 2000), 1e-4, 1)
    return h, rng.choice(len(shares), 2000, p=shares)


def test_a_small_group_without_a_rare_event_is_no_evidence():
    rng = np.random.default_rng(3)
    h = np.clip(rng.beta(0.5, 40, 2000), 1e-4, 1)
    y = (rng.random(2000) < h).astype(int)
    group = np.where(np.arange(2000) < 100, "small", "large")
    found = cal.compare_groups(y, probs=h, group=group)
    assert y[:100].sum() == 0
    assert found.equality.law == "simulated"
    assert found.equality.p_value > 0.1
    assert "No evidence that groups have different calibration curves" in str(found)
    again = cal.compare_groups(cal.Sketch().update(y, probs=h, group=group))
    assert again.equality.p_value == pytest.approx(found.equality.p_value, abs=0.03)


def test_p_values_of_rare_events_are_spread_as_they_should_be():
    p = []
    for seed in range(40):
        rng = np.random.default_rng(seed)
        h, group = rare(rng, (0.05, 0.95))
        hit = (rng.random(2000) < h).astype(float)
        p.append(equal_calibration(Columns(h, None, hit), group).p_value)
    assert np.mean(np.array(p) < 0.05) <= 0.15
    assert 0.3 < np.mean(p) < 0.7


def test_a_small_group_that_is_far_off_is_found_though_events_are_rare():
    rng = np.random.default_rng(0)
    h, group = rare(rng, (0.05, 0.95))
    hit = (rng.random(2000) < np.where(group == 0, 10 * h, h)).astype(float)
    found = equal_calibration(Columns(h, None, hit), group)
    assert found.law == "simulated"
    assert found.p_value < 0.01


@pytest.mark.parametrize("beside", ["sample_weight", "cluster", "soft"])
def test_there_is_no_test_of_few_events_with_weights_clusters_or_soft_labels(beside):
    rng = np.random.default_rng(0)
    h, group = rare(rng, (0.05, 0.95))
    y, given = (rng.random(2000) < h).astype(float), {}
    if beside == "soft":
        y = np.column_stack([1 - 0.9 * y, 0.9 * y])
        given, h = {"target": "positive"}, np.column_stack([1 - h, h])
    else:
        y = y.astype(int)
        given = {beside: 1 + np.arange(2000) % 1000}
    found = cal.compare_groups(y, probs=h, group=group, **given)
    assert found.equality is None
    assert "each group needs 20 expected events" in found.sentences[-1]
    assert "Put small groups together" in found.sentences[-1]
    assert str(cal.Groups.from_json(found.to_json())) == str(found)


WORLDS = {
    "a rare small group": lambda rng: rare(rng, (0.05, 0.95)),
    "four groups": lambda rng: rare(rng, (0.4, 0.3, 0.25, 0.05)),
    "two equal groups": lambda rng: (rng.random(1000), np.arange(1000) % 2),
    "three of Beta(2, 2)": lambda rng: (rng.beta(2, 2, 400), rng.integers(0, 3, 400)),
}


@pytest.mark.simulation
@pytest.mark.parametrize("world", WORLDS)
def test_groups_calibrated_alike_differ_as_often_as_the_level_says(world):
    rng, p = np.random.default_rng(1), []
    for _ in range(200):
        h, group = WORLDS[world](rng)
        hit = (rng.random(len(h)) < h).astype(float)
        p.append(equal_calibration(Columns(h, None, hit), group).p_value)
    assert 0.015 <= np.mean(np.array(p) < 0.05) <= 0.085


# -- many groups --------------------------------------------------------------------


def test_deviations_are_means_and_their_errors_those_of_clusters():
    rng = np.random.default_rng(2)
    n = 500
    h, w = rng.uniform(0.2, 0.8, n), rng.uniform(0.5, 2, n)
    hit, masks = (rng.random(n) < h**2).astype(float), rng.random((3, n)) < 0.4
    columns, clusters = Columns(h, None, hit, weight=w, squared=w**2), np.arange(n) // 5
    found = deviations(columns, masks.astype(float), clusters)
    for j, mask in enumerate(masks):
        value = (w * mask * (hit - h)).sum() / w.sum()
        assert found.value[j] == pytest.approx(value)
        each = [
            (w[c] * (mask[c] * (hit - h)[c] - value)).sum()
            for c in (clusters == k for k in range(100))
        ]
        robust = np.sqrt(np.square(each).sum()) / w.sum()
        model = np.sqrt((w**2 * mask * h * (1 - h)).sum()) / w.sum()
        assert found.error[j] == pytest.approx(max(robust, model))


def test_overlapping_groups_are_found_where_they_are_off(rows):
    masks = {
        "women": rows["sex"] == "f",
        "over 65": rows["age"] > 65,
        "both": rows["off"],
    }
    found = cal.multicalibration_error(rows["y"], probs=rows["p"], groups=masks)
    assert found.p_value < 0.01
    gap = (rows["y"] - rows["p"])[rows["off"]].mean()
    assert found.gaps[2] == pytest.approx(gap)
    assert found.gaps[2].interval[0] > 0
    place = bins_of_rows(Columns(rows["p"], None, rows["y"].astype(float)), 40, 10)
    slow = max(
        abs(((place == b) & mask) @ (rows["y"] - rows["p"])) / len(rows["p"])
        for b in range(10)
        for mask in masks.values()
    )
    assert found.error == pytest.approx(slow)
    assert found.error.interval[0] <= found.error <= found.error.interval[1]
    assert str(cal.Multicalibration.from_json(found.to_json())) == str(found)
    for name in ("names", "sizes", "gaps"):
        plain = found.to_dict()
        plain[name] = plain[name][:-1]
        with pytest.raises(ValueError, match=r"names, . sizes and . gaps"):
            cal.Multicalibration.from_dict(plain)


def test_a_matrix_a_frame_and_a_mapping_are_the_same_groups(rows, part):
    pd = part("pandas")
    masks = {"a": rows["age"] > 50, "b": rows["sex"] == "f"}
    ways = [masks, pd.DataFrame(masks), np.column_stack([*masks.values()])]
    found = [
        cal.multicalibration_error(rows["y"], probs=rows["p"], groups=x) for x in ways
    ]
    assert found[0].gaps == found[1].gaps == found[2].gaps
    assert found[2].names == ("group 0", "group 1")


@pytest.mark.simulation
def test_the_interval_of_all_groups_holds_all_of_them():
    rng, held = np.random.default_rng(3), 0
    for _ in range(200):
        h = rng.uniform(0.1, 0.9, 600)
        masks = np.array(
            [h > 0.5, h < 0.6, rng.random(600) < 0.3, rng.random(600) < 0.1]
        )
        hit = (rng.random(600) < h).astype(int)
        found = cal.multicalibration_error(hit, probs=h, groups=masks.T, bins=3)
        held += all(x.interval[0] <= 0 <= x.interval[1] for x in found.gaps)
    assert held >= 185


@pytest.mark.parametrize(
    ("groups", "said"),
    [
        ({"a": [True, False]}, "one entry per row; 'a' has shape"),
        ({"a": [0, 1, 2]}, "must be true or false"),
        ({"a": [0, 0, 0]}, "'a' has none"),
        ({}, "one group or more"),
    ],
)
def test_groups_that_are_none_are_refused(groups, said):
    with pytest.raises(ValueError, match=said):
        cal.multicalibration_error([0, 1, 1], probs=[0.2, 0.6, 0.7], groups=groups)


# -- slices -------------------------------------------------------------------------


def test_a_tree_finds_the_split_that_explains_most():
    rng = np.random.default_rng(4)
    x, colour = rng.random(400), rng.choice(["red", "blue"], 400)
    r = np.where((x > 0.6) & (colour == "red"), 1.0, 0.0)
    features = [
        Feature("x", x, is_number=True),
        Feature("colour", colour, is_number=False),
    ]
    leaves = grow(features, r, np.ones(400), leaves=3, least=20)
    names = name_leaves(features, leaves)
    assert any("colour is" in name and "x > 0.6" in name for name in names)
    place = leaf_of(features, leaves)
    assert sorted(np.unique(place)) == [0, 1, 2]
    within = [np.ptp(r[place == k]) for k in range(3)]
    assert sorted(within)[:2] == [0, 0]


def test_slices_are_measured_on_rows_that_had_no_part_in_finding_them(rows):
    features = {"age": rows["age"], "sex": rows["sex"]}
    found = cal.find_slices(rows["y"], probs=rows["p"], features=features)
    assert sum(ev.n for ev in found) == 1200
    assert "found on 1,200 other examples" in found.sentences[-1]
    worst = found.worst_group["calibration"]
    assert "age >" in worst
    assert "sex is" in worst


def test_noise_has_no_slices_that_hold():
    rng, low = np.random.default_rng(5), []
    for seed in range(12):
        p, x = rng.random(600), rng.normal(size=(600, 5))
        y = (rng.random(600) < p).astype(int)
        how = {"interval": None, "rng": seed}
        low.append(cal.find_slices(y, probs=p, features=x, **how).equality.p_value)
    assert min(low) > 0.001
    assert np.mean(np.array(low) < 0.1) <= 0.4


def test_clusters_stay_whole_when_slices_are_found(rows):
    ids = np.arange(2400) // 4
    given = {"probs": rows["p"], "features": rows["age"][:, None], "cluster": ids}
    found = cal.find_slices(rows["y"], **given, slices=2)
    assert sum(ev.n for ev in found) % 4 == 0


def test_a_matrix_among_features_is_its_columns(rows):
    table = np.column_stack([np.zeros(2400), rows["age"]])
    how = {"probs": rows["p"], "slices": 2, "interval": None}
    found = cal.find_slices(rows["y"], features={"x": table}, **how)
    assert all(name.startswith("x[1] ") for name in found.names)


def test_slices_take_the_names_of_classes_from_a_frame():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 800)
    y, age = rng.permuted(p.argmax(axis=1)), rng.integers(20, 90, 800)
    how = {"features": {"age": age}, "slices": 2, "interval": None}
    plain = cal.find_slices(y, probs=p, **how)
    frame = pd.DataFrame(p, columns=["a", "b", "c"])
    named = cal.find_slices(np.array(["a", "b", "c"])[y], probs=frame, **how)
    assert named.names == plain.names
    assert [ev.metrics["brier"] for ev in named] == [
        ev.metrics["brier"] for ev in plain
    ]


def test_slices_are_found_in_tensors_that_numpy_cannot_hold():
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(0)
    z, age = torch.tensor(rng.normal(size=(800, 3))), rng.integers(20, 90, 800)
    y = torch.tensor(rng.integers(0, 3, 800))
    how = {"features": {"age": age}, "slices": 2, "interval": None}
    found = cal.find_slices(y, logits=z.bfloat16().requires_grad_(), **how)
    assert sum(ev.n for ev in found) == 400


def test_features_that_are_missing_are_refused(rows):
    bad = rows["age"].astype(float)
    bad[7] = np.nan
    with pytest.raises(ValueError, match=r"features must be finite.*row 7"):
        cal.find_slices(rows["y"], probs=rows["p"], features={"age": bad})
    with pytest.raises(ValueError, match="one entry per row"):
        cal.find_slices(rows["y"], probs=rows["p"], features=bad[:5])


# -- command and figures ------------------------------------------------------------


def test_the_command_compares_groups_and_finds_slices(rows, tmp_path):
    names = ("y", "p", "region", "age", "sex")
    lines = [",".join(map(str, x)) for x in zip(*(rows[n] for n in names), strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(["outcome,prob,region,age,sex", *lines]))
    found = run("groups", "a.csv", "--group", "region", "--json", cwd=tmp_path)
    assert cal.Groups.from_json(found.stdout).names == ("east", "north", "west")
    how = ("--slices", "age,sex", "-q", "-o", "g.html", "--fail-if", "ece.upper > 10%")
    sliced = run("groups", "a.csv", *how, cwd=tmp_path)
    assert sliced.returncode == 3
    assert "age >" in sliced.stderr
    assert (tmp_path / "g.html").exists()
    wrong = run("groups", "a.csv", "--slices", "agx", cwd=tmp_path)
    assert (wrong.returncode, "has no column 'agx'" in wrong.stderr) == (1, True)


def test_the_figures_show_every_group(rows):
    found = cal.compare_groups(rows["y"], probs=rows["p"], group=rows["region"])
    axes = cal.plot.groups(found)
    drawn = {line.get_gid() for line in axes[0].lines}
    assert {"east", "north", "west"} <= drawn
    assert [x.get_text() for x in axes[1].get_yticklabels()] == list(found.names)
    masks = {"women": rows["sex"] == "f", "over 65": rows["age"] > 65}
    gaps = cal.multicalibration_error(rows["y"], probs=rows["p"], groups=masks)
    ax = gaps.plot()
    assert [x.get_text() for x in ax.get_yticklabels()] == ["women", "over 65"]


@pytest.mark.parametrize("groups", [None, True, np.ones((2, 2, 2), bool)])
def test_groups_that_are_no_columns_are_named(groups):
    with pytest.raises(ValueError, match="groups must have one column for each group"):
        cal.multicalibration_error([0, 1], probs=[0.2, 0.8], groups=groups)


# -- words of forecasts -------------------------------------------------------------


def test_groups_that_overlap_are_told_in_words_of_forecasts_where_one_class_is(rows):
    masks = {"f": rows["sex"] == "f", "all": rows["p"] >= 0}
    found = cal.multicalibration_error(rows["y"], probs=rows["p"], groups=masks)
    assert "observed less forecast" in str(found)
    assert "confidence" not in str(found)
    label = cal.plot.group_gaps(found).get_xlabel()
    assert label == "observed frequency − forecast, points"
    top = cal.multicalibration_error(
        rows["y"], probs=rows["p"], groups=masks, target="top-label"
    )
    assert "accuracy less confidence" in str(top)
    label = cal.plot.group_gaps(top).get_xlabel()
    assert label == "accuracy − confidence, points"


def test_cumulative_differences_speak_of_forecasts_and_tell_high_ones_apart(rows):
    ax = cal.plot.cumulative_differences(cal.evaluate(rows["y"], probs=rows["p"]))
    texts = [x.get_text() for x in ax.texts]
    assert ax.get_xlabel() == "share of examples, by forecast"
    assert "forecast" in texts
    assert "confidence" not in texts
    rng = np.random.default_rng(0)
    sure = 1 - rng.beta(1, 300, 1000)
    ev = cal.evaluate_pairs(rng.random(1000) < sure, sure)
    ax = cal.plot.cumulative_differences(ev)
    numbers = [x.get_text() for x in ax.texts if x.get_text()[:1].isdigit()]
    assert len(numbers) == 4 == len({*numbers})


# -- what few rows, and records, may lack -----------------------------------------------


def test_each_figure_of_groups_names_the_other(rows):
    found = cal.compare_groups(rows["y"], probs=rows["p"], group=rows["region"])
    with pytest.raises(TypeError, match=r"draw it with plot\.groups"):
        cal.plot.group_gaps(found)


def test_a_metric_that_is_not_finite_in_a_group_has_no_worst_group(rows):
    p = rows["p"].copy()
    p[0], y = 0.0, rows["y"].copy()
    y[0] = 1
    found = cal.compare_groups(y, probs=p, group=rows["sex"])
    assert "nll" not in found.worst
    assert "nll" not in found.worst_group
    assert {"brier", "calibration"} <= {*found.worst}
    assert any(x.startswith("The largest Brier") for x in found.sentences)


def test_without_worst_values_and_test_the_sentences_leave_them_out(rows):
    found = cal.compare_groups(rows["y"], probs=rows["p"], group=rows["sex"])
    bare = replace(found, worst={}, worst_group={}, equality=None)
    assert not any("largest" in x or "one test" in x for x in bare.sentences)
    assert any("one test of all groups" in x for x in found.sentences)


def test_a_sketch_of_clusters_has_no_test_of_equality(rows):
    cluster = np.arange(len(rows["y"])) // 4
    sketch = cal.Sketch().update(
        rows["y"], probs=rows["p"], group=rows["sex"], cluster=cluster
    )
    found = cal.compare_groups(sketch)
    assert found.equality is None
    plain = cal.Sketch().update(rows["y"], probs=rows["p"], group=rows["sex"])
    assert 0 <= cal.compare_groups(plain).equality.p_value <= 1


def test_slices_of_every_class_at_once_are_refused():
    y, p = np.arange(30) % 3, np.full((30, 3), 1 / 3)
    with pytest.raises(ValueError, match="one probability per row, not class-wise"):
        cal.find_slices(y, probs=p, features=y, target="class-wise")


def test_features_that_split_nothing_are_told_so(rows):
    given = {"probs": rows["p"], "features": np.zeros(len(rows["y"]))}
    with pytest.raises(ValueError, match=r"50 rows, .* lower least=, or pass other"):
        cal.find_slices(rows["y"], **given, least=0.4)
    with pytest.raises(ValueError, match=r"or 0.4 % of them .* both sides; pass other"):
        cal.find_slices(rows["y"], **given, least=0.004)


def test_a_frame_without_columns_is_refused(rows):
    with pytest.raises(
        ValueError, match=r"features must have 1 to 100,000 columns, got 0"
    ):
        cal.find_slices(rows["y"], probs=rows["p"], features={})


def test_too_many_groups_in_bins_are_refused(rows):
    groups = {f"g{i}": rows["age"] > 20 + i % 60 for i in range(150)}
    with pytest.raises(
        ValueError, match=r"150 groups in \d+ bins are more than 2000 places"
    ):
        cal.multicalibration_error(rows["y"], probs=rows["p"], groups=groups, bins=20)


def test_the_frame_of_groups_has_a_row_for_each(rows, part):
    part("pandas")
    found = cal.multicalibration_error(
        rows["y"],
        probs=rows["p"],
        groups={"old": rows["age"] > 65, "f": rows["sex"] == "f"},
    )
    frame = found.frame("pandas")
    assert [*frame["group"]] == ["old", "f"]
    assert [*frame["gap"]] == [float(x) for x in found.gaps]
    assert [*zip(frame["low"], frame["high"], strict=True)] == [
        x.interval for x in found.gaps
    ]


def test_macro_averages_of_calibrated_groups_begin_at_0():
    """What noise adds to each group's ECE was taken for knowledge of their mean."""
    rng = np.random.default_rng(0)
    p = rng.random(5000)
    group = np.arange(5000) // 500
    ev = cal.evaluate(rng.random(5000) < p, probs=p, group=group)
    found = cal.macro_average(ev)["ece"]
    parts = [part.metrics["ece"].interval for part in ev.per_group.values()]
    assert {low for low, _ in parts} == {0}
    assert found.interval[0] == pytest.approx(0, abs=1e-12)
    assert found.interval[1] > found


def test_macro_averages_of_groups_that_are_off_do_not_begin_at_0():
    rng = np.random.default_rng(0)
    p = rng.random(5000)
    group = np.arange(5000) // 500
    ev = cal.evaluate(rng.random(5000) < p**2, probs=p, group=group)
    found = cal.macro_average(ev)["ece"]
    lows, value = zip(
        *(
            (x.metrics["ece"].interval[0], x.metrics["ece"])
            for x in ev.per_group.values()
        ),
        strict=True,
    )
    assert min(lows) > 0
    down = np.sqrt(sum((x - low) ** 2 for x, low in zip(value, lows, strict=True))) / 10
    assert found.interval[0] == pytest.approx(found - down)


def test_tables_and_pages_of_groups_call_them_groups():
    from calibrant.report import build
    from calibrant.terminal import render

    rng = np.random.default_rng(0)
    p, region = rng.random(300), np.repeat(["east", "west"], [100, 200])
    found = cal.compare_groups(rng.random(300) < p, probs=p, group=region)
    for text in (found.table(), found.table("markdown"), found.table("latex")):
        assert "Group " in text
        assert "The groups were tested on different examples" in " ".join(text.split())
        assert "odel" not in text
    assert render(found).startswith("2 groups, 100 to 200 examples")
    page = re.sub(r"(?s)<(script|style).*?</\1>", "", build(found))
    assert '<th scope="col">Group</th>' in page
    assert "2 groups" in page
    assert "odel" not in re.sub("<[^>]*>", "", page)
    assert "odel" not in re.sub("<[^>]*>", "", found._repr_html_())
    assert found.table("csv").startswith('"model"')  # for programs it is one name


@pytest.mark.parametrize("target", ["top-label", "class-wise"])
def test_the_record_of_a_group_says_which_it_is(target):
    rng = np.random.default_rng(0)
    p = rng.dirichlet([1, 1, 1], 200)
    y, group = rng.integers(0, 3, 200), np.repeat(["east", "west"], 100)
    given = {"probs": p, "group": group, "target": target, "name": "ViT"}
    ev = cal.evaluate(y, **given)
    names = [part.name for part in ev.per_group.values()]
    assert names == ["ViT, group east", "ViT, group west"]
    assert str(ev.per_group["west"]).startswith("ViT, group west: 100 examples")
    again = cal.Evaluation.from_json(ev.to_json())
    assert [part.name for part in again.per_group.values()] == names
    (other,) = as_comparison({"CNN": ev})
    assert other.per_group["east"].name == "CNN, group east"


def test_labels_and_sketches_name_their_groups_too():
    rng = np.random.default_rng(0)
    p = rng.random((60, 2))
    y = rng.random((60, 2)) < p
    named = {"target": "multi-label", "classes": ["cat", "owl"]}
    assert cal.evaluate(y, probs=p, **named).per_group["owl"].name == "model, group owl"
    sketch = cal.Sketch()
    sketch.update(y[:, 0], probs=p[:, 0], group=np.repeat(["a", "b"], 30))
    assert cal.evaluate(sketch).per_group["b"].name == "model, group b"


def test_a_page_takes_the_records_of_groups_as_they_are():
    from calibrant.report import build

    rng = np.random.default_rng(0)
    p = rng.random(100)
    ev = cal.evaluate(rng.random(100) < p, probs=p, group=np.repeat(["a", "b"], 50))
    assert build(ev, groups=ev.per_group) == build(ev, groups=groups_of(ev))


def test_groups_of_one_size_have_no_example_in_common():
    rng = np.random.default_rng(0)
    p, region = rng.random(300), np.arange(300) % 3
    y = rng.random(300) < p
    ev = cal.evaluate(y, probs=p, group=region.astype(str))
    for found in (cal.compare_groups(y, probs=p, group=region), cal.by_group(ev)):
        text = " ".join(found.table().split())
        assert text.startswith("Group ")
        assert "groups were tested on different examples: no best is marked." in text
        assert "*" not in text
        told = [x.text for x in found.audit() if "significant" in x.text]
        assert told
        assert all("on 100 and 100 examples" in x for x in told)


def test_labels_side_by_side_have_the_same_examples_and_other_questions():
    rng = np.random.default_rng(0)
    p = rng.random((100, 2))
    given = {"probs": p, "target": "multi-label", "classes": ["cat", "dog"]}
    found = cal.by_group(cal.evaluate((rng.random((100, 2)) < p).astype(int), **given))
    assert "Each label is a question of its own: no best is" in found.table()
    assert "different examples" not in found.table()

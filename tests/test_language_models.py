"""Answers of language models: abstentions, tasks, samples, and stated confidences."""

import json
import re
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from command import calibrant
from hypothesis import given, settings
from hypothesis import strategies as st

import calibrant as cal
from calibrant._base.records import Estimate
from calibrant._verbs.by_group import _mean, with_reason


def answers(n=600, seed=0):
    """Stated confidences in steps of 10 %, and whether the answers are correct."""
    rng = np.random.default_rng(seed)
    sure = rng.choice([0.5, 0.6, 0.7, 0.8, 0.9, 1.0], n)
    return rng.random(n) < 0.3 + 0.5 * sure, sure, rng


# -- abstentions -------------------------------------------------------------------------


def test_answers_without_a_confidence_are_left_out_and_counted():
    right, sure, rng = answers()
    silent, group = rng.random(600) < 0.2, rng.choice(["a", "b"], 600)
    said = [None if no else x for no, x in zip(silent, sure.tolist(), strict=True)]
    ev = cal.evaluate_pairs(right, said, group=group, drop_missing=True)
    same = cal.evaluate_pairs(right[~silent], sure[~silent], group=group[~silent])
    assert ev.metrics == same.metrics
    assert ev.left_out == silent.sum()
    assert ev.coverage == pytest.approx(1 - silent.mean())
    for name, part in ev.per_group.items():
        assert part.left_out == (silent & (group == name)).sum()
    assert f"coverage {100 * ev.coverage:.3g} %" in str(ev)
    assert cal.Evaluation.from_json(ev.to_json()).left_out == ev.left_out


def test_without_being_told_nothing_is_left_out():
    with pytest.raises((TypeError, ValueError)):
        cal.evaluate_pairs([1, 0], [0.5, None])
    with pytest.raises(ValueError, match="one entry per confidence: 1 against 2"):
        cal.evaluate_pairs([1], [0.5, None], drop_missing=True)


def test_what_was_left_out_counts_as_often_as_it_is_there():
    ev = cal.evaluate_pairs(
        [1, 0, 1], [0.5, np.nan, 0.7], frequency=[2, 3, 1], drop_missing=True
    )
    assert (ev.n, ev.left_out) == (3, 3)


def unlike(n=300, **more):
    """Two models that lack as many answers, of other questions."""
    rng = np.random.default_rng(0)
    sure = rng.choice([0.5, 0.6, 0.7, 0.8, 0.9, 0.95], n)
    right, rows = rng.random(n) < sure - 0.1, np.arange(n)
    said = [np.where(rows % 10 == i, np.nan, sure - 0.1 * i) for i in (0, 1)]
    both = [
        cal.evaluate_pairs(right, x, drop_missing=True, name=name, **more)
        for name, x in zip("AB", said, strict=True)
    ]
    return right, said, both


@pytest.mark.parametrize("more", [{}, {"cluster": np.arange(300) // 3}])
def test_models_that_lack_answers_to_other_questions_are_not_paired(more):
    right, said, (a, b) = unlike(**more)
    for pair in ((a, b), (b, a)):
        with pytest.raises(ValueError, match=r"30 and 30 of them\), not the same ones"):
            cal.compare(*pair)
    for models in ((a, b), [cal.Evaluation.from_json(x.to_json()) for x in (a, b)]):
        both = cal.Comparison(tuple(models))
        assert "tested on different examples: no best" in str(both)
        assert "270 examples each (coverage 90 %)" in str(both)
        assert "these 270" not in str(both)
    keep = ~np.isnan(np.array(said, float)).any(0)  # the way out that is named
    own = {name: x[keep] for name, x in more.items()}
    parts = [
        cal.evaluate_pairs(right[keep], x[keep], name=name, **own)
        for name, x in zip("AB", said, strict=True)
    ]
    losses = [(x[keep] - right[keep]) ** 2 for x in said]
    found = cal.compare(*parts).differences["B"]["brier"]
    assert found == pytest.approx(losses[1].mean() - losses[0].mean())
    assert cal.compare(a, b, paired=False).differences["B"]["brier"].interval


def test_models_that_lack_the_same_answers_are_paired():
    right, (said, _), (a, _) = unlike()
    other = cal.evaluate_pairs(right, said**2, drop_missing=True, name="other")
    assert cal.compare(a, other).paired
    assert "different examples" not in str(cal.Comparison((a, other)))
    same_number = cal.evaluate_pairs(right[:270], np.full(270, 0.5), name="270")
    with pytest.raises(ValueError, match="0 and 30 of them"):  # of which is not known
        cal.compare(a, same_number)


@pytest.mark.parametrize("scores", ["confidence", "probs"])
@pytest.mark.parametrize("ids", [False, True])
@pytest.mark.parametrize("at_once", [True, False])
def test_the_page_does_not_pair_answers_to_other_questions(
    tmp_path, monkeypatch, scores, ids, at_once
):
    rng = np.random.default_rng(0)
    sure, right = rng.choice([0.6, 0.8, 0.9], 300), np.arange(300) < 150  # sorted
    outcome = "correct" if scores == "confidence" else "label"
    for i, name in enumerate(("a", "b")):
        said = [f"{x:g}" for x in sure - 0.1 * i]
        said[i::10] = [""] * 30
        rows = zip(range(300), said, right.astype(int), strict=True)
        lines = [f"{f'{row},' * ids}{x},{y}\n" for row, x, y in rows]
        head = f"{'id,' * ids}{'confidence' if scores == 'confidence' else 'probs'},{outcome}\n"
        (tmp_path / f"{name}.csv").write_text(head + "".join(lines))
    how = ("a.csv", "b.csv", "--drop-missing")
    if not at_once:
        monkeypatch.setattr("calibrant.cli._output.IN_MEMORY", 0)
    done = calibrant("report", *how, "-o", "page.html", cwd=tmp_path)
    monkeypatch.undo()
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "page.html").read_text()
    for text in (done.stdout, page):
        assert "tested on different examples: no best is marked" in " ".join(
            text.split()
        )
        assert "these 270" not in text
    assert "b cannot be compared with a, example by example" in page
    paired = calibrant("compare", *how, cwd=tmp_path)
    assert "compared on the 240 examples" in paired.stderr


def test_rows_that_were_left_out_are_counted_in_errors_about_others():
    right, sure, _ = answers(300)
    said = np.where(np.arange(300) % 10 == 0, np.nan, sure)
    broken = np.where(np.arange(300) == 5, np.nan, right)
    with pytest.raises(ValueError, match="row 5 is nan"):
        cal.evaluate_pairs(broken, said, drop_missing=True)
    for what, value in (("group", None), ("cluster", np.nan)):
        names = np.array([x % 7 for x in range(300)], object)
        names[7] = value
        with pytest.raises(ValueError, match="row 7 has none"):
            cal.evaluate_pairs(right, said, drop_missing=True, **{what: names})


def test_nullable_columns_of_pandas_lack_answers_too(part):
    pd = part("pandas")
    right, sure, _ = answers(300)
    lacks = np.arange(300) % 10 == 0
    said = pd.Series(np.where(lacks, np.nan, sure)).convert_dtypes()
    known = pd.Series(right).convert_dtypes().mask(lacks)
    same = cal.evaluate_pairs(right[~lacks], sure[~lacks])
    for y in (right, known):
        found = cal.evaluate_pairs(y, said, drop_missing=True)
        assert found.metrics == same.metrics
        assert found.left_out == 30
    known[5] = pd.NA
    with pytest.raises(ValueError, match="row 5 is nan"):
        cal.evaluate_pairs(known, said, drop_missing=True)


def test_the_audit_bounds_the_accuracy_on_all_examples():
    right, sure, _ = answers()
    silent = np.arange(600) % 4 == 0
    ev = cal.evaluate_pairs(right, np.where(silent, np.nan, sure), drop_missing=True)
    (found,) = [x for x in ev.audit() if x.code == "left-out"]
    worst, best = (np.where(silent, x, right).mean() for x in (False, True))
    assert found.severity == "warning"
    assert (found.evidence["low"], found.evidence["high"]) == pytest.approx(
        (worst, best)
    )
    assert not [
        x for x in cal.evaluate_pairs(right, sure).audit() if x.code == "left-out"
    ]


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([0.5, 0.6, 0.7, 0.9, 1.0], 0.1),
        ([0.5, 0.65, 0.7, 0.95, 1.0], 0.05),
        ([0.5, 0.62, 0.7, 0.93, 1.0], None),
        ([0.5, 1.0], None),
    ],
)
def test_rounding_is_seen(values, step):
    rng = np.random.default_rng(0)
    sure = rng.choice(values, 500)
    found = cal.evaluate_pairs(rng.random(500) < sure, sure).audit()
    steps = [x.evidence["step"] for x in found if x.code == "rounded-confidences"]
    assert steps == ([] if step is None else [step])


# -- tasks -------------------------------------------------------------------------------


def test_a_macro_average_without_an_interval_says_why():
    inside, below = Estimate(0.01, (0.0, 0.02), "x"), Estimate(-0.01, (0.0, 0.02), "x")
    for values, why in (
        ({"a": inside, "b": below}, "in group 'b' it lies outside its own"),
        ({"a": inside, "b": Estimate(0.01)}, "group 'b' has none"),
    ):
        found = _mean(values, intervals=True)
        assert (found.interval, found.method) == (None, f"no interval: {why}")
        assert with_reason(found).endswith(f"({found.method})")
    assert "clusters" in str(_mean({"a": inside}, intervals=False).method)
    assert (
        with_reason(_mean({"a": inside}, intervals=True)) == "0.0100 [0.0000, 0.0200]"
    )


def test_a_macro_average_is_the_mean_over_groups():
    right, sure, rng = answers()
    group = rng.choice(["a", "b", "c"], 600, p=[0.7, 0.2, 0.1])
    ev = cal.evaluate_pairs(right, sure, group=group)
    found = cal.macro_average(ev)
    for key in ("accuracy", "brier", "ece"):
        own = [float(part.metrics[key]) for part in ev.per_group.values()]
        assert found[key] == pytest.approx(np.mean(own), rel=1e-12)
    alone = [cal.evaluate_pairs(right[group == g], sure[group == g]) for g in "abc"]
    assert found["calibration"] == pytest.approx(
        np.mean([x.decomposition.calibration for x in alone]), rel=1e-9
    )
    with pytest.raises(ValueError, match="pass group="):
        cal.macro_average(cal.evaluate_pairs(right, sure))


def test_its_interval_is_that_of_a_mean_of_independent_means():
    """Brier has a normal interval, so the closed form is known."""
    right, sure, rng = answers(2000)
    group = rng.choice(["a", "b"], 2000, p=[0.8, 0.2])
    ev = cal.evaluate_pairs(right, sure, group=group)
    low, high = cal.macro_average(ev)["brier"].interval
    half = [
        np.subtract(*part.metrics["brier"].interval[::-1]) / 2
        for part in ev.per_group.values()
    ]
    assert (high - low) / 2 == pytest.approx(np.hypot(*half) / 2, rel=1e-3)


def test_clusters_that_reach_over_groups_leave_no_interval():
    right, sure, _ = answers()
    question, group = np.arange(600) // 2, np.arange(600) % 2
    ev = cal.evaluate_pairs(right, sure, cluster=question, group=group)
    assert cal.macro_average(ev)["accuracy"].interval is None
    ev = cal.evaluate_pairs(right, sure, cluster=question, group=question % 3)
    assert cal.macro_average(ev)["accuracy"].interval is not None


def test_groups_are_shown_as_models():
    right, sure, rng = answers()
    ev = cal.evaluate_pairs(right, sure, group=rng.choice(["x", "y"], 600))
    found = cal.by_group(ev)
    assert found.names == ("x", "y")
    assert found["x"].metrics == ev.per_group["x"].metrics


# -- confidences that are derived --------------------------------------------------------

SAMPLES = st.lists(
    st.tuples(st.sampled_from("pqr"), st.sampled_from(["1", "2", None])), min_size=1
)


@settings(max_examples=50)
@given(SAMPLES)
def test_self_consistency_is_the_share_that_agrees(samples):
    question, answer = zip(*samples, strict=True)
    found = cal.self_consistency(answer, question)
    for i, (asked, said) in enumerate(samples):
        same = [b == said for a, b in samples if a == asked]
        if said is None:
            assert np.isnan(found[i])
        else:
            assert found[i] == pytest.approx(sum(same) / len(same))


def test_p_true_is_normalised_over_both_words():
    p, q = np.array([0.6, 0.01, 1e-30]), np.array([0.2, 0.03, 1e-30])
    assert cal.p_true(np.log(p), np.log(q)) == pytest.approx(p / (p + q))
    assert cal.p_true([-np.inf, 0.0], [-1.0, -np.inf]).tolist() == [0.0, 1.0]
    with pytest.raises(ValueError, match="row 0 has"):
        cal.p_true([-np.inf], [-np.inf])
    with pytest.raises(ValueError, match="take their logarithm"):
        cal.p_true([0.6], [0.2])
    with pytest.raises(ValueError, match="must be alike"):
        cal.p_true([-1.0], [-1.0, -2.0])


def test_the_probability_of_a_sequence_is_a_product():
    tokens = [[0.5, 0.9, 0.1], [0.25], [1.0] * 2000]
    logs = [np.log(x) for x in tokens]
    assert cal.sequence_probability(logs) == pytest.approx([np.prod(x) for x in tokens])
    roots = [np.prod(x) ** (1 / len(x)) for x in tokens]
    assert cal.sequence_probability(logs, per_token=True) == pytest.approx(roots)
    assert np.isnan(cal.sequence_probability([[]])).all()
    with pytest.raises(ValueError, match=r"number 1 is 0\.5"):
        cal.sequence_probability([[-1.0, 0.5]])


# -- recalibration of stated confidences -------------------------------------------------

METHODS = ("temperature", "platt", "beta", "isotonic", "histogram")


def test_stated_confidences_are_recalibrated_as_the_event_that_they_are_right():
    right, sure, _ = answers(1500)
    question = np.arange(1500) // 5
    more = {"cluster": question, "folds": 4, "methods": METHODS}
    pairs = cal.study(right, confidence=sure, **more)
    event = cal.study(right.astype(int), probs=sure, **more)
    assert {ev.target for ev in pairs} == {"pairs"}
    *methods, constant = zip(pairs, event, strict=True)
    for one, other in methods:
        assert one.metrics["brier"] == pytest.approx(other.metrics["brier"], abs=1e-9)
    rate = np.mean(
        right
    )  # all answers have it, also those below 1/2, which an event turns
    assert constant[0].metrics["brier"] == pytest.approx(rate * (1 - rate), rel=0.01)
    best = pairs.best("brier")
    assert best.metrics["brier"] < pairs[0].metrics["brier"]
    for name, effect in pairs.effects.items():
        assert (effect.changed, effect.accuracy_change) == (0, 0), name


def test_a_method_learns_nothing_from_the_question_it_is_tested_on():
    """Shuffled labels, the same for all samples of a question: nothing can be gained."""
    rng = np.random.default_rng(0)
    question = np.arange(1200) // 12
    right = rng.random(100)[question] < 0.5
    sure = rng.random(100)[question]  # tells the question, not the answer
    found = cal.study(
        right, confidence=sure, cluster=question, folds=10, methods="isotonic"
    )
    leaky = cal.study(right, confidence=sure, folds=10, methods="isotonic")
    assert found["Isotonic"].metrics["brier"] > 0.25
    assert leaky["Isotonic"].metrics["brier"] < found["Isotonic"].metrics["brier"]


@pytest.mark.parametrize(
    ("given_", "said"),
    [
        ({"confidence": [0.5] * 20, "probs": [0.5] * 20}, "exactly one of"),
        ({"confidence": [[0.5, 0.5]] * 20}, "confidence must be 1-D"),
        ({"confidence": [0.5] * 20, "target": "positive"}, "target does not apply"),
        ({"confidence": [0.5] * 20, "classes": ["a", "b"]}, "classes does not apply"),
    ],
)
def test_what_does_not_go_with_confidences_is_refused(given_, said):
    with pytest.raises((TypeError, ValueError), match=said):
        cal.study([0, 1] * 10, **given_)


def test_correct_must_be_yes_or_no():
    with pytest.raises(ValueError, match=r"correct must be in \[0, 1\]"):
        cal.study([0, 2] * 10, confidence=[0.5] * 20)
    with pytest.raises(ValueError, match="whether each answer is correct"):
        cal.study([0.5, 1] * 10, confidence=[0.5] * 20)


def test_two_sets_of_pairs():
    right, sure, _ = answers()
    found = cal.study(
        right[:300], right[300:], confidence=(sure[:300], sure[300:]), methods="platt"
    )
    assert found["Platt"].rows == 300


# -- the command -------------------------------------------------------------------------


def test_the_command_says_coverage_and_averages(tmp_path):
    right, sure, rng = answers()
    silent = rng.random(600) < 0.1
    rows = [
        {"confidence": None if no else f"{100 * c:.0f}%", "correct": bool(a), "task": t}
        for no, c, a, t in zip(
            silent, sure, right, rng.choice(["a", "b"], 600), strict=True
        )
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    options = ("--percent", "--drop-missing", "--group", "task")
    done = calibrant("report", path, *options, "--json")
    found = json.loads(done.stdout)
    (ev,) = found["evaluations"]
    assert ev["left_out"] == silent.sum()
    assert sum(x["left_out"] for x in ev["per_group"].values()) == silent.sum()
    macro = found["macro_averages"]["a"]["accuracy"]
    own = [x["metrics"]["accuracy"]["value"] for x in ev["per_group"].values()]
    assert macro["value"] == pytest.approx(np.mean(own))
    text = calibrant("report", path, *options).stdout
    assert "macro average over 2 groups" in text
    page = tmp_path / "page.html"
    calibrant("report", path, *options, "-o", page)
    assert (
        "each of its 2 groups counted once (macro average): accuracy"
        in page.read_text()
    )
    assert text.count("coverage") >= 4
    studied = calibrant(
        "study", path, *options[:2], "--folds", "3", "--methods", "platt"
    )
    assert "coverage" in studied.stdout


def test_a_wide_claim_of_the_guide_is_true():
    """Always wrong and sure of it: the score of the pair is perfect, the full one is not."""
    y, p = np.zeros(100, int), np.tile([0.0, 1.0, 0.0], (100, 1))
    pair = cal.evaluate_pairs(p.argmax(axis=1) == y, np.zeros(100))
    assert pair.metrics["brier"] == 0
    full = cal.evaluate(y, probs=p)
    assert full.metrics["brier"] == 2


def test_every_kind_of_row_at_once():
    """Weights, counts, clusters, groups and abstentions together."""
    right, sure, rng = answers(200)
    sure = np.where(np.arange(200) % 9 == 0, np.nan, sure)
    rows = {"cluster": np.arange(200) // 4, "group": np.arange(200) % 2}
    for weight, count in product(
        (None, rng.random(200) + 0.1), (None, rng.integers(1, 3, 200))
    ):
        ev = cal.evaluate_pairs(
            right,
            sure,
            sample_weight=weight,
            frequency=count,
            **rows,
            drop_missing=True,
        )
        lost = 23 if count is None else count[np.isnan(sure)].sum()
        assert ev.left_out == lost


def test_round_off_beyond_the_edge_of_a_bin_leaves_intervals_whole():
    """0.6 is an edge of 15 bins; 0.6 + 1e-16 is the same confidence in the next one."""
    right, _, rng = answers(400)
    said = rng.choice([0.5, 0.6, np.nextafter(0.6, 1), 0.75, 0.9], 400)
    ev = cal.evaluate_pairs(right, said, cluster=np.arange(400) // 4)
    for key in ("ece", "ace", "mce", "smooth_ece"):
        assert np.isfinite(ev.metrics[key].interval).all(), key


@pytest.mark.simulation
def test_intervals_of_repeated_questions_hold(simulation):
    """A small piece of simulations/questions.md; chance alone keeps 24 data sets above."""
    found = simulation("questions").coverage(24, seed=10_000)
    for name, held in found.items():
        if "independent" not in name:
            assert np.mean(held) >= 0.75, name


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: cal.self_consistency(["a"], -1), "question must be a sequence"),
        (lambda: cal.self_consistency([["a"]], [1]), "answer must be a sequence"),
        (lambda: cal.sequence_probability(10**30), "logprobs must be a sequence"),
        (
            lambda: cal.sequence_probability(np.array(0.5)),
            "logprobs must be a sequence",
        ),
        (lambda: cal.sequence_probability(np.zeros((2, 2, 2))), "one number a token"),
        (lambda: cal.p_true("a\0b", [-0.5]), "true must hold real numbers"),
        (lambda: cal.p_true([-1 + 1j], [-0.5]), "true must hold real numbers"),
    ],
)
def test_what_is_no_list_of_answers_or_tokens_is_named(call, said):
    with pytest.raises((TypeError, ValueError), match=said):
        call()


# -- coverage of a comparison ------------------------------------------------------------


def two_files(folder):
    """1,000 answers of two models: 500 and 300 are silent, 200 answered by both."""
    first = [
        {
            "id": i,
            "confidence": None if i % 2 else 80,
            "correct": i % 5 != 0,
            "half": i % 2,
        }
        for i in range(1000)
    ]
    second = [
        {**row, "confidence": 80 if i % 2 else None} for i, row in enumerate(first)
    ]
    for row in second[:400]:
        row["confidence"] = 70
    for name, rows in (("u", first), ("w", second)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder / "u.jsonl", folder / "w.jsonl"


def test_coverage_of_a_comparison_is_what_is_compared_of_all(tmp_path):
    files = two_files(tmp_path)
    options = ("--percent", "--drop-missing")
    found = json.loads(calibrant("compare", *files, *options, "--json").stdout)
    counts = [
        [x[k] for k in ("n", "left_out", "unpaired")] for x in found["evaluations"]
    ]
    assert counts == [[200, 800, 300], [200, 800, 500]]
    told = [x for x in found["findings"] if x["code"] == "left-out"]
    assert [x["evidence"]["coverage"] for x in told] == [0.2, 0.2]
    assert not any("low" in x["evidence"] for x in told)
    text = " ".join(calibrant("compare", *files, *options).stdout.split())
    for own, name, other in ((500, "u", 300), (300, "w", 500)):
        assert (
            f"800 of 1,000 examples of {name} are not compared: {own} have no confidence, "
            f"and for {other} another model has none. Coverage is 20.0 %."
        ) in text
    assert text.startswith("2 models, 200 examples (coverage 20 %: 800 left out)")
    assert {*re.findall(r"coverage (\S+) %", text)} == {"20"}


def test_a_model_that_answers_all_is_compared_where_the_other_answers(tmp_path):
    first, second = two_files(tmp_path)
    rows = [json.loads(line) for line in first.read_text().splitlines()]
    second.write_text("\n".join(json.dumps({**x, "confidence": 60}) for x in rows))
    options = ("--percent", "--drop-missing", "--json")
    found = json.loads(calibrant("compare", first, second, *options).stdout)
    u, w = (x for x in found["findings"] if x["code"] == "left-out")
    assert (
        "500 of 1,000 examples of u have no confidence: coverage is 50.0 %" in u["text"]
    )
    assert (
        "500 of 1,000 examples of w are not compared: for them another model has no "
        "confidence. Coverage is 50.0 %." in w["text"]
    )
    assert (u["evidence"]["low"], u["evidence"]["high"]) == pytest.approx((0.4, 0.9))


def test_groups_of_a_comparison_count_what_they_leave_out(tmp_path):
    """Of each half of 500: u answers all even ones, w 200 even ones and all odd ones."""
    options = ("--percent", "--drop-missing", "--group", "half", "--json")
    found = json.loads(calibrant("compare", *two_files(tmp_path), *options).stdout)
    counts = [
        {g: (x["n"], x["left_out"], x["unpaired"]) for g, x in ev["per_group"].items()}
        for ev in found["evaluations"]
    ]
    assert counts == [{"0": (200, 300, 300)}, {"0": (200, 300, 0)}]


def test_headings_of_groups_tell_the_sizes_of_all_models(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        {"id": i, "task": "ab"[i % 2], "confidence": c, "correct": rng.random() < c}
        for i, c in enumerate(rng.uniform(0.3, 0.9, 400).tolist())
    ]
    for name, some in {"u": rows, "w": rows[:-60]}.items():
        lines = "\n".join(map(json.dumps, some))
        (tmp_path / f"{name}.jsonl").write_text(lines)
    both = ("u.jsonl", "w.jsonl", "--group", "task")
    told = calibrant("report", *both, cwd=tmp_path).stdout
    assert "2 models, 340 to 400 examples\n" in told
    assert "group a: 170 to 200 examples\n" in told
    paired = calibrant("compare", *both, "--drop-missing", cwd=tmp_path).stdout
    assert "2 models, 340 examples (coverage 85 to 100 %)\n" in paired
    assert "group b: 170 examples (coverage 85 to 100 %)\n" in paired


def test_models_of_unequal_coverage_share_no_coverage_in_a_sentence():
    right, sure, _ = answers()
    more = {"correct": [*right, 1], "confidence": [*sure, None]}
    some = cal.evaluate_pairs(**more, drop_missing=True, name="some")
    more["confidence"] = [*sure**2, None]
    every = cal.evaluate_pairs(**more, drop_missing=True, name="every")
    every = replace(every, left_out=0.0)  # as the command has it, which pairs by ids
    for pair in ((some, every), (every, some)):
        assert not any("coverage" in x for x in cal.compare(*pair).sentences)


@pytest.mark.parametrize("drop", [(), ("--drop-missing",)])
@pytest.mark.parametrize(
    ("good", "bad", "more"),
    [("90%", "9O%", ("--percent",)), (90, True, ("--percent",)), (0.9, True, ())],
)
def test_a_damaged_confidence_is_no_abstention(good, bad, more, drop, tmp_path):
    """It was left out as missing, or taken for 1, and a gate passed."""
    values = [good] * 30
    values[7] = bad
    rows = [{"confidence": x, "correct": i % 3 > 0} for i, x in enumerate(values)]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    done = calibrant("report", tmp_path / "a.jsonl", *more, *drop)
    assert done.returncode == 1, done.stdout
    assert "'confidence' is" in done.stderr
    assert "row 7" in done.stderr or "line 8" in done.stderr


@pytest.mark.parametrize("absent", [None, "", "NaN", " "])
def test_an_absent_confidence_is_left_out(absent, tmp_path):
    values = ["90%"] * 30
    values[7] = absent
    rows = [{"confidence": x, "correct": i % 3 > 0} for i, x in enumerate(values)]
    del rows[9]["confidence"]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, rows)))
    done = calibrant(
        "report", tmp_path / "a.jsonl", "--percent", "--drop-missing", "--json"
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["evaluations"][0]["rows"] == 28


def test_every_answer_has_a_question():
    with pytest.raises(
        ValueError,
        match="question must have one entry per answer: 2 questions for 3 answers",
    ):
        cal.self_consistency(["a", "b", "c"], ["q", "q"])

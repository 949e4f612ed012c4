"""Monitoring: trends that are those of the periods, and an alarm that keeps its word."""

import json
from itertools import pairwise
from math import exp, log

import numpy as np
import pytest
from command import calibrant as run

import calibrant as cal
from calibrant._rows.columns import Columns
from calibrant._verbs.alarm import (
    SCALES,
    Line,
    bets,
    gains,
    gains_of_steps,
    log_evidence,
    onset,
    rows_within,
)
from calibrant._verbs.monitor import names_of_periods


@pytest.fixture
def rows():
    """Four months of which the last is off."""
    rng = np.random.default_rng(5)
    month = np.repeat(["2024-01", "2024-02", "2024-03", "2024-04"], 400)
    p = rng.beta(1, 2, len(month))
    q = np.where(month == "2024-04", np.minimum(p * 1.7, 1), p)
    return {"y": (rng.random(len(p)) < q).astype(int), "p": p, "month": month}


def follow(rows, **more):
    return cal.monitor(rows["y"], probs=rows["p"], period=rows["month"], **more)


# -- the trend ----------------------------------------------------------------------


def test_a_period_has_the_numbers_of_its_rows(rows):
    found = follow(rows)
    for place, month in enumerate(found.periods):
        own = rows["month"] == month
        ev = cal.evaluate(rows["y"][own], probs=rows["p"][own])
        assert found.n[place] == own.sum()
        for key in ("brier", "nll", "accuracy", "ece"):
            assert found.trend[key][place] == pytest.approx(ev.metrics[key], abs=1e-12)
        whole = ev.decomposition.calibration
        assert found.trend["calibration"][place] == pytest.approx(whole, abs=1e-12)
        assert found.trend["calibration"][place].interval == pytest.approx(
            whole.interval
        )


def test_changes_are_unpaired_differences_from_the_reference(rows):
    found = follow(rows, reference=["2024-01", "2024-02"])
    base = np.isin(rows["month"], ("2024-01", "2024-02"))
    last = rows["month"] == "2024-04"
    models = [
        cal.evaluate(rows["y"][some], probs=rows["p"][some], name=name)
        for some, name in ((base, "then"), (last, "now"))
    ]
    told = cal.compare(*models, paired=False).differences["now"]["brier"]
    assert found.changes["brier"][3] == pytest.approx(told, abs=1e-12)
    assert found.changes["brier"][3].interval == pytest.approx(told.interval, abs=1e-9)
    assert np.isnan(found.changes["brier"][0])


def test_rows_a_sketch_and_sketches_by_period_say_the_same(rows):
    whole, sketch, apart = follow(rows), cal.Sketch(), {}
    for month in np.unique(rows["month"])[::-1]:  # the order of arrival does not matter
        own = rows["month"] == month
        given = rows["y"][own], rows["p"][own]
        sketch.update(given[0], probs=given[1], group=rows["month"][own])
        apart[month] = cal.Sketch().update(given[0], probs=given[1])
    for other in (cal.monitor(sketch), cal.monitor(apart)):
        assert other.periods == whole.periods
        assert other.evidence == pytest.approx(whole.evidence)
        assert other.trend["brier"] == pytest.approx(whole.trend["brier"])


def test_a_monitor_goes_to_json_and_back(rows):
    found = follow(rows)
    again = cal.Monitor.from_json(found.to_json())
    assert str(again) == str(found)
    assert again.alarm.period == found.alarm.period == "2024-04"
    plain = found.to_dict()
    plain["periods"] = plain["periods"][1:]
    with pytest.raises(ValueError, match="has 3 periods and 4 entries of n"):
        cal.Monitor.from_dict(plain)
    with pytest.raises(ValueError, match="has no period of reference"):
        cal.Monitor.from_dict(found.to_dict() | {"reference": []})


def test_the_frame_has_a_row_for_each_period_and_metric(rows):
    found = follow(rows)
    frame = found.frame("pandas")
    assert len(frame) == 4 * len(found.trend)
    one = frame[(frame.period == "2024-04") & (frame.metric == "brier")].iloc[0]
    assert (one.low, one.high) == found.trend["brier"][3].interval
    assert one.log_evidence == found.evidence[3]


# -- the alarm ----------------------------------------------------------------------


def test_evidence_is_money_that_was_bet_row_by_row(rows):
    p, y = rows["p"][:9], rows["y"][:9].astype(float)
    bet = bets(p)
    paid = [
        sum(
            log(exp(x * a) / (1 - h + h * exp(x)))
            for x, a, h in zip(own, y, p, strict=True)
        )
        for own in bet
    ]
    assert gains(rows_within(Columns(p, None, y))) == pytest.approx(paid)


def test_a_bet_expects_what_it_costs_whatever_the_confidence():
    for h in (0.0, 1e-6, 0.3, 0.5, 0.97, 1.0):
        won, lost = (
            np.exp(gains(rows_within(Columns(np.array([h]), None, np.array([a])))))
            for a in (1.0, 0.0)
        )
        assert h * won + (1 - h) * lost == pytest.approx(1)


def test_within_the_tolerance_no_bet_expects_to_win():
    columns = [Columns(np.array([0.3]), None, np.array([a])) for a in (1.0, 0.0)]
    won, lost = (np.exp(gains(rows_within(x, 0.05))) for x in columns)
    for q in (0.25, 0.3, 0.35):
        assert (q * won + (1 - q) * lost <= 1 + 1e-12).all()
    assert (0.5 * won + 0.5 * lost).max() > 1


def test_sums_of_close_rows_give_at_most_what_the_rows_do():
    h, hit = np.array([0.41, 0.43]), np.array([1.0, 0.0])
    each = gains(rows_within(Columns(h, None, hit)))
    both = Columns(np.array([0.42]), None, np.array([0.5]), weight=np.array([2.0]))
    flat = np.ptp(bets(h), axis=1) == 0  # bets that do not change within the cell
    assert flat.any()
    assert (gains(rows_within(both))[flat] <= each[flat]).all()


def test_all_money_is_that_of_every_bet_and_every_start():
    gain = np.random.default_rng(0).normal(size=(4, 3))
    for end in range(1, 5):
        money = sum(
            np.exp(gain[s - 1 : end].sum(axis=0)).mean() / (s * (s + 1))
            for s in range(1, end + 1)
        )
        money += 1 / (end + 1)  # of starts that are still to come
        assert log_evidence(gain)[end - 1] == pytest.approx(log(money))


def test_the_onset_is_found():
    gain = np.full((10, 3), -0.5)
    gain[6:, 1] = 2.0
    assert onset(gain) == 6


def test_a_line_through_the_reference_is_that_of_maximum_likelihood(part):
    part("sklearn")
    from sklearn.linear_model import LogisticRegression

    rng = np.random.default_rng(1)
    h = rng.uniform(0.02, 0.98, 4000)
    z = np.log(h / (1 - h))
    hit = (rng.random(4000) < 1 / (1 + np.exp(-(0.4 + 0.7 * z)))).astype(float)
    found = Line.fit(Columns(h, None, hit)).theta
    peer = LogisticRegression(C=1e9, tol=1e-10).fit(z[:, None], hit)
    assert found == pytest.approx([peer.intercept_[0], peer.coef_[0, 0]], abs=2e-3)


def test_against_the_reference_a_model_that_was_never_calibrated_may_stay_so():
    rng = np.random.default_rng(2)
    p = rng.uniform(0.05, 0.95, 6000)
    y = rng.random(6000) < p**1.5
    day = np.repeat(np.arange(12), 500)
    given = {"probs": p, "period": day, "reference": ["0", "1", "2"]}
    assert cal.monitor(y, **given).alarm.period is not None
    assert cal.monitor(y, **given, against="reference").alarm.period is None
    worse = np.where(day >= 8, rng.random(6000) < p**3, y)
    found = cal.monitor(worse, **given, against="reference").alarm
    assert found.since == "8"
    at_once = np.where(day >= 3, rng.random(6000) < p**3, y)
    found = cal.monitor(at_once, **given, against="reference").alarm
    assert found.since == "3"  # what is compared with cannot be off itself


def test_frequencies_count_and_soft_labels_and_certain_forecasts_are_taken():
    y, p, day = [1, 0, 1, 0], [0.9, 0.2, 1.0, 0.0], ["a", "a", "b", "b"]
    often = cal.monitor(y, probs=p, period=day, frequency=[5, 4, 3, 2])
    spelt = cal.monitor(
        *(np.repeat(y, [5, 4, 3, 2]),),
        probs=np.repeat(p, [5, 4, 3, 2]),
        period=np.repeat(day, [5, 4, 3, 2]),
    )
    assert often.evidence == pytest.approx(spelt.evidence)
    soft = cal.monitor([0.5] * 40, confidence=[0.5] * 40, period=[1, 2] * 20)
    assert soft.evidence.max() < 1e-9  # a mean that is as it should be wins nothing
    contradicted = cal.monitor([1] * 60, probs=[0.0] * 60, period=[1, 2] * 30)
    assert contradicted.alarm.period == "1"


def test_no_alarm_is_no_proof_and_a_number_is_called_a_period():
    calm = cal.monitor([0, 1] * 20, confidence=[0.5] * 40, period=[1, 2] * 20)
    told = "too little evidence that the model is not calibrated (this does not prove"
    assert calm.sentences[0].startswith(f"No alarm: {told} that it is; p = ")
    off = cal.monitor([1] * 60, probs=[0.0] * 60, period=[1, 2] * 30)
    assert off.sentences[0].startswith("ALARM in period 1: the model is not calibrated")
    assert "most likely since period 1 (" in off.sentences[0]


def test_clusters_that_return_have_a_trend_but_no_alarm(rows):
    found = follow(rows, cluster=np.arange(len(rows["y"])) % 50)
    assert found.alarm is None
    assert found.trend["brier"][0].interval is not None
    told = "cluster '0' has examples in 2024-01 and 2024-02 (as 50 clusters have)"
    assert found.sentences[0].startswith(f"No alarm was computed: {told}")
    assert cal.Monitor.from_json(found.to_json()).no_alarm == found.no_alarm


def test_periods_of_few_clusters_have_values_without_intervals_and_an_alarm(rows):
    n = len(rows["y"])
    few = np.repeat(np.arange(4 * 4), n // 16)  # four in each month
    found = follow(rows, cluster=few)
    assert found.few_clusters == found.periods
    assert found.alarm is not None
    plain = follow(rows)
    for key in ("brier", "ece", "accuracy"):
        assert [*found.trend[key]] == pytest.approx([*plain.trend[key]])
        assert all(x.interval is None for x in found.trend[key])
        assert all(x.interval is None for x in found.changes[key])
    assert "4 periods have fewer than 10 clusters (first 2024-01)" in str(found)
    some = np.where(rows["month"] == "2024-02", 10**6 + few, np.arange(n))
    mixed = follow(rows, cluster=some)
    assert mixed.few_clusters == ("2024-02",)
    has = [x.interval is not None for x in mixed.trend["brier"]]
    assert has == [True, False, True, True]
    assert mixed.changes["brier"][1].interval is None
    assert mixed.changes["brier"][3].interval is not None
    assert str(cal.Monitor.from_json(mixed.to_json())) == str(mixed)


def test_names_of_periods_run_by_the_numbers_in_them():
    period = [f"month {x}" for x in range(1, 13)] * 10
    found = cal.monitor([0, 1] * 60, confidence=[0.5] * 120, period=period)
    assert found.periods == tuple(f"month {x}" for x in range(1, 13))


def test_periods_of_few_examples_say_why_errors_have_no_interval():
    few = cal.monitor([0, 1] * 30, confidence=[0.5, 0.6] * 30, period=[*range(6)] * 10)
    said = "d_CAL below 20 and ECE below 50 examples: so few do not tell."
    assert few.sentences[-1].endswith(said)
    many = cal.monitor([0, 1] * 60, confidence=[0.5, 0.6] * 60, period=[1, 2] * 60)
    assert "so few" not in str(many)


@pytest.mark.parametrize("beside", ["sample_weight", "cluster"])
def test_weights_and_clusters_have_no_alarm_against_a_reference(rows, beside):
    given = {beside: np.arange(len(rows["y"])) // 2 + 1, "against": "reference"}
    found = follow(rows, **given)
    assert found.alarm is None
    assert "it is of calibration alone, not against the reference" in found.sentences[0]


def test_a_step_expects_one_however_its_rows_depend_on_each_other():
    h, w = np.array([0.2, 0.55, 0.9]), np.array([1.0, 3.0, 0.5])
    outcomes = np.array(np.meshgrid(*[[0.0, 1.0]] * 3)).reshape(3, -1).T
    pays = np.array(
        [
            np.exp(
                gains_of_steps(rows_within(Columns(h, None, y, w)), np.zeros(3, int))
            )
            for y in outcomes
        ]
    )
    assert pays.min() > 0.099  # a tenth of the money is kept
    apart = np.prod(np.where(outcomes == 1, h, 1 - h), axis=1)
    np.testing.assert_allclose(apart @ pays, 1, atol=1e-12)
    # The same share of a common cause decides all of them.
    u = np.array([0.0, 0.2, 0.55, 0.9, 1.0])
    together = np.zeros(8)
    for low, high in pairwise(u):
        y = (h >= high).astype(float)  # u in between: certain where h is above
        together[np.flatnonzero((outcomes == y).all(axis=1))] += high - low
    np.testing.assert_allclose(together @ pays, 1, atol=1e-12)


def test_of_a_step_of_one_row_the_first_scale_is_the_bet_of_the_row():
    rows = rows_within(Columns(np.array([0.3]), None, np.array([1.0])))
    steps = gains_of_steps(rows, np.zeros(1, int)).reshape(-1, len(SCALES))
    np.testing.assert_allclose(steps[:, 0], gains(rows), atol=1e-12)


def drawn(seed, off=0.0, clusters=100, periods=4):
    """Periods of clusters of five rows that come out alike."""
    rng = np.random.default_rng(seed)
    n = periods * clusters
    p = np.repeat(rng.uniform(0.1, 0.9, n), 5)
    y = p + off > np.repeat(rng.random(n), 5)
    return {
        "y": y.astype(int),
        "probs": p,
        "period": np.repeat(np.arange(periods), 5 * clusters),
        "cluster": np.repeat(np.arange(n), 5),
    }


def test_an_alarm_of_clusters_finds_what_is_off_and_does_not_count_rows_twice():
    wrong = cal.monitor(**drawn(0, off=0.25))
    assert wrong.alarm.period is not None
    right = drawn(1)
    assert cal.monitor(**right).alarm.period is None
    del right["cluster"]  # five rows count as five, and chance as evidence
    assert cal.monitor(**right).alarm.period is not None


def test_a_sketch_of_few_clusters_tells_that_they_lie_within_periods():
    given = drawn(0, off=0.25)
    sketch = cal.Sketch()
    scores = {"probs": given["probs"], "cluster": given["cluster"]}
    sketch.update(given["y"], **scores, group=given["period"])
    want = cal.monitor(**given).alarm.evidence
    np.testing.assert_allclose(cal.monitor(sketch).alarm.evidence, want)
    many = drawn(0, clusters=200, periods=2)
    sketch = cal.Sketch()
    scores = {"probs": many["probs"], "cluster": many["cluster"]}
    sketch.update(many["y"], **scores, group=many["period"])
    assert cal.monitor(sketch).alarm is None
    assert cal.monitor(**many).alarm is not None


def test_an_alarm_with_weights_has_no_unit(rows):
    weight = np.random.default_rng(0).exponential(size=len(rows["y"])) + 0.1
    one, five = (follow(rows, sample_weight=u * weight) for u in (1, 5))
    np.testing.assert_allclose(one.alarm.evidence, five.alarm.evidence, atol=1e-9)
    assert one.alarm.period == "2024-04"


@pytest.mark.simulation
def test_false_alarms_of_clusters_are_rare_however_often_one_looks():
    rng, alarms = np.random.default_rng(4), 0
    for _ in range(300):
        h = np.repeat(rng.beta(1, 2, (20, 12)), 4, axis=1)
        hit = (np.repeat(rng.random((20, 12)), 4, axis=1) < h).astype(float)
        step = np.repeat(np.arange(12), 4)
        gain = [
            gains_of_steps(rows_within(Columns(p, None, a)), step)
            for p, a in zip(h, hit, strict=True)
        ]
        alarms += log_evidence(np.array(gain)).max() >= log(10)
    assert alarms <= 30 + 3 * 27**0.5  # 10 %, and three standard deviations


@pytest.mark.simulation
def test_false_alarms_are_rare_however_often_one_looks():
    rng, alarms = np.random.default_rng(3), 0
    for _ in range(300):
        h = rng.beta(1, 2, (40, 25))
        hit = (rng.random(h.shape) < h).astype(float)
        gain = [
            gains(rows_within(Columns(*x)))
            for x in zip(h, [None] * 40, hit, strict=True)
        ]
        alarms += log_evidence(np.array(gain)).max() >= log(20)
    assert alarms <= 26  # 15 expected at most; 27 has a probability of 0.3 %


# -- periods ------------------------------------------------------------------------


def test_dates_are_put_together():
    dates = np.array(["2024-12-30", "2025-01-05", "2025-03-31"], "datetime64[s]")
    assert (
        names_of_periods(dates).tolist()
        == dates.astype("datetime64[D]").astype(str).tolist()
    )
    weeks = ["2025-W01", "2025-W01", "2025-W14"]
    assert names_of_periods(dates, "week").tolist() == weeks
    assert names_of_periods(dates, "quarter").tolist() == [
        "2024-Q4",
        "2025-Q1",
        "2025-Q1",
    ]
    assert names_of_periods(["2024-12-30T08:15"], "month").tolist() == ["2024-12"]
    assert names_of_periods(dates, "year").tolist() == ["2024", "2025", "2025"]


def test_numbers_are_in_order_of_size():
    day = [2, 10, 1] * 30
    assert cal.monitor([1, 0, 1] * 30, probs=[0.6] * 90, period=day).periods == (
        "1",
        "2",
        "10",
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"period": None}, "needs the period of each row"),
        ({"period": ["a", None]}, "row 1 is None"),
        (
            {"period": ["1 May", "2 May"], "every": "week"},
            "row 0 is 1 May. Write dates so, or leave out every=",
        ),
        ({"period": ["a", "b"], "every": "hour"}, "every must be"),
        ({"period": ["a", "b"], "reference": "c"}, "reference must be"),
        ({"period": ["a", "b"], "reference": ["a", "b"]}, "leave others to compare"),
        ({"period": ["a", "b"], "alpha": 2}, "alpha must be"),
        ({"period": ["a", "b"], "tolerance": -1}, "tolerance must be"),
        ({"period": ["a", "b"], "against": "chance"}, "against must be"),
    ],
)
def test_what_cannot_be_followed_is_refused(given, said):
    with pytest.raises(ValueError, match=said):
        cal.monitor([0, 1], probs=[0.4, 0.6], **given)


def test_too_many_periods_are_refused_with_a_way_out():
    with pytest.raises(ValueError, match=r"201 distinct values.*every='week'"):
        cal.monitor([1] * 201, probs=[0.5] * 201, period=range(201))


def test_every_class_at_once_is_refused():
    p = np.full((6, 3), 1 / 3)
    with pytest.raises(ValueError, match="one probability per row"):
        cal.monitor([0, 1, 2] * 2, probs=p, period=[1, 2] * 3, target="class-wise")


# -- the command --------------------------------------------------------------------


@pytest.fixture
def files(rows, tmp_path):
    for month in np.unique(rows["month"]):
        own = rows["month"] == month
        table = np.column_stack([rows["y"][own], rows["p"][own]])
        days = [f"{month}-{1 + i % 28:02d}" for i in range(own.sum())]
        lines = [f"{int(a)},{h:.9f},{d}" for (a, h), d in zip(table, days, strict=True)]
        text = "\n".join(["outcome,prob,date", *lines])
        (tmp_path / f"{month}.csv").write_text(text)
    return tmp_path


def test_the_command_keeps_a_state_and_counts_no_file_twice(files, monkeypatch):
    monkeypatch.chdir(files)
    how = ("--state", "s.npz", "--period", "date", "--every", "month")
    first = run("monitor", "2024-01.csv", "2024-02.csv", *how, "--fail-if", "alarm")
    assert (first.returncode, "No alarm" in first.stdout) == (0, True)
    again = run("monitor", "2024-02.csv", "2024-03.csv", "2024-04.csv", *how)
    assert "skipped 1 of the files" in again.stderr
    assert "options about columns and reading were neither applied" in again.stderr
    last = run("monitor", "--state", "s.npz", "--fail-if", "alarm", "--json")
    assert last.returncode == 3
    found = cal.Monitor.from_json(last.stdout)
    assert found.n.tolist() == [400] * 4
    assert "ALARM in 2024-04" in last.stderr
    mixed = run("monitor", "--state", "s.npz", "--every", "week")
    assert (mixed.returncode, "which is no week" in mixed.stderr) == (1, True)


def test_files_are_periods_and_conditions_hold_for_the_last(files, monkeypatch):
    monkeypatch.chdir(files)
    page = ("--output", "page.html", "-q", "--fail-if", "ece.upper > 5%")
    found = run("monitor", "2024-01.csv", "2024-04.csv", *page)
    assert (found.returncode, found.stderr.startswith("gate: 2024-04:")) == (3, True)
    text = (files / "page.html").read_text()
    assert "<script" not in text
    assert "ALARM in 2024-04" in text


def test_names_of_periods_are_escaped_on_the_page(tmp_path):
    bad = "<script>alert(1)</script>"
    found = cal.monitor([1, 0] * 40, probs=[0.5] * 80, period=["a", bad] * 40, name=bad)
    text = found.report(tmp_path / "page.html").read_text()
    assert "<script" not in text
    assert "&lt;script" in text


@pytest.mark.parametrize("how", [(), ("--period", "date")])
def test_a_state_of_months_takes_no_other_kind_of_period(how, files, monkeypatch):
    monkeypatch.chdir(files)
    (files / "2024-02.csv").rename(files / "new.csv")
    months = ("--period", "date", "--every", "month")
    run("monitor", "2024-01.csv", "--state", "s.npz", *months)
    before = (files / "s.npz").read_bytes()
    done = run("monitor", "new.csv", "--state", "s.npz", *how)
    assert done.returncode == 1
    assert "the periods of the state are months, such as '2024-01', and" in done.stderr
    assert "give the same --period and --every as before" in done.stderr
    assert (files / "s.npz").read_bytes() == before
    assert run("monitor", "new.csv", "--state", "s.npz", *months).returncode == 0


@pytest.mark.parametrize(
    "given",
    [("--cluster", "patient"), ("--label", "no"), ("--period", "no"), ("--percent",)],
)
def test_without_files_options_of_columns_and_reading_are_refused(
    given, files, monkeypatch
):
    monkeypatch.chdir(files)
    run("monitor", "2024-01.csv", "--state", "s.npz", "-q")
    done = run("monitor", "--state", "s.npz", *given)
    assert done.returncode == 2
    assert f"which has no columns and was read already; drop {given[0]}" in done.stderr


def test_the_heading_says_that_examples_are_in_clusters(rows):
    given = {"probs": rows["p"], "period": rows["month"]}
    clusters = np.arange(len(rows["y"])) % 40
    assert "examples in clusters" not in str(cal.monitor(rows["y"], **given))
    for some in (clusters, clusters % 5):
        found = cal.monitor(rows["y"], **given, cluster=some)
        assert "1,600 examples in clusters" in str(found).splitlines()[0]


@pytest.mark.parametrize("weighted", [True, False])
def test_a_state_takes_weights_from_all_files_or_from_none(weighted, tmp_path):
    """Examples without would count as much as those of weight 1, as with clusters."""
    p = np.linspace(0.1, 0.9, 100)
    for name, scale in {"1": 1.0, "2": 2.0, "3": 3.0}.items():
        np.savez(tmp_path / f"{name}.npz", probs=p**scale, outcome=p > 0.4, w=1 + p)
    given = ("--state", tmp_path / "s.npz", "-q")
    some, others = ("--weight", "w"), ("--weight", "")
    if not weighted:
        some, others = others, some
    assert run("monitor", tmp_path / "1.npz", *given, *some).returncode == 0
    before = (tmp_path / "s.npz").read_bytes()
    done = run("monitor", tmp_path / "2.npz", *given, *others)
    has = "no weights, and examples before it have them"
    lacks = "weights, and examples before it have none"
    assert done.returncode == 1
    assert f"2.npz: has {has if weighted else lacks}. Give --weight" in done.stderr
    assert (tmp_path / "s.npz").read_bytes() == before
    assert run("monitor", tmp_path / "2.npz", *given, *some).returncode == 0


def test_weights_of_1_are_as_good_as_none(tmp_path):
    p = np.linspace(0.1, 0.9, 100)
    np.savez(tmp_path / "a.npz", probs=p, outcome=p > 0.4)
    np.savez(tmp_path / "b.npz", probs=p**2, outcome=p > 0.4, weight=np.ones(100))
    files = tmp_path / "a.npz", tmp_path / "b.npz"
    assert run("monitor", *files, "--state", tmp_path / "s.npz").returncode == 0


def test_without_files_and_state_the_command_says_what_it_needs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = run("monitor", "--state", "s.npz")
    assert (found.returncode, "give FILEs" in found.stderr) == (2, True)


# -- the figure ---------------------------------------------------------------------


def test_the_figure_shows_every_period_and_the_alarm(rows):
    found = follow(rows)
    axes = found.plot(metrics=("brier", "ece"))
    assert len(axes) == 3
    line = next(x for x in axes[0].lines if x.get_gid() == "brier")
    assert line.get_ydata() == pytest.approx([100 * x for x in found.trend["brier"]])
    names = [x.get_text() for x in axes[-1].get_xticklabels()]
    assert names == list(found.periods)
    assert any(x.get_gid() == "alarm" for x in axes[0].lines)
    with pytest.raises(ValueError, match="metrics must be"):
        found.plot(metrics=("none",))


@pytest.mark.parametrize("period", [3, [["a", "b"], ["a", "b"]]])
def test_periods_are_one_column(period):
    with pytest.raises(ValueError, match="period must have one entry per row"):
        cal.monitor([0, 1], probs=[0.2, 0.8], period=period)


# -- what is said, and what is refused ------------------------------------------------


def test_the_alarm_says_what_it_is_against_and_within_what(rows):
    found = follow(rows, against="reference", reference=["2024-01"], tolerance=0.01)
    assert "the model is not as in 2024-01 within 0.01" in found.sentences[0]
    plain = follow(rows)
    assert "the model is not calibrated" in plain.sentences[0]
    assert "within" not in plain.sentences[0]


def test_no_alarm_is_named_none():
    rng = np.random.default_rng(0)
    p = rng.random(200)
    found = cal.monitor(rng.random(200) < p, probs=p, period=np.arange(200) // 100)
    assert found.alarm.period is None
    assert repr(found) == "Monitor('model', 2 periods, alarm: none)"


@pytest.mark.parametrize("more", ["probs", "logits"])
def test_confidences_come_alone(rows, more):
    given = {"confidence": rows["p"], more: rows["p"], "period": rows["month"]}
    with pytest.raises(
        ValueError, match="give exactly one of probs=, logits= and conf"
    ):
        cal.monitor(rows["y"], **given)


def test_sketches_need_rows_and_periods(rows):
    with pytest.raises(ValueError, match="a period holds no row of positive weight"):
        cal.monitor({"2024-01": cal.Sketch()})
    whole = cal.Sketch().update(rows["y"], probs=rows["p"])
    for given in (whole, cal.Sketch()):
        with pytest.raises(ValueError, match="monitor needs the period of each row"):
            cal.monitor(given)


def test_names_that_do_not_sort_by_time_are_said_to_be_in_order_of_names():
    rng = np.random.default_rng(0)
    p = rng.random(300)
    hit = rng.random(300) < p

    def told(names):
        return " ".join(
            cal.monitor(hit, probs=p, period=np.repeat(names, 100)).sentences
        )

    assert "in the order of their names, Feb before Jan" in told(["Jan", "Feb", "Mar"])
    assert "order of their names" in told(["01/02/2024", "02/01/2024", "01/03/2024"])
    assert "order of" not in told(["2024-01", "2024-02", "2024-03"])
    assert "order of" not in told(["risk_8", "risk_9", "risk_10"])
    assert "order of" not in told(["-1", "0", "1.5"])


def monitored(folder, given, *more):
    """What the command says of rows in a file."""
    columns = {"prob": given["probs"], "label": given["y"].astype(int)}
    columns |= {"patient": given["cluster"], "month": given["period"]}
    lines = [",".join(map(str, row)) for row in zip(*columns.values(), strict=True)]
    (folder / "a.csv").write_text("\n".join([",".join(columns), *lines]))
    said = "--period", "month", "--cluster", "patient", "--json", *more
    done = run("monitor", "a.csv", *said, cwd=folder)
    assert done.returncode == 0, done.stderr
    return cal.Monitor.from_dict(json.loads(done.stdout))


def test_the_command_has_an_alarm_of_many_clusters(tmp_path):
    given = drawn(0, off=0.25, clusters=200, periods=2)
    found = monitored(tmp_path, given)
    want = cal.monitor(**given, name="a").alarm
    np.testing.assert_allclose(found.alarm.evidence, want.evidence, rtol=1e-6)
    assert found.no_alarm == ""


def test_the_command_names_a_cluster_that_comes_back(tmp_path):
    given = drawn(0, clusters=200, periods=2)
    given["cluster"][-1] = 3
    found = monitored(tmp_path, given)
    assert found.alarm is None
    assert found.no_alarm.startswith("cluster '3' has examples in 0 and 1, and")
    assert found.no_alarm == cal.monitor(**given).no_alarm


def test_a_state_of_many_clusters_says_why_it_has_no_alarm(tmp_path):
    given = drawn(0, clusters=200, periods=2)
    assert monitored(tmp_path, given, "--state", "s.npz").alarm is not None
    done = run("monitor", "--state", "s.npz", cwd=tmp_path)
    told = " ".join(done.stdout.split())
    assert "No alarm was computed: a sketch of more than 128 clusters does not" in told
    assert "give all examples at once (to the command without --state)" in told


def test_a_sketch_of_few_clusters_says_that_one_comes_back():
    given = drawn(0, clusters=20, periods=2)
    given["cluster"][-1] = 3
    sketch = cal.Sketch()
    scores = {"probs": given["probs"], "cluster": given["cluster"]}
    sketch.update(given["y"], **scores, group=given["period"])
    assert cal.monitor(sketch).no_alarm.startswith("a cluster has examples in 0 and 1")

"""Files of harnesses: known by content, read to their own accuracy, refused in one line."""

import json
import struct
import tracemalloc
import zipfile
import zlib

import numpy as np
import pytest
from command import calibrant
from harness_writers import (
    CHOICES,
    HARNESS_WRITERS,
    LETTERS,
    best,
    chat_line,
    helm_answer,
    helm_request,
    helm_stats,
    inspect_header,
    inspect_sample,
    lm_eval_mutual,
    lm_eval_one,
    lm_eval_poem,
    lm_eval_sample,
    questions,
    stat,
    stated_sample,
    token,
    write_chat,
    write_eval,
    write_helm_answers,
    write_helm_requests,
    write_helm_stats,
    write_inspect_json,
    write_lines,
    write_lm_eval,
    write_log,
)

import calibrant as cal
from calibrant.files import FileError, Roles, batches, inspect, read
from calibrant.files._harness_base import Field
from calibrant.files._inspect_logs import grade
from calibrant.files._lm_eval import task_of


def made(n=60, k=5, *, ragged=True, seed=0):
    """Log-likelihoods, ties among them, of questions that differ in their options."""
    rng = np.random.default_rng(seed)
    scores = -np.round(rng.gamma(2, 2, size=(n, k)), 1) - 0.5
    if ragged:
        scores[np.arange(k) >= rng.integers(2, k + 1, n)[:, None]] = np.nan
    options = (~np.isnan(scores)).sum(axis=1)
    label = rng.integers(0, options)
    sure = rng.random(n) < 0.5
    label[sure] = np.nanargmax(scores, axis=1)[sure]
    return {"logits": scores, "labels": label}


def accuracy(arrays):
    return np.mean([best(scores) == label for scores, label in questions(arrays)])


def evaluated(path, **roles):
    found = read(path, Roles(**roles))
    if found.pairs:
        return cal.evaluate_pairs(**found.arguments)
    return cal.evaluate(**found.arguments, target=found.target(None))


@pytest.mark.parametrize("name", HARNESS_WRITERS)
@pytest.mark.parametrize("ragged", [False, True])
def test_each_reader_gives_the_accuracy_of_the_harness(name, ragged, tmp_path):
    arrays = made(ragged=ragged)
    HARNESS_WRITERS[name](tmp_path / name, arrays)
    ev = evaluated(tmp_path / name)
    assert ev.metrics["accuracy"] == pytest.approx(accuracy(arrays), abs=1e-12)
    assert ev.rows == 60
    in_batches = list(batches(tmp_path / name, rows=7))
    assert sum(map(len, in_batches)) == 60
    assert len({x.scores.shape[1:] for x in in_batches}) == 1


@pytest.mark.parametrize("name", HARNESS_WRITERS)
def test_a_file_is_known_by_what_is_in_it_and_inspect_says_so(name, tmp_path):
    path = tmp_path / f"any.{name.rpartition('.')[2]}"
    HARNESS_WRITERS[name](path, made())
    contents = inspect(path)
    assert contents.reading, contents.problem
    assert contents.rows == 60
    said = str(contents)
    assert "written by" in said or name in ("letters.jsonl", "chat.jsonl")
    assert "up to 5 options" in said or "max_prob" in said or "confidence" in said
    assert "--drop-missing" not in said  # of columns that are not read


def test_absent_options_change_no_score(tmp_path):
    """Padding with probability 0 gives what each question alone gives."""
    arrays = made()
    write_lm_eval(tmp_path / "a.jsonl", arrays)
    ev = evaluated(tmp_path / "a.jsonl")
    brier, nll = [], []
    for scores, label in questions(arrays):
        p = np.exp(scores - np.logaddexp.reduce(scores))
        brier.append(np.sum((p - (np.arange(len(p)) == label)) ** 2))
        nll.append(-np.log(p[label]))
    assert ev.metrics["brier"] == pytest.approx(np.mean(brier), rel=1e-12)
    assert ev.metrics["nll"] == pytest.approx(np.mean(nll), rel=1e-12)


# -- lm-evaluation-harness ---------------------------------------------------------------


def test_acc_norm_is_that_of_log_likelihoods_per_character(tmp_path):
    arrays = made(200)
    write_lm_eval(tmp_path / "a.jsonl", arrays)
    lines = [json.loads(x) for x in (tmp_path / "a.jsonl").read_text().splitlines()]
    ev = evaluated(tmp_path / "a.jsonl", logits="loglikelihood_per_character")
    said = np.mean([x["acc_norm"] for x in lines])
    assert said != np.mean([x["acc"] for x in lines])
    assert ev.metrics["accuracy"] == pytest.approx(said, abs=1e-12)


def test_ties_go_to_the_first_option_as_in_the_harness(tmp_path):
    scores = [-2.0, -1.0, -1.0, -3.0]
    records = [lm_eval_sample(i, scores, 1 + i % 2) for i in range(40)]
    assert [x["acc"] for x in records[:2]] == [1.0, 0.0]
    write_lines(tmp_path / "a.jsonl", records)
    assert evaluated(tmp_path / "a.jsonl").metrics["accuracy"] == 0.5


def test_older_forms_of_samples(tmp_path):
    """Numbers as numbers, arguments as lists, targets as texts, mutual information."""
    scores = [-2.0, -1.0, -4.0]
    numbers = lm_eval_sample(0, scores, 1, resps=[[[x, False]] for x in scores])
    numbers["arguments"] = [["Q", f" {x}"] for x in CHOICES[:3]]
    del numbers["filtered_resps"]
    text = lm_eval_sample(1, scores, 2, target=" birch")
    mutual = lm_eval_mutual(2, scores, [-1.0, -5.0, -1.0], 1)
    write_lines(tmp_path / "a.jsonl", [numbers, text, mutual])
    found = read(tmp_path / "a.jsonl")
    assert found.y.tolist() == [1, 2, 1]
    assert found.scores.tolist() == [scores] * 3


def test_a_target_that_is_a_number_and_a_text_is_told_by_acc(tmp_path):
    """Options '1' and '2': the target '1' may be the first text or the second place."""
    records = [
        lm_eval_sample(i, [-1.0, -2.0], 1, choices=["1", "2"], acc=acc, acc_norm=acc)
        for i, acc in enumerate((1.0, 0.0))
    ]
    write_lines(tmp_path / "a.jsonl", records)
    assert read(tmp_path / "a.jsonl").y.tolist() == [0, 1]


def test_infinite_log_likelihoods_are_meant(tmp_path):
    records = [lm_eval_sample(i, [-1.0, -np.inf, -2.0], i % 3) for i in range(30)]
    write_lines(tmp_path / "a.jsonl", records)
    ev = evaluated(tmp_path / "a.jsonl")
    assert ev.infinite_rows == 10


LM_EVAL_DAMAGE = {
    "'arguments' has a request without a text": {"arguments": {}},
    "'acc' is 0.0, which does not follow": {"acc": 0.0},
    "'acc_norm' is 0.0, which does not follow": {"acc_norm": 0.0},
    "is none of the 3 options": {"target": "[0, 2]"},
    "'filtered_resps[0][0]' is 'nan', not a number": {
        "filtered_resps": [["nan", "False"]] * 3
    },
    "'filtered_resps[2][0]' is 2, which is above 0": {
        "filtered_resps": [["-1.0", "False"], ["-9.0", "False"], ["2", "False"]]
    },
    "fewer than two options": {"filtered_resps": [["-1.0", "False"]]},
    "'filtered_resps[0]' is 'the oak', not a list": {"filtered_resps": ["the oak"]},
    "'acc' is missing, which other lines have": {"acc": None},
    "'acc_norm' is missing, which other lines have": {"acc_norm": None},
    "'filtered_resps[1][1]' is 'maybe', not 'True' or 'False'": {
        "filtered_resps": [["-1.0", "True"], ["-9.0", "maybe"], ["-9.0", "False"]]
    },
    "'resps[2][0][0]' is -8, and in 'filtered_resps' -9": {
        "resps": [[["-1.0", "True"]], [["-9.0", "False"]], [["-8.0", "False"]]]
    },
    "'resps' are 2, not 3": {"resps": [[["-1.0", "True"]], [["-9.0", "False"]]]},
}


@pytest.mark.parametrize("said", LM_EVAL_DAMAGE)
def test_a_damaged_line_is_named(said, tmp_path):
    good = lm_eval_sample(0, [-1.0, -9.0, -9.0], 0)
    bad = lm_eval_sample(1, [-1.0, -9.0, -9.0], 0) | LM_EVAL_DAMAGE[said]
    write_lines(tmp_path / "a.jsonl", [good, bad])
    with pytest.raises(FileError, match="line 2") as caught:
        read(tmp_path / "a.jsonl")
    assert said in str(caught.value)
    assert str(caught.value).isprintable()


def test_a_metric_that_the_first_line_lacks_is_missed(tmp_path):
    """It is not computed again where it is missing, so it must be nowhere or everywhere."""
    samples = [lm_eval_sample(i, [-1.0, -9.0], 0) for i in range(3)]
    write_lines(tmp_path / "a.jsonl", [samples[0] | {"acc": None}, *samples[1:]])
    with pytest.raises(
        FileError, match=r"line 2 .*'acc' is there, but missing in the f"
    ):
        read(tmp_path / "a.jsonl")
    write_lines(tmp_path / "a.jsonl", [x | {"acc": None} for x in samples])
    assert len(read(tmp_path / "a.jsonl")) == 3


def test_a_filter_may_change_answers(tmp_path):
    samples = [
        lm_eval_sample(
            i, [-1.0, -9.0], 0, resps=[[["-2.0", "False"]]] * 2, filter="min"
        )
        for i in range(3)
    ]
    write_lines(tmp_path / "a.jsonl", samples)
    assert read(tmp_path / "a.jsonl").scores.tolist() == [[-1, -9]] * 3


def test_a_statistic_without_a_name_is_refused(tmp_path):
    records = [helm_stats(i, [-1.0, -2.0], 0) for i in range(3)]
    records[1]["stats"][2]["name"]["name"] = None
    path = tmp_path / "per_instance_stats.json"
    path.write_text(json.dumps(records), encoding="utf-8")
    with pytest.raises(FileError, match=r"item 2 is not as HELM .*name' is null"):
        read(path)


def test_samples_of_two_filters_are_refused(tmp_path):
    records = [lm_eval_sample(0, [-1.0, -2.0], 0, filter=x) for x in ("a", "b")]
    write_lines(tmp_path / "a.jsonl", records)
    with pytest.raises(FileError, match="filters 'a' and, in line 2, 'b'"):
        read(tmp_path / "a.jsonl")


def lines_twice(path, write, change):
    """What is said of a file of which records were changed."""
    write(path, made(20))
    lines = path.suffix == ".jsonl"
    text = path.read_text()
    records = [*map(json.loads, text.splitlines())] if lines else json.loads(text)
    inside = records if isinstance(records, list) else records["samples"]
    inside[:] = change(inside)
    if lines:
        write_lines(path, records)
    else:
        path.write_text(json.dumps(records))
    with pytest.raises(FileError) as caught:
        read(path)
    return str(caught.value)


DOUBLED = {
    "one more": (lambda x: x[:9] + x[8:], 10),
    "in place of another": (lambda x: [*x[:9], x[8], *x[10:]], 10),
    "all": (lambda x: x + x, 21),
}


@pytest.mark.parametrize("how", DOUBLED)
def test_a_question_that_stands_twice_is_refused_by_line_and_id(how, tmp_path):
    """A file like this passed gates, with a question counted twice."""
    change, line = DOUBLED[how]
    number = 0 if how == "all" else 8
    said = lines_twice(tmp_path / "a.jsonl", write_lm_eval, change)
    twice = (
        f"line {line} is not as lm-evaluation-harness writes it (the 'doc_id' {number} "
    )
    assert f"{tmp_path / 'a.jsonl'}: {twice}stands in the file twice)" in said
    said = lines_twice(tmp_path / "stats.json", write_helm_stats, change)
    assert f"item {line} is not as HELM writes it (a trial of the 'instance_id'" in said
    assert f"'id{number}' stands in the file twice" in said
    said = lines_twice(tmp_path / "log.json", write_inspect_json, change)
    assert f"sample {line} is not as Inspect writes it (the 'id' " in said
    assert "with 'epoch' 1 stands in the file twice" in said


def test_the_task_is_in_the_name_of_the_file(tmp_path):
    for name in ("samples_a_b_2024-05-01T10-00-00.123456.jsonl", "a_b.jsonl"):
        assert task_of(tmp_path / name) == "a_b"


# -- HELM --------------------------------------------------------------------------------


def test_trials_of_an_instance_are_a_cluster_and_perturbations_groups(tmp_path):
    typos = {"perturbation": {"name": "typos", "prob": 0.1}}
    records = [
        helm_stats(i, [-1.0, -2.0], i % 2, trial, **more)
        for i in range(12)
        for trial in range(2)
        for more in ({}, typos)
    ]
    run = tmp_path / "trees:kind=tall,model=lab_m"
    run.mkdir()
    (run / "per_instance_stats.json").write_text(json.dumps(records))
    found = read(run / "per_instance_stats.json")
    assert len(set(found.cluster.tolist())) == 12
    groups = {"trees:kind=tall, as it is", "trees:kind=tall, typos"}
    assert set(found.group.tolist()) == groups
    done = calibrant("report", run / "per_instance_stats.json", "--json")
    assert json.loads(done.stdout)["evaluations"][0]["name"] == "lab_m"


def test_models_without_log_probabilities_are_refused(tmp_path):
    records = [helm_stats(i, [0.0, -800.0], 0) for i in range(3)]
    (tmp_path / "a.json").write_text(json.dumps(records))
    with pytest.raises(FileError, match="max_prob is missing, or 1"):
        read(tmp_path / "a.json")


def test_scores_of_options_are_those_of_their_tokens(tmp_path):
    """Original: the mean over tokens. Calibrated: the sum, less that without question."""
    states = [
        helm_request(0, place, score, 1, 2, mode)
        for mode, scores in {
            "original": (-1.0, -2.0),
            "calibration": (-3.0, -1.0),
        }.items()
        for place, score in enumerate(scores)
    ]
    expected = {"original": [-1.0, -2.0], "calibrated": [-1.0 + 3.0, 3 * (-2.0 + 1.0)]}
    for method, scores in expected.items():
        spec = {"method": f"multiple_choice_separate_{method}"}
        kept = [
            x for x in states if method != "original" or x["request_mode"] == method
        ]
        whole = {"adapter_spec": spec, "request_states": kept}
        (tmp_path / "a.json").write_text(json.dumps(whole))
        found = read(tmp_path / "a.json")
        assert found.scores.tolist() == [scores]
        assert found.y.tolist() == [1]


def test_a_letter_that_was_generated_is_a_pair(tmp_path):
    said = [(" B", -0.5), (" A", -1.0), (" Z", -2.0)]
    states = [helm_answer(i, *answer, 1, 2) for i, answer in enumerate(said)]
    spec = {"method": "multiple_choice_joint"}
    whole = {"adapter_spec": spec, "request_states": states}
    (tmp_path / "a.json").write_text(json.dumps(whole))
    found = read(tmp_path / "a.json")
    assert found.pairs
    assert found.y.tolist() == [True, False, False]
    assert found.scores == pytest.approx(np.exp([-0.5, -1.0, -2.0]))


@pytest.mark.parametrize("broken", ["tokens", "references", "result"])
def test_a_damaged_request_is_named(broken, tmp_path):
    state = helm_request(7, 0, -1.0, 0, 2)
    if broken == "tokens":
        state["result"]["completions"][0]["tokens"] = [{"text": "x", "logprob": -1.0}]
    elif broken == "references":
        state["instance"]["references"][1]["tags"] = ["correct"]
    else:
        del state["result"]
    spec = {"method": "multiple_choice_separate_original"}
    whole = {"adapter_spec": spec, "request_states": [state]}
    (tmp_path / "a.json").write_text(json.dumps(whole))
    with pytest.raises(FileError, match="instance id7 is not as HELM writes it"):
        read(tmp_path / "a.json")


# -- Inspect -----------------------------------------------------------------------------


def graded(value, confidence):
    return {"value": value, "answer": "A", "metadata": {"confidence": confidence}}


def without_tokens(sample):
    sample["output"]["choices"][0]["logprobs"] = None
    return sample


def test_stated_confidences_and_epochs_of_inspect(tmp_path):
    samples = [
        without_tokens(
            inspect_sample(i, [-1.0, -2.0], 0, epoch, graded(value, 0.5 + i / 20))
        )
        for i, value in enumerate("CICIPNCI")
        for epoch in (1, 2)
    ]
    write_eval(tmp_path / "a.eval", samples, inspect_header(16, epochs=2))
    found = read(tmp_path / "a.eval")
    assert found.pairs
    assert len(set(found.cluster.tolist())) == 8
    assert found.y.mean() == pytest.approx((3 + 0.5) / 8)
    assert found.scores[::2] == pytest.approx(0.5 + np.arange(8) / 20)


def test_a_sample_that_was_not_scored_is_missing(tmp_path):
    samples = [
        without_tokens(inspect_sample(i, [-1.0, -2.0], 0, 1, graded(value, 0.7)))
        for i, value in enumerate(["C", float("nan"), "I"])
    ]
    write_eval(tmp_path / "a.eval", samples)
    with pytest.raises(FileError, match="--drop-missing"):
        read(tmp_path / "a.eval")
    found = read(tmp_path / "a.eval", Roles(drop_missing=True))
    assert (len(found), found.dropped) == (2, 1)


def test_values_of_scores_are_those_of_inspect():
    values = ["C", "I", "P", "N", "yes", "False", "0.25", True, 0.5]
    assert [grade(Field(x)) for x in values] == [1, 0, 0.5, 0, 1, 0, 0.25, 1, 0.5]
    with pytest.raises(ValueError, match="'value' is an object, not a number"):
        grade(Field({"a": 1}, "value"))


def test_a_log_without_confidences_says_how_to_get_them(tmp_path):
    samples = [without_tokens(inspect_sample(0, [-1.0, -2.0], 0))]
    write_eval(tmp_path / "a.eval", samples)
    with pytest.raises(FileError, match=r"metadata of a score, or ask for log-prob"):
        read(tmp_path / "a.eval")


def test_an_unfinished_log_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.eval", "w") as archive:
        archive.writestr("samples/0_epoch_1.json", "{}")
    with pytest.raises(FileError, match="did not finish"):
        read(tmp_path / "a.eval")


def test_members_in_zstandard(tmp_path, part):
    """As Inspect packs them; Python's zipfile cannot write them before 3.14."""
    arrow, path = part("pyarrow"), tmp_path / "a.eval"
    sample = inspect_sample(0, [-1.0, -2.0], 1)
    plain = json.dumps(sample).encode()
    packed = arrow.Codec("zstd").compress(plain, asbytes=True)
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("samples/0_epoch_1.json", packed)
        archive.writestr("header.json", json.dumps(inspect_header(1)))
    whole = path.read_bytes()
    was = struct.pack("<III", zlib.crc32(packed), len(packed), len(packed))
    now = struct.pack("<III", zlib.crc32(plain), len(packed), len(plain))
    assert whole.count(was) == 2
    whole = whole.replace(was, now)
    for start in (whole.index(b"PK\3\4") + 8, whole.index(b"PK\1\2") + 10):
        whole = whole[:start] + struct.pack("<H", 93) + whole[start + 2 :]
    path.write_bytes(whole)
    assert read(path).y.tolist() == ["B"]
    at = whole.index(packed) + len(packed) // 2
    path.write_bytes(whole[:at] + bytes([whole[at] ^ 255]) + whole[at + 1 :])
    with pytest.raises(FileError):
        read(path)


# -- tokens ------------------------------------------------------------------------------


def test_spellings_of_an_option_are_added(tmp_path):
    top = [(" A", np.log(0.5)), ("A", np.log(0.25)), ("B", np.log(0.125)), ("the", -9)]
    line = {"label": "A", "logprobs": {"content": [token(*top[0], top)]}}
    write_lines(tmp_path / "a.jsonl", [line] * 3)
    found = read(tmp_path / "a.jsonl")
    assert np.exp(found.scores[0]) == pytest.approx([0.75, 0.125])
    pairs = read(tmp_path / "a.jsonl", Roles(confidence="answer_probability"))
    assert pairs.scores == pytest.approx([0.75] * 3)
    assert pairs.y.all()


def test_the_older_form_of_completions(tmp_path):
    given = {"tokens": [" B"], "token_logprobs": [-0.5]}
    given["top_logprobs"] = [{" B": -0.5, " A": -1.5}]
    line = {"label": "B", "choices": [{"text": " B", "logprobs": given}]}
    write_lines(tmp_path / "a.jsonl", [line] * 3)
    assert read(tmp_path / "a.jsonl").scores.tolist() == [[-1.5, -0.5]] * 3


def test_a_true_option_out_of_sight_is_refused(tmp_path):
    """Its probability is small, not 0; dropping the row would drop an error."""
    lines = [chat_line(i, [-1.0, -2.0, -3.0], 0) for i in range(3)]
    content = lines[1]["response"]["body"]["choices"][0]["logprobs"]["content"]
    content[-1]["top_logprobs"] = content[-1]["top_logprobs"][:2]
    lines[1]["label"] = "C"
    write_lines(tmp_path / "a.jsonl", lines)
    with pytest.raises(FileError, match="row 1 has no score for its true option, 'C'"):
        read(tmp_path / "a.jsonl")


def test_an_answer_that_names_no_option_is_missing(tmp_path):
    lines = [chat_line(i, [-1.0, -2.0], 0) for i in range(3)]
    content = lines[2]["response"]["body"]["choices"][0]["logprobs"]["content"]
    content[:] = [token("Sorry", -0.1)]
    write_lines(tmp_path / "a.jsonl", lines)
    with pytest.raises(FileError, match="--drop-missing"):
        read(tmp_path / "a.jsonl")
    assert read(tmp_path / "a.jsonl", Roles(drop_missing=True)).dropped == 1


# -- plain JSON lines ----------------------------------------------------------------------


def test_letters_may_come_in_any_order_and_be_absent(tmp_path):
    rows = [
        {"probs": {"B": 0.25, "A": 0.75}, "label": "A"},
        {"probs": {"A": 0.5, "B": 0.25, "C": 0.25}, "label": "C"},
        {"probs": {"A": 0.5, "B": 0.5, "C": None}, "label": "B"},
    ]
    write_lines(tmp_path / "a.jsonl", rows)
    found = read(tmp_path / "a.jsonl")
    assert found.classes == ("A", "B", "C")
    assert found.scores.tolist() == [[0.75, 0.25, 0], [0.5, 0.25, 0.25], [0.5, 0.5, 0]]
    ordered = read(tmp_path / "a.jsonl", Roles(classes=["C", "B", "A", "D"]))
    assert ordered.scores[0].tolist() == [0, 0.25, 0.75, 0]


def test_lists_of_different_lengths_need_a_word(tmp_path):
    rows = [{"probs": [0.5, 0.5], "label": 0}, {"probs": [0.5, 0.25, 0.25], "label": 2}]
    write_lines(tmp_path / "a.jsonl", rows)
    with pytest.raises(FileError, match=r"line 2.*pass --ragged"):
        read(tmp_path / "a.jsonl")
    found = read(tmp_path / "a.jsonl", Roles(ragged=True))
    assert found.scores.tolist() == [[0.5, 0.5, 0], [0.5, 0.25, 0.25]]
    rows[0]["label"] = 2
    write_lines(tmp_path / "a.jsonl", rows)
    with pytest.raises(FileError, match="row 0 has no score for its true option, 2"):
        read(tmp_path / "a.jsonl", Roles(ragged=True))


def test_null_is_an_absent_option_if_that_is_said(tmp_path):
    rows = [{"logits": [1, 2, None], "label": 0}, {"logits": [1, 2, 3], "label": 2}]
    write_lines(tmp_path / "a.jsonl", rows)
    with pytest.raises(FileError, match="may be missing with --ragged"):
        read(tmp_path / "a.jsonl")
    found = read(tmp_path / "a.jsonl", Roles(ragged=True))
    assert found.scores.tolist() == [[1, 2, -np.inf], [1, 2, 3]]


def test_words_for_confidences(tmp_path):
    rows = [{"confidence": x, "correct": "yes"} for x in ("Likely", "unsure ", "0.9")]
    write_lines(tmp_path / "a.jsonl", rows)
    with pytest.raises(FileError, match=r"--scale 'likely=0\.8"):
        read(tmp_path / "a.jsonl")
    scale = {"likely": 0.8, "Unsure": 0.5}
    found = read(tmp_path / "a.jsonl", Roles(scale=scale))
    assert found.scores.tolist() == [0.8, 0.5, 0.9]
    with pytest.raises(FileError, match=r"row 1 of 'confidence' is 'unsure ', .* null"):
        read(tmp_path / "a.jsonl", Roles(scale={"likely": 0.8}))
    for bad in ({"likely": 80}, {"a": 0.1, "A ": 0.2}, {}):
        with pytest.raises(ValueError, match="scale"):
            Roles(scale=bad)


def test_samples_stream_in_constant_memory(tmp_path):
    """Four times the file takes no more memory: neither lines nor scores are kept."""
    peaks = []
    for count in (2000, 8000):
        path = tmp_path / f"{count}.jsonl"
        scores = [-1.0, -2.0, -3.0, -4.0]
        samples = (lm_eval_sample(i, scores[: 3 + i % 2], i % 3) for i in range(count))
        with path.open("w") as file:
            file.writelines(f"{json.dumps(sample)}\n" for sample in samples)
        tracemalloc.start()
        assert sum(map(len, batches(path, rows=500))) == count
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 1.2 * peaks[0]
    assert peaks[1] < path.stat().st_size / 2


# -- the command ---------------------------------------------------------------------------


@pytest.fixture
def run_folder(tmp_path):
    """What lm-evaluation-harness leaves of two models: tasks, a summary, a generation."""
    for number, model in enumerate(("lab__small", "lab__large")):
        folder = tmp_path / model
        folder.mkdir()
        for task, k in (("oaks", 2), ("elms", 5)):
            name = f"samples_{task}_2024-05-01T10-00-00.1.jsonl"
            arrays = made(80, k, seed=k)
            arrays["logits"] *= 1 + number  # twice as sure
            write_lm_eval(folder / name, arrays)
        counts = {task: {"original": 80, "effective": 80} for task in ("oaks", "elms")}
        summary = {"results": {"oaks": {"acc_stderr,none": None}}, "n-samples": counts}
        results = folder / "results_2024-05-01T10-00-00.1.json"
        results.write_text(json.dumps(summary))
        poems = folder / "samples_poems_2024-05-01T10-00-00.1.jsonl"
        write_lines(poems, [lm_eval_poem(0)])
    return tmp_path


def test_one_command_for_all_tasks_of_all_models(run_folder):
    files = sorted(run_folder.glob("*/samples_*.jsonl"))
    page = run_folder / "page.html"
    done = calibrant("report", *files, "-o", page, "--json")
    assert done.returncode == 0, done.stderr
    models = {ev["name"]: ev for ev in json.loads(done.stdout)["evaluations"]}
    assert set(models) == {"lab__small", "lab__large"}
    for ev in models.values():
        assert set(ev["per_group"]) == {"elms", "oaks"}
        assert ev["rows"] == 160
    assert done.stderr.count("left out:") == 2
    assert "generated text" in done.stderr
    folders = calibrant("report", *{x.parent for x in files}, "--json")
    named = {ev["name"]: ev for ev in json.loads(folders.stdout)["evaluations"]}
    for name, ev in models.items():
        assert named[name]["metrics"] == ev["metrics"]


def test_models_are_compared_question_by_question_in_any_order(run_folder):
    small, large = run_folder / "lab__small", run_folder / "lab__large"
    before = calibrant("compare", small, large, "--json")
    for path in small.glob("samples_[eo]*.jsonl"):
        path.write_text("".join(reversed(path.read_text().splitlines(keepends=True))))
    after = calibrant("compare", small, large, "--json")
    assert "paired by column 'question'; their order differs" in after.stderr
    one, other = (json.loads(x.stdout)["differences"] for x in (before, after))
    changed = one["lab__large"]["brier"]["value"]
    assert changed != 0
    assert changed == pytest.approx(other["lab__large"]["brier"]["value"])


def test_a_file_of_generations_alone_is_refused(run_folder):
    (poems,) = (run_folder / "lab__small").glob("*poems*")
    done = calibrant("report", poems)
    assert done.returncode == 1
    assert "is a generated text" in done.stderr


def test_two_options_need_no_target(tmp_path):
    write_lm_eval(tmp_path / "a.jsonl", made(50, 2))
    done = calibrant("report", tmp_path / "a.jsonl", "--json")
    assert json.loads(done.stdout)["evaluations"][0]["target"] == "top-label"
    assert json.loads(done.stdout)["evaluations"][0]["per_group"] == {}


def test_a_scale_on_the_command_line(tmp_path):
    rows = [{"confidence": LETTERS[i % 2], "correct": i % 3 > 0} for i in range(40)]
    write_lines(tmp_path / "a.jsonl", rows)
    done = calibrant("report", tmp_path / "a.jsonl", "--scale", "a=0.6,b=0.9", "--json")
    assert json.loads(done.stdout)["evaluations"][0]["distinct"] == 2
    bad = calibrant("report", tmp_path / "a.jsonl", "--scale", "a:0.6")
    assert bad.returncode == 2
    assert "likely=0.8" in bad.stderr
    same = calibrant(
        "report", tmp_path / "a.jsonl", "--scale", "a=60%,b=90 %", "--json"
    )
    assert same.stdout == done.stdout


@pytest.mark.parametrize("verb", ["report", "study"])
def test_a_scale_of_words_that_no_answer_has_is_refused(verb, tmp_path):
    rows = [{"confidence": 0.1 * (i % 9), "correct": i % 3 > 0} for i in range(40)]
    write_lines(tmp_path / "a.jsonl", rows)
    done = calibrant(verb, "a.jsonl", "--scale", "likely=0.8", cwd=tmp_path)
    assert done.returncode == 1
    none = "no value of 'confidence' is a word of it; leave it out."
    assert f"--scale has no effect: {none}" in done.stderr


def samples_in(folder, task, records, day=1):
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"samples_{task}_2024-05-0{day}T10-00-00.1.jsonl"
    write_lines(path, records)
    return path


def test_a_space_that_is_part_of_an_option_counts(tmp_path):
    """Options of HellaSwag may begin with a space, after the one of the harness."""
    scores, choices = [-4.0, -3.9], [" abc", "abd"]  # -1 each character, and -1.3
    good = [lm_eval_sample(i, scores, 0, choices=choices) for i in range(2)]
    assert good[0]["acc_norm"] == 1.0
    write_lines(tmp_path / "a.jsonl", good)
    found = read(tmp_path / "a.jsonl", Roles(logits="loglikelihood_per_character"))
    assert found.scores[0] == pytest.approx([-1.0, -1.3])


def test_options_may_follow_the_question_with_nothing_between(tmp_path):
    scores, texts = [-2.0, -5.0], [" a", " bcde"]  # without the spaces -2 and -1.25
    record = lm_eval_sample(0, scores, 0, choices=texts, acc_norm=1.0)
    record["arguments"] = [["Q", text] for text in texts]
    write_lines(tmp_path / "a.jsonl", [record])
    found = read(tmp_path / "a.jsonl", Roles(logits="loglikelihood_per_character"))
    assert found.scores[0].tolist() == [-1.0, -1.0]


THREE = lm_eval_sample(0, [-1.0, -2.0, -3.0], 0)
NO_CHOICE = {
    "one text to score": lm_eval_one(
        0, ["Q", " oak"], ["-0.7", "True"], target=" oak", perplexity=-0.7, acc=1
    ),
    "1 has one text to score": lm_eval_one(
        0, ["A whole text."], "-9.5", target="A whole text.", word_perplexity=[-9.5, 3]
    ),
    "a list of true options, [0, 2]": THREE | {"target": "[0, 2]"},
    "the acc 0.7, neither 0 nor 1": THREE | {"acc": 0.7},
}


@pytest.mark.parametrize("said", NO_CHOICE)
def test_tasks_without_one_true_option_are_left_out_and_why(said, run_folder):
    """LAMBADA, WikiText, tasks of several answers, and TruthfulQA's second form."""
    folder = run_folder / "lab__small"
    samples_in(folder, "other", [NO_CHOICE[said]])
    done = calibrant("report", folder, "--json")
    assert done.returncode == 0, done.stderr
    assert said in done.stderr
    assert json.loads(done.stdout)["evaluations"][0]["rows"] == 160


BROKEN = {
    "its first line is none": '{"doc_id": 0, "target": "1", "resps": []}\n',
    "line 1 is not as": json.dumps(
        lm_eval_sample(0, [-1.0, -2.0], 0) | {"filtered_resps": ["oak", "elm"]}
    ),
    "is not strict JSON": '{"doc_id": 0, "doc": {"que',
    "is empty": "",
    "does not follow": json.dumps(lm_eval_sample(0, [-1.0, -2.0], 0, acc=0.0)),
}


@pytest.mark.parametrize("said", BROKEN)
def test_a_damaged_file_in_a_folder_is_not_left_out(said, run_folder):
    """A gate passed, because the task that would fail it could not be read."""
    folder = run_folder / "lab__small"
    (folder / "samples_firs_2024-05-01T10-00-00.1.jsonl").write_text(BROKEN[said])
    done = calibrant("report", folder, "--fail-if", "brier > 190%")
    assert done.returncode == 1
    assert said in done.stderr
    assert "samples_firs" in done.stderr


def test_other_files_of_a_folder_may_be_no_tables(run_folder):
    folder = run_folder / "lab__small"
    (folder / "results_2.json").write_text('{"results": {"stderr": NaN}}')
    (folder / "log.jsonl").write_text('{"loss": 1.0}\n{"loss": NaN}\n')
    done = calibrant("report", folder, "--json")
    assert done.returncode == 0, done.stderr


def test_two_runs_of_a_model_are_two_models(run_folder):
    """As before and after a change: they were put together as one."""
    for run, old in (("before", "lab__small"), ("after", "lab__large")):
        (run_folder / run).mkdir()
        (run_folder / old).rename(run_folder / run / "lab__m")
    done = calibrant("compare", run_folder / "before", run_folder / "after", "--json")
    models = json.loads(done.stdout)["evaluations"]
    assert [ev["name"] for ev in models] == ["before/lab__m", "after/lab__m"]
    assert [ev["rows"] for ev in models] == [160, 160]


@pytest.mark.parametrize("suffix", [" (1)", "-copy", "-of-another-task"])
def test_a_copy_of_samples_is_no_other_task(suffix, run_folder):
    folder = run_folder / "lab__small"
    first = folder / "samples_oaks_2024-05-01T10-00-00.1.jsonl"
    first.with_stem(f"{first.stem}{suffix}").write_bytes(first.read_bytes())
    for command in ("report", "groups", "inspect"):
        done = calibrant(command, folder)
        assert "is a copy of" in done.stderr
    done = calibrant("report", folder, "--count-copies", "--json")
    assert len(json.loads(done.stdout)["evaluations"]) == 1


@pytest.mark.parametrize("command", ["report", "groups", "inspect"])
def test_a_copy_of_a_log_is_no_other_run(command, tmp_path):
    write_inspect_json(tmp_path / "log.json", made())
    (tmp_path / "log-copy.json").write_bytes((tmp_path / "log.json").read_bytes())
    done = calibrant(command, tmp_path)
    assert "is a copy of" in done.stderr
    done = calibrant("report", tmp_path, "--count-copies", "--json")
    assert len(json.loads(done.stdout)["evaluations"]) == 2


def test_a_task_that_was_run_twice_is_refused(run_folder):
    folder = run_folder / "lab__small"
    samples_in(folder, "oaks", [lm_eval_sample(0, [-1.0, -2.0], 0)], day=2)
    done = calibrant("report", folder)
    assert done.returncode == 1
    assert "questions would count twice; keep one" in done.stderr


def test_answers_of_an_api_in_one_folder_are_models_by_name(tmp_path):
    for number, name in enumerate(("short.jsonl", "long.jsonl")):
        write_chat(tmp_path / name, made(80, 4, ragged=False, seed=number))
    done = calibrant(
        "compare", *sorted(tmp_path.glob("*.jsonl")), "--unpaired", "--json"
    )
    assert done.returncode == 0, done.stderr
    models = json.loads(done.stdout)["evaluations"]
    assert [ev["name"] for ev in models] == ["long", "short"]


def test_two_logs_of_a_model_and_task_are_models_by_name(tmp_path):
    """As of two prompts: they were put together as one."""
    for number, name in enumerate(("short.json", "long.json")):
        write_inspect_json(tmp_path / name, made(80, 4, ragged=False, seed=number))
    files = [tmp_path / "short.json", tmp_path / "long.json"]
    done = calibrant("compare", *files, "--unpaired", "--json")
    assert done.returncode == 0, done.stderr
    models = json.loads(done.stdout)["evaluations"]
    assert [ev["name"] for ev in models] == ["short", "long"]


def test_a_folder_of_helm_counts_each_answer_once(tmp_path):
    """Statistics and predictions of a run hold the same answers."""
    folder = tmp_path / "trees:kind=tall,model=lab_m"
    folder.mkdir()
    records = [helm_stats(i, *x) for i, x in enumerate(questions(made(40)))]
    (folder / "per_instance_stats.json").write_text(json.dumps(records))
    for record in records:
        record["stats"] = {x["name"]["name"]: x["mean"] for x in record["stats"]}
    (folder / "display_predictions.json").write_text(json.dumps(records))
    done = calibrant("report", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    (model,) = json.loads(done.stdout)["evaluations"]
    assert (model["name"], model["rows"]) == ("lab_m", 40)


def test_a_folder_of_helm_is_read_by_the_scores_of_options_if_there_are(tmp_path):
    folder = tmp_path / "trees:kind=tall,model=lab_m"
    folder.mkdir()
    write_helm_stats(folder / "per_instance_stats.json", made(40))
    write_helm_requests(folder / "scenario_state.json", made(40))
    done = calibrant("report", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    (model,) = json.loads(done.stdout)["evaluations"]
    assert (model["target"], model["rows"]) == ("top-label", 40)


def test_a_folder_of_a_harness_is_studied_inspected_and_split_into_groups(run_folder):
    """The summary beside the samples made it a folder of two formats, which was refused."""
    folder = run_folder / "lab__small"
    done = calibrant("study", folder, "--folds", "3", "--methods", "temperature")
    assert done.returncode == 0, done.stderr
    assert "cross-fitted on 160 examples" in done.stdout
    seen = calibrant("inspect", folder)
    assert "written by lm-evaluation-harness" in seen.stdout
    assert "2 groups, 160 examples" in calibrant("groups", folder).stdout
    both = calibrant("study", run_folder)
    assert both.returncode == 1
    assert "has 2 models (lab__large, lab__small); name the folder" in both.stderr


def test_options_that_a_solver_shuffled_are_refused(tmp_path):
    """Tokens name the shuffled letter, the scorer's answer is that of the log."""
    samples = [inspect_sample(i, [-1.0, -2.0, -3.0], 0) for i in range(4)]
    samples[2]["scores"]["choice"]["answer"] = "B"
    write_log(tmp_path / "a.json", samples)
    with pytest.raises(FileError, match=r"sample 3: 'scores\.choice\.answer' is 'B'"):
        read(tmp_path / "a.json")


def test_a_token_of_two_letters_is_no_option(tmp_path):
    sample = inspect_sample(0, [-1.0, -2.0, -3.0], 0)
    content = sample["output"]["choices"][0]["logprobs"]["content"]
    content += [token("BC", -0.5), token("", -0.1)]
    write_log(tmp_path / "a.json", [sample])
    assert read(tmp_path / "a.json").scores.argmax() == 0


@pytest.mark.parametrize("suffix", ["json", "eval"])
def test_a_run_of_inspect_that_ended_in_an_error_is_refused(suffix, tmp_path):
    samples, path = [inspect_sample(0, [-1.0, -2.0], 0)], tmp_path / f"a.{suffix}"
    header = inspect_header(1, status="error")
    if suffix == "eval":
        write_eval(path, samples, header)
    else:
        path.write_text(json.dumps({**header, "samples": samples}))
    with pytest.raises(FileError, match="'status' 'error'; run it again"):
        read(path)


def test_a_sample_less_than_the_header_counts_is_missed(tmp_path):
    samples = [inspect_sample(i, [-1.0, -2.0], 0) for i in range(3)]
    write_eval(tmp_path / "a.eval", samples, inspect_header(4))
    with pytest.raises(FileError, match="has 3 samples, and its header says 4"):
        read(tmp_path / "a.eval")


def test_an_error_of_a_row_names_the_file_not_the_model(tmp_path):
    samples = [stated_sample(i, 0.5 + i, i % 2) for i in range(3)]
    write_log(tmp_path / "a.json", samples)
    done = calibrant("report", tmp_path / "a.json")
    assert f"{tmp_path / 'a.json'}: confidence must be in [0, 1]; row 1" in done.stderr


def test_a_match_that_one_instance_lacks_is_missing_and_not_another_one(tmp_path):
    """HELM has several; the file is read by the first of them, all of it."""
    records = [helm_stats(i, [-1.0, -2.0], 0) for i in range(3)]
    for record in records:
        record["stats"].append(stat("quasi_exact_match", 1.0))
    del records[1]["stats"][1]
    path = tmp_path / "per_instance_stats.json"
    path.write_text(json.dumps(records))
    assert read(path, Roles(drop_missing=True)).dropped == 1


def test_options_that_are_named_in_some_lines_only_are_shown(tmp_path):
    rows = [
        {"logits": {"A": 1.0, "B": 2.0}, "label": "A"},
        {"logits": [1, 2], "label": 0},
    ]
    write_lines(tmp_path / "a.jsonl", rows)
    assert "up to 2 options" in str(inspect(tmp_path / "a.jsonl"))


def test_runs_of_helm_with_and_without_scores_of_options_are_read_alike(tmp_path):
    """They were put together as they are, and refused for it."""
    for task, write in (("trees", write_helm_requests), ("herbs", write_helm_answers)):
        folder = tmp_path / f"{task}:model=lab_m"
        folder.mkdir()
        arrays = made(40, seed=ord(task[0]))
        write_helm_stats(folder / "per_instance_stats.json", arrays)
        write(folder / "scenario_state.json", arrays)
    done = calibrant("report", tmp_path, "--json")
    assert done.returncode == 0, done.stderr
    (model,) = json.loads(done.stdout)["evaluations"]
    assert (model["target"], model["rows"]) == ("pairs", 80)


def test_samples_fewer_than_the_summary_says_are_refused(run_folder):
    """A file that is cut off between two lines looks whole."""
    folder = run_folder / "lab__small"
    path = folder / "samples_oaks_2024-05-01T10-00-00.1.jsonl"
    whole = path.read_text().splitlines(keepends=True)
    path.write_text("".join(whole[:-1]))
    for given in (folder, path):
        done = calibrant("report", given, "--fail-if", "brier > 190%")
        assert done.returncode == 1
        assert "samples_oaks_2024-05-01T10-00-00.1.jsonl: has 79 samples" in done.stderr
    (folder / "results_2024-05-01T10-00-00.1.json").unlink()
    done = calibrant("report", folder)
    assert done.returncode == 0
    assert "of no harness" not in done.stderr


def test_samples_more_than_the_summary_says_are_refused(run_folder):
    folder = run_folder / "lab__small"
    path = folder / "samples_oaks_2024-05-01T10-00-00.1.jsonl"
    whole = path.read_text()
    more = json.loads(whole.splitlines()[0]) | {"doc_id": 999}
    path.write_text(whole + json.dumps(more) + "\n")
    done = calibrant("report", folder, "--fail-if", "brier > 190%")
    assert done.returncode == 1
    assert (
        "has 81 samples, and results_2024-05-01T10-00-00.1.json says 80" in done.stderr
    )
    path.write_text(whole + "\n")
    done = calibrant("report", folder, "--fail-if", "brier > 190%")
    assert done.returncode == 0, done.stderr


def test_compare_calls_a_question_that_stands_twice_damage(run_folder):
    """It advised to pair by order, which would have hidden it."""
    files = [
        run_folder / x / "samples_oaks_2024-05-01T10-00-00.1.jsonl"
        for x in ("lab__small", "lab__large")
    ]
    lines = files[1].read_text().splitlines(keepends=True)
    files[1].write_text("".join([*lines[:9], lines[8], *lines[10:]]))
    done = calibrant("compare", *files)
    assert done.returncode == 1
    assert "stands in the file twice); it is damaged" in done.stderr
    assert "--id" not in done.stderr

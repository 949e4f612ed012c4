"""The same answers as harnesses for language models write them.

Fields are those of files that lm-evaluation-harness 0.4.13 (`--log_samples`, its dummy
model) and Inspect 0.3.285 (`.eval` and `.json`, its mock model) wrote, and that the classes
of HELM 0.5.16 are saved as; those of the API of OpenAI after its schema.
"""

import json
import zipfile
from math import exp, isnan

LETTERS = "ABCDEFGHIJ"
CHOICES = ["oak", "a maple tree", "birch", "the tall elm", "ash"]


def questions(arrays):
    """Scores of the options of each question, and which is true; NaN is no option."""
    for scores, label in zip(arrays["logits"], arrays["labels"], strict=True):
        yield [float(x) for x in scores if not isnan(x)], int(label)


def best(scores):
    return max(range(len(scores)), key=scores.__getitem__)


def write_lines(path, records):
    path.write_text("".join(f"{json.dumps(x)}\n" for x in records), encoding="utf-8")


def lm_eval_sample(number, scores, label, choices=CHOICES, **more):
    """A line of samples_TASK_DATE.jsonl; scores are log-likelihoods."""
    texts = choices[: len(scores)]
    by_length = [x / len(text) for x, text in zip(scores, texts, strict=True)]
    return {
        "doc_id": number,
        "doc": {"question": f"q{number}", "choices": texts},
        "target": str(label),
        "arguments": {
            f"gen_args_{i}": {
                "arg_0": f"Question: q{number}\nAnswer:",
                "arg_1": f" {x}",
            }
            for i, x in enumerate(texts)
        },
        "resps": [[[str(x), "False"]] for x in scores],
        "filtered_resps": [[str(x), "False"] for x in scores],
        "filter": "none",
        "metrics": ["acc", "acc_norm"],
        "doc_hash": "d",
        "prompt_hash": "p",
        "target_hash": "t",
        "acc": float(best(scores) == label),
        "acc_norm": float(best(by_length) == label),
        **more,
    }


def lm_eval_mutual(number, scores, alone, label):
    """A line with mutual information: each option is asked for without the question too."""
    sample = lm_eval_sample(number, scores, label)
    without = lm_eval_sample(number, alone, label)
    k = len(scores)
    for i in range(k):
        option = without["arguments"][f"gen_args_{i}"] | {"arg_0": ""}
        sample["arguments"][f"gen_args_{k + i}"] = option
    for name in ("resps", "filtered_resps"):
        sample[name] = sample[name] + without[name]
    added = [x - y for x, y in zip(scores, alone, strict=True)]
    return sample | {"acc_mutual_info": float(best(added) == label)}


def lm_eval_one(number, request, answer, **more):
    """A line of a task with one request: generated text, a last word, or a whole text."""
    sample = lm_eval_sample(number, [-1.0, -2.0], 0)
    del sample["acc_norm"]
    sample["arguments"] = {"gen_args_0": {f"arg_{i}": x for i, x in enumerate(request)}}
    return sample | {"resps": [[answer]], "filtered_resps": [answer]} | more


def lm_eval_poem(number):
    asked = ["Question: q\nAnswer:", {"until": ["\n"]}]
    return lm_eval_one(number, asked, "an oak", target="oak", exact_match=0.0)


def write_lm_eval(path, arrays):
    records = (lm_eval_sample(i, *x) for i, x in enumerate(questions(arrays)))
    write_lines(path, records)


def stat(name, value):
    ends = {"sum": value, "min": value, "max": value, "mean": value}
    rest = {"sum_squared": value**2, "variance": 0.0, "stddev": 0.0}
    return {"name": {"name": name}, "count": 1, **ends, **rest}


def softmax(scores):
    top = max(scores)
    sizes = [exp(x - top) for x in scores]
    return [x / sum(sizes) for x in sizes]


def helm_stats(number, scores, label, trial=0, **more):
    """An item of per_instance_stats.json."""
    match = float(best(scores) == label)
    stats = [stat("max_prob", max(softmax(scores))), stat("exact_match", match)]
    stats += [stat("num_references", len(scores)), stat("logprob", -1.5)]
    about = {"instance_id": f"id{number}", "train_trial_index": trial}
    return {**about, "stats": stats, **more}


def write_helm_stats(path, arrays):
    records = [helm_stats(i, *x) for i, x in enumerate(questions(arrays))]
    path.write_text(json.dumps(records, indent=2), encoding="utf-8")


def helm_answer(number, text, logprob, label, k):
    """A request for the letter of an option, all of which stand in the question."""
    state = helm_request(number, 0, logprob, label, k)
    del state["reference_index"]
    state["output_mapping"] = dict(zip(LETTERS, CHOICES[:k], strict=False))
    tokens = [{"text": text, "logprob": logprob}]
    completion = {"text": text, "logprob": logprob, "tokens": tokens}
    del state["request_mode"]
    return state | {"result": helm_result(completion)}


def write_helm_answers(path, arrays):
    states = [
        helm_answer(i, f" {LETTERS[best(scores)]}", max(below_one(scores)), label, 5)
        for i, (scores, label) in enumerate(questions(arrays))
    ]
    spec = {"method": "multiple_choice_joint"}
    whole = {"adapter_spec": spec, "request_states": states}
    path.write_text(json.dumps(whole), encoding="utf-8")


def helm_request(number, place, score, label, k, mode="original"):
    """A request for one option, whose tokens end in it; the score is that of a token."""
    words = CHOICES[place].split(" ")
    tokens = [{"text": "Answer", "logprob": -3.0}, {"text": ":", "logprob": -0.1}]
    tokens += [{"text": f" {word}", "logprob": score} for word in words]
    references = [
        {"output": {"text": CHOICES[i]}, "tags": ["correct"] if i == label else []}
        for i in range(k)
    ]
    return {
        "instance": {"id": f"id{number}", "references": references, "split": "test"},
        "reference_index": place,
        "request_mode": mode,
        "train_trial_index": 0,
        "request": {"prompt": "…", "max_tokens": 0},
        "result": helm_result({"text": "", "logprob": -9.0, "tokens": tokens}),
        "num_train_instances": 0,
        "prompt_truncated": False,
        "num_conditioning_tokens": 0,
    }


def helm_result(completion):
    about = {"success": True, "embedding": [], "cached": False, "request_time": 0.1}
    return {**about, "completions": [completion]}


def write_helm_requests(path, arrays, method="multiple_choice_separate_original"):
    states = [
        helm_request(i, place, score, label, len(scores))
        for i, (scores, label) in enumerate(questions(arrays))
        for place, score in enumerate(scores)
    ]
    whole = {"adapter_spec": {"method": method}, "request_states": states}
    path.write_text(json.dumps(whole), encoding="utf-8")


def token(name, logprob, others=()):
    top = [{"token": n, "logprob": x, "bytes": None} for n, x in others]
    return {"token": name, "logprob": logprob, "bytes": None, "top_logprobs": top}


def answer_tokens(scores):
    """ANSWER: and a letter, with log-probabilities of all letters."""
    top = [(f" {LETTERS[i]}", x) for i, x in enumerate(scores)]
    top.sort(key=lambda pair: -pair[1])
    return [token("ANSWER", -0.01), token(":", 0.0), token(*top[0], top)]


def below_one(scores):
    """Log-probabilities of options, which leave a little for other tokens."""
    return [x - max(scores) - 1 for x in scores]


def inspect_sample(number, scores, label, epoch=1, score=None):
    said = LETTERS[best(scores)]
    graded = {"value": "C" if best(scores) == label else "I", "answer": said}
    choice = {
        "message": {"id": "m", "role": "assistant", "content": f"ANSWER: {said}"},
        "stop_reason": "stop",
        "logprobs": {"content": answer_tokens(below_one(scores))},
    }
    return {
        "id": number,
        "epoch": epoch,
        "input": "Which tree?",
        "choices": CHOICES[: len(scores)],
        "target": LETTERS[label],
        "messages": [{"id": "u", "role": "user", "content": "Which tree?"}],
        "output": {"model": "m", "choices": [choice], "completion": f"ANSWER: {said}"},
        "scores": {"choice": {"explanation": "…", "history": []} | (score or graded)},
        "metadata": {},
        "store": {},
        "model_usage": {},
        "total_time": 0.1,
        "uuid": "u",
        "error_retries": [],
        "attachments": {},
        "turn_count": 1,
    }


def stated_sample(number, said, right, epoch=1):
    """A sample without log-probabilities, whose scorer kept a stated confidence."""
    score = {"value": "C" if right else "I", "metadata": {"confidence": said}}
    sample = inspect_sample(number, [-1.0, -2.0], 0, epoch, score)
    del sample["output"]["choices"][0]["logprobs"]
    return sample


def inspect_header(count, task="trees", epochs=1, **more):
    config = {"epochs": epochs, "fail_on_error": True, "log_samples": True}
    data = {"name": task, "samples": count // epochs, "shuffled": False}
    about = {"task": task, "dataset": data, "model": "lab/m", "config": config}
    metrics = {"accuracy": {"name": "accuracy", "value": 0.5, "params": {}}}
    scores = [{"name": "choice", "scorer": "choice", "metrics": metrics}]
    results = {"total_samples": count, "completed_samples": count, "scores": scores}
    header = {"version": 2, "status": "success", "eval": about, "plan": {"steps": []}}
    return {**header, "results": results, "stats": {}, "invalidated": False, **more}


def write_log(path, samples, **more):
    whole = {**inspect_header(len(samples), **more), "samples": samples}
    path.write_text(json.dumps(whole), "utf-8")


def write_inspect_json(path, arrays):
    write_log(path, [inspect_sample(i, *x) for i, x in enumerate(questions(arrays))])


def write_stated(path, arrays):
    answers = [(max(softmax(x)), best(x) == label) for x, label in questions(arrays)]
    write_log(path, [stated_sample(i, *answer) for i, answer in enumerate(answers)])


def write_eval(path, samples, header=None):
    header = header or inspect_header(len(samples))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("_journal/start.json", "{}")
        for sample in samples:
            name = f"samples/{sample['id']}_epoch_{sample['epoch']}.json"
            archive.writestr(name, json.dumps(sample))
        archive.writestr("_journal/summaries/1.json", "[]")
        archive.writestr("summaries.json", "[]")
        archive.writestr("reductions.json", "[]")
        archive.writestr("header.json", json.dumps(header))


def write_inspect_eval(path, arrays):
    write_eval(path, [inspect_sample(i, *x) for i, x in enumerate(questions(arrays))])


def chat_line(number, scores, label):
    choice = {"index": 0, "logprobs": {"content": answer_tokens(below_one(scores))}}
    body = {"id": "c", "object": "chat.completion", "choices": [choice]}
    about = {"custom_id": f"q{number}", "response": {"status_code": 200, "body": body}}
    return {**about, "label": LETTERS[label]}


def write_chat(path, arrays):
    records = (chat_line(i, *x) for i, x in enumerate(questions(arrays)))
    write_lines(path, records)


def write_letters(path, arrays):
    records = (
        {"logits": dict(zip(LETTERS, scores, strict=False)), "label": LETTERS[label]}
        for scores, label in questions(arrays)
    )
    write_lines(path, records)


HARNESS_WRITERS = {
    "samples_trees_2024-05-01T10-00-00.1.jsonl": write_lm_eval,
    "per_instance_stats.json": write_helm_stats,
    "scenario_state.json": write_helm_requests,
    "scenario_state_joint.json": write_helm_answers,
    "log.json": write_inspect_json,
    "stated.json": write_stated,
    "log.eval": write_inspect_eval,
    "chat.jsonl": write_chat,
    "letters.jsonl": write_letters,
}

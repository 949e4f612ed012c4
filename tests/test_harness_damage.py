"""Every field of every harness, damaged: refused by name, or the loss is counted."""

import json
import re
import zipfile

import numpy as np
import pytest
from command import calibrant
from harness_writers import HARNESS_WRITERS, lm_eval_sample, write_lines
from test_harness_files import made

from calibrant.files import FileError, Roles, read

ROWS, BAD = 6, 2
GONE = object()
VALUES = (GONE, None, [], {}, "", "x", 12345, -7.5, float("nan"), True, [None], [[]])

PYTHON = re.compile(
    r"\w+(Error|Warning|Exception)\b|BadZipFile|NoneType|object is not|has no attribute|subscript"
    r"|not iterable|arg is|unpack|indices|could not convert|invalid literal|zip\(\)"
    r"|<class|Traceback|dtype|ufunc|numpy|unhashable|not supported between"
)
"""What Python and NumPy say themselves."""

PLACE = re.compile(
    r"\b(line|item|sample|request|instance|row) (id)?\d"
    r"|the (file|log|header) is|of a run|its header says"
)

FIELD = re.compile(r"'|is not strict JSON|(correct|confidence) must be in")


def paths_in(value, path=()):
    """Ways to all that is inside a value."""
    if isinstance(value, dict | list):
        for key, x in value.items() if isinstance(value, dict) else enumerate(value):
            yield (*path, key)
            yield from paths_in(x, (*path, key))


def damaged(record, path, value):
    """A copy, with another value at the end of a path, or none."""
    record = json.loads(json.dumps(record))
    at = record
    for key in path[:-1]:
        at = at[key]
    if value is GONE:
        del at[path[-1]]
    else:
        at[path[-1]] = value
    return record


class Lines:
    """A file of lines, of which one is damaged."""

    def __init__(self, path):
        self.path = path
        self.records = [json.loads(x) for x in path.read_text("utf-8").splitlines()]
        self.ways = [(BAD, *way) for way in paths_in(self.records[BAD])]

    def write(self, way, value):
        write_lines(self.path, damaged(self.records, way, value))


class Whole(Lines):
    """A file that is one piece of JSON; its lists are damaged in one place."""

    def __init__(self, path):
        self.path, self.records = path, json.loads(path.read_text("utf-8"))
        found = (way for way in paths_in(self.records) if self.is_one(way))
        self.ways = [way for way in found if "events" not in way]

    def is_one(self, way):
        """Whether a way is into the one record that is to be damaged, or into none."""
        start = {"samples": 1, "request_states": 1}.get(way[0], 0)
        if isinstance(way[0], str) and not start:
            return True
        return len(way) <= start or way[start] == BAD

    def write(self, way, value):
        self.path.write_text(json.dumps(damaged(self.records, way, value)), "utf-8")


class Archive(Lines):
    """An archive, of which a sample or the header is damaged."""

    def __init__(self, path):
        self.path = path
        with zipfile.ZipFile(path) as archive:
            self.records = {
                name: json.loads(archive.read(name)) for name in archive.namelist()
            }
        sample = f"samples/{BAD}_epoch_1.json"
        inside = {name: self.records[name] for name in (sample, "header.json")}
        self.ways = [way for way in paths_in(inside) if len(way) > 1]

    def write(self, way, value):
        with zipfile.ZipFile(self.path, "w") as archive:
            for name, record in damaged(self.records, way, value).items():
                archive.writestr(name, json.dumps(record))


KINDS = {"jsonl": Lines, "json": Whole, "eval": Archive}


def told_apart(found):
    """What a number is computed from: scores and truth of each row, as lists."""
    return [*zip(found.scores.tolist(), found.y.tolist(), strict=True)]


def is_possible(found):
    """Whether labels are classes and pairs are shares, which `evaluate` refuses if not."""
    if found.pairs:
        values = [*found.scores.tolist(), *found.y.tolist()]
        return all(0 <= x <= 1 for x in values)
    return found.classes is None or {*found.y.tolist()} <= {*found.classes}


def said_of(path, before, **roles):
    """What is wrong with how a damaged file was read or refused; empty if nothing is."""
    try:
        found = read(path, Roles(**roles))
    except FileError as error:
        return wrong_words(str(error), path)
    after = told_apart(found)
    if not is_possible(found):
        done = calibrant(
            "report", path, *(["--drop-missing"] if roles["drop_missing"] else [])
        )
        return wrong_words(done.stderr.strip(), path) or done.stdout
    if found.dropped:
        whole = before[:BAD] + before[BAD + 1 :]
        return "" if (found.dropped, after) == (1, whole) else "other rows"
    return "" if after == before else "silently other rows"


def wrong_words(said, path):
    if PYTHON.search(said) or not said.isprintable():
        return f"speaks Python: {said}"
    named = PLACE.search(said) and FIELD.search(said)
    if str(path) not in said or not named:
        return f"names no place or field: {said}"
    return ""


@pytest.mark.parametrize("drop_missing", [False, True])
@pytest.mark.parametrize("name", HARNESS_WRITERS)
def test_damage_is_refused_by_name_or_counted(name, drop_missing, tmp_path):
    """Each value of a record in turn is dropped, or becomes one of another type."""
    path = tmp_path / name
    HARNESS_WRITERS[name](path, made(ROWS, ragged=False))
    before = told_apart(read(path))
    file, wrong = KINDS[name.rpartition(".")[2]](path), {}
    for way in file.ways:
        for value in VALUES:
            file.write(way, value)
            problem = said_of(path, before, drop_missing=drop_missing)
            if problem and not harmless(file.records, way, value):
                shown = "gone" if value is GONE else json.dumps(value)
                wrong[f"{way}: {shown}"] = problem
    assert not wrong


def harmless(records, way, value):
    """Whether a value could have been written as it is, so that nobody can tell.

    It is another logarithm of a probability, a token that names no option or is not among
    the likeliest, or a record less of those that no header counts.
    """
    was = records
    for key in way:
        was = was[key]
    if value is GONE and (len(way) == 1 or way[-2:] == ("request_states", BAD)):
        return "samples" not in way
    if "logits" in way[:-1]:  # plain lines: any number, and options may be absent
        return value is GONE or value is None or isinstance(value, int | float)
    if "top_logprobs" in way:
        return value is GONE or isinstance(value, str) or value in (None, [], -7.5)
    if way[-1] == "value" and value is True:
        return True  # a scorer may give true or false
    is_logarithm = re.fullmatch(r"-\d+\.\d+", str(was)) and way[-1] != "mean"
    return value == -7.5 and bool(is_logarithm)


@pytest.mark.parametrize("name", HARNESS_WRITERS)
def test_a_file_that_was_cut_off_is_refused(name, tmp_path):
    """At any place, but for the end of a line, after which there may be no more."""
    path = tmp_path / name
    HARNESS_WRITERS[name](path, made(ROWS, ragged=False))
    whole = path.read_bytes()
    for end in np.linspace(1, len(whole) - 2, 60).astype(int).tolist():
        path.write_bytes(whole[:end])
        if not whole[end - 1 : end + 1].count(b"\n"):
            with pytest.raises(FileError) as caught:
                read(path)
            said = str(caught.value)
            assert str(path) in said
            assert said.isprintable()
            assert not PYTHON.search(said)


@pytest.mark.parametrize("place", [0, 1, 5])
def test_a_damaged_answer_does_not_make_a_gate_pass(place, tmp_path):
    """It was called generated text, and the file left out of the folder."""
    samples = [lm_eval_sample(i, [-1.0, -2.0], 0) for i in range(ROWS)]
    write_lines(tmp_path / "samples_good_2024-05-01T10-00-00.1.jsonl", samples)
    samples[place]["filtered_resps"] = ["an oak", "an elm"]
    write_lines(tmp_path / "samples_bad_2024-05-01T10-00-00.1.jsonl", samples)
    done = calibrant("report", tmp_path, "--fail-if", "brier > 190%")
    assert done.returncode == 1
    assert (
        f"samples_bad_2024-05-01T10-00-00.1.jsonl: line {place + 1} is" in done.stderr
    )
    assert "'filtered_resps[0]' is 'an oak', not a list" in done.stderr


@pytest.mark.parametrize("name", ["scenario_state.json", "scenario_state_joint.json"])
def test_a_failed_request_of_helm_is_missing_and_counted(name, tmp_path):
    """It was refused with a message of Python's."""
    path = tmp_path / name
    HARNESS_WRITERS[name](path, made(ROWS, ragged=False))
    whole = json.loads(path.read_text())
    failed = {"success": False, "completions": [], "error": "blocked"}
    whole["request_states"][BAD]["result"] = failed
    path.write_text(json.dumps(whole))
    refused = calibrant("report", path)
    assert refused.returncode == 1
    assert "--drop-missing" in refused.stderr
    done = calibrant("report", path, "--drop-missing")
    assert done.returncode == 0
    assert "dropped 1 of 6 examples" in done.stderr


def test_a_failed_request_of_an_api_is_missing_and_counted(tmp_path):
    path = tmp_path / "chat.jsonl"
    HARNESS_WRITERS["chat.jsonl"](path, made(ROWS, ragged=False))
    lines = [json.loads(x) for x in path.read_text().splitlines()]
    lines[0]["response"] = None
    lines[3]["response"] = {"status_code": 429, "body": {"error": {"message": "slow"}}}
    write_lines(path, lines)
    found = read(path, Roles(drop_missing=True))
    assert (len(found), found.dropped) == (ROWS - 2, 2)
    with pytest.raises(FileError, match="--drop-missing"):
        read(path)

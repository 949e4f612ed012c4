"""The fuzzer and the mutants of `reliability`, a short search, and the page about them."""

import ast
import random
import re
import subprocess
import sys
import time
import warnings
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from reliability import formats, mutants, page, results
from reliability.arcs import Arcs
from reliability.cases import Case
from reliability.choices import Choices, drawn, mutated, simpler
from reliability.commands import Done, Line, objection
from reliability.engine import (
    KINDS,
    Bench,
    Found,
    Search,
    _threads,
    minimised,
    search,
    signature,
)
from reliability.judge import Sleep, judge
from reliability.readers import _differs
from reliability.rows import Rows, rows

ROOT = Path(__file__).resolve().parent.parent
PAGE = (ROOT / "docs" / "reliability.md").read_text("utf-8")

# -- inputs ---------------------------------------------------------------------------


def test_choices_run_out_in_zeros_and_zero_is_the_first():
    c = Choices(b"\x01\x02")
    assert [c.below(256), c.one("abc"), c.one("abc"), c.chance(255)] == [
        1,
        "c",
        "a",
        False,
    ]


def test_large_choices_take_more_than_a_byte():
    assert Choices(b"\x01\x00").below(1 << 16) == 256


def test_the_same_seed_gives_the_same_inputs():
    def inputs():
        rng = random.Random(3)
        first = drawn(rng)
        return [first, *(mutated(first, [b"abc"], rng) for _ in range(20))]

    assert inputs() == inputs()
    assert len(set(inputs())) > 10


def test_simpler_inputs_are_shorter_or_have_more_zeros():
    data = bytes(range(1, 40))
    for other in simpler(data):
        assert len(other) < len(data) or other.count(0) > data.count(0)


@pytest.mark.parametrize("suffix", formats.WRITERS)
def test_every_format_gives_the_rows_that_were_written(tmp_path, suffix, part):
    from calibrant import files

    if suffix in ("parquet", "arrow", "feather"):
        part("pyarrow")
    if suffix == "safetensors":
        part("safetensors")
    for seed in range(6):
        made = rows(Choices(bytes([0, seed, 5, 1, seed])))
        if suffix == "safetensors" and any(
            a.dtype.kind == "U" for a in made.arrays.values()
        ):
            continue
        if seed == 4 and suffix in ("jsonl", "csv", "tsv"):
            continue  # ids of 64 bits are tried below
        path = tmp_path / f"{seed}.{suffix}"
        path.write_bytes(formats.WRITERS[suffix][0](Choices(b""), made, 0))
        assert _differs([files.read(path)], made) == ""


def test_other_rows_are_told_from_those_that_were_written():
    made = Rows("probs", {}, np.array([0.5]), np.array([1]))

    class Read:
        kind, scores, y = "probs", np.array([0.5]), np.array([0])

    assert "labels" in _differs([Read], made)


# -- what is allowed ------------------------------------------------------------------


def raised(error):
    def call():
        raise error

    return call


def warned():
    warnings.warn("leaked", RuntimeWarning, stacklevel=1)


def of_ours(**given):
    from calibrant import evaluate

    return lambda: evaluate([0, 1], **given)


@pytest.mark.parametrize(
    ("call", "names", "wrong", "outcome"),
    [
        (lambda: 1, (), "", "fine"),
        (lambda: 1, (), "a hole", "accepted"),
        (raised(KeyError("x")), (), "?", "traceback"),
        (raised(ValueError("inside NumPy")), (), "?", "traceback"),
        (warned, (), "?", "warning"),
        (of_ours(probs=[0.5, 2.0]), ("probs",), "?", "refused"),
        (of_ours(probs=[0.5, 2.0]), ("probs",), "", "refused though right"),
        (of_ours(probs=[0.5, 2.0]), ("saved.json",), "?", "names nothing"),
    ],
)
def test_what_is_a_finding(call, names, wrong, outcome):
    assert judge(Case("x", call, names, "", wrong)).outcome == outcome


def busy():
    """Compute for ever."""
    while True:
        pass


def test_a_hang_and_a_changed_input_are_findings(tmp_path, monkeypatch):
    monkeypatch.setattr("reliability.judge.SECONDS", 0.1)
    monkeypatch.setattr("reliability.judge.TICK", 0.02)
    assert judge(Case("x", lambda: time.sleep(60), (), "")).outcome == "hang"
    assert judge(Case("x", busy, (), "")).outcome == "hang"
    path = tmp_path / "a"
    path.write_text("old")
    changing = Case("x", lambda: path.write_text("new"), (), "", keep=(path,))
    assert judge(changing).outcome == "input changed"


def test_time_in_which_a_process_was_not_let_run_is_no_sleep(monkeypatch):
    """Seconds in the queue are none, and of those of a process stopped but two ticks."""
    times = [(1, 0, 0), (10, 0, 9), (13, 2, 9), (1013, 2, 9)]
    state = times[0]
    for name, place in (("monotonic", 0), ("process_time", 1)):
        clock = f"reliability.judge.time.{name}"
        monkeypatch.setattr(clock, lambda place=place: 1.0 * state[place])
    monkeypatch.setattr("reliability.judge._queued", lambda: 1.0 * state[2])
    monkeypatch.setattr("reliability.judge.TICK", 5.0)
    sleep = Sleep()
    for state, expected in zip(times, (0, 0, 1, 11), strict=True):  # noqa: B007
        assert sleep.seconds() == expected


def test_a_process_that_sleeps_is_told_from_one_that_computes():
    for code, expected in (("input()", "asleep"), ("while True: pass", "")):
        process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE)
        while not (told := _threads(process.pid))[1] and not expected:
            time.sleep(0.01)  # it has not begun to compute
        until = time.monotonic() + 20
        while told[0] != expected and time.monotonic() < until:
            told = _threads(process.pid)
        assert told[0] == expected
        process.kill()
        process.communicate()


@pytest.mark.parametrize(
    ("done", "said"),
    [
        (Done(0, "fine\n", ""), ""),
        (Done(1, "", "Error: no.\n"), ""),
        (Done(1, "", "Error: no.\nAnd more.\n"), "not one line"),
        (Done(0, "\x1b[31m", ""), "control character"),
        (Done(7, "", ""), "exit code 7"),
    ],
)
def test_what_a_command_may_print(done, said, tmp_path):
    assert said in objection(done, Line(tmp_path, ["report"]))
    assert bool(said) == bool(objection(done, Line(tmp_path, ["report"])))


def test_steps_through_our_code_are_new_once():
    from calibrant._base.checks import check_choice

    arcs = Arcs()
    for expected in (True, False):
        with arcs.watched():
            check_choice(1, "a", (1,))
        assert bool(arcs.new) is expected
    with arcs.watched(), pytest.raises(ValueError):
        check_choice(2, "a", (1,))
    assert arcs.new


# -- a short search -------------------------------------------------------------------

BRIEF = {
    "readers": 120, "harness": 200, "records": 250, "api": 120, "command": 60, "engines": 200,
}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_a_short_search_finds_nothing_new(kind, part, monkeypatch):
    """Some of the kept corpus, and changes of it; `make fuzz` goes on from what is new.

    The inputs do not depend on the steps they reach, which differ between machines.
    """
    monkeypatch.setattr("reliability.judge.SECONDS", 100)  # the machine may be busy
    for name in ("pyarrow", "safetensors", "pandas"):
        part(name)
    kept, rng = results.read_corpus(kind, results.CORPUS), random.Random(0)
    inputs = rng.sample(kept, min(len(kept), BRIEF[kind] // 2))
    while len(inputs) < BRIEF[kind]:
        inputs.append(mutated(rng.choice(kept), kept, rng))
    until = time.monotonic() + 300
    found = search(Found(kind), inputs, "test", len(inputs), until, bool)
    known = results.load(results.RESULTS)["findings"]
    open_ones = {name for name, finding in known.items() if not finding["mended"]}
    assert set(found.findings) - open_ones == set(), found.findings
    assert found.outcomes["fine"] > BRIEF[kind] / 20
    assert found.outcomes["refused"] > BRIEF[kind] / 20


def test_the_same_input_is_the_same_case_again():
    rng = random.Random(5)
    for data in [drawn(rng) for _ in range(20)]:
        shown = set()
        for _ in range(2):
            bench = Bench("records")
            shown.add(bench.try_out(data)[1])
            bench.close()
        assert len(shown) == 1


def test_a_finding_is_made_simple(monkeypatch):
    def builder(c, home):
        c.below(256)
        bad = c.below(256) > 100
        return Case("x", raised(KeyError("x")) if bad else bool, (), "")

    monkeypatch.setitem(KINDS, "records", builder)
    data = bytes(range(150, 250))
    found = search(Found("records"), [data], "s", 1, time.monotonic() + 60, bool)
    (name,) = found.findings
    assert name == "records | traceback | outside:"
    assert minimised("records", data, name) in (b"\0\x97", b"\x96\x97")


def test_inputs_of_a_dear_sort_are_tried_less_often(monkeypatch):
    ran = Counter()

    def builder(c, home):
        about = "dear" if c.below(2) else "cheap"
        return Case(about, lambda: ran.update([about]), (), "")

    monkeypatch.setitem(KINDS, "records", builder)
    found = Found("records", means={"dear ": 0.3, "cheap ": 0.0}, arcs={1})
    bench = Bench("records")
    work = Search(found, random.Random(1), bench, bool, [])
    for _ in range(400):
        work.step()
    bench.close()
    assert ran["cheap"] > 100
    assert ran["dear"] < 40
    assert found.inputs == sum(ran.values())


def test_of_the_old_corpus_only_what_leads_somewhere_is_kept(monkeypatch):
    from calibrant._base.checks import check_choice

    def builder(c, home):
        what = c.below(2)
        return Case("x", lambda: check_choice(1, "a", (1,)) if what else None, (), "")

    monkeypatch.setitem(KINDS, "records", builder)
    old = [b"\0", b"\1", b"\1\1"]
    found = search(Found("records"), old, "s", 3, time.monotonic() + 60, bool)
    assert found.corpus == [b"\1"]


# -- figures --------------------------------------------------------------------------


def test_figures_add_up_over_runs():
    stored = {"kinds": {}, "findings": {}}
    for _ in range(2):
        found = Found("api", inputs=3, seconds=1.0)
        found.about = {"evaluate": Counter(fine=2, traceback=1)}
        found.findings = {
            "api | traceback | x": {"count": 1, "input": "", "said": "", "shown": ""}
        }
        results.fold(stored, found)
    assert stored["kinds"]["api"]["inputs"] == 6
    assert page.outcomes(stored["kinds"]["api"]) == {"fine": 4, "traceback": 2}
    assert stored["findings"]["api | traceback | x"]["count"] == 2


def test_a_corpus_comes_back_and_keeps_to_its_room(tmp_path, monkeypatch):
    monkeypatch.setattr(results, "MOST_BYTES", 10)
    results.write_corpus("api", [b"abc", b"defgh", b"too long for it"], tmp_path)
    assert results.read_corpus("api", tmp_path) == [b"abc", b"defgh"]


def test_the_committed_corpus_is_small():
    assert sum(path.stat().st_size for path in results.CORPUS.iterdir()) < 400_000


@pytest.mark.parametrize("name", ["fuzz.md", "mutants.md", "kills.md"])
def test_the_committed_pages_are_made_of_the_committed_results(name):
    assert (results.HERE / name).read_text("utf-8") == page.pages()[name]


# -- mutants --------------------------------------------------------------------------


def changes(text):
    (node,) = ast.parse(text).body
    found = [x for inner in ast.walk(node) for x in mutants._changes(inner)]
    return {new for _, new in found}


@pytest.mark.parametrize(
    ("text", "new"),
    [
        ("x = a < b", "(a <= b)"),
        ("x = a + b", "(a - b)"),
        ("x = 3", "4"),
        ("x = True", "False"),
        ("x = a and b", "(a or b)"),
        ("x = not a", "(a)"),
        ("f(a)", "pass"),
        ("x = np.minimum(a, b)", "np.maximum(a, b)"),
        ("x = f(a, b)", "f(b, a)"),
        ("x = f(a, axis=1)", "f(a)"),
        ("x = 'text' + b", None),
    ],
)
def test_changes_of_the_code(text, new):
    assert new in changes(text) if new else changes(text) == set()


def test_a_mutant_is_one_change_of_the_file(tmp_path):
    path = tmp_path / "src" / "calibrant" / "_rows" / "a.py"
    path.parent.mkdir(parents=True)
    text = '"""Doc 1."""\n\n\ndef f(x: int = 2) -> int:\n    raise ValueError(1 + 2)\n\n\ny = é < 3\n'
    path.write_text(text, "utf-8")
    made = list(mutants.sample(["_rows"], random.Random(0), tmp_path))
    assert {mutant.line for mutant in made} == {8}
    for mutant in mutants.mutants_of(path, tmp_path):
        whole = text.encode()
        changed = whole[: mutant.start] + mutant.new.encode() + whole[mutant.end :]
        assert changed.decode() in (
            text.replace("é < 3", "(é <= 3)"),
            text.replace("3", "4"),
            text.replace("< 3", "< 2"),
        )


def test_mutants_are_drawn_alike_for_a_seed():
    def some():
        found = mutants.sample(["_rows"], random.Random(2), ROOT)
        return [next(found).key for _ in range(10)]

    assert some() == some()
    assert len(set(some())) == 10


def test_tests_that_speak_of_a_file_come_first():
    tests = mutants.tests_of("src/calibrant/_stats/ladder.py", ROOT, {})
    assert tests[0] == "test_ladder.py"


def test_tests_that_take_the_line_and_little_else_come_first():
    taken = mutants.Taken(
        {"src/a.py": {7: ["test_b.py::test_wide", "test_a.py::test_narrow"]}},
        Counter({"test_b.py::test_wide": 900, "test_a.py::test_narrow": 3}),
    )
    mutant = mutants.Mutant("src/a.py", 7, 0, 1, "a", "b", "x")
    assert taken.by(mutant) == ["test_a.py::test_narrow", "test_b.py::test_wide"]
    assert taken.by(replace(mutant, line=8)) == []


@pytest.mark.parametrize(
    ("context", "test"),
    [
        ("test_bins.test_x", "test_bins.py::test_x"),
        ("tests.test_bins.test_x", "test_bins.py::test_x"),
        ("calibrant._stats.bins.width", ""),
        ("test_docs.test_x", ""),
        ("", ""),
    ],
)
def test_contexts_are_read_as_tests(context, test):
    assert mutants._node(context) == test


def test_results_of_two_machines_add_up():
    found = Found("api", inputs=3, seconds=1.0)
    found.about = {"evaluate": Counter(fine=2, traceback=1)}
    found.findings = {"a": {"count": 1, "input": "", "said": "", "shown": ""}}
    one, other = ({"kinds": {}, "findings": {}} for _ in range(2))
    results.fold(one, found)
    results.fold(other, found)
    other["findings"]["a"]["mended"] = True
    results.add(one, other)
    assert one["kinds"]["api"]["inputs"] == 6
    assert one["kinds"]["api"]["about"] == {"evaluate": {"fine": 4, "traceback": 2}}
    assert one["findings"]["a"]["count"] == 2
    assert not one["findings"]["a"]["mended"]


# -- the page -------------------------------------------------------------------------


def promised():
    return sorted(set(re.findall(r"`(tests/[\w./]+)(?:::(\w+))?`", PAGE)))


@pytest.mark.parametrize(("file", "name"), promised())
def test_a_promise_names_a_test_that_is_there(file, name):
    path = ROOT / file
    assert path.exists()
    assert not name or f"def {name}(" in path.read_text("utf-8")


def test_every_promise_has_a_test():
    table = [
        line
        for line in PAGE.splitlines()
        if line.startswith("| ") and "---" not in line
    ]
    assert len(table) > 10
    assert all("tests/" in line or line.startswith("| promise") for line in table)


def test_what_the_page_takes_over_is_there():
    taken = re.findall(
        r'{include} \.\./(.*)\n:start-after: "(.*)"\n:end-before: "(.*)"', PAGE
    )
    assert len(taken) == 7
    for file, start, end in taken:
        part = (ROOT / file).read_text("utf-8").partition(start)[2].partition(end)
        assert part[0].strip()
        assert part[1]


def test_findings_are_told_apart_by_place():
    from reliability.judge import Verdict

    one, other = (
        Verdict("traceback", "a.py:f", "x"),
        Verdict("traceback", "a.py:g", "x"),
    )
    assert signature("api", one) != signature("api", other)
    assert signature("api", one) == signature(
        "api", Verdict("traceback", "a.py:f", "y")
    )


# -- what was found, and is mended ----------------------------------------------------


def test_both_infinities_in_a_row_are_refused_without_a_warning():
    from calibrant import accuracy

    with pytest.raises(ValueError, match="probs must be rows of probabilities"):
        accuracy([0, 1], probs=[[0.5, 0.5], [np.inf, -np.inf]], target="top-label")


def test_branches_are_added_up_by_package():
    counts = {"num_statements": 8, "missing_lines": 1, "num_branches": 4}
    about = {"summary": {**counts, "missing_branches": 1}}
    files = {f"src/calibrant/{x}.py": about for x in ("_base/a", "_base/b", "_rows/c")}
    found = page.branches_by_package({"files": files})
    assert found == {"_base": [16, 2, 8, 2], "_rows": [8, 1, 4, 1]}
    assert "| all | 24 | 87.5 % | 12 | 75.0 % |" in page.branch_page(found)
    assert "Not measured yet." in page.branch_page({})

"""Files as people have them, and what the command says of them."""

import gzip
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command import calibrant as run
from file_writers import write_npz
from make import over_confident

import calibrant as cal
from calibrant.files import FileError, Roles, batches, inspect, read

CALIBRANT = Path(sys.executable).with_name("calibrant")
P, CHANCE = np.random.default_rng(0).random((2, 200)).round(3)
Y = CHANCE < P


def numbers(done):
    """Brier score, number of examples and name of the first model."""
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)["evaluations"][0]
    return (
        pytest.approx(found["metrics"]["brier"]["value"]),
        found["rows"],
        found["name"],
    )


def report(path, *more, stdin=None):
    path = Path(path)
    return run("report", path.name, "--json", *more, cwd=path.parent, stdin=stdin)


def expected(p=P, y=Y):
    return cal.brier(y, probs=p), len(y)


def csv(sep=",", point=".", sign="", words=("0", "1"), scale=1):
    lines = [f"prob{sep}outcome"]
    lines += [
        f"{scale * p:.6g}".replace(".", point) + sign + sep + words[y]
        for p, y in zip(P, Y.astype(int), strict=True)
    ]
    return "\n".join(lines) + "\n"


SPELLINGS = {
    "semicolons": ({"sep": ";"}, ["--sep", ";"]),
    "commas": ({"sep": ";", "point": ","}, ["--sep", ";", "--decimal", ","]),
    "per cent": ({"sign": "%", "scale": 100}, ["--percent"]),
    "a space": ({"sign": " %", "scale": 100}, ["--percent"]),
    "0 to 100": ({"scale": 100}, ["--percent"]),
    "all": (
        {"sep": "|", "point": ",", "sign": "%", "scale": 100},
        ["--sep", "|", "--decimal", ",", "--percent"],
    ),
    "yes and no": ({"words": ("no", "yes")}, []),
    "No and Yes": ({"words": ("No", "Yes")}, []),
    "True and False": ({"words": ("False", "True")}, []),
}


@pytest.mark.parametrize("case", SPELLINGS)
def test_numbers_and_labels_may_be_spelt_as_people_do(case, tmp_path):
    spelt, options = SPELLINGS[case]
    (tmp_path / "a.csv").write_text(csv(**spelt))
    brier, n, _ = numbers(report(tmp_path / "a.csv", *options))
    assert (brier, n) == expected()


@pytest.mark.parametrize(
    ("spelt", "options", "said"),
    [
        ({"sep": ";"}, [], "columns are separated by ';', not ','; pass --sep ';'"),
        ({"sep": ";", "point": ","}, ["--sep", ";"], "pass --decimal ,."),
        ({"sign": "%"}, [], "pass --percent."),
        (
            {"sep": ";", "point": ",", "sign": "%"},
            ["--sep", ";"],
            "--decimal , and --percent",
        ),
        ({"words": ("no", "maybe")}, [], "labels are text ("),
    ],
)
def test_errors_name_the_option_that_reads_it(spelt, options, said, tmp_path):
    (tmp_path / "a.csv").write_text(csv(**spelt))
    done = report(tmp_path / "a.csv", *options)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: a.csv: ")
    assert said in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--sep", "ab"], "'--sep': must be a single character, or tab; got 'ab'."),
        (["--sep", ",", "--decimal", ","], "sep and decimal must differ"),
        (["--percent", "--logits", "prob"], "holds logits, which are never --percent"),
    ],
)
def test_options_that_contradict_are_refused(options, said, tmp_path):
    (tmp_path / "a.csv").write_text(csv())
    done = report(tmp_path / "a.csv", *options)
    code = 2 if "'--sep'" in said else 1  # no value that it can have
    assert (done.returncode, said in done.stderr) == (code, True), done.stderr


def test_a_separator_is_for_text_tables_only(tmp_path):
    write_npz(tmp_path / "a.npz", {"prob": P, "outcome": Y})
    done = report(tmp_path / "a.npz", "--sep", ";")
    assert done.returncode == 1
    assert "a.npz: is no .csv or .tsv file, so --sep ';' does not apply" in done.stderr


def test_correct_may_be_said_in_words(tmp_path):
    words = np.where(Y, "Yes", "no")
    lines = [
        json.dumps({"confidence": p, "correct": w})
        for p, w in zip(P, words, strict=True)
    ]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(lines))
    assert read(path).y.tolist() == Y.tolist()
    write_npz(tmp_path / "a.npz", {"confidence": P, "correct": words})
    assert read(tmp_path / "a.npz").y.tolist() == Y.tolist()
    path.write_text(
        "\n".join([*lines, json.dumps({"confidence": 1, "correct": "maybe"})])
    )
    with pytest.raises(
        FileError, match=r"row 200 of 'correct' is 'maybe'; it must be 1 or 0"
    ):
        read(path)


# -- packed text, JSON, standard input ---------------------------------------------------


def zst(content):
    """A frame as the zstd command writes it, to a stream."""
    arrow = pytest.importorskip("pyarrow")
    sink = arrow.BufferOutputStream()
    with arrow.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(content)
    return sink.getvalue().to_pybytes()


@pytest.mark.parametrize("pack", [gzip.compress, zst])
def test_packed_text_is_read_and_named_in_errors(pack, tmp_path):
    path = tmp_path / f"scores.csv.{'gz' if pack is gzip.compress else 'zst'}"
    path.write_bytes(pack(csv().encode()))
    assert numbers(report(path)) == (*expected(), "scores")
    (tmp_path / "shards").mkdir()
    path.rename(tmp_path / "shards" / path.name)
    assert numbers(report(tmp_path / "shards"))[1] == 200
    path.write_bytes(pack(csv().replace(f"\n{P[1]:.6g},", "\nx,", 1).encode()))
    done = report(path)
    assert done.stderr.startswith(
        f"Error: {path.name}: row 1 of 'prob' is NaN, missing"
    )
    path.write_bytes(pack(b"prob,outcome\n0.5,1\n0.5,1,7\n"))
    assert report(path).stderr.startswith(f"Error: {path.name}: ")
    path.write_bytes(b"not packed at all")
    assert report(path).stderr.startswith(f"Error: {path.name}: cannot be read")


def test_packed_text_may_not_unpack_to_anything(tmp_path, monkeypatch):
    from calibrant.files import _sources

    monkeypatch.setattr(_sources, "SMALL", 1000)
    path = tmp_path / "a.csv.gz"
    path.write_bytes(gzip.compress(b"prob,outcome\n" + b"0.5,1\n" * 100_000))
    with pytest.raises(FileError, match="more than 64 times as much"):
        read(path)


def records():
    return [{"prob": float(p), "outcome": bool(y)} for p, y in zip(P, Y, strict=True)]


@pytest.mark.parametrize(
    "content", [records(), {"prob": P.tolist(), "outcome": Y.tolist(), "model": "mine"}]
)
def test_json_arrays_are_read(content, tmp_path):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(content))
    assert numbers(report(path)) == (*expected(), "a")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[1, 2]", "must be an array of objects"),
        ("3", "must be an array of objects"),
        ("[]", "has no rows"),
        ('{"prob": [0.5], "outcome": [1, 0]}', "arrays of the same length"),
        ('{"version": 1}', "arrays of the same length"),
        ('[{"prob": NaN}]', "the file is not strict JSON"),
        (
            '[{"prob": 0.5, "outcome": 1}, {"prob": 0.5}]',
            "'outcome' is missing in item 2",
        ),
        (
            '[{"prob": 0.5, "outcome": 1}, {"prob": "x", "outcome": 1}]',
            "is 'x' in item 2",
        ),
    ],
)
def test_json_is_strict(text, said, tmp_path):
    (tmp_path / "a.json").write_text(text)
    with pytest.raises(FileError, match=re.escape(said)):
        read(tmp_path / "a.json")


def test_large_json_is_to_be_lines(tmp_path, monkeypatch):
    monkeypatch.setattr("calibrant.files._jsonl.LARGEST", 100)
    (tmp_path / "a.json").write_text(json.dumps(records()))
    with pytest.raises(FileError, match=r"save one object per line, as \.jsonl"):
        read(tmp_path / "a.json")


def on_stdin(tmp_path):
    write_npz(tmp_path / "a.npz", {"prob": P, "outcome": Y})
    return {
        "csv": csv().encode(),
        "tsv": csv(sep="\t").encode(),
        "jsonl": "\n".join(map(json.dumps, records())).encode(),
        "json": json.dumps(records()).encode(),
        "npz": (tmp_path / "a.npz").read_bytes(),
    }


def test_standard_input_is_read_by_what_it_begins_with(tmp_path):
    for kind, content in on_stdin(tmp_path).items():
        done = run("report", "-", "--json", cwd=tmp_path, stdin=content)
        assert numbers(done) == (*expected(), "stdin"), kind


def test_errors_about_standard_input_name_it(tmp_path):
    for content, said in {
        b"": "standard input: is empty.",
        b"a,b\n1,2\n": "standard input: has 'a', 'b', none of them known",
        b"prob,outcome\n0.5,7\n": "standard input: ",
        gzip.compress(b"x"): "standard input: holds gzip",
    }.items():
        done = run("report", "-", cwd=tmp_path, stdin=content)
        assert (done.returncode, done.stderr.startswith(f"Error: {said}")) == (
            1,
            True,
        ), done.stderr
        assert "/" not in done.stderr.replace("--", "")
    twice = run("compare", "-", "-", cwd=tmp_path, stdin=b"x")
    assert "- is standard input, which can be read once only" in twice.stderr


def test_standard_input_leaves_no_file_behind(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    done = run("inspect", "-", cwd=tmp_path, stdin=csv().encode())
    assert "200 examples" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_objects_of_numbers_are_scores_by_the_name_of_the_option(tmp_path):
    lines = [{"logits": {"A": -0.1, "B": -2.3}, "y": "A"}]
    found = read(write_lines(tmp_path / "a.jsonl", lines))
    assert (found.classes, found.scores.tolist()) == (("A", "B"), [[-0.1, -2.3]])


# -- what is missing ---------------------------------------------------------------------


def answers(*lacking, step=1):
    rows = [
        {"id": f"q{i}", "confidence": float(p), "correct": bool(y)}
        for i, (p, y) in enumerate(zip(P, Y, strict=True))
    ]
    for i in lacking:
        rows[i]["confidence"] = None
    return rows[::step]


def write_lines(path, rows):
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def test_missing_values_can_be_dropped_and_are_counted(tmp_path):
    rows = answers(3, 50)
    del rows[0]["confidence"], rows[7]["correct"]
    path = write_lines(tmp_path / "a.jsonl", rows)
    refused = report(path)
    assert refused.returncode == 1
    assert "--drop-missing" in refused.stderr
    done = report(path, "--drop-missing")
    kept = np.setdiff1d(np.arange(200), [0, 3, 7, 50])
    want = cal.evaluate_pairs(Y[kept], P[kept]).metrics["brier"]
    assert numbers(done)[:2] == (want, 196)
    said = (
        "note: a.jsonl: dropped 4 of 200 examples with a missing score, label or weight"
    )
    assert done.stderr == f"{said}; 1 of them has a score\n"
    assert report(path, "--drop-missing", "-q").stderr == ""


def test_how_many_are_missing_is_said_where_they_are_refused(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", answers(3, 50))
    assert (
        "row 3 of 'confidence' is NaN, missing or not a number (2 of 200 rows are)"
        in (report(path).stderr)
    )


def test_a_word_among_stated_confidences_has_a_way_out_in_the_first_message(tmp_path):
    cells = [f"{p:.3f}" for p in P]
    cells[3] = "n/c"
    lines = [f"{a},{int(b)}" for a, b in zip(cells, Y, strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(["confidence,correct", *lines]))
    refused = report(tmp_path / "a.csv")
    assert "row 3 of 'confidence' is NaN, missing or not a number" in refused.stderr
    assert "say what words mean (--scale 'unsure=0.5')" in refused.stderr
    assert report(tmp_path / "a.csv", "--scale", "n/c=0.5").returncode == 0


@pytest.mark.parametrize("more", [(), ("--group", "group")])
def test_examples_without_a_group_are_left_out_though_nobody_named_it(tmp_path, more):
    lines = [
        f"{p:.3f},{int(y)},{'' if i % 20 == 3 else 'uv'[i % 2]}"
        for i, (p, y) in enumerate(zip(P, Y, strict=True))
    ]
    (tmp_path / "a.csv").write_text("\n".join(["confidence,correct,group", *lines]))
    assert "row 3 has none" in report(tmp_path / "a.csv", *more).stderr
    done = report(tmp_path / "a.csv", "--drop-missing", *more)
    assert numbers(done)[1] == 190
    assert "dropped 10 of 200 examples" in done.stderr


def test_rows_are_counted_as_in_the_file_where_some_were_dropped(tmp_path):
    rows = answers(3, 50)
    rows[60]["confidence"] = 1.5
    path = write_lines(tmp_path / "a.jsonl", rows)
    said = report(path, "--drop-missing").stderr
    assert "row 60 " in said


@pytest.mark.parametrize("command", ["report", "sketch", "study"])
def test_other_commands_and_batches_drop_too(command, tmp_path, monkeypatch):
    cells = [
        f"{p},{int(y)}" if i % 20 else f",{int(y)}"
        for i, (p, y) in enumerate(zip(P, Y, strict=True))
    ]
    (tmp_path / "a.csv").write_text("\n".join(["prob,outcome", *cells]))
    more = {"sketch": ["-o", "s.npz"], "study": ["--methods", "temperature"]}.get(
        command, []
    )
    monkeypatch.setattr("calibrant.cli._output.IN_MEMORY", 0)
    done = run(command, "a.csv", "--drop-missing", *more, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "note: a.csv: dropped 10 of 200 examples" in done.stderr


# -- weights and other columns taken by name ----------------------------------------------


def test_columns_taken_by_name_are_announced(tmp_path):
    weight = np.linspace(1, 3, 200)
    columns = {
        "prob": P,
        "outcome": Y,
        "weight": weight,
        "cluster": np.arange(200) // 2,
    }
    write_npz(tmp_path / "a.npz", columns)
    lines = report(tmp_path / "a.npz").stderr.splitlines()
    assert lines == [
        "note: a.npz: using column 'weight' as sample weights (weights sum to 400)",
        "note: a.npz: using column 'cluster' as clusters of dependent examples",
    ]
    said = report(tmp_path / "a.npz", "--weight", "", "--cluster", "cluster")
    assert said.stderr == ""
    assert "1 model, 200 examples" in run("report", "a.npz", cwd=tmp_path).stdout


# -- compare -----------------------------------------------------------------------------


def compare(folder, *more):
    return run("compare", "a.jsonl", "b.jsonl", *more, cwd=folder)


def brier_of(done):
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)["differences"]["b"]["brier"]


@pytest.fixture
def two(tmp_path):
    """Two models' answers to the same questions, in opposite orders."""
    write_lines(tmp_path / "a.jsonl", answers())
    other = [{**row, "confidence": row["confidence"] ** 2} for row in answers()]
    write_lines(tmp_path / "b.jsonl", other[::-1])
    return tmp_path, other


def test_examples_are_paired_by_their_ids(two):
    folder, other = two
    a, b = (cal.evaluate_pairs(Y, p, name=n) for p, n in ((P, "a"), (P**2, "b")))
    want = cal.compare(a, b).differences["b"]["brier"]
    done = compare(folder, "--json")
    found = brier_of(done)
    assert (found["value"], found["interval"]) == (
        pytest.approx(want),
        pytest.approx(want.interval),
    )
    assert done.stderr == (
        "note: examples are paired by column 'id'; their order differs between the files\n"
    )
    by_order = compare(folder, "--json", "--id", "")
    assert brier_of(by_order)["interval"] != pytest.approx(want.interval)
    assert "Pairs carry no labels" in compare(folder, "--id", "").stdout
    assert "Pairs carry no labels" not in compare(folder).stdout
    write_lines(folder / "b.jsonl", other)
    same = compare(folder, "--json")
    assert (same.stderr, brier_of(same)["value"]) == ("", pytest.approx(want))


def differences_on(path):
    page = path.read_text()
    part = page[page.index('id="h-differences"') :]
    return part[: part.index("</section>")]


def test_the_page_of_report_pairs_by_ids_as_compare_does(two):
    folder, other = two
    assert compare(folder, "-q", "-o", "compared.html").returncode == 0
    done = run("report", "a.jsonl", "b.jsonl", "-o", "told.html", cwd=folder)
    assert "note: examples are paired by column 'id'; their order" in done.stderr
    told = differences_on(folder / "told.html")
    assert told == differences_on(folder / "compared.html")
    assert "Pairs carry no labels" not in told
    write_lines(folder / "b.jsonl", [*other[1:], {**other[0], "id": "new"}])
    run("report", "a.jsonl", "b.jsonl", "-q", "-o", "apart.html", cwd=folder)
    apart = differences_on(folder / "apart.html")
    assert "its ids differ from those of a" in apart
    assert "paired, example by example ·" not in apart


def test_files_of_which_one_has_no_ids_are_paired_by_order(two):
    folder, other = two
    plain = [{k: v for k, v in row.items() if k != "id"} for row in other]
    write_lines(folder / "b.jsonl", plain)
    run("report", "a.jsonl", "b.jsonl", "-q", "-o", "told.html", cwd=folder)
    assert "Pairs carry no labels" in differences_on(folder / "told.html")


def test_ids_that_differ_are_refused(two):
    folder, other = two
    write_lines(folder / "b.jsonl", [*other[1:], {**other[0], "id": "new"}])
    done = compare(folder)
    assert done.returncode == 1
    assert "has no example with the id " in done.stderr
    assert "(2 ids are in one file only)" in done.stderr
    assert "leave out the others (--drop-missing)" in done.stderr
    assert compare(folder, "--unpaired", "-q").returncode == 0
    write_lines(folder / "b.jsonl", [{**row, "id": "same"} for row in other])
    assert (
        "b.jsonl: 'id' repeats, and is not the same in every file"
        in compare(folder).stderr
    )


def test_ids_may_have_another_name(two):
    folder, other = two
    for name, rows in {"a": answers(), "b": other[::-1]}.items():
        named = [
            {**{k: v for k, v in x.items() if k != "id"}, "q": x["id"]} for x in rows
        ]
        write_lines(folder / f"{name}.jsonl", named)
    assert "paired by column 'q'" in compare(folder, "--id", "q", "--json").stderr


@pytest.mark.parametrize("ids", [True, False])
def test_examples_missing_in_one_file_are_dropped_from_both(ids, tmp_path):
    a, b = answers(1, 2), answers(2, 3)
    b = [
        {**row, "confidence": row["confidence"] and row["confidence"] ** 2} for row in b
    ]
    if not ids:
        for row in (*a, *b):
            del row["id"]
    write_lines(tmp_path / "a.jsonl", a)
    write_lines(tmp_path / "b.jsonl", b)
    done = compare(tmp_path, "--drop-missing", "--json")
    kept = np.setdiff1d(np.arange(200), [1, 2, 3])
    x, y = (
        cal.evaluate_pairs(Y[kept], p[kept], name=n) for p, n in ((P, "a"), (P**2, "b"))
    )
    want = cal.compare(x, y).differences["b"]["brier"]
    assert brier_of(done)["interval"] == pytest.approx(want.interval)
    assert (
        "note: compared on the 197 examples that are complete in every file"
        in done.stderr
    )
    if not ids:
        write_lines(tmp_path / "b.jsonl", b[:-1])
        assert (
            "differ in their numbers of examples"
            in compare(tmp_path, "--drop-missing").stderr
        )


def test_compare_writes_a_page(two):
    folder, _ = two
    done = compare(folder, "-o", "page.html", "--title", "Two models")
    assert done.returncode == 0, done.stderr
    assert "report: page.html" in done.stdout
    page = (folder / "page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert "Two models" in page
    assert max(map(len, done.stdout.splitlines())) <= 88
    again = compare(folder, "-o", "page.html")
    assert (again.returncode, "pass --force" in again.stderr) == (1, True)


# -- options of evaluate ------------------------------------------------------------------


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    y, z = over_confident(300, 3)
    for name, scale in {"a": 1, "b": 2}.items():
        np.savez(folder / f"{name}.npz", logits=z / scale, labels=y)
    return folder, y, z


@pytest.mark.parametrize("command", ["report", "compare", "study"])
@pytest.mark.parametrize(
    "options",
    [{"preset": "paper"}, {"bandwidth": 0.1, "kernel": "epanechnikov"}],
    ids=lambda given: next(iter(given)),
)
def test_presets_and_kernels_are_those_of_the_library(command, options, model):
    folder, y, z = model
    said = [word for name, value in options.items() for word in (f"--{name}", value)]
    files = {"compare": ["a.npz", "b.npz"]}.get(command, ["a.npz"])
    done = run(command, *files, "--json", *said, cwd=folder)
    found = json.loads(done.stdout)["evaluations"][0]
    if command == "study":
        ev = cal.study(y, logits=z, **options)[0]
    else:
        ev = cal.evaluate(y, logits=z, **options)
    parts = found["decompositions"]["brier"]
    assert parts["calibration"]["value"] == pytest.approx(
        float(ev.decomposition.calibration)
    )
    assert found["settings"]["kernel"] == options.get("kernel", "gaussian")


# -- errors speak of options, and name the file -------------------------------------------

SAID = {
    "target='positive' needs a binary problem": "--target positive needs a binary problem",
    "pass exactly one of probs=, logits= and confidence=;": (
        "pass exactly one of --probs, --logits and --confidence;"
    ),
    "preset='paper' means bandwidth=0.05, got bandwidth=0.1.": (
        "--preset paper means --bandwidth 0.05, got --bandwidth 0.1."
    ),
    "in the same order, or pass paired=False.": "in the same order, or pass --unpaired.",
    "Name them with evaluate(..., name=...).": "Name them with --names A,B.",
    "pass classes=[...], the names": "pass --classes A,B,..., the names",
    "sums to 1. Use Identity(scores='probs').": "sums to 1. Name them with --probs.",
    "Give both the same cluster=.": "Give both the same --cluster.",
    "it exists; pass force=True to replace it.": "it exists; pass --force to replace it.",
    "they are 0 to 100: divide them by 100.": "they are 0 to 100: divide them by 100 (--percent).",
    "label=2/part-1.csv: is empty.": "label=2/part-1.csv: is empty.",
    "there is no folder runs/group=a.": "there is no folder runs/group=a.",
    "column 'P(y=1|x), %' is text; pass logits=.": (
        "column 'P(y=1|x), %' is text; pass --logits."
    ),
    'column "it\'s y=1" is text': 'column "it\'s y=1" is text',
    "y=run.csv: is empty; bins=20 of 'bins=15' (level=0.9).": (
        "y=run.csv: is empty; --bins 20 of 'bins=15' (--level 0.9)."
    ),
    "'a' has level 0.9. Evaluate it with level=0.95.": (
        "'a' has level 0.9. Evaluate it with --level 0.95."
    ),
    "rng must be a whole number from 0 on or a numpy.random.Generator, got -1.": (
        "--seed must be a whole number from 0 on, got -1."
    ),
    "a model's y=... is not another's y=.": "a model's --label... is not another's --label.",
    "save it: numpy.savez('a.npz', logits=..., y=z); or pass probs=.": (
        "save it: numpy.savez('a.npz', logits=..., y=z); or pass --probs."
    ),
}


@pytest.mark.parametrize(("text", "said"), SAID.items())
def test_errors_of_the_library_become_those_of_the_command(text, said):
    from calibrant.cli._flags import in_options

    assert in_options(text) == said


PYTHON = re.compile(r"\b[a-z_]+=(?!\S*/)")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["report", "two.npz"], "two.npz: probs has two columns"),
        (["report", "a.npz", "--target", "positive"], "a.npz: --target positive needs"),
        (
            ["report", "a.npz", "--preset", "paper", "--bandwidth", "0.2"],
            "--preset paper means",
        ),
        (["report", "a.npz", "a.npz", "--names", "x,x"], "--names"),
        (["report", "a.npz", "--level", "2"], "--level must be between 0 and 1"),
        (["compare", "a.npz", "short.npz"], "--unpaired"),
        (["study", "a.npz", "--probs", "logits"], "a.npz: "),
        (["recalibrate", "--fit", "a.npz", "--probs", "logits"], "a.npz: "),
        (["report", "a.npz", "--probs", "logits"], "--logits"),
    ],
)
def test_no_error_speaks_python(arguments, said, model):
    folder, y, z = model
    np.savez(folder / "two.npz", probs=np.full((40, 2), 0.5), labels=y[:40] % 2)
    np.savez(folder / "short.npz", logits=z[:100], labels=y[:100])
    done = run(*arguments, cwd=folder)
    assert done.returncode in (1, 2)
    assert said in done.stderr
    assert not PYTHON.search(done.stderr), done.stderr


def test_one_file_given_twice_is_told_of_names(model):
    done = run("compare", "a.npz", "a.npz", cwd=model[0])
    assert done.returncode == 1
    assert done.stderr.endswith("Name them with --names A,B.\n")


def test_names_of_the_user_are_shown_as_they_are(tmp_path):
    rows = "\n".join(f"{i % 2},oops" for i in range(9))
    (tmp_path / "y=run.csv").write_text(f'label,"P(y=1|x), %"\n{rows}\n')
    done = run("report", "y=run.csv", "--probs", "P(y=1|x), %", cwd=tmp_path)
    assert done.returncode != 0
    assert "y=run.csv" in done.stderr
    assert "'P(y=1|x), %'" in done.stderr


def test_arrays_of_one_model_are_to_be_joined(tmp_path):
    y, z = over_confident(60, 3)
    np.save(tmp_path / "logits.npy", z)
    np.save(tmp_path / "labels.npy", y)
    for files in (["logits.npy", "labels.npy"], ["labels.npy", "logits.npy"]):
        done = run("report", *files, cwd=tmp_path)
        assert done.returncode == 1
        assert "are joined by a comma: logits.npy,labels.npy" in done.stderr


def test_stated_confidences_are_recalibrated_as_probabilities(tmp_path):
    write_npz(tmp_path / "a.npz", {"confidence": P, "correct": Y})
    assert run("study", "a.npz", "-q", cwd=tmp_path).returncode == 0
    command = ["recalibrate", "--fit"]
    refused = run(*command, "a.npz", cwd=tmp_path)
    assert refused.returncode == 1
    assert refused.stderr.startswith("Error: a.npz holds stated confidences")
    (said,) = re.findall(r"pass (--probs confidence --label correct)\.", refused.stderr)
    assert run(*command, "a.npz", *said.split(), "-q", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["report", "a.npz", "-o", "r.pdf"], "r.pdf: this writes HTML; give"),
        (["study", "a.npz", "-o", "r.png"], "r.png: this writes HTML; give"),
        (
            ["compare", "a.npz", "b.npz", "-o", "r.json"],
            "r.json: this writes HTML; give",
        ),
        (["report", "a.npz", "-o", "-"], "-: this writes HTML"),
        (["sketch", "a.npz", "-o", "s.csv"], "s.csv: this writes NPZ"),
        (["merge", "a.npz", "-o", "s.html"], "s.html: this writes NPZ"),
        (
            ["recalibrate", "--fit", "a.npz", "--save", "t.npz"],
            "t.npz: this writes JSON",
        ),
        (
            ["recalibrate", "--fit", "a.npz", "--apply", "b.npz", "-o", "p.csv"],
            "p.csv: this writes NPZ",
        ),
        (["report", "a.npz", "-o", "."], "it is a folder; name a file in it"),
    ],
)
def test_a_name_that_promises_another_format_is_refused(arguments, said, model):
    folder = model[0]
    before = sorted(folder.iterdir())
    done = run(*arguments, cwd=folder)
    assert done.returncode == 1
    assert said in done.stderr
    assert sorted(folder.iterdir()) == before


# -- inspect ------------------------------------------------------------------------------


def test_inspect_says_of_how_many_rows_its_ranges_are(tmp_path, monkeypatch):
    monkeypatch.setattr("calibrant.files._inspect.LOOKED_AT", 50)
    rows = {"prob": np.r_[P[:50], np.ones(150)], "outcome": Y}
    write_npz(tmp_path / "long.npz", rows)
    contents = inspect(tmp_path / "long.npz")
    assert contents.looked_at == 50
    assert "Range and missing: of the first 50 rows." in str(contents)
    write_npz(tmp_path / "short.npz", {name: x[:50] for name, x in rows.items()})
    assert inspect(tmp_path / "short.npz").looked_at is None
    monkeypatch.setattr("calibrant.files._inspect.LOOKED_AT", 51)
    assert "of the first" not in str(inspect(tmp_path / "short.npz"))


def test_inspect_has_headings_and_counts_what_is_missing(tmp_path):
    path = write_lines(tmp_path / "a.jsonl", answers(0, 3))
    lines = run("inspect", "a.jsonl", cwd=tmp_path).stdout.splitlines()
    assert lines[0] == "a.jsonl: jsonl, 200 examples"
    assert lines[1].split() == ["name", "type", "shape", "range", "first", "missing"]
    confidence = next(line for line in lines if "'confidence'" in line)
    assert confidence.split()[-2:] == [f"{P[1]:.6g}", "2"]
    assert next(line for line in lines if "'correct'" in line).split()[-1] in (
        "true",
        "false",
    )
    assert lines[-1].startswith("Examples with a missing value: --drop-missing leaves")
    assert inspect(path).items[1].missing == 2


def test_a_key_that_the_first_line_lacks_is_seen(tmp_path):
    rows = answers()
    del rows[0]["confidence"]
    contents = inspect(write_lines(tmp_path / "a.jsonl", rows))
    assert contents.reading == "confidence 'confidence', correct 'correct'"


def test_roles_refuse_marks_of_two_signs():
    with pytest.raises(ValueError, match="decimal must be a single character"):
        Roles(decimal="..")


# -- how it ends --------------------------------------------------------------------------


def closed(*arguments, cwd):
    """The exit code and standard error of a command whose reader leaves at once."""
    with subprocess.Popen(
        [CALIBRANT, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=cwd
    ) as process:
        process.stdout.close()
        said = process.stderr.read()
        return process.wait(timeout=60), said


@pytest.mark.parametrize(
    "arguments",
    [
        ["compare", "a.npz", "b.npz"],
        ["report", "a.npz", "--json"],
        ["report", "a.npz", "--fail-if", "ece > 0"],
        ["--help"],
    ],
)
def test_a_closed_pipe_ends_quietly(arguments, model):
    assert closed(*arguments, cwd=model[0]) == (141, b"")


def test_it_is_a_module_too(model):
    said = [sys.executable, "-m", "calibrant", "inspect", "a.npz"]
    done = subprocess.run(
        said, capture_output=True, text=True, check=False, cwd=model[0]
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("a.npz: npz, 300 examples")


# -- words --------------------------------------------------------------------------------

DIALECT = re.compile(
    r"Of intervals|Of all randomness|What is asked|is split\.|need it said|a row twice"
    r"|stands for its rows|so many|name of timm|Importance of|hang together|was right"
)


def test_helps_are_plain_and_uncut():
    from calibrant.cli import main

    top = run("--help").stdout
    assert "..." not in top.split("Commands:")[1]
    for name in main.commands:
        text = " ".join(run(name, "--help").stdout.split())
        assert not DIALECT.search(text), name
        assert not re.search(r"(?<!-)\b[Rr]ows\b", text), name


def test_the_terminal_names_what_it_shows(tmp_path):
    (tmp_path / "a.csv").write_text(csv())
    said = run("report", "a.csv", cwd=tmp_path).stdout
    assert "forecast 0→1" in said
    assert re.search(r"^  n  [ ▁▂▃▄▅▆▇█]+$", said, re.MULTILINE)
    assert re.search(r"^     0 +forecast +1$", said, re.MULTILINE)
    assert "n number of examples at each forecast" in said


# -- what newcomers met -------------------------------------------------------------------


def in_jsonl(path, p):
    rows = zip(p.tolist(), Y.tolist(), strict=True)
    return write_lines(path, [{"confidence": x, "correct": y} for x, y in rows])


@pytest.mark.parametrize("memory", [1 << 31, 0])
def test_percent_refuses_a_file_that_is_0_to_1_already(memory, tmp_path, monkeypatch):
    in_jsonl(tmp_path / "a.jsonl", 100 * P)
    in_jsonl(tmp_path / "b.jsonl", P)
    monkeypatch.setattr("calibrant.cli._output.IN_MEMORY", memory)
    done = compare(tmp_path, "--percent")
    said = (
        "b.jsonl: --percent divides by 100, but no value of 'confidence' is above 1; "
    )
    assert (done.returncode, said in done.stderr) == (1, True), done.stderr
    assert report(tmp_path / "a.jsonl", "--percent").returncode == 0


def test_percent_is_judged_over_all_parts_and_batches(tmp_path):
    low = np.where(np.arange(200) < 150, P, 100 * P)
    path = in_jsonl(tmp_path / "a.jsonl", low)
    found = [*batches(path, Roles(percent=True), rows=50)]
    np.testing.assert_allclose(np.concatenate([x.scores for x in found]), low / 100)
    (tmp_path / "tiny.csv").write_text("prob,outcome\n0.3%,0\n0.2%,1\n")
    tiny = read(tmp_path / "tiny.csv", Roles(percent=True)).scores
    np.testing.assert_allclose(tiny, [0.003, 0.002])


def test_ids_in_one_file_only_are_counted_apart_from_incomplete_ones(two):
    folder, other = two
    rows = [dict(row) for row in other]
    rows[5]["confidence"] = None
    write_lines(folder / "b.jsonl", [*rows[3:], {**other[0], "id": "new"}])
    done = compare(folder, "--drop-missing")
    assert done.returncode == 0, done.stderr
    assert "dropped 1 of 198 examples" in done.stderr
    assert "note: 4 ids are not in every file, and left out\n" in done.stderr
    assert "compared on the 196 examples that are complete in every" in done.stderr


def test_an_absent_id_is_no_other_order(tmp_path):
    rows = [{**row, "id": i} for i, row in enumerate(answers())]
    write_lines(tmp_path / "a.jsonl", rows)
    write_lines(tmp_path / "b.jsonl", rows[1:])
    lines = compare(tmp_path, "--drop-missing").stderr.splitlines()
    assert lines[0] == "note: examples are paired by column 'id'"
    assert lines[1] == "note: 1 id is not in every file, and left out"


def test_inspect_reads_numbers_as_they_are_spelt(tmp_path):
    text = csv(sep=";", point=",").replace("outcome", "truth")
    (tmp_path / "a.csv").write_text(text)
    found = inspect(tmp_path / "a.csv", Roles(sep=";", decimal=","))
    prob = found.items[0]
    assert (prob.dtype, prob.shape, prob.low, prob.high) == (
        "number",
        "200",
        P.min(),
        P.max(),
    )
    assert "--label NAME" in found.problem
    words = csv(words=("no", "yes"), sign="%", scale=100)
    (tmp_path / "b.csv").write_text(words)
    prob, outcome = inspect(tmp_path / "b.csv", Roles(percent=True)).items
    assert (prob.dtype, outcome.dtype) == ("number", "text")
    assert prob.high == pytest.approx(100 * P.max())


def test_files_of_arrays_are_known_by_how_their_names_end(tmp_path, model):
    _, y, z = model
    for name, values in {"resnet_logits": z, "vit-logits": z, "labels": y}.items():
        np.save(tmp_path / f"{name}.npy", values)
    np.save(tmp_path / "targets_test.npy", y)
    files = {name: tmp_path / f"{name}.npy" for name in ("resnet_logits", "labels")}
    plan = read([*files.values()]).plan
    assert (plan.kind, plan.scores, plan.label) == (
        "logits",
        ("resnet_logits",),
        "labels",
    )
    plan = read([files["resnet_logits"], tmp_path / "targets_test.npy"]).plan
    assert plan.label == "targets_test"
    with pytest.raises(FileError, match="could be the logits; say which with --logits"):
        read([*files.values(), tmp_path / "vit-logits.npy"])


# -- columns called by the classes, and several models in one file -------------------------


@pytest.fixture(scope="module")
def animals(tmp_path_factory):
    """A table of two forecasters and of probabilities in columns named by the classes."""
    folder = tmp_path_factory.mktemp("animals")
    rng = np.random.default_rng(0)
    p = rng.random(120).round(3)
    y = np.where(rng.random(120) < p, "cat", "dog")
    head = "id,site,label,p_cat,p_dog,note,zip,mine,yours,event"
    lines = [
        f"x{i},{i % 3},{y[i]},{p[i]:.3f},{1 - p[i]:.3f},{'n' * (i > 0)},0{i},"
        f"{p[i]:.3f},{p[i] ** 2:.6f},{int(y[i] == 'cat')}"
        for i in range(120)
    ]
    (folder / "a.csv").write_text("\n".join([head, *lines, ""]))
    (folder / "b.csv").write_text(
        (folder / "a.csv").read_text().replace(",dog,", ",cow,")
    )
    return folder, p, y


def test_columns_called_by_the_classes_are_found(animals):
    folder, p, y = animals
    done = run("report", "a.csv", "--target", "top-label", "--json", cwd=folder)
    found = json.loads(done.stdout)["evaluations"][0]["metrics"]["brier"]["value"]
    both = np.column_stack([p, (1 - p).round(3)])
    named = {"classes": ["cat", "dog"], "target": "top-label"}
    assert found == pytest.approx(cal.brier(y, probs=both, **named))
    assert "probs in 2 columns" in run("inspect", "a.csv", cwd=folder).stdout
    other = run("report", "b.csv", cwd=folder)  # a cow has no column
    assert other.returncode == 1
    assert "none of them known as probs" in other.stderr


def test_columns_of_one_file_are_compared(animals):
    folder, p, y = animals
    line = (
        "compare",
        "a.csv",
        "--label",
        "event",
        "--probs",
        "mine",
        "--probs",
        "yours",
    )
    done = run(*line, "--json", cwd=folder)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert [one["name"] for one in found["evaluations"]] == ["mine", "yours"]
    events = (y == "cat").astype(int)
    mine, yours = cal.brier(events, probs=p), cal.brier(events, probs=(p**2).round(6))
    difference = found["differences"]["yours"]["brier"]["value"]
    assert difference == pytest.approx(yours - mine)
    named = run("report", *line[1:], "--names", "A,B", cwd=folder)
    assert "\nA " in named.stdout
    twice = run("study", *line[1:], cwd=folder)
    assert twice.returncode == 2
    assert "--probs is given 2 times" in twice.stderr
    files = run(line[0], "b.csv", *line[1:], cwd=folder)
    assert "2 models of one file" in files.stderr


def test_recalibrate_keeps_ids_and_every_other_column(animals):
    folder, _, y = animals
    line = ("recalibrate", "--fit", "a.csv", "--apply", "a.csv", "-o", "out.npz")
    done = run(*line, "--force", cwd=folder)
    assert done.returncode == 0, done.stderr
    with np.load(folder / "out.npz") as out:
        assert set(out) == {
            *("probs", "labels", "classes", "id", "site", "note", "zip", "mine"),
            *("yours", "event"),
        }
        assert out["id"].tolist() == [f"x{i}" for i in range(120)]
        assert out["site"].tolist() == [i % 3 for i in range(120)]
        assert out["note"][:2].tolist() == ["", "n"]
        assert out["zip"][7] == "07"
        assert out["labels"].tolist() == y.tolist()
    again = run("report", "out.npz", "--target", "top-label", "-q", cwd=folder)
    assert again.returncode == 0, again.stderr


# -- probabilities beyond their ends, per cent, and what recalibrate writes ----------------


def one_column(path, probs, label=("no", "yes"), head="prob,outcome"):
    rows = [f"{p},{label[y]}" for p, y in zip(probs, Y.astype(int), strict=True)]
    path.write_text("\n".join([head, *rows]) + "\n")
    return path


def test_probabilities_above_1_by_round_off_are_read_as_1_and_counted(tmp_path):
    p = np.array(P)
    p[[3, 8]] = 1.0000037, 1.00001
    one_column(tmp_path / "a.csv", p, label=(0, 1))
    note = "note: a.csv: 2 probabilities above 1 (at most 1.00001) were read as 1\n"
    assert run("report", "a.csv", cwd=tmp_path).stderr == note
    how = ("recalibrate", "--fit", "a.csv", "--method", "isotonic")
    done = run(*how, "--apply", "a.csv", "-o", "out.npz", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, 2 * note)
    p[[3, 8]] = 0.5, 1.2
    one_column(tmp_path / "b.csv", p, label=(0, 1))
    for command in (["report", "b.csv"], ["recalibrate", "--fit", "b.csv"]):
        bad = run(*command, cwd=tmp_path)
        assert bad.returncode == 1
        assert bad.stderr.startswith("Error: b.csv: probs must be in [0, 1]")
        assert "row 8 is 1.2 (1 of 200" in bad.stderr


@pytest.mark.parametrize("label", [(0, 1), ("no", "yes")], ids=str)
def test_one_column_in_is_one_column_out(label, tmp_path):
    one_column(tmp_path / "a.csv", P, label)
    files = ("--apply", "a.csv", "-o", "out.npz")
    done = run("recalibrate", "--fit", "a.csv", *files, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    with np.load(tmp_path / "out.npz") as found:
        assert found["probs"].shape == P.shape
        assert np.corrcoef(found["probs"], P)[0, 1] > 0.5
    told = run("report", "out.npz", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert "target: positive" in told.stdout


def test_what_a_fit_has_to_say_is_a_note_and_said_once(tmp_path):
    """Confidences that are right in every example have no finite temperature."""
    p = np.where(Y, 0.9, 0.1)
    one_column(tmp_path / "a.csv", p)
    done = run("recalibrate", "--fit", "a.csv", "--save", "t.json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "Warning" not in done.stderr
    assert done.stdout.count("note: ") == 1
    quiet = run("recalibrate", "--fit", "a.csv", "-q", "--save", "u.json", cwd=tmp_path)
    assert (quiet.stdout, quiet.stderr) == ("", "")


def test_a_recalibrator_that_is_not_there_is_named(tmp_path):
    one_column(tmp_path / "a.csv", P)
    files = ("--apply", "a.csv", "-o", "out.npz")
    done = run("recalibrate", "--load", "t.json", *files, cwd=tmp_path)
    assert done.returncode == 1
    assert (
        done.stderr == "Error: there is no file t.json; --save writes a recalibrator.\n"
    )


def test_a_fraction_beside_a_sign_of_per_cent_is_refused(tmp_path):
    texts = [f"{100 * p:.0f}%" for p in P]
    texts[5] = "0.9"
    one_column(tmp_path / "a.csv", texts)
    done = run("report", "a.csv", "--percent", cwd=tmp_path)
    assert done.returncode == 1
    assert "row 5 of 'prob' is '0.9', without a sign beside '" in done.stderr
    assert "(1 of 200 are such); write all with a sign" in done.stderr
    texts[5] = "90"
    one_column(tmp_path / "a.csv", texts)
    assert run("report", "a.csv", "--percent", cwd=tmp_path).returncode == 0


def test_many_numbers_up_to_1_among_per_cents_are_counted(tmp_path):
    texts = [f"{2 + 98 * p:.2f}" for p in P]
    one_column(tmp_path / "a.csv", texts)
    assert run("report", "a.csv", "--percent", cwd=tmp_path).stderr == ""
    texts[20:50] = ["0.9"] * 30
    one_column(tmp_path / "a.csv", texts)
    done = run("report", "a.csv", "--percent", cwd=tmp_path)
    assert "--percent reads 0.9 as 0.9 %: 30 of 200 probabilities" in done.stderr


def test_per_cent_names_a_value_that_is_there(tmp_path):
    one_column(tmp_path / "a.csv", [f"{x}" for x in [0.5] * 30 + [40, 60] * 85])
    done = run("report", "a.csv", "--percent", cwd=tmp_path)
    assert "--percent reads 0.5 as 0.5 %: 30 of 200 probabilities" in done.stderr


@pytest.mark.parametrize("counts", ["3,0,2,2", "1.5,2,3,3", "1,2,3,4", "1,0,1,1"])
def test_a_column_that_counts_examples_is_noted(tmp_path, counts):
    rows = [f"0.{i}5,{i % 2},{x}" for i, x in enumerate(counts.split(","))]
    (tmp_path / "a.csv").write_text("\n".join(["prob,outcome,count", *rows]) + "\n")
    note = "column 'count' is not read: each row counts as one example; if it is how"
    told = run("report", "a.csv", cwd=tmp_path).stderr
    assert (note in told) == (counts == "3,0,2,2")
    told = run("report", "a.csv", "--frequency", "count", cwd=tmp_path).stderr
    assert note not in told


# -- what compare, groups and monitor say --------------------------------------------------


@pytest.fixture(scope="module")
def tasks(tmp_path_factory):
    """Two models of three classes on two tasks, with ids, and one of another label."""
    folder = tmp_path_factory.mktemp("tasks")
    y, z = over_confident(300, 3)
    more = {"task": np.arange(300) % 2, "id": np.array([f"q{i}" for i in range(300)])}
    np.savez(folder / "a.npz", logits=z, labels=y, **more)
    np.savez(folder / "b.npz", logits=z / 3, labels=y, **more)
    other = np.where(np.arange(300) == 7, (y + 1) % 3, y)
    np.savez(folder / "odd.npz", logits=z, labels=other, **more)
    return folder, y, z


def test_no_best_of_a_group_among_models_tested_on_different_examples(tasks):
    folder, *_ = tasks
    for how in ("report",), ("compare", "--unpaired"):
        done = run(*how, "a.npz", "odd.npz", "--group", "task", cwd=folder)
        told = done.stdout.partition("\ngroup 0")[2].partition("macro average")[0]
        assert "group 1" in told, done.stderr
        assert "*" not in told
    marked = run("report", "a.npz", "b.npz", "--group", "task", cwd=folder).stdout
    assert "*" in marked.partition("\ngroup 0")[2].partition("macro average")[0]
    mixed = run("report", "a.npz", "b.npz", "odd.npz", "--group", "task", cwd=folder)
    lines = mixed.stdout.partition("\ngroup 0")[2].splitlines()
    assert [x.split()[0] for x in lines if "*" in x][:2] in (["a", "b"], ["b"], ["a"])


def test_slices_that_cannot_be_found_are_told_in_options(tmp_path):
    rows = "".join(f"0.{i % 9}5,{i % 2},{i % 3}\n" for i in range(60))
    (tmp_path / "a.csv").write_text(f"prob,outcome,x\n{rows}")
    done = run("groups", "a.csv", "--slices", "x", cwd=tmp_path)
    assert done.returncode == 1
    assert "50 rows, or 5 % of them if that is more, on both sides; " in done.stderr
    assert "name other columns with --slices." in done.stderr


def test_compare_tells_differences_of_each_group(tasks):
    folder, y, z = tasks
    some = np.arange(300) % 2 == 1
    a, b = (
        cal.evaluate(y[some], logits=x[some], name=n)
        for x, n in ((z, "a"), (z / 3, "b"))
    )
    want = cal.compare(a, b).differences["b"]["brier"]
    files = ("compare", "a.npz", "b.npz", "--group", "task")
    found = json.loads(run(*files, "--json", cwd=folder).stdout)["group_differences"]
    assert sorted(found) == ["0", "1"]
    assert found["1"]["b"]["brier"]["interval"] == pytest.approx(want.interval)
    told = run(*files, cwd=folder).stdout
    assert "Differences from a by group (* significant, each alone):" in told
    assert f"\n1, b: Brier {want:.4f} [" in told
    assert max(map(len, told.splitlines())) <= 88
    alone = run("compare", "a.npz", "b.npz", "--json", cwd=folder)
    assert "group_differences" not in json.loads(alone.stdout)


def test_the_page_has_differences_by_group_and_gates_that_failed(tmp_path):
    for name, p in (("a", P), ("b", P**2)):
        lines = [
            f"{x:.6f},{int(y)},{'uv'[i % 2]}"
            for i, (x, y) in enumerate(zip(p, Y, strict=True))
        ]
        (tmp_path / f"{name}.csv").write_text("\n".join(["prob,outcome,group", *lines]))
    gate = ("--fail-if", "brier > 0.001")
    assert (
        run("compare", "a.csv", "b.csv", *gate, "-o", "c.html", cwd=tmp_path).returncode
        == 3
    )
    page = (tmp_path / "c.html").read_text(encoding="utf-8")
    assert "<p>Gate failed: b - a: the difference in brier is " in page
    table = page.partition('id="group-differences"')[2].partition("</table>")[0]
    assert 'title="u: b"' in table
    assert 'title="v: b"' in table
    run("report", "a.csv", "--fail-if", "brier > 0.01", "-o", "r.html", cwd=tmp_path)
    page = (tmp_path / "r.html").read_text(encoding="utf-8")
    assert "<p>Gate failed: a: brier is 0." in page
    assert "group-differences" not in page
    run(
        "report",
        "a.csv",
        "--fail-if",
        "brier > 0.9",
        "-o",
        "r.html",
        "--force",
        cwd=tmp_path,
    )
    assert "Gate failed" not in (tmp_path / "r.html").read_text(encoding="utf-8")


def test_the_first_label_that_differs_is_named(tasks):
    folder, y, _ = tasks
    done = run("compare", "a.npz", "odd.npz", cwd=folder)
    assert done.returncode == 1
    assert "odd.npz and a.npz differ in 1 of 300 labels" in done.stderr
    assert f"that of id 'q7' is {(y[7] + 1) % 3} and {y[7]}." in done.stderr
    assert "pass --unpaired" in done.stderr


def test_json_says_which_conditions_hold(tasks):
    folder = tasks[0]
    for condition, count in {"brier > 99%": 0, "brier > 0.1%": 1}.items():
        done = run("report", "a.npz", "--json", "--fail-if", condition, cwd=folder)
        failed = json.loads(done.stdout)["failed"]
        assert len(failed) == count
        assert done.returncode == (3 if count else 0)
        assert [f"gate: {x}" for x in failed] == done.stderr.splitlines()[
            -count:
        ] * count
    assert "failed" not in json.loads(
        run("report", "a.npz", "--json", cwd=folder).stdout
    )
    groups = ("groups", "a.npz", "--group", "task", "-o", "g.html", "--force")
    done = run(*groups, "--json", "--fail-if", "brier > 0.1%", cwd=folder)
    assert [f"gate: {x}" for x in json.loads(done.stdout)["failed"]] == [
        line for line in done.stderr.splitlines() if line.startswith("gate: ")
    ]
    both = ("compare", "a.npz", "b.npz", "--json", "--fail-if", "brier < -0.1%")
    assert len(json.loads(run(*both, cwd=folder).stdout)["failed"]) == 1


def test_json_and_page_of_monitor_say_which_conditions_hold(tmp_path):
    for month, power in {"2024-01": 2, "2024-02": 3}.items():
        lines = [f"{p**power:.4f},{int(y)}" for p, y in zip(P, Y, strict=True)]
        (tmp_path / f"{month}.csv").write_text("\n".join(["prob,outcome", *lines]))
    files = ("monitor", "2024-01.csv", "2024-02.csv")
    gates = ("--fail-if", "brier > 0.1%", "--fail-if", "alarm")
    done = run(*files, *gates, "--json", "-o", "m.html", cwd=tmp_path)
    assert done.returncode == 3
    assert cal.Monitor.from_json(done.stdout).alarm.period is not None
    failed = json.loads(done.stdout)["failed"]
    assert failed[0].startswith("2024-02: brier is ")
    assert [f"gate: {x}" for x in failed] == done.stderr.splitlines()[-2:]
    page = (tmp_path / "m.html").read_text(encoding="utf-8")
    assert f"<p>Gate failed: {failed[0].replace('>', '&gt;')}</p>" in page
    assert page.count("ALARM in") == 1  # which is a sentence of its own already
    calm = run(*files, "--fail-if", "brier > 99%", "--json", cwd=tmp_path)
    assert json.loads(calm.stdout)["failed"] == []
    assert "failed" not in json.loads(run(*files, "--json", cwd=tmp_path).stdout)


def test_groups_and_monitor_call_the_model_by_its_file(tasks):
    folder = tasks[0]
    groups = run("groups", "a.npz", "--group", "task", "--json", cwd=folder)
    assert {x["name"] for x in json.loads(groups.stdout)["evaluations"]} == {"0", "1"}
    assert "Groups: a" in _page(folder, "groups", "a.npz", "--group", "task")
    state = ("--period", "task", "--state", "risk.npz")
    assert "risk" in _page(folder, "monitor", "a.npz", *state)


def _page(folder, *arguments):
    done = run(*arguments, "-q", "-o", "page.html", "--force", cwd=folder)
    assert done.returncode == 0, done.stderr
    return (folder / "page.html").read_text()


def test_notes_of_monitor_weigh_the_rows_that_have_a_date(tmp_path):
    lines = [f"{p},{y:d},3,2024-01-01" for p, y in zip(P, Y, strict=True)]
    lines[0], lines[17] = ",1,3,2024-01-01", "0.5,1,3,"
    text = "\n".join(lines)
    (tmp_path / "a.csv").write_text(f"prob,outcome,weight,date\n{text}\n")
    how = ("monitor", "a.csv", "--period", "date", "--every", "month")
    said = run(*how, "--drop-missing", cwd=tmp_path).stderr
    count = len(lines)
    assert f"(weights sum to {3 * (count - 2):,})" in said
    told = "with a missing score, label, weight or 'date'; 1 of them has a score"
    assert f"a.csv: dropped 2 of {count} examples {told}" in said


def test_monitor_drops_rows_without_a_date_if_asked_to(tmp_path):
    dates = [f"2024-0{1 + i // 100}-01" for i in range(200)]
    dates[17] = ""
    rows = zip(P, Y.astype(int), dates, strict=True)
    text = "\n".join(f"{p},{y},{day}" for p, y, day in rows)
    (tmp_path / "a.csv").write_text(f"prob,outcome,date\n{text}\n")
    how = ("monitor", "a.csv", "--period", "date", "--every", "month")
    assert run(*how, cwd=tmp_path).returncode == 1
    done = run(*how, "--drop-missing", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    told = "dropped 1 of 200 examples with a missing score, label, weight or 'date'; 1"
    assert f"a.csv: {told}" in done.stderr


# -- a comma where a space was meant --------------------------------------------------


def two_files(folder, labels=(Y, ~Y)):
    for name, y, p in zip("ab", labels, (P, P**2), strict=True):
        np.savez(folder / f"{name}.npz", prob=p, outcome=y)


def test_files_that_a_comma_joins_are_said_to_be_one_model(tmp_path):
    two_files(tmp_path)
    done = run("report", "a.npz,b.npz", cwd=tmp_path)
    told = "a.npz and b.npz are read as 200 + 200 examples of one model; put a space"
    assert told in done.stderr
    assert "of one model" not in run("report", "a.npz,b.npz", "-q", cwd=tmp_path).stderr
    assert "of one model" not in run("report", "[ab].npz", cwd=tmp_path).stderr


@pytest.mark.parametrize("command", ["report", "groups", "explain"])
def test_joined_files_of_the_same_labels_are_two_models(command, tmp_path):
    two_files(tmp_path, (Y, Y))
    more = ["--by", "prob"] if command == "explain" else []
    done = run(command, "a.npz,b.npz", "-q", *more, cwd=tmp_path)
    assert done.returncode == 1
    assert "a.npz and b.npz have the same labels, row by row" in done.stderr
    assert "Put a space between them" in done.stderr


def test_joined_files_too_large_for_memory_are_checked_too(tmp_path, monkeypatch):
    monkeypatch.setattr("calibrant.cli._output.IN_FILES", 0)
    two_files(tmp_path, (Y, Y))
    done = run("report", "a.npz,b.npz", cwd=tmp_path)
    assert "have the same labels, row by row" in done.stderr


def test_arrays_of_one_model_are_joined_without_a_word(tmp_path):
    np.save(tmp_path / "probs.npy", P)
    np.save(tmp_path / "labels.npy", Y)
    assert run("report", "probs.npy,labels.npy", cwd=tmp_path).stderr == ""


# -- what is missing, and what is only no number --------------------------------------


def write_pairs(path, cells, sep=","):
    rows = [f"{0.5 + 0.004 * i:.3f}{sep}{i % 3 % 2}" for i in range(100)]
    rows[1:2] = cells
    path.write_text("\n".join([f"confidence{sep}correct", *rows]) + "\n")


@pytest.mark.parametrize("suffix", ["csv", "tsv"])
@pytest.mark.parametrize(
    ("confidence", "correct"),
    [("9O", "1"), ("-", "1"), ("abc", "0"), ("Na", "1"), ("0.9", "maybe")],
)
def test_text_that_is_no_number_is_not_missing(confidence, correct, suffix, tmp_path):
    sep = {"csv": ",", "tsv": "\t"}[suffix]
    path = tmp_path / f"a.{suffix}"
    write_pairs(path, [f"{confidence}{sep}{correct}"], sep)
    for more in ((), ("--label", "correct", "--probs", "confidence")):
        done = report(path, "--drop-missing", *more)
        assert done.returncode == 1
        odd = correct if correct == "maybe" else confidence
        assert "row 1 of " in done.stderr
        assert f"is {odd!r}, which is no num" in done.stderr


@pytest.mark.parametrize(
    "cell", ["", " ", "nan", "NaN", "null", "NULL", "NA", "N/A", "None"]
)
def test_empty_null_nan_and_na_are_missing(cell, tmp_path):
    write_pairs(tmp_path / "a.csv", [f"{cell},1", f"0.7,{cell}"])
    done = report(tmp_path / "a.csv", "--drop-missing")
    assert done.returncode == 0, done.stderr
    told = (
        "dropped 2 of 101 examples with a missing score, label or weight; 1 of them has"
    )
    assert told in done.stderr
    (ev,) = json.loads(done.stdout)["evaluations"]
    assert (ev["rows"], ev["left_out"]) == (99, 1)


def test_true_and_false_and_large_labels_survive_as_text(tmp_path):
    write_pairs(tmp_path / "a.csv", [])
    text = (tmp_path / "a.csv").read_text()
    text = text.replace(",1\n", ",True\n").replace(",0\n", ",False\n") + "0.5,\n"
    (tmp_path / "b.csv").write_text(text)
    first, other = (report(tmp_path / x, "--drop-missing") for x in ("a.csv", "b.csv"))
    assert numbers(other)[:2] == numbers(first)[:2]
    big = 2**60
    path = tmp_path / "c.csv"
    path.write_text(
        f"confidence,pred,label\n0.9,{big + 1},{big}\n0.9,{big},{big}\n,1,1\n"
    )
    assert read(path, Roles(drop_missing=True)).y.tolist() == [False, True]


def test_a_missing_label_is_no_missing_confidence(tmp_path):
    write_pairs(tmp_path / "a.csv", ["0.9,"] * 100)
    gate = ("--fail-if", "coverage < 99%")
    done = report(tmp_path / "a.csv", "--drop-missing", *gate)
    assert done.returncode == 0, done.stderr
    assert "100 of them have a score" in done.stderr
    assert "left-out" not in done.stdout
    write_pairs(tmp_path / "a.csv", [",1"] * 100)
    assert report(tmp_path / "a.csv", "--drop-missing", *gate).returncode == 3


def test_coverage_in_batches_counts_scores_too(tmp_path, monkeypatch):
    monkeypatch.setattr("calibrant.cli._output.IN_FILES", 0)
    write_pairs(tmp_path / "a.csv", ["0.9,"] * 5 + [",1"] * 3)
    done = report(tmp_path / "a.csv", "--drop-missing")
    assert json.loads(done.stdout)["evaluations"][0]["left_out"] == 3


def test_compare_tells_absent_examples_from_those_without_a_score(tmp_path):
    for name, rows in (("a", range(100)), ("b", range(9, 100))):
        lines = [
            {
                "id": i,
                "confidence": None if name == "b" and i < 40 else 0.7,
                "correct": 1,
            }
            for i in rows
        ]
        for line in lines[50:]:
            line["correct"] = 0
        text = "\n".join(map(json.dumps, lines))
        (tmp_path / f"{name}.jsonl").write_text(text)
    done = run("compare", "a.jsonl", "b.jsonl", "--drop-missing", cwd=tmp_path)
    told = " ".join(done.stdout.split())
    assert (
        "40 of 100 examples of a are not compared: for 31 another model has no" in told
    )
    assert "and 9 are not among the examples of another model" in told
    assert "31 of 91 examples of b have no confidence" in told


# -- options that do not apply ----------------------------------------------------------


@pytest.mark.parametrize("command", ["report", "groups", "explain"])
@pytest.mark.parametrize("target", ["class-wise", "top-label"])
def test_a_target_does_not_apply_to_stated_confidences(target, command, tmp_path):
    lines = [
        f"{p},{int(y)},{'ab'[i % 2]},{p}"
        for i, (p, y) in enumerate(zip(P, Y, strict=True))
    ]
    (tmp_path / "a.csv").write_text("\n".join(["confidence,correct,group,x", *lines]))
    more = ["--by", "x"] if command == "explain" else []
    done = run(command, "a.csv", "--target", target, *more, cwd=tmp_path)
    assert done.returncode == 1
    assert f"--target {target} does not apply to stated confidences" in done.stderr


def test_options_on_how_to_read_must_have_something_to_read(tmp_path):
    write_pairs(tmp_path / "a.csv", [])
    lists = [{"probs": [0.5, 0.3, 0.2], "label": i % 3} for i in range(30)]
    write_lines(tmp_path / "a.jsonl", lists)
    done = report(tmp_path / "a.csv", "--decimal", ",")
    assert (
        "--decimal is ',', but no number of 'confidence' is written with ','"
        in done.stderr
    )
    assert "--ragged does not apply" in report(tmp_path / "a.csv", "--ragged").stderr
    assert report(tmp_path / "a.jsonl", "--ragged").returncode == 0  # they may differ
    lists[3]["probs"] = [0.6, 0.4]
    lists[3]["label"] = 0
    write_lines(tmp_path / "a.jsonl", lists)
    assert report(tmp_path / "a.jsonl", "--ragged").returncode == 0


# -- names and words ------------------------------------------------------------------


def test_a_pattern_names_its_model_by_what_its_files_have_in_common(tmp_path):
    (tmp_path / "bert").mkdir()
    two_files(tmp_path / "bert")
    for pattern, name in (("bert/*.npz", "bert"), ("bert/[a].npz", "bert")):
        done = run("report", pattern, "--json", cwd=tmp_path)
        assert numbers(done)[2] == name


def test_errors_of_words_name_the_option_that_was_said(tmp_path):
    two_files(tmp_path, (Y, Y))
    done = run("recalibrate", "--fit", "a.npz", "--method", "foo", cwd=tmp_path)
    assert "--method must be" in done.stderr
    done = run("compare", "a.npz", "b.npz", "--fail-if", "coverage < 1", cwd=tmp_path)
    assert "coverage is of a model, not of a difference" in " ".join(
        done.stderr.split()
    )
    done = run("report", "a.npz", "-o", "x" * 300 + ".html", cwd=tmp_path)
    assert "its name is too long" in done.stderr
    assert "Errno" not in done.stderr


def test_groups_print_the_findings_of_their_page(tasks):
    page = tasks[0] / "groups.html"
    words = "groups", "a.npz", "--group", "task"
    found = run(*words, "-o", page, cwd=tasks[0])
    as_json = json.loads(run(*words, "--json", cwd=tasks[0]).stdout)
    codes = {finding["code"] for finding in as_json["findings"]}
    assert codes
    for code in codes - {"too-few-rows"}:
        assert f"[{code}]" in found.stdout
    assert "they are not compared" not in page.read_text()


def test_labels_are_no_feature(tasks):
    found = run("explain", "a.npz", "--by", "labels", cwd=tasks[0])
    assert found.returncode == 1
    assert (
        "'labels' holds the labels, which no model knows; leave it out." in found.stderr
    )


def test_per_cents_behind_an_empty_answer_are_known_as_such(tmp_path):
    lines = [{"confidence": x, "correct": 1} for x in (None, "80%", "70%")]
    path = tmp_path / "a.jsonl"
    path.write_text("\n".join(map(json.dumps, lines)))
    found = run("report", "a.jsonl", cwd=tmp_path)
    assert "it holds text ('80%'); pass --percent." in found.stderr
    rows = [f"{0.1 + i / 100},{i % 2}" for i in range(50)]
    mixed = ["prob,outcome", *rows[:3], "12%,0", *rows[3:]]
    (tmp_path / "b.csv").write_text("\n".join(mixed))
    found = run("report", "b.csv", "--drop-missing", cwd=tmp_path)
    assert "write all of them alike, as 0.12 or, with --percent, as 12%" in found.stderr


def test_options_without_effect_are_refused(tasks, tmp_path):
    folder = tasks[0]
    for command in (("curves", "a.npz"), ("recalibrate", "--fit", "a.npz")):
        found = run(*command, "--group", "task", cwd=folder)
        assert found.returncode == 2
        assert "No such option" in found.stderr
    loaded = (
        "--load",
        "m.json",
        "--method",
        "platt",
        "--apply",
        "a.npz",
        "-o",
        "o.npz",
    )
    found = run("recalibrate", *loaded, cwd=folder)
    assert found.returncode == 2
    assert "--method is for --fit" in found.stderr
    found = run("monitor", "a.npz", "--every", "month", cwd=folder)
    assert found.returncode == 2
    assert (
        "--every puts dates of a column together: name it by --period" in found.stderr
    )
    (tmp_path / "a.npz").write_bytes((folder / "a.npz").read_bytes())
    found = run("study", folder / "a.npz", "a.npz", cwd=tmp_path)
    assert found.returncode == 1
    assert "tested on the examples they were fitted on" in found.stderr


def test_a_method_called_as_tables_call_it_is_answered_with_its_name(tmp_path):
    np.savez(tmp_path / "a.npz", prob=P, outcome=Y)
    for words in (
        ("study", "a.npz", "--methods", "Platt"),
        ("recalibrate", "--fit", "a.npz", "--method", "Platt", "--save", "m.json"),
    ):
        found = run(*words, cwd=tmp_path)
        assert found.returncode == 2
        assert "got 'Platt'; did you mean 'platt'?" in found.stderr


def test_study_refuses_two_models_on_the_same_examples(tmp_path):
    other = np.sqrt(P)
    np.savez(tmp_path / "a.npz", prob=P, outcome=Y)
    np.savez(tmp_path / "b.npz", prob=other, outcome=Y)
    words = "study", "a.npz", "b.npz", "--methods", "platt"
    found = run(*words, cwd=tmp_path)
    assert found.returncode == 1
    assert "a.npz and b.npz have the same labels, row by row, so" in found.stderr
    assert "call calibrant compare a.npz b.npz; " in found.stderr
    found = run(*words, "--count-copies", cwd=tmp_path)
    assert found.returncode == 0, found.stderr
    assert "tested on 200 others" not in found.stdout
    np.savez(tmp_path / "b.npz", prob=other, outcome=Y[::-1])
    assert "tested on 200 others" in run(*words, cwd=tmp_path).stdout


@pytest.mark.parametrize("command", ["report", "compare", "study"])
def test_a_scale_is_for_files_of_which_one_states_words(command, tmp_path):
    rng = np.random.default_rng(0)
    for name, stated in {
        "words": ["likely", "unsure"],
        "a": [0.8, 0.5],
        "b": [0.9, 0.4],
    }.items():
        lines = [f"{rng.choice(stated)},{int(rng.random() < 0.7)}" for _ in range(60)]
        text = "\n".join(["confidence,correct", *lines])
        (tmp_path / f"{name}.csv").write_text(text)
    scale = "--scale", "likely=0.8,unsure=0.5"
    for files in (("words.csv", "a.csv"), ("a.csv", "words.csv")):
        assert run(command, *files, *scale, cwd=tmp_path).returncode == 0
    done = run(command, "a.csv", "b.csv", *scale, cwd=tmp_path)
    assert done.returncode == 1
    assert "a.csv: --scale has no effect: no value of 'confidence' is a" in done.stderr


def test_a_tab_is_a_separator_by_name(tmp_path):
    lines = [f"{p:.4f}\t{int(y)}" for p, y in zip(P, Y, strict=True)]
    (tmp_path / "a.csv").write_text("\n".join(["prob\toutcome", *lines]))
    refused = report(tmp_path / "a.csv")
    assert "columns are separated by tab, not ','; pass --sep tab." in refused.stderr
    found = [
        numbers(report(tmp_path / "a.csv", "--sep", sep))
        for sep in ("tab", r"\t", "\t")
    ]
    assert found[0] == found[1] == found[2]
    assert report(tmp_path / "a.csv", "--sep", "tabs").returncode == 2


def test_a_missing_label_is_not_to_be_given_a_weight(tmp_path):
    lines = [
        f"{p:.4f},{'' if i == 5 else int(y)}"
        for i, (p, y) in enumerate(zip(P, Y, strict=True))
    ]
    (tmp_path / "a.csv").write_text("\n".join(["prob,outcome", *lines]))
    said = report(tmp_path / "a.csv").stderr
    assert "leave out rows where it is missing (--drop-missing)." in said
    assert "weight" not in said
    lines = [
        f"{'' if i == 5 else p},{int(y)}"
        for i, (p, y) in enumerate(zip(P, Y, strict=True))
    ]
    (tmp_path / "a.csv").write_text("\n".join(["prob,outcome", *lines]))
    assert "or give them weight 0" in report(tmp_path / "a.csv").stderr


def test_tasks_with_other_options_are_not_compared_without_a_way_out(tmp_path):
    rng = np.random.default_rng(0)

    def lines(task, k):
        for i in range(60):
            scores = dict(zip("ABCD"[:k], rng.normal(size=k).tolist(), strict=True))
            yield {"id": f"{task}/{i}", "label": "AB"[i % 2], "logits": scores}

    write_lines(tmp_path / "a.jsonl", [*lines("arc", 4), *lines("boolq", 2)])
    write_lines(tmp_path / "b.jsonl", [*lines("boolq", 2)])
    for more in ("--drop-missing", "--unpaired"):
        done = run("compare", "a.jsonl", "b.jsonl", more, cwd=tmp_path)
        assert "'a' has 4 classes and 'b' 2. If they are options" in done.stderr
    said = ("compare", "a.jsonl", "b.jsonl", "--drop-missing", "--classes", "A,B,C,D")
    assert run(*said, cwd=tmp_path).returncode == 0


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (
            b"prob,outcome,x\n0.3,0,caf\xe9\n",
            "a.csv: is not in UTF-8 (byte 0xe9); save",
        ),
        (b"prob,outcome,x\n0.3,0,1\n0.6,1\n", "has 2 cells in line 3, and 3 columns;"),
    ],
)
def test_damaged_text_is_said_in_words_of_ours(content, said, tmp_path):
    (tmp_path / "a.csv").write_bytes(content)
    assert said in report(tmp_path / "a.csv").stderr


def test_advice_on_words_and_lists_can_be_followed(tmp_path):
    lines = (
        '{"probs": [0.5, 0.5], "label": 0}\n{"probs": [0.2, 0.3, 0.5], "label": 2}\n'
    )
    (tmp_path / "a.jsonl").write_text(lines * 10)
    told = run("inspect", "a.jsonl", "--ragged", cwd=tmp_path).stdout
    assert "up to 3 options" in told
    assert "pass --ragged" not in told
    (tmp_path / "a.csv").write_text("prob,outcome\n" + "0.3,1\nabc,0\n" * 30)
    told = run("inspect", "a.csv", cwd=tmp_path).stdout
    assert "--drop-missing leaves them out, if a cell is empty or NA." in told
    answers = [
        '{"confidence": "80", "correct": 1}',
        '{"confidence": "no idea", "correct": 0}',
    ]
    (tmp_path / "b.jsonl").write_text("\n".join(answers * 30))
    said = report(tmp_path / "b.jsonl", "--drop-missing", "--percent").stderr
    assert "which is no number; write null where there is no answer." in said

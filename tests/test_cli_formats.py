"""Every file format through the command itself: the numbers are those of `evaluate`."""

import json
from functools import cache
from importlib.util import find_spec

import numpy as np
import pytest
from command import calibrant
from file_writers import NEEDS, WRITERS, write_csv
from make import over_confident, softmax

import calibrant as cal

pytestmark = pytest.mark.xdist_group("formats")
SHARDS, ARRAYS = "shards", "logits.npy,labels.npy"
GLOB = "part-*.parquet"
MODELS = (*WRITERS, ARRAYS, SHARDS, GLOB)
COMPARED = ("n", "rows", "k", "target", "decompositions", "metrics", "bins")


def run(*arguments, cwd):
    done = calibrant(*arguments, cwd=cwd)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def numbers(record):
    """What must not depend on the format, as JSON has it, to ten digits.

    Compiled twins, which only one of two processes may have loaded, round differently.
    """
    return rounded({key: record[key] for key in COMPARED})


def rounded(value):
    if isinstance(value, dict):
        return {key: rounded(x) for key, x in value.items()}
    if isinstance(value, list):
        return [rounded(x) for x in value]
    return float(f"{value:.10g}") if isinstance(value, float) else value


def as_json(ev):
    return numbers(json.loads(ev.to_json()))


def made(n=240, k=3):
    y, z = over_confident(n, k, factor=2)
    return {"logits": z, "labels": y}


@cache
def evaluated():
    return cal.evaluate(made()["labels"], logits=made()["logits"])


def answers(n=240):
    """Stated confidences of a language model, and whether it was right."""
    rng = np.random.default_rng(1)
    h = rng.integers(2, 11, n) / 10
    return {"confidence": h, "correct": rng.random(n) < h**1.5}


def writable():
    """Formats whose library is here."""
    return [n for n in WRITERS if n not in NEEDS or find_spec(NEEDS[n])]


def needed(name, part):
    """Skip what cannot be written here, or fail where every part is promised."""
    library = NEEDS.get(name, "pyarrow" if name == GLOB else None)
    if library:
        part(library)


# -- one model in every format --------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The same predictions in every format, as arrays of their own, and in shards."""
    folder, arrays = tmp_path_factory.mktemp("formats"), made()
    for name in writable():
        WRITERS[name](folder / name, arrays)
    for name, array in arrays.items():
        np.save(folder / f"{name}.npy", array)
    (folder / SHARDS).mkdir()
    for i, rows in enumerate((slice(0, 100), slice(100, 240))):
        shard = {name: array[rows] for name, array in arrays.items()}
        np.savez(folder / SHARDS / f"{i}.npz", **shard)
        if find_spec("pyarrow"):
            WRITERS["a.parquet"](folder / f"part-{i}.parquet", shard)
    return folder


def reported(folder):
    """What one run of the command says of each model, by name."""
    files = [*writable(), ARRAYS, SHARDS, *([GLOB] if find_spec("pyarrow") else [])]
    names = [str(i) for i in range(len(files))]
    found = run(*("report", *files, "--names", ",".join(names), "--json"), cwd=folder)
    return dict(zip(files, found["evaluations"], strict=True))


@pytest.fixture(scope="module")
def whole(folder):
    return reported(folder)


@pytest.fixture(scope="module")
def streamed(folder):
    """The same, every file being read in batches, however small."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("calibrant.cli._output.IN_MEMORY", 0)
        return reported(folder)


@pytest.mark.parametrize("name", MODELS)
def test_report_of_a_file_is_evaluate_of_its_arrays(name, whole, part):
    needed(name, part)
    assert numbers(whole[name]) == as_json(evaluated())


@pytest.mark.parametrize("name", MODELS)
def test_report_of_a_file_in_batches_has_the_same_scores(name, streamed, part):
    needed(name, part)
    ev, found = evaluated(), streamed[name]
    assert (found["rows"], found["target"]) == (ev.rows, ev.target)
    for key in ("accuracy", "ece", "nll", "brier"):
        assert found["metrics"][key]["value"] == pytest.approx(ev.metrics[key])
    parts = found["decompositions"]["brier"]
    assert parts["total"]["value"] == pytest.approx(ev.decomposition.total)
    assert parts["calibration"]["value"] == pytest.approx(
        ev.decomposition.calibration, abs=2e-3
    )


@pytest.mark.parametrize("name", MODELS)
def test_inspect_says_how_a_file_would_be_read(name, folder, part):
    needed(name, part)
    found = run("inspect", name, "--json", cwd=folder)
    assert found["problem"] is None
    assert found["reading"].startswith("logits ")
    assert found["reading"].endswith("label 'labels'")
    assert found["rows"] == (100 if name in (SHARDS, GLOB) else 240)
    assert found["files"] == (2 if name in (SHARDS, GLOB, ARRAYS) else 1)


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """Pairs of confidence and correctness, in every format, in one run."""
    folder = tmp_path_factory.mktemp("answers")
    for name in writable():
        WRITERS[name](folder / name, answers())
    names = [str(i) for i in range(len(writable()))]
    found = run(
        *("report", *writable(), "--names", ",".join(names), "--json"), cwd=folder
    )
    return dict(zip(writable(), found["evaluations"], strict=True))


@pytest.mark.parametrize("name", WRITERS)
def test_report_of_stated_confidences_is_evaluate_pairs(name, told, part):
    needed(name, part)
    rows = answers()
    ev = cal.evaluate_pairs(rows["correct"], rows["confidence"])
    assert numbers(told[name]) == as_json(ev)


# -- which column is what -------------------------------------------------------------


@pytest.fixture(scope="module")
def odd(tmp_path_factory):
    """One table with every role in it, under names nobody would guess."""
    folder = tmp_path_factory.mktemp("odd")
    z, y = made()["logits"], made()["labels"]
    p = softmax(z)
    rng = np.random.default_rng(2)
    columns = {
        "truth": np.array(["ant", "bee", "cat"])[y],
        "number": y,
        **{f"is {c}": p[:, j] for j, c in enumerate(("ant", "bee", "cat"))},
        **{f"z{j}": z[:, j] for j in range(3)},
        "stated": p.max(axis=1),
        "right": p.argmax(axis=1) == y,
        "guess": np.array(["ant", "bee", "cat"])[p.argmax(axis=1)],
        "times": rng.integers(0, 4, len(y)),
        "site": rng.choice(["east", "west"], len(y)),
        "who": np.arange(len(y)) % 60,
    }
    write_csv(folder / "odd.csv", columns)
    return folder, columns


PROBS = ("is ant", "is bee", "is cat")
LOGITS = ("z0", "z1", "z2")
CASES = {
    "pattern": ("--label", "truth", "--probs", "is *"),
    "list": ("--label", "number", "--logits", "z0,z1,z2"),
    "classes": (
        *("--label", "truth", "--logits", "z0,z1,z2", "--classes", "ant,bee,cat"),
        *("--weight", "times"),
    ),
    "confidence": ("--confidence", "stated", "--correct", "right", "--weight", "times"),
    "frequency": (
        "--confidence",
        "stated",
        "--correct",
        "right",
        "--frequency",
        "times",
    ),
    "cluster": ("--confidence", "stated", "--correct", "right", "--cluster", "who"),
    "prediction": ("--confidence", "stated", "--pred", "guess", "--label", "truth"),
    "group": ("--label", "number", "--logits", "z*", "--group", "site"),
}


def expected(case, columns):
    """The same by `evaluate`, from arrays."""
    y = columns["number"]
    logits = np.stack([columns[name] for name in LOGITS], axis=1)
    probs = np.stack([columns[name] for name in PROBS], axis=1)
    weight = columns["times"].astype(float)
    of_rows = {
        "confidence": {"sample_weight": weight},
        "frequency": {"frequency": columns["times"]},
        "cluster": {"cluster": columns["who"]},
        "prediction": {},
    }
    if case in of_rows:
        return cal.evaluate_pairs(columns["right"], columns["stated"], **of_rows[case])
    if case == "pattern":
        return cal.evaluate(y, probs=probs)
    given = {"classes": {"sample_weight": weight}, "group": {"group": columns["site"]}}
    return cal.evaluate(y, logits=logits, **given.get(case, {}))


@pytest.mark.parametrize("case", CASES)
def test_columns_can_be_named(case, odd):
    folder, columns = odd
    said = run("report", "odd.csv", *CASES[case], "--json", cwd=folder)
    found, ev = said["evaluations"][0], expected(case, columns)
    assert numbers(found) == as_json(ev)
    assert set(found["per_group"]) == set(ev.per_group)
    for name, of_group in ev.per_group.items():
        assert numbers(found["per_group"][name]) == as_json(of_group)


@pytest.mark.parametrize("case", ["pattern", "confidence"])
def test_inspect_takes_the_same_options(case, odd):
    found = run("inspect", "odd.csv", *CASES[case], "--json", cwd=odd[0])
    assert found["problem"] is None
    assert found["reading"].startswith(
        {"pattern": "probs in 3 columns"}.get(case, case)
    )
    assert [item["name"] for item in found["items"]] == list(odd[1])

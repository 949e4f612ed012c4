"""Files of recalibrators: what was damaged or made up is refused, whatever it is."""

import json
import os
import subprocess
import sys
import warnings
from copy import deepcopy

import numpy as np
import pytest
from make import over_confident

import calibrant as cal
from calibrant._base.records import RecordError, with_digest
from calibrant.recalibration import (
    AdaptiveTemperatureScaling,
    BetaCalibration,
    DirichletCalibration,
    EnsembleTemperatureScaling,
    HistogramBinning,
    Identity,
    IsotonicCalibration,
    MatrixScaling,
    MeanReplacement,
    MixtureScaling,
    OffsetScaling,
    PlattScaling,
    PriorShift,
    Recalibrator,
    TemperatureScaling,
    TopLabelBinning,
    VectorScaling,
    VennAbers,
    _estimator,
    load,
)

pytestmark = pytest.mark.filterwarnings("ignore::calibrant.recalibration.FitWarning")

Y, Z = over_confident(40, 3)
MADE = {
    "identity": Identity(),
    "mean": MeanReplacement(),
    "temperature": TemperatureScaling(bounds=(0.1, 50.0)),
    "ensemble": EnsembleTemperatureScaling(),
    "vector": VectorScaling(),
    "matrix": MatrixScaling(),
    "dirichlet": DirichletCalibration(),
    "width": HistogramBinning(bins=2),
    "mass": HistogramBinning(bins=2, strategy="mass", smoothing=1),
    "top": HistogramBinning(bins=2, mode="top-label"),
    "isotonic": IsotonicCalibration(smoothing=1),
    "isotonic_top": IsotonicCalibration(mode="top-label"),
    "netcal": IsotonicCalibration(compat="netcal"),
    "platt": PlattScaling(),
    "beta": BetaCalibration(),
    "offset": OffsetScaling(rate=(0.2, 0.3, 0.5)),
    "prior": PriorShift(prior=[0.2, 0.3, 0.5]),
    "venn": VennAbers(),
    "venn_top": VennAbers(mode="top-label"),
    "adaptive": AdaptiveTemperatureScaling(),
    "mixture": MixtureScaling(),
    "by_class": TopLabelBinning(rows_per_bin=5),
}
NAMES = list(MADE)


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """The bytes of a file of each, and what it makes of the rows."""
    path, found = tmp_path_factory.mktemp("files") / "x.json", {}
    for name, method in MADE.items():
        method.fit(Z, Y).save(path, force=True)
        found[name] = path.read_bytes(), method.predict_proba(Z).tobytes()
    return found


def content_of(saved, name):
    """What a file says, without its digest, so that it may be changed."""
    content = json.loads(saved[name][0])
    del content["digest"]
    return content


def test_files_of_all_methods_are_tried():
    tried = {type(method) for method in MADE.values()}
    assert {c for c in tried if not issubclass(c, Recalibrator)} == set()
    assert len(tried) == 17


def flipped(content, expected, bits, monkeypatch):
    """How many flips of bits are read all the same; then predictions are the same."""
    kept = 0
    for place in range(len(content)):
        for bit in bits(place):
            damaged = bytearray(content)
            damaged[place] ^= 1 << bit
            monkeypatch.setattr(_estimator, "read_file", lambda _, x=damaged: bytes(x))
            try:
                again = load("x.json")
            except RecordError:
                continue
            kept += 1
            assert again.predict_proba(Z).tobytes() == expected
    return kept


@pytest.mark.parametrize("name", NAMES)
def test_a_flipped_bit_is_noticed_or_means_nothing(saved, name, monkeypatch):
    content, expected = saved[name]
    kept = flipped(content, expected, lambda place: [place % 8], monkeypatch)
    assert kept < len(content) / 20


def test_every_bit_of_a_file_is_noticed_or_means_nothing(saved, monkeypatch):
    flipped(*saved["temperature"], lambda _: range(8), monkeypatch)


def test_a_changed_number_is_noticed_by_the_digest(saved, tmp_path):
    content = json.loads(saved["temperature"][0])
    content["learned"]["temperature_"] *= 1.01
    (tmp_path / "x.json").write_text(json.dumps(content))
    with pytest.raises(RecordError, match=r"x.json: digest is not that of the content"):
        load(tmp_path / "x.json")


@pytest.mark.parametrize("name", NAMES)
def test_order_and_space_mean_nothing_and_a_digest_may_be_missing(
    saved, name, tmp_path
):
    content, expected = json.loads(saved[name][0]), saved[name][1]
    turned = dict(reversed(content.items()))
    turned["learned"] = dict(reversed(content["learned"].items()))
    for text in (json.dumps(turned, indent=3), json.dumps(content_of(saved, name))):
        (tmp_path / "x.json").write_text(text)
        assert load(tmp_path / "x.json").predict_proba(Z).tobytes() == expected


def array(values, dtype="<f8"):
    return {"array": values, "dtype": dtype}


HOSTILE = [
    (
        "temperature",
        "temperature_",
        -1,
        "temperature_ must be a number above 0, got -1",
    ),
    ("temperature", "temperature_", 0, "temperature_ must be a number above 0"),
    ("temperature", "temperature_", "nan", "temperature_ must be a number above 0"),
    ("temperature", "temperature_", 1e9, r"temperature_ of 1e\+09 outside the bounds"),
    ("temperature", "temperature_", 10**400, "temperature_ must be a number"),
    ("temperature", "lapse_", 1.5, "lapse_ must be a number from 0 to 1, got 1.5"),
    ("temperature", "converged_", 1, "converged_ must be true or false, got 1"),
    ("temperature", "passes_", 2.5, "passes_ must be a whole number, got 2.5"),
    ("temperature", "predict_proba", "x", "learned has no field 'predict_proba'"),
    ("temperature", "_apply", "x", "learned has no field '_apply'"),
    ("temperature", "scores", "probs", "learned has no field 'scores'"),
    ("temperature", "classes_", array([0, 1, 1], "<i8"), "distinct names"),
    ("temperature", "classes_", array(["a", "b"], "<U1"), "n_features_in_ 3 for 2"),
    ("temperature", "classes_", array([[0, 1, 2]], "<i8"), "classes_ in one row"),
    ("temperature", "classes_", array([], "<i8"), "two classes_ or more"),
    ("temperature", "n_features_in_", 10**9, "n_features_in_ 1000000000 for 3"),
    ("temperature", "notes_", {"tuple": [1]}, r"notes_\[0\] must be text, got 1"),
    ("temperature", "feature_names_in_", array(["a"], "|O"), "3 feature_names_in_"),
    ("mean", "accuracy_", 16, "accuracy_ must be a number from 0 to 1, got 16"),
    ("ensemble", "weights_", array([8.0, 4.0, 4.0]), r"weights_\[0\] must be a number"),
    ("ensemble", "weights_", array([0.5, 0.5, 0.5]), "weights_ that sum to 1"),
    ("ensemble", "weights_", array([0.5, 0.5]), "three weights_"),
    ("ensemble", "weights_", array([1, 0, 0], "<i8"), "an array of float64"),
    (
        "ensemble",
        "weights_",
        array([0.5, True, 0.5]),
        r"weights_\[1\] must be a number",
    ),
    ("ensemble", "weights_", [0.5, 0.5], "weights_"),
    ("ensemble", "weights_", array(["1", 0.0, 0.0]), r"weights_\[0\] must be a number"),
    ("vector", "weight_", array([1.0, 1.0]), r"weight_ of shape \(3,\), got \(2,\)"),
    ("vector", "intercept_", array([[0.0] * 3]), r"intercept_ of shape \(3,\)"),
    ("vector", "floor_", -2.0, "has a floor_, which logits have not"),
    ("matrix", "weight_", array([[1.0, 0.0], [0.0]]), "rows of one length"),
    ("matrix", "weight_", array([1.0, 1.0, 1.0]), r"weight_ of shape \(3, 3\)"),
    ("matrix", "weight_", array([["inf"] * 3] * 3), "must be a finite number, got inf"),
    ("width", "edges_", array([0.0, 0.4, 1.0]), "edges_ of bins of equal width"),
    ("width", "edges_", array([0.0, 1.0]), r"edges_ of shape \(3,\)"),
    (
        "width",
        "values_",
        array([[2.0, 0.0]] * 3),
        r"values_\[0\]\[0\] must be a number",
    ),
    ("width", "counts_", array([[40.0, 0.0], [1.0, 2.0], [3.0, 4.0]]), "same rows"),
    ("width", "counts_", array([[-1.0, 41.0]] * 3), "from 0 on, got -1"),
    ("width", "absent_", array([7], "<i8"), "numbers of some of 3 classes"),
    ("mass", "edges_", array([[0.0, 0.7, 0.4]] * 3), "edges_ that go from 0 to 1"),
    ("top", "absent_", array([1], "<i8"), "absent_"),
    ("isotonic", "starts_", array([0, 10**9, 2, 3], "<i8"), "starts_ that go from 0"),
    (
        "isotonic",
        "starts_",
        array([0, 1.5, 2, 3], "<i8"),
        r"starts_\[1\] must be a whole",
    ),
    ("isotonic", "starts_", array([0, 10**30], "<i8"), "whole numbers of 64 bits"),
    ("isotonic", "weight_", -40.0, "weight_ must be a number above 0"),
    ("isotonic_top", "knots_", array([0.9, 0.1]), "values_ of shape"),
    ("platt", "slope_", array([1.0]), r"slope_ of shape \(3,\), got \(1,\)"),
    ("platt", "reach_", "inf", "reach_ must be a number above 0, got inf"),
    ("beta", "a_", array([1.0, -2.0, 1.0]), r"a_\[1\] must be a number from 0 on"),
]


@pytest.mark.parametrize(("name", "field", "value", "said"), HOSTILE)
@pytest.mark.parametrize("signed", [False, True])
def test_what_no_fit_learns_is_refused(
    saved, name, field, value, said, signed, tmp_path
):
    content = content_of(saved, name)
    content["learned"][field] = value
    text = json.dumps(with_digest(content) if signed else content)
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(RecordError, match=said) as error:
        load(tmp_path / "x.json")
    assert str(error.value).startswith(f"{tmp_path / 'x.json'}: learned")
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("isotonic", {"smoothing": -1}, "smoothing must be a number from 0"),
        ("isotonic", {"mode": ["top-label"]}, "mode must be one of"),
        ("isotonic", {"mode": "top-label"}, "starts_ of shape"),
        ("isotonic", {"classes": 5}, "classes must be a list of names, got 5"),
        ("isotonic", {"classes": ["a", "b", "c"]}, "those of the parameter"),
        ("width", {"bins": 10**12}, "bins must be a whole number from 1"),
        ("width", {"bins": 3}, r"edges_ of shape \(4,\)"),
        ("temperature", {"bounds": {"tuple": [5, 1]}}, "bounds must be the least"),
        ("temperature", {"scores": "odds"}, "scores must be one of"),
        ("temperature", {"objective": "log"}, "parameters has no field 'objective'"),
        ("vector", {"max_iter": True}, "max_iter must be a whole number"),
    ],
)
def test_parameters_of_a_file_are_checked(saved, name, changes, said, tmp_path):
    content = content_of(saved, name)
    content["parameters"] |= changes
    (tmp_path / "x.json").write_text(json.dumps(content))
    with pytest.raises(RecordError, match=said):
        load(tmp_path / "x.json")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": 1, "a": 2}', "has 'a' twice"),
        ('{"a": NaN}', "is not JSON: NaN is no number there"),
        ("[" * 100_000, "is not JSON|nested too deeply"),
        ("1" * 10_000, "is not JSON"),
        ("\x00", "is not JSON"),
        ("", "is not JSON"),
    ],
)
def test_what_is_no_json_is_refused_in_a_line(text, said, tmp_path):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(RecordError, match=said) as error:
        load(tmp_path / "x.json")
    assert "\n" not in str(error.value)


def test_what_is_no_file_is_refused(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "endless").symlink_to("/dev/zero")
    for read in (load, TemperatureScaling.load, cal.Sketch.load):
        for path in (tmp_path, tmp_path / "pipe", tmp_path / "endless"):
            with pytest.raises(RecordError, match=f"{path} is no regular file"):
                read(path)
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "nothing.json")


ODD = (
    -1,
    0.5,
    "nan",
    "inf",
    1e300,
    10**400,
    "x",
    None,
    True,
    [],
    {},
    [[]],
    {"array": 1},
)


def leaves(plain, path=()):
    """Where each value of plain data is."""
    items = plain.items() if isinstance(plain, dict) else enumerate(plain)
    for key, value in items:
        yield (*path, key)
        if isinstance(value, dict | list):
            yield from leaves(value, (*path, key))


def mutants(content):
    """The content with each value replaced, left out, doubled, or with something extra."""
    for path in leaves(content):
        for change in (*ODD, "drop", "double", "extra"):
            made = deepcopy(content)
            parent = made
            for key in path[:-1]:
                parent = parent[key]
            value = parent[path[-1]]
            if change == "drop":
                del parent[path[-1]]
            elif change == "double" and isinstance(value, list):
                value *= 2
            elif change == "extra" and isinstance(value, dict):
                value["extra"] = 1
            elif change == "extra" and isinstance(value, list):
                value.append(0.5)
            else:
                parent[path[-1]] = change
            if made != content:
                yield path, made


@pytest.mark.parametrize("name", NAMES)
def test_mutants_are_refused_or_are_recalibrators_all_the_same(
    saved, name, monkeypatch
):
    accepted = set()
    for place, content in mutants(content_of(saved, name)):
        text = json.dumps(content).encode()
        monkeypatch.setattr(_estimator, "read_file", lambda _, text=text: text)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                new = load("x.json").predict_proba(Z)
        except RecordError:
            continue
        accepted.add(place[:2])
        assert (new >= 0).all(), place
        np.testing.assert_allclose(new.sum(axis=1), 1, atol=1e-9, err_msg=str(place))
    names = (*MADE[name].learned, "notes_", "classes_")
    learned = {("learned", x) for x in names}
    assert accepted <= learned | {("parameters", x) for x in MADE[name].get_params()}


def test_what_cannot_be_read_is_not_saved(tmp_path):
    fitted = TemperatureScaling().fit(Z, Y)
    fitted.temperature_ = -1.0
    with pytest.raises(
        RecordError, match=r"this TemperatureScaling cannot be saved: learned.temp.*-1"
    ):
        fitted.save(tmp_path / "x.json")
    assert not list(tmp_path.iterdir())


class Own(Recalibrator):
    """A method that gives only the names of what it learns."""

    learned = ("shift_", "table_")

    def __init__(self, scores="logits", classes=None):
        self.scores, self.classes = scores, classes

    def _learn(self, rows, progress):
        self.shift_, self.table_ = 0.5, np.eye(2)

    def _apply(self, rows):
        return "logits", np.array(rows.scores) + self.shift_


def test_a_method_of_ones_own_need_not_say_what_it_learns(tmp_path):
    fitted = Own().fit(Z, Y)
    fitted.save(tmp_path / "x.json")
    again = load(tmp_path / "x.json")
    np.testing.assert_array_equal(again.table_, np.eye(2))
    assert again.predict_proba(Z).tobytes() == fitted.predict_proba(Z).tobytes()


def test_large_whole_numbers_come_back_exactly(tmp_path):
    names = [2**62, 2**62 + 1, -5]
    fitted = MeanReplacement(classes=names).fit(Z, [names[y] for y in Y])
    fitted.save(tmp_path / "x.json")
    assert load(tmp_path / "x.json").classes_.tolist() == names


BOUNDED = """
import json, resource, sys
resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
from calibrant._base.records import RecordError
from calibrant.recalibration import load
text = open(sys.argv[1]).read()
for field, value in json.load(open(sys.argv[2])):
    content = json.loads(text)
    del content["digest"]
    content["learned"][field] = value
    open(sys.argv[3], "w").write(json.dumps(content))
    try:
        load(sys.argv[3]).predict_proba([[1.0, 2.0, 3.0]])
    except RecordError:
        continue
    raise SystemExit(f"{field} {value} was read")
peak = next(x for x in open("/proc/self/status") if x.startswith("VmHWM"))
assert int(peak.split()[1]) < 400_000, peak
"""


def test_a_small_file_takes_little_memory(saved, tmp_path):
    huge = [
        ["classes_", array(["a", "b", "c"], "<U400000000")],
        ["classes_", array(["a", "b", "c"], "S900000000")],
        ["classes_", array([0, 1, 2], "(100000,10000)f8")],
        ["classes_", array([0, 1, 2], [["x", "(900000000,)f8"]])],
        ["starts_", array([0, 10**9, 10**9, 10**9], "<i8")],
        ["n_features_in_", 10**12],
        ["absent_", array([10**12], "<i8")],
    ]
    files = [tmp_path / name for name in ("good.json", "huge.json", "bad.json")]
    files[0].write_bytes(saved["isotonic"][0])
    files[1].write_text(json.dumps(huge))
    command = [sys.executable, "-c", BOUNDED, *map(str, files)]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr

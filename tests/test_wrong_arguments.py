"""Every argument of every public function, given what it cannot be.

The error is a ValueError or a TypeError (ImportError for a missing extra) that names the
argument: nothing comes from inside NumPy, SciPy or matplotlib unexplained.
"""

import collections
import datetime as dt
import decimal
import fractions
import inspect
import re
import tempfile
import warnings
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import pytest

import calibrant as cal
import calibrant.files
import calibrant.plot
import calibrant.recalibration
import calibrant.table
import calibrant.terminal
from calibrant._base.records import RecordError

N = 24
P = np.random.default_rng(0).dirichlet([1, 1, 1], N)
Y = np.arange(N) % 3
HIT, H = np.arange(N) % 2, P.max(axis=1)


class Refuses:
    """An object that refuses whatever it is asked."""

    def __eq__(self, other):
        raise RuntimeError("compared")

    def __bool__(self):
        raise RuntimeError("asked whether it is true")

    def __len__(self):
        raise RuntimeError("asked for its length")

    __hash__ = None


class ArrayOfLies:
    """What says that it is an array, and is none."""

    def __array__(self, *_, **__):
        raise KeyError("no array here")


WRONG = {
    "None": lambda: None,
    "text": lambda: "magic",
    "empty text": lambda: "",
    "surrogate": lambda: "\ud800",
    "NUL": lambda: "a\0b",
    "bytes": lambda: b"abc",
    "bytearray": lambda: bytearray(b"abc"),
    "object": object,
    "refuses": Refuses,
    "lies": ArrayOfLies,
    "function": lambda: print,
    "[]": list,
    "{}": dict,
    "set": lambda: {1, 2},
    "mapping": lambda: {"a": 1, 2: None},
    "tuple of None": lambda: (None, None),
    "list of lists": lambda: [[1, 2], [3]],
    "deep list": lambda: [[[[1.0]]]],
    "list of text": lambda: ["a", "b"],
    "list of dicts": lambda: [{}] * N,
    "generator": lambda: (x for x in range(3)),
    "complex": lambda: 1 + 2j,
    "complex array": lambda: np.full(N, 1j),
    "huge": lambda: 10**400,
    "huge negative": lambda: -(10**400),
    "list of huge": lambda: [10**400] * N,
    "NaN": lambda: float("nan"),
    "infinity": lambda: float("inf"),
    "-1": lambda: -1,
    "0": lambda: 0,
    "-0.5": lambda: -0.5,
    "1e308": lambda: 1e308,
    "True": lambda: True,
    "decimal": lambda: decimal.Decimal("NaN"),
    "fraction": lambda: fractions.Fraction(10**400, 3),
    "date": lambda: dt.date(2020, 1, 1),
    "path": lambda: Path("no/such/thing"),
    "0-d": lambda: np.array(3.0),
    "3-d": lambda: np.zeros((2, 2, 2)),
    "no rows": lambda: np.zeros((0, 3)),
    "no columns": lambda: np.zeros((N, 0)),
    "NaNs": lambda: np.full((N, 3), np.nan),
    "NaN column": lambda: np.full(N, np.nan),
    "huge floats": lambda: np.full((N, 3), 1e308),
    "huge column": lambda: np.full(N, 1e308),
    "large ints": lambda: np.full(N, 2**63 - 1),
    "objects": lambda: np.array([object()] * N),
    "mixed": lambda: np.array([1, "a", None] * (N // 3), object),
    "text array": lambda: np.array(["a"] * N),
    "bytes array": lambda: np.array([b"a"] * N),
    "dates": lambda: np.array(["2020-01-01"] * N, "M8[D]"),
    "NaT": lambda: np.array(["NaT"] * N, "m8[s]"),
    "structured": lambda: np.zeros(N, [("a", float), ("b", int)]),
    "masked": lambda: np.ma.array(np.ones(N), mask=[True] + [False] * (N - 1)),
    "half": lambda: np.float16(0.5),
    "long double": lambda: np.longdouble("1e4000"),
    "NumPy text": lambda: np.str_("magic"),
    "counter": collections.Counter,
    "range": lambda: range(10**18),
}  # fmt: skip


@cache
def model(name="a"):
    return cal.evaluate(Y, probs=P, name=name, interval=None)


@cache
def both():
    return cal.Comparison((model(), model("b")))


@cache
def by_class():
    return cal.evaluate(Y, probs=P, target="class-wise", interval=None)


def fitted():
    return cal.recalibration.MeanReplacement().fit(np.log(P), Y)


def sketch():
    return cal.Sketch().update(Y, probs=P)


def compare(models=None, *, paired=True, level=0.95, baseline=None):
    models = [model(), model("b")] if models is None else [models]
    return cal.compare(*models, paired=paired, level=level, baseline=baseline)


def frame():
    from polars import DataFrame

    return DataFrame({"p": H, "q": 1 - H, "y": HIT})


FOLDER = tempfile.TemporaryDirectory()
FILE = f"{FOLDER.name}/a.npz"
np.savez(FILE, probs=P, labels=Y)

SCORES = {"y": Y, "probs": P}
"""What every metric function is given."""

INSTEAD = {"logits": {"y": Y}, "confidence": {"y": HIT}, "correct": {"confidence": H}}
"""What stands beside an argument that replaces others."""


ALSO = {
    "y_true": ["y"],
    "y_prob": ["probs", "y"],
    "scores": ["probs", "logits", "y"],
    "y": ["correct"],
    "content": ["bytes"],
    "y_test": ["y"],
    "confidence": ["correct", "y"],
    "probs": ["y"],
    "logits": ["y"],
    "val": ["models"],
}
"""Arguments that must agree with another, which the error may name instead."""


class Call:
    """A public function, and arguments that it takes."""

    def __init__(self, function, given=(), *, skip=(), **more):
        self.function, self.given, self.skip = function, {**dict(given), **more}, skip

    @property
    def arguments(self):
        kinds = inspect.Parameter
        return [
            name
            for name, parameter in inspect.signature(self.function()).parameters.items()
            if parameter.kind not in (kinds.VAR_KEYWORD, kinds.VAR_POSITIONAL)
            and name not in self.skip
        ]

    def with_(self, name, value):
        given = self.given
        if name in ("logits", "confidence") and "probs" in given:
            rest = {k: v for k, v in given.items() if k not in SCORES}
            given = {**rest, **INSTEAD[name]}
        return self.function()(**{**given, name: value})


def of(function, given=(), **options):
    return Call(lambda: function, given, **options)


METRICS = ["accuracy", "ace", "auroc", "brier", "calibration_error", "calibration_test", "choose_bandwidth", "classwise_ece", "confidence_gap", "confidence_split", "corp", "ece", "dirichlet_ece", "full_vector_ece", "kernel_calibration_error", "ks_error", "logit_smoothed_ece", "mce", "mmce", "nll", "smooth_calibration_error", "t_cal", "smooth_ece", "top_label_ece"]  # fmt: skip
METHODS = [
    name for name in cal.recalibration.__all__
    if name not in ("FitWarning", "RecalibratedClassifier", "Recalibrator", "load")
]  # fmt: skip
PLOTS = ["bandwidth_sweep", "calibration_sharpness", "corp", "reliability", "residual", "score_map", "smooth_reliability", "compare_methods"]  # fmt: skip


def method(name):
    """A recalibrator with a parameter of the user, fitted: that is when it is checked."""
    made = getattr(cal.recalibration, name)

    def fit(**parameters):
        return made(**parameters).fit(P, Y)

    fit.__signature__ = inspect.signature(made)
    return of(fit, scores="probs")


def fit_only(name):
    made = getattr(cal.recalibration, name)
    return Call(lambda: made(scores="probs").fit, {"scores": P, "y": Y})


CALLS = {
    **{name: of(getattr(cal, name), SCORES) for name in METRICS},
    "calibration_test by bootstrap": of(
        cal.calibration_test, SCORES, method="bootstrap", resamples=20
    ),
    "calibration_bracket": of(cal.calibration_bracket, SCORES, folds=3),
    "canonical_calibration_error": of(cal.canonical_calibration_error, SCORES),
    "evaluate": of(cal.evaluate, SCORES, interval=None),
    "evaluate_pairs": of(cal.evaluate_pairs, correct=HIT, confidence=H, interval=None),
    "study": of(cal.study, SCORES, methods=["temperature"], interval=None),
    "study of two": of(
        cal.study, {"y": Y, "y_test": Y, "probs": (P, P)}, methods=["mean-replacement"], interval=None
    ),
    "compare": of(compare),
    "paper_spread": of(cal.paper_spread, ev=model(), draws=2, size=10),
    "register_divergence": of(cal.register_divergence),
    "Divergence": of(
        cal.Divergence,
        name="a",
        phi=lambda x: 0.5 * (x**2).sum(axis=1),
        gradient=lambda x: x,
        phi_1d=lambda p: 0.5 * p**2,
        derivative_1d=lambda p: p,
    ),
    "Comparison": of(cal.Comparison, evaluations=(model(),)),
    "Comparison.best": of(both().best),
    "Comparison.effect": of(both().effect, name="a", key="changed"),
    "Comparison.table": of(both().table),
    "Comparison.report": of(both().report, path="none/none"),
    "Comparison.describe": of(both().describe),
    "Sketch": Call(lambda: cal.Sketch),
    "Sketch.update": Call(lambda: cal.Sketch().update, SCORES),
    "Sketch.update again": Call(lambda: sketch().update, SCORES),
    "Sketch.update_pairs": Call(
        lambda: cal.Sketch().update_pairs, {"correct": HIT, "confidence": H}
    ),
    "Sketch.rename_part": Call(lambda: sketch().rename_part, {"old": None, "new": "a"}),
    "Sketch.bounds": Call(lambda: sketch().bounds),
    "Sketch.save": Call(lambda: sketch().save, {"path": "none/none"}),
    "Sketch.load": of(cal.Sketch.load),
    "Sketch.from_bytes": of(cal.Sketch.from_bytes),
    **{f"plot.{name}": of(getattr(cal.plot, name), models=model()) for name in PLOTS},
    "plot.classwise_grid": of(cal.plot.classwise_grid, models=by_class()),
    "plot.calibration_sharpness paper": of(
        cal.plot.calibration_sharpness, models=both(), style="paper"
    ),
    "plot.Display": of(
        cal.plot.CalibrationSharpnessDisplay.from_predictions, y_true=Y, y_prob=P
    ),
    "table": of(cal.table.table, models=both()),
    "make_table": of(
        cal.table.make_table, models=both(), style=calibrant.table._layout.Style()
    ),
    "report": of(cal.report.report, models=both(), path="none/none"),
    "report.build": of(cal.report.build, models=both()),
    "terminal.render": of(cal.terminal.render, models=both()),
    "terminal.show": of(cal.terminal.show, models=both()),
    "audit": of(cal.audit.audit),
    "files.Roles": of(cal.files.Roles),
    "files.read": of(cal.files.read, paths=FILE),
    "files.inspect": of(cal.files.inspect, paths=FILE),
    "files.batches": of(lambda paths, roles=None, rows=10: list(cal.files.batches(paths, roles, rows)), paths=FILE),
    "sketch_frame": of(
        cal.sketch_frame, frame=frame(), y="y", probs=["p", "q"], target="top-label"
    ),
    "sketch_frame of pairs": of(
        cal.sketch_frame, frame=frame(), confidence="p", correct="y"
    ),
    **{name: method(name) for name in METHODS},
    **{f"{name}.fit": fit_only(name) for name in METHODS},
    "Recalibrator.predict_proba": Call(lambda: fitted().predict_proba, {"scores": np.log(P)}),
    "Recalibrator.predict": Call(lambda: fitted().predict, {"scores": np.log(P)}),
    "Recalibrator.recalibrate": Call(lambda: fitted().recalibrate, {"scores": np.log(P)}),
    "Recalibrator.score": Call(lambda: fitted().score, {"scores": np.log(P), "y": Y}),
    "Recalibrator.save": Call(lambda: fitted().save, {"path": "none/none"}),
    "recalibration.load": of(cal.recalibration.load),
}  # fmt: skip

SHARED = (
    "y",
    "probs",
    "logits",
    "confidence",
    "target",
    "classes",
    "sample_weight",
    "frequency",
)
"""What all metrics read by the same function: one of them stands for all."""

FILES = ("path", "paths", "where", "labels", "checkpoint", "out", "folder")
"""Arguments that name files; an error may name the file instead."""

CASES = [
    (name, argument)
    for name, call in CALLS.items()
    for argument in call.arguments
    if argument not in SHARED or name not in METRICS or name == "ece"
]


def complaint(call, argument, value):
    """What is wrong with how a value is refused, or None if it is refused well."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)
        warnings.simplefilter("error", DeprecationWarning)
        # An old matplotlib meets a new pyparsing at the floors.
        warnings.filterwarnings(
            "ignore", module="matplotlib|pyparsing", category=DeprecationWarning
        )
        try:
            call.with_(argument, value())
        except (ValueError, TypeError, ImportError, OSError) as error:
            named = OSError | cal.files.FileError | RecordError
            if isinstance(error, named) and argument in FILES:
                return None  # it names the file
            if isinstance(error, OSError) and "path" in call.arguments:
                return None
            names = "|".join((argument, *ALSO.get(argument, ())))
            known = re.search(rf"(?<![a-z])({names})(?![a-z])", str(error))
            return None if known else f"{type(error).__name__}: {error}"
        except Exception as error:  # noqa: BLE001
            return f"{type(error).__name__}: {error}"
    return None


@pytest.mark.parametrize(("name", "argument"), CASES, ids=[" ".join(x) for x in CASES])
def test_an_error_names_the_argument(name, argument, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    found = {
        what: complaint(CALLS[name], argument, make) for what, make in WRONG.items()
    }
    assert {what: said for what, said in found.items() if said} == {}


# -- extras ----------------------------------------------------------------------------


def tensors():
    import torch

    return torch.tensor(P), torch.tensor(Y)


def metric(**more):
    from calibrant.torch import CalibrationSharpness

    return CalibrationSharpness(3, scores="probs", **more)


def updated():
    made = metric()
    made.update(*tensors())
    return made


def metric_class():
    from calibrant.torch import CalibrationSharpness

    return of(CalibrationSharpness, num_classes=3, scores="probs")


def reduce_rows():
    from calibrant.torch import reduce_rows

    probs, y = tensors()
    return of(reduce_rows, y=y, probs=probs)


def update(**more):
    probs, y = tensors()
    given = {"preds": probs, "target": y, **({"cluster": y} if more else {})}
    return Call(lambda: metric(**more).update, given)


def infer():
    from torch import nn, zeros

    from calibrant.vision import Images, Item, Model
    from calibrant.vision import infer as function

    black = Item("a", 0, np.zeros((2, 2, 3), np.uint8))
    model = Model("m", nn.Linear(2, 2), lambda image: zeros(2))
    images = Images("a", lambda: iter([black]), "f", 1)
    return of(function, model=model, images=images, out="out")


def open_images():
    from calibrant.vision import open_images as function

    for name in ("cat", "dog"):
        Path(name).mkdir()
        Path(name, "1.png").touch()
    return of(function, where=".")


def load_model():
    from calibrant.vision import load_model as function

    def load(name="no_such", checkpoint="none.pt", device="cpu"):
        file = "none.pt" if checkpoint is None else checkpoint  # it would be downloaded
        return function(name, checkpoint=file, device=device)

    return of(load, name="cifar10_resnet20")


def demo():
    from calibrant import demo as module

    def run(folder, rng=0, progress=None, force=False):  # noqa: FBT002
        with pytest.MonkeyPatch.context() as patch, suppress(Trained):
            patch.setattr(module, "_train", train)
            module.run(folder, rng, progress, force=force)

    return of(run, folder="out")


class Trained(Exception):  # noqa: N818
    """All arguments were accepted."""


def train(_):
    raise Trained


EXTRAS = {
    "reduce_rows": ("torch", reduce_rows),
    "CalibrationSharpness": ("torchmetrics", metric_class),
    "CalibrationSharpness.update": ("torchmetrics", update),
    "CalibrationSharpness.update in clusters": (
        "torchmetrics",
        lambda: update(clustered=True),
    ),
    "CalibrationSharpness.evaluation": (
        "torchmetrics",
        lambda: Call(lambda: updated().evaluation, {"interval": None}),
    ),
    "CalibrationSharpness.plot": ("torchmetrics", lambda: of(updated().plot)),
    "vision.open_images": ("torch", open_images),
    "vision.load_model": ("timm", load_model),
    "vision.infer": ("torch", infer),
    "demo.run": ("sklearn", demo),
}


@pytest.mark.parametrize("name", EXTRAS)
def test_an_error_of_an_extra_names_the_argument(name, part, tmp_path, monkeypatch):
    package, made = EXTRAS[name]
    part(package)
    monkeypatch.chdir(tmp_path)
    call = made()
    found = {
        (argument, what): complaint(call, argument, make)
        for argument in call.arguments
        for what, make in WRONG.items()
    }
    assert {case: said for case, said in found.items() if said} == {}


@pytest.mark.parametrize("metric", [cal.ece, cal.mce, cal.classwise_ece])
def test_the_name_of_bins_elsewhere_leads_to_ours(metric):
    with pytest.raises(TypeError, match="has no option 'n_bins'; did you mean 'bins'"):
        metric([0, 1], probs=[[0.9, 0.1], [0.2, 0.8]], n_bins=10)


def test_a_record_writes_no_file_of_its_own():
    ev = cal.evaluate_pairs([1, 0, 1], [0.9, 0.4, 0.7])
    with pytest.raises(TypeError, match="to_json writes no file; indent must be"):
        ev.to_json("ev.json")

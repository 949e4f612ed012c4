"""The reduction on the device: the same columns as NumPy's, for every dtype and row."""

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from calibrant._inputs.predictions import read_predictions
from calibrant._rows.reduce import reduce_to_columns
from calibrant._sketch.grid import cell_number as cell_number_of_numpy

DTYPES = ["float16", "bfloat16", "float32", "float64"]
NAMES = ("confidence", "log_odds", "hit", "brier", "log")


@pytest.fixture(scope="module")
def torch(part):
    return part("torch")


@pytest.fixture(scope="module")
def reduce_rows(torch):
    from calibrant.torch import reduce_rows

    return reduce_rows


def numpy_columns(y, target="top-label", **scores):
    found = reduce_to_columns(
        read_predictions(np.asarray(y), target=target, **scores), engine="numpy"
    )
    losses = found.losses
    if not losses:  # one positive class: the losses are those of its confidence
        from calibrant._inputs.divergences import BUILT_IN

        losses = {name: found.unit_loss(d) for name, d in BUILT_IN.items()}
    columns = (found.confidence, found.log_odds, found.hit)
    return (*columns, losses["brier"], losses["log"]), found.predicted


def assert_same(columns, y, tolerance, **scores):
    expected, predicted = numpy_columns(y, **scores)
    for name, mine, theirs in zip(NAMES, columns[:5], expected, strict=True):
        np.testing.assert_allclose(
            mine.numpy(), theirs, rtol=tolerance, atol=tolerance, err_msg=name
        )
    if predicted is not None:
        assert columns.predicted.tolist() == predicted.tolist()


# -- against NumPy ------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("scale", [1, 20, 300])
def test_logits_give_the_columns_of_numpy(torch, reduce_rows, dtype, scale):
    rng = np.random.default_rng(scale)
    z = torch.tensor(scale * rng.normal(size=(500, 9))).to(getattr(torch, dtype))
    y = torch.tensor(rng.integers(0, 9, 500))
    columns = reduce_rows(y, logits=z)
    assert {column.dtype for column in columns[:5]} == {torch.float64}
    assert_same(columns, y, 1e-12 if dtype == "float64" else 1e-5, logits=z)


@pytest.mark.parametrize("dtype", DTYPES)
def test_probs_give_the_columns_of_numpy(torch, reduce_rows, dtype):
    rng = np.random.default_rng(0)
    p = torch.tensor(rng.dirichlet([0.1] * 5, 500)).to(getattr(torch, dtype))
    y = torch.tensor(rng.integers(0, 5, 500))
    columns = reduce_rows(y, probs=p)
    if dtype == "bfloat16":  # NumPy has no such type, and no tolerance for its sums
        wide = reduce_rows(y, probs=p.double() / p.double().sum(1, keepdim=True))
        torch.testing.assert_close(columns.brier, wide.brier, rtol=0, atol=3e-2)
    else:
        assert_same(columns, y, 1e-12 if dtype == "float64" else 1e-6, probs=p)


INF = np.inf
NASTY = [
    [0, 0, 0],  # ties go to the first
    [1, 5, 5],
    [-INF, 0, 0],
    [-INF, -1000, -INF],  # one class alone is possible
    [1e4, 0, -1e4],
    [1e4, 1e4, -INF],
    [90, 0, 0],  # the others underflow in float32
    [60, -60, -INF],
    [-1e4, -1e4 + 1, -2e4],
]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("label", [0, 1, 2])
def test_nasty_rows_give_the_columns_of_numpy(torch, reduce_rows, dtype, label):
    z = torch.tensor(NASTY, dtype=torch.float64).to(getattr(torch, dtype))
    y = torch.full((len(z),), label)
    assert_same(reduce_rows(y, logits=z), y, 1e-6, logits=z)


LOGITS = st.floats(-100, 100, width=32) | st.sampled_from([-INF, 0.0, 1.0, 1e4, -1e4])


@given(
    arrays(
        np.float32, st.tuples(st.integers(1, 20), st.integers(2, 6)), elements=LOGITS
    ),
    st.randoms(use_true_random=False),
)
def test_any_logits_give_the_columns_of_numpy(torch, reduce_rows, z, random):
    z[np.isneginf(z).all(axis=1), 0] = 0
    y = torch.tensor([random.randrange(z.shape[1]) for _ in z])
    assert_same(reduce_rows(y, logits=torch.tensor(z)), y, 3e-5, logits=z)


@pytest.mark.parametrize("kind", ["logits", "probs"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_a_positive_class_gives_the_columns_of_numpy(torch, reduce_rows, kind, dtype):
    rng = np.random.default_rng(0)
    z = 5 * rng.normal(size=300)
    edges = [-INF, -800, 800] if kind == "logits" else [0.0, 1.0, 0.5]
    scores = np.concatenate([z if kind == "logits" else 1 / (1 + np.exp(-z)), edges])
    scores = scores.astype(dtype)
    y = rng.integers(0, 2, len(scores))
    given = {kind: scores}
    columns = reduce_rows(torch.tensor(y), **{kind: torch.tensor(scores)})
    assert columns.predicted is None
    assert_same(columns, y, 1e-12, target="positive", **given)


def slow_columns(z, label):
    """One row by the book, in Python's doubles, without the largest entry."""
    z = [float(x) for x in z]
    best = z.index(max(z))
    others = [x for j, x in enumerate(z) if j != best]
    second = max(others)
    log_rest = (
        second - z[best] + math.log(math.fsum(math.exp(x - second) for x in others))
    )
    odds = math.exp(log_rest)
    p = [math.exp(x - z[best]) / (1 + odds) for x in z]
    p_y = p[label]
    miss = odds / (1 + odds) if label == best else 1 - p_y
    brier = miss**2 + math.fsum(x * x for j, x in enumerate(p) if j != label)
    loss = math.log1p(odds) + (z[best] - z[label])
    return 1 / (1 + odds), -log_rest, float(best == label), brier, loss


def test_every_row_is_as_by_the_book(torch, reduce_rows):
    rng = np.random.default_rng(1)
    z, y = 30 * rng.normal(size=(200, 4)), rng.integers(0, 4, 200)
    columns = reduce_rows(torch.tensor(y), logits=torch.tensor(z))
    slow = np.array([slow_columns(*row) for row in zip(z, y, strict=True)])
    np.testing.assert_allclose(torch.stack(columns[:5], 1).numpy(), slow, rtol=1e-12)


def test_places_of_an_image_are_rows(torch, reduce_rows):
    rng = torch.Generator().manual_seed(0)
    z = torch.randn(2, 3, 4, 5, generator=rng)
    y = torch.randint(0, 3, (2, 4, 5), generator=rng)
    rows = reduce_rows(y, logits=z)
    flat = reduce_rows(y.flatten(), logits=z.permute(0, 2, 3, 1).reshape(-1, 3))
    torch.testing.assert_close(rows.log, flat.log, rtol=0, atol=0)
    expected = torch.nn.functional.cross_entropy(z.double(), y)
    assert rows.log.mean().item() == pytest.approx(expected.item(), rel=1e-6)


def test_nothing_given_is_changed_and_no_graph_is_kept(torch, reduce_rows):
    z = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    before = z.detach().clone()
    with torch.autocast("cpu", torch.bfloat16):
        columns = reduce_rows(torch.zeros(5, dtype=torch.int64), logits=z)
    assert torch.equal(z.detach(), before)
    assert not columns.brier.requires_grad
    assert_same(columns, [0] * 5, 1e-12, logits=before)


def test_real_logits_give_the_columns_of_numpy(torch, reduce_rows, data):
    found = data("cifar10_akamaster_resnet32")
    z, y = found["logits"], found["labels"]
    columns = reduce_rows(torch.tensor(y), logits=torch.tensor(z))
    assert_same(columns, y, 1e-5, logits=z)


# -- rules --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scores", "y", "words"),
    [
        ({"logits": [[0, 1], [math.nan, 0]]}, [0, 1], "row 1 holds NaN in column 0"),
        ({"logits": [[0, INF], [0, 0]]}, [0, 1], r"row 0 holds \+inf in column 1"),
        ({"logits": [[0, 1], [-INF, -INF]]}, [0, 1], "row 1 is -inf in every column"),
        ({"probs": [[0.5, 0.5], [0.7, 0.7]]}, [0, 1], r"row 1 sums to 1.4.* \(1 of 2"),
        ({"probs": [[0.5, 0.5], [1.5, -0.5]]}, [0, 1], "row 1 holds a negative number"),
        (
            {"logits": [[0, 1], [0, 1]]},
            [0, 2],
            r"0..1.*row 1 is 2 \(1 of 2 rows are out",
        ),
        ({"logits": [[0, 1], [0, 1]]}, [-1, 0], "row 0 is -1"),
        ({"probs": [0.5, 1.2]}, [0, 1], r"probs must be in \[0, 1\]; row 1 is 1.2"),
        ({"logits": [0.5, INF]}, [0, 1], "logits must be finite; row 1 is inf"),
        ({"probs": [0.5, 0.2]}, [0, 0.5], "y must be in 0..1.*row 1 is 0.5"),
        ({"probs": [[0.5], [0.2]]}, [0, 1], "one column"),
        (
            {"probs": [[0.5, 0.5]]},
            [0, 1],
            r"one label for each row.*\(2,\) for \(1, 2\)",
        ),
    ],
)
def test_a_row_that_breaks_a_rule_is_named(torch, reduce_rows, scores, y, words):
    ((kind, values),) = scores.items()
    given = {kind: torch.tensor(values, dtype=torch.float64)}
    with pytest.raises(ValueError, match=words):
        reduce_rows(torch.tensor(y), **given)


def test_what_is_given_must_be_of_the_right_kind(torch, reduce_rows):
    y, z = torch.zeros(2, dtype=torch.int64), torch.zeros(2, 3)
    with pytest.raises(TypeError, match="exactly one of probs= and logits="):
        reduce_rows(y, probs=z, logits=z)
    with pytest.raises(TypeError, match="logits must be floating-point"):
        reduce_rows(y, logits=z.long())
    with pytest.raises(TypeError, match=r"class numbers, got torch\.float32"):
        reduce_rows(y.float(), logits=z)


# -- cells --------------------------------------------------------------------------


def test_cells_are_those_of_numpy(torch):
    from calibrant.torch._tensor_cells import CELLS, cell_of, cell_of_log_odds

    rng = np.random.default_rng(0)
    inside = [rng.random(2000), 10.0 ** rng.uniform(-12, 0, 500)]
    edges = [np.arange(9601) / 9600, 1 - 10.0 ** -np.arange(1.0, 17.0), [0.0, 1.0]]
    h = np.concatenate([*inside, *edges])
    given, theirs = torch.tensor(h), cell_number_of_numpy(h)
    ours = (cell_of(given, CELLS) + cell_of_log_odds(given)).numpy()
    apart = np.flatnonzero(ours != theirs)
    # Logarithms differ in the last bit, which matters on an edge of the log-odds grid.
    z = np.log(h[apart]) - np.log1p(-h[apart])
    np.testing.assert_allclose(z / 0.02, np.round(z / 0.02), atol=1e-9)
    assert len(apart) < 5


# -- imports ------------------------------------------------------------------------


def run(code):
    command = [sys.executable, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_reduction_needs_no_torchmetrics(torch):
    hidden = "import sys; sys.modules['torchmetrics'] = None\n"
    use = "from calibrant.torch import reduce_rows; print('there')\n"
    done = run(f"{hidden}{use}import calibrant.torch as t; t.CalibrationSharpness")
    assert done.stdout == "there\n"
    told = done.stderr
    assert "calibrant.torch.CalibrationSharpness needs torchmetrics" in told
    assert "pip install 'calibrant[torch]'" in told


def test_an_unknown_name_is_refused(torch):
    import calibrant.torch

    with pytest.raises(AttributeError, match="no attribute 'Calibration'"):
        _ = calibrant.torch.Calibration


def test_labels_and_scores_that_look_swapped_are_told_their_order(torch, reduce_rows):
    with pytest.raises(TypeError, match=r"swapped\. Here labels come first\."):
        reduce_rows(torch.zeros(2, 3), logits=torch.tensor([0, 1]))

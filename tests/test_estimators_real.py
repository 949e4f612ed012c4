"""The estimators of d_CAL on ten real files, against figures computed elsewhere.

All figures are times 100 and typed in as printed. They come from a prototype that
shares no code with calibrant. It gathers rows into the cells of a log-odds grid, as our
sketch does, divides rows of probabilities by their sum, and cuts log-odds at +-20.
"""

from dataclasses import dataclass
from math import inf

import numpy as np
import pytest

import calibrant as cal
from calibrant._inputs.arrays import sigmoid
from calibrant._inputs.divergences import BUILT_IN, LOG
from calibrant._inputs.predictions import read_predictions
from calibrant._rows.columns import Columns
from calibrant._rows.reduce import reduce_to_columns
from calibrant._sketch.cells import Cells
from calibrant._sketch.ordered import Ordered, order
from calibrant._stats.bins import debiased_square, mass_bins
from calibrant._stats.close_pairs import brier_error
from calibrant._stats.ladder import Ladder
from calibrant._stats.neighbours import cells_of_rows, cells_of_sketch
from calibrant._stats.platt_error import fit_for_error, local_error, smooth_error


def printed(text):
    """Equal to every printed digit, times 100: within half a unit of the last one."""
    digits = len(text.partition(".")[2])
    return pytest.approx(float(text) / 100, rel=0, abs=0.5001 * 10 ** -(digits + 2))


@dataclass(frozen=True)
class Figures:
    """One row of the table."""

    file: str
    part: str
    direct: tuple[str, str]  # bandwidths 0.05 and 0.01
    plugin: str
    bins: tuple[str, str, str]  # debiased, 15, 50 and 100 equal-mass bins
    brier: tuple[str, str]  # first estimate and its standard error
    log_direct: str
    log: tuple[str, str]


IMAGENET, ALL = "imagenet_val_top1_14models", "all"
FIGURES = [
    Figures(
        *("cifar10_akamaster_resnet32", ALL, (".301", ".627"), "1.54"),
        *((".863", ".884", ".877"), (".889", ".084"), "32.7", ("11.28", ".78")),
    ),
    Figures(
        *("cifar10_peterson_wrn_28_10", ALL, (".043", ".194"), ".862"),
        *((".182", ".236", ".232"), (".219", ".038"), "3.86", ("2.52", ".29")),
    ),
    Figures(
        *("cifar100_netcal_densenet_bc_100", ALL, ("2.18", "3.05"), "3.90"),
        *(("3.40", "3.40", "3.39"), ("3.415", ".178"), "41.8", ("20.50", ".90")),
    ),
    Figures(
        *("imagenet5k_efficientnet_lite0", ALL, (".735", ".741"), ".758"),
        *((".641", ".642", ".650"), (".654", ".100"), "2.32", ("1.98", ".28")),
    ),
    Figures(
        *(IMAGENET, "torchvision_resnext101_32x8d", (".658", ".917"), "1.83"),
        *((".989", ".998", ".998"), (".997", ".040"), "18.8", ("9.13", ".30")),
    ),
    Figures(
        *(IMAGENET, "timm_efficientnet_b3a", ("1.84", "1.76"), "1.92"),
        *(("1.743", "1.747", "1.749"), ("1.751", ".041"), "5.85", ("5.71", ".13")),
    ),
    Figures(
        *(IMAGENET, "timm_tf_inception_v3", (".125", ".086"), ".380"),
        *((".075", ".076", ".075"), (".074", ".011"), "1.55", (".60", ".07")),
    ),
    Figures(
        *("fivethirtyeight_games", ALL, (".095", ".080"), "-.233"),
        *((".063", ".072", ".074"), (".070", ".016"), ".31", (".18", ".04")),
    ),
    Figures(
        *("llm_stated_confidence", ALL, ("1.34", "1.56"), "1.71"),
        *(("1.477", "1.566", "1.570"), ("1.572", ".038"), "65.5", ("62.1", "1.2")),
    ),
    Figures(
        *("adult_random_forest", ALL, (".242", ".298"), "-.017"),
        *((".270", ".270", ".274"), (".276", ".031"), "26.2", ("14.45", "1.17")),
    ),
]


def name_of(figures):
    return figures.file if figures.part == ALL else figures.part


every_file = pytest.mark.parametrize("figures", FIGURES, ids=name_of)


def read(data, figures):
    """Labels or correctness, and the scores as keywords of every metric."""
    arrays = data(figures.file)
    if figures.part != ALL:
        row = arrays["models"].tolist().index(figures.part)
        correct = arrays["pred"][row] == arrays["labels"]
        return correct, {"confidence": arrays["confidence"][row]}
    if "logits" in arrays:
        return arrays["labels"], {"logits": arrays["logits"]}
    if "probs" in arrays:
        probs = arrays["probs"].astype(float)
        return arrays["labels"], {"probs": probs / probs.sum(axis=1, keepdims=True)}
    if "prob" in arrays:
        return arrays["outcome"], {"confidence": arrays["prob"]}
    return arrays["correct"], {"confidence": arrays["stated_confidence"]}


def read_columns(data, figures) -> Columns:
    y, scores = read(data, figures)
    return reduce_to_columns(read_predictions(y, **scores))


def gather(columns):
    return cells_of_sketch(Cells(BUILT_IN).update(columns))


def evaluate(y, scores):
    if "confidence" in scores:
        return cal.evaluate_pairs(y, scores["confidence"])
    return cal.evaluate(y, **scores)


# -- the paper's estimates --------------------------------------------------------


@every_file
def test_kernel_estimates_are_the_known_ones(data, figures):
    y, scores = read(data, figures)
    wide, narrow = figures.direct
    assert cal.calibration_error(y, **scores, bandwidth=0.05) == printed(wide)
    assert cal.calibration_error(y, **scores, bandwidth=0.01) == printed(narrow)
    plugin = cal.calibration_error(y, **scores, bandwidth=0.05, estimator="plugin")
    assert plugin == printed(figures.plugin)


@every_file
def test_kernel_estimate_of_log_is_the_known_one(data, figures):
    columns = read_columns(data, figures)
    low, high = sigmoid(np.array([-20.0, 20.0]))
    error = cal.calibration_error(
        columns.hit,
        confidence=np.clip(columns.confidence, low, high),
        divergence="log",
        bandwidth=0.05,
    )
    assert error == printed(figures.log_direct)


CERTAIN = [f for f in FIGURES if f.part.startswith(("torchvision", "timm_tf"))]


@pytest.mark.parametrize("figures", [*CERTAIN, *FIGURES[-2:]], ids=name_of)
def test_kernel_estimate_of_log_is_infinite_where_certainty_can_err(data, figures):
    # Rows at exactly 1 have neighbours that are wrong, so accuracy there is below 1.
    # The figures above are finite only because they cut log-odds.
    y, scores = read(data, figures)
    assert scores["confidence"].max() == 1
    error = cal.calibration_error(y, **scores, divergence="log", bandwidth=0.05)
    assert error == inf


# -- debiased estimates -----------------------------------------------------------


LADDER = {
    "cifar10_akamaster_resnet32": (".884", (".730", "1.076")),
    "cifar10_peterson_wrn_28_10": (".228", (".162", ".335")),
    "cifar100_netcal_densenet_bc_100": ("3.418", ("3.080", "3.780")),
    "imagenet5k_efficientnet_lite0": (".653", (".474", ".867")),
}
"""Of another implementation of the ladder, with other draws of its law."""


@every_file
def test_evaluation_reports_about_the_first_brier_error(data, figures):
    # For the language models, 111 stated values are 140 different doubles: 0.8 also
    # occurs one unit in the last place higher. Such twins are one value.
    found = evaluate(*read(data, figures)).decomposition.calibration
    value, se = (float(text) / 100 for text in figures.brier)
    low, high = found.interval
    assert found == pytest.approx(value, rel=0, abs=0.2 * se)
    assert low < found < high
    # Upper ends allow for what is finer than the estimate sees.
    assert (found - low) / 1.96 == pytest.approx(se, rel=0.25)
    assert 0.9 * se < (high - found) / 1.96 < 2 * se


@pytest.mark.parametrize("figures", FIGURES[:4], ids=name_of)
def test_evaluation_reports_the_known_brier_error(data, figures):
    found = evaluate(*read(data, figures)).decomposition.calibration
    value, ends = LADDER[figures.file]
    se = float(figures.brier[1]) / 100
    assert found == pytest.approx(float(value) / 100, rel=0, abs=0.1 * se)
    low, high = (float(end) / 100 for end in ends)
    assert found.interval[0] == pytest.approx(low, rel=0, abs=0.15 * se)
    # That implementation does not look at what is finer than its third level.
    assert high - 0.15 * se < found.interval[1] < high + se


@every_file
def test_debiased_log_error_is_the_known_one(data, figures):
    # Without `model_loss` log-odds are cut at +-20, as the figures do.
    cells = gather(read_columns(data, figures))
    fitted = fit_for_error(cells)
    value, se = figures.log
    assert smooth_error(cells, LOG, fitted) == printed(value)
    assert local_error(cells, LOG, fitted=fitted).se == printed(se)


CERTAIN_AND_WRONG = {
    "torchvision_resnext101_32x8d": 11,
    "llm_stated_confidence": 2399,
    "adult_random_forest": 134,
}
INFINITE = [f for f in FIGURES if name_of(f) in CERTAIN_AND_WRONG]
FINITE = [f for f in FIGURES if name_of(f) not in CERTAIN_AND_WRONG]


@pytest.mark.parametrize("figures", FINITE, ids=name_of)
def test_evaluation_reports_the_known_log_error(data, figures):
    # Uncut log-odds move the last digit: by less than a tenth of the standard error.
    found = evaluate(*read(data, figures))
    value, se = (float(text) / 100 for text in figures.log)
    assert found.infinite_rows == 0
    error = found.decompositions["log"].calibration
    assert error == pytest.approx(value, rel=0, abs=0.1 * se)


@pytest.mark.parametrize("figures", INFINITE, ids=name_of)
def test_evaluation_reports_an_infinite_log_error_and_its_rows(data, figures):
    y, scores = read(data, figures)
    wrong = np.count_nonzero(np.abs(y - scores["confidence"].astype(float)) == 1)
    found = evaluate(y, scores)
    assert found.infinite_rows == wrong == CERTAIN_AND_WRONG[name_of(figures)]
    assert found.decompositions["log"].calibration == inf
    assert found.decompositions["log"].total == inf


# -- debiased bins: another road to the same number -------------------------------


def debiased_bins(ordered):
    return [
        debiased_square(mass_bins(ordered.without_twins(), bins), ordered)
        for bins in (15, 50, 100)
    ]


@every_file
def test_debiased_bins_of_cells_are_the_known_ones(data, figures):
    # A cell may lie across an edge and go either way: a twentieth of the standard
    # error, or the last digit.
    cells = gather(read_columns(data, figures))
    found = debiased_bins(Ordered.of(cells.h, cells.weight, cells.hits, cells.hits2))
    se = float(figures.brier[1]) / 100
    known = [float(text) / 100 for text in figures.bins]
    np.testing.assert_allclose(found, known, rtol=0, atol=0.05 * se + 5e-6)


@every_file
def test_debiased_bins_of_rows_are_those_of_cells_up_to_little_noise(data, figures):
    # Rows move across edges by a cell at most.
    found = debiased_bins(order(read_columns(data, figures)))
    se = float(figures.brier[1]) / 100
    known = [float(text) / 100 for text in figures.bins]
    np.testing.assert_allclose(found, known, rtol=0, atol=0.3 * se)


@every_file
def test_fine_bins_and_pairs_of_rows_agree(data, figures):
    # Two unrelated estimates, less than half a standard error apart on every file.
    value, se = (float(text) / 100 for text in figures.brier)
    cells = gather(read_columns(data, figures))
    fine = debiased_bins(Ordered.of(cells.h, cells.weight, cells.hits, cells.hits2))[2]
    assert fine == pytest.approx(value, rel=0, abs=0.5 * se)


# -- the sketch against every distinct value --------------------------------------

SMALL = [f for f in FIGURES if f.file.startswith(("cifar", "imagenet5k"))]


@pytest.mark.parametrize("figures", SMALL, ids=name_of)
def test_sketch_costs_little_of_the_standard_error(data, figures):
    columns = read_columns(data, figures)
    assert len(columns) <= 10_000
    rounded, exact = gather(columns), cells_of_rows(columns)
    assert len(exact.h) > 4 * len(rounded.h)
    # The law of the ladder is simulated, which moves what is believed of its rungs.
    one, other = Ladder.of(rounded), Ladder.of(exact)
    se = brier_error(exact, 0.95, other).se
    assert one.rungs == pytest.approx(other.rungs, rel=0, abs=se / 10)
    assert one.value == pytest.approx(other.value, rel=0, abs=se / 8)
    one, other = local_error(rounded, LOG), local_error(exact, LOG)
    assert one.value == pytest.approx(other.value, rel=0, abs=other.se / 20)


@pytest.mark.parametrize("figures", FIGURES[-2:], ids=name_of)
def test_sketch_of_few_values_costs_as_little(data, figures):
    # 111 and 101 values, each in a cell of its own or with a rare close neighbour.
    columns = read_columns(data, figures)
    rounded, exact = gather(columns), cells_of_rows(columns)
    # The law of the ladder is simulated, which moves what is believed of its rungs.
    one, other = Ladder.of(rounded), Ladder.of(exact)
    se = brier_error(exact, 0.95, other).se
    assert one.rungs == pytest.approx(other.rungs, rel=0, abs=se / 10)
    assert one.value == pytest.approx(other.value, rel=0, abs=se / 8)
    one, other = local_error(rounded, LOG), local_error(exact, LOG)
    assert one.value == pytest.approx(other.value, rel=0, abs=other.se / 20)

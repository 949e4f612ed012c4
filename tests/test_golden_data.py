"""Real files against the figures published with them, typed in from their README.

Figures are strings, so that a test knows how many digits were printed.
"""

from math import inf, log

import numpy as np
import pytest

import calibrant as cal


def printed(text, unit=1.0):
    """Equal to every printed digit: within half a unit of the last one."""
    digits = len(text.partition(".")[2])
    return pytest.approx(float(text) * unit, rel=0, abs=0.5001 * unit * 10**-digits)


def percent(text):
    return printed(text, 0.01)


# -- full logits or probabilities -------------------------------------------------

MULTI_CLASS = [
    # file, accuracy %, NLL, Brier, ECE15
    ("imagenet5k_efficientnet_lite0", "75.08", "1.0534", "0.3514", "0.07331"),
    ("cifar10_akamaster_resnet20", "91.73", "0.3727", "0.1344", "0.05317"),
    ("cifar10_akamaster_resnet32", "92.63", "0.3741", "0.1238", "0.05085"),
    ("cifar10_peterson_densenet_bc_100_12", "95.62", "0.2017", "0.0736", "0.02539"),
    ("cifar10_peterson_resnet_basic_110", "94.06", "0.3272", "0.1017", "0.04126"),
    (
        "cifar10_peterson_resnet_preact_bottleneck_164",
        *("94.28", "0.2849", "0.0971", "0.03856"),
    ),
    (
        "cifar10_peterson_shake_shake_26_2x64d_ssi_cutout16",
        *("97.30", "0.1144", "0.0456", "0.01502"),
    ),
    ("cifar10_peterson_wrn_28_10", "96.24", "0.1611", "0.0643", "0.02137"),
    (
        "cifar10_peterson_wrn_28_10_humantuned_UNDERCONFIDENT",
        *("98.80", "0.0665", "0.0249", "0.03474"),
    ),
    ("cifar10_widmann_resnet18", "91.71", "0.3498", "0.1365", "0.05349"),
    ("cifar10_widmann_resnet34", "91.51", "0.4200", "0.1474", "0.06290"),
    ("cifar10_widmann_resnet50", "91.92", "0.3456", "0.1334", "0.05329"),
    ("cifar10_widmann_resnet_orig", "88.49", "0.4667", "0.1805", "0.06593"),
    ("cifar10_widmann_vgg16_bn", "92.73", "0.3706", "0.1237", "0.05536"),
    ("cifar10_widmann_vgg19_bn", "93.68", "0.3666", "0.1114", "0.04918"),
    ("cifar10_netcal_lenet_5", "53.08", "1.3699", "0.6142", "0.10789"),
    ("cifar10_netcal_wideresnet_16_4", "91.09", "0.3782", "0.1439", "0.05372"),
    ("cifar10_verified_vgg16", "93.59", "0.2571", "0.1054", "0.03978"),
    ("cifar10_cleanlab_cv", "92.94", "0.2492", "0.1100", "0.03259"),
    ("cifar100_netcal_densenet_bc_100", "75.41", "1.2256", "0.3845", "0.14215"),
    ("cifar100_netcal_lenet_5", "12.46", "3.8131", "0.9520", "0.01488"),
    ("mnist_cleanlab_cv", "99.13", "0.0303", "0.0145", "0.00298"),
]


def scores_of(arrays):
    kind = "logits" if "logits" in arrays else "probs"
    return {kind: arrays[kind]}


@pytest.mark.parametrize(("file", "accuracy", "nll", "brier", "ece"), MULTI_CLASS)
def test_classifier_has_its_published_scores(data, file, accuracy, nll, brier, ece):
    arrays = data(file)
    found = cal.evaluate(arrays["labels"], **scores_of(arrays))
    assert found.metrics["accuracy"] == percent(accuracy)
    assert found.metrics["nll"] == printed(nll)
    assert found.metrics["brier"] == printed(brier)
    assert found.metrics["ece"] == printed(ece)
    assert found.infinite_rows == 0


def test_human_votes_have_their_published_scores(data):
    arrays = data("cifar10h_human_counts")
    labels, counts = arrays["labels"], arrays["counts"]
    probs = counts / counts.sum(axis=1, keepdims=True)
    found = cal.evaluate(labels, probs=probs)
    assert found.metrics["accuracy"] == percent("99.21")
    assert found.metrics["brier"] == printed("0.0203")
    assert found.metrics["ece"] == printed("0.03771")
    # Nobody chose the official label of 4 images; the figure cuts p at 1e-300.
    assert found.metrics["nll"] == inf
    assert found.infinite_rows == 4
    chosen = (probs[np.arange(len(labels)), labels] > 0).astype(float)
    finite = cal.nll(labels, probs=probs, sample_weight=chosen)
    cut = (finite * (10_000 - 4) + 4 * 300 * log(10)) / 10_000
    assert cut == printed("0.3331")


def test_reviews_have_their_published_scores(data):
    arrays = data("imdb_cleanlab_cv")
    labels, probs = arrays["labels"], arrays["probs"]
    found = cal.evaluate(labels, probs=probs, target="top-label")
    assert found.metrics["accuracy"] == percent("89.58")
    assert found.metrics["nll"] == printed("0.3006")
    assert found.metrics["brier"] == printed("0.1590")
    # Rows sum to 1.00002, so 2744 of them are surer than 1: we cut these at 1, the
    # figure does not. Over-confident as their bin is, the excess adds to the error.
    excess = np.maximum(probs.max(axis=1).astype(float) - 1, 0)
    assert np.count_nonzero(excess) == 2744
    assert found.metrics["ece"] + excess.mean() == printed("0.04040")


FULL_VECTOR = [
    # model, ECE_uniform of errors.csv in devmotion/CalibrationPaper
    ("resnet18", 0.07488154767161395),
    ("resnet34", 0.079810632660301),
    ("resnet50", 0.0748439824936457),
    ("resnet_orig", 0.09817285190958805),
    ("vgg16_bn", 0.06611851748458264),
    ("vgg19_bn", 0.06025929364237089),
]


@pytest.mark.parametrize(("model", "error"), FULL_VECTOR)
def test_full_vector_error_is_the_published_one(data, model, error):
    # Stored as float32, which moves it by up to 2e-10.
    arrays = data(f"cifar10_widmann_{model}")
    found = cal.full_vector_ece(arrays["labels"], probs=arrays["probs"])
    assert found == pytest.approx(error, rel=0, abs=3e-10)


# -- top label only ---------------------------------------------------------------

IMAGENET = [
    # model, top-1 %, ReaL %, mean confidence, top-label Brier, ECE15, ReaL ECE15
    (
        "timm_densenetblur121d",
        *("76.576", "83.462", "0.69614", "0.13052", "0.06962", "0.12091"),
    ),
    (
        "timm_efficientnet_b1",
        *("78.698", "84.529", "0.68696", "0.13098", "0.10002", "0.14639"),
    ),
    (
        "timm_efficientnet_b3a",
        *("81.874", "87.002", "0.69496", "0.12609", "0.12378", "0.16456"),
    ),
    (
        "timm_ese_vovnet19b_dw",
        *("76.804", "83.095", "0.64512", "0.13954", "0.12292", "0.16913"),
    ),
    (
        "timm_gluon_senet154",
        *("81.224", "86.272", "0.76160", "0.11044", "0.05064", "0.09022"),
    ),
    (
        "timm_mixnet_m",
        *("77.256", "83.528", "0.70769", "0.12645", "0.06487", "0.11420"),
    ),
    (
        "timm_mobilenetv3_large_100",
        *("75.768", "82.172", "0.69070", "0.12937", "0.06698", "0.11433"),
    ),
    (
        "timm_resnet34",
        *("75.112", "82.134", "0.67325", "0.13602", "0.07798", "0.13142"),
    ),
    (
        "timm_resnext50_32x4d",
        *("79.762", "85.227", "0.73963", "0.11796", "0.05799", "0.09779"),
    ),
    (
        "timm_tf_inception_v3",
        *("77.858", "84.134", "0.76654", "0.12088", "0.02023", "0.05920"),
    ),
    (
        "torchvision_densenet161",
        *("77.138", "83.701", "0.82780", "0.12336", "0.05642", "0.01762"),
    ),
    (
        "torchvision_inception_v3",
        *("77.320", "83.628", "0.76217", "0.12253", "0.01911", "0.05839"),
    ),
    (
        "torchvision_resnet101",
        *("77.374", "83.863", "0.82268", "0.12047", "0.04917", "0.01894"),
    ),
    (
        "torchvision_resnext101_32x8d",
        *("79.312", "85.191", "0.87374", "0.12305", "0.08064", "0.03786"),
    ),
]


def imagenet_pairs(data, model):
    arrays = data("imagenet_val_top1_14models")
    row = arrays["models"].tolist().index(model)
    return arrays, arrays["pred"][row], arrays["confidence"][row]


def real_pairs(data, model):
    """Correct if the prediction is any of the ReaL labels; images without one go."""
    arrays, predicted, confidence = imagenet_pairs(data, model)
    labels_of = np.diff(arrays["real_indptr"])
    image = np.repeat(np.arange(len(predicted)), labels_of)
    fits = predicted[image] == arrays["real_indices"]
    correct = np.bincount(image, fits, len(predicted)) > 0
    return correct[labels_of > 0], confidence[labels_of > 0]


@pytest.mark.parametrize(
    ("model", "top_1", "real", "mean_confidence", "brier", "ece", "real_ece"), IMAGENET
)
def test_imagenet_model_has_its_published_scores(
    data, model, top_1, real, mean_confidence, brier, ece, real_ece
):
    arrays, predicted, confidence = imagenet_pairs(data, model)
    correct = predicted == arrays["labels"]
    accuracy = cal.accuracy(correct, confidence=confidence)
    assert accuracy == percent(top_1)
    gap = cal.confidence_gap(correct, confidence=confidence)
    assert gap + accuracy == printed(mean_confidence)
    assert cal.brier(correct, confidence=confidence) == printed(brier)
    assert cal.ece(correct, confidence=confidence) == printed(ece)

    correct, confidence = real_pairs(data, model)
    assert len(correct) == 46_837
    assert cal.accuracy(correct, confidence=confidence) == percent(real)
    assert cal.ece(correct, confidence=confidence) == printed(real_ece)


def test_twenty_bins_give_the_figure_of_the_source(data):
    arrays, predicted, confidence = imagenet_pairs(data, "timm_gluon_senet154")
    correct = predicted == arrays["labels"]
    assert cal.ece(correct, confidence=confidence, bins=20) == percent("5.136")


@pytest.mark.parametrize(
    ("model", "accuracy", "brier", "ece", "mce"),
    [
        ("densenet40_c100", "70.000", "0.21172", 0.211562852757, 0.45400331452),
        ("resnet110_c10", "93.560", "0.05274", 0.047503518641, 0.295798957348),
    ],
)
def test_published_ece_and_mce_are_met(data, model, accuracy, brier, ece, mce):
    # Stored as float32: the figures of the notebook came from more digits.
    arrays = data(f"top1_nncal_{model}")
    correct, confidence = arrays["pred"] == arrays["labels"], arrays["confidence"]
    assert cal.accuracy(correct, confidence=confidence) == percent(accuracy)
    assert cal.brier(correct, confidence=confidence) == printed(brier)
    assert cal.ece(correct, confidence=confidence) == pytest.approx(
        ece, rel=0, abs=1e-8
    )
    assert cal.mce(correct, confidence=confidence) == pytest.approx(
        mce, rel=0, abs=3e-7
    )


@pytest.mark.parametrize(
    ("model", "ece", "mce"),
    [
        ("densenet40_c100", "0.211562853114", "0.454003290"),
        ("resnet110_c10", "0.047503524372", "0.295799166"),
    ],
)
def test_stored_digits_give_the_recomputed_ece_and_mce(data, model, ece, mce):
    arrays = data(f"top1_nncal_{model}")
    correct, confidence = arrays["pred"] == arrays["labels"], arrays["confidence"]
    assert cal.ece(correct, confidence=confidence) == printed(ece)
    assert cal.mce(correct, confidence=confidence) == printed(mce)


# -- forecasts of one event -------------------------------------------------------

FORECASTS = [
    # file, part, n, base rate, mean p, NLL, Brier, ECE15
    (
        *("fivethirtyeight_games", "nfl", 1882),
        *("0.5473", "0.5769", "0.6315", "0.22083", "0.03259"),
    ),
    (
        *("fivethirtyeight_games", "nba", 8886),
        *("0.5717", "0.6191", "0.6191", "0.21465", "0.04919"),
    ),
    (
        *("fivethirtyeight_games", "mlb", 15747),
        *("0.5346", "0.5329", "0.6726", "0.23987", "0.01029"),
    ),
    (
        *("fivethirtyeight_games", "nhl", 1401),
        *("0.5410", "0.5697", "0.6548", "0.23126", "0.04546"),
    ),
    (
        *("fivethirtyeight_games", "wnba", 450),
        *("0.5422", "0.6078", "0.6243", "0.21793", "0.09527"),
    ),
    (
        *("fivethirtyeight_games", "all", 28366),
        *("0.5475", "0.5659", "0.6514", "0.22994", "0.01891"),
    ),
    (
        *("fivethirtyeight_governors", "all", 19831),
        *("0.4212", "0.4212", "0.1368", "0.03954", "0.03507"),
    ),
    (
        *("forecast_precip_niamey_2016", "Logistic", 92),
        *("0.5761", "0.5292", "0.5983", "0.20575", "0.11187"),
    ),
    (
        *("forecast_precip_niamey_2016", "EMOS", 92),
        *("0.5761", "0.5166", "0.6537", "0.23203", "0.08432"),
    ),
    (
        *("forecast_precip_niamey_2016", "ENS", 92),
        *("0.5761", "0.7868", "2.4148", "0.26617", "0.27425"),
    ),
    (
        *("forecast_precip_niamey_2016", "EPC", 92),
        *("0.5761", "0.5192", "0.6613", "0.23428", "0.06101"),
    ),
    (
        *("forecast_solar_flares_C1", "NOAA", 731),
        *("0.2572", "0.2745", "0.3969", "0.12492", "0.05332"),
    ),
    (
        *("forecast_solar_flares_C1", "DAFFS", 731),
        *("0.2572", "0.3071", "0.4731", "0.14694", "0.07520"),
    ),
    (
        *("forecast_solar_flares_C1", "SIDC", 731),
        *("0.2572", "0.3200", "0.4487", "0.14717", "0.07007"),
    ),
    (
        *("forecast_spf_recession", "all", 38239),
        *("0.1481", "0.1768", "0.7633", "0.12436", "0.07361"),
    ),
    (
        *("forecast_spf_recession", "0", 7725),
        *("0.1533", "0.1925", "0.6789", "0.09157", "0.06116"),
    ),
    (
        *("forecast_spf_recession", "1", 7768),
        *("0.1513", "0.1867", "0.6592", "0.11750", "0.06160"),
    ),
    (
        *("forecast_spf_recession", "2", 7739),
        *("0.1445", "0.1747", "0.7427", "0.13061", "0.06873"),
    ),
    (
        *("forecast_spf_recession", "3", 7704),
        *("0.1452", "0.1648", "0.8073", "0.13823", "0.08631"),
    ),
    (
        *("forecast_spf_recession", "4", 7303),
        *("0.1462", "0.1646", "0.9389", "0.14510", "0.10787"),
    ),
    (
        *("adult_random_forest", "all", 16281),
        *("0.2362", "0.2189", "0.5602", "0.11229", "0.04654"),
    ),
    (
        *("llm_stated_confidence", "all", 72185),
        *("0.7291", "0.8363", "1.3404", "0.16231", "0.11291"),
    ),
]


def read_forecasts(arrays, part):
    """Forecasts and outcomes of a file, or of the part of it that is named."""
    if "stated_confidence" in arrays:
        return arrays["stated_confidence"], arrays["correct"]
    outcome = arrays["outcome"]
    if part == "all":
        return arrays["prob"], outcome
    if part in arrays:
        return arrays[part], outcome
    if "forecasters" in arrays:
        return arrays["probs"][:, arrays["forecasters"].tolist().index(part)], outcome
    rows = arrays["league" if "league" in arrays else "horizon"] == part
    return arrays["prob"][rows], outcome[rows]


@pytest.mark.parametrize(
    ("file", "part", "n", "base_rate", "mean_p", "nll", "brier", "ece"), FORECASTS
)
def test_forecaster_has_the_published_scores(
    data, file, part, n, base_rate, mean_p, nll, brier, ece
):
    p, outcome = read_forecasts(data(file), part)
    found = cal.evaluate(outcome, probs=p)
    assert found.target == "positive"
    assert found.rows == n
    assert outcome.mean() == printed(base_rate)
    assert found.metrics["confidence_gap"] + outcome.mean() == printed(mean_p)
    assert found.metrics["brier"] == printed(brier)
    assert found.metrics["ece"] == printed(ece)
    # The figures cut p at 1e-12 and 1 - 1e-12.
    assert cal.nll(outcome, probs=np.clip(p, 1e-12, 1 - 1e-12)) == printed(nll)


@pytest.mark.parametrize(
    ("file", "part", "wrong"),
    [
        ("forecast_precip_niamey_2016", "ENS", 6),
        ("forecast_spf_recession", "all", 119 + 88 + 101 + 112 + 138),
        ("forecast_spf_recession", "0", 119),
        ("forecast_spf_recession", "1", 88),
        ("forecast_spf_recession", "2", 101),
        ("forecast_spf_recession", "3", 112),
        ("forecast_spf_recession", "4", 138),
        ("adult_random_forest", "all", 134),
        ("llm_stated_confidence", "all", 2399),
    ],
)
def test_certain_and_wrong_makes_the_log_loss_infinite(data, file, part, wrong):
    p, outcome = read_forecasts(data(file), part)
    assert np.count_nonzero(np.abs(p - outcome) == 1) == wrong
    found = cal.evaluate(outcome, probs=p)
    assert found.metrics["nll"] == inf
    assert found.infinite_rows == wrong


CORP = [
    # file, part, MCB, DSC, UNC
    ("forecast_precip_niamey_2016", "Logistic", "0.01708", "0.05554", "0.24421"),
    ("forecast_precip_niamey_2016", "EMOS", "0.01828", "0.03047", "0.24421"),
    ("forecast_precip_niamey_2016", "ENS", "0.06607", "0.04412", "0.24421"),
    ("forecast_precip_niamey_2016", "EPC", "0.02235", "0.03228", "0.24421"),
    ("forecast_solar_flares_C1", "NOAA", "0.00478", "0.07090", "0.19104"),
    ("forecast_solar_flares_C1", "DAFFS", "0.01192", "0.05602", "0.19104"),
    ("forecast_solar_flares_C1", "SIDC", "0.01138", "0.05525", "0.19104"),
    ("forecast_spf_recession", "all", "0.00978", "0.01160", "0.12618"),
    ("forecast_spf_recession", "0", "0.00726", "0.04547", "0.12978"),
    ("forecast_spf_recession", "1", "0.00767", "0.01855", "0.12838"),
    ("forecast_spf_recession", "2", "0.01179", "0.00478", "0.12359"),
    ("forecast_spf_recession", "3", "0.01475", "0.00067", "0.12415"),
    ("forecast_spf_recession", "4", "0.02029", "0.00005", "0.12485"),
    ("adult_random_forest", "all", "0.00323", "0.07136", "0.18042"),
]


@pytest.mark.parametrize(("file", "part", "mcb", "dsc", "unc"), CORP)
def test_forecaster_has_the_published_corp_decomposition(
    data, file, part, mcb, dsc, unc
):
    p, outcome = read_forecasts(data(file), part)
    metrics = cal.evaluate(outcome, probs=p).metrics
    assert metrics["mcb"] == printed(mcb)
    assert metrics["dsc"] == printed(dsc)
    assert metrics["unc"] == printed(unc)


@pytest.mark.parametrize(
    ("forecaster", "score", "mcb", "dsc"),
    [
        ("Logistic", ".205746", ".017076", ".055541"),
        ("EMOS", ".232025", ".018283", ".030469"),
        ("ENS", ".266168", ".066072", ".044115"),
        ("EPC", ".234282", ".022350", ".032279"),
    ],
)
def test_rain_in_niamey_agrees_with_reliabilitydiag(data, forecaster, score, mcb, dsc):
    p, outcome = read_forecasts(data("forecast_precip_niamey_2016"), forecaster)
    parts = cal.corp(outcome, probs=p)
    assert parts.score == printed(score)
    assert parts.miscalibration == printed(mcb)
    assert parts.discrimination == printed(dsc)
    assert parts.uncertainty == printed(".244211")


# -- language models --------------------------------------------------------------


def test_stated_confidence_is_right_about_as_often_as_published(data):
    p, correct = read_forecasts(data("llm_stated_confidence"), "all")
    # "Accuracy" of the table: (confidence >= 1/2) agrees with correctness. Here one half
    # predicts class 0, which counts those rows the other way and no others.
    half = np.mean((p == 0.5) * (2.0 * correct - 1))
    assert half != 0
    assert cal.accuracy(correct, probs=p) + half == percent("80.65")
    assert cal.accuracy(correct, confidence=p) == percent("72.91")


@pytest.mark.parametrize(
    ("key", "n", "accuracy", "nll", "brier", "ece", "mean_confidence", "zeros"),
    [
        (
            *("gpt4o_token", 1000, "96.80", "3.2714"),
            *("0.06399", "0.03208", "0.9998", 4),
        ),
        (
            *("gpt4o_stated", 1000, "96.80", "0.8400"),
            *("0.06234", "0.05338", "0.9194", 1),
        ),
        (
            *("llama31_70b_token", 1000, "95.30", "0.3596"),
            *("0.09070", "0.04549", "0.9961", 0),
        ),
        (
            *("llama31_70b_stated", 1000, "95.30", "15.3124"),
            *("0.09221", "0.04123", "0.9466", 22),
        ),
        (
            *("llama31_8b_token", 997, "91.07", "0.6417"),
            *("0.16804", "0.07967", "0.9893", 0),
        ),
        (
            *("llama31_8b_stated", 997, "90.97", "35.4731"),
            *("0.16899", "0.05619", "0.9481", 51),
        ),
    ],
)
def test_options_of_sciq_have_their_published_scores(
    data, key, n, accuracy, nll, brier, ece, mean_confidence, zeros
):
    arrays = data("llm_sciq_4class_probs")
    labels, probs = arrays[f"{key}_labels"], arrays[f"{key}_probs"]
    found = cal.evaluate(labels, probs=probs)
    metrics = found.metrics
    assert (found.rows, found.k, found.infinite_rows) == (n, 4, zeros)
    assert metrics["accuracy"] == percent(accuracy)
    assert metrics["brier"] == printed(brier)
    assert metrics["ece"] == printed(ece)
    assert metrics["confidence_gap"] + metrics["accuracy"] == printed(mean_confidence)
    # The figures cut p at 1e-300.
    possible = (probs[np.arange(n), labels] > 0).astype(float)
    finite = cal.nll(labels, probs=probs, sample_weight=possible)
    assert (finite * (n - zeros) + zeros * 300 * log(10)) / n == printed(nll)
    assert (metrics["nll"] == inf) == (zeros > 0)

"""Where a claim of the paper does not hold on recorded models, and why.

The tests fail if a model is missing here, and if one is here that no longer belongs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from experiments.claims import Verdict

CHANCE = "Chance: a paired comparison on the test rows cannot tell the methods apart."
CHANCE_OF_ONE = (
    "Chance: with one of the two kernels at least, a paired comparison on the test rows "
    "cannot tell the methods apart. The errors at σ = 0.05:"
)

_NO_EMPTY_CELL = (
    "Few classes or an unsure model: no bin or step that a true class of the test rows "
    "falls into was without such a row in the calibration set, so none got probability 0."
)
_ZEROS = (
    "The recorded probabilities are 0 for true classes of some test rows and of no "
    "calibration row, so no lapse rate was learned. A temperature leaves a 0 as it is; "
    "methods that replace values do not."
)
_ONE_SIDED = (
    "Two classes, and the forecast errs on one side: recessions given 61 % happened in "
    "35 %, while calm given 62 % came in 75 %. Curves bend there; one temperature treats "
    "both sides alike."
)
_SAME_RACES = (
    "The rows are many dates of the same races, some in the calibration fifth and some in "
    "the test, so that a curve can learn their lumps (right in 77 % at confidence 0.75, "
    "in 97 % at 0.86); one temperature cannot."
)
_MARGINALS = (
    "Some classes get too much probability on the whole and some too little (by up to 2 "
    "points), which a curve for each class mends (accuracy +0.36) and one temperature "
    "does not."
)
_NOT_OVERCONFIDENT = (
    "A wide kernel flattens every curve, which adds least to the error of an "
    "over-confident model, whose curve is flat already; that is how the order changes. "
    "These models are under-confident or nearly calibrated, so it need not. (The paper "
    "says that it can change.)"
)
_FEW_VALUES = (
    "Histogram binning gives fifteen confidences. A narrow kernel sees each of them alone; a "
    "wide one averages away errors of either sign at neighbours, more so than for the many "
    "values of the others."
)
_ALL_ALIKE = (
    "A wide kernel makes all methods but mean replacement nearly alike (1.04 to 1.15 at "
    "0.25) and leaves their order."
)
_BIAS = (
    "Each estimate sees an eighth of the rows, and the calibration error of a "
    "well-calibrated method is biased upwards by as much as noise in the curve adds: "
    "the means of the subsamples are too high, not off by chance."
)
_CONFIDENCE_ONLY = (
    "Only the confidence was recorded, so the loss leaves out all other classes, and "
    "the networks differ: this DenseNet-40 is far more over-confident than the ResNet."
)

EXCEPTIONS: dict[str, dict[str, tuple[str, ...]]] = {
    "mrr-ece": {
        CHANCE: (
            "cifar10_netcal_lenet_5",
            "cifar10_peterson_resnet_basic_110",
            "cifar10_peterson_wrn_28_10_humantuned_UNDERCONFIDENT",
        )
    },
    "mrr-smooth-ece": {
        CHANCE: (
            "cifar10_peterson_resnet_basic_110",
            "cifar10_peterson_wrn_28_10_humantuned_UNDERCONFIDENT",
        )
    },
    "ts-nll": {
        _ZEROS: ("sciq_gpt4o_token", "sciq_gpt4o_stated"),
        _ONE_SIDED: ("forecast_spf_recession",),
        CHANCE: ("fivethirtyeight_governors", "flares_NOAA"),
    },
    "ts-brier": {
        _MARGINALS: ("cifar10_netcal_wideresnet_16_4",),
        _ONE_SIDED: ("forecast_spf_recession",),
        _SAME_RACES: ("fivethirtyeight_governors",),
        CHANCE: (
            "cifar10_widmann_resnet18",
            "cifar10_widmann_resnet34",
            "cifar10_widmann_resnet50",
            "cifar10_widmann_vgg16_bn",
            "cifar10h_human_counts",
            "cifar100_netcal_lenet_5",
            "mnist_cleanlab_cv",
            "sciq_llama31_70b_token",
            "flares_NOAA",
            "flares_DAFFS",
            "flares_SIDC",
        ),
    },
    "hb-infinite": {
        _NO_EMPTY_CELL: (
            "cifar10_netcal_lenet_5",
            "imdb_cleanlab_cv",
            "sciq_gpt4o_token",
            "sciq_llama31_70b_token",
            "fivethirtyeight_games",
            "fivethirtyeight_governors",
            "forecast_spf_recession",
            "adult_random_forest",
        )
    },
    "ir-infinite": {
        _NO_EMPTY_CELL: (
            "sciq_llama31_70b_stated",
            "fivethirtyeight_games",
            "forecast_spf_recession",
        )
    },
    "sharpness": {_CONFIDENCE_ONLY: ("top1_nncal_resnet110_c10",)},
    "bandwidth": {
        _FEW_VALUES: ("adult_random_forest", "llm_stated_confidence"),
        CHANCE_OF_ONE: (
            "cifar10_akamaster_resnet32",
            "cifar10_netcal_lenet_5",
            "cifar10_peterson_densenet_bc_100_12",
            "cifar10_peterson_resnet_preact_bottleneck_164",
            "cifar10_peterson_shake_shake_26_2x64d_ssi_cutout16",
            "cifar10_peterson_wrn_28_10",
            "cifar10_peterson_wrn_28_10_humantuned_UNDERCONFIDENT",
            "cifar10_widmann_resnet18",
            "cifar10_widmann_resnet34",
            "cifar10_widmann_vgg16_bn",
            "cifar10_widmann_vgg19_bn",
            "cifar100_netcal_lenet_5",
            "mnist_cleanlab_cv",
            "sciq_llama31_70b_token",
            "sciq_llama31_70b_stated",
            "sciq_llama31_8b_token",
            "sciq_llama31_8b_stated",
            "fivethirtyeight_games",
            "flares_SIDC",
            "timm_gluon_senet154",
            "timm_resnext50_32x4d",
            "timm_tf_inception_v3",
            "torchvision_resnext101_32x8d",
            "top1_nncal_resnet110_c10",
        ),
    },
    "over-smoothing": {
        _ALL_ALIKE: ("adult_random_forest",),
        _NOT_OVERCONFIDENT: (
            "cifar10_peterson_wrn_28_10_humantuned_UNDERCONFIDENT",
            "cifar100_netcal_lenet_5",
            "mnist_cleanlab_cv",
            "timm_densenetblur121d",
            "timm_efficientnet_b1",
            "timm_efficientnet_b3a",
            "timm_ese_vovnet19b_dw",
            "timm_gluon_senet154",
            "timm_mixnet_m",
            "timm_mobilenetv3_large_100",
            "timm_resnet34",
            "timm_resnext50_32x4d",
            "timm_tf_inception_v3",
        ),
    },
    "kernel": {
        _FEW_VALUES: ("adult_random_forest", "llm_stated_confidence"),
        CHANCE_OF_ONE: (
            "cifar10_akamaster_resnet32",
            "cifar10_netcal_lenet_5",
            "cifar10_peterson_densenet_bc_100_12",
            "cifar10_peterson_resnet_preact_bottleneck_164",
            "cifar10_peterson_shake_shake_26_2x64d_ssi_cutout16",
            "cifar10_peterson_wrn_28_10_humantuned_UNDERCONFIDENT",
            "cifar10_widmann_resnet18",
            "cifar10_widmann_resnet34",
            "cifar10_widmann_vgg16_bn",
            "cifar10_widmann_vgg19_bn",
            "cifar100_netcal_lenet_5",
            "mnist_cleanlab_cv",
            "sciq_llama31_70b_token",
            "sciq_llama31_70b_stated",
            "sciq_llama31_8b_token",
            "sciq_llama31_8b_stated",
            "fivethirtyeight_games",
            "flares_SIDC",
            "timm_densenetblur121d",
            "timm_gluon_senet154",
            "timm_resnext50_32x4d",
            "timm_tf_inception_v3",
            "torchvision_inception_v3",
            "torchvision_resnext101_32x8d",
            "top1_nncal_resnet110_c10",
        ),
    },
    "subsample-rows": {
        _BIAS: ("timm_gluon_senet154", "torchvision_inception_v3"),
    },
}


def reason_for(claim: str, model: str) -> str | None:
    """Why a claim does not hold for a model; None if it is not known to fail."""
    for reason, models in EXCEPTIONS.get(claim, {}).items():
        if model in models:
            return reason
    return None


def is_chance(reason: str | None) -> bool:
    """Whether a reason is that the rows are too few to tell."""
    return reason in (CHANCE, CHANCE_OF_ONE)


def contradictions(verdicts: Iterable[Verdict]) -> Iterator[str]:
    """Verdicts that are not as the list above says, in words."""
    for claim, model, finding in verdicts:
        reason = reason_for(claim, model)
        where = f"{claim} for {model} ({finding.numbers})"
        if finding.holds and reason is not None:
            yield f"{where} holds, but is listed as an exception"
        elif not finding.holds and reason is None:
            yield f"{where} does not hold, and is not listed"
        elif not finding.holds and finding.settled == is_chance(reason):
            chance = "more than" if finding.settled else "no more than"
            yield f"{where} is {chance} chance, which is not the reason listed"

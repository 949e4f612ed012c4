"""The libraries we compare with: how to import them, and how each is called.

Every call is the plain documented one. The conventions behind the numbers are written
down in the docstring of `record_peers.py`.
"""

import contextlib
import importlib
import importlib.metadata
import importlib.util
import io
import sys
import types
import warnings

import numpy as np

DISTRIBUTIONS = {  # import name -> name on the package index
    "calibration": "uncertainty-calibration",
    "netcal": "netcal",
    "numpy": "numpy",
    "probmetrics": "probmetrics",
    "relplot": "relplot",
    "scipy": "scipy",
    "sharpcal": "sharpcal",
    "sklearn": "scikit-learn",
    "torch": "torch",
    "torchmetrics": "torchmetrics",
}


def version(name: str) -> str:
    """Installed version of an import name, without a build tag such as +cpu."""
    return importlib.metadata.version(DISTRIBUTIONS.get(name, name)).split("+")[0]


def available(name: str) -> bool:
    return importlib.util.find_spec(name) is not None


def importable(name: str) -> bool:
    """Whether a library is there, and can be imported."""
    try:
        load(name)
    except Exception:  # noqa: BLE001  whatever it is that breaks another library
        return False
    return True


def load(name: str) -> types.ModuleType:
    """Import a peer quietly; several warn on import about things we do not use."""
    if name.split(".")[0] == "sharpcal":
        _stand_in_for_datasets()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(name)


def _stand_in_for_datasets() -> None:
    """sharpcal names `datasets.IterableDataset` in annotations and nowhere else."""
    if "datasets" not in sys.modules and not available("datasets"):
        module = types.ModuleType("datasets")
        module.IterableDataset = type("IterableDataset", (), {})
        sys.modules["datasets"] = module


def use_threads(count: int) -> None:
    """Hold torch to `count` threads, if torch is there at all."""
    if available("torch"):
        load("torch").set_num_threads(count)


# One call each. `probs` is (n, k) or, for a binary event, (n,); arrays are NumPy's.


def netcal_error(name: str, probs, labels, bins: int = 15) -> float:
    """`name` is ECE, ACE or MCE."""
    metric = getattr(load("netcal.metrics"), name)
    return float(metric(bins=bins).measure(probs, labels))


def netcal_recalibrated(name: str, fit, labels, apply, **options) -> np.ndarray:
    """`name` is HistogramBinning or IsotonicRegression; it prints what we do not need."""
    method = getattr(load("netcal.binning"), name)(**options)
    with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return method.fit(fit, labels).transform(apply)


def torchmetrics_error(probs, labels, bins: int = 15, norm: str = "l1") -> float:
    torch = load("torch")
    functions = load("torchmetrics.functional.classification")
    p, y = torch.as_tensor(probs), torch.as_tensor(labels)
    if p.ndim == 1:
        return float(functions.binary_calibration_error(p, y, bins, norm))
    return float(
        functions.multiclass_calibration_error(p, y, p.shape[1], n_bins=bins, norm=norm)
    )


def relplot_smooth_ece(confidence, correct) -> tuple[float, float]:
    """The value, and the bandwidth relplot chose."""
    value, width = load("relplot").smECE(confidence, correct, return_width=True)
    return float(value), float(width)


def relplot_smooth_ece_at(confidence, correct, sigma: float) -> float:
    return float(load("relplot").smECE_sigma(confidence, correct, sigma=sigma))


def sharpcal_kernel(bandwidth: float = 0.05):
    return load("sharpcal.kernels").Gaussian1D(bandwidth=bandwidth)


def sharpcal_total_and_calibration(
    probs, labels, n_points: int = 5000, seed: int = 0
) -> tuple[float, float, float]:
    """Total loss, calibration error, and its spread over sharpcal's ten subsamples.

    With n_points >= n nothing is subsampled and the spread is 0.
    """
    torch = load("torch")
    diagram = load("sharpcal.calibration").SharpCal(
        sharpcal_kernel(), load("sharpcal.scores").BrierScore(), n_points=n_points
    )
    p, y = _as_columns(torch, probs), _as_columns(torch, labels)
    np.random.seed(seed)  # noqa: NPY002  sharpcal draws from the global generator
    with contextlib.redirect_stdout(io.StringIO()):  # it announces that it subsamples
        return tuple(map(float, diagram.get_full_loss_and_cal(p, y)))


def sharpcal_curve(at, probs, labels) -> dict[str, list[float]]:
    """Accuracy, density and total loss along the diagram, at the confidences `at`."""
    torch = load("torch")
    prediction, score = load("sharpcal.prediction"), load("sharpcal.scores")
    p, y, x = (_as_columns(torch, a) for a in (probs, labels, at))
    h, correct = prediction.get_binarized_preds_and_labels(p, y)
    kernel, loss = sharpcal_kernel(), score.BrierScore().div(p, y)
    accuracy, density = prediction.kernel_regression(x, h, correct, kernel)
    smooth_loss, _ = prediction.kernel_regression(x, h, loss, kernel)
    columns = {"accuracy": accuracy, "density": density, "loss": smooth_loss}
    return {"confidence": list(map(float, at))} | {
        name: column[:, 0].tolist() for name, column in columns.items()
    }


def _as_columns(torch, array):
    """sharpcal wants tensors of two axes, (n, 1) for what we hold as (n,)."""
    tensor = torch.as_tensor(array)
    return tensor.unsqueeze(1) if tensor.ndim == 1 else tensor


def relplot_diagram(confidence, correct):
    """relplot's reliability diagram, drawn and thrown away."""
    pyplot = load("matplotlib.pyplot")
    figure, _ = load("relplot").rel_diagram(confidence, correct)
    pyplot.close(figure)

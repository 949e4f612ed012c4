"""Record the temperatures that scikit-learn and probmetrics fit on the real files.

Run it where both are installed (peers.txt). Scores are logits, or logarithms of
probabilities, in double precision. Tests read what it writes.
"""

import argparse
import json
import warnings
from pathlib import Path

import numpy as np
import peers
from record_peers import HERE, default_data

OUT = HERE.parent / "tests" / "peer_temperatures.json"


def scores_and_labels(path: Path):
    """Logits and labels of a file; None if it has no full rows, or holds zeros."""
    with np.load(path, allow_pickle=False) as file:
        if "labels" not in file.files or not {"logits", "probs"} & set(file.files):
            return None
        if "logits" in file.files:
            return file["logits"].astype(np.float64), file["labels"].astype(np.int64)
        probs, labels = file["probs"].astype(np.float64), file["labels"]
    if probs.min() == 0:
        return None
    return np.log(probs), labels.astype(np.int64)


def scikit_learn(logits, labels) -> float:
    """Through the public door: a frozen classifier whose decision is its input."""
    base = peers.load("sklearn.base")

    class Logits(base.ClassifierMixin, base.BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.arange(X.shape[1])
            return self

        def decision_function(self, X):
            # scikit-learn reads one column d as the logits (-d, d)
            return (X[:, 1] - X[:, 0]) / 2 if X.shape[1] == 2 else X

        def predict(self, X):
            return X.argmax(axis=1)

    frozen = peers.load("sklearn.frozen").FrozenEstimator(Logits().fit(logits, labels))
    calibrated = peers.load("sklearn.calibration").CalibratedClassifierCV
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of rare classes
        fitted = calibrated(frozen, method="temperature").fit(logits, labels)
    return 1 / float(fitted.calibrated_classifiers_[0].calibrators[0].beta_)


def probmetrics(logits, labels) -> float:
    torch = peers.load("torch")
    calibrators = peers.load("probmetrics.calibrators")
    distributions = peers.load("probmetrics.distributions")
    calibrator = calibrators.TemperatureScalingCalibrator()
    given = distributions.CategoricalLogits(torch.as_tensor(logits))
    calibrator.fit_torch(y_pred=given, y_true_labels=torch.as_tensor(labels))
    return 1 / float(calibrator.invtemp_)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, default=default_data())
    parser.add_argument("--out", type=Path, default=OUT)
    options = parser.parse_args()
    names = ("sklearn", "probmetrics")
    record = {"versions": {name: peers.version(name) for name in names}, "files": {}}
    for path in sorted(options.data.glob("*.npz")):
        if (found := scores_and_labels(path)) is not None:
            record["files"][path.stem] = {
                "sklearn": scikit_learn(*found),
                "probmetrics": probmetrics(*found),
            }
    options.out.write_text(json.dumps(record, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    main()

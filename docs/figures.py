"""Make the figures of README and documentation: `python docs/figures.py`.

They come from real model outputs if the folder of data is there (CALIBRANT_DATA, or
../shared/data), else from the network that the demo trains. As in the tables of
recalibration.md, a fifth of the rows, drawn at random, calibrates and the rest is tested.
"""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.image import imread, imsave
from matplotlib.style import context

import calibrant as cal
from calibrant import plot

HERE = Path(__file__).resolve().parent
DATA = Path(os.environ.get("CALIBRANT_DATA", HERE.parent.parent / "shared" / "data"))
Rows = tuple[str, Any, Any]
"""What the scores are ("logits" or "probs"), the scores, and the labels."""

IMAGES = HERE / "images"
MOST_BYTES = 200_000
MODELS = {
    "cifar10": "cifar10_akamaster_resnet32",
    "cifar100": "cifar100_netcal_densenet_bc_100",
    "imagenet": "imagenet5k_efficientnet_lite0",
}


def main() -> None:
    """Draw all figures and say what was written."""
    IMAGES.mkdir(exist_ok=True)
    studies = {name: study_of(*rows) for name, rows in models().items()}
    for name, study in studies.items():
        save(plot.calibration_sharpness(study), f"row_{name}.png", dpi=180)
    first = next(iter(studies.values()))
    show_ways(first)
    show_diagrams(first[0])
    show_styles(first[0])
    save(plot.calibration_sharpness(forest()), "tutorial_forest.png", dpi=150)


def forest() -> Any:
    """The random forest of tutorial.md."""
    from sklearn.datasets import load_digits
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.model_selection import train_test_split

    pixels, digits = load_digits(return_X_y=True)
    parts = train_test_split(pixels, digits, test_size=0.8, random_state=0)
    model = RandomForestClassifier(random_state=0).fit(parts[0], parts[2])
    return cal.evaluate(parts[3], probs=model.predict_proba(parts[1]), name="forest")


def models() -> dict[str, Rows]:
    """Scores and labels by short name."""
    if DATA.is_dir():
        return {name: _load(DATA / f"{file}.npz") for name, file in MODELS.items()}
    from tempfile import TemporaryDirectory

    from calibrant.demo import run

    with TemporaryDirectory() as folder:
        run(Path(folder))
        return {"demo": _load(Path(folder) / "predictions.npz")}


def _load(path: Path) -> Rows:
    """Scores and labels of a file."""
    with np.load(path, allow_pickle=False) as file:
        kind = "logits" if "logits" in file else "probs"
        scores, labels = file[kind].astype(np.float64), file["labels"].astype(int)
    return kind, scores, labels


def study_of(kind: str, scores: Any, labels: Any) -> Any:
    """The paper's methods and split."""
    return cal.study(labels, **{kind: scores}, split=0.2, rng=0)


def show_ways(study: Any) -> None:
    """Figures that compare methods."""
    save(plot.calibration_sharpness(study, style="paper"), "paper_style.png", dpi=160)
    save(plot.compare_methods(study), "methods.svg")
    save(plot.score_map(study), "score_map.svg")
    save(plot.bandwidth_sweep(study), "bandwidth_sweep.png", dpi=90)
    save(plot.reliability(study), "reliability_row.png", dpi=150)


def show_diagrams(ev: Any) -> None:
    """Every diagram of one model."""
    save(plot.calibration_sharpness(ev), "diagram.svg")
    save(plot.calibration_sharpness(ev, scale="logit"), "diagram_logit.svg")
    save(plot.reliability(ev), "reliability.svg")
    save(plot.smooth_reliability(ev), "smooth_reliability.svg")
    save(plot.corp(ev), "corp.svg")
    save(plot.residual(ev), "residual.svg")


def show_styles(ev: Any) -> None:
    """The same diagram in three settings of the user, side by side."""
    pictures = []
    for settings in ({}, "dark_background", {"font.family": "serif", "font.size": 8}):
        with context(settings):
            ax = plot.calibration_sharpness(ev, figsize=(3.25, 2.4))
            content = BytesIO()
            ax.figure.savefig(content, format="png", dpi=130)
            content.seek(0)
            pictures.append(imread(content)[..., :3])
    imsave(IMAGES / "styles.png", np.hstack(pictures), pil_kwargs={"optimize": True})


def save(drawn: Any, name: str, **options: Any) -> None:
    """Write a figure; a file too large for a repository is an error."""
    ax = np.ravel(np.asarray(drawn))[0]
    path = IMAGES / name
    if path.suffix == ".png":
        options["pil_kwargs"] = {"optimize": True}
    ax.get_figure(root=True).savefig(path, **options)
    size = path.stat().st_size
    if size > MOST_BYTES:
        raise ValueError(f"{name} has {size:,} bytes, more than {MOST_BYTES:,}.")
    print(f"{path.relative_to(HERE.parent)}: {size:,} bytes")  # noqa: T201


if __name__ == "__main__":
    main()

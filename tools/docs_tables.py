"""Write the tables of docs/recalibration.md from studies of real networks.

`python tools/docs_tables.py` writes, if the folder of real model outputs is there; with
`--check` it only says whether the page is out of date (exit code 1).
"""

import os
import re
import sys
from pathlib import Path

import numpy as np

import calibrant as cal

ROOT = Path(__file__).resolve().parent.parent
DATA = Path(os.environ.get("CALIBRANT_DATA", ROOT.parent / "shared" / "data"))
PAGE = ROOT / "docs" / "recalibration.md"
MARKERS = re.compile(
    r"(?<=<!-- tables:start -->\n).*(?=<!-- tables:end -->)", re.DOTALL
)
NETWORKS = {
    "cifar10_akamaster_resnet32": "ResNet-32 on CIFAR-10",
    "cifar100_netcal_densenet_bc_100": "DenseNet-BC-100 on CIFAR-100",
    "imagenet5k_efficientnet_lite0": "EfficientNet-Lite0 on 5,000 images of ImageNet",
}


def study(name: str) -> cal.Study:
    """The paper's protocol: 20 % to fit on, drawn at random."""
    with np.load(DATA / f"{name}.npz", allow_pickle=False) as file:
        kind = "logits" if "logits" in file.files else "probs"
        scores, labels = file[kind], file["labels"]
    return cal.study(labels, **{kind: scores}, split=0.2, rng=0)


def section(name: str, title: str) -> str:
    found = study(name)
    table = found.table("markdown")
    return f"**{title}** ({found.protocol})\n\n{table.strip()}\n"


def main() -> None:
    if not DATA.is_dir():
        raise SystemExit(f"no data folder at {DATA}; the tables are left as they are")
    body = "\n".join(section(name, title) for name, title in NETWORKS.items())
    page = PAGE.read_text(encoding="utf-8")
    written, count = MARKERS.subn(lambda _: f"\n{body}\n", page)
    if count != 1:
        raise SystemExit(f"{PAGE.name} needs one pair of tables:start/end markers")
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(written, encoding="utf-8")
    elif written != page:
        raise SystemExit(f"{PAGE.name}: run python tools/docs_tables.py")


if __name__ == "__main__":
    main()

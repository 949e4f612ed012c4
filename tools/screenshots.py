"""Pictures of a report, to be looked at: light, dark, overlay, log, phone and paper.

Usage: python tools/screenshots.py [REPORT.html] [-o FOLDER]

Without a report, one is made of five recalibrations of an over-confident classifier.
Chromium is needed.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

import acumen as ac
from acumen.report import report

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from browser.chromium import Chromium

VIEWS = {
    "light": ("at=0.8", {}),
    "dark": ("at=0.8", {"scheme": "dark"}),
    "live": ("width=0.05&at=0.8&intervals=1", {}),
    "overlay": ("view=overlay&at=0.8", {"scheme": "dark"}),
    "log": ("score=log&at=0.8", {}),
    "phone": ("at=0.8", {"width": 390, "height": 844}),
    "no_script": ("", {"script": False}),
}
PAPER_WIDTH = 1047
"""A4 on its side, less the margins, in pixels."""


def make_report(folder):
    """Five recalibrations of an over-confident classifier of ten classes."""
    rng = np.random.default_rng(0)
    z = 1.7 * rng.normal(size=(30_000, 10))
    y = (z + rng.gumbel(size=z.shape)).argmax(axis=1)
    models = ac.study(y, logits=1.8 * z, methods="paper")
    return report(models, folder / "report.html", title="An over-confident classifier")


def take(page, folder):
    """Save every view of a page."""
    address = page.resolve().as_uri()
    with Chromium() as browser:
        for name, (state, options) in VIEWS.items():
            with browser.page(**options) as tab:
                tab.open(f"{address}#{state}" if state else address)
                if options.get("script", True):
                    tab.settle()
                tab.picture(folder / f"{name}.png")
        with browser.page(width=PAPER_WIDTH) as tab:
            tab.open(address)
            (folder / "print.pdf").write_bytes(tab.printed())
            tab.call("Emulation.setEmulatedMedia", media="print")
            tab.settle()
            tab.picture(folder / "print.png")


def main():
    """Read the command line, take the pictures, say where they are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", nargs="?", type=Path)
    parser.add_argument(
        "-o", "--output", type=Path, default=ROOT / "build" / "screenshots"
    )
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    take(given.page or make_report(given.output), given.output)
    print(f"pictures in {given.output}")


if __name__ == "__main__":
    main()

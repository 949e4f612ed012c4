"""Pictures of a report, to be looked at: light, dark, overlay, log, phone and paper.

Usage: python tools/screenshots.py [REPORT.html] [-o FOLDER]

Without a report, three are made of an over-confident classifier: of recalibrations, of
each class against the rest, and of groups of rows. Chromium is needed.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

import calibrant as cal
from calibrant.report import report

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from browser.chromium import Chromium

PHONE = {"width": 390, "height": 844}
DARK = {"scheme": "dark"}
VIEWS = {
    "light": ("at=0.8", {}),
    "dark": ("at=0.8", DARK),
    "narrow": ("intervals=1", {"width": 1280}),
    "live": ("width=0.05&at=0.8&intervals=1", {}),
    "overlay": ("view=overlay&at=0.8", DARK),
    "log": ("score=log&at=0.8", {}),
    "phone": ("at=0.8", PHONE),
    "no_script": ("", {"script": False}),
}
PARTS = {"light": ("", {}), "dark": ("", DARK), "phone": ("", PHONE)}
TITLE = "An over-confident classifier"
PAPER_WIDTH = 1047
"""A4 on its side, less the margins, in pixels."""


def classifier():
    """Labels and logits of an over-confident classifier of ten classes."""
    rng = np.random.default_rng(0)
    z = 1.7 * rng.normal(size=(30_000, 10))
    return (z + rng.gumbel(size=z.shape)).argmax(axis=1), 1.8 * z


def of_methods():
    """Five recalibrations."""
    y, z = classifier()
    return cal.study(y, logits=z, methods="paper")


def of_classes():
    """Before and after a temperature, class by class."""
    y, z = classifier()
    return [
        cal.evaluate(y, logits=scale * z, target="class-wise", name=name)
        for name, scale in (("Uncalibrated", 1), ("Temperature", 1 / 1.8))
    ]


def of_groups():
    """Four groups of rows; one of them is small."""
    y, z = classifier()
    group = np.random.default_rng(1).choice(
        list("NESW"), len(y), p=[0.6, 0.25, 0.14, 0.01]
    )
    return cal.evaluate(y, logits=z, group=group, name="Uncalibrated")


REPORTS = {
    "": (of_methods, VIEWS),
    "classes": (of_classes, PARTS),
    "groups": (of_groups, PARTS),
}


def take(page, folder, views, prefix=""):
    """Save every view of a page, and the page on paper."""
    address = page.resolve().as_uri()
    with Chromium() as browser:
        for name, (state, options) in views.items():
            with browser.page(**options) as tab:
                tab.open(f"{address}#{state}" if state else address)
                if options.get("script", True):
                    tab.settle()
                tab.picture(folder / f"{prefix}{name}.png")
        with browser.page(width=PAPER_WIDTH) as tab:
            tab.open(address)
            (folder / f"{prefix}print.pdf").write_bytes(tab.printed())
            tab.call("Emulation.setEmulatedMedia", media="print")
            tab.settle()
            tab.picture(folder / f"{prefix}print.png")


def take_own(folder):
    """Make the three reports and take their pictures."""
    for name, (models, views) in REPORTS.items():
        prefix = f"{name}_" if name else ""
        page = report(
            models(), folder / f"{prefix}report.html", title=TITLE, force=True
        )
        take(page, folder, views, prefix)


def main():
    """Read the command line, take the pictures, say where they are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("page", nargs="?", type=Path)
    parser.add_argument(
        "-o", "--output", type=Path, default=ROOT / "build" / "screenshots"
    )
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    if given.page:
        take(given.page, given.output, VIEWS)
    else:
        take_own(given.output)
    print(f"pictures in {given.output}")


if __name__ == "__main__":
    main()

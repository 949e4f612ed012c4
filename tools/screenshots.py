"""Pictures of reports, to be looked at: a desktop, a phone, dark mode and paper.

Usage: python tools/screenshots.py [REPORT.html ...] [-o FOLDER] [--only NAME ...]

Without a report, those below are made: of 1, 2, 5 and 12 models, of each class against
the rest, and of groups. Chromium is needed.
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

DESK, PHONE = {"width": 1440}, {"width": 390, "height": 844}
DARK = {**DESK, "scheme": "dark"}
VIEWS = {
    "desk": ("", DESK),
    "dark": ("", DARK),
    "phone": ("", PHONE),
    "phone_dark": ("", {**PHONE, "scheme": "dark"}),
}
MORE = {
    "read": ("at=0.8", {"width": 1280}),
    "live": ("width=0.05&at=0.8", DESK),
    "overlay": ("view=overlay&at=0.8", DARK),
    "log": ("score=log&at=0.8", DESK),
    "no_script": ("", {**DESK, "script": False}),
}
PAPER_WIDTH = 1047
"""A4 on its side, less the margins, in pixels."""

LONG = ("resnet50.a1_in1k (augmented, 300 epochs)", "vit_base_patch16_224 + mixup 0.2")


def classifier(n=12_000):
    """Labels and logits of an over-confident classifier of ten classes."""
    rng = np.random.default_rng(0)
    z = 1.7 * rng.normal(size=(n, 10))
    return (z + rng.gumbel(size=z.shape)).argmax(axis=1), 1.8 * z


def one():
    """Forecasts of rain, somewhat too high."""
    rng = np.random.default_rng(2)
    p = rng.beta(0.8, 1.6, 4000)
    rain = rng.random(len(p)) < p**1.25
    return cal.evaluate(rain, probs=p, target="positive", name="Rain forecasts")


def two():
    """Two networks of long names, of which one is calibrated."""
    y, z = classifier()
    return [
        cal.evaluate(y, logits=scale * z, name=name)
        for name, scale in zip(LONG, (1, 1 / 1.8), strict=True)
    ]


def five():
    """The paper's recalibrations."""
    y, z = classifier()
    return cal.study(y, logits=z, methods="paper")


def twelve():
    """All recalibrations but one."""
    y, z = classifier(6000)
    return cal.Comparison(cal.study(y, logits=z, methods="all").evaluations[:12])


def classes():
    """Before and after a temperature, class by class."""
    y, z = classifier()
    return [
        cal.evaluate(y, logits=scale * z, target="class-wise", name=name)
        for name, scale in (("Uncalibrated", 1), ("Temperature", 1 / 1.8))
    ]


def groups():
    """Eleven groups of examples; one of them is small."""
    y, z = classifier()
    share = np.array([6, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0.1])
    group = np.random.default_rng(1).choice(11, len(y), p=share / share.sum())
    named = np.char.add("site ", group.astype(str))
    return cal.evaluate(y, logits=z, group=named, name="Uncalibrated")


REPORTS = {
    "one": (one, "Will it rain?", VIEWS),
    "two": (two, "Two networks", VIEWS),
    "five": (five, "An over-confident classifier", VIEWS | MORE),
    "twelve": (twelve, "Twelve recalibrations", VIEWS),
    "classes": (classes, "Class by class", VIEWS),
    "groups": (groups, "Eleven sites", VIEWS),
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


def take_own(folder, names):
    """Make the reports and take their pictures."""
    for name in names:
        models, title, views = REPORTS[name]
        page = report(models(), folder / f"{name}.html", title=title, force=True)
        take(page, folder, views, f"{name}_")


def main():
    """Read the command line, take the pictures, say where they are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument("--only", nargs="+", choices=REPORTS, default=list(REPORTS))
    parser.add_argument(
        "-o", "--output", type=Path, default=ROOT / "build" / "screenshots"
    )
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    for page in given.pages:
        take(page, given.output, VIEWS | MORE, f"{page.stem}_")
    if not given.pages:
        take_own(given.output, given.only)
    print(f"pictures in {given.output}")


if __name__ == "__main__":
    main()

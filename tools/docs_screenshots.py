"""Pictures of README and documentation, to be looked at: desktop and phone, light and dark.

Usage: python tools/docs_screenshots.py [-o FOLDER] after `make docs`. Chromium is needed.
The README is shown nearly as GitHub shows it.
"""

import argparse
import base64
import sys
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from browser.chromium import Chromium

BUILT = ROOT / "docs" / "_build"
PAGES = {
    "landing": "index.html",
    "install": "install.html",
    "howto": "howto/medicine.html",
    "method": "method.html",
    "api": "reference/generated/calibrant.calibration_error.html",
    "reference": "reference.html",
    "cases": "generated/cases/index.html",
    "case": "generated/cases/plot_1_network.html",
}
PHONE = {"width": 390, "height": 844}
VIEWS = {
    "desktop": {},
    "dark": {"scheme": "dark"},
    "phone": PHONE,
    "phone_dark": {**PHONE, "scheme": "dark"},
}
GITHUB = """
body { max-width: 830px; margin: 2rem auto; padding: 0 1rem; color: #1f2328;
  font: 16px/1.5 -apple-system, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; }
h1, h2 { padding-bottom: .3em; border-bottom: 1px solid #d1d9e0b3; line-height: 1.25; }
pre { padding: 16px; overflow: auto; background: #f6f8fa; border-radius: 6px; }
code { font: 85%/1.45 ui-monospace, "Liberation Mono", monospace; }
:not(pre) > code { padding: .2em .4em; background: #818b981f; border-radius: 6px; }
td, th { padding: 6px 13px; border: 1px solid #d1d9e0; }
table { display: block; overflow: auto; border-collapse: collapse; }
img { max-width: 100%; }
@media (prefers-color-scheme: dark) { body { background: #0d1117; color: #f0f6fc; }
  pre { background: #151b23; } a { color: #4493f8; } }
"""


def readme(folder):
    """The README as a page of its own."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    body = MarkdownIt("commonmark", {"html": True}).enable("table").render(text)
    for picture in (ROOT / "docs" / "images").glob("*.png"):
        data = base64.b64encode(picture.read_bytes()).decode()
        source = f"docs/images/{picture.name}"
        body = body.replace(source, f"data:image/png;base64,{data}")
    page = folder / "readme.html"
    head = f'<meta name="viewport" content="width=device-width"><style>{GITHUB}</style>'
    page.write_text(
        f"<!doctype html><meta charset=utf-8>{head}{body}", encoding="utf-8"
    )
    return page


def main():
    """Take every page in every view and say where the pictures are."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--built", type=Path, default=BUILT)
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build" / "docs")
    given = parser.parse_args()
    given.output.mkdir(parents=True, exist_ok=True)
    pages = {name: given.built / path for name, path in PAGES.items()}
    pages["readme"] = readme(given.output)
    with Chromium() as browser:
        for view, options in VIEWS.items():
            for name, path in pages.items():
                with browser.page(**options) as tab:
                    tab.open(path.resolve().as_uri())
                    tab.picture(given.output / f"{name}_{view}.png")
    print(f"pictures in {given.output}")


if __name__ == "__main__":
    main()

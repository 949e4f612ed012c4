"""Copy benchmarks/results.md into the README, between its two markers.

`python tools/readme_benchmarks.py` writes; with `--check` it only says whether the
README is out of date (exit code 1).
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
MARKERS = re.compile(
    r"(?<=<!-- benchmarks:start -->\n).*(?=<!-- benchmarks:end -->)", re.DOTALL
)


def quote(readme: str, results: str) -> str:
    """Put the results, without their title, between the markers of the readme."""
    body = re.sub(r"\A# .*\n", "", results).strip()
    quoted, count = MARKERS.subn(lambda _: f"\n{body}\n\n", readme)
    if count != 1:
        raise SystemExit("README.md needs one pair of benchmarks:start/end markers")
    return quoted


def main() -> None:
    path = ROOT / "README.md"
    readme = path.read_text(encoding="utf-8")
    results = (ROOT / "benchmarks" / "results.md").read_text(encoding="utf-8")
    quoted = quote(readme, results)
    if "--check" in sys.argv[1:]:
        if quoted != readme:
            raise SystemExit("README.md: run python tools/readme_benchmarks.py")
    else:
        path.write_text(quoted, encoding="utf-8")


if __name__ == "__main__":
    main()

"""Write the table of costs of docs/scale.md from benchmarks/results.json.

`python tools/docs_costs.py` writes it after `make bench`; with `--check` it only says whether
the page is out of date (exit code 1). The page holds the code that prints the table.
"""

import contextlib
import io
import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "scale.md"
TABLE = re.compile(
    r"(<!-- setup\n(?P<code>found = json\.loads.*?)-->.*?<!-- output -->\n```text\n).*?(?=```)",
    re.DOTALL,
)


def main() -> None:
    page = PAGE.read_text(encoding="utf-8")
    found = TABLE.search(page)
    if found is None:
        raise SystemExit(f"{PAGE.name} has no table of costs")
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(found["code"], {"json": json, "ROOT": ROOT})  # noqa: S102  our own page
    written = page[: found.end(1)] + printed.getvalue() + page[found.end() :]
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(written, encoding="utf-8")
    elif written != page:
        raise SystemExit("docs/scale.md: run python tools/docs_costs.py")


if __name__ == "__main__":
    main()

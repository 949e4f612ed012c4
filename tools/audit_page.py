"""Write docs/audit.md from the docstrings of the audit's rules.

`python tools/audit_page.py` writes; with `--check` it only says whether the page is out
of date (exit code 1).
"""

import sys
from pathlib import Path

from calibrant.audit._audit import docs_page

PAGE = Path(__file__).resolve().parent.parent / "docs" / "audit.md"


def main() -> None:
    text = docs_page()
    if "--check" not in sys.argv[1:]:
        PAGE.write_text(text, encoding="utf-8")
    elif not PAGE.exists() or PAGE.read_text(encoding="utf-8") != text:
        raise SystemExit("docs/audit.md: run python tools/audit_page.py")


if __name__ == "__main__":
    main()

"""Run the README's Python example and show what it prints in the `text` block below it.

`python tools/readme_example.py` writes; with `--check` it only says whether the README
is out of date (exit code 1).
"""

import re
import subprocess
import sys
from pathlib import Path

README = Path(__file__).resolve().parent.parent / "README.md"
PROSE = r"(?:(?!```).)*"  # anything but a fence, so that the block is the nearest one
EXAMPLE = re.compile(
    rf"(```python\n({PROSE})```{PROSE}```text\n)(.*?)(?=```)", re.DOTALL
)


def main() -> None:
    readme = README.read_text(encoding="utf-8")
    head, code, shown = EXAMPLE.search(readme).groups()
    run = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, check=True
    )
    printed = run.stdout.decode("utf-8")
    if "--check" not in sys.argv[1:]:
        README.write_text(
            readme.replace(head + shown, head + printed), encoding="utf-8"
        )
    elif printed != shown:
        raise SystemExit("README.md: run python tools/readme_example.py")


if __name__ == "__main__":
    main()

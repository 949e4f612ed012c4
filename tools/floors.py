"""Print `name==floor` for each `name>=floor` in pyproject.toml: pip's constraints.

But for torch, whose version the Makefile holds: others bring gigabytes of GPU libraries.
"""

import re
import tomllib
from pathlib import Path

project = tomllib.loads(Path("pyproject.toml").read_text(encoding="utf-8"))["project"]
extras = project.get("optional-dependencies", {})
for requirement in sum(extras.values(), project["dependencies"]):
    floor = re.fullmatch(r"([\w.-]+)>=([\w.]+)", requirement)
    if floor is None:
        raise SystemExit(f"pyproject.toml: {requirement!r} is not name>=version")
    if floor[1] != "torch":
        print(f"{floor[1]}=={floor[2]}")

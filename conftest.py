"""Modules of optional parts are left out where the part is absent; CI has them all."""

from importlib.util import find_spec

collect_ignore_glob: list[str] = []
if not (find_spec("torch") and find_spec("torchmetrics")):
    collect_ignore_glob.append("src/calibrant/torch/*")
if not (find_spec("narwhals") and find_spec("pandas")):
    collect_ignore_glob += ["src/calibrant/_sketch/frames.py"]
    collect_ignore_glob += ["src/calibrant/_sketch/query.py"]

"""Doctests of optional parts are left out where the part is absent; CI has them all."""

from importlib.util import find_spec

collect_ignore_glob: list[str] = []
if not (find_spec("torch") and find_spec("torchmetrics")):
    collect_ignore_glob.append("src/calibrant/torch/*")
if not (find_spec("narwhals") and find_spec("pandas")):
    collect_ignore_glob += ["src/calibrant/_sketch/frames.py"]
    collect_ignore_glob += ["src/calibrant/_sketch/query.py"]


def pytest_collect_file(file_path):
    """torchmetrics, which this module needs, imports torchvision."""
    if file_path.parts[-3:] == ("calibrant", "torch", "_metric.py"):
        from torchvision_operators import mend_torchvision

        mend_torchvision()

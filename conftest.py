"""One thread per process, and no modules of parts that are absent."""

import os
from importlib.util import find_spec

# pytest-xdist starts a process per core. Threads of BLAS would wait for each other there,
# busily: some estimates then take five times as long. Set before NumPy is loaded.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

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

"""What is said where a package of an extra is not installed: one line, and the remedy."""

import re
import subprocess
import sys
import tomllib

import pytest
from test_project import ROOT

from calibrant._base.checks import EXTRAS, missing

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
PARTS = PROJECT["optional-dependencies"]

HIDDEN = """
import sys

class Hide:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {hidden!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Hide())
try:
    {code}
except Exception as error:
    print(type(error).__name__, error)
"""

CASES = {
    "RecalibratedClassifier": (
        "sklearn",
        "from calibrant.recalibration import RecalibratedClassifier",
        "calibrant.recalibration.RecalibratedClassifier needs scikit-learn: {sklearn}",
    ),
    "demo": (
        "sklearn",
        "import calibrant.demo; calibrant.demo._train(0)",
        "the demo needs scikit-learn: {demo}",
    ),
    "torch": (
        "torch",
        "import calibrant.torch",
        "calibrant.torch needs PyTorch: {torch}",
    ),
    "sketch_frame": (
        "narwhals",
        "import calibrant as cal; cal.sketch_frame({})",
        "calibrant.sketch_frame needs narwhals: {frames}",
    ),
    "batches": (
        "pyarrow",
        (
            "import calibrant as cal, duckdb; rows = duckdb.sql('select 0 y, [0.5, 0.5] p'); "
            "cal.sketch_frame(rows, y='y', probs='p', target='top-label')"
        ),
        "a DuckDBPyRelation of these columns needs PyArrow: {arrow}",
    ),
    "vision": (
        "timm",
        "from calibrant.vision._images import needed; needed('timm.data')",
        "calibrant.vision needs timm: {vision}",
    ),
    "csv": (
        "duckdb",
        (
            "import calibrant.files; open('a.csv', 'w').write('y,p'); "
            "calibrant.files.read('a.csv')"
        ),
        "a.csv: needs duckdb to be read (pip install duckdb; or save it as .npz)",
    ),
    "feather": (
        "pyarrow",
        (
            "import calibrant.files; open('a.feather', 'wb').write(b'ARROW1' + bytes(64)); "
            "calibrant.files.read('a.feather')"
        ),
        "a.feather: needs pyarrow to be read ({arrow}; or save it as .parquet)",
    ),
    "safetensors": (
        "safetensors",
        (
            "import calibrant.files; open('a.safetensors', 'wb').write(bytes(64)); "
            "calibrant.files.read('a.safetensors')"
        ),
        "a.safetensors: needs safetensors to be read ({tensors}; or save it as .npz)",
    ),
    "pt": (
        "torch",
        (
            "import calibrant.files, zipfile; zipfile.ZipFile('a.pt', 'w').writestr('a', ''); "
            "calibrant.files.read('a.pt')"
        ),
        "a.pt: needs torch to be read ({torch}; or save the tensors as .safetensors or .npz)",
    ),
}
"""What is hidden, what is done without it, and what is said; {extra} is its remedy."""


@pytest.mark.parametrize("case", CASES)
def test_a_missing_package_is_one_line_with_its_remedy(case, tmp_path):
    hidden, code, want = CASES[case]
    script = HIDDEN.format(hidden={hidden}, code=code)
    command = [sys.executable, "-c", script]
    run = subprocess.run(
        command, capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert run.stderr == ""
    (said,) = run.stdout.splitlines()
    remedies = {name: f"pip install 'calibrant[{name}]'" for name in PARTS}
    assert want.format(**remedies) in said


def test_every_extra_that_is_named_exists():
    named = {extra for _, extra in EXTRAS.values()}
    for path in (ROOT / "src").rglob("*.py"):
        named |= set(re.findall(r"calibrant\[(\w+)\]", path.read_text("utf-8")))
    assert named - set(PARTS) == set()
    for module, (package, extra) in EXTRAS.items():
        said = str(missing(ModuleNotFoundError(name=f"{module}.part"), "it"))
        assert said == f"it needs {package}: pip install 'calibrant[{extra}]'."
        installed = {re.split(r"[<>=~\[]", part)[0] for part in PARTS[extra]}
        assert {module, package.lower(), "scikit-learn"} & installed


def test_every_extra_is_named_by_an_error():
    named = {extra for _, extra in EXTRAS.values()}
    assert set(PARTS) - named == {"demo"}  # which `test_a_missing_package` asks for


def test_other_errors_are_handed_on():
    error = ModuleNotFoundError("No module named 'other'", name="other")
    assert missing(error, "it") is error
    broken = missing(ImportError("too old", name="torch"), "it")
    assert str(broken) == "it needs PyTorch (too old): pip install 'calibrant[torch]'."


BROKEN = """
import sys

class Break:
    def find_spec(self, name, path=None, target=None):
        if name == "torchmetrics":
            raise RuntimeError("operator torchvision::nms does not exist")

sys.meta_path.insert(0, Break())
try:
    from calibrant.torch import CalibrationSharpness
except ImportError as error:
    print(error)
"""


def test_a_package_that_cannot_be_imported_is_one_line_with_its_remedy(part):
    """A torchvision for another PyTorch stops torchmetrics by thirty lines of traceback."""
    part("torch")
    done = subprocess.run(
        [sys.executable, "-c", BROKEN], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    (line,) = done.stdout.splitlines()
    assert (
        "torchmetrics, which cannot be imported here (operator torchvision::nms" in line
    )
    assert "or remove torchvision" in line

"""A newcomer follows the tutorial, and nothing else, in a new environment."""

import os
import re
import subprocess
import sys
from importlib.metadata import distribution
from pathlib import Path

import pytest
from pages import blocks_of

ROOT = Path(__file__).resolve().parent.parent
TUTORIAL = ROOT / "docs" / "tutorial.md"
INSTALL = re.compile(r"^\$ pip (install .*)$", re.MULTILINE)

pytestmark = pytest.mark.skipif(
    os.environ.get("CALIBRANT_STRICT") != "1",
    reason="installs packages, for minutes: set CALIBRANT_STRICT=1",
)


def commands():
    """What the tutorial tells a newcomer to install, in order."""
    blocks = blocks_of(TUTORIAL.read_text(encoding="utf-8"))
    return [found for block in blocks for found in INSTALL.findall(block.body)]


def run(*command, cwd=ROOT):
    """What it prints. PYTHONPATH is taken away: else it, not pip, may be what is tried."""
    rest = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    given = {"cwd": cwd, "env": rest, "capture_output": True, "text": True}
    done = subprocess.run(list(map(str, command)), check=False, **given)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture
def python(tmp_path):
    """The interpreter of a new environment."""
    run(sys.executable, "-m", "venv", tmp_path / "new")
    return tmp_path / "new" / "bin" / "python"


def lend_torch(python):
    """Link this environment's torch into the new one: it is large, and there is one
    build of it that fits."""
    torch = distribution("torch")
    target = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))")
    tops = {Path(file).parts[0] for file in torch.files if ".." not in Path(file).parts}
    for top in tops:
        (Path(target.strip()) / top).symlink_to(torch.locate_file(top))
    return torch.version


def test_tutorial_in_a_new_environment(python, tmp_path, part):
    part("torch")
    ours, torch = commands()
    assert (ours, torch) == ('install ".[demo]"', "install torch")
    run(python, "-m", "pip", "install", "--quiet", ".[demo]")
    run(python, "-m", "pip", "install", "--quiet", f"torch=={lend_torch(python)}")
    home = run(
        python, "-c", "import calibrant; print(calibrant.__file__)", cwd=tmp_path
    )
    assert Path(home.strip()).is_relative_to(tmp_path)
    run(python, ROOT / "tests" / "pages.py", "--check", TUTORIAL, cwd=tmp_path)

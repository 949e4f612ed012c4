"""What is shipped: wheel, sdist, metadata; and that no pickle is ever loaded."""

import ast
import base64
import email
import hashlib
import io
import os
import pickle
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import numpy as np
import pytest
from test_project import PRIVATE, ROOT, VERSION

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
INFO = f"calibrant-{VERSION}.dist-info"
MODULE = "calibrant/_rows/_compiled.abi3.so"
BUILD = "from setuptools import build_meta; build_meta.build_{}({!r})"


def build(kind, source, out, **variables):
    """Run the hook of the build backend; no network. Returns what it made and said."""
    command = [sys.executable, "-c", BUILD.format(kind, str(out))]
    env = os.environ | {"PIP_NO_INDEX": "1", "SOURCE_DATE_EPOCH": "1700000000"}
    run = subprocess.run(
        command,
        cwd=source,
        check=True,
        capture_output=True,
        text=True,
        env=env | variables,
    )
    (made,) = out.iterdir()
    return made, run.stdout


@pytest.fixture(scope="module")
def source(part, tmp_path_factory):
    """A copy of what is built: setuptools leaves files in the source."""
    part("setuptools")
    copy = tmp_path_factory.mktemp("source")
    kept = {name.removeprefix("src/") for name in package_files()}
    for name in (*ABOUT, *(f"src/{name}" for name in kept)):
        (copy / name).parent.mkdir(parents=True, exist_ok=True)
        (copy / name).write_bytes((ROOT / name).read_bytes())
    return copy


@pytest.fixture(scope="module")
def wheel(source, tmp_path_factory):
    return build("wheel", source, tmp_path_factory.mktemp("wheel"))[0]


@pytest.fixture(scope="module")
def sdist(source, tmp_path_factory):
    return build("sdist", source, tmp_path_factory.mktemp("sdist"))[0]


def contents(path):
    """Bytes by name of a wheel or an sdist."""
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as archive:
            return {name: archive.read(name) for name in archive.namelist()}
    with tarfile.open(path) as archive:
        members = [member for member in archive if member.isfile()]
        return {
            m.name.partition("/")[2]: archive.extractfile(m).read() for m in members
        }


def package_files():
    """Files of the package that git knows, as a wheel names them."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    run = subprocess.run(
        [*command, "src/calibrant"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    names = {name for name in run.stdout.split("\0") if (ROOT / name).is_file()}
    return {name.removeprefix("src/") for name in names}


ABOUT = [
    "CHANGELOG.md",
    "CITATION.cff",
    "LICENSE",
    "MANIFEST.in",
    "README.md",
    "SECURITY.md",
]
ABOUT += ["pyproject.toml", "setup.py"]


def test_the_wheel_holds_the_package_and_its_licence_only(wheel, absent):
    if not (ROOT / ".git").exists():
        absent("not a git checkout: clone the repository")
    about = {"METADATA", "WHEEL", "RECORD", "entry_points.txt", "licenses/LICENSE"}
    found = contents(wheel)
    about = {f"{INFO}/{name}" for name in (*about, "top_level.txt")}
    shipped = {name for name in package_files() if not name.endswith((".c", ".h"))}
    assert set(found) - {MODULE} == shipped | about
    assert {Path(name).suffix for name in shipped} == {
        ".py",
        ".pyi",
        ".typed",
        ".css",
        ".html",
        ".js",
    }
    assert found["calibrant/py.typed"] == b""
    assert found[f"{INFO}/licenses/LICENSE"] == (ROOT / "LICENSE").read_bytes()


def test_the_sdist_holds_what_a_wheel_is_built_of(sdist, absent):
    if not (ROOT / ".git").exists():
        absent("not a git checkout: clone the repository")
    found = {name for name in contents(sdist) if ".egg-info/" not in name}
    about = {*ABOUT, "PKG-INFO", "setup.cfg"}
    assert found == about | {f"src/{name}" for name in package_files()}
    assert "src/calibrant/_rows/_compiled.c" in found


@pytest.mark.slow
def test_the_sdist_builds_the_same_wheel(wheel, sdist, tmp_path):
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    out = tmp_path / "out"
    out.mkdir()
    assert contents(build("wheel", source, out)[0]) == contents(wheel)


def test_the_wheel_is_for_this_and_later_pythons(wheel, built):
    assert MODULE in contents(wheel)
    assert "-cp311-abi3-" in wheel.name


def test_without_a_compiler_the_wheel_is_built_all_the_same(source, wheel, tmp_path):
    copy, out = tmp_path / "source", tmp_path / "out"
    shutil.copytree(source, copy, ignore=shutil.ignore_patterns("build", "*.egg-info"))
    out.mkdir()
    made, said = build("wheel", copy, out, CC="/nonexistent/cc")
    assert said.count("compiled module: no") == 1
    assert set(contents(made)) == set(contents(wheel)) - {MODULE}


def test_nothing_shipped_names_a_machine_or_an_index(wheel, sdist):
    here = {str(ROOT), str(Path.home()), os.environ.get("USER", "") or "/nobody"} - {
        "root"
    }
    shipped = contents(wheel) | contents(sdist)
    shipped.pop(MODULE, None)  # a linker may write where this Python is
    for name, content in shipped.items():
        text = content.decode("utf-8")
        assert not PRIVATE.search(text), name
        assert not any(len(path) > 3 and path in text for path in here), name


def test_the_record_has_the_digest_of_every_file(wheel):
    found = contents(wheel)
    lines = found.pop(f"{INFO}/RECORD").decode().splitlines()
    recorded = {name: digest for name, digest, _ in (x.rsplit(",", 2) for x in lines)}
    assert recorded.pop(f"{INFO}/RECORD") == ""
    for name, content in found.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
        assert recorded.pop(name) == f"sha256={digest.decode().rstrip('=')}"
    assert recorded == {}


def test_the_metadata_say_what_the_project_says(wheel):
    about = email.message_from_bytes(contents(wheel)[f"{INFO}/METADATA"])
    assert (about["Name"], about["Version"]) == ("calibrant", VERSION)
    assert about["License-Expression"] == "BSD-3-Clause"
    assert about["Requires-Python"] == PROJECT["requires-python"] == ">=3.11"
    plain = [x for x in about.get_all("Requires-Dist") if "extra ==" not in x]
    assert len(plain) == len(PROJECT["dependencies"])
    assert about.get_payload().startswith("# calibrant")


def test_the_metadata_name_authors_addresses_and_classifiers_that_exist(wheel, part):
    about = email.message_from_bytes(contents(wheel)[f"{INFO}/METADATA"])
    cited = part("yaml").safe_load((ROOT / "CITATION.cff").read_text("utf-8"))
    assert [about["Author"]] == [author["name"] for author in cited["authors"]]
    assert about.get_all("Project-URL") == [
        f"Paper, {cited['preferred-citation']['url']}"
    ]
    known = part("trove_classifiers").classifiers
    assert set(about.get_all("Classifier")) - known == set()
    assert "Operating System :: OS Independent" in about.get_all("Classifier")


def test_an_unpacked_wheel_runs_by_itself(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path)
    code = (
        f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
        "import calibrant, calibrant.cli\n"
        "print(calibrant.__file__)\n"
        "calibrant.cli.main(['--version'])"
    )
    command = [sys.executable, "-P", "-c", code]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    place, version, module = run.stdout.splitlines()
    assert Path(place).is_relative_to(tmp_path)
    assert VERSION in version
    assert module.startswith("compiled module: ")


def test_every_requirement_has_a_floor_and_no_address():
    extras = PROJECT["optional-dependencies"].values()
    for requirement in sum(extras, PROJECT["dependencies"]):
        assert re.fullmatch(r"[\w.-]+>=[\w.]+", requirement)


# -- no pickle --------------------------------------------------------------------------

LOADERS = {"pickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve"}


def imported(node):
    """Packages that an import names, but for the error that unpickling may raise."""
    if isinstance(node, ast.ImportFrom):
        harmless = {alias.name for alias in node.names} == {"UnpicklingError"}
        return set() if harmless else {(node.module or "").partition(".")[0]}
    if isinstance(node, ast.Import):
        return {alias.name.partition(".")[0] for alias in node.names}
    return set()


def unpickles(node):
    """Whether a piece of Python could build the objects of a pickle."""
    if not isinstance(node, ast.Call):
        return bool(imported(node) & LOADERS)
    given = {key.arg: getattr(key.value, "value", None) for key in node.keywords}
    if given.get("allow_pickle") or given.get("weights_only") is False:
        return True
    match getattr(node.func, "attr", None):
        case "load" if "torch" in (of := ast.unparse(node.func.value)):
            return given.get("weights_only") is not True
        case "load":
            return of == "np" and given.get("allow_pickle") is not False
        case name:
            return name in ("Unpickler", "read_pickle")


def unpicklers(text):
    """Lines that could."""
    return [node.lineno for node in ast.walk(ast.parse(text)) if unpickles(node)]


@pytest.mark.parametrize(
    "line",
    [
        "import pickle",
        "from joblib import load",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "np.load(path)",
        "np.load(path, allow_pickle=True)",
        "pd.read_pickle(path)",
        "np.lib.format.read_array(file, allow_pickle=True)",
    ],
)
def test_a_way_to_load_a_pickle_is_recognised(line):
    assert unpicklers(line) == [1]


def test_no_line_of_the_package_loads_a_pickle():
    found = [
        (path.name, line)
        for path in sorted((ROOT / "src").rglob("*.py"))
        for line in unpicklers(path.read_text("utf-8"))
    ]
    assert found == []


class Planted:
    """Makes a file if anybody unpickles it."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (str(self.path), "x")


def plant_npy(path, planted):
    np.save(path, np.array([planted], dtype=object), allow_pickle=True)


def plant_npz(path, planted):
    objects = np.array([planted, planted], dtype=object)
    np.savez(path, y=np.zeros(2, int), probs=objects, allow_pickle=True)


def plant_sketch(path, planted):
    """In the archive of a sketch, under a name that it reads."""
    from calibrant import Sketch

    sketch = Sketch()
    sketch.update([0, 1], probs=[0.1, 0.8])
    sketch.save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for name in members:
        file = io.BytesIO()
        np.save(file, np.array([planted], dtype=object), allow_pickle=True)
        members[name] = file.getvalue()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name, content)


def plant_bytes(path, planted):
    path.write_bytes(pickle.dumps({"probs": planted, "y": planted}))


def plant_pt(path, planted):
    import torch

    torch.save({"probs": planted}, path)


PLANTS = {
    "a.npy": plant_npy,
    "a.npz": plant_npz,
    "b.npz": plant_sketch,
    "a.pkl": plant_bytes,
    "a.csv": plant_bytes,
    "a.parquet": plant_bytes,
    "a.safetensors": plant_bytes,
    "a.json": plant_bytes,
    "b.npy": plant_bytes,
    "c.npz": plant_bytes,
    "a.pt": plant_pt,
    "a.pth": plant_bytes,
}


def openers():
    """All that reads a file which a user was given."""
    from calibrant import Evaluation, Sketch
    from calibrant.files import inspect, read
    from calibrant.recalibration import load

    return (
        read,
        inspect,
        Sketch.load,
        load,
        lambda p: Evaluation.from_json(p.read_bytes()),
    )


@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_pickle_is_refused_and_does_nothing(name, tmp_path, part):
    if name.endswith((".pt", ".pth")):
        part("torch")
    made = tmp_path / "made"
    path = tmp_path / name
    PLANTS[name](path, Planted(made))
    for opener in openers():
        with pytest.raises((ValueError, OSError, TypeError)):
            opener(path)
        assert not made.exists()


def test_a_planted_pickle_would_do_something(tmp_path):
    pickle.loads(pickle.dumps(Planted(tmp_path / "made"))).close()
    assert (tmp_path / "made").exists()

"""The workflows: valid, held at commits, with few rights, and made of what exists."""

import re
import tomllib

import pytest
from test_project import ROOT

FOLDER = ROOT / ".github" / "workflows"
WORKFLOWS = sorted(path.name for path in FOLDER.glob("*.y*ml"))
ACTIONS = {"actions/checkout", "actions/setup-python"}


@pytest.fixture(scope="module")
def load(part):
    yaml = part("yaml")
    return lambda name: yaml.safe_load((FOLDER / name).read_text("utf-8"))


def steps(workflow):
    return [step for job in workflow["jobs"].values() for step in job["steps"]]


def targets():
    makefile = (ROOT / "Makefile").read_text("utf-8")
    return set(re.findall(r"^([a-z-]+):.*## ", makefile, re.MULTILINE))


def test_there_are_workflows():
    assert WORKFLOWS == ["fuzz.yml", "tests.yml", "wheels.yml"]


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_may_read_and_nothing_else(load, name):
    workflow = load(name)
    assert workflow["permissions"] == {"contents": "read"}
    assert "pull_request_target" not in workflow[True]  # `on` is true in YAML 1.1
    for job in workflow["jobs"].values():
        assert "permissions" not in job
        assert job["timeout-minutes"] <= 180
    assert "secrets." not in (FOLDER / name).read_text("utf-8")


@pytest.mark.parametrize("name", WORKFLOWS)
def test_actions_are_held_at_a_commit(load, name):
    text = (FOLDER / name).read_text("utf-8")
    used = [step["uses"] for step in steps(load(name)) if "uses" in step]
    for action, _, commit in (x.partition("@") for x in used):
        assert action in ACTIONS
        assert re.search(rf"{action}@{commit} # v\d+\.\d+\.\d+\n", text)
        assert re.fullmatch("[0-9a-f]{40}", commit)
    for step in steps(load(name)):
        if step.get("uses", "").startswith("actions/checkout"):
            assert step["with"]["persist-credentials"] is False


@pytest.mark.parametrize("name", WORKFLOWS)
def test_a_workflow_runs_targets_that_exist(load, name):
    lines = [line for x in steps(load(name)) for line in x.get("run", "").splitlines()]
    assert lines
    for line in lines:
        if line.startswith("make "):
            _, target, *values = line.split()
            assert target in targets()
            assert all(re.fullmatch(r"[A-Z]+=\d+", value) for value in values)
        else:
            assert re.match(
                r"(python -m (pip|pytest|cibuildwheel)|python -P|calibrant) ", line
            )
        assert "${{" not in line  # what an event says is not pasted into a shell


def test_every_system_and_every_python_is_tested(load):
    workflow = load("tests.yml")
    matrix = workflow["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    systems = {system.partition("-")[0] for system in matrix["os"]}
    assert systems == {"ubuntu", "macos", "windows"}
    ran = {line for x in steps(workflow) for line in x.get("run", "").splitlines()}
    assert {"make lint", "make docs", "make test-floors"} <= ran
    assert load("fuzz.yml")[True]["schedule"]


def test_extras_and_groups_of_the_workflows_exist(load):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    text = "\n".join(step.get("run", "") for step in steps(load("tests.yml")))
    extras = set(",".join(re.findall(r"\.\[([\w,]+)\]", text)).split(","))
    assert extras <= set(project["project"]["optional-dependencies"])
    groups = set(re.findall(r"--group (\w+)", text))
    assert groups <= set(project["dependency-groups"])
    assert groups


def test_wheels_are_built_for_every_system(load):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    found = load("wheels.yml")["jobs"]["wheels"]["strategy"]["matrix"]["os"]
    assert found == load("tests.yml")["jobs"]["test"]["strategy"]["matrix"]["os"]
    settings = project["tool"]["cibuildwheel"]
    assert settings["build"].startswith(
        "cp" + project["project"]["requires-python"].removeprefix(">=").replace(".", "")
    )
    named = re.findall(r"\{project\}/(\S+)", settings["test-command"])
    assert named
    assert all((ROOT / name).is_file() for name in named)
    assert set(settings["test-groups"]) <= set(project["dependency-groups"])


def test_classifiers_are_versions_that_the_workflows_run(load):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    named = re.findall(r"Python :: (3\.\d+)", "\n".join(project["classifiers"]))
    run = load("tests.yml")["jobs"]["test"]["strategy"]["matrix"]["python"]
    assert named
    assert named == [version for version in run if version in named]

"""The recipe for make in docs/ci.md works as it is printed there; the shell parts of the other recipes run too."""

import importlib.util
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests import ROOT

from .batches import good, refused


@pytest.fixture
def project(tmp_path: Path) -> Path:
    page = (ROOT / "docs" / "ci.md").read_text("utf-8")
    found = re.search(r"^```make\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert found is not None
    (tmp_path / "Makefile").write_text(found[1])
    good(tmp_path / "models" / "sub" / "good.onnx")
    refused(tmp_path / "models" / "refused.onnx")
    return tmp_path


def make(project: Path, target: str) -> subprocess.CompletedProcess[str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        ["make", target], cwd=project, capture_output=True, text=True, timeout=300, env={**os.environ, "PATH": path}
    )


def test_failures_count_until_they_are_in_the_baseline(project: Path) -> None:
    assert make(project, "ir").returncode == 2, "make's own code for a command that failed"
    assert (project / "ir" / "sub" / "good.xml").exists() and (project / "junit.xml").exists()
    assert make(project, "accept").returncode == 0 and make(project, "ir").returncode == 0
    refused(project / "models" / "sub" / "good.onnx")
    assert make(project, "ir").returncode == 2


ACTION = ROOT / ".github" / "actions" / "convert" / "action.yml"
COMPONENT = ROOT / "templates" / "convert.yml"
HOOKS = ROOT / ".pre-commit-hooks.yaml"


@pytest.fixture
def models(tmp_path: Path) -> Path:
    good(tmp_path / "models" / "sub" / "good.onnx")
    refused(tmp_path / "models" / "refused.onnx")
    (tmp_path / "models" / "truncated.onnx").write_bytes((tmp_path / "models/sub/good.onnx").read_bytes()[:-9])
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    return tmp_path


def shell(script: str, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A script as the platforms run it: bash that ends at the first error."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, **variables}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", script]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, env=environment)


def test_the_steps_of_the_action_run(models: Path) -> None:
    content: dict[str, Any] = yaml.safe_load(ACTION.read_text("utf-8"))
    steps = {each["name"]: each for each in content["runs"]["steps"] if "run" in each}
    inputs = {name: str(each.get("default", "models")) for name, each in content["inputs"].items()}
    outside = {name: str(models / f"{name.lower()}.txt") for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}

    def step(name: str, **changed: str) -> subprocess.CompletedProcess[str]:
        given = {**inputs, **changed}
        found = {key: given[value[3:-3].strip().removeprefix("inputs.")] for key, value in steps[name]["env"].items()}
        return shell(steps[name]["run"], models, **found, **outside)

    assert '"$GITHUB_ACTION_PATH/../../..[verify,text]"' in steps["Install mo_loop"]["run"]
    assert ACTION.parents[3] == ROOT
    assert step("Key of the cache").returncode == 0
    assert re.fullmatch(r"digest=[0-9a-f]{20}\n", Path(outside["GITHUB_OUTPUT"]).read_text())
    assert step("Findings").returncode == 0, "a model that cannot be read does not end the job"
    sarif = (models / "mo-loop.sarif").read_text()
    assert '"version": "2.1.0"' in sarif and "truncated.onnx" in sarif
    assert step("Convert", arguments="--target 2026.4").returncode == 1
    assert (models / "ir" / "sub" / "good.xml").is_file()
    assert "refused.onnx" in Path(outside["GITHUB_STEP_SUMMARY"]).read_text()
    (models / "mo-loop-report.json").rename(models / "accepted.json")
    assert step("Convert", baseline="accepted.json", verify="false").returncode == 0


def test_the_script_of_the_component_runs(models: Path) -> None:
    head, body = yaml.safe_load_all(COMPONENT.read_text("utf-8"))
    values = {name: (each or {}).get("default", "models") for name, each in head["spec"]["inputs"].items()}
    _, convert = body["convert-models"]["script"]
    script = re.sub(r"\$\[\[ inputs\.(\w+) \]\]", lambda found: values[found[1]], convert)
    done = shell(script, models)
    assert done.returncode == 1 and (models / "mo-loop.md").is_file(), done.stderr
    assert (models / "ir" / "sub" / "good.xml").is_file() and (models / "mo-loop-junit.xml").is_file()


def test_the_hook_checks_the_files_that_it_is_given(models: Path) -> None:
    (hook,) = yaml.safe_load(HOOKS.read_text("utf-8"))
    assert re.search(hook["files"], "models/sub/good.onnx")
    assert shell(f"{hook['entry']} models/sub/good.onnx", models).returncode == 0
    for name, code in (("refused", 1), ("truncated", 2)):
        assert shell(shlex.join([*shlex.split(hook["entry"]), f"models/{name}.onnx"]), models).returncode == code


def documents() -> dict[str, tuple[str, Any]]:
    """Name -> the published schema, and the content; `$[[ ]]` of a component are texts in the second document."""
    blocks = re.findall(r"^```yaml\n(.*?)^```$", (ROOT / "docs" / "ci.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    workflow, include, _ = map(yaml.safe_load, blocks)
    workflow["on"] = workflow.pop(True)  # YAML 1.1 reads the key `on` as true
    _, component = yaml.safe_load_all(COMPONENT.read_text("utf-8").replace("$[[ inputs.stage ]]", "test"))
    return {
        "action": ("github-actions", yaml.safe_load(ACTION.read_text("utf-8"))),
        "workflow": ("github-workflows", workflow),
        "component": ("gitlab-ci", component), "include": ("gitlab-ci", include),
    }


@pytest.mark.parametrize("name", ["action", "workflow", "component", "include"])
def test_the_files_fit_the_published_schemas(name: str, tmp_path: Path) -> None:
    if importlib.util.find_spec("check_jsonschema") is None:
        pytest.skip("check-jsonschema is not installed (group `dev`)")
    schema, content = documents()[name]
    (tmp_path / "content.json").write_text(json.dumps(content), "utf-8")
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}", "content.json"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
